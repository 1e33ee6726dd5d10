/* order_groups.c - the cases of order_suite.c in which plans run on different groups of ranks, so
 * no call is matched with a call of another plan. */
#include "order.h"

#include <time.h>

/* The ranks in reverse order, whose groups are different communicators. */
static const char *opposite(const struct rank *self)
{
    static const char *const meshes[] = {"2@1,0", "3@2,1,0", "4@3,2,1,0"};

    return meshes[self->size - 2];
}

void order_plans_on_other_groups_are_found(struct rank *self)
{
    order_swap(self, order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)"),
               order_plan_on(self, opposite(self), "f32[64,64] S(0)", "f32[64,64] S(1)"), 0, 0);
}

void order_packed_plans_on_other_groups_are_found(struct rank *self)
{
    order_swap(self, order_plan_on(self, opposite(self), "f32[64,64] S(0)", "f32[64,64] S(1)"),
               order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)"), 1, 0);
}

void order_batches_on_other_groups_are_found(struct rank *self)
{
    order_swap(self, order_batch_on(self, NULL, "f32[64,64] S(0)", "f32[64,64] S(1)"),
               order_batch_on(self, opposite(self), "f32[64,64] S(0)", "f32[64,64] S(1)"), 0, 1);
}

/* Ranks whose groups are complete may succeed.  Then their next call returns the error. */
static void must_differ(struct rank *self, weft_status status)
{
    if (status == WEFT_OK) status = weft_barrier(self->comm, NULL);
    order_differs(self, status, "(binding 1)", "(binding 2)",
                  "must run bound plans in the same order", (char *)NULL);
}

/* ODD: one bit per rank that runs the other axis's plan. */
static void swap_axes(struct rank *self, int odd)
{
    weft_plan *first = order_plan_on(self, "2x2", "f32[64,64] S(0),R", "f32[64,64] S(1),R");
    weft_plan *second = order_plan_on(self, "2x2", "f32[64,64] R,S(0)", "f32[64,64] R,S(1)");
    weft_bound *a = order_bind(self, first, 0), *b = order_bind(self, second, 0);

    if (a != NULL && b != NULL) {
        order_same(self, "the same order", order_run_bound(self, a, 0, NULL));
        must_differ(self, order_run_bound(self, odd >> self->number & 1 ? a : b, 0, NULL));
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&first);
    weft_plan_release(&second);
}

/* All four ranks wait for each other. */
void order_plans_of_two_axes_are_found(struct rank *self)
{
    swap_axes(self, 1 << 0 | 1 << 3);
}

/* Ranks 0 and 1 do not wait. */
void order_plans_of_two_axes_are_found_by_some(struct rank *self)
{
    swap_axes(self, 1 << 3);
}

/* A plan whose first step is in the groups of ranks 0, 1 and 2, 3, its second in those of 0, 2 and
 * 1, 3. */
static weft_plan *two_steps(struct rank *self)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = 1u << WEFT_STEP_EXCHANGE};
    weft_plan_info info = {.struct_size = sizeof info};
    weft_spec *from = NULL, *to = NULL;
    weft_mesh *mesh = NULL;
    weft_plan *plan = NULL;

    order_good(self, "a mesh", weft_mesh_parse("2x2", &mesh));
    order_good(self, "a source", weft_spec_parse(mesh, "i32[64,64] S(0),P(sum)", &from));
    order_good(self, "a target", weft_spec_parse(mesh, "i32[64,64] R,R", &to));
    order_good(self, "a plan", weft_plan_create(from, to, &options, &plan));
    order_good(self, "its steps", weft_plan_get(plan, &info));
    if (info.steps != 2) order_complain(self, "the plan has %zu steps, not 2", info.steps);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
    return plan;
}

/* Ranks 2 and 3 fail in the first step, and ranks 0 and 1 wait for them in the second. */
void order_a_failed_step_ends_the_plan_everywhere(struct rank *self)
{
    weft_plan *plan = two_steps(self);
    weft_bound *a = order_bind(self, plan, 0), *b = order_bind(self, plan, 0);

    if (a != NULL && b != NULL) {
        order_same(self, "the same order", order_run_bound(self, b, 0, NULL));
        must_differ(self, order_run_bound(self, order_is_last(self) ? a : b, 0, NULL));
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&plan);
}

/* Post ORDER to the stream: plan 'a', plan 'b' on other groups, and '+', a collective.  The last
 * rank posts LAST instead.  No rank waits in between.  OTHER is in the text. */
static void swap_on_stream(struct rank *self, const char *order, const char *last,
                           const char *other)
{
    weft_plan *first = order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_plan *second = order_plan_on(self, opposite(self), "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_bound *a = order_bind(self, first, 0), *b = order_bind(self, second, 0);
    weft_status status = WEFT_OK;

    if (order_is_last(self)) order = last;
    for (; a != NULL && b != NULL && *order != '\0' && status == WEFT_OK; order++)
        status = *order == '+' ? weft_barrier(self->comm, self->stream)
                               : order_run_bound(self, *order == 'a' ? a : b, 0, self->stream);
    if (status == WEFT_OK) status = weft_context_wait(self->context, self->stream, WEFT_FOREVER);
    order_differs(self, status, "(binding 2)", other, (char *)NULL);
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&first);
    weft_plan_release(&second);
}

