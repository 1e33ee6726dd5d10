/* carry_check.c BOARD - one rank that calls every collective, on a plugin that may not have it.
 *
 * Every element of every collective is compared, also those that the collective must not write, in
 * place and not, on the default stream and on another, with roots and counts per rank.  With
 * CARRY_REFUSED, every collective but the barrier must be refused instead.  After a barrier, every
 * rank must see what the others did before it, in the folder BOARD.  Started by `weft run`. */
#include "weft/weft.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_RANKS = 8, MOST = 16 * MOST_RANKS, UNWRITTEN = 99, ROUNDS = 3 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status status_ = (call);                                                              \
        if (status_ != WEFT_OK) return status_;                                                    \
    } while (0)

static weft_context *context;
static weft_stream *other;
static int32_t rank, size;

/* One call, and what it must give. */
struct call {
    uint32_t collective, dtype, reduction;
    int32_t root;
    bool in_place;
    uint64_t count;
    weft_stream *stream;
    uint64_t send_counts[MOST_RANKS], send_offsets[MOST_RANKS];
    uint64_t recv_counts[MOST_RANKS], recv_offsets[MOST_RANKS];
    double sent[MOST], expected[MOST];
    uint64_t send_at, recv_at; /* elements in the memory, if the call is in place */
};

/* ---- elements ---- */

static void store(uint32_t dtype, double value, char *at)
{
    const float f32 = (float)value;
    const int16_t i16 = (int16_t)value;
    const uint8_t u8 = (uint8_t)value;

    if (dtype == WEFT_DTYPE_F64) memcpy(at, &value, sizeof value);
    if (dtype == WEFT_DTYPE_F32) memcpy(at, &f32, sizeof f32);
    if (dtype == WEFT_DTYPE_I16) memcpy(at, &i16, sizeof i16);
    if (dtype == WEFT_DTYPE_U8) memcpy(at, &u8, sizeof u8);
}

/* Element INDEX of FROM's buffer.  Averages of floats are exact on up to 4 ranks. */
static double value(const struct call *c, int32_t from, uint64_t index)
{
    bool rounds = c->reduction == WEFT_REDUCE_AVG &&
                  (c->dtype == WEFT_DTYPE_F32 || c->dtype == WEFT_DTYPE_F64);

    return (double)(((uint64_t)from * 7 + index * 3) % 5 + 1) * (rounds ? 12 : 1);
}

static double reduce(const struct call *c, uint64_t index)
{
    double all = value(c, 0, index);

    for (int32_t r = 1; r < size; r++) {
        double one = value(c, r, index);

        if (c->reduction == WEFT_REDUCE_MAX)
            all = one > all ? one : all;
        else
            all += one;
    }
    if (c->reduction != WEFT_REDUCE_AVG) return all;
    all /= size;
    return c->dtype == WEFT_DTYPE_F32 || c->dtype == WEFT_DTYPE_F64 ? all : (double)(int64_t)all;
}

/* ---- what each collective gives ---- */

/* Elements that rank FROM sends to rank TO in the variants with counts. */
static uint64_t between(const struct call *c, int32_t from, int32_t to)
{
    return ((uint64_t)from * 2 + (uint64_t)to * 3 + c->count) % 4;
}

/* Parts follow each other in reverse order, with a gap of one element. */
static void lay(uint64_t *counts, uint64_t *offsets)
{
    uint64_t at = 1;

    for (int32_t i = size; i-- > 0;) {
        offsets[i] = at;
        at += counts[i] + 1;
    }
}

/* The first of COUNT elements that FROM sends to this rank, at FIRST, arrive at TO. */
static void arrive(struct call *c, int32_t from, uint64_t first, uint64_t to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        c->expected[to + i] = value(c, from, first + i);
}

/* Where rank FROM's part for this rank begins in its memory. */
static uint64_t start_of(const struct call *c, int32_t from)
{
    uint64_t counts[MOST_RANKS] = {0}, offsets[MOST_RANKS] = {0};

    for (int32_t i = 0; i < size; i++)
        counts[i] = between(c, c->collective == WEFT_COLL_SCATTER_V ? 0 : from, i);
    lay(counts, offsets);
    return offsets[rank];
}

