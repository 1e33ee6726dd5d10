/* call.c - arguments of calls, and how they would run. */
#include "overlap.h"

/* ---- rows ---- */

static struct wf_overlap_piece rows_of(const struct wf_overlap_run *run, int32_t owner,
                                       int64_t first, int64_t end)
{
    int64_t start = wf_min_i64((int64_t)owner * run->share, run->call.rows);

    return (struct wf_overlap_piece){first, end - first, (uint64_t)(first - start) * run->row,
                                     (uint64_t)(end - first) * run->row};
}

struct wf_overlap_piece wf_overlap_share_of(const struct wf_overlap_run *run, int32_t owner)
{
    int64_t first = wf_min_i64((int64_t)owner * run->share, run->call.rows);

    return rows_of(run, owner, first, wf_min_i64(first + run->share, run->call.rows));
}

struct wf_overlap_piece wf_overlap_piece_of(const struct wf_overlap_run *run, int32_t owner,
                                            int32_t chunk)
{
    struct wf_overlap_piece whole = wf_overlap_share_of(run, owner);
    int64_t most = (whole.count + run->chunks - 1) / run->chunks, end = whole.first + whole.count;
    int64_t first = wf_min_i64(whole.first + chunk * most, end);

    return rows_of(run, owner, first, wf_min_i64(first + most, end));
}

/* ---- checks ---- */

static weft_status check_call(const weft_overlap_call *call)
{
    if (call->rows < 0 || call->width < 1)
        return wf_fail(WEFT_ERR_INVALID, "%lld rows of width %lld; they must be at least 0 and 1",
                       (long long)call->rows, (long long)call->width);
    if (call->dtype >= WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_INVALID, "dtype %u is not known", call->dtype);
    if (call->chunks < WEFT_OVERLAP_PLAIN || call->chunks > WEFT_OVERLAP_MAX_CHUNKS)
        return wf_fail(WEFT_ERR_INVALID,
                       "%d chunks; there must be 1 to %d, WEFT_OVERLAP_BY_COSTS or "
                       "WEFT_OVERLAP_PLAIN",
                       call->chunks, WEFT_OVERLAP_MAX_CHUNKS);
    return WEFT_OK;
}

static weft_status fill(weft_overlap_state *o, const weft_overlap_call *given,
                        struct wf_overlap_run *run)
{
    weft_overlap_call *call = &run->call;
    int64_t ranks = o->comm->size, row, bytes = 0;

    if (given == NULL) return wf_fail(WEFT_ERR_INVALID, "call is NULL");
    WF_TRY(wf_options_read("weft_overlap_call", given, call, sizeof *call));
    WF_TRY(check_call(call));
    run->overlap = o;
    run->share = call->rows / ranks + (call->rows % ranks != 0);
    if (!wf_mul_i64(call->width, (int64_t)wf_dtype_bytes(call->dtype), &row) ||
        !wf_mul_i64(run->share, ranks, &bytes) || !wf_mul_i64(bytes, row, &bytes))
        return wf_fail(WEFT_ERR_INVALID,
                       "%lld rows of width %lld need more than 2^63 bytes; %llu were prepared",
                       (long long)call->rows, (long long)call->width, (unsigned long long)o->bytes);
    if ((uint64_t)bytes > o->bytes)
        return wf_fail(
            WEFT_ERR_INVALID,
            "%lld rows of width %lld need %lld bytes (ranks x ceil(rows / ranks) x row); "
            "%llu were prepared",
            (long long)call->rows, (long long)call->width, (long long)bytes,
            (unsigned long long)o->bytes);
    run->row = (uint64_t)row;
    return WEFT_OK;
}

/* ---- chunks ---- */

static struct wf_overlap_question question_of(const struct wf_overlap_run *run, bool is_gather)
{
    const weft_overlap_state *o = run->overlap;
    const weft_overlap_call *call = &run->call;
    uint64_t bytes = (uint64_t)call->rows * run->row;
    uint64_t flops = wf_mul_capped(call->flops, (uint64_t)call->rows);

