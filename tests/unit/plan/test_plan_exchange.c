#include "exec/exec.h"
#include "support/planning.h"
#include "support/suite.h"

static struct wf_price price_of(const char *mesh, const char *shape, const char *from,
                                const char *to, uint64_t *exact)
{
    struct wf_problem problem;
    struct wf_price price;
    struct wf_edge edge;
    struct wf_step step;
    struct pair pair;
    uint64_t sent;

    open_problem(&problem, &pair, mesh, shape, from, to);
    wf_edge_exchange(&problem, &problem.source, &edge);
    ck_assert_int_eq(wf_price_exchange(&problem, &problem.source, &edge, &price), WEFT_OK);
    step = (struct wf_step){.kind = WEFT_STEP_EXCHANGE, .from = pair.from, .to = pair.to};
    ck_assert_int_eq(wf_step_measure(&step, &sent, exact), WEFT_OK);
    close_pair(&pair);
    return price;
}

TEST(what_is_received_is_what_the_busiest_rank_reads)
{
    static const char *const pairs[][4] = {{"2x4", "16,16", "S(0),R", "R,S(1)"},
                                           {"2x4", "16,16", "S(0),S(1)", "S(1),S(0)"},
                                           {"2x4", "16,16", "P,S(0)", "S(1),R"},
                                           {"2x4", "16,16", "P,P", "S(0),R"},
                                           {"2x4", "16,16", "R,S(0)", "P,S(1)"},
                                           {"2x2x2", "8,8,8", "S(0),S(1),S(2)", "S(2),R,S(0)"},
                                           {"2x3", "36", "S(0)[1],S(0)[0]", "S(0),R"}};

    for (size_t i = 0; i < WF_COUNT(pairs); i++) {
        uint64_t exact;
        struct wf_price price =
            price_of(pairs[i][0], pairs[i][1], pairs[i][2], pairs[i][3], &exact);
        ck_assert_msg(price.received == exact, "%s %s -> %s: %llu, by counting %llu", pairs[i][0],
                      pairs[i][2], pairs[i][3], (unsigned long long)price.received,
                      (unsigned long long)exact);
    }
}

TEST(messages_that_lie_in_the_tensor_need_no_scratch)
{
    uint64_t exact, shard = 16 * 16 * 4 / 4;

    ck_assert_uint_eq(price_of("4", "16,16", "S(0)", "R", &exact).scratch, 0);
    ck_assert_uint_eq(price_of("4", "16,16", "S(0)", "S(1)", &exact).scratch, shard);
    ck_assert_uint_eq(price_of("4", "16,16", "S(1)", "S(0)", &exact).scratch, shard);
    ck_assert_uint_eq(price_of("4", "16,16", "S(1)", "R", &exact).scratch, 4 * shard);
    ck_assert_uint_eq(price_of("4", "16,16", "S(0)", "P(avg)", &exact).scratch, 0);
    ck_assert_uint_eq(price_of("4", "16,16", "SS(0,2)", "S(0)", &exact).scratch, 2 * shard);
    ck_assert_uint_eq(price_of("4", "16,16", "P", "S(0)", &exact).scratch, 4 * shard);
}
