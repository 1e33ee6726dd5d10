/* lamb.c - data parallel with an optimizer that needs the norms of whole tensors (LAMB), of which
 * each rank updates some.
 *
 *     weft run -n 4 ./lamb
 *
 * All tensors are in one array.  Every rank has all tensors, and separate samples.  The array is
 * cut where tensors end, into a part for each rank; the parts differ in length.  Each rank gets the
 * mean gradient of its part, updates its tensors with the moments that it alone has, and sends them
 * to all.  Each rank also trains alone on all samples, and compares.  The arrays are the host's, so
 * a CPU backend is needed. */
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 9, RANKS_MAX = 64, SAMPLES = 8 /* of a rank and step */, STEPS = 80 };

static const int lengths[TENSORS] = {300, 16, 256, 16, 256, 16, 64, 8, 100};

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* ---- the model: a weighted sum of the inputs, whose weights are to be found ---- */

static int parameters(void)
{
    int sum = 0;

    for (int t = 0; t < TENSORS; t++)
        sum += lengths[t];
    return sum;
}

static float input_of(int64_t sample, int i)
{
    return (float)((sample * 31 + (int64_t)i * 17 + 23000) % 23 - 11) / 16;
}

static float wanted(int i)
{
    return (float)(i % 7 - 3) / 8 + 1;
}

static float error_of(const float *w, int64_t sample)
{
    float error = 0;

    for (int i = 0; i < parameters(); i++)
        error += (w[i] - wanted(i)) * input_of(sample, i);
    return error;
}

/* Of samples that are not trained with. */
static float loss_of(const float *w)
{
    float loss = 0;

    for (int64_t sample = -100; sample < 0; sample++)
        loss += error_of(w, sample) * error_of(w, sample) / 100;
    return loss;
}

/* The part of SAMPLES samples from FIRST on in a mean gradient of COUNT samples. */
static void find_gradient(const float *w, int64_t first, int count, float *gradient)
{
    memset(gradient, 0, (size_t)parameters() * sizeof *gradient);
    for (int64_t sample = first; sample < first + SAMPLES; sample++) {
        float error = error_of(w, sample);

        for (int i = 0; i < parameters(); i++)
            gradient[i] += error * input_of(sample, i) / (float)count;
    }
}

/* ---- the optimizer ---- */

static float norm_of(int count, const float *elements)
{
    float squares = 0;

    for (int i = 0; i < count; i++)
        squares += elements[i] * elements[i];
    return sqrtf(squares);
}

/* Update a tensor W of COUNT elements: Adam's step, as long as a part of the tensor's norm. */
static void update(int count, float *w, const float *gradient, float *first, float *second,
                   int step)
{
    float direction[512], ratio, rate = 0.04F * (1 - (float)step / (STEPS + 1));

    for (int i = 0; i < count; i++) {
        first[i] += 0.1F * (gradient[i] - first[i]);
        second[i] += 0.01F * (gradient[i] * gradient[i] - second[i]);
        direction[i] = first[i] / (1 - powf(0.9F, (float)step)) /
                       (sqrtf(second[i] / (1 - powf(0.99F, (float)step))) + 1e-6F);
    }
    ratio = norm_of(count, w) / norm_of(count, direction);
    for (int i = 0; i < count; i++)
        w[i] -= rate * ratio * direction[i];
}

static float *zeros(int count)
{
    float *memory = calloc((size_t)count + 1, sizeof *memory);

    if (memory == NULL) abort();
    return memory;
}

/* ---- training ---- */

/* The part of each rank: its first tensor, and the elements of its tensors. */
struct parts {
    int tensors[RANKS_MAX + 1]; /* those of rank r are tensors[r] to before tensors[r + 1] */
    uint64_t counts[RANKS_MAX], offsets[RANKS_MAX];
};

/* Give the tensors to the ranks in their order, so that the ranks have about equal numbers of
 * elements. */
static struct parts cut(int ranks)
{
    struct parts parts = {.counts = {0}};
    int t = 0, at = 0;

