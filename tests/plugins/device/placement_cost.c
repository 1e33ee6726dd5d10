/* placement_cost.c - redistributions of one f32 tensor from several placements to S(1) and to R,
 * timed in turn, so that all see the same conditions:
 *
 *     weft run -n 2 placement_cost BOARD ROWS COLUMNS FROM FROM...
 *
 * All ranks begin together, and the slowest one counts.  All in one set of processes: starting
 * ranks on a device takes longer than what is timed.  Prints JSON, a list of rows. */
#include "board.h"
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8, WARM_UP = 3, ROUNDS = 40 };

/* Nanoseconds of the slowest rank. */
static double run_once(const struct move *move)
{
    uint64_t from;

    board_meet();
    from = now_ns();
    move_run(move);
    rank_wait();
    return (double)board_maximum(now_ns() - from);
}

static void print_row(const struct move *move, const char *rows, const char *columns,
                      double *samples)
{
    double middle = median(samples, ROUNDS); /* sorts */

    if (weft_rank(context) != 0) return;
    row_begin();
    printf("{\"backend\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", \"shape\": [%s, %s], "
           "\"ranks\": %d, \"median_ns\": %.0f, \"min_ns\": %.0f}",
           weft_context_plugin(context)->name, move->from, move->to, rows, columns,
           weft_size(context), middle, samples[0]);
}

static void measure(const char *rows, const char *columns, const char *to, char **from, int count)
{
    static double samples[MOST][ROUNDS];
    struct move moves[MOST];
    char type[64];

    snprintf(type, sizeof type, "f32[%s,%s]", rows, columns);
    for (int i = 0; i < count; i++) {
        move_begin(&moves[i], type, from[i], to, 0);
        for (int w = 0; w < WARM_UP; w++)
            run_once(&moves[i]);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < count; i++)
            samples[i][round] = run_once(&moves[i]);
    for (int i = 0; i < count; i++) {
        print_row(&moves[i], rows, columns, samples[i]);
        move_end(&moves[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc - 4 > MOST) {
        fprintf(stderr, "usage: weft run -n RANKS placement_cost BOARD ROWS COLUMNS FROM...\n");
        return 2;
    }
    rank_begin();
    board_open(argv[1], weft_rank(context), weft_size(context), 0);
    if (weft_rank(context) == 0) printf("[");
    measure(argv[2], argv[3], "S(1)", argv + 4, argc - 4);
    measure(argv[2], argv[3], "R", argv + 4, argc - 4);
    if (weft_rank(context) == 0) printf("\n]\n");
    board_meet();
    rank_end();
    return 0;
}
