/* A step that casts, as two, and which backends need that. */
#include "support/lone_rank.h"
#include "support/suite.h"

static weft_status cast_status; /* of the backend's entries */

static weft_status cast_pull(void *comm, const weft_pull_args *args, uint32_t to)
{
    (void)comm, (void)args, (void)to;
    return cast_status;
}

static weft_status cast_regions(void *list, uint32_t from, uint32_t to, const void *const *sources,
                                void *const *targets, void *stream)
{
    (void)list, (void)from, (void)to, (void)sources, (void)targets, (void)stream;
    return cast_status;
}

TEST(a_narrowing_step_casts_first_and_a_widening_one_last)
{
    struct wf_step narrow = {.kind = WEFT_STEP_ALL_TO_ALL,
                             .axes = 1,
                             .from = spec_of("2", "f32[8,8] S(0)"),
                             .to = spec_of("2", "bf16[8,8] S(1)")};
    struct wf_step wide = {.kind = WEFT_STEP_ALL_TO_ALL,
                           .axes = 1,
                           .from = spec_of("2", "bf16[8,8] S(0)"),
                           .to = spec_of("2", "f32[8,8] S(1)")};
    struct wf_cast_steps two;

    ck_assert_int_eq(wf_cast_split(&narrow, &two), WEFT_OK);
    ck_assert(wf_step_only_casts(&two.steps[0]) && !wf_step_only_casts(&two.steps[1]));
    ck_assert_ptr_eq(two.steps[0].from, narrow.from);
    ck_assert_ptr_eq(two.steps[0].to, wide.from);
    ck_assert_ptr_eq(two.steps[1].from, wide.from);
    ck_assert_ptr_eq(two.steps[1].to, narrow.to);
    ck_assert_uint_eq(two.steps[1].kind, WEFT_STEP_ALL_TO_ALL);
    wf_cast_clear(&two);
    ck_assert_int_eq(wf_cast_split(&wide, &two), WEFT_OK);
    ck_assert(!wf_step_only_casts(&two.steps[0]) && wf_step_only_casts(&two.steps[1]));
    ck_assert_ptr_eq(two.between, narrow.to);
    wf_cast_clear(&two);
    weft_spec_release(&narrow.from);
    weft_spec_release(&narrow.to);
    weft_spec_release(&wide.from);
    weft_spec_release(&wide.to);
}

/* The identity of P(min) in f8e4m3 is 448, in bf16 it is infinity. */
TEST(a_cast_after_an_exchange_stores_the_identities_of_its_partials)
{
    struct wf_step exchange = {.kind = WEFT_STEP_EXCHANGE,
                               .axes = 3,
                               .from = spec_of("2x2", "f8e4m3[8] R,S(0)"),
                               .to = spec_of("2x2", "bf16[8] S(0),P(min)")};
    struct wf_cast_steps two;
    struct wf_share share;

    ck_assert_uint_eq(wf_step_created_partials(&exchange), 2);
    ck_assert_int_eq(wf_cast_split(&exchange, &two), WEFT_OK);
    ck_assert_uint_eq(two.steps[0].created, 0);
    ck_assert_uint_eq(two.steps[1].created, 2);
    ck_assert(wf_step_only_casts(&two.steps[1]) && wf_step_needs_dense_output(&two.steps[1]));
    for (int32_t rank = 0; rank < 4; rank++) {
        ck_assert_int_eq(wf_share_of(&two.steps[1], rank, NULL, NULL, &share), WEFT_OK);
        ck_assert_int_eq(share.filled, rank % 2);
        ck_assert_uint_eq(share.parts.region_count, rank % 2 == 0);
        ck_assert_uint_eq(share.fill, WEFT_REDUCE_MIN);
        wf_share_free(&share);
    }
    wf_cast_clear(&two);
    weft_spec_release(&exchange.from);
    weft_spec_release(&exchange.to);
}

