/* skip_rank.c HOW - with WEFT_CHECK: rank 1 of two skips one of three equal collectives, or makes
 * it with a count that is refused. */
#include "weft/weft.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 2, ROUNDS = 3 };

static weft_comm *world;
static float *memory;
static int rank;

static weft_status reduce(float *at)
{
    return weft_all_reduce(world, at, at, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
}

/* Each call has a place of its own. */
static weft_status call_in_lines(void)
{
    const enum weft_dtype f32 = WEFT_DTYPE_F32;
    weft_status status = weft_all_reduce(world, memory, memory, COUNT, f32, WEFT_REDUCE_SUM, NULL);

    if (status == WEFT_OK && rank != 1)
        status = weft_all_reduce(world, memory, memory, COUNT, f32, WEFT_REDUCE_SUM, NULL);
    if (status == WEFT_OK)
        status = weft_all_reduce(world, memory, memory, COUNT, f32, WEFT_REDUCE_SUM, NULL);
    return status;
}

/* One place; every call has memory of its own, or all have the SAME. */
static weft_status call_in_a_loop(bool same)
{
    weft_status status = WEFT_OK;

    for (int i = 0; i < ROUNDS && status == WEFT_OK; i++)
        if (rank != 1 || i != 1) status = reduce(memory + (same ? 0 : i * COUNT));
    return status;
}

/* Rank 1 skips one of the equal calls before the last one. */
static weft_status call_after_a_loop(void)
{
    weft_status status = call_in_a_loop(true);

    if (status == WEFT_OK)
        status =
            weft_all_reduce(world, memory, memory, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    return status;
}

/* Rank 1 skips the last call. */
static weft_status call_all_but_last(void)
{
    weft_status status = reduce(memory);

    if (status == WEFT_OK) status = reduce(memory);
    if (status == WEFT_OK && rank != 1)
        status =
            weft_all_reduce(world, memory, memory, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    return status;
}

/* Rank 1 has a wrong count in the second of three calls from one place, and goes on. */
static weft_status call_with_wrong_count(void)
{
    weft_status status = WEFT_OK;

    for (int i = 0; i < ROUNDS && status == WEFT_OK; i++) {
        uint64_t count = rank == 1 && i == 1 ? ROUNDS * COUNT + 1 : COUNT;

        status =
            weft_all_reduce(world, memory, memory, count, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
        if (count != COUNT && status == WEFT_ERR_INVALID) status = WEFT_OK;
    }
    return status;
}

/* Legal: each rank calls the same collectives from other places and with other memory. */
static weft_status call_elsewhere(void)
{
    weft_status status = WEFT_OK;

    for (int i = 0; i < ROUNDS && status == WEFT_OK; i++)
        status = rank == 1 ? reduce(memory)
                           : weft_all_reduce(world, memory + COUNT, memory + COUNT, COUNT,
                                             WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    return status;
}

static weft_status call(const char *how)
{
    weft_status status;

    if (strcmp(how, "elsewhere") == 0) return call_elsewhere();
    if (strcmp(how, "memory") == 0) return call_in_a_loop(false);
    if (strcmp(how, "equal") == 0) return call_in_a_loop(true);
    if (strcmp(how, "repeated") == 0) return call_after_a_loop();
    if (strcmp(how, "last") == 0 || strcmp(how, "release") == 0) return call_all_but_last();
    status = strncmp(how, "refused", 7) == 0 ? call_with_wrong_count() : call_in_lines();
    return status == WEFT_OK && strstr(how, "go_on") != NULL ? weft_barrier(world, NULL) : status;
}

int main(int argc, char **argv)
{
    weft_comm *pair = NULL;
    weft_context *context;
    weft_status status;
    void *piece = NULL;

    if (argc < 2) return 2;
    if (weft_init(NULL, &context) != WEFT_OK) {
        fprintf(stderr, "weft_init: %s\n", weft_last_error());
        return 2;
    }
    world = weft_world(context);
    rank = weft_rank(context);
    if (strcmp(argv[1], "release") == 0) {
        if (weft_comm_create(world, 2, (int32_t[]){0, 1}, NULL, &pair) != WEFT_OK) return 5;
        world = pair;
    }
    if (weft_alloc(context, ROUNDS * COUNT * sizeof *memory, WEFT_MEMORY_DEVICE, &piece) != WEFT_OK)
        return 3;
    memory = piece;
    memset(memory, 0, ROUNDS * COUNT * sizeof *memory);
    status = call(argv[1]);
    printf("%s: %s\n", weft_status_name(status), status != WEFT_OK ? weft_last_error() : "");
    weft_comm_release(&pair);
    /* A third call of rank 0 that begins after this rank has left is refused, and does not count.
     */
    if (strcmp(argv[1], "end") == 0 && rank == 1) usleep(500000);
    if (strcmp(argv[1], "release") == 0 && weft_barrier(weft_world(context), NULL) != WEFT_OK)
        return 6;
    if (weft_free(context, piece) != WEFT_OK) return 4;
    weft_context_release(&context);
    return 0;
}
