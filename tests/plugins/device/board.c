/* board.c - see board.h. */
#include "board.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct board {
    atomic_int arrived[2];
    atomic_int round;
    _Atomic uint64_t values[BOARD_MOST_RANKS];
    max_align_t room[];
} * board;
static int32_t own_rank, ranks;

void board_meet(void)
{
    int round = atomic_load(&board->round);

    if (atomic_fetch_add(&board->arrived[round % 2], 1) == ranks - 1) {
        atomic_store(&board->arrived[round % 2], 0);
        atomic_store(&board->round, round + 1);
    }
    for (int tries = 0; atomic_load(&board->round) == round; tries++)
        if (tries > 1000) sched_yield();
}

uint64_t board_maximum(uint64_t value)
{
    uint64_t most = 0;

    atomic_store(&board->values[own_rank], value);
    board_meet();
    for (int32_t r = 0; r < ranks; r++)
        if (board->values[r] > most) most = board->values[r];
    board_meet();
    return most;
}

void *board_open(const char *prefix, int32_t rank, int32_t size, size_t bytes)
{
    char path[4096];
    int file;

    snprintf(path, sizeof path, "%s.%d", prefix, (int)getppid());
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    if (size > BOARD_MOST_RANKS || file < 0 ||
        ftruncate(file, (off_t)(sizeof *board + bytes)) != 0) {
        perror(path);
        exit(1);
    }
    board = mmap(NULL, sizeof *board + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (board == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    own_rank = rank;
    ranks = size;
    board_meet();
    if (rank == 0) unlink(path);
    return board->room;
}
