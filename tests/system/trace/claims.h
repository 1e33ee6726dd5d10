/* claims.h - what a rank of these programs claims; a claim that fails is printed and marks the
 * rank. */
#ifndef WEFT_TESTS_TRACE_CLAIMS_H
#define WEFT_TESTS_TRACE_CLAIMS_H

#include <weft/status.h>

#include <stdbool.h>
#include <stdio.h>

static inline void complain(int rank, int *failed, int line, const char *claim)
{
    fprintf(stderr, "not so: rank %d, line %d: %s (%s)\n", rank, line, claim, weft_last_error());
    *failed = 1;
}

#define HOLDS(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) complain(self->number, &self->failed, __LINE__, #claim);                     \
    } while (0)
#define WORKS(call) HOLDS((call) == WEFT_OK)

#endif
