/* attention.h - an engine's kernel of attention, and the same on one rank without weft. */
#ifndef WEFT_TESTS_ATTENTION_H
#define WEFT_TESTS_ATTENTION_H

#include "support/cp_case.h"
#include "weft/parallel.h"

/* Element INDEX of MEMORY. */
float get(const void *memory, uint32_t dtype, int64_t index);
void set(void *memory, uint32_t dtype, int64_t index, float value);

/* Forward and backward in host memory; USER is not used. */
weft_status attend(void *user, const weft_cp_call *call);
/* The same in memory of any backend (staged.c). */
weft_status attend_anywhere(void *user, const weft_cp_call *call);

/* Whole tensors in double, [batch][head][sequence][depth]. */
struct reference {
    int64_t batch, heads, key_heads, depth, length;
    double *q, *k, *v, *d_out;           /* given */
    double *out, *lse, *d_q, *d_k, *d_v; /* computed */
};

/* Random tensors for SIZES, rounded to their dtype, and their attention by the mask of C. */
void reference_make(struct reference *out, const struct cp_case *c, const struct cp_sizes *sizes,
                    struct random *r);
void reference_free(struct reference *reference);

#endif
