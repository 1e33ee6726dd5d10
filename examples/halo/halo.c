/* halo.c - heat flows along a rod whose parts are on all ranks; neighbours exchange their borders.
 *
 *     weft run -n 4 ./halo
 *     weft run -n 4 ./halo all      as if the backend had no messages
 *
 * Each rank keeps its part of the rod between two cells of its neighbours, the halo.  In each step
 * it sends its outermost cells and receives the halo, in one call group, so that no rank waits for
 * another one's send.  Where the backend has no messages, all ranks get the outermost cells of all.
 * At the end, rank 0 compares the rod with one that it computes alone.  The
 * steps compute on the host, so the backend must work in host memory. */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { CELLS = 1000, STEPS = 500 };

/* NEXT[i] follows from NOW[i - 1] to NOW[i + 1]. */
static void flow(int64_t count, const double *now, double *next)
{
    for (int64_t i = 1; i <= count; i++)
        next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
}

/* Exchange the borders of COUNT cells at CELL[1]: all ranks get the outermost cells of all. */
static void exchange_with_all(weft_comm *comm, double *cell, int64_t count)
{
    double borders[2 * CELLS]; /* every rank has a cell */
    const double own[2] = {cell[1], cell[count]};
    int32_t rank = weft_comm_rank(comm);

    MUST(weft_all_gather(comm, own, borders, 2, WEFT_DTYPE_F64, NULL));
    MUST(weft_context_wait(weft_comm_context(comm), NULL, WEFT_FOREVER));
    if (rank > 0) cell[0] = borders[2 * rank - 1];
    if (rank + 1 < weft_comm_size(comm)) cell[count + 1] = borders[2 * rank + 2];
}

/* The same by messages between neighbours.  The ends of the rod are kept at 0. */
static void exchange(weft_comm *comm, double *cell, int64_t count)
{
    const enum weft_dtype dtype = WEFT_DTYPE_F64;
    int32_t left = weft_comm_rank(comm) - 1, right = left + 2;

    MUST(weft_group_begin(comm));
    if (left >= 0) {
        MUST(weft_send(comm, &cell[1], 1, dtype, left, 0, NULL));
        MUST(weft_receive(comm, &cell[0], 1, dtype, left, 0, NULL));
    }
    if (right < weft_comm_size(comm)) {
        MUST(weft_send(comm, &cell[count], 1, dtype, right, 0, NULL));
        MUST(weft_receive(comm, &cell[count + 1], 1, dtype, right, 0, NULL));
    }
    MUST(weft_group_end(comm));
    MUST(weft_context_wait(weft_comm_context(comm), NULL, WEFT_FOREVER));
}

static void *allocate(weft_context *ctx, int64_t cells)
{
    uint64_t bytes = (uint64_t)cells * sizeof(double);
    void *memory;

    MUST(weft_alloc(ctx, bytes, WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 0, bytes);
    return memory;
}

/* Let the heat of ROD, this rank's part, flow. */
static void run(weft_comm *comm, weft_tensor *rod, bool by_messages)
{
    weft_context *ctx = weft_tensor_context(rod);
    int64_t count = weft_tensor_shard(rod)->elements;
    uint64_t bytes = (uint64_t)count * sizeof(double);
    double *now = allocate(ctx, count + 2), *next = allocate(ctx, count + 2);

    MUST(weft_tensor_to_host(rod, &now[1], bytes, NULL));
    for (int step = 0; step < STEPS; step++) {
        double *last = now;

        if (by_messages)
            exchange(comm, now, count);
        else
            exchange_with_all(comm, now, count);
        flow(count, now, next);
        now = next;
        next = last;
    }
    MUST(weft_tensor_from_host(rod, &now[1], bytes, NULL));
    MUST(weft_free(ctx, now));
    MUST(weft_free(ctx, next));
}

/* The same on one rank; the sums are in the same order, so the bits are equal. */
static int count_wrong(const double *start, const double *end)
{
    static double cells[2][CELLS + 2];
    int wrong = 0;

    memcpy(&cells[0][1], start, CELLS * sizeof *start);
    for (int step = 0; step < STEPS; step++)
        flow(CELLS, cells[step % 2], cells[(step + 1) % 2]);
    for (int i = 0; i < CELLS; i++)
        wrong += end[i] != cells[STEPS % 2][i + 1];
    return wrong;
}

int main(int argc, char **argv)
{
    static double start[CELLS], end[CELLS];
    weft_tensor *rod, *whole;
    weft_context *ctx;
    weft_mesh *mesh;
    weft_spec *spec;
    bool by_messages;
    int wrong = 0;

    MUST(weft_init(NULL, &ctx));
    by_messages =
        !(argc > 1 && strcmp(argv[1], "all") == 0) && weft_comm_has_messages(weft_world(ctx));
    if (weft_size(ctx) > CELLS) return EXIT_FAILURE;
    MUST(weft_mesh_parse_for("x=*", weft_size(ctx), &mesh));
    MUST(weft_spec_parse_placements(mesh, WEFT_DTYPE_F64, 1, (const int64_t[]){CELLS}, "S(0)",
                                    &spec));
    for (int i = 0; i < CELLS; i++)
        start[i] = i % 97;
    MUST(weft_tensor_from_full(ctx, spec, start, NULL, NULL, &rod));
    run(weft_world(ctx), rod, by_messages);
    MUST(weft_tensor_full(rod, 0, NULL, NULL, &whole)); /* rank 0 gets all of it */
    if (weft_rank(ctx) == 0) {
        MUST(weft_tensor_to_host(whole, end, sizeof end, NULL));
        wrong = count_wrong(start, end);
        printf("%d of %d cells wrong after %d steps on %d ranks\n", wrong, CELLS, STEPS,
               weft_size(ctx));
    }
    weft_tensor_release(&whole);
    weft_tensor_release(&rod);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
