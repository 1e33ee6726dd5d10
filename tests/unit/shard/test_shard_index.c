/* The vectors are those of the reference implementation's tests. */
#include "support/layout.h"
#include "support/suite.h"

/* Local size and offset in dimension 0, rank by rank. */
static void check_shards(const char *mesh, const char *text, const int64_t (*want)[2])
{
    OWNED(weft_spec) *spec = spec_of(mesh, text);

    for (int32_t i = 0; i < weft_mesh_size(weft_spec_mesh(spec)); i++) {
        weft_shard shard;
        weft_spec_shard(spec, i, &shard);
        ck_assert_msg(shard.shape[0] == want[i][0] && shard.offset[0] == want[i][1],
                      "%s on %s, rank %d: %lld at %lld", text, mesh, i, (long long)shard.shape[0],
                      (long long)shard.offset[0]);
    }
}

TEST(chunks_are_full_then_short_then_empty)
{
    check_shards("4", "f32[5] S(0)", (const int64_t[][2]){{2, 0}, {2, 2}, {1, 4}, {0, 5}});
    check_shards(
        "8", "f32[9] S(0)",
        (const int64_t[][2]){{2, 0}, {2, 2}, {2, 4}, {2, 6}, {1, 8}, {0, 9}, {0, 9}, {0, 9}});
    check_shards("4", "f32[0] S(0)", (const int64_t[][2]){{0, 0}, {0, 0}, {0, 0}, {0, 0}});
}

TEST(nested_splits_chunk_what_is_left)
{
    check_shards(
        "4x2", "f32[18,2] S(0),S(0)",
        (const int64_t[][2]){{3, 0}, {2, 3}, {3, 5}, {2, 8}, {3, 10}, {2, 13}, {2, 15}, {1, 17}});
    check_shards(
        "4x2", "f32[13,2] S(0),S(0)",
        (const int64_t[][2]){{2, 0}, {2, 2}, {2, 4}, {2, 6}, {2, 8}, {2, 10}, {1, 12}, {0, 13}});
}

TEST(strided_splits_nest_with_plain_ones)
{
    check_shards("4", "f32[9] SS(0,2)", (const int64_t[][2]){{3, 0}, {3, 2}, {2, 4}, {1, 8}});
    check_shards(
        "4x2", "f32[18,2] SS(0,2),S(0)",
        (const int64_t[][2]){{3, 0}, {3, 9}, {3, 3}, {3, 12}, {3, 6}, {3, 15}, {0, 18}, {0, 18}});
    check_shards(
        "4x2", "f32[39,2] SS(0,3),SS(0,4)",
        (const int64_t[][2]){{8, 0}, {4, 2}, {8, 4}, {4, 6}, {8, 8}, {4, 10}, {3, 12}, {0, 39}});
    check_shards(
        "4x2", "f32[18,2] S(0),SS(0,2)",
        (const int64_t[][2]){{3, 0}, {2, 2}, {3, 5}, {2, 7}, {3, 10}, {2, 12}, {2, 15}, {1, 16}});
    check_shards(
        "4x2", "f32[15,5] SS(0,2),S(0)",
        (const int64_t[][2]){{2, 0}, {2, 8}, {2, 2}, {2, 10}, {2, 4}, {2, 12}, {2, 6}, {1, 14}});
    check_shards(
        "2x2x2", "f32[16,16] SS(0,2),S(0),S(0)",
        (const int64_t[][2]){{2, 0}, {2, 2}, {2, 8}, {2, 10}, {2, 4}, {2, 6}, {2, 12}, {2, 14}});
    check_shards("4x2x3", "f32[39,2] S(0),SS(0,2),S(0)",
                 (const int64_t[][2]){{2, 0},  {2, 2},  {2, 6},  {2, 3},  {2, 8},  {0, 39},
                                      {2, 10}, {2, 12}, {2, 16}, {2, 13}, {2, 18}, {0, 39},
                                      {2, 20}, {2, 22}, {2, 26}, {2, 23}, {2, 28}, {0, 39},
                                      {2, 30}, {2, 32}, {1, 36}, {2, 33}, {2, 37}, {0, 39}});
}

