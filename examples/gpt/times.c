/* times.c - see times.h.  Each block is one line of the graph, and a line of its gradients of
 * inputs and one of its gradients of weights; `weft step` takes their times and the shapes of what
 * stages pass on.  What a rank does besides its blocks is a line of the update.  A layer that a
 * mesh shares is two pairs of matmuls, so that its communication is that of the example. */
#include "times.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- samples ---- */

void times_add(struct times *times, enum timed part, int block, double seconds, int calls)
{
    if (times->count == MOST_SAMPLES) return;
    times->samples[times->count].seconds[part][block] += (float)seconds;
    times->samples[times->count].calls[part][block] += (float)calls;
}

void times_add_backward(struct times *times, int block, double seconds)
{
    times_add(times, INPUTS, block, seconds / 2, 1);
    times_add(times, WEIGHTS, block, seconds / 2, 1);
}

void times_end_step(struct times *times, double seconds)
{
    if (times->count == MOST_SAMPLES) return;
    times->samples[times->count++].step = (float)seconds;
}

weft_status times_sum(weft_context *ctx, struct times *times)
{
    weft_status status = weft_all_reduce(weft_world(ctx), times->samples, times->samples,
                                         MOST_SAMPLES * (sizeof(struct sample) / sizeof(float)),
                                         WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);

    times->ranks = weft_size(ctx);
    for (int i = 0; i < times->count; i++)
        times->samples[i].step /= (float)times->ranks;
    return status;
}

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count > 0 ? values[count / 2] : 0;
}

double times_step_us(const struct times *times)
{
    double values[MOST_SAMPLES];
    int count = 0;

    for (int i = times->count > 1; i < times->count; i++)
        values[count++] = 1e6 * (double)times->samples[i].step;
    return median(values, count);
}

/* Microseconds of a call: the median over steps of the mean over the blocks from FIRST to LAST. */
static double call_us(const struct times *times, enum timed part, int first, int last)
{
    double values[MOST_SAMPLES];
    int count = 0;

    for (int i = times->count > 1; i < times->count; i++) {
        const struct sample *sample = &times->samples[i];
        float seconds = 0, calls = 0;

        for (int b = first; b <= last; b++) {
            seconds += sample->seconds[part][b];
            calls += sample->calls[part][b];
        }
        if (calls > 0) values[count++] = 1e6 * (double)seconds / (double)calls;
    }
    return median(values, count);
}

/* Microseconds of a step in which one rank does something else than blocks; among several ranks it
 * also waits, so that it is not known. */
static double other_us(const struct times *times)
{
    double values[MOST_SAMPLES];
    int count = 0;

    for (int i = times->count > 1; i < times->count && times->ranks <= 1; i++) {
        const struct sample *sample = &times->samples[i];
        double rest = (double)sample->step;

        for (int part = 0; part < PARTS; part++)
            for (int b = 0; b < sizes.blocks; b++)
                rest -= (double)sample->seconds[part][b];
        values[count++] = rest > 0 ? 1e6 * rest : 0;
    }
    return median(values, count);
}

/* ---- graphs ---- */

