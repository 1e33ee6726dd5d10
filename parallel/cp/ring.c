/* ring.c - keys and values travel around the ranks of the axis, and their gradients with them.
 *
 * In step i a rank has the keys of the rank i places before it.  While the kernel computes with
 * them, they travel on to the next rank, and the next ones arrive in the other buffer.  In the
 * backward pass the sums of their gradients follow, one step later: while the kernel computes, the
 * sums arrive that the ranks before have begun.  After as many rotations as ranks they are home. */
#include "cp.h"

struct ring {
    char *keys[2];  /* k, then v */
    float *sums[2]; /* of their gradients */
};

static weft_status prepare(weft_cp *cp)
{
    struct ring *ring = cp->state = wf_calloc(1, sizeof *ring);
    int64_t elements = 2 * wf_cp_key_elements(cp, cp->held_most);

    if (ring == NULL) return wf_fail_memory(sizeof *ring);
    for (int i = 0; i < 2; i++) {
        WF_TRY(wf_cp_scratch(cp, elements, cp->element, &ring->keys[i]));
        WF_TRY(wf_cp_scratch(cp, elements, sizeof(float), &ring->sums[i]));
    }
    return WEFT_OK;
}

/* Messages of one rotation: each pair of tensors has a tag. */
struct rotation {
    const void *sent[2];
    void *received[2];
    int64_t send_count, receive_count; /* elements of each */
    int tensors;
    enum weft_dtype dtype;
};

static weft_status post_messages(weft_cp *cp, const struct rotation *r)
{
    weft_comm *comm = cp->comm;
    int32_t ranks = cp->plan->ranks, right = (cp->coordinate + 1) % ranks,
            left = (cp->coordinate + ranks - 1) % ranks;

    for (int i = 0; i < r->tensors; i++) {
        if (r->send_count > 0)
            WF_TRY(weft_send(comm, r->sent[i], (uint64_t)r->send_count, r->dtype, right,
                             (uint32_t)i, cp->side));
        if (r->receive_count > 0)
            WF_TRY(weft_receive(comm, r->received[i], (uint64_t)r->receive_count, r->dtype, left,
                                (uint32_t)i, cp->side));
    }
    return WEFT_OK;
}

/* Post the rotation; *WORK is NULL if this rank has nothing to send or receive. */
static weft_status rotate(weft_cp *cp, const struct rotation *r, weft_work **work)
{
    weft_status status, end;

    if (r->send_count == 0 && r->receive_count == 0) return WEFT_OK;
    WF_TRY(weft_group_begin(cp->comm));
    status = post_messages(cp, r);
    end = weft_group_end(cp->comm);
    if (status != WEFT_OK) return status;
    WF_TRY(end);
    return weft_work_record(cp->context, cp->side, work);
}

/* Send the keys of SOURCE, and receive those of NEXT in BUFFER. */
static weft_status rotate_keys(weft_cp *cp, const struct wf_cp_keys *keys, int32_t next,
                               char *buffer, weft_work **work)
{
    int64_t count = wf_cp_key_elements(cp, cp->held[next]);
    struct rotation r = {{keys->k, keys->v},
                         {buffer, buffer + (size_t)count * cp->element},
                         wf_cp_key_elements(cp, keys->length),
                         count,
                         2,
                         (enum weft_dtype)cp->sizes.dtype};

    return rotate(cp, &r, work);
}

static weft_status rotate_sums(weft_cp *cp, const struct wf_cp_keys *keys, int32_t next,
                               float *buffer, weft_work **work)
{
    struct rotation r = {{keys->d_k},
                         {buffer},
                         2 * wf_cp_key_elements(cp, keys->length),
                         2 * wf_cp_key_elements(cp, cp->held[next]),
                         1,
                         WEFT_DTYPE_F32};

    return rotate(cp, &r, work);
}

/* One step: KEYS are those of this step and become those of the next one. */
static weft_status take_step(const struct wf_cp_pass *pass, int32_t step, struct wf_cp_keys *keys,
                             weft_work **moving)
{
    weft_cp *cp = pass->cp;
    struct ring *ring = cp->state;
    int32_t next = wf_cp_source(cp->plan, cp->coordinate, step + 1);
    bool is_last = step + 1 == cp->plan->ranks;
    int64_t count = wf_cp_key_elements(cp, cp->held[next]);
    weft_work *sums = NULL;

    if (!is_last) WF_TRY(rotate_keys(cp, keys, next, ring->keys[step % 2], moving));
    WF_TRY(wf_cp_compute(pass, step, keys));
    if (pass->backward && cp->plan->ranks > 1)
        WF_TRY(rotate_sums(cp, keys, next, ring->sums[(step + 1) % 2], &sums));
    keys->arriving = sums;
    WF_TRY(wf_cp_wait(moving));
    keys->k = ring->keys[step % 2];
    keys->v = ring->keys[step % 2] + (size_t)count * cp->element;
    keys->length = cp->held[next];
    if (cp->plan->ranks == 1) return WEFT_OK;
    keys->d_k = ring->sums[(step + 1) % 2];
    keys->d_v = keys->d_k + count;
    return WEFT_OK;
}

/* The sums of this rank's own keys are home. */
static weft_status keep_gradients(const struct wf_cp_pass *pass, const struct wf_cp_keys *keys)
{
    int64_t heads = pass->cp->sizes.key_heads;

    WF_TRY(wf_cp_give(pass, keys->d_k, &pass->t.d_k, heads, keys->length));
    return wf_cp_give(pass, keys->d_v, &pass->t.d_v, heads, keys->length);
}

static weft_status run(struct wf_cp_pass *pass)
{
    weft_cp *cp = pass->cp;
    struct ring *ring = cp->state;
    struct wf_cp_keys keys = {NULL, NULL, cp->held[cp->coordinate], NULL, NULL, NULL};
    int64_t count = wf_cp_key_elements(cp, keys.length);
    weft_work *moving = NULL;
    weft_status status;

    WF_TRY(wf_cp_begin(pass));
    /* Until step 1 nothing arrives in the second buffer. */
    WF_TRY(wf_cp_pack_keys(pass, &pass->t.k, ring->keys[1], &keys.k));
    WF_TRY(wf_cp_pack_keys(pass, &pass->t.v, ring->keys[1] + (size_t)count * cp->element, &keys.v));
    keys.d_k = ring->sums[0];
    keys.d_v = keys.d_k + count;
    if (pass->backward) WF_TRY(wf_cp_clear(pass, keys.d_k, 2 * (size_t)count));
    /* Sums travel on another stream, and a rank without problems of step 0 does not wait again. */
    if (pass->backward && cp->on_device) WF_TRY(wf_cp_sync(cp, pass->stream));
    status = WEFT_OK;
    for (int32_t step = 0; step < cp->plan->ranks && status == WEFT_OK; step++)
        status = take_step(pass, step, &keys, &moving);
    if (status == WEFT_OK) status = wf_cp_wait(&keys.arriving);
    weft_work_release(&moving);
    weft_work_release(&keys.arriving);
    WF_TRY(status);
    if (pass->backward) WF_TRY(keep_gradients(pass, &keys));
    return wf_cp_end(pass);
}

const struct wf_cp_way wf_cp_ring = {prepare, run, NULL};
