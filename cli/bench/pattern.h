/* pattern.h - the data that the ranks of a benchmark send, and the data that they must receive,
 * so that wrong results are not measured.  All values are integers so small that f32 sums are
 * exact. */
#ifndef WEFT_CLI_BENCH_PATTERN_H
#define WEFT_CLI_BENCH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_op {
    BENCH_ALL_REDUCE,
    BENCH_ALL_GATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_ALL_TO_ALL,
    BENCH_BROADCAST,
    BENCH_OP_COUNT
};

extern const char *const bench_op_names[BENCH_OP_COUNT];

/* The count, as in weft_plugin.h, for a full buffer of about *BYTES per rank: at least one
 * element per rank and peer.  *BYTES becomes the exact size. */
size_t bench_count(enum bench_op op, int size, size_t element_bytes, size_t *bytes);

/* Number of elements that this rank sends and receives, for COUNT. */
size_t bench_sent(enum bench_op op, int size, size_t count);
size_t bench_received(enum bench_op op, int size, size_t count);

/* Broadcast works in place, from rank 0. */
void bench_fill(enum bench_op op, int rank, int size, size_t count, float *send, float *recv);
bool bench_right(enum bench_op op, int rank, int size, size_t count, const float *recv);

#ifdef __cplusplus
}
#endif
#endif
