/* coll.h - the two parts of `weft bench coll`: the command, which starts the ranks and prints
 * their results (bench_coll.c), and a rank (coll_rank.c). */
#ifndef WEFT_CLI_BENCH_COLL_H
#define WEFT_CLI_BENCH_COLL_H

#include "bench/pattern.h"
#include "common/local_ranks.h"
#include "timing/loop.h"

#include "weft/weft.h"

enum { COLL_MOST_SIZES = 64 };

struct coll_request {
    bool wanted[BENCH_OP_COUNT];
    size_t sizes[COLL_MOST_SIZES]; /* as given; a buffer has whole elements */
    int size_count;
    uint32_t dtype;
    bool malloced; /* memory from malloc, not from weft_alloc */
    uint64_t budget_ns;
};

/* One collective with one size. */
struct coll_row {
    uint32_t op;
    int32_t ranks;
    uint64_t bytes; /* the full per-rank buffer, as measured */
    struct bench_times times;
    double memcpy_gbps; /* total of all ranks, which copy that many bytes each at the same time */
};

/* Number of rows that REQUEST gives on RANKS ranks; sizes that become the same buffer give one. */
int coll_row_count(const struct coll_request *request, int ranks);

/* Measure on all ranks of CONTEXT; rank 0 sends a struct coll_row for each cell. */
weft_status coll_rank(const struct coll_request *request, weft_context *context,
                      const struct local_rank *local);

#endif
