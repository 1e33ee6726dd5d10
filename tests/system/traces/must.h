/* must.h - a call without which the program makes no sense. */
#ifndef WEFT_TESTS_TRACES_MUST_H
#define WEFT_TESTS_TRACES_MUST_H

#include "weft/status.h"

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
