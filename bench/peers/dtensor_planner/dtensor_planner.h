/* dtensor_planner.h - the steps that PyTorch's DTensor takes, as plans of weft.
 *
 * For tests and benchmarks, which compare weft's planner with DTensor's two and run their plans.
 * Both planners are reproduced from their description and take the steps that PyTorch 2.11 took for
 * all pairs of tests/data/plans.txt.  Two differences keep the data right.  Where a step of DTensor
 * would lose elements (an outer split leaves before an inner one, or a shard becomes an average),
 * the axis is gathered first.  Averages of integers along several axes, or beside sums, are
 * reduced in one all-reduce first, because one axis at a time would round or wrap in between. */
#ifndef WEFT_BENCH_DTENSOR_PLANNER_H
#define WEFT_BENCH_DTENSOR_PLANNER_H

#include "weft/plan.h"

/* Values of weft_plan_options.planner for dtensor_plan_create, besides those of weft_planner. */
enum dtensor_planner {
    DTENSOR_GREEDY = 0x100, /* DTensor's default */
    DTENSOR_GRAPH = 0x101   /* its graph search */
};

/* "search", "exchange", "dtensor-greedy" or "dtensor-graph". */
const char *dtensor_planner_name(uint32_t planner);

/* As weft_plan_create, for all four planners.  OPTIONS is not NULL.  DTensor's planners ignore
 * minimize, memory_limit and without; costs only price their steps.
 * WEFT_ERR_UNSUPPORTED: FROM and TO have two meshes, or the planner finds no plan. */
WEFT_NODISCARD weft_status dtensor_plan_create(const weft_spec *from, const weft_spec *to,
                                               const weft_plan_options *options, weft_plan **out);

#endif
