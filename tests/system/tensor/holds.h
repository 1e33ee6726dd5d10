/* holds.h - claims of ranks that are threads: a rank whose claim does not hold returns an error. */
#ifndef WEFT_TESTS_TENSOR_HOLDS_H
#define WEFT_TESTS_TENSOR_HOLDS_H

#include "weft/status.h"

#include <string.h>

/* Fail the rank, with the line. */
#define HOLDS(claim)                                                                               \
    do {                                                                                           \
        if (!(claim))                                                                              \
            return weft_fail(WEFT_ERR_INTERNAL, "line %d: not so: %s (%s)", __LINE__, #claim,      \
                             weft_last_error());                                                   \
    } while (0)
#define REFUSES(call, text) FAILS(call, WEFT_ERR_INVALID, text)
#define FAILS(call, status, text)                                                                  \
    do {                                                                                           \
        HOLDS((call) == (status));                                                                 \
        HOLDS(strstr(weft_last_error(), text) != NULL);                                            \
    } while (0)

#endif
