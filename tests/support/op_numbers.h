/* op_numbers.h - does a strategy compute the right numbers?  A plain kernel runs on the shards of
 * every rank of a simulated mesh; what the ranks hold then is compared with the kernel's result on
 * the whole tensors. */
#ifndef WEFT_TESTS_OP_NUMBERS_H
#define WEFT_TESTS_OP_NUMBERS_H

#include "shard/shard.h"
#include "support/ops.h"
#include "support/random.h"

enum { NUMBER_RANKS = 64, NUMBER_TENSORS = 10 };

/* A tensor, or a rank's part of one.  Dimension d has shape[d] indices here, which are index[d][i]
 * of the size[d] indices of the whole tensor.  parts[d]: ranks that split the dimension. */
struct part {
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], size[WEFT_MAX_DIMS], parts[WEFT_MAX_DIMS];
    int64_t *index[WEFT_MAX_DIMS];
    int64_t count;
    double *data;
    bool absent;
};

/* Compute the outputs from the inputs; their shapes are set, and their data is 0. */
typedef void op_kernel(const weft_op_call *call, const struct part *in, struct part *out);

static inline void part_end(struct part *p)
{
    for (int32_t d = 0; d < p->dims; d++)
        free(p->index[d]);
    free(p->data);
    memset(p, 0, sizeof *p);
}

/* True if the rank at COORD owns its part of SPEC.  OWNER becomes the coordinate of the rank that
 * does. */
static inline bool find_owner(const weft_spec *spec, const int32_t *coord, int32_t *owner)
{
    bool mine = true;

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++) {
        const weft_placement *p = &spec->layout.placements[a];
        owner[a] = p->kind == WEFT_PLACE_OWNER ? p->owner : coord[a];
        mine = mine && owner[a] == coord[a];
    }
    return mine;
}

/* The part of SPEC at COORD; NULL: the whole tensor.  A rank that does not own its part has one of
 * the owner's shape, so that kernels may run. */
static inline void part_begin(struct part *p, const weft_spec *spec, const int32_t *coord)
{
    int32_t owner[WEFT_MAX_AXES];
    struct wf_shard shard;

    memset(p, 0, sizeof *p);
    if (spec == NULL) {
        p->absent = true;
        return;
    }
    p->dims = spec->layout.dims;
    p->count = 1;
    if (coord != NULL) {
        (void)find_owner(spec, coord, owner);
        wf_shard_at(&spec->layout, owner, &shard);
    }
    for (int32_t d = 0; d < p->dims; d++) {
        p->size[d] = spec->layout.shape[d];
        p->shape[d] = coord != NULL ? shard.shape[d] : p->size[d];
        p->parts[d] = 1;
        for (int32_t a = 0; coord != NULL && a < spec->layout.mesh->axes; a++)
            if (wf_placement_splits(&spec->layout.placements[a]) &&
                spec->layout.placements[a].dim == d)
                p->parts[d] *= spec->layout.mesh->axis[a].size;
        p->index[d] = calloc((size_t)p->shape[d] + 1, sizeof *p->index[d]);
        for (int64_t i = 0; i < p->shape[d]; i++) {
            struct wf_index index;
            if (coord != NULL) index = wf_shard_index(&shard, d);
            p->index[d][i] = coord != NULL ? wf_index_at(&index, i) : i;
        }
        p->count *= p->shape[d];
    }
    p->data = calloc((size_t)p->count + 1, sizeof *p->data);
}

/* Coordinates of element I, and back. */
static inline void part_coord(const struct part *p, int64_t i, int64_t *c)
{
    for (int32_t d = p->dims - 1; d >= 0; d--) {
        c[d] = i % p->shape[d];
        i /= p->shape[d];
    }
}

static inline int64_t part_offset(const struct part *p, const int64_t *c)
{
    int64_t at = 0;

    for (int32_t d = 0; d < p->dims; d++)
        at = at * p->shape[d] + c[d];
    return at;
}

/* The element of the whole tensor that element I of the part P is. */
static inline int64_t part_global(const struct part *p, int64_t i)
{
    int64_t c[WEFT_MAX_DIMS], at = 0;

    part_coord(p, i, c);
    for (int32_t d = 0; d < p->dims; d++)
        at = at * p->size[d] + p->index[d][c[d]];
    return at;
}

/* ---- contributions ---- */

static inline bool is_partial_axis(const weft_spec *spec, int32_t axis)
{
    return spec->layout.placements[axis].kind == WEFT_PLACE_PARTIAL;
}

