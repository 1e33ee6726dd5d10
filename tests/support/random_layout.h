/* random_layout.h - random meshes, shapes and placements, and an oracle that computes the shard of
 * each rank without the library's arithmetic. */
#ifndef WEFT_TESTS_RANDOM_LAYOUT_H
#define WEFT_TESTS_RANDOM_LAYOUT_H

#include "random.h"
#include "shard/shard.h"

#include <check.h>
#include <string.h>

enum { ORACLE_LONGEST = 64 }; /* no dimension is longer */

static inline weft_mesh *random_mesh(struct random *r)
{
    static const char *const all_names[] = {"dp", "cp", "tp", "_e9"};
    int32_t axes = random_in(r, 1, 4), sizes[4], ranks[625], total = 1, first, step;
    weft_mesh_options options = {.struct_size = sizeof options};
    weft_mesh *mesh = NULL;

    for (int32_t i = 0; i < axes; i++)
        total *= sizes[i] = random_in(r, 1, axes > 2 ? 3 : 5);
    if (random_chance(r, 2)) options.names = all_names;
    if (random_chance(r, 4)) options.devices_per_host = random_in(r, 1, 5);
    first = random_in(r, 0, 9);
    step = random_in(r, 1, 3);
    switch (random_in(r, 0, 3)) {
    case 0: /* any order */
        random_order(r, total, ranks);
        options.ranks = ranks;
        break;
    case 1: /* any order, spread out */
        random_order(r, total, ranks);
        for (int32_t i = 0; i < total; i++)
            ranks[i] = first + ranks[i] * step;
        options.ranks = ranks;
        break;
    case 2: /* one stride */
        for (int32_t i = 0; i < total; i++)
            ranks[i] = first + i * step;
        options.ranks = ranks;
        break;
    default: /* 0, 1, 2 ... */
        break;
    }
    ck_assert_int_eq(weft_mesh_create(axes, sizes, &options, &mesh), WEFT_OK);
    return mesh;
}

/* Sizes that divide evenly or not, 0, 1, primes, and sizes below or above that of the mesh. */
static inline int32_t random_shape(struct random *r, int64_t *shape)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 24, 27, 31, 36, 60};
    int32_t dims = random_in(r, 0, 4), widest = dims > 2 ? 8 : (int32_t)WF_COUNT(sizes) - 1;

    for (int32_t i = 0; i < dims; i++)
        shape[i] = sizes[random_in(r, random_chance(r, 8) ? 0 : 1, widest)];
    return dims;
}

/* SUM as COUNT random numbers, some of them 0. */
static inline void random_sizes(struct random *r, int64_t sum, int32_t count, int64_t *out)
{
    memset(out, 0, (size_t)count * sizeof *out);
    for (int64_t i = 0; i < sum; i++)
        out[random_in(r, 0, random_chance(r, 3) ? 0 : count - 1)]++;
}

/* The list of sizes of a placement that random_placements drew. */
struct random_list {
    int64_t sizes[64];
};

/* P splits the REST of its dimension over RANKS ranks, where listed sizes are possible: sometimes
 * list them, in LIST.  Returns the rest on each rank, or -1 if it is not the same on all. */
static inline int64_t random_list(struct random *r, int64_t rest, int32_t ranks, weft_placement *p,
                                  struct random_list *list)
{
    int64_t each = 0;

    if (random_chance(r, 2) || p->kind == WEFT_PLACE_STRIDED)
        return p->kind == WEFT_PLACE_SHARD && rest % ranks == 0 ? rest / ranks : -1;
    p->sizes = list->sizes;
    if (random_chance(r, 2)) {
        p->kind = WEFT_PLACE_SIZES;
        p->size_count = (size_t)ranks;
        random_sizes(r, rest, ranks, list->sizes);
        return -1;
    }
    p->kind = WEFT_PLACE_PARTS;
    p->size_count = (size_t)random_in(r, 1, 6);
    if (random_chance(r, 2)) { /* even parts, so that inner axes may list sizes too */
        random_sizes(r, rest / ranks, (int32_t)p->size_count, list->sizes);
        for (size_t i = 0; i < p->size_count; i++)
            list->sizes[i] *= ranks;
        list->sizes[0] += rest % ranks;
    } else {
        random_sizes(r, rest, (int32_t)p->size_count, list->sizes);
    }
    for (size_t i = 0; i < p->size_count; i++) {
        if (list->sizes[i] % ranks != 0) return -1;
        each += list->sizes[i] / ranks;
    }
    return each;
}

/* Make some of the splits list sizes.  The sizes stay valid until the next call. */
static inline void random_lists(struct random *r, const weft_mesh *mesh, int32_t dims,
                                const int64_t *shape, weft_placement *out)
{
    static _Thread_local struct random_list lists[WEFT_MAX_AXES];
    int32_t axes = weft_mesh_axes(mesh);

    for (int32_t d = 0; d < dims; d++) {
        int64_t rest = shape[d];
        bool taken[WEFT_MAX_AXES] = {false};
        for (;;) {
            int32_t next = -1;
            for (int32_t a = 0; a < axes; a++)
                if (wf_placement_splits(&out[a]) && out[a].dim == d && !taken[a] &&
                    (next < 0 || out[a].turn < out[next].turn))
                    next = a;
            if (next < 0 || rest < 0) break;
            taken[next] = true;
            rest = random_list(r, rest, weft_mesh_axis_size(mesh, next), &out[next], &lists[next]);
        }
    }
}

