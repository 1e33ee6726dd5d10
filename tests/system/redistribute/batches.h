/* batches.h - random batches of tensors to redistribute as one plan. */
#ifndef WEFT_TESTS_BATCHES_H
#define WEFT_TESTS_BATCHES_H

#include "system/redistribute/pairs.h"

enum { MAX_TENSORS = 12 };

struct batch {
    uint32_t count;
    struct pair pairs[MAX_TENSORS]; /* the options of the first are those of the batch */
    const weft_spec *from[MAX_TENSORS], *to[MAX_TENSORS];
};

static inline struct batch random_batch(struct random *r, int32_t world)
{
    struct batch batch = {.count = (uint32_t)random_in(r, 1, MAX_TENSORS)};

    for (uint32_t i = 0; i < batch.count; i++) {
        batch.pairs[i] = random_pair(r, world);
        batch.from[i] = batch.pairs[i].from;
        batch.to[i] = batch.pairs[i].to;
    }
    batch.pairs[0].options.planner = WEFT_PLANNER_SEARCH;
    batch.pairs[0].options.without = 0;
    return batch;
}

static inline void batch_release(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        pair_release(&batch->pairs[i]);
}

/* Tensor I with the options of the batch. */
static inline struct pair batch_pair(const struct batch *batch, uint32_t i)
{
    struct pair pair = batch->pairs[i];

    pair.options = batch->pairs[0].options;
    pair.costs = batch->pairs[0].costs;
    return pair;
}

/* True if a tensor of the batch may be refused. */
static inline bool batch_may_be_refused(const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct pair pair = batch_pair(batch, i);
        if (pair_may_be_refused(&pair)) return true;
    }
    return false;
}

static inline weft_status batch_plan(const struct batch *batch, weft_plan **out)
{
    return weft_plan_create_batch(batch->count, batch->from, batch->to, &batch->pairs[0].options,
                                  out);
}

/* Print one command line per tensor. */
static inline void batch_print(const struct batch *batch, const char *command)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct pair pair = batch_pair(batch, i);
        printf("tensor %u:\n%s\n", i, pair_command(&pair, command));
    }
}

#endif
