#include "support/lone_rank.h"
#include "support/suite.h"

enum { ACTIONS = 3 };

/* LONE's bound with actions whose outputs have the sizes of TO, all on one rank. */
static void make_actions(struct lone_rank *lone, struct wf_step *steps, const char *const *to)
{
    size_t bytes = sizeof *lone->bound + ACTIONS * sizeof lone->bound->actions[0];
    struct weft_bound *bound = wf_realloc(lone->bound, bytes);

    ck_assert_ptr_nonnull(bound);
    bound->action_count = ACTIONS;
    memset(bound->actions, 0, ACTIONS * sizeof bound->actions[0]);
    for (int i = 0; i < ACTIONS; i++) {
        steps[i] = (struct wf_step){.to = spec_of("1", to[i])};
        bound->actions[i].step = &steps[i];
        bound->actions[i].kind.dtype = WEFT_DTYPE_F32;
    }
    lone->bound = bound;
}

static void drop_steps(struct wf_step *steps)
{
    for (int i = 0; i < ACTIONS; i++)
        weft_spec_release(&steps[i].to);
}

START_TEST(outputs_lie_at_two_ends_and_staging_between)
{
    static const char *const to[] = {"f32[250] R", "f32[128] R", "f32[64] R"};
    struct wf_step steps[ACTIONS];
    struct lone_rank lone;
    struct wf_action *a;
    char memory[1024 + 512 + 256];

    lone_begin(&lone, 0, 1);
    make_actions(&lone, steps, to);
    a = lone.bound->actions;
    a[1].packing.in.staged = 60;
    ck_assert_uint_eq(wf_scratch_bytes(lone.bound), 1024 + 512 + 256); /* of the second */
    wf_scratch_assign(lone.bound, memory);
    ck_assert(a[0].from_source && !a[0].to_target);
    ck_assert_ptr_eq(a[0].out_scratch, memory);
    ck_assert(!a[1].from_source && !a[1].to_target);
    ck_assert_ptr_eq(a[1].in_scratch, memory);
    ck_assert_ptr_eq(a[1].packing.in.staging, memory + 1024);
    ck_assert_ptr_eq(a[1].out_scratch, memory + 1024 + 256);
    ck_assert(!a[2].from_source && a[2].to_target);
    ck_assert_ptr_eq(a[2].in_scratch, memory + 1024 + 256);
    drop_steps(steps);
    lone_end(&lone);
}
END_TEST

START_TEST(what_needs_no_scratch_has_none)
{
    static const char *const to[] = {"f32[0] R", "f32[0] R", "f32[64] R"};
    struct wf_step steps[ACTIONS];
    struct lone_rank lone;

    lone_begin(&lone, 0, 1);
    make_actions(&lone, steps, to);
    ck_assert_uint_eq(wf_scratch_bytes(lone.bound), 0);
    wf_scratch_assign(lone.bound, NULL);
    ck_assert(lone.bound->actions[0].from_source && lone.bound->actions[2].to_target);
    drop_steps(steps);
    lone_end(&lone);
}
END_TEST

SUITE(exec_scratch, outputs_lie_at_two_ends_and_staging_between, what_needs_no_scratch_has_none)
