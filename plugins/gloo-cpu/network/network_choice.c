/* network_choice.c - which carrier serves: WEFT_CPU_NETWORK, and what all hosts have. */
#include "carriers.h"
#include "plug_host.h"

#include <stdio.h>
#include <string.h>

static const char *const names_of_choices[] = {"auto", "ucx", "gloo"};

static weft_status wanted(uint32_t *out)
{
    const char *given = plug_knob("WEFT_CPU_NETWORK");

    *out = NET_AUTO;
    if (given == NULL || given[0] == '\0') return WEFT_OK;
    for (uint32_t i = 0; i < PLUG_LENGTH(names_of_choices); i++)
        if (strcmp(given, names_of_choices[i]) == 0) {
            *out = i;
            return WEFT_OK;
        }
    return plug_fail(WEFT_ERR_INVALID,
                     "WEFT_CPU_NETWORK is \"%s\"; expected \"auto\", \"ucx\" or \"gloo\"", given);
}

weft_status net_choice_check(void)
{
    uint32_t ignored;

    return wanted(&ignored);
}

static uint32_t try_to_open(weft_status (*open)(const struct net_carrier **), char *text,
                            size_t bytes)
{
    const struct net_carrier *carrier;
    bool has = open(&carrier) == WEFT_OK;

    snprintf(text, bytes, "%s", has ? carrier->library : plug_last_text());
    return has;
}

weft_status net_offer_find(struct net_offer *out)
{
    const struct net_carrier *carrier;

    memset(out, 0, sizeof *out);
    PLUG_TRY(wanted(&out->wanted));
    if (out->wanted == NET_UCX) PLUG_TRY(net_ucx(&carrier));
    if (out->wanted == NET_GLOO) PLUG_TRY(net_gloo(&carrier));
    out->has_ucx = try_to_open(net_ucx, out->ucx, sizeof out->ucx);
    out->has_gloo = try_to_open(net_gloo, out->gloo, sizeof out->gloo);
    if (out->has_ucx || out->has_gloo) return WEFT_OK;
    return plug_fail(WEFT_ERR_NO_LIBRARY,
                     "without UCX and Gloo, gloo-cpu serves one host only: "
                     "%s; %s",
                     out->ucx, out->gloo);
}

bool net_describe(char *out, size_t bytes)
{
    struct net_offer offer;

    if (net_offer_find(&offer) != WEFT_OK) {
        snprintf(out, bytes, "one host only: %s", plug_last_text());
        return false;
    }
    if (offer.wanted != NET_AUTO)
        snprintf(out, bytes, "%s between hosts, as WEFT_CPU_NETWORK is \"%s\"",
                 offer.wanted == NET_UCX ? offer.ucx : offer.gloo, names_of_choices[offer.wanted]);
    else if (offer.has_ucx)
        snprintf(out, bytes, "%s between hosts that all have it%s%s", offer.ucx,
                 offer.has_gloo ? ", else " : "", offer.has_gloo ? offer.gloo : "");
    else
        snprintf(out, bytes, "%s between hosts (%s)", offer.gloo, offer.ucx);
    return true;
}

/* ---- agreement; OFFERS come from other ranks and are not trusted ---- */

struct offers {
    const struct net_offer *first;
    size_t stride;
    int32_t count;
    const int32_t *names;
};

static const struct net_offer *offer_of(const struct offers *offers, int32_t rank)
{
    return (const void *)((const char *)offers->first + offers->stride * (size_t)rank);
}

static bool has(const struct net_offer *offer, enum net_choice choice)
{
    return (choice == NET_UCX ? offer->has_ucx : offer->has_gloo) != 0;
}

static const char *text_of(const struct net_offer *offer, enum net_choice choice)
{
    return choice == NET_UCX ? offer->ucx : offer->gloo;
}

/* For %.*s: another rank's text may have no end. */
#define TEXT(offer, choice) NET_OFFER_TEXT, text_of(offer, choice)

/* The first rank that lacks CHOICE, or -1. */
static int32_t find_without(const struct offers *offers, enum net_choice choice)
{
    for (int32_t rank = 0; rank < offers->count; rank++)
        if (!has(offer_of(offers, rank), choice)) return rank;
    return -1;
}

