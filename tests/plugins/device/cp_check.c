/* cp_check.c - one rank that computes attention by context parallel on any backend, with a kernel
 * whose results are known: all scores are 0, so that the output is the mean of the values.  Each
 * problem contributes 1 to each gradient, so that a gradient is the number of its problems. Started
 * by `weft run` with any number of ranks; prints JSON. */
#include "rank.h"
#include "support/local_tensor.h"
#include "weft/context_parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, DEPTH = 6, PER_RANK = 7 };

static uint32_t dtype; /* f32 or bf16 */
static int64_t heads, problems;

static uint64_t bytes_of(int64_t count)
{
    return (uint64_t)count * weft_dtype_bytes((enum weft_dtype)dtype);
}

static float load(const void *elements, int64_t i)
{
    uint32_t bits = 0;
    float value;

    if (dtype == WEFT_DTYPE_F32) {
        memcpy(&value, (const char *)elements + i * 4, sizeof value);
        return value;
    }
    memcpy((char *)&bits + 2, (const char *)elements + i * 2, 2); /* little-endian */
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Elements of bf16 are small integers and halves of them, which it has. */
static void store(void *elements, int64_t i, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (dtype == WEFT_DTYPE_F32)
        memcpy((char *)elements + i * 4, &value, sizeof value);
    else
        memcpy((char *)elements + i * 2, (const char *)&bits + 2, 2);
}

static void copy(const void *source, void *target, uint64_t bytes, weft_stream *on)
{
    must(weft_memory_copy(context, source, target, bytes, on), "weft_memory_copy");
    must(weft_context_wait(context, on, WEFT_FOREVER), "weft_context_wait");
}

static char *row_of(const weft_cp_local *local, int64_t b, int64_t h, int64_t s)
{
    return (char *)local->memory +
           bytes_of(b * local->batch + h * local->head + s * local->sequence);
}

/* ---- the kernel ---- */

static void fill_rows(const weft_cp_call *call, const weft_cp_local *local, int64_t count,
                      int64_t of_heads, float value)
{
    char row[DEPTH * sizeof(float)];

    for (int64_t d = 0; d < DEPTH; d++)
        store(row, d, value);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < of_heads; h++)
            for (int64_t s = 0; s < count; s++)
                copy(row, row_of(local, b, h, s), bytes_of(DEPTH), call->stream);
}

/* The mean of the values of a head, whose elements of a row are equal. */
static float mean_of(const weft_cp_call *call, int64_t b, int64_t h)
{
    char row[DEPTH * sizeof(float)];
    float sum = 0;

    for (int64_t s = 0; s < call->problem->keys; s++) {
        copy(row_of(&call->v, b, h, s), row, bytes_of(DEPTH), call->stream);
        sum += load(row, 0);
    }
    return sum / (float)call->problem->keys;
}

static void forward(const weft_cp_call *call)
{
    float lse = logf((float)call->problem->keys);
    char row[DEPTH * sizeof(float)];

    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < call->heads; h++) {
            float mean = mean_of(call, b, h);

            for (int64_t d = 0; d < DEPTH; d++)
                store(row, d, mean);
            for (int64_t s = 0; s < call->problem->queries; s++) {
                copy(row, row_of(&call->out, b, h, s), bytes_of(DEPTH), call->stream);
                copy(&lse,
                     (float *)call->lse.memory + b * call->lse.batch + h * call->lse.head +
                         s * call->lse.sequence,
                     sizeof lse, call->stream);
            }
        }
}

static weft_status kernel(void *unused, const weft_cp_call *call)
{
    (void)unused;
    problems++;
    if (!call->backward) {
        forward(call);
        return WEFT_OK;
    }
    fill_rows(call, &call->d_q, call->problem->queries, call->heads, 1);
    fill_rows(call, &call->d_k, call->problem->keys, call->key_heads, 1);
    fill_rows(call, &call->d_v, call->problem->keys, call->key_heads, 1);
    return WEFT_OK;
}

/* ---- one attention ---- */

enum tensor { Q, K, V, OUT, LSE, D_OUT, D_Q, D_K, D_V, TENSORS };

static void *memory[TENSORS];

static int64_t elements(void)
{
    return BATCH * heads * PER_RANK * DEPTH;
}

