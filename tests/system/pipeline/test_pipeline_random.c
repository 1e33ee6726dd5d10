/* Every schedule, with random numbers of ranks, stages and microbatches, on ranks that are threads:
 * gradients have the bits of a serial loop. */
#include "model.h"

#include "support/suite.h"
#include "weft/launch.h"

static weft_status rank_main(void *unused)
{
    OWNED(weft_context) *ctx = NULL;
    weft_status status;

    (void)unused;
    WF_TRY(weft_init(NULL, &ctx));
    status = run_drawn(weft_world(ctx));
    return status;
}

TEST(every_schedule_has_the_bits_of_a_serial_loop)
{
    struct random r = random_begin("test_pipeline_random");
    int cases = test_cases(5);

    for (int i = 0; i < cases; i++)
        for (uint32_t kind = 0; weft_schedule_known(kind) != NULL; kind++) {
            int32_t ranks = random_in(&r, 1, 5);
            weft_status status;

            draw_pipeline(&r, ranks, kind);
            status = weft_threads_run(ranks, rank_main, NULL);
            ck_assert_msg(status == WEFT_OK, "WEFT_TEST_SEED=%llu case %d: %s: %s",
                          (unsigned long long)r.seed, i, drawn_text(), weft_last_error());
            weft_schedule_release(&drawn.schedule);
        }
}

/* Any order of actions that is valid, and stages on any ranks. */
TEST(random_orders_have_the_bits_of_a_serial_loop)
{
    struct random r = random_begin("test_pipeline_random");
    int cases = test_cases(30);

    for (int i = 0; i < cases; i++) {
        int32_t ranks = random_in(&r, 2, 5);
        weft_status status;

        draw_pipeline(&r, ranks, UINT32_MAX);
        status = weft_threads_run(ranks, rank_main, NULL);
        ck_assert_msg(status == WEFT_OK, "WEFT_TEST_SEED=%llu case %d: %s: %s",
                      (unsigned long long)r.seed, i, drawn_text(), weft_last_error());
        weft_schedule_release(&drawn.schedule);
    }
}
