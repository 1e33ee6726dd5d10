/* case.h - random gathers and reduce-scatters, the same on all ranks, compared with a serial
 * reference and with the plain sequence. */
#ifndef WEFT_TESTS_OVERLAP_CASE_H
#define WEFT_TESTS_OVERLAP_CASE_H

#include "base/number.h"
#include "support/device_memory.h"
#include "support/expect.h"
#include "support/random.h"
#include "weft/parallel.h"

#include <stdio.h>
#include <string.h>

enum { RANKS_MOST = 4, ROWS_MOST = 40, WIDTH_MOST = 5, CALLS = 5, ELEMENTS = 48 * WIDTH_MOST };

/* A call with a tensor of [rows, width]. */
struct call {
    int64_t rows, width;
    uint32_t dtype;
    int32_t chunks;
    uint64_t flops;
};

struct overlap_case {
    weft_overlap_options options;
    struct call calls[CALLS];
    bool uses_stream;
};

static struct overlap_case drawn;

static inline void draw_case(struct random *r)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_BF16, WEFT_DTYPE_F64};

    drawn.options = (weft_overlap_options){sizeof drawn.options, ELEMENTS * 8, random_chance(r, 2)};
    drawn.uses_stream = random_chance(r, 3);
    for (int i = 0; i < CALLS; i++)
        drawn.calls[i] = (struct call){.rows = random_in(r, random_chance(r, 8) ? 0 : 1, ROWS_MOST),
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

/* ---- calls ---- */

static inline weft_overlap_call_options options_of(const struct call *call)
{
    return (weft_overlap_call_options){sizeof(weft_overlap_call_options), call->chunks,
                                       call->flops};
}

/* The mesh of all ranks. */
static inline weft_mesh *mesh_of(weft_context *ctx)
{
    int32_t size = weft_size(ctx);
    weft_mesh *mesh = NULL;

    return weft_mesh_create(1, &size, NULL, &mesh) == WEFT_OK ? mesh : NULL;
}

/* The layout of the rows of CALL: S(0) on all ranks. */
static inline weft_spec *spec_of(weft_context *ctx, const struct call *call)
{
    weft_placement rows = {.kind = WEFT_PLACE_SHARD};
    weft_mesh *mesh = mesh_of(ctx);
    weft_spec *spec = NULL;

    if (weft_spec_create(mesh, (enum weft_dtype)call->dtype, 2,
                         (int64_t[]){call->rows, call->width}, &rows, &spec) != WEFT_OK)
        spec = NULL;
    weft_mesh_release(&mesh);
    return spec;
}

static inline weft_tensor *tensor_of(weft_context *ctx, const struct call *call, const void *memory)
{
    weft_spec *spec = spec_of(ctx, call);
    weft_tensor *tensor = NULL;

    if (weft_tensor_wrap(ctx, spec, (void *)(uintptr_t)memory, NULL, &tensor) != WEFT_OK)
        tensor = NULL;
    weft_spec_release(&spec);
    return tensor;
}

typedef weft_status compute_rows(void *user, const weft_overlap_rows *rows);

/* The gather of CALL, whose shard is MEMORY. */
static inline weft_status call_gather(weft_context *ctx, weft_overlap *overlap,
                                      const struct call *call, const void *memory,
                                      compute_rows *consume, void *user, weft_stream *stream)
{
    weft_overlap_call_options options = options_of(call);
    weft_tensor *tensor = tensor_of(ctx, call, memory);
    weft_status status = weft_overlap_gather(overlap, tensor, &options, consume, user, stream);

    weft_tensor_release(&tensor);
    return status;
}

/* The reduce-scatter of CALL to the shard MEMORY. */
static inline weft_status call_scatter(weft_context *ctx, weft_overlap *overlap,
                                       const struct call *call, compute_rows *produce, void *user,
                                       void *memory, weft_stream *stream)
{
    weft_overlap_call_options options = options_of(call);
    weft_tensor *tensor = tensor_of(ctx, call, memory);
    weft_status status =
        weft_overlap_reduce_scatter(overlap, &options, produce, user, tensor, stream);

    weft_tensor_release(&tensor);
    return status;
}

static inline weft_status call_predict(weft_context *ctx, weft_overlap *overlap,
                                       const struct call *call, weft_overlap_prediction *out)
{
    weft_overlap_call_options options = options_of(call);
    weft_spec *spec = spec_of(ctx, call);
    weft_status status = weft_overlap_predict(overlap, spec, &options, out);

    weft_spec_release(&spec);
    return status;
}

static inline weft_status create_overlap(weft_context *ctx, const weft_overlap_options *options,
                                         weft_overlap **out)
{
    weft_mesh *mesh = mesh_of(ctx);
    weft_status status = weft_overlap_create(ctx, mesh, "0", options, out);

    weft_mesh_release(&mesh);
    return status;
}

/* ---- the engine ---- */

struct engine {
    const struct call *call;
    int32_t rank;
    int seen[ROWS_MOST]; /* calls for each row */
    char whole[ELEMENTS * 8];
};

static inline size_t row_bytes(const struct call *call)
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
    return weft_memory_copy(rows->context, rows->memory, e->whole + (size_t)rows->first * row,
                            (size_t)rows->count * row, rows->stream);
}

