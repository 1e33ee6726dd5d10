/* order_suite.c - ranks that run bound plans in different orders, or name different roots.
 *
 *     order_suite [--threads N] [--only NAME] [--words 0]
 *
 * Every case has a communicator of its own, on which all ranks make the same two calls in different
 * orders, or one call that differs.  Every rank must get WEFT_ERR_MISMATCH, with both operations
 * in its text, and no rank may wait for its time limit. */
#include "order.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *only;
static int words = 1;        /* check for weft's own words in messages of plugins */
static int takes_any_memory; /* also memory that is not from weft_alloc */

void order_complain(struct rank *self, const char *format, ...)
{
    char text[1400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "not so: rank %d: %s: %s\n", self->number, self->name, text);
    self->failed = 1;
}

int order_good(struct rank *self, const char *what, weft_status status)
{
    if (status != WEFT_OK) order_complain(self, "%s: %s", what, weft_last_error());
    return status == WEFT_OK;
}

/* The same after a call that must succeed on all ranks.  A rank that detects a mismatch in the next
 * call ends pending operations on the other ranks. */
void order_same(struct rank *self, const char *what, weft_status status)
{
    order_good(self, what, status);
    order_good(self, "a barrier of all", weft_barrier(self->world, NULL));
}

/* STATUS must be a mismatch whose text contains all of WANTED, up to NULL. */
void order_differs(struct rank *self, weft_status status, ...)
{
    const char *text = weft_last_error(), *wanted;
    va_list args;

    if (status != WEFT_ERR_MISMATCH) {
        order_complain(self, "%s, not a mismatch: %s", weft_status_name(status),
                       status == WEFT_OK ? "" : text);
        return;
    }
    va_start(args, status);
    while (words && (wanted = va_arg(args, const char *)) != NULL)
        if (strstr(text, wanted) == NULL) order_complain(self, "no \"%s\" in: %s", wanted, text);
    va_end(args);
}

int order_is_last(const struct rank *self)
{
    return self->number == self->size - 1;
}

/* ---- plans ---- */

/* The spec TEXT on MESH; NULL: one axis of all ranks. */
static weft_spec *spec_of(struct rank *self, const char *mesh_text, const char *text)
{
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;
    char ranks[16];

    snprintf(ranks, sizeof ranks, "%d", self->size);
    if (mesh_text == NULL) mesh_text = ranks;
    if (order_good(self, mesh_text, weft_mesh_parse(mesh_text, &mesh)))
        order_good(self, text, weft_spec_parse(mesh, text, &spec));
    weft_mesh_release(&mesh);
    return spec;
}

weft_plan *order_plan_on(struct rank *self, const char *mesh, const char *from_text,
                         const char *to_text)
{
    weft_spec *from = spec_of(self, mesh, from_text), *to = spec_of(self, mesh, to_text);
    weft_plan *plan = NULL;

    order_good(self, "a plan", weft_plan_create(from, to, NULL, &plan));
    weft_spec_release(&from);
    weft_spec_release(&to);
    return plan;
}

weft_plan *order_plan_of(struct rank *self, const char *from_text, const char *to_text)
{
    return order_plan_on(self, NULL, from_text, to_text);
}

/* Two tensors in one plan. */
weft_plan *order_batch_on(struct rank *self, const char *mesh, const char *from_text,
                          const char *to_text)
{
    weft_spec *from = spec_of(self, mesh, from_text), *to = spec_of(self, mesh, to_text);
    const weft_spec *froms[] = {from, from}, *tos[] = {to, to};
    weft_plan *plan = NULL;

    order_good(self, "a plan of a batch", weft_plan_create_batch(2, froms, tos, NULL, &plan));
    weft_spec_release(&from);
    weft_spec_release(&to);
    return plan;
}

weft_bound *order_bind(struct rank *self, weft_plan *plan, int packed)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed != 0};
    weft_bound *bound = NULL;

    order_good(self, "binding", weft_plan_bind(plan, self->comm, &options, &bound));
    return bound;
}

weft_status order_run_bound(struct rank *self, weft_bound *bound, int batch, weft_stream *stream)
{
    const void *sources[] = {self->device[0], self->device[1]};
    void *targets[] = {self->device[2], self->device[3]};

    if (batch) return weft_redistribute_batch(bound, sources, targets, stream, NULL);
    return weft_redistribute(bound, sources[0], targets[0], stream, NULL);
}

