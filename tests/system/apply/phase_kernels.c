#include "phase_kernels.h"

#include <math.h>
#include <string.h>

static void fill(const weft_tensor_local *t, float value)
{
    for (int64_t i = 0; i < t->shard->elements; i++)
        floats(t)[i] = value;
}

/* Exponents are relative to this value. */
static float shift_of(float max)
{
    return isinf(max) ? 0 : max;
}

/* ---- statistics; NaN passes through sums, but not through maxima ---- */

static void max_rows(const weft_op_run *run, struct walk *w)
{
    const weft_tensor_local *out = &run->outputs[0];

    fill(out, -INFINITY);
    for (const float *x; (x = walk_next(w)) != NULL;)
        if (*x > floats(out)[w->row]) floats(out)[w->row] = *x;
}

static void sum_exp(const weft_op_run *run, struct walk *w)
{
    const weft_tensor_local *out = &run->outputs[0];

    fill(out, 0);
    for (const float *x; (x = walk_next(w)) != NULL;)
        floats(out)[w->row] += expf(*x - shift_of(floats(&run->inputs[1])[w->row]));
}

static void sum_rows(const weft_op_run *run, struct walk *w)
{
    fill(&run->outputs[0], 0);
    for (const float *x; (x = walk_next(w)) != NULL;)
        floats(&run->outputs[0])[w->row] += *x;
}

/* The sum of squares about the mean. */
static void squares(const weft_op_run *run, struct walk *w)
{
    fill(&run->outputs[0], 0);
    for (const float *x; (x = walk_next(w)) != NULL;) {
        float mean = floats(&run->inputs[1])[w->row] / (float)run->count;
        floats(&run->outputs[0])[w->row] += (*x - mean) * (*x - mean);
    }
}

/* For a softmax the sum of g y, for its logarithm the sum of g. */
static void dot(const weft_op_run *run, struct walk *w)
{
    bool is_log = strncmp(run->name, "log_", 4) == 0;
    struct walk *ys = &(struct walk){0};

    walk_begin(ys, run, &run->inputs[1], w->reduced);
    fill(&run->outputs[0], 0);
    for (const float *g; (g = walk_next(w)) != NULL;) {
        const float *y = walk_next(ys);
        floats(&run->outputs[0])[w->row] += is_log ? *g : *g * *y;
    }
}

/* The sum of exponentials, and the logit of the target, if this rank has it. */
static weft_status terms(const weft_op_run *run, struct walk *w)
{
    const weft_tensor_local *sum = &run->outputs[0], *hit = &run->outputs[1];
    int64_t classes = weft_spec_shape(run->inputs[0].spec)[1];
    int64_t ignored = int_attr(run, "ignore_index", -100);

    fill(sum, 0);
    fill(hit, 0);
    if (run->output_count > 2) fill(hit + 1, 0);
    for (const float *x; (x = walk_next(w)) != NULL;) {
        float above = *x - shift_of(floats(&run->inputs[1])[w->row]);
        int64_t target = integers(&run->inputs[2])[w->row];

        if (target != ignored && (target < 0 || target >= classes))
            return weft_fail(WEFT_ERR_INVALID, "target %lld is not a class", (long long)target);
        floats(sum)[w->row] += expf(above);
        if (target != w->index) continue;
        floats(hit)[w->row] = above;
        if (run->output_count > 2)
            floats(hit + 1)[w->row] = floats(&run->inputs[3])[w->at[1] * run->inputs[3].strides[0]];
    }
    return WEFT_OK;
}

/* ---- results of whole rows ---- */

static float softmax_of(const weft_op_run *run, float x, float max, float sum)
{
    bool is_safe = strncmp(run->name, "safe_", 5) == 0;

    if (is_safe && max < 0 && isinf(max)) return sum == 0 ? 0 : NAN;
    if (isinf(max)) return NAN;
    return strncmp(run->name, "log_", 4) == 0 ? x - max - logf(sum) : expf(x - max) / sum;
}

