#include "exec/exec.h"
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/suite.h"

static struct wf_parts read_parts(const char *mesh, const char *from, const char *to_mesh,
                                  const char *to, int32_t rank)
{
    weft_spec *a = spec_of(mesh, from), *b = spec_of(to_mesh, to);
    struct wf_parts parts;

    ck_assert_int_eq(wf_parts_read(a, b, rank, NULL, &parts), WEFT_OK);
    weft_spec_release(&a);
    weft_spec_release(&b);
    return parts;
}

START_TEST(what_a_rank_has_it_reads_at_home)
{
    struct wf_parts parts = read_parts("2x2", "f32[8] S(0),R", "2x2", "f32[8] R,R", 3);

    ck_assert_uint_eq(parts.rank_count, 2);
    ck_assert_int_eq(parts.ranks[0], 1);
    ck_assert_int_eq(parts.ranks[1], 3);
    ck_assert_uint_eq(parts.holders, 1);
    wf_parts_free(&parts);
}
END_TEST

START_TEST(contributions_come_in_blocks_of_all_holders)
{
    struct wf_parts parts = read_parts("2x2", "f32[8] P,S(0)", "2x2", "f32[8] S(0),R", 2);

    ck_assert_uint_eq(parts.holders, 2);
    ck_assert_uint_eq(parts.reduction, WEFT_REDUCE_SUM);
    ck_assert_uint_eq(parts.rank_count, 2);
    ck_assert_int_eq(parts.ranks[0], 1);
    ck_assert_int_eq(parts.ranks[1], 3);
    wf_parts_free(&parts);
}
END_TEST

START_TEST(sums_beside_averages_are_averages_by_less)
{
    struct wf_parts parts = read_parts("2x3", "f32[8] P(sum),P(avg)", "2x3", "f32[8] R,R", 0);

    ck_assert_uint_eq(parts.holders, 6);
    ck_assert_uint_eq(parts.reduction, WEFT_REDUCE_AVG);
    ck_assert_int_eq(parts.divisor, 3);
    wf_parts_free(&parts);
    parts = read_parts("2x3", "f32[8] P(avg),P(avg)", "2x3", "f32[8] R,R", 0);
    ck_assert_uint_eq(parts.reduction, WEFT_REDUCE_AVG);
    ck_assert_int_eq(parts.divisor, 6);
    wf_parts_free(&parts);
}
END_TEST

START_TEST(a_partial_that_is_made_has_one_holder_of_the_value)
{
    struct wf_parts parts = read_parts("2", "f32[8] S(0)", "2", "f32[8] P", 0);

    ck_assert(!parts.identity);
    ck_assert_uint_eq(parts.rank_count, 2);
    wf_parts_free(&parts);
    parts = read_parts("2", "f32[8] S(0)", "2", "f32[8] P", 1);
    ck_assert(parts.identity);
    ck_assert_uint_eq(parts.region_count, 0);
    wf_parts_free(&parts);
}
END_TEST

START_TEST(other_ranks_spread_over_the_replicas)
{
    int32_t seen[4] = {0};

    for (int32_t rank = 4; rank < 8; rank++) {
        struct wf_parts parts = read_parts("4", "f32[8] R", "4@4-7", "f32[8] R", rank);
        ck_assert_uint_eq(parts.rank_count, 1);
        seen[parts.ranks[0]]++;
        wf_parts_free(&parts);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(seen[i], 1);
}
END_TEST

START_TEST(a_rank_outside_both_meshes_reads_and_serves_nothing)
{
    weft_spec *a = spec_of("2", "f32[8] S(0)"), *b = spec_of("2@2-3", "f32[8] S(0)");
    struct wf_parts parts;

    ck_assert_int_eq(wf_parts_read(a, b, 7, NULL, &parts), WEFT_OK);
    ck_assert_uint_eq(parts.region_count, 0);
    wf_parts_free(&parts);
    ck_assert_int_eq(wf_parts_serve(a, b, 7, NULL, &parts), WEFT_OK);
    ck_assert_uint_eq(parts.region_count, 0);
    wf_parts_free(&parts);
    weft_spec_release(&a);
    weft_spec_release(&b);
}
END_TEST

/* ---- both sides of every message ---- */

/* The traffic between two ranks, in numbers that are summed in any order. */
struct traffic {
    uint64_t regions, hash;
};

static uint64_t hash_region(int32_t holder, int32_t reader, const weft_region *r)
{
    uint64_t h = wf_hash_mix((uint64_t)holder << 32 | (uint32_t)reader, r->dims);

    h = wf_hash_mix(wf_hash_mix(h, (uint64_t)r->source_offset), (uint64_t)r->target_offset);
    for (uint32_t d = 0; d < r->dims; d++) {
        h = wf_hash_mix(h, (uint64_t)r->extent[d]);
        h = wf_hash_mix(h, (uint64_t)r->source_stride[d]);
        h = wf_hash_mix(h, (uint64_t)r->target_stride[d]);
    }
    return h;
}

static struct traffic all_read(const weft_spec *from, const weft_spec *to)
{
    const weft_mesh *mesh = weft_spec_mesh(to);
    struct traffic sum = {0};
    struct wf_parts parts;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        ck_assert_int_eq(wf_parts_read(from, to, rank, NULL, &parts), WEFT_OK);
        for (uint64_t r = 0; r < parts.region_count; r++)
            for (uint32_t h = 0; h < parts.holders; h++, sum.regions++)
                sum.hash +=
                    hash_region(parts.ranks[parts.regions[r].source + h], rank, &parts.regions[r]);
        wf_parts_free(&parts);
    }
    return sum;
}

