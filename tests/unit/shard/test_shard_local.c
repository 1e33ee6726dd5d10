#include "support/layout.h"
#include "support/suite.h"

TEST(a_rank_outside_the_mesh_holds_nothing)
{
    OWNED(weft_spec) *spec = spec_of("2x2@4-7", "f32[6,4] S(0),R"),
                     *scalar = spec_of("2@4-5", "f32[] R");
    weft_shard shard;
    weft_index_run run;
    weft_segment segment;
    weft_intersection overlap;

    weft_spec_shard(spec, 0, &shard);
    ck_assert(!shard.member);
    ck_assert_int_eq(shard.elements, 0);
    ck_assert_int_eq(shard.shape[1], 0);
    ck_assert_int_eq(shard.offset[0], 6);
    ck_assert(!weft_spec_run(spec, 0, 0, 0, &run));
    ck_assert(!weft_spec_segment(spec, 0, NULL, 0, &segment));
    ck_assert(!weft_spec_intersection(spec, 0, spec, 4, 0, 0, &overlap));
    ck_assert(!weft_spec_intersection(spec, 4, spec, 0, 0, 0, &overlap));
    ck_assert_uint_eq(weft_spec_shard_bytes(spec, 0), 0);
    ck_assert_uint_eq(weft_spec_shard_bytes(spec, 6), 3 * 4 * 4);
    ck_assert_uint_eq(weft_spec_shard_bytes(scalar, 5), 4);
    weft_spec_shard(scalar, 0, &shard);
    ck_assert(!shard.member);
    ck_assert_int_eq(shard.elements, 0);
    weft_spec_shard(scalar, 5, &shard);
    ck_assert(shard.member);
    ck_assert_int_eq(shard.elements, 1);
    ck_assert(weft_spec_segment(scalar, 5, NULL, 0, &segment));
    ck_assert_int_eq(segment.length, 1);
}

TEST(runs_begin_where_they_are_asked_for)
{
    OWNED(weft_spec) *spec = spec_of("2", "f32[12] SS(0,2)");
    weft_index_run run;

    ck_assert(weft_spec_run(spec, 1, 0, 0, &run));
    ck_assert(run.start == 3 && run.length == 3);
    ck_assert(weft_spec_run(spec, 1, 0, 1, &run));
    ck_assert(run.start == 4 && run.length == 2);
    ck_assert(weft_spec_run(spec, 1, 0, 3, &run));
    ck_assert(run.start == 9 && run.length == 3);
    ck_assert(!weft_spec_run(spec, 1, 0, 6, &run));
    ck_assert(!weft_spec_run(spec, 1, 0, -1, &run));
    ck_assert(!weft_spec_run(spec, 1, 1, 0, &run));
    ck_assert(!weft_spec_run(spec, 1, -1, 0, &run));
}

TEST(intersections_cross_meshes)
{
    OWNED(weft_spec) *from = spec_of("4", "f32[10] S(0)"), *to = spec_of("3@8-10", "f32[10] S(0)");
    weft_intersection o;

    /* 0-2 3-5 6-8 9 against 0-3 4-7 8-9 */
    ck_assert(weft_spec_intersection(from, 1, to, 9, 0, 0, &o));
    ck_assert(o.start == 4 && o.length == 2 && o.first == 1 && o.second == 0);
    ck_assert(!weft_spec_intersection(from, 1, to, 9, 0, 6, &o));
    ck_assert(weft_spec_intersection(from, 2, to, 10, 0, 0, &o));
    ck_assert(o.start == 8 && o.length == 1 && o.first == 2 && o.second == 0);
    ck_assert(!weft_spec_intersection(from, 0, to, 10, 0, 0, &o));
    ck_assert(weft_spec_intersection(from, 1, to, 9, 0, -5, &o));
    ck_assert(!weft_spec_intersection(from, 1, to, 9, 0, INT64_MAX, &o));
    ck_assert(!weft_spec_intersection(from, 1, to, 9, 1, 0, &o));
}