static void finish_softmax(const weft_op_run *run, struct walk *w)
{
    float *y = floats(&run->outputs[0]);

    for (const float *x; (x = walk_next(w)) != NULL;)
        *y++ =
            softmax_of(run, *x, floats(&run->inputs[1])[w->row], floats(&run->inputs[2])[w->row]);
}

static void finish_softmax_bwd(const weft_op_run *run, struct walk *w)
{
    bool is_log = strncmp(run->name, "log_", 4) == 0;
    struct walk *ys = &(struct walk){0};
    float *d = floats(&run->outputs[0]);

    walk_begin(ys, run, &run->inputs[1], w->reduced);
    for (const float *g; (g = walk_next(w)) != NULL;) {
        float y = *walk_next(ys), sum = floats(&run->inputs[2])[w->row];
        *d++ = is_log ? *g - expf(y) * sum : y * (*g - sum);
    }
}

static void finish_logsumexp(const weft_op_run *run)
{
    for (int64_t i = 0; i < run->outputs[0].shard->elements; i++)
        floats(&run->outputs[0])[i] =
            logf(floats(&run->inputs[1])[i]) + shift_of(floats(&run->inputs[0])[i]);
}

static void finish_var(const weft_op_run *run)
{
    double degrees = run->count - (double)int_attr(run, "correction", 1);

    for (int64_t i = 0; i < run->outputs[0].shard->elements; i++) {
        float var = floats(&run->inputs[1])[i] / (float)degrees;
        floats(&run->outputs[0])[i] = strncmp(run->name, "std", 3) == 0 ? sqrtf(var) : var;
        if (run->output_count > 1)
            floats(&run->outputs[1])[i] = floats(&run->inputs[0])[i] / (float)run->count;
    }
}

/* The gradient of one value v of each row: g exp(x - v), or g 2 (x - mean) / degrees. */
static void finish_rows_bwd(const weft_op_run *run, struct walk *w)
{
    double degrees = run->count - (double)int_attr(run, "correction", 1);
    float *d = floats(&run->outputs[0]);

    for (const float *x; (x = walk_next(w)) != NULL;) {
        float g = floats(&run->inputs[0])[w->row], v = floats(&run->inputs[2])[w->row];
        *d++ = run->name[0] == 'v' ? g * 2 * (*x - v) / (float)degrees : g * expf(*x - v);
    }
}

/* ---- cross entropy ---- */

static void finish_loss(const weft_op_run *run)
{
    int64_t ignored = int_attr(run, "ignore_index", -100);

    for (int64_t i = 0; i < run->outputs[0].shard->elements; i++) {
        float log_sum = logf(floats(&run->inputs[1])[i]);
        bool counts = integers(&run->inputs[3])[i] != ignored;
        float weight = run->input_count > 4 ? floats(&run->inputs[4])[i] : 1;

        floats(&run->outputs[0])[i] = counts ? weight * (log_sum - floats(&run->inputs[2])[i]) : 0;
        floats(&run->outputs[1])[i] = log_sum + shift_of(floats(&run->inputs[0])[i]);
    }
}

static void total_loss(const weft_op_run *run)
{
    int64_t ignored = int_attr(run, "ignore_index", -100);

    fill(&run->outputs[0], 0);
    fill(&run->outputs[1], 0);
    for (int64_t i = 0; i < run->inputs[0].shard->elements; i++) {
        *floats(&run->outputs[0]) += floats(&run->inputs[0])[i];
        if (integers(&run->inputs[1])[i] != ignored)
            *floats(&run->outputs[1]) += run->input_count > 2 ? floats(&run->inputs[2])[i] : 1;
    }
}

