#include "support/suite.h"

#include "bench/pattern.h"

#include <string.h>

enum { MAX_RANKS = 5, COUNT = 23, ROOM = MAX_RANKS * COUNT };

static float send[MAX_RANKS][ROOM], recv[MAX_RANKS][ROOM];

/* Element INDEX of what RANK must receive, straight from what was sent. */
static float result(enum bench_op op, int rank, int size, size_t index)
{
    size_t own = (size_t)rank * COUNT, block = index / COUNT;
    float sum = 0;

    switch (op) {
    case BENCH_ALL_GATHER:
        return send[block][index % COUNT];
    case BENCH_ALL_TO_ALL:
        return send[block][own + index % COUNT];
    case BENCH_BROADCAST:
        return recv[0][index];
    default:
        for (int r = 0; r < size; r++)
            sum += send[r][(op == BENCH_REDUCE_SCATTER ? own : 0) + index];
        return sum;
    }
}

static void do_op(enum bench_op op, int size)
{
    for (int rank = 0; rank < size; rank++)
        for (size_t i = 0; i < bench_received(op, size, COUNT); i++)
            recv[rank][i] = result(op, rank, size, i);
}

TEST(right_results_are_right_and_one_wrong_element_is_found)
{
    for (int op = 0; op < BENCH_OP_COUNT; op++)
        for (int size = 1; size <= MAX_RANKS; size++) {
            size_t last = bench_received((enum bench_op)op, size, COUNT) - 1;

            for (int rank = 0; rank < size; rank++)
                bench_fill((enum bench_op)op, rank, size, COUNT, send[rank], recv[rank]);
            if (op != BENCH_BROADCAST || size > 1)
                ck_assert(!bench_right((enum bench_op)op, size - 1, size, COUNT, recv[size - 1]));
            do_op((enum bench_op)op, size);
            for (int rank = 0; rank < size; rank++) {
                ck_assert(bench_right((enum bench_op)op, rank, size, COUNT, recv[rank]));
                recv[rank][last] += 1;
                ck_assert(!bench_right((enum bench_op)op, rank, size, COUNT, recv[rank]));
                recv[rank][last] -= 1;
            }
        }
}

TEST(bytes_are_those_of_the_whole_buffer)
{
    size_t bytes = 8;

    ck_assert_uint_eq(bench_count(BENCH_ALL_REDUCE, 4, 4, &bytes), 2);
    ck_assert_uint_eq(bytes, 8);
    ck_assert_uint_eq(bench_count(BENCH_ALL_GATHER, 2, 4, &bytes), 1);
    ck_assert_uint_eq(bytes, 8);
    ck_assert_uint_eq(bench_count(BENCH_ALL_TO_ALL, 4, 4, &bytes), 1); /* one for each rank */
    ck_assert_uint_eq(bytes, 16);
    bytes = 1 << 20;
    ck_assert_uint_eq(bench_count(BENCH_REDUCE_SCATTER, 3, 4, &bytes), 87381);
    ck_assert_uint_eq(bytes, 87381 * 12);
}
