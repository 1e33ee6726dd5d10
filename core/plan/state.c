/* state.c - the meaning of a state: which axes split a dimension, and how large shards are. */
#include "plan.h"

#include <string.h>

bool wf_code_same(struct wf_code a, struct wf_code b)
{
    return a.kind == b.kind && a.value == b.value && a.turn == b.turn;
}

bool wf_state_same(const struct wf_state *a, const struct wf_state *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

uint64_t wf_state_hash(const struct wf_state *state)
{
    uint64_t words[sizeof *state / 8], hash = 0;

    memcpy(words, state, sizeof words);
    for (size_t i = 0; i < WF_COUNT(words); i++)
        hash = wf_hash_mix(hash, words[i]);
    return hash;
}

void wf_state_orders(const struct wf_state *state, int32_t axes, struct wf_orders *out)
{
    memset(out->count, 0, sizeof out->count);
    for (int32_t i = 0; i < axes; i++) {
        struct wf_code code = state->axis[i];
        if (!wf_code_splits(code)) continue;
        out->axis[code.value][code.turn - 1] = (int8_t)i;
        out->count[code.value]++;
    }
}

static bool adds_up(uint32_t reduction)
{
    return reduction == WEFT_REDUCE_SUM || reduction == WEFT_REDUCE_AVG;
}

bool wf_state_takes_partial(const struct wf_problem *problem, const struct wf_state *state,
                            uint32_t reduction)
{
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code code = state->axis[i];
        if (code.kind == WF_CODE_PARTIAL && code.value != reduction &&
            !(adds_up(code.value) && adds_up(reduction)))
            return false;
    }
    return true;
}

bool wf_state_reduces(const struct wf_problem *problem, const struct wf_state *state, uint32_t axes)
{
    uint32_t given = 0, left = 0;
    bool averages = false;

    if (problem->from->layout.dtype >= WEFT_DTYPE_F16) return true;
    for (int32_t i = 0; i < problem->axes; i++) {
        if (problem->source.axis[i].kind != WF_CODE_PARTIAL) continue;
        given |= UINT32_C(1) << i;
        averages |= problem->source.axis[i].value == WEFT_REDUCE_AVG;
        if (state->axis[i].kind == WF_CODE_PARTIAL) left |= UINT32_C(1) << i;
    }
    return !averages || left != given || (axes & given) == 0 || (axes & given) == given;
}

static int64_t chunk_length(int64_t length, int64_t ranks, int64_t at)
{
    int64_t full = length / ranks + (length % ranks != 0);

    return wf_max_i64(0, wf_min_i64(full, length - at * full));
}

int64_t wf_split_length(int64_t length, int64_t ranks, int64_t factor, int64_t at)
{
    int64_t block, blocks;

    if (factor == 1 || length == 0) return chunk_length(length, ranks, at);
    block = length / factor + (length % factor != 0);
    blocks = length / block;
    return blocks * chunk_length(block, ranks, at) +
           chunk_length(length - blocks * block, ranks, at);
}

/* Number of indices, out of LENGTH, that AXIS, which is not split by S, leaves to the coordinate
 * that holds the least, or the most. */
static int64_t split_length(const struct wf_problem *problem, int32_t axis, struct wf_code code,
                            int64_t length, bool least)
{
    const struct wf_split *split = wf_code_split(problem, axis, code);
    int64_t at = least ? problem->size[axis] - 1 : 0;
    int side = code.kind == WF_CODE_STRIDED_TO;

    if (split->kind == WEFT_PLACE_SIZES)
        return least ? problem->least[side][axis] : problem->most[side][axis];
    if (split->kind == WEFT_PLACE_PARTS)
        return wf_split_share(split, length, (int32_t)problem->size[axis], (int32_t)at);
    return wf_split_length(length, problem->size[axis], split->factor, at);
}

void wf_state_shape(const struct wf_problem *problem, const struct wf_state *state, uint32_t last,
                    int64_t *shape)
{
    struct wf_orders orders;

    wf_state_orders(state, problem->axes, &orders);
    for (int32_t d = 0; d < problem->dims; d++) {
        shape[d] = problem->shape[d];
        for (int8_t t = 0; t < orders.count[d]; t++) {
            int32_t axis = orders.axis[d][t];
            bool least = last >> axis & 1;
            if (state->axis[axis].kind == WF_CODE_SHARD)
                shape[d] = wf_split_length(shape[d], problem->size[axis], 1,
                                           least ? problem->size[axis] - 1 : 0);
            else
                shape[d] = split_length(problem, axis, state->axis[axis], shape[d], least);
        }
    }
    for (int32_t i = 0; last != 0 && problem->dims > 0 && i < problem->axes; i++)
        if ((last >> i & 1) && state->axis[i].kind == WF_CODE_OWNER) shape[0] = 0;
}

uint64_t wf_state_elements(const struct wf_problem *problem, const struct wf_state *state)
{
    int64_t shape[WEFT_MAX_DIMS];
    uint64_t elements = 1;

    wf_state_shape(problem, state, 0, shape);
    for (int32_t d = 0; d < problem->dims; d++)
        elements *= (uint64_t)shape[d];
    return elements;
}

uint64_t wf_state_bytes(const struct wf_problem *problem, const struct wf_state *state)
{
    return wf_state_elements(problem, state) * problem->elements[state->cast];
}
