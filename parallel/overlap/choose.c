/* choose.c - the number of chunks, from costs.
 *
 * A rank has (ranks - 1) x chunks pieces.  Each takes G to travel and C to compute, one after the
 * other on their own side, and the rows of the rank itself are computed without travelling.  So the
 * whole takes as long as the longer side, and one piece more of the other one. */
#include "overlap.h"

static uint64_t step_ns(const struct wf_overlap_question *q, weft_cost_step step)
{
    uint64_t ns = 0;

    step.struct_size = sizeof step;
    step.between_hosts = q->between_hosts;
    return weft_cost_table_step_ns(q->costs, &step, &ns) == WEFT_OK ? ns : UINT64_MAX;
}

/* The time of adding up BYTES bytes. */
static uint64_t adding_ns(const struct wf_overlap_question *q, uint64_t bytes)
{
    weft_cost_step step = {.kind = WEFT_STEP_SLICE, .ranks = 1};
    uint64_t without = step_ns(q, step);

    step.reduced = bytes;
    return step_ns(q, step) - without;
}

/* The time of all rows with CHUNKS chunks. */
static uint64_t overlapped(const struct wf_overlap_question *q, int32_t chunks)
{
    uint64_t ranks = (uint64_t)q->ranks, pieces = (ranks - 1) * (uint64_t)chunks;
    uint64_t own = q->compute_ns / ranks, compute = own / (uint64_t)chunks;
    uint64_t travel = step_ns(q, (weft_cost_step){.kind = WEFT_STEP_PERMUTE,
                                                  .ranks = 2,
                                                  .received = q->bytes / ranks / (uint64_t)chunks});
    uint64_t by_travel = wf_add_capped(wf_mul_capped(pieces, travel), compute);
    uint64_t by_compute = wf_add_capped(wf_mul_capped(pieces, compute), wf_add_capped(own, travel));
    uint64_t longer = by_travel > by_compute ? by_travel : by_compute;

    if (q->kind == WEFT_STEP_REDUCE_SCATTER) longer = wf_add_capped(longer, adding_ns(q, q->bytes));
    return longer;
}

struct wf_overlap_answer wf_overlap_choose(const struct wf_overlap_question *q)
{
    weft_cost_step plain = {
        .kind = q->kind, .ranks = q->ranks, .received = q->bytes - q->bytes / (uint64_t)q->ranks};
    struct wf_overlap_answer answer = {1, UINT64_MAX, UINT64_MAX};

    if (q->compute_ns == UINT64_MAX) {
        answer.chunks = q->chunks > 0 ? q->chunks : 1;
        return answer;
    }
    answer.plain_ns = wf_add_capped(step_ns(q, plain), q->compute_ns);
    for (int32_t chunks = 1; chunks <= WEFT_OVERLAP_MAX_CHUNKS; chunks *= 2) {
        uint64_t ns = overlapped(q, chunks);

        if (chunks > 1 && chunks > q->rows) break;
        if (ns >= answer.overlapped_ns) continue;
        answer.overlapped_ns = ns;
        answer.chunks = chunks;
    }
    if (q->chunks > 0) {
        answer.chunks = q->chunks;
        answer.overlapped_ns = overlapped(q, q->chunks);
    }
    return answer;
}
