/* pattern.h - what the ranks of a benchmark send, and what they must get: a fast wrong answer is
 * no result.  Whole numbers small enough that f32 sums are exact. */
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

/* COUNT in the sense of weft_plugin.h for a full per-rank buffer of BYTES: never less than one
 * element per rank and peer, so *BYTES may grow. */
size_t bench_count(enum bench_op op, int size, size_t element_bytes, size_t *bytes);

/* Elements this rank sends and receives, for COUNT. */
size_t bench_sent(enum bench_op op, int size, size_t count);
size_t bench_received(enum bench_op op, int size, size_t count);

/* Broadcast works in place, from rank 0. */
void bench_fill(enum bench_op op, int rank, int size, size_t count, float *send, float *recv);
bool bench_right(enum bench_op op, int rank, int size, size_t count, const float *recv);

#ifdef __cplusplus
}
#endif
#endif
