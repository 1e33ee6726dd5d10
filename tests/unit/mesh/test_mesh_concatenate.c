#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

static weft_status concatenate(const char *within, const char *first, const char *second,
                               weft_mesh **out)
{
    OWNED(weft_mesh) *w = within != NULL ? mesh_of(within) : NULL, *a = mesh_of(first);
    OWNED(weft_mesh) *b = mesh_of(second);
    weft_status status = weft_mesh_concatenate(w, a, b, out);

    return status;
}

static void check_together(const char *within, const char *first, const char *second,
                           const char *want)
{
    OWNED(weft_mesh) *out = NULL;

    ck_assert_msg(concatenate(within, first, second, &out) == WEFT_OK, "%s", weft_last_error());
    check_mesh_is(out, want);
}

TEST(slices_put_together_are_the_larger_slice)
{
    check_together(NULL, "dp=2@0,4", "tp=2", "dp=2,tp=2@0,1,4,5");
    check_together(NULL, "dp=2@1,5", "tp=2@4-5", "dp=2,tp=2@0,1,4,5");
    check_together(NULL, "2x4", "2@0,8", "2x4x2@0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15");
}

TEST(ranks_without_strides_need_the_mesh_around_them)
{
    check_together("2x2@0,5,3,9", "2@0,3", "2@0,5", "2x2@0,5,3,9");
    check_together("2x2@0,5,3,9", "2@5,9", "2@3,9", "2x2@0,5,3,9");
}

TEST(strides_that_do_not_nest_make_a_list)
{
    check_together(NULL, "3@0-4:2", "2@0,3", "3x2@0,3,2,5,4,7");
}

TEST(what_does_not_cross_in_one_rank_is_refused)
{
    static const struct {
        const char *within, *first, *second, *text;
    } cases[] = {
        {NULL, "2", "2@2-3", "share no rank"},
        {NULL, "4", "2", "share ranks 0 and 1; they may share only one"},
        {NULL, "a=2", "2@1-2", "one of the meshes to concatenate has named axes"},
        {NULL, "a=2", "a=2@1-2", "both named \"a\""},
        {NULL, "2/4", "2@1-2", "4 and 0 devices per host"},
        {NULL, "1x1x1x1", "1x1x1x1x1", "the mesh has 9 axes"},
        {"2x2@0,5,3,9", "2@0,3", "2@0-1", "rank 1 of the second mesh is not in WITHIN"},
        {"2x2@0,5,3,9", "2@0,3", "2@0,9", "weft_mesh_concatenate: coordinate 2 on mesh axis 0"},
        {"4", "2@0,3", "2@0,8", "is not in WITHIN"},
        {NULL, "2@0,5", "2@1,5", "ranks 0 and 1 would give rank -4"},
    };
    weft_mesh *out = NULL;

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_refused(concatenate(cases[i].within, cases[i].first, cases[i].second, &out),
                      WEFT_ERR_INVALID, cases[i].text);
    ck_assert_ptr_null(out);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(concatenation_survives_every_allocation_failure)
{
    OWNED(weft_mesh) *within = mesh_of("2x2@0,5,3,9"), *first = mesh_of("2@0,3"),
                     *second = mesh_of("2@0,5"), *out = NULL;

    ALLOCATIONS_FAIL(weft_mesh_concatenate(within, first, second, &out), weft_mesh_release(&out));
}