static inline weft_status produce(void *user, const weft_overlap_rows *rows)
{
    struct engine *e = user;
    char values[ELEMENTS * 8];

    for (int64_t i = rows->first; i < rows->first + rows->count; i++)
        e->seen[i]++;
    for (int64_t i = 0; i < rows->count * e->call->width; i++)
        set(values, e->call->dtype, i, value_of(e->rank, rows->first * e->call->width + i));
    return memory_copy(rows->context, values, rows->memory,
                       (size_t)rows->count * row_bytes(e->call), rows->stream);
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

static inline struct share share_of(const weft_context *ctx, const struct call *call)
{
    int64_t ranks = weft_size(ctx), most = (call->rows + ranks - 1) / ranks;
    int64_t first = wf_min_i64(weft_rank(ctx) * most, call->rows);

    return (struct share){first, wf_min_i64(most, call->rows - first)};
}

static inline weft_status run_gather(weft_context *ctx, weft_overlap *overlap,
                                     const struct call *call, weft_stream *stream)
{
    static _Thread_local struct engine e;
    char expected[ELEMENTS * 8];
    size_t row = row_bytes(call);
    struct share share = share_of(ctx, call);
    void *shard;

    memset(&e, 0, sizeof e);
    e.call = call;
    for (int64_t i = 0; i < call->rows * call->width; i++)
        set(expected, call->dtype, i, value_of(7, i));
    EXPECT(memory_make(ctx, expected + (size_t)share.first * row, (size_t)share.count * row,
                       &shard) == WEFT_OK);
    EXPECT(call_gather(ctx, overlap, call, shard, consume, &e, stream) == WEFT_OK);
    EXPECT(weft_free(ctx, shard) == WEFT_OK);
    EXPECT(memcmp(e.whole, expected, (size_t)call->rows * row) == 0);
    return each_once(&e);
}

/* The reduce-scatter of CALL; its shard becomes SUM, in host memory. */
static inline weft_status scatter_once(weft_context *ctx, weft_overlap *overlap,
                                       const struct call *call, struct engine *e, char *sum,
                                       weft_stream *stream)
{
    size_t bytes = (size_t)share_of(ctx, call).count * row_bytes(call);
    void *shard;

    EXPECT(memory_make(ctx, sum, bytes, &shard) == WEFT_OK);
    EXPECT(call_scatter(ctx, overlap, call, produce, e, shard, stream) == WEFT_OK);
    EXPECT(memory_copy(ctx, shard, sum, bytes, NULL) == WEFT_OK);
    EXPECT(weft_free(ctx, shard) == WEFT_OK);
    return WEFT_OK;
}

/* What all ranks produce for this rank's rows, added up in their order. */
static inline void add_up(weft_context *ctx, const struct call *call, char *sum)
{
    static _Thread_local char values[RANKS_MOST][ELEMENTS * 8];
    struct wf_reduction reduction = {call->dtype, WEFT_REDUCE_SUM, (uint32_t)weft_size(ctx), 0};
    const struct share share = share_of(ctx, call);
    const void *sources[RANKS_MOST];

    for (int32_t rank = 0; rank < weft_size(ctx); rank++) {
        for (int64_t i = 0; i < share.count * call->width; i++)
            set(values[rank], call->dtype, i, value_of(rank, share.first * call->width + i));
        sources[rank] = values[rank];
    }
    wf_elements_reduce(&reduction, sources, sum, (size_t)(share.count * call->width));
}

/* SUM has the bits of EXPECTED or, if the backend adds up in another order, nearly its values. */
static inline weft_status same_sums(const struct call *call, bool has_order, const char *sum,
                                    const char *expected, int64_t count)
{
    size_t element = weft_dtype_bytes((enum weft_dtype)call->dtype);

    if (has_order) EXPECT(memcmp(sum, expected, (size_t)count * element) == 0);
    for (int64_t i = 0; i < count; i++) {
        double got, wanted, tolerance = call->dtype == WEFT_DTYPE_BF16 ? 2 : 1e-4;

        wf_elements_cast(call->dtype, WEFT_DTYPE_F64, sum + (size_t)i * element, &got, 1);
        wf_elements_cast(call->dtype, WEFT_DTYPE_F64, expected + (size_t)i * element, &wanted, 1);
        EXPECT(got > wanted - tolerance && got < wanted + tolerance);
    }
    return WEFT_OK;
}

static inline weft_status run_scatter(weft_context *ctx, weft_overlap *overlap,
                                      const struct call *call, weft_stream *stream)
{
    static _Thread_local struct engine e;
    const char *backend = weft_context_plugin(ctx)->name;
    bool has_order = strcmp(backend, "gloo-cpu") == 0 || strcmp(backend, "nvshmem") == 0;
    int64_t count = share_of(ctx, call).count * call->width;
    weft_overlap_prediction info = {.struct_size = sizeof info};
    struct call plain = *call;
    char sum[ELEMENTS * 8] = {0}, expected[ELEMENTS * 8] = {0};

    memset(&e, 0, sizeof e);
    e.call = call;
    e.rank = weft_rank(ctx);
    add_up(ctx, call, expected);
    EXPECT(call_predict(ctx, overlap, call, &info) == WEFT_OK);
    WF_TRY(scatter_once(ctx, overlap, call, &e, sum, stream));
    WF_TRY(each_once(&e));
    WF_TRY(same_sums(call, has_order || info.reduce_scatter_chunks > 0, sum, expected, count));
    plain.chunks = WEFT_OVERLAP_PLAIN;
    WF_TRY(scatter_once(ctx, overlap, &plain, &e, sum, stream));
    return same_sums(call, has_order, sum, expected, count);
}

/* Run the case on this rank. */
static inline weft_status run_case(weft_context *ctx)
{
    weft_stream *stream = NULL;
    weft_status status = WEFT_OK;
    weft_overlap *overlap;

    EXPECT(create_overlap(ctx, &drawn.options, &overlap) == WEFT_OK);
    if (drawn.uses_stream) EXPECT(weft_stream_create(ctx, &stream) == WEFT_OK);
    for (int i = 0; i < CALLS && status == WEFT_OK; i++) {
        status = run_gather(ctx, overlap, &drawn.calls[i], stream);
        if (status == WEFT_OK) status = run_scatter(ctx, overlap, &drawn.calls[i], stream);
    }
    weft_stream_release(&stream);
    weft_overlap_release(&overlap);
    return status;
}

#endif