TEST(counts_are_those_of_shards)
{
    OWNED(weft_spec) *spec = spec_of("3@0,2,4", "f32[7,2] S(0)");
    int32_t ranks[] = {4, 0, 9};
    uint64_t counts[5], offsets[5];

    ck_assert_int_eq(weft_spec_counts(spec, 5, NULL, counts, offsets), WEFT_OK);
    ck_assert(counts[0] == 6 && counts[1] == 0 && counts[2] == 6 && counts[4] == 2);
    ck_assert(offsets[0] == 0 && offsets[1] == 6 && offsets[3] == 12 && offsets[4] == 12);
    ck_assert_int_eq(weft_spec_counts(spec, 3, ranks, counts, offsets), WEFT_OK);
    ck_assert(counts[0] == 2 && counts[1] == 6 && counts[2] == 0 && offsets[2] == 8);
    ck_assert_int_eq(weft_spec_counts(spec, 3, ranks, counts, NULL), WEFT_OK);
    check_refused(weft_spec_counts(NULL, 1, NULL, counts, NULL), WEFT_ERR_INVALID, "spec");
}

TEST(no_spec_has_nothing)
{
    weft_shard shard;
    weft_index_run run;
    weft_segment segment;
    weft_intersection overlap;
    OWNED(weft_spec) *spec = spec_of("2", "f32[4] S(0)");

    weft_spec_shard(NULL, 0, &shard);
    ck_assert(!shard.member && shard.dims == 0 && shard.elements == 0);
    weft_spec_shard(spec, 0, NULL);
    ck_assert_uint_eq(weft_spec_shard_bytes(NULL, 0), 0);
    ck_assert(!weft_spec_run(NULL, 0, 0, 0, &run));
    ck_assert(!weft_spec_run(spec, 0, 0, 0, NULL));
    ck_assert(!weft_spec_segment(NULL, 0, NULL, 0, &segment));
    ck_assert(!weft_spec_segment(spec, 0, NULL, 0, NULL));
    ck_assert(!weft_spec_intersection(NULL, 0, spec, 0, 0, 0, &overlap));
    ck_assert(!weft_spec_intersection(spec, 0, NULL, 0, 0, 0, &overlap));
    ck_assert(!weft_spec_intersection(spec, 0, spec, 0, 0, 0, NULL));
    ck_assert_ptr_null(weft_spec_mesh(NULL));
    ck_assert_uint_eq(weft_spec_dtype(NULL), WEFT_DTYPE_COUNT);
    ck_assert_int_eq(weft_spec_dims(NULL), 0);
    ck_assert_ptr_null(weft_spec_shape(NULL));
    ck_assert_ptr_null(weft_spec_placements(NULL));
    ck_assert_int_eq(weft_spec_elements(NULL), 0);
    ck_assert_uint_eq(weft_spec_hash(NULL), 0);
    ck_assert_ptr_null(weft_spec_retain(NULL));
}

/* A fused QKV with 32 query and 8 key-value heads of 128: each rank holds its heads of each. */
TEST(every_rank_holds_a_piece_of_each_part)
{
    OWNED(weft_spec) *spec = spec_of("8", "bf16[6144,4096] B(0;4096,1024,1024)");

    for (int32_t rank = 0; rank < 8; rank++) {
        const weft_index_run want[] = {
            {512 * rank, 512}, {4096 + 128 * rank, 128}, {5120 + 128 * rank, 128}};
        weft_shard shard;
        weft_index_run run;
        int64_t at = 0;
        weft_spec_shard(spec, rank, &shard);
        ck_assert_int_eq(shard.shape[0], 768);
        ck_assert_int_eq(shard.offset[0], 512 * rank);
        for (int i = 0; i < 3; i++, at += run.length) {
            ck_assert(weft_spec_run(spec, rank, 0, at, &run));
            ck_assert_int_eq(run.start, want[i].start);
            ck_assert_int_eq(run.length, want[i].length);
        }
        ck_assert(!weft_spec_run(spec, rank, 0, at, &run));
    }
}

