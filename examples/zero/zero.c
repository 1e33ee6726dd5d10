/* zero.c - data parallel with an optimizer whose moments are split among the ranks (ZeRO-1).
 *
 *     weft run -n 4 ./zero
 *
 * All parameters are in one array, with room for parts of equal length.  Every rank has all of
 * them, and samples of its own.  Each rank gets the mean gradient of its part, updates its part
 * with the moments that it alone has, and sends it to all.  Each rank also trains alone on all
 * samples, and compares.  The arrays are the host's, so a CPU backend is needed. */
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 1001, SAMPLES = 8 /* of a rank and step */, STEPS = 60 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* ---- the model: a weighted sum of the inputs, whose weights are to be found ---- */

static float input_of(int64_t sample, int64_t i)
{
    return (float)((sample * 31 + i * 17 + 23000) % 23 - 11) / 16;
}

static float wanted(int64_t i)
{
    return (float)(i % 7 - 3) / 8;
}

static float error_of(const float *w, int64_t sample)
{
    float error = 0;

    for (int64_t i = 0; i < PARAMETERS; i++)
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

/* Add the gradient of SAMPLE, of which COUNT are averaged. */
static void add_gradient(const float *w, int64_t sample, int count, float *gradient)
{
    float error = error_of(w, sample);

    for (int64_t i = 0; i < PARAMETERS; i++)
        gradient[i] += error * input_of(sample, i) / (float)count;
}

static void adam(int64_t count, float *w, const float *gradient, float *first, float *second,
                 int step)
{
    float rate = 0.01F * sqrtf(1 - powf(0.99F, (float)step)) / (1 - powf(0.9F, (float)step));

    for (int64_t i = 0; i < count; i++) {
        first[i] += 0.1F * (gradient[i] - first[i]);
        second[i] += 0.01F * (gradient[i] * gradient[i] - second[i]);
        w[i] -= rate * first[i] / (sqrtf(second[i]) + 1e-3F);
    }
}

static float *zeros(int64_t count)
{
    float *memory = calloc((size_t)count + 1, sizeof *memory);

    if (memory == NULL) abort();
    return memory;
}

/* ---- training ---- */

/* Sample INDEX of RANK in STEP. */
static int64_t sample_of(int step, int rank, int ranks, int index)
{
    return ((int64_t)step * ranks + rank) * SAMPLES + index;
}

/* Train W, which has room for as many parts of LENGTH parameters as there are ranks. */
static void train_together(weft_comm *world, int64_t length, float *w)
{
    int rank = weft_comm_rank(world), ranks = weft_comm_size(world);
    float *gradient = zeros(ranks * length), *own = gradient + rank * length;
    float *first = zeros(length), *second = zeros(length);

    for (int step = 1; step <= STEPS; step++) {
        memset(gradient, 0, (size_t)(ranks * length) * sizeof *gradient);
        for (int s = 0; s < SAMPLES; s++)
            add_gradient(w, sample_of(step, rank, ranks, s), SAMPLES, gradient);
        MUST(weft_reduce_scatter(world, gradient, own, (uint64_t)length, WEFT_DTYPE_F32,
                                 WEFT_REDUCE_AVG, NULL));
        MUST(weft_context_wait(weft_comm_context(world), NULL, WEFT_FOREVER));
        adam(length, w + rank * length, own, first, second, step);
        MUST(weft_all_gather(world, w + rank * length, w, (uint64_t)length, WEFT_DTYPE_F32, NULL));
        MUST(weft_context_wait(weft_comm_context(world), NULL, WEFT_FOREVER));
    }
    free(gradient);
    free(first);
    free(second);
}

/* The same on one rank, with the samples of RANKS. */
static void train_alone(int ranks, float *w)
{
    float *gradient = zeros(PARAMETERS), *first = zeros(PARAMETERS), *second = zeros(PARAMETERS);

    for (int step = 1; step <= STEPS; step++) {
        memset(gradient, 0, PARAMETERS * sizeof *gradient);
        for (int r = 0; r < ranks; r++)
            for (int s = 0; s < SAMPLES; s++)
                add_gradient(w, sample_of(step, r, ranks, s), ranks * SAMPLES, gradient);
        adam(PARAMETERS, w, gradient, first, second, step);
    }
    free(gradient);
    free(first);
    free(second);
}

int main(void)
{
    float difference = 0, before, after, *together, *alone = zeros(PARAMETERS);
    weft_context *ctx;
    int64_t length;
    int ranks;

    MUST(weft_init(NULL, &ctx));
    ranks = weft_size(ctx);
    length = (PARAMETERS + ranks - 1) / ranks;
    together = zeros(ranks * length);
    before = loss_of(together);
    train_together(weft_world(ctx), length, together);
    after = loss_of(together);
    train_alone(ranks, alone);
    for (int i = 0; i < PARAMETERS; i++)
        difference = fmaxf(difference, fabsf(together[i] - alone[i]));
    printf(
        "rank %d: moments of %lld of %d parameters; loss %.4f, before %.4f; parameters differ by "
        "%g\n",
        weft_rank(ctx), (long long)length, PARAMETERS, (double)after, (double)before,
        (double)difference);
    free(together);
    free(alone);
    weft_context_release(&ctx);
    return after < before / 2 && difference < 1e-4F ? EXIT_SUCCESS : EXIT_FAILURE;
}
