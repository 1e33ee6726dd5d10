/* check.hpp - end the program with a line about a condition that does not hold. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <weft/status.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (%s)\n", __LINE__, #condition, weft_last_error());                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