    return (struct wf_overlap_question){
        .costs = o->context->costs,
        .kind = is_gather ? WEFT_STEP_ALL_GATHER : WEFT_STEP_REDUCE_SCATTER,
        .link = o->link,
        .ranks = o->comm->size,
        .rows = run->share,
        .bytes = bytes,
        .compute_ns = call->flops == 0
                          ? UINT64_MAX
                          : weft_cost_table_compute_ns(o->context->costs, flops, bytes),
        .chunks = wf_max_i64(call->chunks, 0) > 0 ? call->chunks : 0};
}

/* The chunks of a call for which the costs say ANSWER; 0: plain. */
static int32_t chunks_of(const struct wf_overlap_run *run, bool is_gather,
                         const struct wf_overlap_answer *answer)
{
    const weft_overlap_state *o = run->overlap;
    bool pays = answer->overlapped_ns < answer->plain_ns;

    if (run->call.chunks == WEFT_OVERLAP_PLAIN || o->comm->size == 1) return 0;
    if (!is_gather && !o->adds) return 0;
    if (run->call.chunks > 0) return run->call.chunks;
    return o->concurrent && pays ? answer->chunks : 0;
}

weft_status wf_overlap_prepare(weft_overlap_state *o, const weft_overlap_call *call,
                               struct wf_overlap_run *run)
{
    struct wf_overlap_question question;
    struct wf_overlap_answer answer;
    uint64_t token;

    WF_TRY(wf_fail_named(fill(o, call, run), run->function));
    question = question_of(run, run->is_gather);
    answer = wf_overlap_choose(&question);
    run->chunks = chunks_of(run, run->is_gather, &answer);
    token = wf_hash_mix(run->is_gather, (uint64_t)run->call.rows);
    token = wf_hash_mix(token, (uint64_t)run->call.width);
    token = wf_hash_mix(token, run->call.dtype);
    token = wf_hash_mix(token, (uint64_t)run->chunks);
    run->token = token >> 40 & 0xffff;
    return WEFT_OK;
}

uint64_t weft_overlap_bytes(const weft_overlap_state *overlap, const weft_overlap_call *call)
{
    struct wf_overlap_run run = {.function = "weft_overlap_bytes"};

    if (wf_overlap_check(overlap, run.function) != WEFT_OK ||
        fill((weft_overlap_state *)(uintptr_t)overlap, call, &run) != WEFT_OK)
        return 0;
    return (uint64_t)wf_overlap_share_of(&run, overlap->comm->rank).count * run.row;
}

weft_status weft_overlap_get(const weft_overlap_state *overlap, const weft_overlap_call *call,
                             weft_overlap_info *out)
{
    static const char function[] = "weft_overlap_get";
    struct wf_overlap_run run = {.function = function};
    struct wf_overlap_answer gather, scatter;
    struct wf_overlap_question question;
    weft_overlap_info info;

    WF_TRY(wf_overlap_check(overlap, function));
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_info_check("weft_overlap_info", out), function));
    WF_TRY(wf_fail_named(fill((weft_overlap_state *)(uintptr_t)overlap, call, &run), function));
    question = question_of(&run, true);
    gather = wf_overlap_choose(&question);
    question = question_of(&run, false);
    scatter = wf_overlap_choose(&question);
    info = (weft_overlap_info){.struct_size = sizeof info,
                               .symmetric = overlap->symm != NULL,
                               .concurrent = overlap->concurrent,
                               .gather_chunks = chunks_of(&run, true, &gather),
                               .reduce_scatter_chunks = chunks_of(&run, false, &scatter),
                               .compute_ns = question.compute_ns,
                               .gather_plain_ns = gather.plain_ns,
                               .gather_overlapped_ns = gather.overlapped_ns,
                               .reduce_scatter_plain_ns = scatter.plain_ns,
                               .reduce_scatter_overlapped_ns = scatter.overlapped_ns};
    return wf_fail_named(wf_info_write("weft_overlap_info", &info, sizeof info, out), function);
}