static inline uint32_t partial_kind(const weft_spec *spec)
{
    uint32_t kind = WEFT_REDUCE_COUNT;

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (is_partial_axis(spec, a)) {
            uint32_t mine = spec->layout.placements[a].reduction;
            kind = mine == WEFT_REDUCE_AVG ? WEFT_REDUCE_SUM : mine; /* avg: a weighted sum */
        }
    return kind;
}

/* Weight of each contribution: 1 over the sizes of the axes that are averages. */
static inline double partial_weight(const weft_spec *spec)
{
    double weight = 1;

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (is_partial_axis(spec, a) && spec->layout.placements[a].reduction == WEFT_REDUCE_AVG)
            weight /= spec->layout.mesh->axis[a].size;
    return weight;
}

/* The number of the contribution that the rank at COORD has, and of all of them. */
static inline int32_t partial_number(const weft_spec *spec, const int32_t *coord, int32_t *count)
{
    int32_t number = 0;

    *count = 1;
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (is_partial_axis(spec, a)) {
            number = number * spec->layout.mesh->axis[a].size + coord[a];
            *count *= spec->layout.mesh->axis[a].size;
        }
    return number;
}

/* A number that depends on nothing but its arguments. */
static inline double noise(uint64_t seed, uint64_t a, uint64_t b)
{
    return (double)(wf_hash_mix(wf_hash_mix(seed + 1, a + 1), b + 7) >> 40) / (double)(1 << 24);
}

/* Contribution NUMBER of COUNT to VALUE. */
static inline double contribution(double value, uint32_t kind, double weight, int32_t number,
                                  int32_t count, uint64_t seed, uint64_t element, bool integer)
{
    double rest = value;
    int32_t holder = (int32_t)(noise(seed, element, 99) * count);

    if (kind == WEFT_REDUCE_MAX || kind == WEFT_REDUCE_MIN) {
        double less = 3 * noise(seed, element, (uint64_t)number);
        if (integer) less = floor(less);
        if (number == holder) return value;
        return kind == WEFT_REDUCE_MAX ? value - less : value + less;
    }
    if (number != count - 1) {
        double random = 4 * noise(seed, element, (uint64_t)number) - 2;
        if (integer) random = floor(random);
        if (kind == WEFT_REDUCE_PROD) return fabs(random) + 0.5;
        return random;
    }
    for (int32_t i = 0; i + 1 < count; i++) {
        double other = contribution(value, kind, weight, i, count, seed, element, integer);
        if (kind == WEFT_REDUCE_PROD)
            rest /= other;
        else
            rest -= weight * other;
    }
    return kind == WEFT_REDUCE_PROD ? rest : rest / weight;
}

/* A minimum or maximum of a NaN is a NaN (weft_plugin.h). */
static inline double reduce_two(double a, double b, uint32_t kind)
{
    if (kind == WEFT_REDUCE_MAX) return a > b || isnan(a) ? a : b;
    if (kind == WEFT_REDUCE_MIN) return a < b || isnan(a) ? a : b;
    return kind == WEFT_REDUCE_PROD ? a * b : a + b;
}

/* ---- the simulation ---- */

struct numbers {
    const weft_op_call *call;
    op_kernel *kernel;
    uint32_t inputs, outputs;
    struct part in[NUMBER_TENSORS], out[NUMBER_TENSORS]; /* whole */
    uint64_t seed;
};

static inline bool is_integer(const weft_spec *spec)
{
    return spec->layout.dtype < WEFT_DTYPE_F16;
}

/* Fill the inputs: integers from 0 to RANGE - 1, truth values, other numbers from LEAST on. */
static inline void numbers_fill(struct numbers *n, int64_t range, double least)
{
    for (uint32_t i = 0; i < n->inputs; i++) {
        const weft_spec *spec = n->call->inputs[i];
        part_begin(&n->in[i], spec, NULL);
        for (int64_t j = 0; j < n->in[i].count; j++) {
            double x = noise(n->seed, i + 1000, (uint64_t)j);
            n->in[i].data[j] = spec->layout.dtype == WEFT_DTYPE_BOOL ? x < 0.5
                               : is_integer(spec)                    ? floor(x * (double)range)
                                                                     : least + 4 * x;
        }
    }
}