TEST(groups_have_the_sizes_that_are_listed)
{
    OWNED(weft_spec) *spec = spec_of("4", "f32[7,2] G(0;3,0,1,3)");
    static const int64_t offsets[] = {0, 7, 3, 4}, sizes[] = {3, 0, 1, 3};
    weft_shard shard;

    for (int32_t rank = 0; rank < 4; rank++) {
        weft_spec_shard(spec, rank, &shard);
        ck_assert_int_eq(shard.shape[0], sizes[rank]);
        ck_assert_int_eq(shard.offset[0], offsets[rank]);
        ck_assert_uint_eq(weft_spec_shard_bytes(spec, rank), (uint64_t)sizes[rank] * 8);
    }
}

TEST(only_the_owner_holds_elements)
{
    OWNED(weft_spec) *spec = spec_of("2x2", "f32[4,6] O(1),S(1)");
    OWNED(weft_spec) *scalar = spec_of("2", "f32[] O(1)");
    weft_shard shard;

    for (int32_t rank = 0; rank < 4; rank++) {
        weft_spec_shard(spec, rank, &shard);
        ck_assert(shard.member);
        ck_assert_int_eq(shard.shape[0], rank < 2 ? 0 : 4);
        ck_assert_int_eq(shard.offset[0], rank < 2 ? 4 : 0);
        ck_assert_int_eq(shard.shape[1], 3);
        ck_assert_int_eq(shard.offset[1], 3 * (rank % 2));
        ck_assert_int_eq(shard.elements, rank < 2 ? 0 : 12);
    }
    ck_assert_uint_eq(weft_spec_shard_bytes(scalar, 0), 0);
    ck_assert_uint_eq(weft_spec_shard_bytes(scalar, 1), 4);
}

TEST(missing_arguments_are_named)
{
    static const weft_placement p[] = {{.kind = WEFT_PLACE_REPLICATE}};
    static const int64_t sizes[] = {4, 4};
    weft_spec *spec = spec_of("2", "f32[4] S(0)"), *out = NULL;
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int64_t shape[1];
    char text[8];

    check_refused(weft_spec_parse(NULL, "", &out), WEFT_ERR_INVALID, "weft_spec_parse: mesh is");
    check_refused(weft_spec_parse(mesh, NULL, &out), WEFT_ERR_INVALID, "text is NULL");
    check_refused(weft_spec_parse(mesh, "", NULL), WEFT_ERR_INVALID, "out is NULL");
    check_refused(weft_spec_create(NULL, 0, 1, sizes, p, &out), WEFT_ERR_INVALID, "mesh is NULL");
    check_refused(weft_spec_create(mesh, 0, 1, NULL, p, &out), WEFT_ERR_INVALID, "shape is NULL");
    check_refused(weft_spec_create(mesh, 0, 1, sizes, NULL, &out), WEFT_ERR_INVALID,
                  "placements is NULL");
    check_refused(weft_spec_create(mesh, 0, 1, sizes, p, NULL), WEFT_ERR_INVALID, "out is NULL");
    check_refused(weft_spec_print(NULL, text, 8, NULL), WEFT_ERR_INVALID, "spec is NULL");
    check_refused(weft_spec_print(spec, NULL, 8, NULL), WEFT_ERR_INVALID, "text is NULL");
    check_refused(weft_shape_from_shards(NULL, 1, p, sizes, shape), WEFT_ERR_INVALID, "mesh is");
    check_refused(weft_shape_from_shards(mesh, 1, NULL, sizes, shape), WEFT_ERR_INVALID,
                  "placements is NULL");
    check_refused(weft_shape_from_shards(mesh, 1, p, NULL, shape), WEFT_ERR_INVALID, "shards is");
    check_refused(weft_shape_from_shards(mesh, 1, p, sizes, NULL), WEFT_ERR_INVALID, "shape is");
    check_refused(weft_spec_order_to_strides(NULL, &out), WEFT_ERR_INVALID, "spec is NULL");
    check_refused(weft_spec_order_to_strides(spec, NULL), WEFT_ERR_INVALID, "out is NULL");
    check_refused(weft_spec_strides_to_order(NULL, &out), WEFT_ERR_INVALID, "spec is NULL");
    check_refused(weft_spec_strides_to_order(spec, NULL), WEFT_ERR_INVALID, "out is NULL");
    ck_assert_ptr_null(out);
    weft_spec_release(&spec);
}