static void write_lines(const struct times *t, int sequences, FILE *out)
{
    fprintf(out, "# gpt: a microbatch of %d sequences; measured step: %.0fus\n", sequences,
            times_step_us(t));
    fprintf(out, "mesh dp=1\ninput letters i64[%d,%d] S(0)\n", sequences, sizes.length);
    fprintf(out, "param emb f32[%d,%d] R\nparam w f32[%d,%d] R ; x%d\nparam head f32[%d,%d] R\n",
            sizes.letters, sizes.width, sizes.width, sizes.width, sizes.layers, sizes.letters,
            sizes.width);
    fprintf(out, "x = embedding(emb, letters) ; time %.3fus\n", call_us(t, FORWARD, 0, 0));
    fprintf(out, "y = linear(x, w) ; time %.3fus ; x%d\n", call_us(t, FORWARD, 1, sizes.layers),
            sizes.layers);
    fprintf(out, "logits = linear(y, head) ; time %.3fus\n",
            call_us(t, FORWARD, sizes.blocks - 1, sizes.blocks - 1));
    fprintf(out, "phase backward\ndlogits = ones_like(logits) ; time 0us\n");
    fprintf(out, "dy = matmul(dlogits, head) ; time %.3fus\n",
            call_us(t, INPUTS, sizes.blocks - 1, sizes.blocks - 1));
    fprintf(out, "dhead = einsum(dlogits, y, eq=\"bsn,bsk->nk\") ; to R ; time %.3fus\n",
            call_us(t, WEIGHTS, sizes.blocks - 1, sizes.blocks - 1));
    fprintf(out, "dx = matmul(dy, w) ; time %.3fus ; x%d\n", call_us(t, INPUTS, 1, sizes.layers),
            sizes.layers);
    fprintf(out, "dw = einsum(dy, x, eq=\"bsn,bsk->nk\") ; to R ; time %.3fus ; x%d\n",
            call_us(t, WEIGHTS, 1, sizes.layers), sizes.layers);
    fprintf(out, "demb = embedding_bwd(dx, letters, v=%d) ; to R ; time %.3fus\n", sizes.letters,
            call_us(t, INPUTS, 0, 0) + call_us(t, WEIGHTS, 0, 0));
    fprintf(out, "phase update\nemb.new = sub(emb, demb) ; time %.3fus\n",
            call_us(t, UPDATE, 0, 0));
    fprintf(out, "w.new = sub(w, dw) ; time %.3fus ; x%d\n", call_us(t, UPDATE, 1, sizes.layers),
            sizes.layers);
    fprintf(out, "head.new = sub(head, dhead) ; time %.3fus\n",
            call_us(t, UPDATE, sizes.blocks - 1, sizes.blocks - 1));
    fprintf(out, "# what a rank does besides\nother = sub(w, dw) ; time %.3fus ; x%d\n",
            other_us(t) / sizes.layers, sizes.layers);
    fprintf(out, "output emb.new\noutput w.new\noutput head.new\noutput other\n");
}

bool times_write(const struct times *times, int sequences, const char *path)
{
    FILE *out = fopen(path, "w");

    if (out == NULL) return false;
    write_lines(times, sequences, out);
    return fclose(out) == 0;
}

/* The parameters of a layer: those that are split along dp and tp, gathered along dp when used. */
static const struct {
    const char *name;
    int rows, columns; /* as multiples of the width */
    int tp;            /* the dimension that is split along tp */
} weights[] = {{"qkv", 3, 1, 0}, {"out", 1, 3, 1}, {"up", 4, 1, 0}, {"down", 1, 4, 1}};

enum { WEIGHTS_OF_LAYER = sizeof weights / sizeof weights[0] };

static void write_gathers(const char *phase, FILE *out)
{
    fprintf(out, "emb.%s = move(emb) ; to R,R\nhead.%s = move(head) ; to R,R\n", phase, phase);
    for (int i = 0; i < WEIGHTS_OF_LAYER; i++)
        fprintf(out, "%s.%s = move(%s) ; to R,S(%d) ; x%d\n", weights[i].name, phase,
                weights[i].name, weights[i].tp, sizes.layers);
}

static void write_mesh_forward(const struct times *t, int dp, int tp, FILE *out)
{
    double half = call_us(t, FORWARD, 1, sizes.layers) / (2 * dp * tp);

    write_gathers("f", out);
    fprintf(out, "x = embedding(emb.f, letters) ; time %.3fus\n", call_us(t, FORWARD, 0, 0) / dp);
    fprintf(out, "a = linear(x, qkv.f) ; time %.3fus ; x%d\n", half, sizes.layers);
    fprintf(out, "b = linear(a, out.f) ; to S(0),R ; time 0us ; x%d\n", sizes.layers);
    fprintf(out, "c = linear(b, up.f) ; time %.3fus ; x%d\n", half, sizes.layers);
    fprintf(out, "y = linear(c, down.f) ; to S(0),R ; time 0us ; x%d\n", sizes.layers);
    fprintf(out, "logits = linear(y, head.f) ; time %.3fus\n",
            call_us(t, FORWARD, sizes.blocks - 1, sizes.blocks - 1) / dp);
}