/* Run the kernel on the shards of the rank at COORD. */
static inline void numbers_run_rank(const struct numbers *n, const weft_op_choice *choice,
                                    const int32_t *coord, struct part *out)
{
    struct part in[NUMBER_TENSORS];

    for (uint32_t i = 0; i < n->inputs; i++) {
        const weft_spec *spec = weft_op_choice_input(choice, i);
        int32_t number = 0, count = 1, owner[WEFT_MAX_AXES];
        bool mine;
        part_begin(&in[i], spec, coord);
        if (spec == NULL) continue;
        mine = find_owner(spec, coord, owner);
        number = partial_number(spec, coord, &count);
        for (int64_t j = 0; j < in[i].count; j++) {
            int64_t global = part_global(&in[i], j);
            double value = n->in[i].data[global];
            in[i].data[j] =
                !mine ? (is_integer(spec) ? 0 : NAN) /* what a result must not depend on */
                : partial_kind(spec) == WEFT_REDUCE_COUNT
                    ? value
                    : contribution(value, partial_kind(spec), partial_weight(spec), number, count,
                                   n->seed + i, (uint64_t)global, is_integer(spec));
        }
    }
    for (uint32_t i = 0; i < n->outputs; i++)
        part_begin(&out[i], weft_op_choice_output(choice, i), coord);
    n->kernel(n->call, in, out);
    for (uint32_t i = 0; i < n->inputs; i++)
        part_end(&in[i]);
}

static inline bool numbers_close(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b))) return true;
    return fabs(a - b) <= 1e-6 * (1 + fabs(a) + fabs(b));
}

/* What the ranks hold of output I, reduced, against the whole. */
static inline bool numbers_compare(const struct numbers *n, const weft_spec *spec, uint32_t i,
                                   struct part (*out)[NUMBER_TENSORS])
{
    const weft_mesh *mesh = spec->layout.mesh;
    uint32_t kind = partial_kind(spec);
    double weight = partial_weight(spec);

    for (int32_t r = 0; r < mesh->size; r++) {
        int32_t coord[WEFT_MAX_AXES], other[WEFT_MAX_AXES];
        wf_mesh_coord_at(mesh, r, coord);
        if (!find_owner(spec, coord, other)) continue;
        for (int64_t j = 0; j < out[r][i].count; j++) {
            double sum = 0;
            bool any = false;
            for (int32_t q = 0; q < mesh->size; q++) {
                bool same = true;
                wf_mesh_coord_at(mesh, q, other);
                for (int32_t a = 0; a < mesh->axes; a++)
                    same = same && (is_partial_axis(spec, a) || other[a] == coord[a]);
                if (!same) continue;
                sum = !any ? weight * out[q][i].data[j]
                           : reduce_two(sum, weight * out[q][i].data[j], kind);
                any = true;
            }
            if (!numbers_close(sum, n->out[i].data[part_global(&out[r][i], j)])) return false;
        }
    }
    return true;
}

/* True if CHOICE computes what the kernel computes on the whole tensors. */
static inline bool numbers_hold(const struct numbers *n, const weft_op_choice *choice)
{
    static struct part out[NUMBER_RANKS][NUMBER_TENSORS];
    const weft_mesh *mesh = weft_spec_mesh(weft_op_choice_output(choice, 0));
    bool hold = true;

    for (int32_t r = 0; r < mesh->size; r++) {
        int32_t coord[WEFT_MAX_AXES];
        wf_mesh_coord_at(mesh, r, coord);
        numbers_run_rank(n, choice, coord, out[r]);
    }
    for (uint32_t i = 0; i < n->outputs && hold; i++)
        hold = numbers_compare(n, weft_op_choice_output(choice, i), i, out);
    for (int32_t r = 0; r < mesh->size; r++)
        for (uint32_t i = 0; i < n->outputs; i++)
            part_end(&out[r][i]);
    return hold;
}

/* Compute the whole result; CHOICE gives the shapes of the outputs. */
static inline void numbers_whole(struct numbers *n, const weft_op_choice *choice)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    ck_assert(weft_op_choice_get(choice, &info) == WEFT_OK);
    n->outputs = (uint32_t)info.outputs;
    for (uint32_t i = 0; i < n->outputs; i++)
        part_begin(&n->out[i], weft_op_choice_output(choice, i), NULL);
    n->kernel(n->call, n->in, n->out);
}

static inline void numbers_end(struct numbers *n)
{
    for (uint32_t i = 0; i < n->inputs; i++)
        part_end(&n->in[i]);
    for (uint32_t i = 0; i < n->outputs; i++)
        part_end(&n->out[i]);
}

#endif
