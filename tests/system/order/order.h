/* order.h - declarations that the files of order_suite share. */
#ifndef ORDER_H
#define ORDER_H

#include "weft/exec.h"
#include "weft/weft.h"

enum { SIDE = 64, BYTES = 2 << 20 };

struct rank {
    weft_context *context;
    weft_comm *world, *comm; /* COMM: of the current case */
    weft_stream *stream;
    int32_t number, size;
    void *device[4], *private[2]; /* BYTES each */
    const char *name;             /* of the current case */
    int failed;
};

struct order_case {
    const char *name;
    void (*run)(struct rank *self);
    int32_t least; /* minimum number of ranks */
};

/* ---- order_suite.c ---- */

void order_complain(struct rank *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int order_good(struct rank *self, const char *what, weft_status status);
void order_same(struct rank *self, const char *what, weft_status status);
/* STATUS must be a mismatch whose text contains all of the following words, up to NULL. */
void order_differs(struct rank *self, weft_status status, ...);
int order_is_last(const struct rank *self);
/* Plans on MESH; NULL: one axis of all ranks.  A batch has two tensors. */
weft_plan *order_plan_on(struct rank *self, const char *mesh, const char *from_text,
                         const char *to_text);
weft_plan *order_plan_of(struct rank *self, const char *from_text, const char *to_text);
weft_plan *order_batch_on(struct rank *self, const char *mesh, const char *from_text,
                          const char *to_text);
weft_bound *order_bind(struct rank *self, weft_plan *plan, int packed);
weft_status order_run_bound(struct rank *self, weft_bound *bound, int batch, weft_stream *stream);
/* All ranks run FIRST and SECOND, then all but the last run SECOND, and the last runs FIRST. */
void order_swap(struct rank *self, weft_plan *first, weft_plan *second, int packed, int batch);

/* ---- order_groups.c ---- */

void order_plans_on_other_groups_are_found(struct rank *self);
void order_packed_plans_on_other_groups_are_found(struct rank *self);
void order_batches_on_other_groups_are_found(struct rank *self);
void order_plans_of_two_axes_are_found(struct rank *self);
void order_plans_of_two_axes_are_found_by_some(struct rank *self);
void order_a_failed_step_ends_the_plan_everywhere(struct rank *self);
void order_streams_with_other_groups_are_found(struct rank *self);
void order_earlier_runs_on_streams_are_found(struct rank *self);
void order_calls_and_runs_on_streams_are_found(struct rank *self);
void order_circles_of_ranks_are_found(struct rank *self);
void order_a_call_beside_a_group_is_found(struct rank *self);
void order_late_ranks_are_not_wrong(struct rank *self);
void order_a_binding_beside_a_run_is_found(struct rank *self);
void order_a_rank_without_a_part_may_bind(struct rank *self);

#endif
