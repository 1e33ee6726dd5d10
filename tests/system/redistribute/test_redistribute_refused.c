/* Binding with arguments that one rank refuses. */
#include "comm/comm.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

/* The arguments of rank 2 are refused.  All ranks get its error, and the next call pairs with the
 * next call of the others. */
TEST_ON_RANKS(4, arguments_that_one_rank_refuses_are_refused_on_every_rank)
{
    static const char *const parts[] = {"rank 2: weft_plan_bind: plan is NULL",
                                        "rank 2: weft_plan_bind: out is NULL",
                                        "rank 2: weft_bind_options.struct_size is 0", "rank 2: "};
    weft_spec *from = spec_of("4", "f32[8,8] S(0)"), *to = spec_of("4", "f32[8,8] R");
    weft_plan *plan = NULL;
    weft_context *context = NULL;

    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 4; i++) {
        struct {
            weft_bind_options known;
            uint64_t newer;
        } options = {{.struct_size = sizeof options}, 1};
        bool odd = weft_rank(context) == 2;
        weft_bound *bound = NULL;
        weft_status status;

        if (i == 2) options.known.struct_size = 0;
        status =
            weft_plan_bind(odd && i == 0 ? NULL : plan, weft_world(context),
                           odd && i >= 2 ? &options.known : NULL, odd && i == 1 ? NULL : &bound);
        EXPECT(status == (i == 3 ? WEFT_ERR_VERSION : WEFT_ERR_INVALID) && bound == NULL);
        EXPECT(strstr(weft_last_error(), parts[i]) != NULL);
        WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &bound));
        weft_bound_release(&bound);
    }
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_plan_release(&plan);
    weft_context_release(&context);
    return WEFT_OK;
}
