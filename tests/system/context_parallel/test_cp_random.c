/* Forward and backward of random attentions on random meshes of threads, compared with one rank's.
 */
#include "case.h"

#include "support/expect.h"
#include "support/suite.h"

static weft_status rank_main(void *unused)
{
    weft_context *ctx;
    weft_status status;

    (void)unused;
    EXPECT(weft_init(NULL, &ctx) == WEFT_OK);
    status = run_case(ctx);
    weft_context_release(&ctx);
    return status;
}

START_TEST(every_variant_equals_one_rank)
{
    struct random r = random_begin("test_cp_random");
    int cases = test_cases(120);

    for (int i = 0; i < cases; i++) {
        int32_t ranks = random_in(&r, 1, 4), others = random_chance(&r, 4) ? 2 : 1;
        weft_status status;

        draw_case(&r, ranks, others);
        status = weft_threads_run(ranks * others, rank_main, NULL);
        ck_assert_msg(status == WEFT_OK, "WEFT_TEST_SEED=%llu case %d: %s: %s",
                      (unsigned long long)r.seed, i, case_text(), weft_last_error());
        reference_free(&drawn.reference);
    }
}
END_TEST

SUITE(cp_random, every_variant_equals_one_rank)
