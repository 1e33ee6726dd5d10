/* pattern.c - see pattern.h. */
#include "bench/pattern.h"

const char *const bench_op_names[BENCH_OP_COUNT] = {"all_reduce", "all_gather", "reduce_scatter",
                                                    "all_to_all", "broadcast"};

/* True if the buffer is SIZE times as long as COUNT. */
static const struct {
    bool send, recv;
} whole[BENCH_OP_COUNT] = {
    [BENCH_ALL_GATHER] = {.recv = true},
    [BENCH_REDUCE_SCATTER] = {.send = true},
    [BENCH_ALL_TO_ALL] = {.send = true, .recv = true},
};

size_t bench_count(enum bench_op op, int size, size_t element_bytes, size_t *bytes)
{
    size_t parts = whole[op].send || whole[op].recv ? (size_t)size : 1;
    size_t count = *bytes / element_bytes / parts;

    if (count == 0) count = 1;
    *bytes = count * parts * element_bytes;
    return count;
}

size_t bench_sent(enum bench_op op, int size, size_t count)
{
    return whole[op].send ? count * (size_t)size : count;
}

size_t bench_received(enum bench_op op, int size, size_t count)
{
    return whole[op].recv ? count * (size_t)size : count;
}

/* Element INDEX of the buffer that RANK sends. */
static float sent_value(int rank, size_t index)
{
    return (float)(rank + 1) + (float)(index % 7);
}

static float sum_of_sent(int size, size_t index)
{
    float sum = 0;

    for (int rank = 0; rank < size; rank++)
        sum += sent_value(rank, index);
    return sum;
}

static float wanted(enum bench_op op, int rank, int size, size_t count, size_t index)
{
    size_t own = (size_t)rank * count;

    switch (op) {
    case BENCH_ALL_REDUCE:
        return sum_of_sent(size, index);
    case BENCH_ALL_GATHER:
        return sent_value((int)(index / count), index % count);
    case BENCH_REDUCE_SCATTER:
        return sum_of_sent(size, own + index);
    case BENCH_ALL_TO_ALL:
        return sent_value((int)(index / count), own + index % count);
    default:
        return sent_value(0, index);
    }
}

void bench_fill(enum bench_op op, int rank, int size, size_t count, float *send, float *recv)
{
    size_t sent = bench_sent(op, size, count), received = bench_received(op, size, count);

    for (size_t i = 0; i < received; i++)
        recv[i] = -1;
    if (op == BENCH_BROADCAST) send = rank == 0 ? recv : NULL;
    for (size_t i = 0; send != NULL && i < sent; i++)
        send[i] = sent_value(rank, i);
}

bool bench_right(enum bench_op op, int rank, int size, size_t count, const float *recv)
{
    size_t received = bench_received(op, size, count);

    for (size_t i = 0; i < received; i++)
        if (recv[i] != wanted(op, rank, size, count, i)) return false;
    return true;
}