static void finish_loss_bwd(const weft_op_run *run, struct walk *w)
{
    const weft_tensor_local *g = &run->inputs[0];
    int64_t ignored = int_attr(run, "ignore_index", -100);
    bool each = g->shard->dims > 0;
    float *d = floats(&run->outputs[0]);
    float count =
        run->input_count > 4 && run->inputs[4].spec != NULL ? *floats(&run->inputs[4]) : 1;

    for (const float *x; (x = walk_next(w)) != NULL;) {
        int64_t target = integers(&run->inputs[2])[w->row];
        float p = expf(*x - floats(&run->inputs[3])[w->row]);
        float scale = (each ? floats(g)[w->row] : *floats(g)) / count;

        if (run->input_count > 5) scale *= floats(&run->inputs[5])[w->row];
        *d++ = target == ignored ? 0 : scale * (p - (target == w->index ? 1 : 0));
    }
}

/* The weight of each target whose class this rank has. */
static void weigh(const weft_op_run *run)
{
    const weft_tensor_local *weights = &run->inputs[0], *out = &run->outputs[0];
    weft_index_run some;

    fill(out, 0);
    for (int64_t at = 0; weft_spec_run(weights->spec, run->rank, 0, at, &some); at += some.length)
        for (int64_t i = 0; i < out->shard->elements; i++) {
            int64_t class = integers(&run->inputs[1])[i] - some.start;
            if (class >= 0 && class < some.length)
                floats(out)[i] = floats(weights)[(at + class) * weights->strides[0]];
        }
}

/* ---- the phase by name ---- */

static bool starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static weft_status finish(const weft_op_run *run, struct walk *w)
{
    const char *name = run->name;

    if (starts(name, "cross_entropy_bwd."))
        finish_loss_bwd(run, w);
    else if (starts(name, "cross_entropy."))
        finish_loss(run);
    else if (starts(name, "logsumexp."))
        finish_logsumexp(run);
    else if (starts(name, "logsumexp_bwd.") || starts(name, "var_bwd."))
        finish_rows_bwd(run, w);
    else if (starts(name, "var") || starts(name, "std"))
        finish_var(run);
    else if (strstr(name, "softmax_bwd.") != NULL)
        finish_softmax_bwd(run, w);
    else
        finish_softmax(run, w);
    return WEFT_OK;
}

weft_status phase_kernel(void *user, const weft_op_run *run)
{
    const char *phase = strrchr(run->name, '.');
    const weft_tensor_local *x = &run->inputs[strstr(run->name, "_bwd.finish") != NULL &&
                                              strstr(run->name, "softmax") == NULL];
    struct walk *w = &(struct walk){0};

    (void)user;
    if (phase == NULL) return whole_kernel(run);
    phase++;
    if (starts(run->name, "cumsum")) return cumsum_kernel(run);
    if (strstr(run->name, "_norm") != NULL && strcmp(phase, "sum") != 0 &&
        strcmp(phase, "squares") != 0)
        return norm_kernel(run);
    if (strcmp(phase, "candidates") == 0 || strcmp(phase, "pick") == 0) return pairs_kernel(run);
    if (strcmp(phase, "weight") == 0) {
        weigh(run);
        return WEFT_OK;
    }
    walk_begin(w, run, x, reduced_dims(run, x));
    if (strcmp(phase, "finish") == 0) return finish(run, w);
    if (strcmp(phase, "terms") == 0) return terms(run, w);
    if (strcmp(phase, "max") == 0)
        max_rows(run, w);
    else if (strcmp(phase, "sum_exp") == 0)
        sum_exp(run, w);
    else if (strcmp(phase, "sum") == 0)
        sum_rows(run, w);
    else if (strcmp(phase, "squares") == 0)
        squares(run, w);
    else if (strcmp(phase, "dot") == 0)
        dot(run, w);
    else if (strcmp(phase, "total") == 0)
        total_loss(run);
    else if (strcmp(phase, "mean") == 0)
        *floats(&run->outputs[0]) = *floats(&run->inputs[0]) / *floats(&run->inputs[1]);
    else
        return weft_fail(WEFT_ERR_UNSUPPORTED, "no kernel for %s", run->name);
    return WEFT_OK;
}
