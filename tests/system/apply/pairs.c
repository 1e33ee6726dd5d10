#include "phase_kernels.h"

#include <math.h>
#include <string.h>

struct pair {
    float value;
    int64_t index; /* -1: none */
};

/* True if A comes before B: NaN first, then the larger or smaller value, then the lower index.  The
 * smallest elements of topk have NaN last. */
static bool is_before(const weft_op_run *run, struct pair a, struct pair b)
{
    bool is_topk = strncmp(run->name, "topk", 4) == 0;
    bool smallest = strncmp(run->name, "argmin", 6) == 0 || strncmp(run->name, "min_dim", 7) == 0 ||
                    (is_topk && int_attr(run, "largest", 1) == 0);

    if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
    if (isnan(a.value) != isnan(b.value)) return isnan(a.value) != (is_topk && smallest);
    if (a.value != b.value && !isnan(a.value)) return (a.value > b.value) != smallest;
    return a.index < b.index;
}

/* Insert PAIR into the COUNT pairs of BEST, in their order. */
static void insert(const weft_op_run *run, struct pair *best, int64_t count, struct pair pair)
{
    for (int64_t i = 0; i < count; i++)
        if (is_before(run, pair, best[i])) {
            struct pair moved = best[i];
            best[i] = pair;
            pair = moved;
        }
}

enum { MOST = 4096 };

/* Store COUNT pairs of each row to the outputs; the pair J of row I is at the place that AT gives.
 */
static void store(const weft_op_run *run, const struct pair *best, int64_t place, int64_t from)
{
    const weft_tensor_local *values = run->output_count > 1 ? &run->outputs[0] : NULL;
    const weft_tensor_local *indices = &run->outputs[run->output_count - 1];

    if (values != NULL) floats(values)[place] = best[from].value;
    integers(indices)[place] = best[from].index;
}

/* The best elements of each row of the shard; slots without an element have index -1. */
static void candidates(const weft_op_run *run, struct pair *best)
{
    const weft_tensor_local *x = &run->inputs[0], *out = &run->outputs[0];
    int64_t slots = out->shard->shape[out->shard->dims - 1];
    struct walk *w = &(struct walk){0};

    walk_begin(w, run, x, reduced_dims(run, x));
    for (const float *value; (value = walk_next(w)) != NULL;)
        insert(run, best + w->row * slots, slots, (struct pair){*value, w->index});
    for (int64_t i = 0; i < w->rows * slots; i++)
        store(run, best, i, i);
}

/* COUNT pairs of each row in BEST go to the outputs, which have them in dimension DIM. */
static void spread(const weft_op_run *run, const struct pair *best, int64_t rows, int64_t count,
                   int32_t dim)
{
    const weft_shard *shard = run->outputs[0].shard;
    int64_t inner = 1;

    for (int32_t d = dim + 1; d < shard->dims; d++)
        inner *= shard->shape[d];
    for (int64_t row = 0; row < rows; row++)
        for (int64_t j = 0; j < count; j++)
            store(run, best, (row / inner * count + j) * inner + row % inner, row * count + j);
}

/* The best of the candidates of all ranks. */
static void pick(const weft_op_run *run, struct pair *best)
{
    const weft_tensor_local *values = &run->inputs[0], *indices = &run->inputs[1];
    int64_t slots = values->shard->shape[values->shard->dims - 1];
    int64_t rows = slots > 0 ? values->shard->elements / slots : 0;
    int64_t count = rows > 0 ? run->outputs[0].shard->elements / rows : 0;

    for (int64_t row = 0; row < rows; row++)
        for (int64_t j = 0; j < slots; j++)
            insert(
                run, best + row * count, count,
                (struct pair){floats(values)[row * slots + j], integers(indices)[row * slots + j]});
    spread(run, best, rows, count, (int32_t)int_attr(run, "dim", 0));
}

/* Both at once. */
static void whole(const weft_op_run *run, struct pair *best)
{
    const weft_tensor_local *x = &run->inputs[0];
    struct walk *w = &(struct walk){0};
    int64_t count;

    walk_begin(w, run, x, reduced_dims(run, x));
    count = run->outputs[0].shard->elements / w->rows;
    for (const float *value; (value = walk_next(w)) != NULL;)
        insert(run, best + w->row * count, count, (struct pair){*value, w->index});
    spread(run, best, w->rows, count, (int32_t)int_attr(run, "dim", 0));
}

weft_status pairs_kernel(const weft_op_run *run)
{
    struct pair best[MOST];

    if (run->outputs[0].shard->elements > MOST)
        return weft_fail(WEFT_ERR_UNSUPPORTED, "%s: too many elements", run->name);
    for (int64_t i = 0; i < MOST; i++)
        best[i] = (struct pair){0, -1};
    if (strstr(run->name, ".candidates") != NULL)
        candidates(run, best);
    else if (strstr(run->name, ".pick") != NULL)
        pick(run, best);
    else
        whole(run, best);
    return WEFT_OK;
}
