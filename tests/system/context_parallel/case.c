#include "case.h"

#include "support/device_memory.h"
#include "support/expect.h"
#include "support/local_tensor.h"

#include <math.h>
#include <stdlib.h>

struct drawn_case drawn;

static int64_t element_of(int32_t sequence_dim, int64_t heads, int64_t length, int64_t depth,
                          const int64_t *at)
{
    if (sequence_dim == 1) return ((at[0] * length + at[2]) * heads + at[1]) * depth + at[3];
    return ((at[0] * heads + at[1]) * length + at[2]) * depth + at[3];
}

/* The whole tensor VALUES in the layout and dtype of the sizes. */
static void *whole_of(const double *values, int64_t heads)
{
    const struct cp_sizes *s = &drawn.sizes;
    int64_t length = drawn.c.length, depth = s->depth;
    char *out = calloc((size_t)(s->batch * heads * length * depth) + 1, 4);

    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < length; i++)
                for (int64_t d = 0; d < depth; d++)
                    set(out, s->dtype,
                        element_of(s->sequence_dim, heads, length, depth, (int64_t[]){b, h, i, d}),
                        (float)values[((b * heads + h) * length + i) * depth + d]);
    return out;
}

static void shape_of(int64_t heads, int64_t *shape)
{
    const struct cp_sizes *s = &drawn.sizes;

    shape[0] = s->batch;
    shape[1] = s->sequence_dim == 1 ? drawn.c.length : heads;
    shape[2] = s->sequence_dim == 1 ? heads : drawn.c.length;
    shape[3] = s->depth;
}

static size_t bytes_of(int64_t heads)
{
    const struct cp_sizes *s = &drawn.sizes;

    return (size_t)(s->batch * heads * drawn.c.length * s->depth) *
           weft_dtype_bytes((enum weft_dtype)s->dtype);
}

/* Memory of the device for a shard, which has at most the bytes of the whole tensor. */
static weft_status make_shard(weft_context *ctx, int64_t heads, void **out)
{
    return weft_alloc(ctx, bytes_of(heads) + 4, WEFT_MEMORY_DEVICE, out);
}

/* A buffer: its whole shape, and which dimension is the sequence. */
struct buffer {
    enum weft_dtype dtype;
    int32_t dims, dim;
    int64_t shape[4];
};

/* Copy between a whole buffer and this rank's part of it: to the part unless RESTORE. */
static weft_status move(weft_context *ctx, weft_cp *cp, const struct buffer *b, bool restore,
                        const weft_cp_copy_options *options, const void *whole, const void *part)
{
    weft_cp_info info = {.struct_size = sizeof info};
    int64_t shape[4];
    weft_tensor *all, *mine;
    weft_status status;

    EXPECT(weft_cp_get(cp, &info) == WEFT_OK);
    memcpy(shape, b->shape, sizeof shape);
    shape[b->dim] = info.length;
    all = local_tensor(ctx, b->dtype, b->dims, b->shape, whole, NULL);
    mine = local_tensor(ctx, b->dtype, b->dims, shape, part, NULL);
    EXPECT(all != NULL && mine != NULL);
    status = restore ? weft_cp_restore(cp, mine, b->dim, all, options, NULL, NULL)
                     : weft_cp_shard(cp, all, b->dim, mine, options, NULL, NULL);
    weft_tensor_release(&all);
    weft_tensor_release(&mine);
    return status;
}

static weft_status scatter(weft_context *ctx, weft_cp *cp, const double *values, int64_t heads,
                           void **out)
{
    void *host = whole_of(values, heads), *whole = NULL;
    struct buffer buffer = {(enum weft_dtype)drawn.sizes.dtype, 4, drawn.sizes.sequence_dim, {0}};
    weft_status status = memory_make(ctx, host, bytes_of(heads), &whole);

    shape_of(heads, buffer.shape);
    if (status == WEFT_OK) status = make_shard(ctx, heads, out);
    if (status == WEFT_OK) status = move(ctx, cp, &buffer, false, NULL, whole, *out);
    if (status == WEFT_OK) status = weft_context_wait(ctx, NULL, WEFT_FOREVER);
    free(host);
    EXPECT(weft_free(ctx, whole) == WEFT_OK);
    return status;
}

static double tolerance(void)
{
    return drawn.sizes.dtype == WEFT_DTYPE_F32   ? 2e-5
           : drawn.sizes.dtype == WEFT_DTYPE_F16 ? 6e-3
                                                 : 5e-2;
}

static weft_status near(const char *what, double got, double want, double scale)
{
    if (fabs(got - want) <= tolerance() * (scale + fabs(want)) || (got == want)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "%s is %.9g instead of %.9g", what, got, want);
}

/* Restore SHARD on every rank, in host memory, with memory of the caller for one kind of buffer.
 * The caller frees *OUT. */
