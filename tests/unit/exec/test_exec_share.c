#include "plan/figures/figures.h"
#include "exec/exec.h"
#include "support/layout.h"
#include "support/suite.h"

struct made_step {
    struct wf_step step;
    weft_spec *from, *to;
};

static struct made_step step_of(uint32_t kind, const char *mesh, const char *from, const char *to)
{
    struct made_step made = {.from = spec_of(mesh, from), .to = spec_of(mesh, to)};

    made.step = (struct wf_step){.kind = kind, .axes = 1, .from = made.from, .to = made.to};
    return made;
}

static struct wf_share share_of(struct made_step *made, int32_t rank)
{
    struct wf_share share;

    ck_assert_int_eq(wf_share_of(&made->step, rank, NULL, NULL, &share), WEFT_OK);
    return share;
}

static void drop(struct made_step *made)
{
    weft_spec_release(&made->from);
    weft_spec_release(&made->to);
}

TEST(a_slice_reads_its_own_rank)
{
    struct made_step made = step_of(WEFT_STEP_SLICE, "2", "f32[8] R", "f32[8] S(0)");
    struct wf_share share = share_of(&made, 1);

    ck_assert(wf_step_is_local(&made.step) && !wf_step_needs_dense_output(&made.step));
    ck_assert_uint_eq(share.parts.rank_count, 1);
    ck_assert_int_eq(share.parts.ranks[0], 1);
    ck_assert_int_eq(share.elements, 4);
    ck_assert(!share.filled);
    wf_share_free(&share);
    drop(&made);
}

TEST(copies_become_one_value_and_identities)
{
    struct made_step made = step_of(WEFT_STEP_PARTIAL, "2", "f32[8] R", "f32[8] P(min)");
    struct wf_share share = share_of(&made, 0);

    ck_assert(wf_step_needs_dense_output(&made.step));
    ck_assert(!share.filled && share.parts.region_count == 1);
    wf_share_free(&share);
    share = share_of(&made, 1);
    ck_assert(share.filled && share.parts.region_count == 0);
    ck_assert_uint_eq(share.fill, WEFT_REDUCE_MIN);
    wf_share_free(&share);
    drop(&made);
}

TEST(copies_become_averages_as_they_are)
{
    struct made_step made = step_of(WEFT_STEP_PARTIAL, "2", "f32[8] R", "f32[8] P(avg)");
    struct wf_share share = share_of(&made, 1);

    ck_assert(!share.filled && share.parts.region_count == 1);
    wf_share_free(&share);
    drop(&made);
}

TEST(a_shard_becomes_a_contribution_with_zeros_around_it)
{
    struct made_step made = step_of(WEFT_STEP_PARTIAL, "2", "f32[8] S(0)", "f32[8] P");
    struct wf_share share = share_of(&made, 1);

    ck_assert(share.filled && share.fill == WEFT_REDUCE_SUM);
    ck_assert_uint_eq(share.parts.region_count, 1);
    ck_assert_int_eq(share.parts.regions[0].target_offset, 4);
    wf_share_free(&share);
    drop(&made);
}

TEST(a_gather_reads_the_others)
{
    struct made_step made = step_of(WEFT_STEP_ALL_GATHER, "2", "f32[8] S(0)", "f32[8] R");
    struct wf_share share = share_of(&made, 0);

    ck_assert(!wf_step_is_local(&made.step));
    ck_assert_uint_eq(share.parts.rank_count, 2);
    wf_share_free(&share);
    drop(&made);
}

TEST(whole_shards_are_gathered_where_the_axes_are_innermost)
{
    struct made_step inner =
        step_of(WEFT_STEP_ALL_GATHER, "2x3", "f32[12] S(0),S(0)", "f32[12] S(0),R");
    struct made_step outer =
        step_of(WEFT_STEP_ALL_GATHER, "2x3", "f32[12] S(0),S(0)", "f32[12] R,S(0)");
    struct made_step both =
        step_of(WEFT_STEP_ALL_GATHER, "2x3", "f32[12] S(0),S(0)", "f32[12] R,R");

    struct made_step beside_one =
        step_of(WEFT_STEP_ALL_GATHER, "2x1", "f32[12] S(0),S(0)", "f32[12] R,P");

    inner.step.axes = 2;
    both.step.axes = 3;
    beside_one.step.axes = 1;
    ck_assert(wf_step_gathers_shards(&inner.step));
    ck_assert(!wf_step_gathers_shards(&outer.step));
    ck_assert(wf_step_gathers_shards(&both.step));
    ck_assert(wf_step_gathers_shards(&beside_one.step));
    ck_assert(wf_step_sends_copies(&inner.step) && wf_step_sends_copies(&outer.step));
    drop(&beside_one);
    ck_assert(!wf_step_scatters_shards(&inner.step));
    drop(&inner);
    drop(&outer);
    drop(&both);
}

TEST(copies_are_sent_where_all_coordinates_want_a_shard)
{
    static const struct {
        const char *from, *to;
        bool copies;
    } cases[] = {
        {"f32[12] S(0),R", "f32[12] R,S(0)", true}, {"f32[12] S(0),R", "f32[12] P(avg),R", true},
        {"f32[12] S(0),R", "f32[12] P,R", false},   {"f32[12,3] S(0),R", "f32[12,3] S(1),R", false},
        {"f32[12] R,R", "f32[12] R,S(0)", false},   {"f32[12] R,S(0)", "f32[12] R,S(0)", false},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct made_step made = step_of(WEFT_STEP_EXCHANGE, "2x3", cases[i].from, cases[i].to);

        ck_assert_msg(wf_step_sends_copies(&made.step) == cases[i].copies, "%s to %s",
                      cases[i].from, cases[i].to);
        drop(&made);
    }
}

TEST(partials_are_scattered_where_they_become_innermost_shards)
{
    struct made_step inner =
        step_of(WEFT_STEP_REDUCE_SCATTER, "2x3", "f32[12] S(0),P", "f32[12] S(0),S(0)");
    struct made_step outer =
        step_of(WEFT_STEP_REDUCE_SCATTER, "2x3", "f32[12] P,S(0)", "f32[12] S(0),S(0)");
    struct made_step moved =
        step_of(WEFT_STEP_EXCHANGE, "2x3", "f32[12,4] S(0),P", "f32[12,4] S(1),S(0)");

    struct made_step beside_one = step_of(WEFT_STEP_REDUCE_SCATTER, "2x1x3", "f32[12] P,R,S(0)",
                                          "f32[12] S(0)[2],S(0)[0],S(0)[1]");
    struct made_step reordered = step_of(WEFT_STEP_EXCHANGE, "2x2x3", "f32[12] P,S(0)[1],S(0)[0]",
                                         "f32[12] S(0)[2],S(0)[0],S(0)[1]");

    inner.step.axes = moved.step.axes = 2;
    beside_one.step.axes = reordered.step.axes = 1;
    ck_assert(wf_step_scatters_shards(&beside_one.step));
    ck_assert(!wf_step_scatters_shards(&reordered.step));
    drop(&beside_one);
    drop(&reordered);
    ck_assert(wf_step_scatters_shards(&inner.step));
    ck_assert(!wf_step_scatters_shards(&outer.step));
    ck_assert(!wf_step_scatters_shards(&moved.step));
    ck_assert(!wf_step_gathers_shards(&inner.step));
    drop(&inner);
    drop(&outer);
    drop(&moved);
}