/* Values are the indices of their keys. */
static void make_tensors(void)
{
    char *values = malloc(bytes_of(elements()));

    if (values == NULL) exit(1);
    for (int t = 0; t < TENSORS; t++) {
        must(weft_alloc(context, bytes_of(elements()), WEFT_MEMORY_DEVICE, &memory[t]),
             "weft_alloc");
        must(weft_memory_fill(context, memory[t], 0, bytes_of(elements()), stream),
             "weft_memory_fill");
    }
    for (int64_t i = 0; i < elements(); i++)
        store(values, i, (float)(weft_rank(context) * PER_RANK + i / DEPTH % PER_RANK));
    copy(values, memory[V], bytes_of(elements()), stream);
    free(values);
}

static void check(enum tensor tensor, double want, const char *what)
{
    char *got = malloc(bytes_of(elements()));

    if (got == NULL) exit(1);
    copy(memory[tensor], got, bytes_of(elements()), stream);
    for (int64_t i = 0; i < elements(); i++) {
        double value = (double)load(got, i);

        if (fabs(value - want) <= (dtype == WEFT_DTYPE_F32 ? 1e-4 : 2e-2) * (1 + fabs(want)))
            continue;
        fprintf(stderr, "rank %d: %s, element %lld: %g, not %g\n", weft_rank(context), what,
                (long long)i, value, want);
        exit(1);
    }
    free(got);
}

static void check_lse(double want)
{
    float got[BATCH * 64 * PER_RANK];
    int64_t rows = elements() / DEPTH;

    copy(memory[LSE], got, (uint64_t)rows * sizeof got[0], stream);
    for (int64_t i = 0; i < rows; i++) {
        if (fabs((double)got[i] - want) <= 1e-4) continue;
        fprintf(stderr, "rank %d: log-sum-exp %lld: %g, not %g\n", weft_rank(context), (long long)i,
                (double)got[i], want);
        exit(1);
    }
}

static void run(uint32_t variant)
{
    const int32_t ranks = weft_size(context);
    const int64_t length = (int64_t)ranks * PER_RANK;
    const weft_cp_options options = {.struct_size = sizeof options,
                                     .length = length,
                                     .variant = variant,
                                     .batch = BATCH,
                                     .heads = heads,
                                     .depth = DEPTH,
                                     .dtype = dtype};
    const int64_t shape[] = {BATCH, heads, PER_RANK, DEPTH};
    weft_cp_tensors t = {.struct_size = sizeof t};
    weft_tensor **const all[TENSORS] = {&t.q,     &t.k,   &t.v,   &t.out, &t.lse,
                                        &t.d_out, &t.d_q, &t.d_k, &t.d_v};
    weft_cp *cp = NULL;

    make_tensors();
    for (int i = 0; i < TENSORS; i++) {
        *all[i] = local_tensor(context, i == LSE ? WEFT_DTYPE_F32 : (enum weft_dtype)dtype,
                               i == LSE ? 3 : 4, shape, memory[i], NULL);
        if (*all[i] == NULL) must(WEFT_ERR_INVALID, "weft_tensor_wrap");
    }
    must(weft_cp_create(context, mesh, "0", &options, &cp), "weft_cp_create");
    must(weft_cp_forward(cp, &t, kernel, NULL, stream), "weft_cp_forward");
    check(OUT, (double)(length - 1) / 2, "out");
    check_lse(log((double)length));
    must(weft_cp_backward(cp, &t, kernel, NULL, stream), "weft_cp_backward");
    check(D_Q, variant == WEFT_CP_RING ? ranks : 1, "d_q");
    check(D_K, variant == WEFT_CP_HEADS ? 1 : ranks, "d_k");
    check(D_V, variant == WEFT_CP_HEADS ? 1 : ranks, "d_v");
    weft_cp_release(&cp);
    for (int i = 0; i < TENSORS; i++) {
        weft_tensor_release(all[i]);
        must(weft_free(context, memory[i]), "weft_free");
    }
}

int main(void)
{
    static const uint32_t variants[] = {WEFT_CP_RING, WEFT_CP_GATHER, WEFT_CP_HEADS};

    rank_begin();
    heads = weft_size(context);
    for (int i = 0; i < 6; i++) {
        dtype = i % 2 == 0 ? WEFT_DTYPE_F32 : WEFT_DTYPE_BF16;
        run(variants[i / 2]);
    }
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"ranks\": %d, \"problems\": %lld}\n",
               weft_context_plugin(context)->name, weft_size(context), (long long)problems);
    rank_end();
    return 0;
}
