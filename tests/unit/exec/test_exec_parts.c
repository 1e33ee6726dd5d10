#include "exec/exec.h"
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/suite.h"

static struct wf_parts read_parts(const char *mesh, const char *from, const char *to_mesh,
                                  const char *to, int32_t rank)
{
    weft_spec *a = spec_of(mesh, from), *b = spec_of(to_mesh, to);
    struct wf_parts parts;

    ck_assert_int_eq(wf_parts_read(a, b, 0, rank, NULL, &parts), WEFT_OK);
    weft_spec_release(&a);
    weft_spec_release(&b);
    return parts;
}

TEST(what_a_rank_has_it_reads_at_home)
{
    struct wf_parts parts = read_parts("2x2", "f32[8] S(0),R", "2x2", "f32[8] R,R", 3);

    ck_assert_uint_eq(parts.rank_count, 2);
    ck_assert_int_eq(parts.ranks[0], 1);
    ck_assert_int_eq(parts.ranks[1], 3);
    ck_assert_uint_eq(parts.holders, 1);
    wf_parts_free(&parts);
}

TEST(contributions_come_in_blocks_of_all_holders)
{
    struct wf_parts parts = read_parts("2x2", "f32[8] P,S(0)", "2x2", "f32[8] S(0),R", 2);

    ck_assert_uint_eq(parts.holders, 2);
    ck_assert_uint_eq(parts.reduction, WEFT_REDUCE_SUM);
    ck_assert_uint_eq(parts.rank_count, 2);
    ck_assert_int_eq(parts.ranks[0], 1);
    ck_assert_int_eq(parts.ranks[1], 3);
    wf_parts_free(&parts);
}

TEST(sums_beside_averages_are_averages_by_less)
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

/* Regions and elements that all ranks of the target read. */
static void count_reads(const char *mesh, const char *from, const char *to_mesh, const char *to,
                        uint64_t *regions, uint64_t *elements)
{
    OWNED(weft_mesh) *target = mesh_of(to_mesh);

    for (int32_t i = 0; i < weft_mesh_size(target); i++) {
        struct wf_parts parts = read_parts(mesh, from, to_mesh, to, weft_mesh_rank_at(target, i));
        *regions += parts.region_count;
        for (uint64_t k = 0; k < parts.region_count; k++)
            *elements += wf_region_elements(&parts.regions[k]);
        wf_parts_free(&parts);
    }
}

TEST(parts_and_sizes_have_the_regions_of_shards)
{
    static const char *const shards[] = {"f32[64,6] S(0)", "f32[16,6] S(0)", "f32[16,6] S(0)"};
    static const char *const meshes[] = {"1", "2", "3", "4", "8"};

    for (size_t a = 0; a < WF_COUNT(meshes); a++)
        for (size_t b = 0; b < WF_COUNT(meshes); b++) {
            uint64_t fused[2] = {0}, apart[2] = {0};
            count_reads(meshes[a], "f32[96,6] B(0;64,16,16)", meshes[b], "f32[96,6] B(0;64,16,16)",
                        &fused[0], &fused[1]);
            for (int p = 0; p < 3; p++)
                count_reads(meshes[a], shards[p], meshes[b], shards[p], &apart[0], &apart[1]);
            ck_assert_uint_le(fused[0], apart[0]);
            ck_assert_uint_eq(fused[1], apart[1]);
        }
    for (int i = 0; i < 2; i++) {
        uint64_t listed[2] = {0}, even[2] = {0};
        count_reads("4", "f32[20,6] G(0;5,6,4,5)", "4", i == 0 ? "f32[20,6] S(1)" : "f32[20,6] R",
                    &listed[0], &listed[1]);
        count_reads("4", "f32[20,6] S(0)", "4", i == 0 ? "f32[20,6] S(1)" : "f32[20,6] R", &even[0],
                    &even[1]);
        ck_assert_uint_eq(listed[0], even[0]);
        ck_assert_uint_eq(listed[1], even[1]);
    }
}

