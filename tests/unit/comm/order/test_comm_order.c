/* The orders of runs of several ranks, merged into one order. */
#include "comm/order/order.h"
#include "support/suite.h"

#include <string.h>

/* A rank that runs the plans PLANS and has begun ORDER: characters from 'a' on. */
static void set(struct wf_order *out, int32_t rank, const char *plans, const char *order,
                struct wf_text *counts)
{
    uint64_t begun[26] = {0};

    *out = (struct wf_order){.rank = rank};
    for (; *order != '\0'; order++, out->count++) {
        out->runs[out->count].binding = (uint32_t)(*order - 'a' + 1);
        out->runs[out->count].number = ++begun[*order - 'a'];
    }
    for (; *plans != '\0'; plans++) {
        wf_put_u32(counts, (uint32_t)(*plans - 'a' + 1));
        wf_put_u64(counts, begun[*plans - 'a']);
    }
    out->counts = (struct wf_reader){(const uint8_t *)counts->data, counts->length, false};
}

/* The text of a cycle among three ranks, or "". */
static const char *merge(const char *const plans[3], const char *const begun[3])
{
    static char text[400];
    struct wf_text counts[3] = {0}, out = {0};
    struct wf_order orders[3];

    for (int i = 0; i < 3; i++)
        set(&orders[i], i, plans[i], begun[i], &counts[i]);
    wf_order_merge(orders, 3, &out);
    snprintf(text, sizeof text, "%s", out.length > 0 ? out.data : "");
    for (int i = 0; i < 3; i++)
        wf_text_free(&counts[i]);
    wf_text_free(&out);
    return text;
}

#define MERGE(plans, ...) merge(plans, (const char *const[]){__VA_ARGS__})

static const char *const pairs[] = {"ac", "ab", "bc"}; /* each two ranks share one plan */

TEST(orders_that_fit_are_fine)
{
    ck_assert_str_eq(MERGE(pairs, "", "", ""), "");
    ck_assert_str_eq(MERGE(pairs, "ac", "ab", "bc"), "");
    ck_assert_str_eq(MERGE(pairs, "ac", "", "bc"), "");
    ck_assert_str_eq(MERGE(pairs, "acac", "ab", "b"), "");
    ck_assert_str_eq(MERGE(pairs, "ca", "a", "cb"), "");
    ck_assert_str_eq(MERGE(pairs, "a", "b", ""), "");
}

TEST(circles_are_found)
{
    ck_assert_str_eq(MERGE(pairs, "a", "b", "c"),
                     "rank 1 runs binding 2 before binding 1, rank 2 runs binding 3 before "
                     "binding 2, rank 0 runs binding 1 before binding 3");
    ck_assert_str_ne(MERGE(pairs, "ac", "ba", "cb"), "");
    ck_assert_str_ne(MERGE(pairs, "acac", "abba", "bccb"), "");
}