static void expect_even(struct call *c)
{
    uint64_t n = c->count;
    bool is_root = rank == c->root;

    for (int32_t r = 0; r < size; r++) {
        if (c->collective == WEFT_COLL_ALL_GATHER || (c->collective == WEFT_COLL_GATHER && is_root))
            arrive(c, r, 0, (uint64_t)r * n, n);
        if (c->collective == WEFT_COLL_ALL_TO_ALL)
            arrive(c, r, (uint64_t)rank * n, (uint64_t)r * n, n);
    }
    if (c->collective == WEFT_COLL_BROADCAST) arrive(c, c->root, 0, 0, n);
    if (c->collective == WEFT_COLL_SCATTER) arrive(c, c->root, (uint64_t)rank * n, 0, n);
    for (uint64_t i = 0; i < n; i++) {
        if (c->collective == WEFT_COLL_ALL_REDUCE || (c->collective == WEFT_COLL_REDUCE && is_root))
            c->expected[i] = reduce(c, i);
        if (c->collective == WEFT_COLL_REDUCE_SCATTER)
            c->expected[i] = reduce(c, (uint64_t)rank * n + i);
    }
    if (c->collective == WEFT_COLL_ALL_GATHER || c->collective == WEFT_COLL_GATHER)
        c->send_at = (uint64_t)rank * n;
    if (c->collective == WEFT_COLL_SCATTER || c->collective == WEFT_COLL_REDUCE_SCATTER)
        c->recv_at = (uint64_t)rank * n;
}

/* The variants with counts per rank.  In gather_v and scatter_v the counts do not depend on the
 * root. */
static void expect_uneven(struct call *c)
{
    bool is_root = rank == c->root;

    for (int32_t r = 0; r < size; r++) {
        c->send_counts[r] = between(c, c->collective == WEFT_COLL_ALL_TO_ALL_V ? rank : 0, r);
        c->recv_counts[r] =
            c->collective == WEFT_COLL_ALL_TO_ALL_V ? between(c, r, rank) : between(c, 0, r);
    }
    lay(c->send_counts, c->send_offsets);
    lay(c->recv_counts, c->recv_offsets);
    for (int32_t r = 0; r < size; r++) {
        if (c->collective == WEFT_COLL_ALL_GATHER_V ||
            (c->collective == WEFT_COLL_GATHER_V && is_root))
            arrive(c, r, 0, c->recv_offsets[r], c->recv_counts[r]);
        if (c->collective == WEFT_COLL_ALL_TO_ALL_V)
            arrive(c, r, start_of(c, r), c->recv_offsets[r], c->recv_counts[r]);
    }
    for (uint64_t i = 0; i < c->send_counts[rank]; i++)
        if (c->collective == WEFT_COLL_REDUCE_SCATTER_V)
            c->expected[i] = reduce(c, c->send_offsets[rank] + i);
    if (c->collective == WEFT_COLL_SCATTER_V)
        arrive(c, c->root, start_of(c, c->root), 0, c->send_counts[rank]);
    c->count = between(c, 0, rank);
}

static bool is_uneven(uint32_t collective)
{
    return collective >= WEFT_COLL_ALL_GATHER_V;
}

static void expect(struct call *c)
{
    for (uint64_t i = 0; i < MOST; i++) {
        c->sent[i] = value(c, rank, i);
        c->expected[i] = UNWRITTEN;
    }
    if (is_uneven(c->collective))
        expect_uneven(c);
    else
        expect_even(c);
}

/* ---- the call ---- */

static weft_status post(const struct call *c, const char *send, char *recv)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = c->collective,
                                 .dtype = c->dtype,
                                 .reduction = c->reduction,
                                 .root = c->root,
                                 .send = send,
                                 .recv = recv,
                                 .count = c->count,
                                 .send_counts = c->send_counts,
                                 .send_offsets = c->send_offsets,
                                 .recv_counts = c->recv_counts,
                                 .recv_offsets = c->recv_offsets,
                                 .stream = c->stream};
    weft_status status = weft_collective(weft_world(context), &args);

    if (getenv("CARRY_REFUSED") == NULL) return status;
    if (status != WEFT_ERR_UNSUPPORTED)
        return weft_fail(WEFT_ERR_MISMATCH, "the call is not refused");
    return WEFT_OK;
}

