/* whole.c - the operators on whole rows, in double precision. */
#include "kernels.h"
#include "phase_kernels.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 512 };

struct sums {
    double max, sum, squares, dot, plain;
};

static bool is(const weft_op_run *run, const char *name)
{
    return strcmp(run->name, name) == 0;
}

static double relative(double x, double max)
{
    return isinf(max) ? x : x - max;
}

static double result(const weft_op_run *run, const struct sums *s, double x)
{
    double max = s->max;

    if (is(run, "safe_softmax") && max < 0 && isinf(max)) return s->sum == 0 ? 0 : NAN;
    if (isinf(max)) return NAN;
    return is(run, "log_softmax") ? x - max - log(s->sum) : exp(x - max) / s->sum;
}

/* The element of the second input where W is in the first. */
static double second(const weft_op_run *run, const struct walk *w)
{
    const weft_tensor_local *t = &run->inputs[1];
    int64_t offset = 0;

    for (int32_t d = 0; d < t->shard->dims; d++)
        offset += w->at[d] * t->strides[d];
    return (double)floats(t)[offset];
}

static void add_rows(struct walk *w, const weft_op_run *run, struct sums *rows)
{
    for (int64_t i = 0; i < MOST_ROWS; i++)
        rows[i] = (struct sums){.max = -INFINITY};
    for (const float *x; (x = walk_next(w)) != NULL;) {
        if (*x > rows[w->row].max) rows[w->row].max = (double)*x;
        rows[w->row].plain += (double)*x;
    }
    w->position = 0;
    for (const float *x; (x = walk_next(w)) != NULL;) {
        struct sums *s = &rows[w->row];
        double from_mean = (double)*x - s->plain / (double)run->count;

        s->sum += exp(relative((double)*x, s->max));
        s->squares += from_mean * from_mean;
        if (run->input_count > 1) s->dot += (double)*x * second(run, w);
    }
    w->position = 0;
}

static void store_rows(const weft_op_run *run, const struct sums *rows)
{
    double degrees = run->count - (double)int_attr(run, "correction", 1);

    for (int64_t i = 0; i < run->outputs[0].shard->elements; i++) {
        const struct sums *s = &rows[i];
        double value = s->squares / degrees;

        if (is(run, "logsumexp")) value = log(s->sum) + (isinf(s->max) ? 0 : s->max);
        if (strncmp(run->name, "std", 3) == 0) value = sqrt(value);
        floats(&run->outputs[0])[i] = (float)value;
        if (run->output_count > 1) floats(&run->outputs[1])[i] = (float)(s->plain / run->count);
    }
}

weft_status whole_kernel(const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0];
    struct walk *w = &(struct walk){0};
    struct sums rows[MOST_ROWS];

    if (strncmp(run->name, "arg", 3) == 0 || strstr(run->name, "_dim") != NULL || is(run, "topk"))
        return pairs_kernel(run);
    if (strstr(run->name, "_norm") != NULL) return norm_kernel(run);
    if (is(run, "cumsum")) return cumsum_kernel(run);
    if (is(run, "gather")) return gather_kernel(run);
    if (is(run, "embedding")) return plain_kernel(NULL, run);
    walk_begin(w, run, x, reduced_dims(run, x));
    if (w->rows > MOST_ROWS) return weft_fail(WEFT_ERR_UNSUPPORTED, "too many rows");
    add_rows(w, run, rows);
    if (is(run, "logsumexp") || strncmp(run->name, "var", 3) == 0 ||
        strncmp(run->name, "std", 3) == 0) {
        store_rows(run, rows);
        return WEFT_OK;
    }
    for (const float *value; (value = walk_next(w)) != NULL;) {
        const struct sums *s = &rows[w->row];
        int64_t at = w->position - 1;
        double y = run->input_count > 1 ? second(run, w) : 0;

        if (is(run, "softmax_bwd"))
            floats(&run->outputs[0])[at] = (float)(y * ((double)*value - s->dot));
        else if (is(run, "log_softmax_bwd"))
            floats(&run->outputs[0])[at] = (float)((double)*value - exp(y) * s->plain);
        else
            floats(&run->outputs[0])[at] = (float)result(run, s, (double)*value);
    }
    return WEFT_OK;
}
