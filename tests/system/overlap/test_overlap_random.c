/* Gathers and reduce-scatters that overlap, on threads, compared with a serial reference and with
 * the plain sequence. */
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

START_TEST(every_row_is_computed_once)
{
    struct random r = random_begin("test_overlap_random");
    int cases = test_cases(40);

    for (int i = 0; i < cases; i++) {
        int32_t ranks = random_in(&r, 1, RANKS_MOST);
        weft_status status;

        draw_case(&r);
        status = weft_threads_run(ranks, rank_main, NULL);
        ck_assert_msg(status == WEFT_OK, "WEFT_TEST_SEED=%llu case %d: %d ranks, %s: %s",
                      (unsigned long long)r.seed, i, ranks, case_text(), weft_last_error());
    }
}
END_TEST

SUITE(overlap_random, every_row_is_computed_once)
