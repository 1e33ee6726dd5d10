/* same_bits.c - every rank gets the same bits from an all-reduce of complex numbers, however its
 * memory is aligned, and they are those of products and sums that are rounded one by one:
 *
 *     weft run -n 3 same_bits
 *
 * Kernels take several elements at a time where they can, and a compiler that fuses products into
 * sums need not do so alike in all their loops. */
#include "rank.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 2000, ROOM = (MOST + 1) * 16, MAX_RANKS = 16 };

static void *in, *out, *gathered; /* on the device */

/* ---- numbers ---- */

struct number {
    double re, im;
};

static double rounded(uint32_t dtype, double value)
{
    return dtype == WEFT_DTYPE_C128 ? value : (double)(float)value;
}

static struct number product(uint32_t dtype, struct number a, struct number b)
{
    double rr = rounded(dtype, a.re * b.re), ii = rounded(dtype, a.im * b.im);
    double ri = rounded(dtype, a.re * b.im), ir = rounded(dtype, a.im * b.re);

    return (struct number){rounded(dtype, rr - ii), rounded(dtype, ri + ir)};
}

static struct number sum(uint32_t dtype, struct number a, struct number b)
{
    return (struct number){rounded(dtype, a.re + b.re), rounded(dtype, a.im + b.im)};
}

/* In [0.5, 1.5), with all bits of the mantissa in use. */
static double part(uint32_t dtype, int32_t rank, uint64_t index)
{
    uint64_t bits = ((uint64_t)rank * 1000003 + index + 1) * UINT64_C(0x9e3779b97f4a7c15);

    bits ^= bits >> 29;
    bits *= UINT64_C(0xbf58476d1ce4e5b9);
    return rounded(dtype, 0.5 + (double)(bits >> 11) * 0x1p-53);
}

/* Element INDEX of RANK.  The element after the last is its factor. */
static struct number element(uint32_t dtype, int32_t rank, uint64_t index)
{
    return (struct number){part(dtype, rank, 2 * index), part(dtype, rank, 2 * index + 1)};
}

static void store(uint32_t dtype, struct number value, uint8_t *at)
{
    double wide[] = {value.re, value.im};
    float narrow[] = {(float)value.re, (float)value.im};

    if (dtype == WEFT_DTYPE_C128)
        memcpy(at, wide, sizeof wide);
    else
        memcpy(at, narrow, sizeof narrow);
}

/* ---- the reduction ---- */

struct task {
    uint32_t dtype, reduction;
    uint64_t count, bytes; /* of elements, of one */
};

/* In rank order. */
static void want(const struct task *task, uint64_t index, uint8_t *at)
{
    struct number all = {0, 0};

    for (int32_t r = 0; r < weft_size(context); r++) {
        struct number one = element(task->dtype, r, index);
        if (task->reduction == WEFT_REDUCE_PREMUL_SUM)
            one = product(task->dtype, one, element(task->dtype, r, MOST));
        if (r == 0)
            all = one;
        else if (task->reduction == WEFT_REDUCE_PROD)
            all = product(task->dtype, all, one);
        else
            all = sum(task->dtype, all, one);
    }
    store(task->dtype, all, at);
}

/* RECV on rank 1 and SEND on rank 2 are not aligned to 16 bytes. */
static void run(const struct task *task)
{
    static uint8_t host[ROOM];
    int32_t me = weft_rank(context);
    uint64_t total = task->bytes * task->count;
    uint8_t *send = (uint8_t *)in + (me == 2 ? task->bytes / 2 : 0);
    uint8_t *recv = (uint8_t *)out + (me == 1 ? task->bytes / 2 : 0);
    uint8_t scale[16];
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = task->dtype,
                                 .reduction = task->reduction,
                                 .send = send,
                                 .recv = recv,
                                 .count = task->count,
                                 .scale = scale,
                                 .stream = stream};

    store(task->dtype, element(task->dtype, me, MOST), scale);
    for (uint64_t i = 0; i < task->count; i++)
        store(task->dtype, element(task->dtype, me, i), host + i * task->bytes);
    must(weft_memory_copy(context, host, send, total, stream), "weft_memory_copy");
    must(weft_collective(weft_world(context), &args), "all_reduce");
    must(weft_all_gather(weft_world(context), recv, gathered, total, WEFT_DTYPE_U8, stream),
         "all_gather");
    rank_wait();
}

/* 1 if some rank has other bits than expected. */
static int check(const char *name, const struct task *task)
{
    static uint8_t all[MAX_RANKS * ROOM];
    uint64_t total = task->bytes * task->count;
    uint8_t wanted[16];

    run(task);
    must(weft_memory_copy(context, gathered, all, total * (uint64_t)weft_size(context), stream),
         "weft_memory_copy");
    rank_wait();
    for (uint64_t i = 0; i < task->count; i++) {
        want(task, i, wanted);
        for (int32_t r = 0; r < weft_size(context); r++)
            if (memcmp(all + (uint64_t)r * total + i * task->bytes, wanted, task->bytes) != 0) {
                printf("%s of %llu x %s: other bits on rank %d, element %llu\n", name,
                       (unsigned long long)task->count, weft_dtype_name(task->dtype), r,
                       (unsigned long long)i);
                return 1;
            }
    }
    return 0;
}

int main(void)
{
    static const uint64_t counts[] = {500, MOST}; /* read by every rank itself, or in slices */
    int failed = 0;

    rank_begin();
    if (weft_size(context) > MAX_RANKS) return 2;
    must(weft_alloc(context, ROOM, WEFT_MEMORY_DEVICE, &in), "weft_alloc");
    must(weft_alloc(context, ROOM, WEFT_MEMORY_DEVICE, &out), "weft_alloc");
    must(weft_alloc(context, MAX_RANKS * ROOM, WEFT_MEMORY_DEVICE, &gathered), "weft_alloc");
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (uint32_t dtype = WEFT_DTYPE_C64; dtype <= WEFT_DTYPE_C128; dtype++) {
            struct task task = {dtype, WEFT_REDUCE_PROD, counts[c],
                                dtype == WEFT_DTYPE_C128 ? 16 : 8};
            failed += check("prod", &task);
            task.reduction = WEFT_REDUCE_PREMUL_SUM;
            failed += check("premul_sum", &task);
        }
    must(weft_free(context, in), "weft_free");
    must(weft_free(context, out), "weft_free");
    must(weft_free(context, gathered), "weft_free");
    rank_end();
    if (failed == 0) printf("all ranks have the same bits\n");
    return failed != 0;
}
