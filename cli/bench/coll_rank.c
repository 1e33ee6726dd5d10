/* coll_rank.c - one rank of `weft bench coll`. */
#include "bench/coll.h"

#include "base/base.h"
#include "timing/rank_sync.h"

#include <stdio.h>
#include <stdlib.h>

struct rank {
    const struct coll_request *request;
    weft_context *context;
    weft_comm *comm;
    struct rank_sync sync;
    void *send, *recv;
    enum bench_op op;
    uint64_t count;
};

static const enum weft_collective collectives[BENCH_OP_COUNT] = {
    [BENCH_ALL_REDUCE] = WEFT_COLL_ALL_REDUCE,
    [BENCH_ALL_GATHER] = WEFT_COLL_ALL_GATHER,
    [BENCH_REDUCE_SCATTER] = WEFT_COLL_REDUCE_SCATTER,
    [BENCH_ALL_TO_ALL] = WEFT_COLL_ALL_TO_ALL,
    [BENCH_BROADCAST] = WEFT_COLL_BROADCAST};

/* The collective of RANK, without its memory: broadcast is from rank 0, and others add. */
static weft_collective_args args_of(const struct rank *rank)
{
    return (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                  .collective = collectives[rank->op],
                                  .dtype = rank->request->dtype,
                                  .reduction = WEFT_REDUCE_SUM,
                                  .count = rank->count};
}

static weft_status start(const struct rank *rank)
{
    weft_collective_args args = args_of(rank);

    args.send = rank->op == BENCH_BROADCAST ? rank->recv : rank->send; /* in place */
    args.recv = rank->recv;
    return weft_collective(rank->comm, &args);
}

static int operation(void *argument)
{
    struct rank *rank = argument;

    WF_TRY(start(rank));
    return rank_sync_finish(&rank->sync);
}

/* ---- memory ---- */

static weft_status allocate(struct rank *rank, size_t bytes, void **out)
{
    size_t page = 4096;

    if (!rank->request->malloced) return weft_alloc(rank->context, bytes, WEFT_MEMORY_DEVICE, out);
    *out = aligned_alloc(page, (bytes / page + 1) * page); /* a rank may send nothing */
    return *out != NULL ? WEFT_OK : wf_fail_memory(bytes);
}

static void give_back(struct rank *rank, void *memory)
{
    if (rank->request->malloced)
        free(memory);
    else if (weft_free(rank->context, memory) != WEFT_OK)
        fprintf(stderr, "weft bench coll: %s\n", weft_last_error());
}

/* Only f32 results are compared.  Buffers of other dtypes hold zeros, which every dtype has. */
static bool is_checked(const struct rank *rank)
{
    return rank->request->dtype == WEFT_DTYPE_F32;
}

static weft_status fill(struct rank *rank, size_t sent, size_t received)
{
    int me = weft_comm_rank(rank->comm), size = weft_comm_size(rank->comm);
    float *send, *recv;
    weft_status status = WEFT_OK;

    if (!is_checked(rank)) {
        WF_TRY(weft_memory_fill(rank->context, rank->send, 0, sent, NULL));
        return weft_memory_fill(rank->context, rank->recv, 0, received, NULL);
    }
    send = malloc(sent + 1);
    recv = malloc(received);
    if (send == NULL || recv == NULL) {
        status = wf_fail_memory(sent + received);
    } else {
        bench_fill(rank->op, me, size, rank->count, send, recv);
        status = weft_memory_copy(rank->context, send, rank->send, sent, NULL);
        if (status == WEFT_OK)
            status = weft_memory_copy(rank->context, recv, rank->recv, received, NULL);
    }
    if (status == WEFT_OK) status = rank_sync_finish(&rank->sync);
    free(send);
    free(recv);
    return status;
}

