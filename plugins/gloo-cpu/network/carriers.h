/* carriers.h - which carriers there are. */
#ifndef WEFT_CPU_CARRIERS_H
#define WEFT_CPU_CARRIERS_H

#include "network.h"

#include <stdbool.h>

/* ---- gloo_library.c ---- */

/* Open libweft_gloo.so beside this plugin.  WEFT_ERR_NO_LIBRARY names the missing file. [any] */
weft_status net_gloo(const struct net_carrier **out);
/* True if its file exists.  Does not open it. */
bool net_gloo_expected(void);

#endif
