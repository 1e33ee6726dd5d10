/* norms.c - layer norm and rms norm, and sums up to each element: phase by phase, and whole. */
#include "phase_kernels.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 512, MOST_COLUMNS = 512 };

static const double eps = 1e-2;

static bool ends(const weft_op_run *run, const char *phase)
{
    const char *dot = strrchr(run->name, '.');

    return dot == NULL ? phase == NULL : phase != NULL && strcmp(dot + 1, phase) == 0;
}

static bool is_rms(const weft_op_run *run)
{
    return run->name[0] == 'r';
}

/* The elements of a row.  The whole operator has no average, so run->count is not their number. */
static double count_of(const weft_op_run *run)
{
    uint32_t reduced = reduced_dims(run, &run->inputs[0]);
    double count = 1;

    if (strchr(run->name, '.') != NULL) return run->count;
    for (int32_t d = 0; d < run->inputs[0].shard->dims; d++)
        if ((reduced >> d & 1) != 0) count *= (double)weft_spec_shape(run->inputs[0].spec)[d];
    return count;
}

/* The number of W's element among those of its row that the shard has. */
static int64_t column_of(const struct walk *w)
{
    int64_t column = 0;

    for (int32_t d = 0; d < w->x->shard->dims; d++)
        if ((w->reduced >> d & 1) != 0) column = column * w->x->shard->shape[d] + w->at[d];
    return column;
}

static double weight_at(const weft_tensor_local *weights, const struct walk *w, double otherwise)
{
    int64_t offset = 0;
    int32_t first;

    if (weights->spec == NULL) return otherwise;
    first = w->x->shard->dims - weights->shard->dims;
    for (int32_t d = 0; d < weights->shard->dims; d++)
        offset += w->at[first + d] * weights->strides[d];
    return (double)floats(weights)[offset];
}

static void fill(const weft_tensor_local *t)
{
    for (int64_t i = 0; i < t->shard->elements; i++)
        floats(t)[i] = 0;
}

/* ---- forward ---- */

/* The sum of squares of each row; of a layer norm about the mean. */
static void add_squares(const weft_op_run *run, struct walk *w, const double *sums, double *squares)
{
    for (const float *x; (x = walk_next(w)) != NULL;) {
        double from = (double)*x - (is_rms(run) ? 0 : sums[w->row] / count_of(run));
        squares[w->row] += from * from;
    }
    w->position = 0;
}

static void write_moments(const weft_op_run *run, const weft_tensor_local *out, int64_t rows,
                          const double *sums, const double *squares)
{
    for (int64_t i = 0; i < rows; i++) {
        const weft_tensor_local *r = is_rms(run) ? out : out + 1;
        if (!is_rms(run)) floats(out)[i] = (float)(sums[i] / count_of(run));
        floats(r)[i] = (float)(1 / sqrt(squares[i] / count_of(run) + eps));
    }
}

static void normalize(const weft_op_run *run, struct walk *w, const weft_tensor_local *weights,
                      const double *sums, const double *squares)
{
    static const weft_tensor_local none;
    const weft_tensor_local *bias = is_rms(run) ? &none : weights + 1;

    for (const float *x; (x = walk_next(w)) != NULL;) {
        double mean = is_rms(run) ? 0 : sums[w->row] / count_of(run);
        double r = 1 / sqrt(squares[w->row] / count_of(run) + eps);
        double y = ((double)*x - mean) * r * weight_at(weights, w, 1) + weight_at(bias, w, 0);
        floats(&run->outputs[0])[w->position - 1] = (float)y;
    }
}

