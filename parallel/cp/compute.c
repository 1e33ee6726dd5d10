/* compute.c - the engine's kernel, called for each problem of a step, and its results summed. */
#include "cp.h"

int64_t wf_cp_query_elements(const weft_cp *cp)
{
    return cp->sizes.batch * cp->part.heads * cp->part.queries * cp->sizes.depth;
}

int64_t wf_cp_key_elements(const weft_cp *cp, int64_t length)
{
    return cp->sizes.batch * cp->part.key_heads * length * cp->sizes.depth;
}

weft_status wf_cp_results_make(weft_cp *cp)
{
    struct wf_cp_results *r = &cp->results;
    int64_t queries = wf_cp_query_elements(cp), keys = wf_cp_key_elements(cp, cp->part.keys_most);

    WF_TRY(wf_cp_scratch(cp, queries, cp->element, &r->out));
    WF_TRY(wf_cp_scratch(cp, queries / cp->sizes.depth, sizeof(float), &r->lse));
    r->d_q = r->out; /* a pass writes one of both */
    WF_TRY(wf_cp_scratch(cp, keys, cp->element, &r->d_k));
    WF_TRY(wf_cp_scratch(cp, keys, cp->element, &r->d_v));
    return WEFT_OK;
}

/* ---- sums ---- */

/* What a pass sums into. */
static const weft_cp_local *summed(const struct wf_cp_pass *pass)
{
    return pass->backward ? &pass->t.d_q : &pass->t.out;
}

/* The sums of the queries. */
static weft_cp_local sum_of(const struct wf_cp_pass *pass)
{
    const weft_cp *cp = pass->cp;

    if (pass->sum == NULL) return *summed(pass);
    return wf_cp_dense(cp->sizes.sequence_dim, cp->part.heads, cp->part.queries, cp->sizes.depth,
                       pass->sum);
}

weft_status wf_cp_begin(struct wf_cp_pass *pass)
{
    weft_cp *cp = pass->cp;
    size_t elements = (size_t)wf_cp_query_elements(cp);

    if (cp->sizes.dtype != WEFT_DTYPE_F32 ||
        !wf_cp_is_dense(cp, summed(pass), cp->part.heads, cp->part.queries)) {
        if (cp->results.sum == NULL)
            WF_TRY(wf_cp_scratch(cp, (int64_t)elements, sizeof(float), &cp->results.sum));
        pass->sum = cp->results.sum;
    }
    WF_TRY(wf_cp_sync(cp, pass->stream));
    WF_TRY(wf_cp_clear(pass, sum_of(pass).memory, elements));
    if (pass->backward) return WEFT_OK;
    return wf_cp_unsee(pass, pass->t.lse.memory, elements / (size_t)cp->sizes.depth);
}

weft_status wf_cp_give(const struct wf_cp_pass *pass, const float *sums, const weft_cp_local *shard,
                       int64_t heads, int64_t length)
{
    weft_cp *cp = pass->cp;
    size_t count = (size_t)(cp->sizes.batch * heads * length * cp->sizes.depth);
    void *dense = cp->results.out; /* no problem uses it any more */

    if (wf_cp_is_dense(cp, shard, heads, length))
        return wf_cp_convert(pass, sums, shard->memory, count);
    if (cp->sizes.dtype == WEFT_DTYPE_F32)
        dense = (void *)(uintptr_t)sums;
    else
        WF_TRY(wf_cp_convert(pass, sums, dense, count));
    WF_TRY(wf_cp_copy_strided(cp, false, shard, heads, length, dense, pass->stream));
    return wf_cp_sync(cp, pass->stream); /* the next call uses DENSE again */
}

weft_status wf_cp_end(const struct wf_cp_pass *pass)
{
    const weft_cp *cp = pass->cp;

    if (pass->sum != NULL)
        WF_TRY(wf_cp_give(pass, pass->sum, summed(pass), cp->part.heads, cp->part.queries));
    return cp->on_device ? wf_cp_sync(cp, pass->stream) : WEFT_OK;
}

/* ---- one problem ---- */

/* LOCAL, whose elements have ELEMENT bytes, from index FIRST on. */
static weft_cp_local from_index(weft_cp_local local, size_t element, int64_t first)
{
    if (local.memory != NULL)
        local.memory = (char *)local.memory + (size_t)(first * local.sequence) * element;
    return local;
}

/* MEMORY has HEADS heads and LENGTH indices; the result begins at index FIRST. */
static weft_cp_local part_of(const weft_cp *cp, const void *memory, size_t element, int64_t heads,
                             int64_t length, int64_t first)
{
    return from_index(wf_cp_dense(cp->sizes.sequence_dim, heads, length, cp->sizes.depth, memory),
                      element, first);
}

