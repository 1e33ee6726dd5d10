/* moves.h - the kernels that copy, reduce and cast elements, for every word and dtype. */
#ifndef WEFT_KERNELS_MOVES_H
#define WEFT_KERNELS_MOVES_H

#include "regions.h"
#include "elements.h"
#include "regions_cast.h"

#define WK_EVERY_WORD(bytes)                                                                       \
    WK_COPY(bytes)                                                                                 \
    WK_TRANSPOSE(bytes)
WK_EVERY_WORD(1)
WK_EVERY_WORD(2)
WK_EVERY_WORD(4)
WK_EVERY_WORD(8)
WK_EVERY_WORD(16)

#define WK_EVERY_DTYPE(name, number)                                                               \
    WK_REDUCE(name)                                                                                \
    WK_REGIONS_REDUCE(name)                                                                        \
    WK_CAST(name, number)                                                                          \
    WK_SCALE(name)

WK_REAL_DTYPES(WK_EVERY_DTYPE)
WK_COMPLEX_DTYPES(WK_EVERY_DTYPE)
WK_REAL_DTYPES(WK_REGIONS_CAST)

#endif
