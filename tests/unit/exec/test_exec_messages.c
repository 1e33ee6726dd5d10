#include "exec/bound.h"
#include "support/suite.h"

enum { SIZE = 3, ROOM = 8 };

static uint64_t counts[SIZE], offsets[SIZE];
static struct wf_messages messages;

/* ROWS x COLUMNS of a tensor with WIDTH columns, from column FIRST on. */
static weft_region columns(int64_t rows, int64_t first, int64_t width, int64_t all, uint32_t peer)
{
    return (weft_region){.target = peer,
                         .dims = 2,
                         .source_offset = first,
                         .extent = {rows, width},
                         .source_stride = {all, 1},
                         .target_stride = {width, 1}};
}

static weft_region run(int64_t first, int64_t length, uint32_t peer)
{
    return (weft_region){.target = peer,
                         .dims = 1,
                         .source_offset = first,
                         .extent = {length},
                         .source_stride = {1},
                         .target_stride = {1}};
}

static void lay(const struct wf_message_layout *layout, uint64_t count, weft_region *regions)
{
    memset(counts, 0, sizeof counts);
    memset(offsets, 0, sizeof offsets);
    messages = (struct wf_messages){.counts = counts, .offsets = offsets};
    wf_messages_lay(layout, count, regions, &messages);
}

static const int32_t straight[SIZE] = {0, 1, 2}, turned[SIZE] = {2, 0, 1};

TEST(runs_of_the_tensor_are_messages_as_they_are)
{
    struct wf_message_layout layout = {
        .end = WF_END_SOURCE, .peers = turned, .size = SIZE, .holders = 1};
    weft_region regions[] = {run(0, 4, 0), run(4, 4, 1), run(8, 2, 1)};

    lay(&layout, WF_COUNT(regions), regions);
    ck_assert_uint_eq(messages.staged, 0);
    ck_assert_uint_eq(counts[2], 4);
    ck_assert_uint_eq(offsets[2], 0);
    ck_assert_uint_eq(counts[0], 6);
    ck_assert_uint_eq(offsets[0], 4);
    ck_assert_uint_eq(counts[1], 0);
}

TEST(messages_out_of_the_rank_order_are_staged_where_it_counts)
{
    struct wf_message_layout layout = {
        .end = WF_END_SOURCE, .peers = turned, .size = SIZE, .holders = 1};
    weft_region regions[] = {run(0, 4, 0), run(4, 4, 1), run(8, 4, 2)}, again[SIZE];

    memcpy(again, regions, sizeof again);
    lay(&layout, SIZE, regions);
    ck_assert_uint_eq(messages.staged, 0);
    layout.in_rank_order = true;
    lay(&layout, SIZE, again);
    ck_assert_uint_eq(messages.staged, 12);
    for (uint64_t rank = 0; rank < SIZE; rank++)
        ck_assert_uint_eq(offsets[rank], 4 * rank);
    layout.peers = straight;
    lay(&layout, SIZE, regions);
    ck_assert_uint_eq(messages.staged, 0);
}

TEST(columns_are_packed_one_after_the_other)
{
    struct wf_message_layout layout = {
        .end = WF_END_SOURCE, .peers = straight, .size = SIZE, .holders = 1};
    weft_region regions[] = {columns(5, 0, 2, 6, 0), columns(5, 2, 2, 6, 1),
                             columns(5, 4, 2, 6, 1)};

    lay(&layout, WF_COUNT(regions), regions);
    ck_assert_uint_eq(messages.staged, 30);
    ck_assert_uint_eq(counts[0], 10);
    ck_assert_uint_eq(counts[1], 20);
    ck_assert_uint_eq(offsets[1], 10);
    ck_assert_int_eq(regions[1].target_offset, 0);
    ck_assert_int_eq(regions[2].target_offset, 10);
    ck_assert_int_eq(regions[2].target_stride[0], 2);
    ck_assert_int_eq(regions[2].source_offset, 4);
}

TEST(what_is_reduced_comes_from_every_holder)
{
    struct wf_message_layout layout = {
        .end = WF_END_TARGET, .peers = turned, .size = SIZE, .holders = SIZE};
    weft_region regions[] = {run(0, 4, 0), run(7, 2, 0)};

    regions[1].target_offset = 4;
    lay(&layout, WF_COUNT(regions), regions);
    ck_assert_uint_eq(messages.staged, 18);
    for (int rank = 0; rank < SIZE; rank++)
        ck_assert_uint_eq(counts[rank], 6);
    ck_assert_int_eq(regions[0].source_offset, 0);
    ck_assert_int_eq(regions[1].source_offset, 4);
    ck_assert_int_eq(regions[1].target_offset, 4);
}

/* A strided shard is read in several regions, but sent in memory order. */
TEST(whole_shards_keep_their_own_order)
{
    struct wf_message_layout layout = {
        .end = WF_END_TARGET, .peers = straight, .size = SIZE, .holders = 1, .is_shard = true};
    weft_region regions[] = {columns(5, 0, 2, 4, 0), columns(5, 2, 2, 4, 0)};

    for (int i = 0; i < 2; i++) {
        regions[i].target_offset = 3 * i;
        regions[i].target_stride[0] = 6;
    }
    lay(&layout, WF_COUNT(regions), regions);
    ck_assert_uint_eq(messages.staged, 20);
    ck_assert_int_eq(regions[1].source_offset, 2);
    ck_assert_int_eq(regions[1].source_stride[0], 4);
}

TEST(a_scalar_is_a_run)
{
    struct wf_message_layout layout = {
        .end = WF_END_TARGET, .peers = straight, .size = SIZE, .holders = 1};
    weft_region scalar = {.dims = 0};

    lay(&layout, 1, &scalar);
    ck_assert_uint_eq(messages.staged, 0);
    ck_assert_uint_eq(counts[0], 1);
}