TEST(all_read_from_the_owner)
{
    struct wf_parts parts = read_parts("2x3", "f32[8] S(0),O(2)", "2x3", "f32[8] S(0),R", 3);

    ck_assert_uint_eq(parts.rank_count, 1);
    ck_assert_int_eq(parts.ranks[0], 5);
    wf_parts_free(&parts);
    parts = read_parts("2x3", "f32[8] O(1),O(2)", "2@7-8", "f32[8] S(0)", 8);
    ck_assert_uint_eq(parts.rank_count, 1);
    ck_assert_int_eq(parts.ranks[0], 5);
    wf_parts_free(&parts);
    parts = read_parts("2x3", "f32[8] P,S(0)", "2x3", "f32[8] O(1),O(2)", 4);
    ck_assert_uint_eq(parts.rank_count, 0);
    parts = read_parts("2x3", "f32[9] P,S(0)", "2x3", "f32[9] O(1),O(2)", 5);
    ck_assert_uint_eq(parts.rank_count, 6);
    ck_assert_uint_eq(parts.holders, 2);
    wf_parts_free(&parts);
}

TEST(a_partial_that_is_made_has_one_holder_of_the_value)
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

TEST(other_ranks_spread_over_the_replicas)
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

TEST(a_rank_outside_both_meshes_reads_and_serves_nothing)
{
    OWNED(weft_spec) *a = spec_of("2", "f32[8] S(0)"), *b = spec_of("2@2-3", "f32[8] S(0)");
    struct wf_parts parts;

    ck_assert_int_eq(wf_parts_read(a, b, 0, 7, NULL, &parts), WEFT_OK);
    ck_assert_uint_eq(parts.region_count, 0);
    wf_parts_free(&parts);
    ck_assert_int_eq(wf_parts_serve(a, b, 0, 7, NULL, &parts), WEFT_OK);
    ck_assert_uint_eq(parts.region_count, 0);
    wf_parts_free(&parts);
}

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
        ck_assert_int_eq(wf_parts_read(from, to, 0, rank, NULL, &parts), WEFT_OK);
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
        ck_assert_int_eq(wf_parts_serve(from, to, 0, rank, NULL, &parts), WEFT_OK);
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

TEST(what_readers_expect_is_what_holders_serve)
{
    struct random r = random_begin("what_readers_expect_is_what_holders_serve");

    for (int i = test_cases(3000); i > 0; i--) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        OWNED(weft_mesh) *other = random_chance(&r, 3) ? random_mesh(&r) : weft_mesh_retain(mesh);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *from = random_spec(&r, mesh, dims, shape);
        OWNED(weft_spec) *to = random_spec(&r, other, dims, shape);
        if (mesh != other || compatible(from, to)) {
            struct traffic read = all_read(from, to), served = all_served(from, to);
            ck_assert_msg(read.regions == served.regions && read.hash == served.hash,
                          "%llu read, %llu served\n%s\n%s", (unsigned long long)read.regions,
                          (unsigned long long)served.regions, as_command(from), as_command(to));
        }
    }
}

/* No replica sends more than its share of the data of its shard's readers, rounded up to whole
 * readers. */
static void check_balance(const char *mesh, const char *from_text, const char *to_mesh,
                          const char *to_text, uint64_t most_elements)
{
    OWNED(weft_spec) *from = spec_of(mesh, from_text), *to = spec_of(to_mesh, to_text);
    const weft_mesh *source = from->layout.mesh;
    uint64_t most = 0;

    for (int32_t i = 0; i < source->size; i++) {
        struct wf_parts parts;
        uint64_t sent = 0;
        ck_assert_int_eq(wf_parts_serve(from, to, 0, weft_mesh_rank_at(source, i), NULL, &parts),
                         WEFT_OK);
        for (uint64_t r = 0; r < parts.region_count; r++)
            sent += wf_region_elements(&parts.regions[r]);
        wf_parts_free(&parts);
        if (sent > most) most = sent;
    }
    ck_assert_msg(most == most_elements, "%s %s -> %s %s: a rank sends %llu elements, not %llu",
                  mesh, from_text, to_mesh, to_text, (unsigned long long)most,
                  (unsigned long long)most_elements);
}

TEST(copies_share_the_sending_evenly)
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
