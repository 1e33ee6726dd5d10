/* samplesort.c - sort numbers that one rank has, on all ranks: collectives with a count for each
 * rank.
 *
 *     weft run -n 4 ./samplesort
 *
 * Rank 0 deals its numbers to the ranks, in parts that may differ in size.  Each rank sorts its
 * part, and the ranks agree on limits between them.  Then each rank sends every other rank the
 * numbers within the limits of that rank, and sorts what it gets.  The parts, one behind the other,
 * are the sorted numbers.  The memory is the host's, so a CPU backend is needed. */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 100003 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static weft_context *ctx;
static weft_comm *world;
static int rank, ranks;

static void *room_for(uint64_t count, size_t bytes)
{
    void *room = calloc(count + 1, bytes);

    if (room == NULL) abort();
    return room;
}

static void wait_for_all(void)
{
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
}

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Set OFFSETS[i] to the sum of the counts before COUNTS[i], and return the sum of all. */
static uint64_t add_up(const uint64_t *counts, uint64_t *offsets)
{
    uint64_t sum = 0;

    for (int i = 0; i < ranks; sum += counts[i++])
        offsets[i] = sum;
    return sum;
}

/* How many of the numbers each rank gets: as S(0) splits a tensor. */
static void split(uint64_t *counts, uint64_t *offsets)
{
    const int64_t shape = NUMBERS;
    weft_mesh *mesh;
    weft_spec *spec;

    MUST(weft_mesh_parse_for("all=*", ranks, &mesh));
    MUST(weft_spec_parse_placements(mesh, WEFT_DTYPE_I64, 1, &shape, "S(0)", &spec));
    MUST(weft_spec_counts(spec, (size_t)ranks, NULL, counts, offsets));
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
}

/* This rank's part of ALL.  Rank 0 has ALL, and tells each rank how many numbers it gets. */
static int64_t *deal(const int64_t *all, uint64_t *count)
{
    uint64_t *counts = room_for((uint64_t)ranks, sizeof *counts);
    uint64_t *offsets = room_for((uint64_t)ranks, sizeof *offsets);
    int64_t *mine;

    if (rank == 0) split(counts, offsets);
    MUST(weft_scatter(world, counts, count, 1, WEFT_DTYPE_U64, 0, NULL));
    wait_for_all();
    mine = room_for(*count, sizeof *mine);
    MUST(weft_scatter_v(world, all, counts, offsets, mine, *count, WEFT_DTYPE_I64, 0, NULL));
    wait_for_all();
    free(counts);
    free(offsets);
    return mine;
}

/* Write ranks - 1 limits to LIMITS: rank 0 chooses them among samples of all sorted parts. */
static void agree_on_limits(const int64_t *mine, uint64_t count, int64_t *limits)
{
    int64_t *samples = room_for((uint64_t)ranks, sizeof *samples), *all;

    all = room_for((uint64_t)ranks * (uint64_t)ranks, sizeof *all);
    for (int i = 0; i < ranks && count > 0; i++)
        samples[i] = mine[count * (uint64_t)i / (uint64_t)ranks];
    MUST(weft_gather(world, samples, all, (uint64_t)ranks, WEFT_DTYPE_I64, 0, NULL));
    wait_for_all();
    qsort(all, (size_t)ranks * (size_t)ranks, sizeof *all, by_value);
    for (int i = 1; i < ranks; i++)
        limits[i - 1] = all[i * ranks];
    MUST(weft_broadcast(world, limits, limits, (uint64_t)ranks - 1, WEFT_DTYPE_I64, 0, NULL));
    wait_for_all();
    free(samples);
    free(all);
}

/* Send each rank the numbers of sorted MINE within its limits, and return those that come here. */
static int64_t *exchange(const int64_t *mine, uint64_t count, const int64_t *limits, uint64_t *got)
{
    uint64_t *lists = room_for(4 * (uint64_t)ranks, sizeof *lists), at = 0;
    uint64_t *sent = lists, *sent_at = sent + ranks, *received = sent_at + ranks;
    uint64_t *received_at = received + ranks;
    int64_t *part;

    for (int i = 0; i < ranks; i++)
        for (; at < count && (i == ranks - 1 || mine[at] < limits[i]); at++)
            sent[i]++;
    MUST(weft_all_to_all(world, sent, received, 1, WEFT_DTYPE_U64, NULL));
    wait_for_all();
    add_up(sent, sent_at);
    *got = add_up(received, received_at);
    part = room_for(*got, sizeof *part);
    MUST(weft_all_to_all_v(world, mine, sent, sent_at, part, received, received_at, WEFT_DTYPE_I64,
                           NULL));
    wait_for_all();
    free(lists);
    return part;
}

/* Set ALL on rank 0 to the parts of all ranks, one behind the other. */
static void collect(const int64_t *part, uint64_t count, int64_t *all)
{
    uint64_t *counts = room_for(2 * (uint64_t)ranks, sizeof *counts), *offsets = counts + ranks;

    MUST(weft_gather(world, &count, counts, 1, WEFT_DTYPE_U64, 0, NULL));
    wait_for_all();
    add_up(counts, offsets);
    MUST(weft_gather_v(world, part, count, all, counts, offsets, WEFT_DTYPE_I64, 0, NULL));
    wait_for_all();
    free(counts);
}

int main(void)
{
    int64_t *all, *expected, *mine, *part, *limits;
    uint64_t count, got, most;

    MUST(weft_init(NULL, &ctx));
    world = weft_world(ctx);
    rank = weft_rank(ctx);
    ranks = weft_size(ctx);
    all = room_for(NUMBERS, sizeof *all);
    expected = room_for(NUMBERS, sizeof *expected);
    limits = room_for((uint64_t)ranks, sizeof *limits);
    for (int64_t i = 0; i < NUMBERS; i++)
        expected[i] = all[i] = i * i % 65537 * 7919 % 1000003;
    qsort(expected, NUMBERS, sizeof *expected, by_value);

    mine = deal(all, &count);
    qsort(mine, count, sizeof *mine, by_value);
    agree_on_limits(mine, count, limits);
    part = exchange(mine, count, limits, &got);
    qsort(part, got, sizeof *part, by_value);
    MUST(weft_reduce(world, &got, &most, 1, WEFT_DTYPE_U64, WEFT_REDUCE_MAX, 0, NULL));
    collect(part, got, all);
    if (rank == 0) {
        if (memcmp(all, expected, NUMBERS * sizeof *all) != 0) {
            fprintf(stderr, "the numbers are not sorted\n");
            return EXIT_FAILURE;
        }
        printf("%d numbers are sorted; a rank had at most %llu of them\n", NUMBERS,
               (unsigned long long)most);
    }
    free(all);
    free(expected);
    free(limits);
    free(mine);
    free(part);
    weft_context_release(&ctx);
    return EXIT_SUCCESS;
}
