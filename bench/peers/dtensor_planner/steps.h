/* steps.h - steps of one mesh axis, which both planners are made of.
 *
 * The planners try steps in DTensor's own order, because its ties go to what it tried first. */
#ifndef WEFT_BENCH_DTENSOR_STEPS_H
#define WEFT_BENCH_DTENSOR_STEPS_H

#include "plan/plan.h"

/* ---- greedy.c, graph.c ---- */

weft_status dtensor_greedy(const struct wf_problem *problem, struct wf_path *out) WF_NODISCARD;
weft_status dtensor_graph(const struct wf_problem *problem, struct wf_path *out) WF_NODISCARD;

/* ---- steps.c ---- */

/* May AXIS, a shard, become the partial TO in one step?  Yes if it is the innermost split of its
 * dimension and TO is a sum: the other ranks then contribute zeros. */
bool dtensor_may_spread(const struct wf_problem *problem, const struct wf_state *state,
                        int32_t axis, struct wf_code to);
/* Set *AT to the source and begin PATH there.  PATH gets an all-reduce first if averages of
 * integers must be reduced at once. */
void dtensor_begin(const struct wf_problem *problem, struct wf_state *at, struct wf_path *path);
/* Append the step that gives AXIS the code TO to PATH, and apply it to AT.  The turn in TO is
 * ignored: AXIS becomes the innermost split of its dimension. */
weft_status dtensor_step(const struct wf_problem *problem, struct wf_state *at, int32_t axis,
                         struct wf_code to, struct wf_path *path) WF_NODISCARD;
/* STATE with AXIS at TO, as the innermost split of its dimension. */
struct wf_state dtensor_moved(const struct wf_problem *problem, const struct wf_state *state,
                              int32_t axis, struct wf_code to);

#endif
