/* dtensor.h - the steps that PyTorch's DTensor takes, for study and for comparison.
 *
 * Both planners move one mesh axis at a time.  They are reproduced from their description, in
 * DTensor's own order of trying things, because its ties go to what it tried first. */
#ifndef WEFT_PLAN_DTENSOR_H
#define WEFT_PLAN_DTENSOR_H

#include "plan.h"

/* ---- dtensor_greedy.c ---- */

weft_status wf_dtensor_greedy(const struct wf_problem *problem, struct wf_path *out) WF_NODISCARD;

/* ---- dtensor_graph.c ---- */

weft_status wf_dtensor_graph(const struct wf_problem *problem, struct wf_path *out) WF_NODISCARD;

/* ---- dtensor.c: what both share ---- */

/* The kind of step that takes one axis from one code to another. */
uint32_t wf_dtensor_kind(struct wf_code from, struct wf_code to);
/* May AXIS, a shard, become the partial TO at once: is it the innermost of its dimension, and TO a
 * sum, to which it adds nothing where it is not? */
bool wf_dtensor_spreads(const struct wf_problem *problem, const struct wf_state *state,
                        int32_t axis, struct wf_code to);
/* Begin PATH at the source, *AT.  Averages of integers along several axes, or beside sums, are
 * reduced in one all-reduce first: one axis after the other, as DTensor goes, would round or wrap
 * in between. */
void wf_dtensor_begin(const struct wf_problem *problem, struct wf_state *at, struct wf_path *path);
/* Append the step that gives AXIS the code TO (its turn is of no matter: it becomes the innermost)
 * to PATH, and apply it to AT. */
weft_status wf_dtensor_step(const struct wf_problem *problem, struct wf_state *at, int32_t axis,
                            struct wf_code to, struct wf_path *path) WF_NODISCARD;
/* STATE with AXIS at TO, as the innermost split of its dimension. */
struct wf_state wf_dtensor_moved(const struct wf_problem *problem, const struct wf_state *state,
                                 int32_t axis, struct wf_code to);

#endif
