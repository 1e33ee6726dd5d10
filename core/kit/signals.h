/* signals.h - comparison of signals. */
#ifndef WEFT_KIT_SIGNALS_H
#define WEFT_KIT_SIGNALS_H

#include "weft_plugin.h"

#include <stdbool.h>
#include <stdint.h>

/* VALUE compared with WANTED; COMPARE is known. */
static inline bool kit_signal_matches(uint64_t value, uint32_t compare, uint64_t wanted)
{
    switch (compare) {
    case WEFT_COMPARE_EQ:
        return value == wanted;
    case WEFT_COMPARE_NE:
        return value != wanted;
    case WEFT_COMPARE_GE:
        return value >= wanted;
    case WEFT_COMPARE_GT:
        return value > wanted;
    case WEFT_COMPARE_LE:
        return value <= wanted;
    default:
        return value < wanted;
    }
}

#endif