void order_streams_with_other_groups_are_found(struct rank *self)
{
    swap_on_stream(self, "ba", "ab", "(binding 1)");
}

/* The last runs are in the same order. */
void order_earlier_runs_on_streams_are_found(struct rank *self)
{
    swap_on_stream(self, "abab", "baab", "(binding 1)");
}

void order_calls_and_runs_on_streams_are_found(struct rank *self)
{
    swap_on_stream(self, "b+", "+b", " collective ");
}

/* Each two of ranks 0, 1 and 2 share one plan. */
void order_circles_of_ranks_are_found(struct rank *self)
{
    static const char *const meshes[] = {"2@0,1", "2@1,2", "2@2,0"};
    weft_plan *plans[3];
    weft_bound *bound[3];

    for (int i = 0; i < 3; i++) {
        plans[i] = order_plan_on(self, meshes[i], "f32[64,64] S(0)", "f32[64,64] S(1)");
        bound[i] = order_bind(self, plans[i], 0);
    }
    order_differs(self,
                  self->number < 3 && bound[self->number] != NULL
                      ? order_run_bound(self, bound[self->number], 0, NULL)
                      : weft_barrier(self->comm, NULL),
                  "before binding ", "must run bound plans in the same order", (char *)NULL);
    for (int i = 0; i < 3; i++) {
        weft_bound_release(&bound[i]);
        weft_plan_release(&plans[i]);
    }
}

void order_a_call_beside_a_group_is_found(struct rank *self)
{
    weft_plan *plan = order_plan_on(self, opposite(self), "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_bound *bound = order_bind(self, plan, 0);

    if (bound != NULL) {
        order_same(self, "a plan", order_run_bound(self, bound, 0, NULL));
        order_same(self, "a call", weft_barrier(self->comm, NULL));
        order_differs(self,
                      order_is_last(self) ? weft_barrier(self->comm, NULL)
                                          : order_run_bound(self, bound, 0, NULL),
                      "of plan ", "(binding 1)", " collective ", (char *)NULL);
    }
    weft_bound_release(&bound);
    weft_plan_release(&plan);
}

/* The right order, with a rank so late that the others compare their orders. */
void order_late_ranks_are_not_wrong(struct rank *self)
{
    weft_plan *first = order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_plan *second = order_plan_on(self, "2@1,0", "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_bound *a = order_bind(self, first, 0), *b = order_bind(self, second, 0);

    for (int i = 0; a != NULL && b != NULL && i < 2; i++) {
        if (self->number == i)
            nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 600000000}, NULL);
        /* A rank in neither mesh need not run the plan. */
        if (self->number < 2) order_good(self, "two ranks", order_run_bound(self, b, 0, NULL));
        order_good(self, "all ranks", order_run_bound(self, a, 0, NULL));
        order_same(self, "a call", weft_barrier(self->comm, NULL));
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&first);
    weft_plan_release(&second);
}

/* The last rank binds a plan while the others run one. */
void order_a_binding_beside_a_run_is_found(struct rank *self)
{
    weft_plan *first = order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_plan *second = order_plan_of(self, "f32[64,64] S(1)", "f32[64,64] S(0)");
    weft_bound *a = order_bind(self, first, 0), *b = NULL;
    weft_status status;

    if (a != NULL) {
        order_same(self, "the same order", order_run_bound(self, a, 0, NULL));
        status = order_is_last(self) ? weft_plan_bind(second, self->comm, NULL, &b)
                                     : order_run_bound(self, a, 0, self->stream);
        if (status == WEFT_OK)
            status = weft_context_wait(self->context, self->stream, WEFT_FOREVER);
        order_differs(self, status, "runs step 1 of plan", "(binding 1)", "f32[64,64] S(0) -> ",
                      " is at weft_plan_bind on ", "(comparing plans): f32[64,64] S(1) -> ",
                      "must bind and run plans in the same order", (char *)NULL);
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&first);
    weft_plan_release(&second);
}

/* The right order: a rank without a part in the first plan binds the second, and rank 1 is so late
 * that rank 0 asks. */
void order_a_rank_without_a_part_may_bind(struct rank *self)
{
    weft_plan *first = order_plan_on(self, "2@1,0", "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_plan *second = order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_bound *a = order_bind(self, first, 0), *b = NULL;

    if (a != NULL) {
        if (self->number == 1)
            nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 600000000}, NULL);
        if (self->number < 2) order_good(self, "two ranks", order_run_bound(self, a, 0, NULL));
        b = order_bind(self, second, 0);
        if (b != NULL) order_same(self, "all ranks", order_run_bound(self, b, 0, NULL));
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&first);
    weft_plan_release(&second);
}
