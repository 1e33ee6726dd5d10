/* carriers.h - which carriers there are. */
#ifndef WEFT_CPU_CARRIERS_H
#define WEFT_CPU_CARRIERS_H

#include "network.h"

#include <stdbool.h>

/* ---- gloo_library.c ---- */

/* Open libweft_gloo.so beside this plugin.  WEFT_ERR_NO_LIBRARY names the missing file. [any] */
weft_status net_gloo(const struct net_carrier **out);

/* ---- ucx/ucx_library.c, or ucx_missing.c in a build without UCX's headers ---- */

/* Open UCX.  WEFT_ERR_NO_LIBRARY tells why it is not there, WEFT_ERR_OLD_LIBRARY names both
 * versions, and WEFT_ERR_UNSUPPORTED tells that this process was forked by one that uses UCX.
 * [any] */
weft_status net_ucx(const struct net_carrier **out);

/* ---- network_choice.c ---- */

enum net_choice { NET_AUTO, NET_UCX, NET_GLOO };

enum { NET_OFFER_TEXT = 160 };

/* What a rank can use and wants to use.  Ranks exchange it. */
struct net_offer {
    uint32_t wanted; /* enum net_choice: WEFT_CPU_NETWORK */
    uint32_t has_ucx, has_gloo, reserved;
    /* name and version of the library, or why it is missing */
    char ucx[NET_OFFER_TEXT], gloo[NET_OFFER_TEXT];
};

/* WEFT_ERR_INVALID shows a WEFT_CPU_NETWORK that is no choice. [any] */
weft_status net_choice_check(void);
/* WEFT_ERR_NO_LIBRARY if the rank lacks what it wants, or everything. [any] */
weft_status net_offer_find(struct net_offer *out);
/* The same answer on all ranks: what OFFERS, STRIDE bytes apart, agree on.  NAMES are the ranks'
 * numbers in messages.  WHY is a sentence for the log.  WEFT_ERR_MISMATCH names two ranks that
 * disagree, and what each of them has.  WEFT_ERR_NO_LIBRARY names a rank that lacks a library. */
weft_status net_choose(const struct net_offer *offers, size_t stride, int32_t count,
                       const int32_t *names, const struct net_carrier **out, char *why,
                       size_t why_bytes);
/* What this process would offer, in words: "UCX 1.13.1 between hosts (WEFT_CPU_NETWORK is auto)".
 * False if nothing connects hosts. [any] */
bool net_describe(char *out, size_t bytes);

/* ---- open_library.c ---- */

/* The path of this plugin; NULL if it is unknown. */
const char *net_plugin_path(void);
/* Open FILE, which only trusted users may be able to replace.  The dynamic linker looks for a name
 * without a slash on its search path.  NULL and WHY_NOT if that fails. */
void *net_open_library(const char *file, char *why_not, size_t bytes);

#endif