/* The first rank that wants a library by name, or -1. */
static int32_t find_explicit(const struct offers *offers)
{
    for (int32_t rank = 0; rank < offers->count; rank++)
        if (offer_of(offers, rank)->wanted != NET_AUTO) return rank;
    return -1;
}

/* All ranks have CHOICE and want it: open it, unless their versions differ. */
static weft_status serve(const struct offers *offers, enum net_choice choice,
                         const struct net_carrier **out)
{
    const struct net_offer *first = offer_of(offers, 0);

    for (int32_t rank = 1; rank < offers->count && choice == NET_UCX; rank++) {
        const struct net_offer *other = offer_of(offers, rank);

        if (strncmp(first->ucx, other->ucx, sizeof first->ucx) == 0) continue;
        return plug_fail(WEFT_ERR_MISMATCH,
                         "rank %d has %.*s and rank %d has %.*s; all ranks need the same version, "
                         "or WEFT_CPU_NETWORK=gloo",
                         (int)offers->names[0], TEXT(first, choice), (int)offers->names[rank],
                         TEXT(other, choice));
    }
    return choice == NET_UCX ? net_ucx(out) : net_gloo(out);
}

static weft_status serve_explicit(const struct offers *offers, int32_t chooser,
                                  const struct net_carrier **out, char *why, size_t why_bytes)
{
    enum net_choice choice = (enum net_choice)offer_of(offers, chooser)->wanted;
    int32_t lacks = find_without(offers, choice);

    for (int32_t rank = chooser; rank < offers->count; rank++) {
        uint32_t other = offer_of(offers, rank)->wanted;

        if (other != NET_AUTO && other != choice)
            return plug_fail(WEFT_ERR_MISMATCH,
                             "WEFT_CPU_NETWORK is \"%s\" on rank %d and \"%s\" on rank %d",
                             names_of_choices[choice], (int)offers->names[chooser],
                             names_of_choices[other], (int)offers->names[rank]);
    }
    if (lacks >= 0)
        return plug_fail(WEFT_ERR_NO_LIBRARY,
                         "WEFT_CPU_NETWORK is \"%s\" on rank %d, and rank %d lacks it: %.*s",
                         names_of_choices[choice], (int)offers->names[chooser],
                         (int)offers->names[lacks], TEXT(offer_of(offers, lacks), choice));
    snprintf(why, why_bytes, "WEFT_CPU_NETWORK is \"%s\" on rank %d", names_of_choices[choice],
             (int)offers->names[chooser]);
    return serve(offers, choice, out);
}

weft_status net_choose(const struct net_offer *given, size_t stride, int32_t count,
                       const int32_t *names, const struct net_carrier **out, char *why,
                       size_t why_bytes)
{
    const struct offers offers = {given, stride, count, names};
    int32_t chooser = find_explicit(&offers), ucx, gloo;

    for (int32_t rank = 0; rank < count; rank++)
        if (offer_of(&offers, rank)->wanted > NET_GLOO)
            return plug_fail(WEFT_ERR_MISMATCH,
                             "rank %d sent a choice of network that is not valid",
                             (int)names[rank]);
    if (chooser >= 0) return serve_explicit(&offers, chooser, out, why, why_bytes);
    ucx = find_without(&offers, NET_UCX);
    gloo = find_without(&offers, NET_GLOO);
    if (ucx < 0) {
        snprintf(why, why_bytes, "all ranks have it");
        return serve(&offers, NET_UCX, out);
    }
    if (gloo >= 0)
        return plug_fail(WEFT_ERR_NO_LIBRARY,
                         "no network library is on all hosts: rank %d lacks UCX (%.*s), and rank "
                         "%d lacks Gloo (%.*s)",
                         (int)names[ucx], TEXT(offer_of(&offers, ucx), NET_UCX), (int)names[gloo],
                         TEXT(offer_of(&offers, gloo), NET_GLOO));
    snprintf(why, why_bytes, "rank %d lacks UCX: %.*s", (int)names[ucx],
             TEXT(offer_of(&offers, ucx), NET_UCX));
    return serve(&offers, NET_GLOO, out);
}
