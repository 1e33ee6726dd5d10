/* redistribute_rate.c - redistributions of square f32 tensors in a row on a stream, some of which
 * cast, beside plain copies of the bytes that they must read and write, by the same ranks at the
 * same time.
 *
 *     weft run -n 4 redistribute_rate BOARD [SIZES]     (64,1024,4096,8192)
 *
 * Prints JSON: nanoseconds of one of a row, of one alone until the host has seen its end, of the
 * copy, and how much of the copy's speed that is.  The slowest rank counts, the best of rounds.
 */
#include "board.h"
#include "rank.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 15 };

static const struct transition {
    const char *from, *to;
    int reads; /* shards of the result's size that each rank must read; 0: one from each rank */
    const char *dtype; /* of the result */
} transitions[] = {{"S(0)", "R", 1, "f32"},  {"S(0)", "S(1)", 1, "f32"},
                   {"R", "S(1)", 1, "f32"},  {"P", "R", 1, "f32"},
                   {"P", "S(0)", 0, "f32"},  {"S(0)", "S(1)", 1, "bf16"},
                   {"S(0)", "R", 1, "bf16"}, {"P", "S(0)", 0, "bf16"}};

/* Nanoseconds of one of LENGTH in a row; of copies of BYTES, unless that is 0. */
static double measure(const struct move *move, uint64_t bytes, int length)
{
    double best = 1e300;

    for (int round = -2; round < ROUNDS; round++) {
        uint64_t from;
        double took;
        board_meet();
        from = now_ns();
        for (int i = 0; i < length; i++)
            if (bytes == 0)
                move_run(move);
            else
                must(weft_memory_copy(context, move->source, move->target, bytes, stream),
                     "weft_memory_copy");
        rank_wait();
        took = (double)board_maximum(now_ns() - from) / length;
        if (round >= 0 && took < best) best = took;
    }
    return best;
}

static void show(int size, const struct transition *t)
{
    int length = size <= 1024 ? 50 : 10;
    uint64_t whole = (uint64_t)size * (uint64_t)size * 4, bytes;
    uint64_t reads = t->reads > 0 ? (uint64_t)t->reads : (uint64_t)weft_size(context);
    double row, alone, copy;
    struct move move;
    char type[32], to_type[32];
    uint64_t element = strcmp(t->dtype, "f32") == 0 ? 4 : 2, elements;

    snprintf(type, sizeof type, "f32[%d,%d]", size, size);
    snprintf(to_type, sizeof to_type, "%s[%d,%d]", t->dtype, size, size);
    move_begin_cast(&move, type, t->from, to_type, t->to, whole);
    elements = move.target_bytes / element;
    bytes = (elements * 4 * reads + move.target_bytes) / 2; /* a copy does each once */
    row = measure(&move, 0, length);
    alone = measure(&move, 0, 1);
    copy = measure(&move, bytes, length);
    if (weft_rank(context) == 0) {
        row_begin();
        printf("{\"from\": \"%s\", \"to\": \"%s\", \"to_dtype\": \"%s\", \"shape\": [%d, %d], "
               "\"ranks\": %d, "
               "\"in_a_row_ns\": %.0f, \"alone_ns\": %.0f, \"copy_ns\": %.0f, \"share\": %.3f}",
               t->from, t->to, t->dtype, size, size, weft_size(context), row, alone, copy,
               copy / row);
    }
    move_end(&move);
}

static void show_all(int size)
{
    for (size_t i = 0; i < sizeof transitions / sizeof transitions[0]; i++)
        show(size, &transitions[i]);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: weft run -n RANKS redistribute_rate BOARD [SIZES]\n");
        return 2;
    }
    rank_begin();
    board_open(argv[1], weft_rank(context), weft_size(context), 0);
    print_rows(argc > 2 ? argv[2] : "64,1024,4096,8192", show_all);
    rank_end();
    return 0;
}