/* The name of PLAN in messages.  Tensors of a batch that run separately have their own plans. */
static char *digest_of(const weft_plan *plan, char *text, size_t bytes)
{
    weft_plan_info info = {.struct_size = sizeof info};

    if (weft_plan_get(plan, &info) != WEFT_OK) return strcpy(text, "weft_plan_get failed");
    if (info.tensors > 1 && info.together == 0)
        snprintf(text, bytes, "of plan");
    else
        snprintf(text, bytes, "of plan %016llx", (unsigned long long)info.digest);
    return text;
}

/* All ranks run FIRST, then all but the last run SECOND, and the last runs FIRST again. */
void order_swap(struct rank *self, weft_plan *first, weft_plan *second, int packed, int batch)
{
    weft_bound *a = order_bind(self, first, packed), *b = order_bind(self, second, packed);
    char first_name[40], second_name[40];

    if (a != NULL && b != NULL) {
        order_same(self, "the same order", order_run_bound(self, a, batch, NULL));
        order_same(self, "the same order", order_run_bound(self, b, batch, NULL));
        order_differs(self, order_run_bound(self, order_is_last(self) ? a : b, batch, NULL),
                      "(binding ", digest_of(first, first_name, sizeof first_name),
                      digest_of(second, second_name, sizeof second_name),
                      "must run bound plans in the same order", (char *)NULL);
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&first);
    weft_plan_release(&second);
}

static void swapped_plans_are_found(struct rank *self)
{
    order_swap(self, order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)"),
               order_plan_of(self, "f32[64,64] S(1)", "f32[64,64] S(0)"), 0, 0);
}

static void swapped_packed_plans_are_found(struct rank *self)
{
    order_swap(self, order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)"),
               order_plan_of(self, "f32[64,64] S(1)", "f32[64,64] S(0)"), 1, 0);
}

static void swapped_gathers_are_found(struct rank *self)
{
    order_swap(self, order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] R"),
               order_plan_of(self, "f32[64,64] S(1)", "f32[64,64] R"), 1, 0);
}

static void swapped_reductions_are_found(struct rank *self)
{
    order_swap(self, order_plan_of(self, "i32[64,64] P(sum)", "i32[64,64] R"),
               order_plan_of(self, "i32[4096] P(sum)", "i32[4096] R"), 0, 0);
}

static void swapped_batches_are_found(struct rank *self)
{
    order_swap(self, order_batch_on(self, NULL, "f32[64,64] S(0)", "f32[64,64] S(1)"),
               order_batch_on(self, NULL, "f32[64,64] S(1)", "f32[64,64] S(0)"), 0, 1);
}

static void two_bindings_of_one_plan_differ(struct rank *self, int packed)
{
    weft_plan *plan = order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_bound *a = order_bind(self, plan, packed), *b = order_bind(self, plan, packed);

    if (a != NULL && b != NULL) {
        order_same(self, "the same order", order_run_bound(self, b, 0, NULL));
        order_differs(self, order_run_bound(self, order_is_last(self) ? a : b, 0, NULL),
                      "(binding 1)", "(binding 2)", "must run bound plans in the same order",
                      (char *)NULL);
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&plan);
}

static void one_plan_bound_twice_is_two(struct rank *self)
{
    two_bindings_of_one_plan_differ(self, 0);
}

static void one_plan_bound_twice_is_two_packed(struct rank *self)
{
    two_bindings_of_one_plan_differ(self, 1);
}

/* The same all-reduce, in a plan and as a separate call. */
static void a_plan_is_not_a_plain_call(struct rank *self)
{
    weft_plan *plan = order_plan_of(self, "i32[64,64] P(sum)", "i32[64,64] R");
    weft_bound *bound = order_bind(self, plan, 0);
    weft_status status;

    if (bound != NULL) {
        order_same(self, "a plan", order_run_bound(self, bound, 0, NULL));
        order_same(self, "a call",
                   weft_all_reduce(self->comm, self->device[0], self->device[2], SIDE * SIDE,
                                   WEFT_DTYPE_I32, WEFT_REDUCE_SUM, NULL));
        status = order_is_last(self)
                     ? weft_all_reduce(self->comm, self->device[0], self->device[2], SIDE * SIDE,
                                       WEFT_DTYPE_I32, WEFT_REDUCE_SUM, NULL)
                     : order_run_bound(self, bound, 0, NULL);
        order_differs(self, status, "runs step 1 of plan", "calls all_reduce(i32, count 4096, sum)",
                      (char *)NULL);
    }
    weft_bound_release(&bound);
    weft_plan_release(&plan);
}

