/* Arguments of one-sided operations are checked at their limits; all comparisons. */
#include "plug_symm.h"

#include "support/suite.h"

TEST(peers_and_signals_have_limits)
{
    ck_assert_int_eq(plug_check_peer("put", 0, 4), WEFT_OK);
    ck_assert_int_eq(plug_check_peer("put", 3, 4), WEFT_OK);
    ck_assert_int_eq(plug_check_peer("put", -1, 4), WEFT_ERR_INVALID);
    ck_assert_int_eq(plug_check_peer("put", 4, 4), WEFT_ERR_INVALID);
    ck_assert_str_eq(plug_last_text(), "put: peer is 4; the communicator has 4 ranks");
    ck_assert_int_eq(plug_check_signal("signal", 6, WEFT_SIGNAL_ADD, 7), WEFT_OK);
    ck_assert_int_eq(plug_check_signal("signal", 7, WEFT_SIGNAL_ADD, 7), WEFT_ERR_INVALID);
    ck_assert_int_eq(plug_check_signal("signal", 0, 9, 7), WEFT_ERR_UNSUPPORTED);
    ck_assert_int_eq(plug_check_compare("wait_signal", WEFT_COMPARE_LT), WEFT_OK);
    ck_assert_int_eq(plug_check_compare("wait_signal", WEFT_COMPARE_LT + 1), WEFT_ERR_UNSUPPORTED);
}

TEST(spans_lie_in_the_window)
{
    ck_assert_int_eq(plug_check_span("get", 92, 8, 100), WEFT_OK);
    ck_assert_int_eq(plug_check_span("get", 100, 0, 100), WEFT_OK);
    ck_assert_int_eq(plug_check_span("get", 93, 8, 100), WEFT_ERR_INVALID);
    ck_assert_int_eq(plug_check_span("get", UINT64_MAX, 2, 100), WEFT_ERR_INVALID);
    ck_assert_int_eq(plug_check_span("get", 2, UINT64_MAX, 100), WEFT_ERR_INVALID);
    ck_assert_int_eq(plug_check_memory("get", NULL, 0), WEFT_OK);
    ck_assert_int_eq(plug_check_memory("get", NULL, 1), WEFT_ERR_INVALID);
}

TEST(requests_for_a_window_are_compared)
{
    struct plug_window_request a = {0, 8, 4096}, b = {5, 8, 4096};

    ck_assert_int_eq(plug_check_same_window(a, b), WEFT_OK);
    b.signals = 9;
    ck_assert_int_eq(plug_check_same_window(a, b), WEFT_ERR_MISMATCH);
    ck_assert_str_eq(plug_last_text(), "window: rank 0 asks for 4096 bytes and 8 signals, rank 5 "
                                       "for 4096 bytes and 9 signals");
    b.signals = 8;
    b.bytes = 1;
    ck_assert_int_eq(plug_check_same_window(a, b), WEFT_ERR_MISMATCH);
}

TEST(requests_of_all_ranks_are_compared_with_the_first)
{
    struct entry {
        int32_t status;
        struct plug_window_request request;
    } all[3] = {{0, {4, 8, 64}}, {0, {6, 8, 64}}, {0, {9, 8, 64}}};

    ck_assert_int_eq(plug_check_same_windows(&all->request, sizeof *all, 3), WEFT_OK);
    all[2].request.bytes = 65;
    ck_assert_int_eq(plug_check_same_windows(&all->request, sizeof *all, 2), WEFT_OK);
    ck_assert_int_eq(plug_check_same_windows(&all->request, sizeof *all, 3), WEFT_ERR_MISMATCH);
    ck_assert_str_eq(plug_last_text(), "window: rank 4 asks for 64 bytes and 8 signals, rank 9 "
                                       "for 65 bytes and 8 signals");
}

TEST(signals_compare_as_named)
{
    static const struct {
        uint32_t compare;
        bool below, equal, above;
    } cases[] = {{WEFT_COMPARE_EQ, false, true, false}, {WEFT_COMPARE_NE, true, false, true},
                 {WEFT_COMPARE_GE, false, true, true},  {WEFT_COMPARE_GT, false, false, true},
                 {WEFT_COMPARE_LE, true, true, false},  {WEFT_COMPARE_LT, true, false, false}};

    for (size_t i = 0; i < PLUG_LENGTH(cases); i++) {
        ck_assert_int_eq(kit_signal_matches(4, cases[i].compare, 5), cases[i].below);
        ck_assert_int_eq(kit_signal_matches(5, cases[i].compare, 5), cases[i].equal);
        ck_assert_int_eq(kit_signal_matches(UINT64_MAX, cases[i].compare, 5), cases[i].above);
    }
}
