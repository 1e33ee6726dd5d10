/* overlap.c - all ranks sum their gradients while the next gradients are computed.
 *
 *     weft run -n 4 ./overlap
 *
 * Each gradient is posted to a communication stream, P(sum) -> R, as soon as it is computed, and
 * the host computes the next one.  A work handle represents each sum.  The consumer of a gradient
 * waits for that handle only.  Here the consumer is the host; weft_stream_wait_work makes a stream
 * wait instead. */
#include <weft/weft.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { LAYERS = 6, ELEMENTS = 1 << 18, BYTES = ELEMENTS * sizeof(float) };

/* One layer's gradient: on the host, where it is computed, and on the device, where it is
 * summed. */
struct gradient {
    float *host;
    void *part, *sum;
    weft_work *summed;
};

static void allocate(weft_context *ctx, struct gradient *g)
{
    void *host;

    MUST(weft_alloc(ctx, BYTES, WEFT_MEMORY_PINNED, &host)); /* copies of it do not stop the host */
    g->host = host;
    MUST(weft_alloc(ctx, BYTES, WEFT_MEMORY_DEVICE, &g->part));
    MUST(weft_alloc(ctx, BYTES, WEFT_MEMORY_DEVICE, &g->sum));
}

/* Small integers, so that the sum is exact. */
static void compute(const struct gradient *g, int32_t rank, int layer)
{
    for (int i = 0; i < ELEMENTS; i++)
        g->host[i] = (float)(rank + 1) * (float)(i % 7 + layer);
}

static int count_wrong(const struct gradient *g, int32_t ranks, int layer)
{
    int32_t all_ranks = ranks * (ranks + 1) / 2; /* 1 + 2 + ... */
    int wrong = 0;

    for (int i = 0; i < ELEMENTS; i++)
        wrong += g->host[i] != (float)(all_ranks * (i % 7 + layer));
    return wrong;
}

static void release(weft_context *ctx, struct gradient *g)
{
    weft_work_release(&g->summed);
    MUST(weft_free(ctx, g->part));
    MUST(weft_free(ctx, g->sum));
    MUST(weft_free(ctx, g->host));
}

static weft_bound *bind_sum(weft_context *ctx)
{
    weft_mesh *mesh;
    weft_spec *part, *sum;
    weft_plan *plan;
    weft_bound *bound;

    MUST(weft_mesh_parse_for("dp=*", weft_size(ctx), &mesh));
    MUST(weft_spec_parse(mesh, "f32[512,512] P(sum)", &part));
    MUST(weft_spec_parse(mesh, "f32[512,512] R", &sum));
    MUST(weft_context_plan(ctx, part, sum, NULL, &plan)); /* with the costs of the context */
    MUST(weft_plan_bind(plan, weft_world(ctx), NULL, &bound));
    weft_plan_release(&plan);
    weft_spec_release(&part);
    weft_spec_release(&sum);
    weft_mesh_release(&mesh);
    return bound;
}

/* How much of the sums ran beside the host's work, and how long they took on the device. */
static void report(const struct gradient *gradients)
{
    int64_t nanoseconds;
    int done = 0;

    for (int layer = 0; layer < LAYERS; layer++)
        done += weft_work_test(gradients[layer].summed) == WEFT_OK;
    printf("%d of %d sums were complete when the last gradient was computed\n", done, LAYERS);
    MUST(weft_work_wait(gradients[0].summed, WEFT_FOREVER));
    if (weft_work_elapsed(gradients[LAYERS - 1].summed, gradients[0].summed, &nanoseconds) ==
        WEFT_OK)
        printf("the last %d sums took %.3f ms\n", LAYERS - 1, (double)nanoseconds * 1e-6);
}

int main(void)
{
    struct gradient gradients[LAYERS] = {0};
    weft_context *ctx;
    weft_stream *stream;
    weft_bound *bound;
    int wrong = 0;

    MUST(weft_init(NULL, &ctx));
    MUST(weft_stream_create(ctx, &stream));
    bound = bind_sum(ctx);
    for (int layer = 0; layer < LAYERS; layer++)
        allocate(ctx, &gradients[layer]);

    for (int layer = LAYERS - 1; layer >= 0; layer--) { /* backward */
        struct gradient *g = &gradients[layer];

        compute(g, weft_rank(ctx), layer);
        MUST(weft_memory_copy(ctx, g->host, g->part, BYTES, stream));
        MUST(weft_redistribute(bound, g->part, g->sum, stream, NULL));
        MUST(weft_memory_copy(ctx, g->sum, g->host, BYTES, stream));
        MUST(weft_work_record(ctx, stream, &g->summed));
    }
    if (weft_rank(ctx) == 0) report(gradients);
    for (int layer = LAYERS - 1; layer >= 0;
         layer--) { /* the first sum completes before the last */
        MUST(weft_work_wait(gradients[layer].summed, WEFT_FOREVER));
        wrong += count_wrong(&gradients[layer], weft_size(ctx), layer);
    }
    printf("rank %d: %d of %d elements wrong\n", weft_rank(ctx), wrong, LAYERS * ELEMENTS);

    MUST(weft_stream_wait(stream, WEFT_FOREVER));
    for (int layer = 0; layer < LAYERS; layer++)
        release(ctx, &gradients[layer]);
    weft_bound_release(&bound);
    weft_stream_release(&stream);
    weft_context_release(&ctx);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
