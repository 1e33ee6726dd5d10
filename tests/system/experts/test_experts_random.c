/* Dispatch and combine of random counts on random meshes of threads, compared with a serial
 * reference. */
#include "case.h"

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

START_TEST(tokens_reach_their_experts_and_come_back)
{
    struct random r = random_begin("test_experts_random");
    int cases = test_cases(40);

    for (int i = 0; i < cases; i++) {
        int32_t ranks = random_in(&r, 1, 4), others = random_chance(&r, 4) ? 2 : 1;
        weft_status status;

        draw_case(&r, ranks, others);
        status = weft_threads_run(ranks * others, rank_main, NULL);
        ck_assert_msg(status == WEFT_OK, "WEFT_TEST_SEED=%llu case %d: %s: %s",
                      (unsigned long long)r.seed, i, case_text(), weft_last_error());
    }
}
END_TEST

SUITE(experts_random, tokens_reach_their_experts_and_come_back)
