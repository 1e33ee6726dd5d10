/* values.h - what tensors hold when a redistribution is tried: element i holds i, or i modulo a
 * prime where the dtype ends before; partials hold contributions that combine to it. */
#ifndef WEFT_CLI_VALUES_H
#define WEFT_CLI_VALUES_H

#include "base/number.h"
#include "weft/spec.h"

struct values {
    uint32_t dtype;
    int64_t modulus;
    bool cut;     /* an axis may be reduced part by part, as the other mesh has it */
    double slack; /* how far a float may be off, as a part of itself: what averages round away */
};

/* Values that the dtype of FROM and TO, and reducing either's partials, keep exact, but for
 * averages of floats over a number that is not a power of two. */
struct values values_between(const weft_spec *from, const weft_spec *to);
/* Element INDEX of the whole tensor. */
struct wf_number values_at(const struct values *values, int64_t index);
/* Write what RANK holds of SPEC into SHARD, whose memory has STRIDES (NULL: row-major). */
void values_fill(const struct values *values, const weft_spec *spec, int32_t rank,
                 const int64_t *strides, void *shard);

/* Check every element of every rank: SHARDS[i] is that of the rank at place i of SPEC's mesh,
 * row-major.  Partials are combined first.  WEFT_ERR_MISMATCH says what is where instead of what.
 */
weft_status values_check(const struct values *values, const weft_spec *spec,
                         const void *const *shards) WF_NODISCARD;

#endif
