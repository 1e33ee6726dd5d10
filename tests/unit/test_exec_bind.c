/* What binding works out by itself; tests/redistribute has what ranks do together. */
#include "support/lone_rank.h"
#include "support/suite.h"

static void check_group(const char *mesh_text, uint32_t axes, int32_t rank, const char *want)
{
    weft_mesh *mesh = mesh_of(mesh_text);
    int32_t *ranks = NULL, count = 0;
    char have[64] = "";

    ck_assert_int_eq(wf_group_list(mesh, axes, rank, &ranks, &count), WEFT_OK);
    for (int32_t i = 0; i < count; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%d", i > 0 ? " " : "",
                 ranks[i]);
    ck_assert_str_eq(have, want);
    wf_free(ranks);
    weft_mesh_release(&mesh);
}

START_TEST(a_group_is_who_differs_in_the_steps_axes)
{
    check_group("2x3", 1, 4, "1 4");
    check_group("2x3", 2, 4, "3 4 5");
    check_group("2x3", 3, 4, "0 1 2 3 4 5");
    check_group("2x2@3,1,2,0", 2, 2, "2 0");
    check_group("2x3", 3, 6, "");
}
END_TEST

START_TEST(a_communicator_must_have_all_ranks_and_kernels)
{
    weft_spec *from = spec_of("4", "f32[8] S(0)"), *to = spec_of("2@3-4", "f32[8] R");
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    check_refused(wf_bind_check(from, to, &lone.comm), WEFT_ERR_INVALID,
                  "number ranks up to 4, so they want 5");
    lone.comm.size = 5;
    check_refused(wf_bind_check(from, to, &lone.comm), WEFT_ERR_UNSUPPORTED, "no kernels");
    weft_spec_release(&from);
    weft_spec_release(&to);
    lone_end(&lone);
}
END_TEST

SUITE(exec_bind, a_group_is_who_differs_in_the_steps_axes,
      a_communicator_must_have_all_ranks_and_kernels)