static struct traffic all_served(const weft_spec *from, const weft_spec *to)
{
    const weft_mesh *mesh = weft_spec_mesh(from);
    struct traffic sum = {0};
    struct wf_parts parts;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        ck_assert_int_eq(wf_parts_serve(from, to, rank, NULL, &parts), WEFT_OK);
        for (uint64_t r = 0; r < parts.region_count; r++, sum.regions++)
            sum.hash += hash_region(rank, parts.ranks[parts.regions[r].target], &parts.regions[r]);
        wf_parts_free(&parts);
    }
    return sum;
}

/* A partial that stays partial keeps its kind. */
static bool compatible(const weft_spec *from, const weft_spec *to)
{
    const weft_placement *p = weft_spec_placements(from), *q = weft_spec_placements(to);

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(from)); a++)
        if (p[a].kind == WEFT_PLACE_PARTIAL && q[a].kind == WEFT_PLACE_PARTIAL &&
            p[a].reduction != q[a].reduction)
            return false;
    return true;
}

START_TEST(what_readers_expect_is_what_holders_serve)
{
    struct random r = random_begin("what_readers_expect_is_what_holders_serve");

    for (int i = test_cases(3000); i > 0; i--) {
        weft_mesh *mesh = random_mesh(&r);
        weft_mesh *other = random_chance(&r, 3) ? random_mesh(&r) : weft_mesh_retain(mesh);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        weft_spec *from = random_spec(&r, mesh, dims, shape);
        weft_spec *to = random_spec(&r, other, dims, shape);
        if (mesh != other || compatible(from, to)) {
            struct traffic read = all_read(from, to), served = all_served(from, to);
            ck_assert_msg(read.regions == served.regions && read.hash == served.hash,
                          "%llu read, %llu served\n%s\n%s", (unsigned long long)read.regions,
                          (unsigned long long)served.regions, as_command(from), as_command(to));
        }
        weft_spec_release(&from);
        weft_spec_release(&to);
        weft_mesh_release(&mesh);
        weft_mesh_release(&other);
    }
}
END_TEST

/* No replica sends more than its share of the data of its shard's readers, rounded up to whole
 * readers. */
static void check_balance(const char *mesh, const char *from_text, const char *to_mesh,
                          const char *to_text, uint64_t most_elements)
{
    weft_spec *from = spec_of(mesh, from_text), *to = spec_of(to_mesh, to_text);
    const weft_mesh *source = from->layout.mesh;
    uint64_t most = 0;

    for (int32_t i = 0; i < source->size; i++) {
        struct wf_parts parts;
        uint64_t sent = 0;
        ck_assert_int_eq(wf_parts_serve(from, to, weft_mesh_rank_at(source, i), NULL, &parts),
                         WEFT_OK);
        for (uint64_t r = 0; r < parts.region_count; r++)
            sent += wf_region_elements(&parts.regions[r]);
        wf_parts_free(&parts);
        if (sent > most) most = sent;
    }
    ck_assert_msg(most == most_elements, "%s %s -> %s %s: a rank sends %llu elements, not %llu",
                  mesh, from_text, to_mesh, to_text, (unsigned long long)most,
                  (unsigned long long)most_elements);
    weft_spec_release(&from);
    weft_spec_release(&to);
}

START_TEST(copies_share_the_sending_evenly)
{
    check_balance("4", "f32[64] R", "4@4-7", "f32[64] S(0)", 16);
    check_balance("4", "f32[64] R", "8@4-11", "f32[64] R", 128);
    check_balance("2x2", "f32[64] R,S(0)", "2x2@4-7", "f32[64] R,S(0)", 32);
    check_balance("2x2", "f32[64] S(0),R", "2x2@4-7", "f32[64] R,S(0)", 32);
    check_balance("2x2", "f32[64] R,S(0)", "2x2@4-7", "f32[64] S(0),R", 32);
    check_balance("2x4", "f32[64] S(0),R", "8@8-15", "f32[64] S(0)", 8);
    check_balance("4x2", "f32[8,8] R,S(0)", "2x4@8-15", "f32[8,8] R,S(1)", 16);
    check_balance("4x2", "f32[8,8] R,S(0)", "4x2@8-15", "f32[8,8] S(0)[1],S(0)[0]", 8);
    check_balance("4x2", "f32[8,8] R,P", "4@8-11", "f32[8,8] R", 64);
}
END_TEST

SUITE(exec_parts, copies_share_the_sending_evenly, what_a_rank_has_it_reads_at_home,
      contributions_come_in_blocks_of_all_holders, sums_beside_averages_are_averages_by_less,
      a_partial_that_is_made_has_one_holder_of_the_value, other_ranks_spread_over_the_replicas,
      a_rank_outside_both_meshes_reads_and_serves_nothing,
      what_readers_expect_is_what_holders_serve)
