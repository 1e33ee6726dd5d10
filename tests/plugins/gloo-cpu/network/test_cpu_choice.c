/* Which library carries data between hosts: what the ranks of a job offer, and what they get. */
#include "ranks.h"

#include "network/carriers.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#define RANKS 3

static const int32_t names[RANKS] = {10, 11, 12};

static void nothing(struct rank *rank)
{
    (void)rank;
}

/* All ranks have both libraries, and want no one by name. */
static void offer_all(struct net_offer *offers)
{
    const struct ranks_options alone = {.size = 1, .threads = true, .body = nothing};

    ck_assert_int_eq(ranks_run(&alone), 0); /* sets the host */
    ranks_knob("WEFT_GLOO_LIB", GLOO_LIBRARY);
    memset(offers, 0, RANKS * sizeof *offers);
    for (int r = 0; r < RANKS; r++) {
        offers[r].has_ucx = offers[r].has_gloo = 1;
        snprintf(offers[r].ucx, sizeof offers[r].ucx, "UCX 1.13.1");
        snprintf(offers[r].gloo, sizeof offers[r].gloo, "Gloo 0.5.0");
    }
}

static void lack_ucx(struct net_offer *offer)
{
    offer->has_ucx = 0;
    snprintf(offer->ucx, sizeof offer->ucx, "no libucp.so.0");
}

static char why[256];

static weft_status choose(const struct net_offer *offers, const struct net_carrier **out)
{
    *out = NULL;
    why[0] = '\0';
    return net_choose(offers, sizeof *offers, RANKS, names, out, why, sizeof why);
}

static void expect_failure(const struct net_offer *offers, weft_status status, const char *text)
{
    const struct net_carrier *carrier;

    ck_assert_int_eq(choose(offers, &carrier), status);
    ck_assert_ptr_null(carrier);
    ck_assert_msg(strstr(ranks_error(), text) != NULL, "\"%s\" lacks \"%s\"", ranks_error(), text);
}

TEST(different_versions_of_ucx_are_refused)
{
    struct net_offer offers[RANKS];

    offer_all(offers);
    snprintf(offers[2].ucx, sizeof offers[2].ucx, "UCX 1.18.0");
    expect_failure(offers, WEFT_ERR_MISMATCH, "rank 10 has UCX 1.13.1 and rank 12 has UCX 1.18.0");
    offers[1].wanted = NET_UCX;
    expect_failure(offers, WEFT_ERR_MISMATCH, "rank 10 has UCX 1.13.1 and rank 12 has UCX 1.18.0");
}

TEST(ranks_that_want_different_networks_are_named)
{
    struct net_offer offers[RANKS];

    offer_all(offers);
    offers[0].wanted = NET_GLOO;
    offers[2].wanted = NET_UCX;
    expect_failure(offers, WEFT_ERR_MISMATCH,
                   "WEFT_CPU_NETWORK is \"gloo\" on rank 10 and \"ucx\" on rank 12");
}

TEST(an_explicit_choice_is_not_replaced)
{
    struct net_offer offers[RANKS];

    offer_all(offers);
    offers[0].wanted = NET_UCX;
    lack_ucx(&offers[1]);
    expect_failure(offers, WEFT_ERR_NO_LIBRARY,
                   "\"ucx\" on rank 10, and rank 11 lacks it: no libucp.so.0");
}

TEST(a_choice_that_is_none_is_refused)
{
    struct net_offer offers[RANKS];

    offer_all(offers);
    offers[1].wanted = 3;
    expect_failure(offers, WEFT_ERR_MISMATCH, "rank 11");
}

TEST(nothing_on_all_hosts_names_both)
{
    struct net_offer offers[RANKS];

    offer_all(offers);
    lack_ucx(&offers[1]);
    offers[2].has_gloo = 0;
    snprintf(offers[2].gloo, sizeof offers[2].gloo, "no libweft_gloo.so");
    expect_failure(offers, WEFT_ERR_NO_LIBRARY,
                   "rank 11 lacks UCX (no libucp.so.0), and rank 12 lacks Gloo (no libweft_gloo");
}

TEST(auto_takes_gloo_if_a_host_lacks_ucx)
{
    struct net_offer offers[RANKS];
    const struct net_carrier *carrier;

    offer_all(offers);
    if (net_gloo(&carrier) != WEFT_OK) return;
    lack_ucx(&offers[2]);
    ck_assert_int_eq(choose(offers, &carrier), WEFT_OK);
    ck_assert_int_eq(strncmp(carrier->library, "Gloo ", 5), 0);
    ck_assert_str_eq(why, "rank 12 lacks UCX: no libucp.so.0");
}

TEST(auto_takes_ucx_if_all_have_it)
{
    struct net_offer offers[RANKS];
    const struct net_carrier *carrier;

    offer_all(offers);
    if (net_ucx(&carrier) != WEFT_OK) return;
    ck_assert_int_eq(choose(offers, &carrier), WEFT_OK);
    ck_assert_int_eq(strncmp(carrier->library, "UCX ", 4), 0);
    ck_assert_str_eq(why, "all ranks have it");
    offers[1].wanted = NET_GLOO;
    if (net_gloo(&carrier) != WEFT_OK) return;
    ck_assert_int_eq(choose(offers, &carrier), WEFT_OK);
    ck_assert_int_eq(strncmp(carrier->library, "Gloo ", 5), 0);
    ck_assert_str_eq(why, "WEFT_CPU_NETWORK is \"gloo\" on rank 11");
}