static inline void random_placements(struct random *r, const weft_mesh *mesh, int32_t dims,
                                     const int64_t *shape, weft_placement *out)
{
    static const uint32_t reductions[] = {WEFT_REDUCE_SUM, WEFT_REDUCE_MIN, WEFT_REDUCE_MAX,
                                          WEFT_REDUCE_AVG, WEFT_REDUCE_PROD};
    uint32_t reduction = reductions[random_in(r, 0, 4)];
    bool ordered = random_chance(r, 2);
    int32_t axes = weft_mesh_axes(mesh), turns[WEFT_MAX_AXES];

    random_order(r, axes, turns);
    for (int32_t i = 0; i < axes; i++) {
        int32_t kind = random_in(r, 0, 5);
        out[i] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (kind == 0)
            out[i] = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = reduction};
        if (kind == 1 && random_chance(r, 2))
            out[i] = (weft_placement){.kind = WEFT_PLACE_OWNER,
                                      .owner = random_in(r, 0, weft_mesh_axis_size(mesh, i) - 1)};
        if (kind < 2 || dims == 0) continue;
        out[i] = (weft_placement){.kind = kind < 5 ? WEFT_PLACE_SHARD : WEFT_PLACE_STRIDED,
                                  .dim = random_in(r, 0, dims - 1),
                                  .turn = ordered ? turns[i] : 0};
        if (kind == 5) out[i].factor = random_in(r, 1, random_chance(r, 4) ? 40 : 6);
    }
    if (random_chance(r, 2)) random_lists(r, mesh, dims, shape, out);
}

/* True if SPEC has a placement that DTensor does not have. */
static inline bool has_new_kinds(const weft_spec *spec)
{
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind >= WEFT_PLACE_PARTS) return true;
    return false;
}

static inline weft_spec *random_spec(struct random *r, const weft_mesh *mesh, int32_t dims,
                                     const int64_t *shape)
{
    weft_placement placements[WEFT_MAX_AXES];
    weft_spec *spec = NULL;

    random_placements(r, mesh, dims, shape, placements);
    ck_assert_msg(weft_spec_create(mesh, WEFT_DTYPE_F32, dims, shape, placements, &spec) == WEFT_OK,
                  "%s", weft_last_error());
    return spec;
}

/* SPEC as a command line. */
static inline const char *as_command(const weft_spec *spec)
{
    static char text[8192];
    struct wf_text out = {0};
    const struct wf_layout *layout = &spec->layout;

    wf_text_add(&out, "weft layout --mesh '");
    wf_mesh_add_text(layout->mesh, &out);
    wf_text_add(&out, "' --shape '");
    wf_shape_add_text(layout->dims, layout->shape, &out);
    wf_text_add(&out, "' --placements '");
    wf_placements_add_text(layout->placements, layout->mesh->axes, &out);
    wf_text_char(&out, '\'');
    ck_assert_int_eq(wf_text_copy_out(&out, text, sizeof text, NULL), WEFT_OK);
    return text;
}

/* ---- the oracle ---- */

/* The I-th of N ceil-chunks of IN[0 .. COUNT), appended to OUT; returns its length. */
static inline int64_t oracle_chunk(const int64_t *in, int64_t count, int64_t n, int64_t i,
                                   int64_t *out)
{
    int64_t each = (count + n - 1) / n, length = 0;

    for (int64_t at = i * each; at < (i + 1) * each && at < count; at++)
        out[length++] = in[at];
    return length;
}

/* What coordinate AT of N ranks keeps of HELD[0 .. COUNT) under P, one by one. */
static inline int64_t oracle_split(const weft_placement *p, const int64_t *held, int64_t count,
                                   int32_t n, int32_t at, int64_t *out)
{
    int64_t factor = p->kind == WEFT_PLACE_STRIDED ? p->factor : 1, kept = 0, start = 0;
    int64_t piece[ORACLE_LONGEST];

    for (size_t i = 0; wf_placement_has_sizes(p) && i < p->size_count; start += p->sizes[i++]) {
        if (p->kind == WEFT_PLACE_PARTS)
            kept += oracle_chunk(held + start, p->sizes[i], n, at, out + kept);
        else if (i == (size_t)at)
            kept = oracle_chunk(held + start, p->sizes[i], 1, 0, out);
    }
    for (int64_t j = 0; !wf_placement_has_sizes(p) && j < factor; j++) {
        int64_t length = oracle_chunk(held, count, factor, j, piece);
        kept += oracle_chunk(piece, length, n, at, out + kept);
    }
    return kept;
}

/* True if the rank at COORD holds elements, as far as owners are concerned. */
static inline bool oracle_owns(const weft_spec *spec, const int32_t *coord)
{
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_OWNER &&
            weft_spec_placements(spec)[a].owner != coord[a])
            return false;
    return true;
}

/* The global indices of dimension DIM at COORD, one by one.  Returns their number. */
static inline int64_t oracle_indices(const weft_spec *spec, const int32_t *coord, int32_t dim,
                                     int64_t *out)
{
    const weft_placement *p = weft_spec_placements(spec);
    int32_t axes = weft_mesh_axes(weft_spec_mesh(spec));
    int64_t count = weft_spec_shape(spec)[dim], held[ORACLE_LONGEST];

    if (dim == 0 && !oracle_owns(spec, coord)) return 0;
    for (int64_t i = 0; i < count; i++)
        out[i] = i;
    for (int32_t turn = 0; turn < axes; turn++)
        for (int32_t axis = 0; axis < axes; axis++) {
            int32_t n = weft_mesh_axis_size(weft_spec_mesh(spec), axis);
            if (!wf_placement_splits(&p[axis]) || p[axis].dim != dim || p[axis].turn != turn)
                continue;
            memcpy(held, out, sizeof held);
            count = oracle_split(&p[axis], held, count, n, coord[axis], out);
        }
    return count;
}

#endif
