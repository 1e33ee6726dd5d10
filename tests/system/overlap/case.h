/* case.h - random gathers and reduce-scatters, the same on all ranks, compared with a serial
 * reference and with the plain sequence. */
#ifndef WEFT_TESTS_OVERLAP_CASE_H
#define WEFT_TESTS_OVERLAP_CASE_H

#include "support/expect.h"
#include "support/random.h"
#include "weft/weft.h"

#include <stdio.h>
#include <string.h>

enum { RANKS_MOST = 4, ROWS_MOST = 40, WIDTH_MOST = 5, CALLS = 5, ELEMENTS = 48 * WIDTH_MOST };

struct overlap_case {
    weft_overlap_options options;
    weft_overlap_call calls[CALLS];
    bool uses_stream;
};

static struct overlap_case drawn;

static inline void draw_case(struct random *r)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_BF16, WEFT_DTYPE_F64};

    drawn.options = (weft_overlap_options){sizeof drawn.options, ELEMENTS * 8, random_chance(r, 2)};
    drawn.uses_stream = random_chance(r, 3);
    for (int i = 0; i < CALLS; i++)
        drawn.calls[i] =
            (weft_overlap_call){.struct_size = sizeof drawn.calls[i],
                                .rows = random_in(r, random_chance(r, 8) ? 0 : 1, ROWS_MOST),
                                .width = random_in(r, 1, WIDTH_MOST),
                                .dtype = dtypes[random_in(r, 0, 2)],
                                .chunks = random_in(r, WEFT_OVERLAP_PLAIN, 6),
                                .flops = (uint64_t)random_in(r, 0, 1000)};
}

/* The case as text, for failures. */
static inline const char *case_text(void)
{
    static char text[1024];
    int at = snprintf(text, sizeof text, "%s%s", drawn.options.messages ? "messages" : "windows",
                      drawn.uses_stream ? ", stream" : "");

    for (int i = 0; i < CALLS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "; %s[%lld,%lld] in %d chunks",
                       weft_dtype_name((enum weft_dtype)drawn.calls[i].dtype),
                       (long long)drawn.calls[i].rows, (long long)drawn.calls[i].width,
                       drawn.calls[i].chunks);
    return text;
}

/* ---- the engine ---- */

struct engine {
    const weft_overlap_call *call;
    int32_t rank;
    int seen[ROWS_MOST]; /* calls for each row */
    char whole[ELEMENTS * 8];
};

static inline size_t row_bytes(const weft_overlap_call *call)
{
    return (size_t)call->width * weft_dtype_bytes((enum weft_dtype)call->dtype);
}

/* Element I of what RANK has; sums of all ranks round. */
static inline double value_of(int32_t rank, int64_t i)
{
    return (double)((i * 37 + rank * 101) % 97) / 3 - 11;
}

static inline void set(void *memory, uint32_t dtype, int64_t at, double value)
{
    if (dtype == WEFT_DTYPE_F64) ((double *)memory)[at] = value;
    if (dtype == WEFT_DTYPE_F32) ((float *)memory)[at] = (float)value;
    if (dtype == WEFT_DTYPE_BF16) {
        float single = (float)value;
        uint32_t bits;

        memcpy(&bits, &single, sizeof bits);
        ((uint16_t *)memory)[at] = (uint16_t)(bits >> 16);
    }
}

static inline weft_status consume(void *user, const weft_overlap_rows *rows)
{
    struct engine *e = user;
    size_t row = row_bytes(e->call);

    EXPECT(rows->count >= 1 && rows->first + rows->count <= e->call->rows);
    for (int64_t i = rows->first; i < rows->first + rows->count; i++)
        e->seen[i]++;
    memcpy(e->whole + (size_t)rows->first * row, rows->memory, (size_t)rows->count * row);
    return WEFT_OK;
}

