/* Makespan, idle share and peak of the known schedules. */
#include "support/suite.h"
#include "weft/schedule.h"

#include <math.h>
#include <string.h>

static weft_timeline_info measure(const weft_schedule *schedule)
{
    weft_timeline_info info = {.struct_size = sizeof info};
    weft_timeline *timeline = NULL;

    ck_assert_int_eq(weft_timeline_create(schedule, NULL, &timeline), WEFT_OK);
    ck_assert_int_eq(weft_timeline_get(timeline, &info), WEFT_OK);
    weft_timeline_release(&timeline);
    return info;
}

/* The figures of compute actions; messages and collectives that take no time change none. */
static weft_timeline_info figures(const char *name, int32_t ranks, int32_t chunks,
                                  int32_t microbatches)
{
    static const uint32_t lowerings[] = {0, WEFT_LOWER_SHARDED | WEFT_LOWER_REDUCE};
    weft_timeline_info info, lowered_info;
    weft_schedule *schedule = NULL, *lowered = NULL;
    weft_status status = weft_schedule_create(name, ranks, chunks, microbatches, &schedule);

    ck_assert_msg(status == WEFT_OK, "weft schedule %s -n %d --chunks %d --microbatches %d: %s",
                  name, ranks, chunks, microbatches, weft_last_error());
    info = measure(schedule);
    for (size_t i = 0; i < sizeof lowerings / sizeof lowerings[0]; i++) {
        ck_assert_int_eq(weft_schedule_lower(schedule, lowerings[i], &lowered), WEFT_OK);
        lowered_info = measure(lowered);
        ck_assert_msg(
            lowered_info.makespan == info.makespan && lowered_info.peak == info.peak,
            "weft schedule %s -n %d --chunks %d --microbatches %d --lower: %llu and %llu, not %llu "
            "and %llu",
            name, ranks, chunks, microbatches, (unsigned long long)lowered_info.makespan,
            (unsigned long long)lowered_info.peak, (unsigned long long)info.makespan,
            (unsigned long long)info.peak);
        weft_schedule_release(&lowered);
    }
    weft_schedule_release(&schedule);
    return info;
}

/* Figures that other implementations of these schedules have. */
TEST(figures_equal_published_ones)
{
    static const struct {
        const char *name;
        int32_t ranks, microbatches;
        uint64_t makespan;
        double idle;
        uint64_t peak;
    } known[] = {
        {"gpipe", 4, 8, 33, .273, 8},
        {"gpipe", 4, 16, 57, .158, 16},
        {"gpipe", 8, 32, 117, .180, 32},
        {"1f1b", 4, 8, 33, .273, 4},
        {"1f1b", 4, 16, 57, .158, 4},
        {"1f1b", 8, 32, 117, .180, 8},
        {"interleaved", 4, 8, 57, .158, 11},
        {"interleaved", 4, 16, 105, .086, 11},
        {"interleaved", 8, 32, 213, .099, 23},
        {"zb1p", 4, 8, 51, .059, 8},
        {"zb1p", 4, 16, 99, .030, 8},
        {"zb1p", 8, 32, 199, .035, 16},
        {"zbv", 4, 8, 51, .059, 8},
        {"zbv", 4, 16, 99, .030, 8},
        {"zbv", 8, 32, 199, .035, 16},
        {"dualpipev", 4, 8, 51, .059, 9},
        {"dualpipev", 4, 16, 99, .030, 9},
        {"dualpipev", 8, 32, 199, .035, 17},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        weft_timeline_info info = figures(known[i].name, known[i].ranks, 0, known[i].microbatches);
        ck_assert_msg(info.makespan == known[i].makespan && info.peak == known[i].peak &&
                          fabs(info.idle_share - known[i].idle) < .00075,
                      "weft schedule %s -n %d --microbatches %d: %llu, %.4f, %llu", known[i].name,
                      known[i].ranks, known[i].microbatches, (unsigned long long)info.makespan,
                      info.idle_share, (unsigned long long)info.peak);
    }
}

static void check_idle(const char *name, int32_t ranks, int32_t chunks, int32_t microbatches,
                       double work)
{
    weft_timeline_info info = figures(name, ranks, chunks, microbatches);
    double want = (ranks - 1) / (work + ranks - 1);

    ck_assert_msg(fabs(info.idle_share - want) < 1e-12,
                  "weft schedule %s -n %d --chunks %d --microbatches %d: idle %.6f, not %.6f", name,
                  ranks, chunks, microbatches, info.idle_share, want);
}