    if (ranks > RANKS_MAX) abort();
    for (int r = 0; r < ranks; r++) {
        parts.tensors[r] = t;
        parts.offsets[r] = (uint64_t)at;
        for (; t < TENSORS &&
               (r == ranks - 1 || at + lengths[t] / 2 < parameters() * (r + 1) / ranks);
             t++)
            at += lengths[t];
        parts.counts[r] = (uint64_t)at - parts.offsets[r];
    }
    parts.tensors[ranks] = t;
    return parts;
}

static int64_t first_sample(int step, int rank, int ranks)
{
    return ((int64_t)step * ranks + rank) * SAMPLES;
}

/* Update the tensors of RANK in W by GRADIENT; both, and the moments, begin with its part. */
static void update_part(const struct parts *parts, int rank, float *w, const float *gradient,
                        float *moments, int step)
{
    int at = 0, all = (int)parts->counts[rank];

    for (int t = parts->tensors[rank]; t < parts->tensors[rank + 1]; at += lengths[t++])
        update(lengths[t], w + at, gradient + at, moments + at, moments + all + at, step);
}

static void train_together(weft_comm *world, const struct parts *parts, float *w)
{
    int rank = weft_comm_rank(world), ranks = weft_comm_size(world);
    float *gradient = zeros(parameters()), *own = gradient + parts->offsets[rank];
    float *moments = zeros(2 * (int)parts->counts[rank]), *part = w + parts->offsets[rank];

    for (int step = 1; step <= STEPS; step++) {
        find_gradient(w, first_sample(step, rank, ranks), ranks * SAMPLES, gradient);
        MUST(weft_reduce_scatter_v(world, gradient, own, parts->counts, parts->offsets,
                                   WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
        MUST(weft_context_wait(weft_comm_context(world), NULL, WEFT_FOREVER));
        update_part(parts, rank, part, own, moments, step);
        MUST(
            weft_all_gather_v(world, part, w, parts->counts, parts->offsets, WEFT_DTYPE_F32, NULL));
        MUST(weft_context_wait(weft_comm_context(world), NULL, WEFT_FOREVER));
    }
    free(gradient);
    free(moments);
}

/* The same on one rank, with the samples of RANKS.  Their gradients are added in the order of the
 * ranks, as the collective adds them: late steps magnify what rounding changes. */
static void train_alone(int ranks, float *w)
{
    float *gradient = zeros(parameters()), *of_rank = zeros(parameters());
    float *moments = zeros(2 * parameters());
    struct parts whole = cut(1);

    for (int step = 1; step <= STEPS; step++) {
        memset(gradient, 0, (size_t)parameters() * sizeof *gradient);
        for (int r = 0; r < ranks; r++) {
            find_gradient(w, first_sample(step, r, ranks), ranks * SAMPLES, of_rank);
            for (int i = 0; i < parameters(); i++)
                gradient[i] += of_rank[i];
        }
        update_part(&whole, 0, w, gradient, moments, step);
    }
    free(gradient);
    free(of_rank);
    free(moments);
}

/* Parameters before training: a tensor without a norm would not move. */
static float *start(void)
{
    float *w = zeros(parameters());

    for (int i = 0; i < parameters(); i++)
        w[i] = 0.25F;
    return w;
}

int main(void)
{
    float difference = 0, before, after, *together = start(), *alone = start();
    struct parts parts;
    weft_context *ctx;
    int rank;

    MUST(weft_init(NULL, &ctx));
    rank = weft_rank(ctx);
    parts = cut(weft_size(ctx));
    before = loss_of(together);
    train_together(weft_world(ctx), &parts, together);
    after = loss_of(together);
    train_alone(weft_size(ctx), alone);
    for (int i = 0; i < parameters(); i++)
        difference = fmaxf(difference, fabsf(together[i] - alone[i]));
    printf("rank %d: updates %d of %d tensors, %d of %d parameters; loss %.4f, before %.4f; "
           "parameters differ by %g\n",
           rank, parts.tensors[rank + 1] - parts.tensors[rank], TENSORS, (int)parts.counts[rank],
           parameters(), (double)after, (double)before, (double)difference);
    free(together);
    free(alone);
    weft_context_release(&ctx);
    return after < before / 2 && difference < 1e-6F ? EXIT_SUCCESS : EXIT_FAILURE;
}