TEST(thirty_by_eight_ranks_of_4096_rows)
{
    OWNED(weft_spec) *spec = spec_of("30x8", "f32[4096,4096] SS(0,8),S(0)");

    for (int32_t dp = 0; dp < 30; dp++)
        for (int32_t tp = 0; tp < 8; tp++) {
            weft_shard shard;
            weft_spec_shard(spec, dp * 8 + tp, &shard);
            ck_assert_int_eq(shard.shape[0], dp < 28 ? 18 : dp == 28 ? 8 : 0);
            ck_assert_int_eq(shard.offset[0], dp < 29 ? 512 * tp + 18 * dp : 4096);
        }
}

TEST(two_strided_dimensions_do_not_mix)
{
    OWNED(weft_spec) *spec = spec_of("1x2x2x2", "f32[16,16] SS(0,2),SS(1,2),S(0),S(1)");

    for (int32_t rank = 0; rank < 8; rank++) {
        int32_t m1 = rank / 4, m2 = rank / 2 % 2, m3 = rank % 2;
        weft_shard shard;
        weft_spec_shard(spec, rank, &shard);
        ck_assert_int_eq(shard.shape[0], 8);
        ck_assert_int_eq(shard.shape[1], 4);
        ck_assert_int_eq(shard.offset[0], 8 * m2);
        ck_assert_int_eq(shard.offset[1], 8 * m3 + 4 * m1);
    }
}

TEST(an_order_changes_the_shards_of_ranks)
{
    check_shards(
        "2x4", "f32[8] S(0)[1],S(0)[0]",
        (const int64_t[][2]){{1, 0}, {1, 2}, {1, 4}, {1, 6}, {1, 1}, {1, 3}, {1, 5}, {1, 7}});
    check_shards("3x2", "f32[7] S(0)[1],S(0)[0]",
                 (const int64_t[][2]){{2, 0}, {1, 4}, {2, 2}, {1, 5}, {0, 7}, {1, 6}});
}

TEST(huge_sizes_do_not_overflow)
{
    OWNED(weft_spec) *spec =
        spec_of("7x3", "u8[9223372036854775807] S(0),SS(0,9223372036854775806)");
    OWNED(weft_spec) *plain = spec_of("2147483647", "u8[9223372036854775807] S(0)");
    int64_t sum = 0;
    weft_shard shard;

    for (int32_t i = 0; i < 21; i++) {
        weft_spec_shard(spec, i, &shard);
        sum += shard.elements;
    }
    ck_assert_int_eq(sum, INT64_MAX);
    weft_spec_shard(plain, INT32_MAX - 1, &shard);
    ck_assert_int_eq(shard.offset[0] + shard.shape[0], INT64_MAX);
}

TEST(a_billion_runs_are_not_listed)
{
    OWNED(weft_spec) *a = spec_of("2x2", "u8[8589934592] SS(0,2147483648),R");
    OWNED(weft_spec) *b = spec_of("2x2", "u8[8589934592] S(0),SS(0,1000000)");
    struct wf_shard in_a, in_b;
    struct wf_index of_a, of_b;
    weft_index_run run;
    weft_intersection overlap;

    wf_shard_of(a, 3, &in_a);
    wf_shard_of(b, 3, &in_b);
    of_a = wf_shard_index(&in_a, 0);
    of_b = wf_shard_index(&in_b, 0);
    ck_assert(wf_index_run(&of_a, INT64_C(4000000001), &run));
    ck_assert_int_eq(run.start, INT64_C(8000000003));
    ck_assert_int_eq(run.length, 1);
    ck_assert_int_eq(wf_index_seek(&of_a, INT64_C(8000000003)), INT64_C(4000000001));
    ck_assert(wf_index_overlap(&of_a, &of_b, INT64_C(8000000000), &overlap));
    ck_assert_int_eq(wf_index_at(&of_b, overlap.second), overlap.start);
    ck_assert_int_eq(wf_index_at(&of_a, overlap.first), overlap.start);
}

