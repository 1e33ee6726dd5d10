#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>

TEST(equal_specs_are_one_object)
{
    weft_spec *a = spec_of("2x4", "f32[8,8] S(0),R"), *b = spec_of("2x4", "f32[8, 8] S(0)[0], R");
    static const char *const others[] = {"f32[8,8] R,S(0)", "f32[8,8] S(1),R",   "bf16[8,8] S(0),R",
                                         "f32[8,9] S(0),R", "f32[8,8,1] S(0),R", "f32[8,8] S(0),P"};
    weft_spec *kept;

    ck_assert_ptr_eq(a, b);
    ck_assert_uint_eq(weft_spec_hash(a), weft_spec_hash(b));
    for (size_t i = 0; i < WF_COUNT(others); i++) {
        OWNED(weft_spec) *other = spec_of("2x4", others[i]);
        ck_assert_ptr_ne(a, other);
    }
    weft_spec_release(&b);
    b = spec_of("dp=2,tp=4", "f32[8,8] S(0),R");
    ck_assert_ptr_ne(a, b);
    kept = weft_spec_retain(a);
    weft_spec_release(&a);
    ck_assert_str_eq(weft_mesh_axis_name(weft_spec_mesh(kept), 0), "");
    weft_spec_release(&kept);
    weft_spec_release(&b);
    weft_spec_release(&b);
    weft_spec_release(NULL);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(a_spec_keeps_its_mesh)
{
    OWNED(weft_spec) *spec =
        spec_of("2x2@3,1,2,0", "f32[8] S(0),R"); /* its only other holder is lost */
    ck_assert_int_eq(weft_mesh_rank_at(weft_spec_mesh(spec), 0), 3);
}

TEST(a_spec_tells_what_it_was_made_of)
{
    OWNED(weft_spec) *spec = spec_of("2x4", "bf16[6,5] S(1),P(max)"),
                     *empty = spec_of("2", "u8[0,7] R");

    ck_assert_uint_eq(weft_spec_dtype(spec), WEFT_DTYPE_BF16);
    ck_assert_int_eq(weft_spec_dims(spec), 2);
    ck_assert_int_eq(weft_spec_shape(spec)[1], 5);
    ck_assert_int_eq(weft_spec_elements(spec), 30);
    ck_assert_int_eq(weft_spec_elements(empty), 0);
    ck_assert_uint_eq(weft_spec_placements(spec)[0].kind, WEFT_PLACE_SHARD);
    ck_assert_uint_eq(weft_spec_placements(spec)[1].reduction, WEFT_REDUCE_MAX);
}

TEST(a_hash_is_the_same_on_every_machine)
{
    OWNED(weft_spec) *spec = spec_of("dp=2,tp=4", "f32[4096,4096] S(0)[1],S(0)[0]");

    ck_assert_uint_eq(weft_spec_hash(spec), UINT64_C(0x3980e1aa2fcfb1f9));
}

TEST(sizes_stay_below_two_to_the_63)
{
    OWNED(weft_mesh) *mesh = mesh_of("2");
    OWNED(weft_spec) *spec = NULL;

    check_refused(weft_spec_parse(mesh, "f32[2305843009213693952] R", &spec), WEFT_ERR_INVALID,
                  "dimension 0, of size 2305843009213693952, makes the tensor of f32");
    check_refused(weft_spec_parse(mesh, "u8[4294967296,0,4294967296] R", &spec), WEFT_ERR_INVALID,
                  "dimension 2");
    ck_assert_ptr_null(spec);
    ck_assert_int_eq(weft_spec_parse(mesh, "f32[2305843009213693951] R", &spec), WEFT_OK);
}

TEST(text_that_is_not_a_tensor_is_refused)
{
    static const int64_t shape[9] = {1, -1, 1, 1, 1, 1, 1, 1, 1};
    OWNED(weft_mesh) *mesh = mesh_of("2");
    weft_placement p = {.kind = WEFT_PLACE_REPLICATE};
    OWNED(weft_spec) *spec = NULL;

    check_refused(weft_spec_create(mesh, 99, 1, shape, &p, &spec), WEFT_ERR_INVALID,
                  "dtype 99 is unknown; the dtypes are 0 to 16");
    check_refused(weft_spec_create(mesh, WEFT_DTYPE_F32, 2, shape, &p, &spec), WEFT_ERR_INVALID,
                  "dimension 1 has size -1");
    check_refused(weft_spec_create(mesh, WEFT_DTYPE_F32, 9, shape, &p, &spec), WEFT_ERR_INVALID,
                  "the tensor has 9 dimensions; the maximum is 8");
    check_refused(weft_spec_create(mesh, WEFT_DTYPE_F32, -1, shape, &p, &spec), WEFT_ERR_INVALID,
                  "the tensor has -1 dimensions");
    ck_assert_int_eq(weft_spec_create(mesh, WEFT_DTYPE_F32, 0, NULL, &p, &spec), WEFT_OK);
}

TEST(every_dtype_makes_a_spec)
{
    OWNED(weft_mesh) *mesh = mesh_of("2");
    weft_placement p = {.kind = WEFT_PLACE_SHARD};
    char text[64], want[64];

    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        OWNED(weft_spec) *spec = NULL;
        ck_assert_int_eq(weft_spec_create(mesh, dtype, 1, (const int64_t[]){8}, &p, &spec),
                         WEFT_OK);
        ck_assert_int_eq(weft_spec_print(spec, text, sizeof text, NULL), WEFT_OK);
        snprintf(want, sizeof want, "%s[8] S(0)", weft_dtype_name(dtype));
        ck_assert_str_eq(text, want);
    }
}