static weft_status gather(weft_context *ctx, weft_cp *cp, const struct buffer *buffer, size_t bytes,
                          const void *shard, void **out)
{
    weft_cp_copy_options options = {.struct_size = sizeof options, .staging_bytes = bytes};
    void *whole = NULL;
    weft_status status = weft_alloc(ctx, bytes + 1, WEFT_MEMORY_DEVICE, &whole);

    *out = calloc(bytes + 1, 1);
    if (status == WEFT_OK && buffer->dims == 4)
        status = weft_alloc(ctx, bytes + 1, WEFT_MEMORY_DEVICE, &options.staging);
    if (status == WEFT_OK) status = move(ctx, cp, buffer, true, &options, whole, shard);
    if (status == WEFT_OK) status = memory_copy(ctx, whole, *out, bytes, NULL);
    EXPECT(weft_free(ctx, options.staging) == WEFT_OK);
    EXPECT(weft_free(ctx, whole) == WEFT_OK);
    return status;
}

/* Compare SHARD with VALUES. */
static weft_status compare(weft_context *ctx, weft_cp *cp, const char *what, const void *shard,
                           const double *values, int64_t heads)
{
    struct buffer buffer = {(enum weft_dtype)drawn.sizes.dtype, 4, drawn.sizes.sequence_dim, {0}};
    int64_t depth = drawn.sizes.depth, length = drawn.c.length;
    void *whole = NULL;
    weft_status status;

    shape_of(heads, buffer.shape);
    status = gather(ctx, cp, &buffer, bytes_of(heads), shard, &whole);
    for (int64_t i = 0; i < drawn.sizes.batch * heads * length * depth && status == WEFT_OK; i++) {
        int64_t at[] = {i / depth / length / heads, i / depth / length % heads, i / depth % length,
                        i % depth};
        float got = get(whole, drawn.sizes.dtype,
                        element_of(drawn.sizes.sequence_dim, heads, length, depth, at));

        status = near(what, (double)got, values[i], what[0] == 'd' ? 8 : 1);
    }
    free(whole);
    return status;
}

static weft_status compare_lse(weft_context *ctx, weft_cp *cp, const void *shard)
{
    struct buffer buffer = {
        WEFT_DTYPE_F32, 3, 2, {drawn.sizes.batch, drawn.sizes.heads, drawn.c.length}};
    int64_t elements = buffer.shape[0] * buffer.shape[1] * buffer.shape[2];
    void *whole = NULL;
    weft_status status = gather(ctx, cp, &buffer, (size_t)elements * sizeof(float), shard, &whole);

    for (int64_t i = 0; i < elements && status == WEFT_OK; i++)
        status = near("lse", (double)((const float *)whole)[i], drawn.reference.lse[i], 1);
    free(whole);
    return status;
}

struct shards {
    void *q, *k, *v, *d_out, *out, *lse, *d_q, *d_k, *d_v;
};

static weft_status run_passes(weft_context *ctx, weft_cp *cp, struct shards *t)
{
    const struct cp_sizes *s = &drawn.sizes;
    weft_cp_tensors tensors = {.struct_size = sizeof tensors};
    const struct {
        weft_tensor **tensor;
        const void *memory;
        int64_t heads;
    } all[] = {{&tensors.q, t->q, s->heads},        {&tensors.k, t->k, s->key_heads},
               {&tensors.v, t->v, s->key_heads},    {&tensors.out, t->out, s->heads},
               {&tensors.lse, t->lse, s->heads},    {&tensors.d_out, t->d_out, s->heads},
               {&tensors.d_q, t->d_q, s->heads},    {&tensors.d_k, t->d_k, s->key_heads},
               {&tensors.d_v, t->d_v, s->key_heads}};
    weft_cp_info info = {.struct_size = sizeof info};
    weft_stream *stream = NULL;

    EXPECT(weft_cp_get(cp, &info) == WEFT_OK);
    for (size_t i = 0; i < WF_COUNT(all); i++) {
        bool is_lse = all[i].tensor == &tensors.lse, second = is_lse || s->sequence_dim == 2;
        int64_t shape[] = {s->batch, second ? all[i].heads : info.length,
                           second ? info.length : all[i].heads, s->depth};

        *all[i].tensor = local_tensor(ctx, is_lse ? WEFT_DTYPE_F32 : (enum weft_dtype)s->dtype,
                                      is_lse ? 3 : 4, shape, all[i].memory, NULL);
        EXPECT(*all[i].tensor != NULL);
    }

    if (drawn.uses_stream) EXPECT(weft_stream_create(ctx, &stream) == WEFT_OK);
    for (int again = 0; again < 2; again++) { /* scratch of the last time must not matter */
        EXPECT(weft_cp_forward(cp, &tensors, attend_anywhere, NULL, stream) == WEFT_OK);
        EXPECT(weft_cp_backward(cp, &tensors, attend_anywhere, NULL, stream) == WEFT_OK);
    }
    EXPECT(weft_context_wait(ctx, stream, WEFT_FOREVER) == WEFT_OK);
    weft_stream_release(&stream);
    for (size_t i = 0; i < WF_COUNT(all); i++)
        weft_tensor_release(all[i].tensor);
    return WEFT_OK;
}