/* Which step of the plan from FROM to TO is split, counted from 0; -1: none. */
static int split_of(struct lone_rank *lone, bool packed, const char *from, const char *to)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = UINT32_C(1) << WEFT_STEP_EXCHANGE};
    weft_spec *source = spec_of("4", from), *target = spec_of("4", to);
    struct wf_bound_steps steps;
    weft_plan *plan = NULL;
    uint32_t number, casts;
    int split;

    ck_assert_int_eq(weft_plan_create(source, target, &options, &plan), WEFT_OK);
    ck_assert_int_eq(wf_casts_find(plan, &lone->comm, &casts), WEFT_OK);
    ck_assert_int_eq(wf_bound_steps_set(plan, &lone->comm, packed, casts, &steps), WEFT_OK);
    ck_assert_uint_eq(steps.count, plan->step_count + steps.is_split);
    for (uint32_t i = 0; i < steps.count; i++) { /* one goes on where the one before ends */
        const struct wf_step *step = wf_bound_step(plan, &steps, i, &number);
        ck_assert_ptr_eq(step->from, source);
        ck_assert_uint_eq(number, i + 1 - (steps.is_split && i > steps.split));
        weft_spec_release(&source);
        source = weft_spec_retain(step->to);
    }
    ck_assert_ptr_eq(source, target);
    split = steps.is_split ? (int)steps.split : -1;
    wf_bound_steps_clear(&steps);
    weft_plan_release(&plan);
    weft_spec_release(&source);
    weft_spec_release(&target);
    return split;
}

TEST(a_backend_without_the_entries_gets_two_steps)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    for (int packed = 0; packed < 2; packed++) {
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] S(0)", "bf16[8,8] S(1)"), 0);
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] R", "bf16[8,8] S(0)"), 0);
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] R", "bf16[8,8] R"), -1);
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] S(0)", "f32[8,8] S(1)"), -1);
    }
    lone_end(&lone);
}

static weft_kernel_table casting_kernel;
static weft_comm_table casting_comm;
static weft_plugin casting_plugin;

/* Give LONE a backend with all entries, which return STATUS.  Returns its plugin. */
static const weft_plugin *give_entries(struct lone_rank *lone, weft_status status)
{
    const weft_plugin *before = lone->context->plugin;

    cast_status = status;
    casting_plugin = *before;
    casting_comm = *before->comm;
    casting_kernel = keeping_kernel;
    casting_comm.pull_cast = cast_pull;
    casting_kernel.regions_cast = cast_regions;
    casting_plugin.kernel = &casting_kernel;
    lone->context->plugin = &casting_plugin;
    lone->comm.table = &casting_comm;
    lone->comm.averages = UINT32_MAX;
    return before;
}

/* A backend asks its device whether it has the kernels. */
TEST(a_backend_that_refuses_the_cast_gets_two_steps)
{
    const weft_plugin *before;
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    before = give_entries(&lone, WEFT_ERR_UNSUPPORTED);
    for (int packed = 0; packed < 2; packed++) {
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] S(0)", "bf16[8,8] S(1)"), 0);
        ck_assert_int_eq(split_of(&lone, packed, "bf16[8,8] S(0)", "f32[8,8] R"), 0);
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] R", "bf16[8,8] S(0)"), 0);
    }
    lone.context->plugin = before;
    lone_end(&lone);
}

TEST(a_backend_with_the_entries_casts_while_it_moves)
{
    const weft_plugin *before;
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    before = give_entries(&lone, WEFT_ERR_INVALID); /* the questions have no memory */
    for (int packed = 0; packed < 2; packed++) {
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] S(0)", "bf16[8,8] S(1)"), -1);
        ck_assert_int_eq(split_of(&lone, packed, "bf16[8,8] S(0)", "f32[8,8] R"), -1);
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] R", "bf16[8,8] S(0)"), -1);
        /* Every reader would cast each element again. */
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] S(0)", "bf16[8,8] R"), 0);
        /* Contributions are widened before they are reduced. */
        ck_assert_int_eq(split_of(&lone, packed, "bf16[8,8] P", "f32[8,8] S(0)"), 0);
        /* A pull narrows what it has reduced. */
        ck_assert_int_eq(split_of(&lone, packed, "f32[8,8] P", "bf16[8,8] S(0)"), packed ? 0 : -1);
    }
    lone.context->plugin = before;
    lone_end(&lone);
}