static weft_status compare(const struct call *c, const char *got, uint64_t first)
{
    size_t element = weft_dtype_bytes(c->dtype);

    for (uint64_t i = first; i < MOST; i++) {
        char wanted[8];

        store(c->dtype, c->expected[i - first], wanted);
        if (memcmp(wanted, got + i * element, element) == 0) continue;
        if (c->in_place && c->expected[i - first] == UNWRITTEN) continue; /* it was sent */
        return weft_fail(
            WEFT_ERR_MISMATCH,
            "collective %u of dtype %u, reduction %u, root %d, count %llu%s: element %llu is "
            "wrong; it should be %g",
            c->collective, c->dtype, c->reduction, c->root, (unsigned long long)c->count,
            c->in_place ? ", in place" : "", (unsigned long long)i, c->expected[i - first]);
    }
    return WEFT_OK;
}

/* MEMORY has two buffers of MOST elements of 8 bytes. */
static weft_status check(struct call *c, char *memory)
{
    static char host[2 * MOST * 8], got[MOST * 8];
    size_t element = weft_dtype_bytes(c->dtype);
    char *recv = memory + (size_t)MOST * 8, *send = memory;

    expect(c);
    for (uint64_t i = 0; i < MOST; i++) {
        uint64_t from = c->in_place && i >= c->send_at ? i - c->send_at : i;

        store(c->dtype, c->sent[from], host + i * element);
        store(c->dtype, c->in_place ? c->sent[from] : UNWRITTEN,
              host + (size_t)MOST * 8 + i * element);
    }
    TRY(weft_memory_copy(context, host, memory, sizeof host, c->stream));
    TRY(post(c, c->in_place ? recv + c->send_at * element : send,
             c->in_place ? recv + c->recv_at * element : recv));
    TRY(weft_memory_copy(context, recv, got, sizeof got, c->stream));
    TRY(weft_context_wait(context, c->stream, WEFT_FOREVER));
    return getenv("CARRY_REFUSED") != NULL ? WEFT_OK
                                           : compare(c, got, c->in_place ? c->recv_at : 0);
}

static bool reduces(uint32_t collective)
{
    return collective == WEFT_COLL_ALL_REDUCE || collective == WEFT_COLL_REDUCE ||
           collective == WEFT_COLL_REDUCE_SCATTER || collective == WEFT_COLL_REDUCE_SCATTER_V;
}

static weft_status check_all(struct call *c, char *memory)
{
    static const uint64_t counts[] = {0, 1, 7};

    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++)
        for (int32_t root = 0; root<size; root += size> 1 ? size - 1 : 1)
            for (int way = 0; way < 3; way++) {
                struct call one = *c;

                /* in place on the root only: the others' memory is apart */
                one.in_place =
                    way == 2 && !is_uneven(c->collective) &&
                    ((c->collective != WEFT_COLL_REDUCE && c->collective != WEFT_COLL_GATHER &&
                      c->collective != WEFT_COLL_SCATTER) ||
                     rank == root);
                one.count = counts[n];
                one.root = root;
                one.stream = way == 1 ? other : NULL;
                TRY(check(&one, memory));
            }
    return WEFT_OK;
}

static weft_status check_collectives(char *memory)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_I16, WEFT_DTYPE_U8,
                                      WEFT_DTYPE_F64};
    static const uint32_t reductions[] = {WEFT_REDUCE_SUM, WEFT_REDUCE_MAX, WEFT_REDUCE_AVG};

    for (uint32_t collective = 0; collective < WEFT_COLL_COUNT; collective++)
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
            for (size_t r = 0; r < sizeof reductions / sizeof reductions[0]; r++) {
                struct call c = {.collective = collective,
                                 .dtype = dtypes[d],
                                 .reduction = reduces(collective) ? reductions[r] : 0};

                if (collective == WEFT_COLL_BARRIER || (!reduces(collective) && r > 0)) continue;
                TRY(check_all(&c, memory));
            }
    return WEFT_OK;
}