static void write_mesh_backward(const struct times *t, int dp, int tp, FILE *out)
{
    double half = call_us(t, INPUTS, 1, sizes.layers) / (2 * dp * tp);
    double part = call_us(t, WEIGHTS, 1, sizes.layers) / (WEIGHTS_OF_LAYER * dp * tp);
    static const char *const factors[][2] = {{"da", "x"}, {"db", "a"}, {"dc", "b"}, {"dy", "c"}};

    fprintf(out, "phase backward\n");
    write_gathers("b", out);
    fprintf(out, "dlogits = ones_like(logits) ; time 0us\n");
    fprintf(out, "dy = matmul(dlogits, head.b) ; time %.3fus\n",
            call_us(t, INPUTS, sizes.blocks - 1, sizes.blocks - 1) / dp);
    fprintf(out, "dhead = einsum(dlogits, y, eq=\"bsn,bsk->nk\") ; to S(0),R ; time %.3fus\n",
            call_us(t, WEIGHTS, sizes.blocks - 1, sizes.blocks - 1) / dp);
    fprintf(out, "dc = matmul(dy, down.b) ; time %.3fus ; x%d\n", half, sizes.layers);
    fprintf(out, "db = matmul(dc, up.b) ; to S(0),R ; time 0us ; x%d\n", sizes.layers);
    fprintf(out, "da = matmul(db, out.b) ; time %.3fus ; x%d\n", half, sizes.layers);
    fprintf(out, "dx = matmul(da, qkv.b) ; to S(0),R ; time 0us ; x%d\n", sizes.layers);
    for (int i = 0; i < WEIGHTS_OF_LAYER; i++)
        fprintf(out,
                "d%s = einsum(%s, %s, eq=\"bsn,bsk->nk\") ; to S(0),S(%d) ; time %.3fus ; x%d\n",
                weights[i].name, factors[i][0], factors[i][1], weights[i].tp, part, sizes.layers);
    fprintf(out, "demb = embedding_bwd(dx, letters, v=%d) ; to S(0),R ; time %.3fus\n",
            sizes.letters, (call_us(t, INPUTS, 0, 0) + call_us(t, WEIGHTS, 0, 0)) / dp);
}

static void write_mesh_update(const struct times *t, int dp, int tp, FILE *out)
{
    double part = call_us(t, UPDATE, 1, sizes.layers) / (WEIGHTS_OF_LAYER * dp * tp);

    fprintf(out, "phase update\nemb.new = sub(emb, demb) ; time %.3fus\noutput emb.new\n",
            call_us(t, UPDATE, 0, 0) / dp);
    for (int i = 0; i < WEIGHTS_OF_LAYER; i++)
        fprintf(out, "%s.new = sub(%s, d%s) ; time %.3fus ; x%d\noutput %s.new\n", weights[i].name,
                weights[i].name, weights[i].name, part, sizes.layers, weights[i].name);
    fprintf(out, "head.new = sub(head, dhead) ; time %.3fus\noutput head.new\n",
            call_us(t, UPDATE, sizes.blocks - 1, sizes.blocks - 1) / dp);
    fprintf(out, "# what a rank does besides\nother = sub(emb, demb) ; time %.3fus\noutput other\n",
            other_us(t));
}

bool times_write_mesh(const struct times *times, int sequences, int dp, int tp, const char *path)
{
    FILE *out = fopen(path, "w");

    if (out == NULL) return false;
    fprintf(out, "# gpt: %d sequences on %d ranks; measured step of one rank: %.0fus\n", sequences,
            dp * tp, times_step_us(times));
    fprintf(out, "mesh dp=%d,tp=%d\ninput letters i64[%d,%d] S(0),R\n", dp, tp, sequences,
            sizes.length);
    fprintf(out, "param emb f32[%d,%d] S(0),R\nparam head f32[%d,%d] S(0),R\n", sizes.letters,
            sizes.width, sizes.letters, sizes.width);
    for (int i = 0; i < WEIGHTS_OF_LAYER; i++)
        fprintf(out, "param %s f32[%d,%d] S(0),S(%d) ; x%d\n", weights[i].name,
                weights[i].rows * sizes.width, weights[i].columns * sizes.width, weights[i].tp,
                sizes.layers);
    write_mesh_forward(times, dp, tp, out);
    write_mesh_backward(times, dp, tp, out);
    write_mesh_update(times, dp, tp, out);
    return fclose(out) == 0;
}