static void forward(const weft_op_run *run, struct walk *w)
{
    double sums[MOST_ROWS] = {0}, squares[MOST_ROWS] = {0};
    const weft_tensor_local *in = run->inputs;
    bool finish = ends(run, "finish"), moments = ends(run, "moments");
    uint32_t before = is_rms(run) ? 1 : 2; /* statistics */

    if (finish || moments) {
        for (int64_t i = 0; i < in[finish].shard->elements; i++) {
            sums[i] = (double)floats(&in[finish])[i];
            squares[i] = (double)floats(&in[finish + before - 1])[i];
        }
        if (moments)
            write_moments(run, run->outputs, run->outputs[0].shard->elements, sums, squares);
        else
            normalize(run, w, in + 1 + before, sums, squares);
        return;
    }
    for (const float *x; (x = walk_next(w)) != NULL;)
        sums[w->row] += (double)*x;
    w->position = 0;
    add_squares(run, w, sums, squares);
    if (ends(run, "sum_squares")) {
        for (int64_t i = 0; i < w->rows; i++)
            floats(&run->outputs[0])[i] = (float)squares[i];
        return;
    }
    write_moments(run, &run->outputs[1], w->rows, sums, squares);
    normalize(run, w, in + 1, sums, squares);
}

/* ---- backward: g x m r w, or g x r w ---- */

struct slope {
    double g, x, normal; /* g times the weight; x about the mean, normalized */
};

static struct slope slope_at(const weft_op_run *run, const struct walk *w, float g, float x)
{
    const weft_tensor_local *in = run->inputs;
    double mean = is_rms(run) ? 0 : (double)floats(&in[2])[w->row];
    double r = (double)floats(&in[is_rms(run) ? 2 : 3])[w->row];
    const weft_tensor_local *weights = &in[is_rms(run) ? 3 : 4];
    bool has = (is_rms(run) ? 3u : 4u) < run->input_count;

    return (struct slope){(double)g * (has ? weight_at(weights, w, 1) : 1), (double)x - mean,
                          ((double)x - mean) * r};
}

/* The sums of g and of g x of each row. */
static void add_slopes(const weft_op_run *run, struct walk *w, struct walk *xs, double *plain,
                       double *dot)
{
    for (const float *g; (g = walk_next(w)) != NULL;) {
        struct slope s = slope_at(run, w, *g, *walk_next(xs));
        plain[w->row] += s.g;
        dot[w->row] += s.g * s.normal;
    }
    w->position = xs->position = 0;
}

static void add_weights(const weft_op_run *run, struct walk *w, struct walk *xs,
                        const weft_tensor_local *out)
{
    double weights[MOST_COLUMNS] = {0}, biases[MOST_COLUMNS] = {0};

    for (const float *g; (g = walk_next(w)) != NULL;) {
        struct slope s = slope_at(run, w, *g, *walk_next(xs));
        weights[column_of(w)] += (double)*g * s.normal;
        biases[column_of(w)] += (double)*g;
    }
    w->position = xs->position = 0;
    for (int64_t i = 0; i < out->shard->elements; i++) {
        floats(out)[i] = (float)weights[i];
        if (!is_rms(run)) floats(out + 1)[i] = (float)biases[i];
    }
}

static void write_slopes(const weft_op_run *run, struct walk *w, struct walk *xs,
                         const double *plain, const double *dot)
{
    for (const float *g; (g = walk_next(w)) != NULL;) {
        struct slope s = slope_at(run, w, *g, *walk_next(xs));
        double r = (double)floats(&run->inputs[is_rms(run) ? 2 : 3])[w->row];
        double mean = is_rms(run) ? 0 : plain[w->row] / count_of(run);
        floats(&run->outputs[0])[w->position - 1] =
            (float)(r * (s.g - mean - s.normal * dot[w->row] / count_of(run)));
    }
    w->position = xs->position = 0;
}

