#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

TEST(equal_meshes_are_one_object)
{
    weft_mesh *a = mesh_of("2x4"), *b = mesh_of("2x4@0-7"), *c = mesh_of("2x4@0,1,2,3,4,5,6,7");
    weft_mesh *named = mesh_of("dp=2,tp=4"), *hosts = mesh_of("2x4/4"), *wide = mesh_of("4x2");

    ck_assert_ptr_eq(a, b);
    ck_assert_ptr_eq(a, c);
    ck_assert_ptr_ne(a, named);
    ck_assert_ptr_ne(a, hosts);
    ck_assert_ptr_ne(a, wide);
    ck_assert_uint_eq(weft_mesh_hash(a), weft_mesh_hash(b));
    ck_assert_uint_ne(weft_mesh_hash(a), weft_mesh_hash(named));
    weft_mesh_release(&a);
    weft_mesh_release(&b);
    weft_mesh_release(&c);
    weft_mesh_release(&named);
    weft_mesh_release(&hosts);
    weft_mesh_release(&wide);
    ck_assert_ptr_null(wide);
    weft_mesh_release(&wide);
    weft_mesh_release(NULL);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(a_hash_is_the_same_on_every_machine)
{
    OWNED(weft_mesh) *mesh = mesh_of("dp=2,tp=4@8-15/4"), *listed = mesh_of("2x2@0,2,3,1");

    ck_assert_uint_eq(weft_mesh_hash(mesh), UINT64_C(0x7dbe1e8d15f4e8a9));
    ck_assert_uint_eq(weft_mesh_hash(listed), UINT64_C(0xbd1e66611b1aae2));
}

TEST(a_million_ranks_take_the_memory_of_eight)
{
    int64_t live = wf_mem_live();
    weft_mesh *small = mesh_of("2x4"), *large = mesh_of("1024x1024"), *spread, *list;

    ck_assert_int_eq(wf_mem_live(), live + 2);
    ck_assert_int_eq(weft_mesh_size(large), 1 << 20);
    ck_assert_ptr_null(large->ranks);
    spread = mesh_of("2x2@0-1,4-5");
    ck_assert_ptr_null(spread->ranks);
    list = mesh_of("2x2@0,1,5,4");
    ck_assert_ptr_nonnull(list->ranks);
    weft_mesh_release(&small);
    weft_mesh_release(&large);
    weft_mesh_release(&spread);
    weft_mesh_release(&list);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(strides_are_found_in_lists)
{
    static const struct {
        const char *text;
        bool regular;
    } cases[] = {
        {"4@0,2,4,6", true},
        {"2x2@0,4,1,5", true},           /* the second axis has the longer stride */
        {"4@0,1,4,5", true},             /* an axis with two strides */
        {"8@0,1,4,5,16,17,20,21", true}, /* and with three */
        {"2x1x2@3,4,7,8", true},
        {"1@5", true},
        {"4@3,2,1,0", false},       /* downward */
        {"4@0,1,2,4", false},       /* no stride */
        {"3x2@0,3,2,5,4,7", false}, /* strides that do not nest */
        {"6@0,1,2,3,10,11", false},
        {"2x2@0,1,2,4", false},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_mesh) *mesh = mesh_of(cases[i].text);
        ck_assert_msg((mesh->ranks == NULL) == cases[i].regular, "%s", cases[i].text);
    }
}

TEST(text_that_is_not_a_mesh_is_refused)
{
    static const char *const same[] = {"a", "a"}, *const odd[] = {"a", "1b"};
    static const char *const missing[] = {"a", NULL};
    static const char *const lengthy[] = {"a", "a234567890123456789012345678901z"};
    static const int32_t ok[] = {2, 2}, zero[] = {2, 0}, negative[] = {-1, 2};
    static const int32_t huge[] = {65536, 65536, 65536};
    static const int32_t twice[] = {0, 1, 1, 3}, below[] = {0, -1, 2, 3};
    const weft_mesh_options with_same = {.struct_size = sizeof(weft_mesh_options), .names = same},
                            with_odd = {.struct_size = sizeof(weft_mesh_options), .names = odd};
    const weft_mesh_options with_missing = {.struct_size = sizeof(weft_mesh_options),
                                            .names = missing},
                            with_lengthy = {.struct_size = sizeof(weft_mesh_options),
                                            .names = lengthy};
    const weft_mesh_options with_twice = {.struct_size = sizeof(weft_mesh_options), .ranks = twice},
                            with_below = {.struct_size = sizeof(weft_mesh_options), .ranks = below};
    const weft_mesh_options with_hosts = {.struct_size = sizeof(weft_mesh_options),
                                          .devices_per_host = -1};
    const weft_mesh_options short_struct = {.struct_size = 0};
    const struct {
        int32_t axes;
        const int32_t *sizes;
        const weft_mesh_options *options;
        const char *text;
    } cases[] = {
        {0, ok, NULL, "the mesh has 0 axes"},
        {9, ok, NULL, "the mesh has 9 axes"},
        {2, zero, NULL, "mesh axis 1 has size 0"},
        {2, negative, NULL, "mesh axis 0 has size -1"},
        {2, huge, NULL, "mesh axis 1 makes a mesh of 4294967296 ranks"},
        {3, huge, NULL, "mesh axis 1 makes"},
        {2, ok, &with_same, "mesh axes 0 and 1 are both named \"a\""},
        {2, ok, &with_odd, "mesh axis 1: \"1b\" is not a name"},
        {2, ok, &with_missing, "mesh axis 1 has no name"},
        {2, ok, &with_lengthy, "has 32 bytes; the maximum is 31"},
        {2, ok, &with_twice, "rank 1 is given twice, at positions 1 and 2 of the list"},
        {2, ok, &with_below, "rank -1, at position 1 of the list, is negative"},
        {2, ok, &with_hosts, "weft_mesh_options.devices_per_host is -1"},
        {2, ok, &short_struct,
         "weft_mesh_options.struct_size is 0; set it to sizeof(weft_mesh_options)"},
        {2, NULL, NULL, "weft_mesh_create: sizes is NULL"},
    };
    weft_mesh *mesh = NULL;

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_refused(weft_mesh_create(cases[i].axes, cases[i].sizes, cases[i].options, &mesh),
                      WEFT_ERR_INVALID, cases[i].text);
    ck_assert_ptr_null(mesh);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(the_largest_mesh_and_the_largest_rank_work)
{
    OWNED(weft_mesh) *all = mesh_of("2147483647"), *last = mesh_of("2@2147483646-2147483647");
    int32_t coord;

    ck_assert(weft_mesh_coord_of(all, INT32_MAX - 1, &coord) == WEFT_OK);
    ck_assert_int_eq(coord, INT32_MAX - 1);
    ck_assert(weft_mesh_coord_of(all, INT32_MAX, &coord) != WEFT_OK);
    ck_assert(weft_mesh_coord_of(last, INT32_MAX, &coord) == WEFT_OK);
    ck_assert_int_eq(coord, 1);
}

TEST(creation_survives_every_allocation_failure)
{
    static const int32_t sizes[] = {2, 2}, ranks[] = {3, 1, 0, 2};
    static const char *const names[] = {"dp", "tp"};
    weft_mesh_options options = {.struct_size = sizeof options, .names = names, .ranks = ranks};
    weft_mesh *mesh = NULL;

    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_mesh_create(2, sizes, &options, &mesh), weft_mesh_release(&mesh)), 4);
}
