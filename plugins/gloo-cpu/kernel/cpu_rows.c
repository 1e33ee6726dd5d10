/* cpu_rows.c - copies of rows that are not adjacent.
 *
 * The hardware prefetcher reads past the end of a row and starts on the next row late.  On ARM
 * servers, rows of a few KiB therefore copy at half the speed of one long run.  This code copies
 * the pieces of a row out of order, which disables that prefetcher, and prefetches in software.
 * x86 does not need it: plain copies reach more than 90 % there. */
#include "cpu_regions.h"

#include <string.h>

enum {
    PIECE = 128,        /* bytes: two cache lines */
    ROW_MIN = 1024,     /* shorter rows do not trigger the prefetcher */
    ROW_MAX = 16384,    /* longer rows lose little at their ends */
    AHEAD = 4096,       /* minimum prefetch distance in bytes */
    TOTAL_MIN = 1 << 18 /* smaller copies fit in the near caches */
};

bool cpu_rows_worth_hopping(size_t row, int64_t rows)
{
#if defined(__aarch64__)
    return row >= ROW_MIN && row <= ROW_MAX && (size_t)rows * row >= TOTAL_MIN;
#else
    (void)row;
    (void)rows;
    return false;
#endif
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b != 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A step that visits all of PIECES and never an adjacent piece. */
static size_t choose_hop(size_t pieces)
{
    size_t hop = pieces * 3 / 8 + 1;

    while (common_divisor(hop, pieces) != 1)
        hop++;
    return hop;
}

static void ask_for(const unsigned char *piece)
{
    __builtin_prefetch(piece, 0, 2);
    __builtin_prefetch(piece + PIECE / 2, 0, 2);
}

void cpu_rows_hop(const struct cpu_rows *rows)
{
    size_t pieces = rows->bytes / PIECE, whole = pieces * PIECE, hop = choose_hop(pieces);
    int64_t ahead = rows->bytes < AHEAD ? (int64_t)(AHEAD / rows->bytes) : 1;

    for (int64_t i = 0; i < rows->count; i++) {
        const unsigned char *source = rows->source + i * rows->source_step;
        const unsigned char *next =
            i + ahead < rows->count ? source + ahead * rows->source_step : source;
        unsigned char *target = rows->target + i * rows->target_step;
        size_t piece = 0;

        for (size_t k = 0; k < pieces; k++) {
            ask_for(next + piece * PIECE);
            memcpy(target + piece * PIECE, source + piece * PIECE, PIECE);
            piece += hop;
            if (piece >= pieces) piece -= pieces;
        }
        memcpy(target + whole, source + whole, rows->bytes - whole);
    }
}
