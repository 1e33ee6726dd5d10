/* peer.h - the frame of the programs that measure other libraries' collectives as
 * `weft bench coll` measures weft's: same loop, same sizes, same check of the result. */
#ifndef WEFT_BENCH_PEER_H
#define WEFT_BENCH_PEER_H

#include "timing/loop.h"
#include "bench/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One library's side.  `collective` does one operation; broadcast in place on RECV from rank 0. */
struct peer {
    const char *name;
    struct bench_ranks ranks;
    int (*collective)(void *self, enum bench_op op, const float *send, float *recv, size_t count);
};

/* What the command line asks for: PROGRAM [--ops a,b] [--sizes 8,1024] [--budget-ms N].  Unknown
 * words end the program.  Words a program has for itself it takes out before. */
struct peer_request {
    int wanted[BENCH_OP_COUNT];
    size_t sizes[32];
    int size_count;
    unsigned long budget_ms;
};
void peer_parse(int argc, char **argv, struct peer_request *out);

/* Measure everything asked for; rank 0 prints one JSON object per line.  Returns an exit code. */
int peer_measure(const struct peer *peer, const struct peer_request *request);

#ifdef __cplusplus
}
#endif
#endif