TEST(common_indices_of_a_run_need_no_walk)
{
    OWNED(weft_spec) *comb = spec_of("2", "u8[8589934592] SS(0,2147483648)");
    OWNED(weft_spec) *run = spec_of("2", "u8[8589934592] S(0)");
    struct wf_shard in_comb, in_run;
    struct wf_index of_comb, of_run;

    wf_shard_of(comb, 0, &in_comb);
    wf_shard_of(run, 1, &in_run);
    of_comb = wf_shard_index(&in_comb, 0);
    of_run = wf_shard_index(&in_run, 0);
    ck_assert_int_eq(wf_index_common(&of_comb, &of_run), INT64_C(2147483648));
    ck_assert_int_eq(wf_index_common(&of_run, &of_comb), INT64_C(2147483648));
}

/* The common indices of rank RANK of two layouts of 10,007 elements, one by one. */
static int64_t count_each(const struct wf_index *a, const struct wf_index *b)
{
    int64_t count = 0;

    for (int64_t i = 0; i < a->length; i++) {
        int64_t global = wf_index_at(a, i), at = wf_index_seek(b, global);
        count += at < b->length && wf_index_at(b, at) == global;
    }
    return count;
}

TEST(common_indices_are_counted_by_runs)
{
    static const char *const layouts[] = {"u8[10007] SS(0,7),SS(0,5)",
                                          "u8[10007] SS(0,1000),S(0)",
                                          "u8[10007] B(0;4096,4096,1815),S(0)",
                                          "u8[10007] S(0)[1],SS(0,33)[0]",
                                          "u8[10007] S(0),S(0)",
                                          "u8[10007] G(0;9000,7,1000,0),S(0)",
                                          "u8[10007] SS(0,2500),SS(0,600)"};

    for (size_t i = 0; i < WF_COUNT(layouts); i++)
        for (size_t k = 0; k < WF_COUNT(layouts); k++) {
            OWNED(weft_spec) *a = spec_of("4x3", layouts[i]), *b = spec_of("4x3", layouts[k]);
            for (int32_t rank = 0; rank < 12; rank++) {
                struct wf_shard in_a, in_b;
                struct wf_index of_a, of_b;
                int64_t runs = 0, about, exact;
                weft_index_run run;
                wf_shard_of(a, rank, &in_a);
                wf_shard_of(b, rank, &in_b);
                of_a = wf_shard_index(&in_a, 0);
                of_b = wf_shard_index(&in_b, 0);
                exact = count_each(&of_a, &of_b);
                ck_assert_int_eq(wf_index_common(&of_a, &of_b), exact);
                ck_assert_int_eq(wf_index_common_about(&of_a, &of_b, 4096), exact);
                about = wf_index_common_about(&of_a, &of_b, 3);
                ck_assert(about >= 0 && about <= of_a.length && about <= of_b.length);
                for (int64_t at = 0; wf_index_run(&of_a, at, &run); at += run.length)
                    runs++;
                ck_assert_int_le(runs, wf_index_runs(&of_a));
            }
        }
}

TEST(common_indices_of_many_runs_are_estimated)
{
    OWNED(weft_spec) *a = spec_of("8", "u8[1000000007] SS(0,100000007)");
    OWNED(weft_spec) *b = spec_of("8", "u8[1000000007] SS(0,33333333)");
    struct wf_shard in_a, in_b;
    struct wf_index of_a, of_b;
    int64_t about;

    wf_shard_of(a, 0, &in_a);
    wf_shard_of(b, 0, &in_b);
    of_a = wf_shard_index(&in_a, 0);
    of_b = wf_shard_index(&in_b, 0);
    /* indices 0 and 1 of each 10, and 0 to 3 of each 31: 8 of each 310 */
    about = wf_index_common_about(&of_a, &of_b, 4096);
    ck_assert(about > INT64_C(1000000007) / 310 * 8 * 9 / 10);
    ck_assert(about < INT64_C(1000000007) / 310 * 8 * 11 / 10);
}