static inline weft_status produce(void *user, const weft_overlap_rows *rows)
{
    struct engine *e = user;

    for (int64_t i = rows->first; i < rows->first + rows->count; i++)
        e->seen[i]++;
    for (int64_t i = 0; i < rows->count * e->call->width; i++)
        set(rows->memory, e->call->dtype, i, value_of(e->rank, rows->first * e->call->width + i));
    return WEFT_OK;
}

static inline weft_status each_once(const struct engine *e)
{
    for (int64_t i = 0; i < e->call->rows; i++)
        EXPECT(e->seen[i] == 1);
    return WEFT_OK;
}

/* ---- one rank ---- */

struct share {
    int64_t first, count;
};

static inline struct share share_of(const weft_context *ctx, const weft_overlap_call *call)
{
    int64_t ranks = weft_size(ctx), most = (call->rows + ranks - 1) / ranks;
    int64_t first = wf_min_i64(weft_rank(ctx) * most, call->rows);

    return (struct share){first, wf_min_i64(most, call->rows - first)};
}

static inline weft_status run_gather(weft_context *ctx, weft_overlap_state *overlap,
                                     const weft_overlap_call *call, weft_stream *stream)
{
    static _Thread_local struct engine e;
    char expected[ELEMENTS * 8];
    size_t row = row_bytes(call);

    memset(&e, 0, sizeof e);
    e.call = call;
    for (int64_t i = 0; i < call->rows * call->width; i++)
        set(expected, call->dtype, i, value_of(7, i));
    EXPECT(weft_overlap_gather(overlap, call, expected + (size_t)share_of(ctx, call).first * row,
                               consume, &e, stream) == WEFT_OK);
    EXPECT(memcmp(e.whole, expected, (size_t)call->rows * row) == 0);
    return each_once(&e);
}

static inline weft_status run_scatter(weft_context *ctx, weft_overlap_state *overlap,
                                      const weft_overlap_call *call, weft_stream *stream)
{
    static _Thread_local struct engine e;
    weft_overlap_call plain = *call;
    char output[ELEMENTS * 8] = {0}, expected[ELEMENTS * 8] = {0};
    size_t bytes = (size_t)share_of(ctx, call).count * row_bytes(call);

    memset(&e, 0, sizeof e);
    e.call = call;
    e.rank = weft_rank(ctx);
    EXPECT(weft_overlap_reduce_scatter(overlap, call, produce, &e, output, stream) == WEFT_OK);
    WF_TRY(each_once(&e));
    plain.chunks = WEFT_OVERLAP_PLAIN;
    EXPECT(weft_overlap_reduce_scatter(overlap, &plain, produce, &e, expected, stream) == WEFT_OK);
    EXPECT(memcmp(output, expected, bytes) == 0);
    for (int64_t i = 0; call->dtype == WEFT_DTYPE_F64 && i < (int64_t)bytes / 8; i++) {
        double sum = 0, got;

        for (int32_t rank = 0; rank < weft_size(ctx); rank++)
            sum += value_of(rank, share_of(ctx, call).first * call->width + i);
        memcpy(&got, output + i * 8, sizeof got);
        EXPECT(got > sum - 1e-9 && got < sum + 1e-9);
    }
    return WEFT_OK;
}

/* Run the case on this rank. */
static inline weft_status run_case(weft_context *ctx)
{
    weft_stream *stream = NULL;
    weft_status status = WEFT_OK;
    weft_overlap_state *overlap;

    EXPECT(weft_overlap_create(weft_world(ctx), &drawn.options, &overlap) == WEFT_OK);
    if (drawn.uses_stream) EXPECT(weft_stream_create(ctx, &stream) == WEFT_OK);
    for (int i = 0; i < CALLS && status == WEFT_OK; i++) {
        status = run_gather(ctx, overlap, &drawn.calls[i], stream);
        if (status == WEFT_OK) status = run_scatter(ctx, overlap, &drawn.calls[i], stream);
    }
    weft_stream_release(ctx, &stream);
    weft_overlap_release(&overlap);
    return status;
}

#endif