static weft_cp_local lse_of(const weft_cp *cp, const void *memory, int64_t length, int64_t first)
{
    weft_cp_local local = wf_cp_dense(2, cp->part.heads, length, 1, memory);

    local.memory = (float *)local.memory + first;
    return local;
}

static void describe(const struct wf_cp_pass *pass, const weft_cp_problem *p,
                     const struct wf_cp_keys *keys, weft_cp_call *call)
{
    const weft_cp *cp = pass->cp;
    const struct wf_cp_results *r = &cp->results;
    int64_t heads = cp->part.heads, key_heads = cp->part.key_heads, held = cp->part.queries;
    size_t element = cp->element;

    *call = (weft_cp_call){.struct_size = sizeof *call,
                           .context = cp->context,
                           .stream = pass->stream,
                           .problem = p,
                           .batch = cp->sizes.batch,
                           .heads = heads,
                           .key_heads = key_heads,
                           .depth = cp->sizes.depth,
                           .first_head = cp->part.first_head,
                           .first_key_head = cp->part.first_key_head,
                           .dtype = cp->sizes.dtype,
                           .backward = pass->backward};
    call->q = from_index(pass->t.q, element, p->query);
    call->k = part_of(cp, keys->k, element, key_heads, keys->length, p->key);
    call->v = part_of(cp, keys->v, element, key_heads, keys->length, p->key);
    if (!pass->backward) {
        call->out = part_of(cp, r->out, element, heads, p->queries, 0);
        call->lse = lse_of(cp, r->lse, p->queries, 0);
        return;
    }
    call->out = from_index(pass->t.out, element, p->query);
    call->lse = lse_of(cp, pass->t.lse.memory, held, p->query);
    call->d_out = from_index(pass->t.d_out, element, p->query);
    call->d_q = part_of(cp, r->d_q, element, heads, p->queries, 0);
    call->d_k = part_of(cp, r->d_k, element, key_heads, p->keys, 0);
    call->d_v = part_of(cp, r->d_v, element, key_heads, p->keys, 0);
}

static weft_status merge(const struct wf_cp_pass *pass, const weft_cp_call *call)
{
    const weft_cp *cp = pass->cp;
    const weft_cp_problem *p = call->problem;
    struct wf_cp_box box = {call->batch, call->heads, p->queries, call->depth};
    weft_cp_local total = from_index(sum_of(pass), sizeof(float), p->query);
    weft_cp_local lse = lse_of(cp, pass->t.lse.memory, cp->part.queries, p->query);

    return wf_cp_combine(pass, &box, &call->out, &call->lse, &total, &lse);
}

static weft_status add(const struct wf_cp_pass *pass, const weft_cp_call *call,
                       const struct wf_cp_keys *keys)
{
    const weft_cp *cp = pass->cp;
    const weft_cp_problem *p = call->problem;
    struct wf_cp_box queries = {call->batch, call->heads, p->queries, call->depth};
    struct wf_cp_box of_keys = {call->batch, call->key_heads, p->keys, call->depth};
    int64_t heads = call->key_heads;
    weft_cp_local d_q = from_index(sum_of(pass), sizeof(float), p->query);
    weft_cp_local d_k = part_of(cp, keys->d_k, sizeof(float), heads, keys->length, p->key);
    weft_cp_local d_v = part_of(cp, keys->d_v, sizeof(float), heads, keys->length, p->key);

    WF_TRY(wf_cp_combine(pass, &queries, &call->d_q, NULL, &d_q, NULL));
    WF_TRY(wf_cp_combine(pass, &of_keys, &call->d_k, NULL, &d_k, NULL));
    return wf_cp_combine(pass, &of_keys, &call->d_v, NULL, &d_v, NULL);
}

weft_status wf_cp_compute(const struct wf_cp_pass *pass, int32_t step, struct wf_cp_keys *keys)
{
    const weft_cp *cp = pass->cp;
    const struct wf_cp_problems *problems = &cp->steps[step];

    for (size_t i = 0; i < problems->count; i++) {
        uint64_t failures = wf_failure_count();
        weft_cp_call call;
        weft_status status;

        describe(pass, &problems->items[i], keys, &call);
        status = pass->kernel(pass->user, &call);
        if (status != WEFT_OK) return wf_fail_callback(status, failures, "the kernel");
        if (pass->backward) {
            WF_TRY(wf_cp_wait(&keys->arriving));
            WF_TRY(add(pass, &call, keys));
        } else {
            WF_TRY(merge(pass, &call));
        }
        /* The kernel need not use the stream, and sums travel on another one. */
        if (cp->on_device) WF_TRY(wf_cp_sync(cp, pass->stream));
    }
    return wf_cp_wait(&keys->arriving);
}
