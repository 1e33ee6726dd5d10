/* call.c - arguments of calls, and how they would run. */
#include "overlap.h"

#include <string.h>

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

/* The shard of RANK of COMM in SPEC is the rows from START + FIRST on, as S(0) gives, where START
 * is the first row of all ranks along the axis. */
static bool has_rows(const weft_spec *spec, int32_t rank, int64_t first, int64_t count,
                     const weft_shard *like)
{
    weft_shard shard;
    weft_index_run run = {0};

    weft_spec_shard(spec, rank, &shard);
    if (!shard.member || shard.shape[0] != count) return false;
    if (memcmp(shard.shape + 1, like->shape + 1, sizeof shard.shape - sizeof *shard.shape) != 0)
        return false;
    return count == 0 ||
           (weft_spec_run(spec, rank, 0, 0, &run) && run.start == first && run.length == count);
}

/* Set *ROWS to the rows that the ranks along the axis hold together. */
static weft_status share_rows(const weft_comm *comm, const weft_spec *spec, int64_t *rows)
{
    weft_shard first, shard;
    int32_t size = weft_comm_size(comm);
    int64_t sum = 0, most;

    weft_spec_shard(spec, weft_comm_world_rank(comm, 0), &first);
    if (first.dims < 1) return wf_fail(WEFT_ERR_INVALID, "a tensor without dimensions has no rows");
    for (int32_t i = 0; i < size; i++) {
        weft_spec_shard(spec, weft_comm_world_rank(comm, i), &shard);
        sum += shard.shape[0];
    }
    most = sum / size + (sum % size != 0);
    for (int32_t i = 0; i < size; i++) {
        int64_t at = wf_min_i64(i * most, sum), count = wf_min_i64(most, sum - at);

        if (has_rows(spec, weft_comm_world_rank(comm, i), first.offset[0] + at, count, &first))
            continue;
        return wf_fail(
            WEFT_ERR_INVALID,
            "the ranks of %s do not share the rows of the tensor as S(0) does: rank %d "
            "must hold the next %lld of %lld rows; move the tensor to a layout with S(0) "
            "on the axis",
            weft_comm_name(comm), i, (long long)count, (long long)sum);
    }
    *rows = sum;
    return WEFT_OK;
}

/* Set the rows and the width of CALL. */
static weft_status read_spec(weft_overlap *o, const weft_spec *spec, struct wf_overlap_call *call)
{
    weft_shard shard;

    if (spec != o->spec) {
        int64_t rows = 0;

        WF_TRY(share_rows(o->comm, spec, &rows));
        weft_spec_release(&o->spec);
        o->spec = weft_spec_retain(spec);
        o->spec_rows = rows;
    }
    weft_spec_shard(spec, weft_rank(o->context), &shard);
    call->rows = o->spec_rows;
    call->dtype = weft_spec_dtype(spec);
    call->width = 1;
    for (int32_t d = 1; d < shard.dims; d++)
        call->width *= shard.shape[d];
    return WEFT_OK;
}

static weft_status read_options(const weft_overlap_call_options *options,
                                struct wf_overlap_call *call)
{
    weft_overlap_call_options o = {0};

    if (options != NULL)
        WF_TRY(wf_options_read("weft_overlap_call_options", options, &o, sizeof o));
    if (o.chunks < WEFT_OVERLAP_PLAIN || o.chunks > WEFT_OVERLAP_MAX_CHUNKS)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_overlap_call_options.chunks is %d; it must be 1 to %d, WEFT_OVERLAP_BY_COSTS or "
            "WEFT_OVERLAP_PLAIN",
            o.chunks, WEFT_OVERLAP_MAX_CHUNKS);
    call->chunks = o.chunks;
    call->flops = o.flops;
    return WEFT_OK;
}

static weft_status fill(weft_overlap *o, const weft_spec *spec,
                        const weft_overlap_call_options *options, struct wf_overlap_run *run)
{
    struct wf_overlap_call *call = &run->call;
    int64_t ranks = o->ranks, row, bytes = 0;

    WF_TRY(read_options(options, call));
    WF_TRY(read_spec(o, spec, call));
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
    const weft_overlap *o = run->overlap;
    const struct wf_overlap_call *call = &run->call;
    uint64_t bytes = (uint64_t)call->rows * run->row;
    uint64_t flops = wf_mul_capped(call->flops, (uint64_t)call->rows);

    return (struct wf_overlap_question){
        .costs = weft_context_costs(o->context),
        .kind = is_gather ? WEFT_STEP_ALL_GATHER : WEFT_STEP_REDUCE_SCATTER,
        .between_hosts = o->between_hosts,
        .ranks = o->ranks,
        .rows = run->share,
        .bytes = bytes,
        .compute_ns = call->flops == 0 ? UINT64_MAX
                                       : weft_cost_table_compute_ns(weft_context_costs(o->context),
                                                                    flops, bytes),
        .chunks = wf_max_i64(call->chunks, 0) > 0 ? call->chunks : 0};
}

/* The chunks of a call for which the costs say ANSWER; 0: plain. */
static int32_t chunks_of(const struct wf_overlap_run *run, bool is_gather,
                         const struct wf_overlap_answer *answer)
{
    const weft_overlap *o = run->overlap;
    bool pays = answer->overlapped_ns < answer->plain_ns;

    if (run->call.chunks == WEFT_OVERLAP_PLAIN || o->ranks == 1) return 0;
    if (!is_gather && !o->adds) return 0;
    if (run->call.chunks > 0) return run->call.chunks;
    return o->concurrent && pays ? answer->chunks : 0;
}

weft_status wf_overlap_prepare(weft_overlap *o, const weft_spec *spec,
                               const weft_overlap_call_options *options, struct wf_overlap_run *run)
{
    struct wf_overlap_question question;
    struct wf_overlap_answer answer;
    uint64_t token;

    WF_TRY(wf_fail_named(fill(o, spec, options, run), run->function));
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

weft_status weft_overlap_predict(weft_overlap *overlap, const weft_spec *spec,
                                 const weft_overlap_call_options *options,
                                 weft_overlap_prediction *out)
{
    static const char function[] = "weft_overlap_predict";
    struct wf_overlap_run run = {.function = function};
    struct wf_overlap_answer gather, scatter;
    struct wf_overlap_question question;
    weft_overlap_prediction found;

    WF_TRY(wf_overlap_check(overlap, function));
    WF_TRY(weft_object_check(spec, "weft_spec", function, "spec"));
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_info_check("weft_overlap_prediction", out), function));
    WF_TRY(wf_fail_named(fill(overlap, spec, options, &run), function));
    question = question_of(&run, true);
    gather = wf_overlap_choose(&question);
    question = question_of(&run, false);
    scatter = wf_overlap_choose(&question);
    found = (weft_overlap_prediction){.struct_size = sizeof found,
                                      .gather_chunks = chunks_of(&run, true, &gather),
                                      .reduce_scatter_chunks = chunks_of(&run, false, &scatter),
                                      .compute_ns = question.compute_ns,
                                      .gather_plain_ns = gather.plain_ns,
                                      .gather_overlapped_ns = gather.overlapped_ns,
                                      .reduce_scatter_plain_ns = scatter.plain_ns,
                                      .reduce_scatter_overlapped_ns = scatter.overlapped_ns};
    return wf_fail_named(wf_info_write("weft_overlap_prediction", &found, sizeof found, out),
                         function);
}