/* Another rank differs, and the work is on a stream. */
static void a_stream_says_it_too(struct rank *self)
{
    weft_plan *plan = order_plan_of(self, "f32[64,64] S(0)", "f32[64,64] S(1)");
    weft_bound *a = order_bind(self, plan, 0), *b = order_bind(self, plan, 0);
    weft_status status;

    if (a != NULL && b != NULL) {
        status = order_run_bound(self, self->number == 0 ? a : b, 0, self->stream);
        if (status == WEFT_OK)
            status = weft_context_wait(self->context, self->stream, WEFT_FOREVER);
        order_differs(self, status, "(binding 1)", "(binding 2)", (char *)NULL);
    }
    weft_bound_release(&a);
    weft_bound_release(&b);
    weft_plan_release(&plan);
}

/* ---- roots ---- */

/* The rooted collective of this NUMBER with ROOT, of COUNT elements. */
static weft_status rooted(struct rank *self, int number, uint64_t count, int32_t root, int hidden)
{
    void *send = hidden ? self->private[0] : self->device[0];
    void *recv = hidden ? self->private[1] : self->device[2];

    if (number == 0)
        return weft_broadcast(self->comm, send, recv, count, WEFT_DTYPE_F32, root, NULL);
    if (number == 1)
        return weft_reduce(self->comm, send, recv, count, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, root,
                           NULL);
    count = count > (uint64_t)self->size ? count / (uint64_t)self->size : 1;
    if (number == 2) return weft_gather(self->comm, send, recv, count, WEFT_DTYPE_F32, root, NULL);
    return weft_scatter(self->comm, send, recv, count, WEFT_DTYPE_F32, root, NULL);
}

/* Roots by rank: all differ, the last rank's differs, or the two halves differ. */
static int32_t root_of(const struct rank *self, int way)
{
    if (way == 0) return self->number;
    if (way == 1) return order_is_last(self);
    return self->number < self->size / 2 ? 0 : self->size - 1;
}

static void renew(struct rank *self);

static void different_roots_are_found(struct rank *self, int number)
{
    static const char *const names[] = {"broadcast(", "reduce(", "gather(", "scatter("};
    static const uint64_t counts[] = {1, 512, 2048, 200000};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int hidden = 0; hidden < 1 + takes_any_memory; hidden++)
            for (int way = 0; way < 3; way++) {
                order_same(self, "one root", rooted(self, number, counts[i], 0, hidden));
                order_differs(self, rooted(self, number, counts[i], root_of(self, way), hidden),
                              names[number], ", root ", (char *)NULL);
                renew(self);
            }
}

static void roots_of_broadcasts_differ(struct rank *self)
{
    different_roots_are_found(self, 0);
}

static void roots_of_reductions_differ(struct rank *self)
{
    different_roots_are_found(self, 1);
}

static void roots_of_gathers_differ(struct rank *self)
{
    different_roots_are_found(self, 2);
}

static void roots_of_scatters_differ(struct rank *self)
{
    different_roots_are_found(self, 3);
}

/* ---- divisors ---- */

static void divisors_of_averages_differ(struct rank *self)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_I64, WEFT_DTYPE_F32};
    static const uint64_t counts[] = {1, 20000};

    for (size_t i = 0; i < 4; i++) {
        weft_collective_args args = {.struct_size = sizeof args,
                                     .collective = WEFT_COLL_ALL_REDUCE,
                                     .dtype = dtypes[i / 2],
                                     .reduction = WEFT_REDUCE_AVG,
                                     .root = -1,
                                     .send = self->device[0],
                                     .recv = self->device[2],
                                     .count = counts[i % 2],
                                     .divisor = 7};

        order_same(self, "one divisor", weft_collective(self->comm, &args));
        if (order_is_last(self)) args.divisor = 5;
        order_differs(self, weft_collective(self->comm, &args), "divisor 7", "divisor 5",
                      (char *)NULL);
        renew(self);
    }
}

/* ---- the suite ---- */

