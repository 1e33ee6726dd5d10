/* values.h - the values of a redistributed tensor: element i is i, or i modulo a prime if the
 * dtype cannot hold i.  Partials hold contributions that combine to the element. */
#ifndef WEFT_CLI_VALUES_H
#define WEFT_CLI_VALUES_H

#include "base/number.h"
#include "weft/spec.h"

struct values {
    uint32_t dtype; /* of the source */
    int64_t modulus;
    bool cut;     /* an axis may be reduced in parts, if the other mesh splits it */
    double slack; /* the relative error of a float that rounding in averages allows */
    /* Called with USER while values_fill and values_check work, with the number of elements that
     * they have done since the last call.  NULL: not wanted. */
    void (*progress)(void *user, uint64_t elements);
    void *user;
};

/* Values that are exact in the dtype of FROM, also after the reduction of its partials.  A cast to
 * the dtype of TO may round them, once.
 * The exception are averages of floats over a number of ranks that is not a power of two. */
struct values values_between(const weft_spec *from, const weft_spec *to);
/* Element INDEX of the whole tensor. */
struct wf_number values_at(const struct values *values, int64_t index);
/* Fill SHARD, which has STRIDES (NULL: row-major), with the elements that RANK holds in SPEC. */
void values_fill(const struct values *values, const weft_spec *spec, int32_t rank,
                 const int64_t *strides, void *shard);

/* Check every element of every rank.  SHARDS[i] is the row-major shard of the rank at position i
 * in the mesh of SPEC.  Partials are combined first.  The text of WEFT_ERR_MISMATCH names the
 * rank, the index, and both values. */
weft_status values_check(const struct values *values, const weft_spec *spec,
                         const void *const *shards) WF_NODISCARD;

#endif