/* ---- barriers, groups and memory ---- */

static weft_status check_barriers(const char *board)
{
    char name[512];

    for (int round = 0; round < ROUNDS; round++) {
        int made;

        snprintf(name, sizeof name, "%s/%d-%d", board, round, rank);
        made = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (made < 0) return weft_fail(WEFT_ERR_SYSTEM, "%s cannot be made", name);
        close(made);
        TRY(weft_barrier(weft_world(context), round == 1 ? other : NULL));
        TRY(weft_context_wait(context, round == 1 ? other : NULL, WEFT_FOREVER));
        for (int32_t r = 0; r < size; r++) {
            snprintf(name, sizeof name, "%s/%d-%d", board, round, r);
            if (access(name, F_OK) != 0)
                return weft_fail(WEFT_ERR_MISMATCH, "the barrier did not wait for rank %d", r);
        }
    }
    TRY(weft_barrier(weft_world(context), NULL));
    for (int round = 0; round < ROUNDS; round++) {
        snprintf(name, sizeof name, "%s/%d-%d", board, round, rank);
        if (unlink(name) != 0) return weft_fail(WEFT_ERR_SYSTEM, "%s cannot be removed", name);
    }
    return WEFT_OK;
}

/* A call group cannot have a collective that weft carries. */
static weft_status check_group(char *memory)
{
    enum weft_support_level level = WEFT_SUPPORT_NO;
    weft_status inside, ended;

    TRY(weft_comm_support(weft_world(context), WEFT_COLL_ALL_GATHER, WEFT_DTYPE_F32, 0, &level));
    TRY(weft_group_begin(weft_world(context)));
    inside = weft_all_gather(weft_world(context), memory, memory + 64, 1, WEFT_DTYPE_F32, NULL);
    ended = weft_group_end(weft_world(context));
    if (level != WEFT_SUPPORT_NO) return inside == WEFT_OK ? ended : inside;
    if (inside != WEFT_ERR_UNSUPPORTED || ended != WEFT_ERR_UNSUPPORTED)
        return weft_fail(WEFT_ERR_MISMATCH, "a group accepts a collective that weft carries");
    if (getenv("CARRY_REFUSED") == NULL && strstr(weft_last_error(), "inside a call group") == NULL)
        return weft_fail(WEFT_ERR_MISMATCH, "the refusal is: %s", weft_last_error());
    return WEFT_OK;
}

static weft_status run(const char *board)
{
    weft_memory_info info = {.struct_size = sizeof info};
    void *memory = NULL;

    TRY(weft_stream_create(context, &other));
    TRY(weft_alloc(context, (uint64_t)2 * MOST * 8, WEFT_MEMORY_DEVICE, &memory));
    TRY(check_collectives(memory));
    TRY(check_barriers(board));
    TRY(check_group(memory));
    TRY(weft_barrier(weft_world(context), NULL)); /* no rank leaves while another is in a group */
    TRY(weft_free(context, memory));
    weft_stream_release(&other);
    TRY(weft_memory_get(context, &info));
    if (info.pieces != 0)
        return weft_fail(WEFT_ERR_MISMATCH, "%llu pieces of memory are not freed",
                         (unsigned long long)info.pieces);
    return WEFT_OK;
}

int main(int count, char **arguments)
{
    weft_init_options options = {.struct_size = sizeof options};
    weft_status status;

    if (count != 2) return 2;
    (void)mkdir(arguments[1], 0700); /* every rank tries */
    status = weft_init(&options, &context);
    if (status == WEFT_OK) {
        rank = weft_rank(context);
        size = weft_size(context);
        status = run(arguments[1]);
    }
    if (status != WEFT_OK) {
        fprintf(stderr, "carry_check: rank %d: %s\n", rank, weft_last_error());
        return 1;
    }
    if (rank == 0) printf("all collectives are right on %d ranks\n", size);
    weft_context_release(&context);
    return 0;
}
