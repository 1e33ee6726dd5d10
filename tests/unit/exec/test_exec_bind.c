/* What binding works out by itself; tests/system/redistribute has what ranks do together. */
#include "support/lone_rank.h"
#include "support/suite.h"

START_TEST(a_communicator_must_have_all_ranks_and_kernels)
{
    weft_spec *from = spec_of("4", "f32[8] S(0)"), *to = spec_of("2@3-4", "f32[8] R");
    struct lone_rank lone;

    lone_begin(&lone, 0, 4);
    check_refused(wf_bind_check("weft_plan_bind", from, to, &lone.comm), WEFT_ERR_INVALID,
                  "have ranks up to 4 and need 5 ranks");
    lone.comm.size = 5;
    check_refused(wf_bind_check("weft_plan_bind", from, to, &lone.comm), WEFT_ERR_UNSUPPORTED,
                  "no kernel table");
    weft_spec_release(&from);
    weft_spec_release(&to);
    lone_end(&lone);
}
END_TEST

SUITE(exec_bind, a_communicator_must_have_all_ranks_and_kernels)