static weft_status check(struct rank *rank, size_t received)
{
    int me = weft_comm_rank(rank->comm), size = weft_comm_size(rank->comm);
    uint64_t wrong = 0;
    float *recv;

    if (!is_checked(rank)) return WEFT_OK;
    recv = malloc(received);
    if (recv == NULL ||
        weft_memory_copy(rank->context, rank->recv, recv, received, NULL) != WEFT_OK ||
        rank_sync_finish(&rank->sync) != WEFT_OK ||
        !bench_right(rank->op, me, size, rank->count, recv))
        wrong = 1;
    free(recv);
    WF_TRY(rank_sync_maximum(&rank->sync, &wrong, 1));
    if (wrong == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "%s of %llu f32 gave a wrong result",
                   bench_op_names[rank->op], (unsigned long long)rank->count);
}

/* ---- cells ---- */

static weft_status measure_cell(struct rank *rank, struct coll_row *row)
{
    struct bench_ranks ranks = rank_sync_ranks(&rank->sync);
    size_t element = weft_dtype_bytes(rank->request->dtype), bytes = row->bytes;
    weft_collective_args args;
    uint64_t sent, received;
    weft_status status;

    rank->op = (enum bench_op)row->op;
    rank->count = bench_count(rank->op, ranks.size, element, &bytes);
    row->bytes = bytes;
    args = args_of(rank);
    WF_TRY(weft_collective_sizes(rank->comm, &args, &sent, &received));
    sent *= element;
    received *= element;
    rank->send = rank->recv = NULL;
    status = allocate(rank, sent, &rank->send);
    if (status == WEFT_OK) status = allocate(rank, received, &rank->recv);
    if (status == WEFT_OK) status = fill(rank, sent, received);
    if (status == WEFT_OK)
        status = bench_time(&ranks, operation, rank, rank->request->budget_ns, &row->times);
    if (status == BENCH_NO_MEMORY) status = wf_fail_memory(0);
    if (status == WEFT_OK) status = check(rank, received);
    give_back(rank, rank->send);
    give_back(rank, rank->recv);
    return status;
}

/* The buffer of OP for size number INDEX of REQUEST, in whole elements. */
static size_t buffer_bytes(const struct coll_request *request, int index, uint32_t op, int ranks)
{
    size_t bytes = request->sizes[index];

    bench_count((enum bench_op)op, ranks, weft_dtype_bytes(request->dtype), &bytes);
    return bytes;
}

/* True if OP is wanted, with a buffer for size number INDEX that no earlier size has.  Small sizes
 * become the same buffer. */
static bool is_row(const struct coll_request *request, int index, uint32_t op, int ranks)
{
    size_t bytes = buffer_bytes(request, index, op, ranks);

    for (int i = 0; i < index; i++)
        if (buffer_bytes(request, i, op, ranks) == bytes) return false;
    return request->wanted[op];
}

static weft_status measure_size(struct rank *rank, int index, const struct local_rank *local)
{
    struct bench_ranks ranks = rank_sync_ranks(&rank->sync);
    size_t bytes = rank->request->sizes[index];
    double memcpy_gbps;
    weft_status status = bench_memcpy(&ranks, bytes, rank->request->budget_ns / 2, &memcpy_gbps);

    if (status == BENCH_NO_MEMORY) status = wf_fail_memory(2 * bytes);
    for (uint32_t op = 0; status == WEFT_OK && op < BENCH_OP_COUNT; op++) {
        struct coll_row row = {
            .op = op, .ranks = ranks.size, .bytes = bytes, .memcpy_gbps = memcpy_gbps};

        if (!is_row(rank->request, index, op, ranks.size)) continue;
        status = measure_cell(rank, &row);
        if (status == WEFT_OK) status = local_rank_send(local, &row, sizeof row);
    }
    return status;
}

int coll_row_count(const struct coll_request *request, int ranks)
{
    int rows = 0;

    for (int i = 0; i < request->size_count; i++)
        for (uint32_t op = 0; op < BENCH_OP_COUNT; op++)
            rows += is_row(request, i, op, ranks);
    return rows;
}

weft_status coll_rank(const struct coll_request *request, weft_context *context,
                      const struct local_rank *local)
{
    struct rank rank = {.request = request, .context = context, .comm = weft_world(context)};

    WF_TRY(rank_sync_open(&rank.sync, context, rank.comm));
    for (int i = 0; i < request->size_count; i++)
        WF_TRY(measure_size(&rank, i, local));
    return rank_sync_close(&rank.sync);
}
