/* cache.h - choices by call, so that the same call is solved once. */
#ifndef WEFT_OPS_CACHE_H
#define WEFT_OPS_CACHE_H

#include "ops.h"
#include "ops/bind/op.h"

enum {
    WF_KEY_WORDS = 120,
    WF_CACHE_SETS = 1024, /* of WF_CACHE_WAYS choices each */
    WF_CACHE_WAYS = 4
};

/* What the answer to a call depends on. */
struct wf_key {
    uint32_t count; /* words; 0: the call is not cached */
    uint64_t hash;
    uint64_t words[WF_KEY_WORDS];
};

/* False if the call cannot be cached: it is too large, or its options have more than numbers. */
bool wf_key_set(struct wf_key *key, const struct wf_op_entry *entry, uint32_t mode,
                const weft_op_call *call, const weft_op_options *options);
/* As weft_op_choice_retain, inside of the library. */
weft_op_choice *wf_choice_retain(weft_op_choice *choice);
/* The choice of KEY with a reference for the caller; NULL: not kept.  Between wf_op_enter and
 * wf_op_leave. */
weft_op_choice *wf_cache_find(const struct wf_key *key);
/* Keep CHOICE under KEY, if it has words.  Without memory nothing is kept.  Not between wf_op_enter
 * and wf_op_leave. */
void wf_cache_keep(const struct wf_key *key, const weft_op_call *call,
                   const weft_op_options *options, weft_op_choice *choice);

#endif