TEST(creation_survives_every_allocation_failure)
{
    static const weft_placement placements[] = {{.kind = WEFT_PLACE_SHARD},
                                                {.kind = WEFT_PLACE_REPLICATE}};
    static const int64_t shape[] = {8};
    OWNED(weft_mesh) *mesh = mesh_of("2x4");
    weft_spec *spec = NULL;

    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_spec_create(mesh, WEFT_DTYPE_F32, 1, shape, placements, &spec),
                         weft_spec_release(&spec)),
        1);
}

TEST(a_known_spec_costs_no_memory)
{
    OWNED(weft_spec) *spec = spec_of("2x4", "f32[8,8] S(0),R"), *again = NULL;
    uint64_t made;

    wf_mem_fail_at(0);
    ck_assert_int_eq(weft_spec_parse(weft_spec_mesh(spec), "f32[8,8] S(0),R", &again), WEFT_OK);
    made = wf_mem_made();
    ck_assert_uint_eq(made, 0);
}

static void *make_and_drop(void *argument)
{
    static const char *const texts[] = {"f32[8] S(0),R", "f32[8] R,S(0)", "f32[9] S(0),S(0)"};

    (void)argument;
    for (size_t i = 0; i < 5000; i++) {
        weft_mesh *mesh;
        weft_spec *spec, *same;
        weft_shard shard;
        if (weft_mesh_parse(i % 2 == 0 ? "2x2" : "2x2@3,1,2,0", &mesh) != WEFT_OK) return "mesh";
        if (weft_spec_parse(mesh, texts[i % 3], &spec) != WEFT_OK) return "spec";
        if (weft_spec_parse(mesh, texts[i % 3], &same) != WEFT_OK || same != spec) return "same";
        weft_mesh_release(&mesh);
        weft_spec_release(&same);
        weft_spec_shard(spec, 3, &shard);
        if (!shard.member) return "shard";
        weft_spec_release(&spec);
    }
    return NULL;
}

TEST(threads_share_meshes_and_specs)
{
    pthread_t threads[4];

    for (size_t i = 0; i < WF_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make_and_drop, NULL), 0);
    for (size_t i = 0; i < WF_COUNT(threads); i++) {
        void *complaint;
        ck_assert_int_eq(pthread_join(threads[i], &complaint), 0);
        ck_assert_msg(complaint == NULL, "%s", (const char *)complaint);
    }
    ck_assert_int_eq(wf_mem_live(), 0);
}
