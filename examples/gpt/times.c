/* times.c - see times.h.  Each block is one line of the graph, and a line of its gradients of
 * inputs and one of its gradients of weights; `weft step` takes their times and the shapes of what
 * stages pass on. */
#include "times.h"

#include <stdio.h>
#include <time.h>

double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void times_add(struct times *times, enum part part, int block, double seconds, int calls)
{
    times->seconds[part][block] += (float)seconds;
    times->calls[part][block] += (float)calls;
}

weft_status times_sum(weft_context *ctx, struct times *times)
{
    return weft_all_reduce(weft_world(ctx), times, times, sizeof *times / sizeof(float),
                           WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
}

/* Microseconds of a call, the mean over the blocks from FIRST to LAST. */
static double mean_us(const struct times *times, enum part part, int first, int last)
{
    float seconds = 0, calls = 0;

    for (int b = first; b <= last; b++) {
        seconds += times->seconds[part][b];
        calls += times->calls[part][b];
    }
    return calls > 0 ? 1e6 * (double)seconds / (double)calls : 0;
}

static void write_lines(const struct times *t, int sequences, FILE *out)
{
    const int head = BLOCKS - 1;

    fprintf(out, "# gpt: a microbatch of %d sequences; measured step: %.0fus\n", sequences,
            t->steps > 0 ? 1e6 * (double)(t->step / t->steps) : 0);
    fprintf(out, "mesh dp=1\ninput letters i64[%d,%d] S(0)\n", sequences, LENGTH);
    fprintf(out, "param emb f32[%d,%d] R\nparam w f32[%d,%d] R ; x%d\nparam head f32[%d,%d] R\n",
            LETTERS, WIDTH, WIDTH, WIDTH, LAYERS, LETTERS, WIDTH);
    fprintf(out, "x = embedding(emb, letters) ; time %.3fus\n", mean_us(t, FORWARD, 0, 0));
    fprintf(out, "y = linear(x, w) ; time %.3fus ; x%d\n", mean_us(t, FORWARD, 1, head - 1),
            LAYERS);
    fprintf(out, "logits = linear(y, head) ; time %.3fus\n", mean_us(t, FORWARD, head, head));
    fprintf(out, "phase backward\ndlogits = ones_like(logits) ; time 0us\n");
    fprintf(out, "dy = matmul(dlogits, head) ; time %.3fus\n", mean_us(t, INPUTS, head, head));
    fprintf(out, "dhead = einsum(dlogits, y, eq=\"bsn,bsk->nk\") ; to R ; time %.3fus\n",
            mean_us(t, WEIGHTS, head, head));
    fprintf(out, "dx = matmul(dy, w) ; time %.3fus ; x%d\n", mean_us(t, INPUTS, 1, head - 1),
            LAYERS);
    fprintf(out, "dw = einsum(dy, x, eq=\"bsn,bsk->nk\") ; to R ; time %.3fus ; x%d\n",
            mean_us(t, WEIGHTS, 1, head - 1), LAYERS);
    fprintf(out, "demb = embedding_bwd(dx, letters, v=%d) ; to R ; time %.3fus\n", LETTERS,
            mean_us(t, INPUTS, 0, 0) + mean_us(t, WEIGHTS, 0, 0));
    fprintf(out, "phase update\nemb.new = sub(emb, demb) ; time %.3fus\n",
            mean_us(t, UPDATE, 0, 0));
    fprintf(out, "w.new = sub(w, dw) ; time %.3fus ; x%d\n", mean_us(t, UPDATE, 1, head - 1),
            LAYERS);
    fprintf(out, "head.new = sub(head, dhead) ; time %.3fus\n", mean_us(t, UPDATE, head, head));
    fprintf(out, "output emb.new\noutput w.new\noutput head.new\n");
}

bool times_write(const struct times *times, int sequences, const char *path)
{
    FILE *out = fopen(path, "w");

    if (out == NULL) return false;
    write_lines(times, sequences, out);
    return fclose(out) == 0;
}