static void backward(const weft_op_run *run, struct walk *w)
{
    double plain[MOST_ROWS] = {0}, dot[MOST_ROWS] = {0};
    const weft_tensor_local *in = run->inputs;
    struct walk *xs = &(struct walk){0};
    uint32_t sums = is_rms(run) ? 4 : 5;

    walk_begin(xs, run, &in[1], w->reduced);
    if (ends(run, "finish")) {
        for (int64_t i = 0; i < w->rows; i++) {
            plain[i] = (double)floats(&in[sums])[i];
            dot[i] = (double)floats(&in[run->input_count - 1])[i];
        }
        write_slopes(run, w, xs, plain, dot);
        return;
    }
    if (ends(run, "weights")) {
        add_weights(run, w, xs, run->outputs);
        return;
    }
    add_slopes(run, w, xs, plain, dot);
    if (!ends(run, "dot")) {
        add_weights(run, w, xs, run->outputs + 1);
        write_slopes(run, w, xs, plain, dot);
        return;
    }
    for (int64_t i = 0; i < w->rows; i++) {
        if (!is_rms(run)) floats(&run->outputs[0])[i] = (float)plain[i];
        floats(&run->outputs[run->output_count - 1])[i] = (float)dot[i];
    }
}

weft_status norm_kernel(const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0];
    struct walk *w = &(struct walk){0};

    if (!ends(run, "moments")) walk_begin(w, run, x, reduced_dims(run, x));
    if (w->rows > MOST_ROWS) return weft_fail(WEFT_ERR_UNSUPPORTED, "too many rows");
    if (strstr(run->name, "_bwd") != NULL)
        backward(run, w);
    else
        forward(run, w);
    return WEFT_OK;
}

/* ---- sums up to each element ---- */

/* True if W's element begins a run of indices of the shard. */
static bool begins(const struct walk *w, int32_t dim)
{
    int64_t at = w->at[dim];

    return at == 0 || w->global[dim][at] != w->global[dim][at - 1] + 1;
}

/* The number of the run that has W's element. */
static int64_t run_of(const struct walk *w, int32_t dim)
{
    int64_t number = 0;

    for (int64_t at = 1; at <= w->at[dim]; at++)
        number += w->global[dim][at] != w->global[dim][at - 1] + 1;
    return number;
}

static void write_totals(const weft_op_run *run, struct walk *w, int32_t dim)
{
    const weft_tensor_local *totals = &run->outputs[0], *starts = &run->outputs[1];
    int64_t slots = totals->shard->shape[totals->shard->dims - 1];

    fill(totals);
    for (int64_t i = 0; i < starts->shard->elements; i++)
        integers(starts)[i] = -1;
    for (const float *x; (x = walk_next(w)) != NULL;) {
        int64_t at = w->row * slots + run_of(w, dim);
        floats(totals)[at] += *x;
        if (begins(w, dim)) integers(starts)[at] = w->index;
    }
}

/* The sum of the runs of all ranks that begin before W's element. */
static double sum_before(const weft_op_run *run, const struct walk *w)
{
    const weft_tensor_local *totals = &run->inputs[1], *starts = &run->inputs[2];
    int64_t slots = totals->shard->shape[totals->shard->dims - 1];
    double sum = 0;

    for (int64_t at = w->row * slots; at < (w->row + 1) * slots; at++)
        if (integers(starts)[at] >= 0 && integers(starts)[at] < w->index)
            sum += (double)floats(totals)[at];
    return sum;
}

weft_status cumsum_kernel(const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0];
    int32_t dim = (int32_t)int_attr(run, "dim", 0);
    double sums[MOST_ROWS] = {0};
    struct walk *w = &(struct walk){0};

    walk_begin(w, run, x, reduced_dims(run, x));
    if (w->rows > MOST_ROWS) return weft_fail(WEFT_ERR_UNSUPPORTED, "too many rows");
    if (ends(run, "totals")) {
        write_totals(run, w, dim);
        return WEFT_OK;
    }
    for (const float *value; (value = walk_next(w)) != NULL;) {
        if (ends(run, "finish") && begins(w, dim)) sums[w->row] = sum_before(run, w);
        sums[w->row] += (double)*value;
        floats(&run->outputs[0])[w->position - 1] = (float)sums[w->row];
    }
    return WEFT_OK;
}