TEST(idle_shares_follow_their_formulas)
{
    for (int32_t p = 1; p <= 9; p++)
        for (int32_t m = 1; m <= 40; m++) {
            check_idle("gpipe", p, 1, m, m);
            check_idle("1f1b", p, 1, m, m);
        }
    for (int32_t p = 2; p <= 8; p++)
        for (int32_t rounds = 1; rounds <= 4; rounds++) {
            int32_t m = rounds * p;
            for (int32_t v = 1; v <= 4; v++) {
                check_idle("interleaved", p, v, m, (double)v * m);
                check_idle("looped-bfs", p, v, m, (double)v * m);
            }
            if (rounds < 2) continue;
            check_idle("zb1p", p, 2, m, 6 * (double)m);
            check_idle("zbv", p, 2, m, 6 * (double)m);
        }
}

/* Whatever the numbers, a schedule is complete and ends, or its creation says why not. */
TEST(schedules_of_all_sizes_are_valid)
{
    for (uint32_t k = 0; weft_schedule_known(k) != NULL; k++)
        for (int32_t p = 1; p <= 7; p++)
            for (int32_t v = 0; v <= 3; v++)
                for (int32_t m = 1; m <= 17; m++) {
                    weft_schedule *schedule = NULL, *lowered = NULL;
                    weft_status status =
                        weft_schedule_create(weft_schedule_known(k), p, v, m, &schedule);
                    if (status != WEFT_OK) {
                        ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_schedule_create"));
                        continue;
                    }
                    for (uint32_t flags = 0; flags < 16; flags++) {
                        ck_assert_msg(
                            weft_schedule_lower(schedule, flags, &lowered) == WEFT_OK,
                            "weft schedule %s -n %d --chunks %d --microbatches %d, %u: %s",
                            weft_schedule_known(k), p, v, m, flags, weft_last_error());
                        weft_schedule_release(&lowered);
                    }
                    weft_schedule_release(&schedule);
                }
}

TEST(numbers_without_a_schedule_are_refused)
{
    static const struct {
        const char *name;
        int32_t ranks, chunks, microbatches;
        const char *text;
    } wrong[] = {
        {"gpipe", 4, 2, 8, "2 chunks; gpipe has exactly 1"},
        {"zbv", 4, 3, 8, "3 chunks; zbv has exactly 2"},
        {"zb1p", 4, -1, 8, "-1 chunks; zb1p has at least 1"},
        {"dualpipev", 4, 2, 7, "needs at least 8 microbatches, not 7"},
        {"interleaved", 4, 2, 14, "in 3 rounds"},
        {"gpipe", 0, 1, 8, "0 ranks"},
        {"gpipe", 5000, 1, 8, "5000 ranks; from 1 to 4096"},
        {"gpipe", 4, 1, 0, "0 microbatches"},
        {"looped-bfs", 4096, INT32_MAX, INT32_MAX, "more than"},
        /* 2 or 3 actions, and up to 4 messages, for each of 5,040,000: the most is 33,554,432 */
        {"interleaved", 4, 90000, 14, "in 3 rounds"},
        {"zb1p", 4, 90000, 14, "more than"},
        {"1f1b", 4, 1, 2000000, "actions, sends and receives included"},
        {"dualpipev", 4096, 2, 100, "needs at least 8192 microbatches"},
        {"dualpipev", 1148, 2, 2296, "more than"}, /* 31,611,328 and the halves of backwards */
        {"gpipe", 4096, 1, 4097, "more than"},
        {"1F1B", 4, 1, 8, "did you mean 1f1b?"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weft_schedule *schedule = NULL;
        ck_assert_int_ne(weft_schedule_create(wrong[i].name, wrong[i].ranks, wrong[i].chunks,
                                              wrong[i].microbatches, &schedule),
                         WEFT_OK);
        ck_assert_msg(strstr(weft_last_error(), wrong[i].text) != NULL, "%s", weft_last_error());
        ck_assert_ptr_null(schedule);
    }
}

/* 64 ranks and 1,024 microbatches: every schedule takes work in proportion to its actions. */
TEST(large_schedules_are_made)
{
    weft_timeline_info info = figures("zbv", 64, 2, 1024);

    ck_assert_uint_eq(info.busy, UINT64_C(6) * 1024 * 64);
    ck_assert_uint_eq(info.peak, 128);
    info = figures("interleaved", 64, 2, 1024);
    ck_assert_uint_eq(info.makespan, 6 * 1024 + 3 * 63);
}