static const struct order_case cases[] = {
    {"swapped_plans_are_found", swapped_plans_are_found, 2},
    {"swapped_packed_plans_are_found", swapped_packed_plans_are_found, 2},
    {"swapped_gathers_are_found", swapped_gathers_are_found, 2},
    {"swapped_reductions_are_found", swapped_reductions_are_found, 2},
    {"swapped_batches_are_found", swapped_batches_are_found, 2},
    {"one_plan_bound_twice_is_two", one_plan_bound_twice_is_two, 2},
    {"one_plan_bound_twice_is_two_packed", one_plan_bound_twice_is_two_packed, 2},
    {"a_plan_is_not_a_plain_call", a_plan_is_not_a_plain_call, 2},
    {"a_stream_says_it_too", a_stream_says_it_too, 2},
    {"plans_on_other_groups_are_found", order_plans_on_other_groups_are_found, 2},
    {"packed_plans_on_other_groups_are_found", order_packed_plans_on_other_groups_are_found, 2},
    {"batches_on_other_groups_are_found", order_batches_on_other_groups_are_found, 2},
    {"plans_of_two_axes_are_found", order_plans_of_two_axes_are_found, 4},
    {"plans_of_two_axes_are_found_by_some", order_plans_of_two_axes_are_found_by_some, 4},
    {"a_failed_step_ends_the_plan_everywhere", order_a_failed_step_ends_the_plan_everywhere, 4},
    {"streams_with_other_groups_are_found", order_streams_with_other_groups_are_found, 2},
    {"earlier_runs_on_streams_are_found", order_earlier_runs_on_streams_are_found, 2},
    {"calls_and_runs_on_streams_are_found", order_calls_and_runs_on_streams_are_found, 2},
    {"circles_of_ranks_are_found", order_circles_of_ranks_are_found, 3},
    {"a_call_beside_a_group_is_found", order_a_call_beside_a_group_is_found, 2},
    {"late_ranks_are_not_wrong", order_late_ranks_are_not_wrong, 2},
    {"a_binding_beside_a_run_is_found", order_a_binding_beside_a_run_is_found, 2},
    {"a_rank_without_a_part_may_bind", order_a_rank_without_a_part_may_bind, 3},
    {"roots_of_broadcasts_differ", roots_of_broadcasts_differ, 2},
    {"roots_of_reductions_differ", roots_of_reductions_differ, 2},
    {"roots_of_gathers_differ", roots_of_gathers_differ, 2},
    {"roots_of_scatters_differ", roots_of_scatters_differ, 2},
    {"divisors_of_averages_differ", divisors_of_averages_differ, 2},
};

/* A new communicator, once all ranks have left the failed one. */
static void renew(struct rank *self)
{
    order_good(self, "a barrier of all", weft_barrier(self->world, NULL));
    weft_comm_release(&self->comm);
    order_good(self, "a communicator",
               weft_comm_split(self->world, 0, self->number, NULL, &self->comm));
}

static weft_status allocate(struct rank *self)
{
    weft_status status = WEFT_OK;

    for (int i = 0; i < 4 && status == WEFT_OK; i++)
        status = weft_alloc(self->context, BYTES, WEFT_MEMORY_DEVICE, &self->device[i]);
    for (int i = 0; i < 2; i++)
        self->private[i] = calloc(1, BYTES);
    if (status == WEFT_OK) status = weft_stream_create(self->context, &self->stream);
    return status;
}

static weft_status run_rank(void *argument)
{
    struct rank self = {.name = "making things"};
    weft_status status = weft_init(NULL, &self.context);

    (void)argument;
    if (status != WEFT_OK) return status;
    self.world = weft_world(self.context);
    self.number = weft_rank(self.context);
    self.size = weft_size(self.context);
    order_good(&self, "memory", allocate(&self));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (self.size < cases[i].least || (only != NULL && strstr(cases[i].name, only) == NULL))
            continue;
        self.name = cases[i].name;
        renew(&self);
        if (self.comm != NULL) cases[i].run(&self);
    }
    order_good(&self, "a barrier of all", weft_barrier(self.world, NULL));
    weft_comm_release(&self.comm);
    weft_stream_release(&self.stream);
    for (int i = 0; i < 4; i++)
        order_good(&self, "freeing", weft_free(self.context, self.device[i]));
    for (int i = 0; i < 2; i++)
        free(self.private[i]);
    weft_context_release(&self.context);
    if (!self.failed) printf("rank %d: all found\n", self.number);
    return self.failed ? WEFT_ERR_INTERNAL : WEFT_OK;
}

int main(int argc, char **argv)
{
    int32_t threads = 0;
    weft_status status;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0) threads = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--words") == 0) words = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    }
    takes_any_memory =
        getenv("WEFT_BACKEND") != NULL && strcmp(getenv("WEFT_BACKEND"), "gloo-cpu") == 0;
    status = threads > 0 ? weft_threads_run(threads, run_rank, NULL) : run_rank(NULL);
    if (status != WEFT_OK) fprintf(stderr, "not so: %s\n", weft_last_error());
    return status == WEFT_OK ? 0 : 1;
}