static weft_status run_attention(weft_context *ctx, weft_cp *cp, struct shards *t)
{
    const struct reference *r = &drawn.reference;
    void **const results[] = {&t->out, &t->d_q, &t->d_k, &t->d_v};

    EXPECT(scatter(ctx, cp, r->q, r->heads, &t->q) == WEFT_OK);
    EXPECT(scatter(ctx, cp, r->k, r->key_heads, &t->k) == WEFT_OK);
    EXPECT(scatter(ctx, cp, r->v, r->key_heads, &t->v) == WEFT_OK);
    EXPECT(scatter(ctx, cp, r->d_out, r->heads, &t->d_out) == WEFT_OK);
    for (size_t i = 0; i < WF_COUNT(results); i++)
        EXPECT(make_shard(ctx, r->heads, results[i]) == WEFT_OK);
    EXPECT(weft_alloc(ctx, (uint64_t)(r->batch * r->heads * r->length + 1) * sizeof(float),
                      WEFT_MEMORY_DEVICE, &t->lse) == WEFT_OK);
    WF_TRY(run_passes(ctx, cp, t));
    EXPECT(compare(ctx, cp, "out", t->out, r->out, r->heads) == WEFT_OK);
    EXPECT(compare_lse(ctx, cp, t->lse) == WEFT_OK);
    EXPECT(compare(ctx, cp, "d_q", t->d_q, r->d_q, r->heads) == WEFT_OK);
    EXPECT(compare(ctx, cp, "d_k", t->d_k, r->d_k, r->key_heads) == WEFT_OK);
    EXPECT(compare(ctx, cp, "d_v", t->d_v, r->d_v, r->key_heads) == WEFT_OK);
    return WEFT_OK;
}

static weft_status run_plan(weft_context *ctx, const weft_mesh *mesh)
{
    struct shards t = {0};
    void *const all[] = {&t.q, &t.k, &t.v, &t.d_out, &t.out, &t.lse, &t.d_q, &t.d_k, &t.d_v};
    weft_cp_info info = {.struct_size = sizeof info};
    int32_t coord[WEFT_MAX_AXES], axis;
    weft_cp_options options = cp_options(&drawn.c.options, drawn.c.length, &drawn.sizes);
    weft_cp *cp;
    weft_status status;

    EXPECT(weft_cp_create(ctx, mesh, "cp", &options, &cp) == WEFT_OK);
    EXPECT(weft_mesh_coord_of(mesh, weft_rank(ctx), coord) == WEFT_OK &&
           weft_mesh_find_axis(mesh, "cp", &axis) == WEFT_OK);
    EXPECT(weft_cp_get(cp, &info) == WEFT_OK && info.heads == drawn.sizes.heads);
    EXPECT(info.length == weft_cp_plan_length(info.plan, coord[axis]));
    status = run_attention(ctx, cp, &t);
    for (size_t i = 0; i < WF_COUNT(all); i++)
        EXPECT(weft_free(ctx, *(void **)all[i]) == WEFT_OK);
    weft_cp_release(&cp);
    return status;
}

weft_status run_case(weft_context *ctx)
{
    weft_mesh *mesh;
    weft_status status;

    EXPECT(weft_mesh_parse(drawn.mesh, &mesh) == WEFT_OK);
    status = run_plan(ctx, mesh);
    weft_mesh_release(&mesh);
    return status;
}

void draw_case(struct random *r, int32_t ranks, int32_t others)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_F32, WEFT_DTYPE_F16,
                                      WEFT_DTYPE_BF16};
    int64_t shares;

    cp_case_draw(r, ranks, &drawn.c);
    shares = drawn.c.options.variant == WEFT_CP_HEADS ? ranks : 1;
    if (random_chance(r, 2))
        snprintf(drawn.mesh, sizeof drawn.mesh, "dp=%d,cp=%d", others, ranks);
    else
        snprintf(drawn.mesh, sizeof drawn.mesh, "cp=%d,dp=%d", ranks, others);
    drawn.sizes = (struct cp_sizes){random_in(r, 1, 2),         0,
                                    random_in(r, 1, 6),         shares * random_in(r, 1, 2),
                                    dtypes[random_in(r, 0, 3)], random_in(r, 1, 2)};
    drawn.sizes.heads = drawn.sizes.key_heads * random_in(r, 1, 2);
    drawn.uses_stream = random_chance(r, 3);
    reference_make(&drawn.reference, &drawn.c, &drawn.sizes, r);
}

const char *case_text(void)
{
    static char text[1400];

    snprintf(
        text, sizeof text,
        "mesh %s: %s\nbatch %lld heads %lld key_heads %lld depth %lld dtype %u sequence_dim %d",
        drawn.mesh, cp_case_text(&drawn.c), (long long)drawn.sizes.batch,
        (long long)drawn.sizes.heads, (long long)drawn.sizes.key_heads,
        (long long)drawn.sizes.depth, drawn.sizes.dtype, drawn.sizes.sequence_dim);
    return text;
}
