/* coll.h - the two sides of `weft bench coll`: the command, which starts the ranks and shows what
 * they find (bench_coll.c), and a rank (coll_rank.c). */
#ifndef WEFT_CLI_BENCH_COLL_H
#define WEFT_CLI_BENCH_COLL_H

#include "bench/pattern.h"
#include "timing/loop.h"

#include "weft/weft.h"

enum { COLL_MOST_SIZES = 64 };

struct coll_request {
    bool wanted[BENCH_OP_COUNT];
    size_t sizes[COLL_MOST_SIZES];
    int size_count;
    uint32_t dtype;
    bool malloced; /* memory from malloc, not from weft_alloc */
    uint64_t budget_ns;
};

/* One cell. */
struct coll_row {
    uint32_t op;
    int32_t ranks;
    uint64_t bytes; /* the full per-rank buffer, as measured */
    struct bench_times times;
    double memcpy_gbps; /* by all ranks at once, each copying that many bytes */
};

/* What ranks write to the command's pipe: rank 0 every row, and whoever fails why.  Less than
 * PIPE_BUF, so messages of several ranks do not mix. */
struct coll_message {
    int32_t rank;
    weft_status status; /* WEFT_OK: ROW counts, else TEXT */
    struct coll_row row;
    char text[1024];
};

/* How many rows a request will give. */
int coll_row_count(const struct coll_request *request);

/* Join the job by OPTIONS and measure.  Everything there is to say goes to FD. */
weft_status coll_rank(const struct coll_request *request, const weft_options *options, int fd);

#endif
