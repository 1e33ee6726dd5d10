/* redistribute_speed.c - redistributions of square f32 tensors on device memory, timed as
 * bench/dtensor.py times PyTorch's: all ranks begin together, and the slowest one counts.
 *
 *     weft run -n 2 redistribute_speed BOARD [SIZES [BUDGET_MS]]     (64,1024,8192 and 300)
 *
 * All in one set of processes.  Prints JSON with the rows of `weft bench redistribute`. */
#include "board.h"
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_SAMPLES = 2000, MIN_SAMPLES = 5, WARM_UP = 3 };

static const char *const transitions[][2] = {{"S(0)", "R"}, {"S(0)", "S(1)"}, {"P", "R"},
                                             {"P", "S(0)"}, {"P", "S(1)"},    {"R", "S(1)"}};
static double budget_ns; /* per size and transition */

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

static void measure(int size, const char *const *transition)
{
    static double samples[MAX_SAMPLES];
    double spent = 0, middle;
    struct move move;
    char type[32];
    int count = 0;

    snprintf(type, sizeof type, "f32[%d,%d]", size, size);
    move_begin(&move, type, transition[0], transition[1], 0);
    for (int i = 0; i < WARM_UP; i++)
        run_once(&move);
    while (count < MIN_SAMPLES || (spent < budget_ns && count < MAX_SAMPLES))
        spent += samples[count++] = run_once(&move);
    middle = median(samples, count);
    if (weft_rank(context) == 0) {
        row_begin();
        printf("{\"from\": \"%s\", \"to\": \"%s\", \"shape\": [%d, %d], \"ranks\": %d, "
               "\"median_ns\": %.0f, \"min_ns\": %.0f}",
               transition[0], transition[1], size, size, weft_size(context), middle, samples[0]);
    }
    move_end(&move);
}

static void measure_all(int size)
{
    for (size_t t = 0; t < sizeof transitions / sizeof transitions[0]; t++)
        measure(size, transitions[t]);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: weft run -n RANKS redistribute_speed BOARD [SIZES [BUDGET_MS]]\n");
        return 2;
    }
    budget_ns = (argc > 3 ? strtod(argv[3], NULL) : 300) * 1e6;
    rank_begin();
    board_open(argv[1], weft_rank(context), weft_size(context), 0);
    print_rows(argc > 2 ? argv[2] : "64,1024,8192", measure_all);
    rank_end();
    return 0;
}
