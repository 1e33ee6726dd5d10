/* values.c - see values.h. */
#include "redistribute/values.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- what an element is ---- */

static int64_t averaged(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    const weft_placement *p = weft_spec_placements(spec);
    int64_t ranks = 1;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (p[a].kind == WEFT_PLACE_PARTIAL && p[a].reduction == WEFT_REDUCE_AVG)
            ranks *= weft_mesh_axis_size(mesh, a);
    return ranks;
}

static bool is_prime(int64_t n)
{
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0) return false;
    return n > 1;
}

/* An average of floats divides before it adds, so each contribution is rounded twice.  Averages
 * of 8-bit floats are computed in f32 and rounded to the exact value, except that 0 may become
 * -0. */
static double slack_between(const weft_spec *from, const weft_spec *to)
{
    uint32_t dtype = weft_spec_dtype(to); /* a cast rounds to it, or it is the one that averages */
    int64_t parts = averaged(from) * averaged(to);
    int64_t ranks =
        wf_max_i64(weft_mesh_size(weft_spec_mesh(from)), weft_mesh_size(weft_spec_mesh(to)));

    if (dtype < WEFT_DTYPE_F16 || (parts & (parts - 1)) == 0) return 0;
    if (wf_dtype_bytes(dtype) == 1 && weft_spec_dtype(from) == dtype) return DBL_MIN;
    return wf_dtype_epsilon(dtype) * 4 * (double)(ranks + 1);
}

/* The sums that averages divide, and the neighbours of a value, must be exact as well. */
struct values values_between(const weft_spec *from, const weft_spec *to)
{
    int64_t largest = wf_max_i64(averaged(from), averaged(to));
    double exact = wf_dtype_exact_limit(weft_spec_dtype(from));
    int64_t limit = (int64_t)fmin(exact, 0x1p40) / largest - 1, modulus = limit;

    const weft_mesh *one = weft_spec_mesh(from), *other = weft_spec_mesh(to);
    struct values values = {.dtype = weft_spec_dtype(from),
                            .modulus = INT64_MAX,
                            .cut = one != other && weft_mesh_size(one) == weft_mesh_size(other),
                            .slack = slack_between(from, to)};

    if (weft_spec_elements(from) <= limit) return values;
    while (modulus > 2 && !is_prime(modulus))
        modulus--;
    values.modulus = wf_max_i64(modulus, 2);
    return values;
}

struct wf_number values_at(const struct values *values, int64_t index)
{
    int64_t value = index % values->modulus;

    if (values->dtype == WEFT_DTYPE_BOOL)
        value = (int64_t)(wf_hash_mix(7, (uint64_t)index) >> 40 & 1);
    return (struct wf_number){(uint64_t)value, (double)value,
                              wf_dtype_is_complex(values->dtype) ? (double)-value : 0};
}

/* ---- what a rank contributes ---- */

/* Position of the rank among the holders of contributions. */
struct holder {
    uint32_t reduction; /* sum if some axes sum and others average */
    int64_t index, count;
    int64_t shift; /* -1 or 1 for a pair of ranks along one axis, which cancels out in sums and
                      averages; else 0 */
};

/* There is only one pair, so that sums over a part of the axis differ by 1 at most.  Averages
 * over a part are exact only without a pair. */
static int64_t shift_of(const struct values *values, uint32_t reduction, int32_t coord,
                        int32_t size)
{
    if (size == 1 || coord > 1 || (values->cut && reduction == WEFT_REDUCE_AVG)) return 0;
    return 2 * coord - 1;
}

static struct holder holder_of(const struct values *values, const weft_spec *spec,
                               const int32_t *coord)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    struct holder h = {.reduction = WEFT_REDUCE_AVG, .count = 1};
    bool shifts = wf_dtype_is_signed(values->dtype) || values->dtype >= WEFT_DTYPE_F16;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        const weft_placement *p = &weft_spec_placements(spec)[a];
        int32_t size = weft_mesh_axis_size(mesh, a);
        if (p->kind != WEFT_PLACE_PARTIAL) continue;
        h.shift = shifts && h.index == 0 ? shift_of(values, p->reduction, coord[a], size) : 0;
        if (p->reduction == WEFT_REDUCE_AVG) continue; /* all contribute the same to it */
        h.reduction = p->reduction;
        h.index = h.index * size + coord[a];
        h.count *= size;
    }
    return h;
}

static struct wf_number contribution(const struct values *values, const struct holder *h,
                                     int64_t index)
{
    struct wf_number value = values_at(values, index);
    bool chosen = index % h->count == h->index;
    struct wf_number other = value;

    switch (h->reduction) {
    case WEFT_REDUCE_SUM:
        other = (struct wf_number){0};
        break;
    case WEFT_REDUCE_PROD:
        other = (struct wf_number){.integer = 1, .re = 1};
        break;
    case WEFT_REDUCE_MIN:
        other.integer = values->dtype == WEFT_DTYPE_BOOL ? 1 : value.integer + 1;
        other.re = value.re + 1;
        break;
    case WEFT_REDUCE_MAX:
        other.integer = value.integer > 0 ? value.integer - 1 : 0;
        other.re = value.re - 1;
        break;
    default:
        break;
    }
    if (!chosen) value = other;
    if (h->reduction == WEFT_REDUCE_SUM || h->reduction == WEFT_REDUCE_AVG) {
        value.integer += (uint64_t)h->shift;
        value.re += (double)h->shift;
    }
    return value;
}

enum { PIECE = 1 << 18 }; /* elements between two calls of `progress` */

static void advance(const struct values *values, uint64_t elements)
{
    if (values->progress != NULL && elements > 0) values->progress(values->user, elements);
}

void values_fill(const struct values *values, const weft_spec *spec, int32_t rank,
                 const int64_t *strides, void *shard)
{
    size_t element = wf_dtype_bytes(weft_spec_dtype(spec));
    int32_t coord[WEFT_MAX_AXES];
    struct holder holder;
    weft_segment segment;
    uint64_t done = 0;

    if (weft_mesh_coord_of(weft_spec_mesh(spec), rank, coord) != WEFT_OK) return;
    holder = holder_of(values, spec, coord);
    for (int64_t at = 0; weft_spec_segment(spec, rank, strides, at, &segment); at += segment.length)
        for (int64_t i = 0; i < segment.length; i++) {
            wf_number_store(weft_spec_dtype(spec),
                            contribution(values, &holder, segment.global + i),
                            (char *)shard + (size_t)(segment.local + i) * element);
            if (++done % PIECE == 0) advance(values, PIECE);
        }
    advance(values, done % PIECE);
}

/* ---- whether it is there ---- */

struct check {
    const struct values *values;
    const weft_spec *spec;
    const void *const *shards;
    int32_t rank, holders, *places; /* shards with contributions to the shard of RANK */
    uint32_t reduction;
    int64_t divisor;
};

static void find_holders(struct check *c, const int32_t *coord)
{
    const weft_mesh *mesh = weft_spec_mesh(c->spec);
    const weft_placement *p = weft_spec_placements(c->spec);
    int32_t at[WEFT_MAX_AXES], a;

    c->reduction = WEFT_REDUCE_SUM;
    c->divisor = averaged(c->spec);
    if (c->divisor > 1) c->reduction = WEFT_REDUCE_AVG;
    c->holders = 0;
    memcpy(at, coord, sizeof at);
    for (a = 0; a < weft_mesh_axes(mesh); a++) {
        if (p[a].kind != WEFT_PLACE_PARTIAL) continue;
        at[a] = 0;
        if (p[a].reduction != WEFT_REDUCE_AVG && c->divisor == 1) c->reduction = p[a].reduction;
    }
    do {
        int32_t place = 0;
        for (a = 0; a < weft_mesh_axes(mesh); a++)
            place = place * weft_mesh_axis_size(mesh, a) + at[a];
        c->places[c->holders++] = place;
        for (a = weft_mesh_axes(mesh) - 1; a >= 0; a--) {
            if (p[a].kind != WEFT_PLACE_PARTIAL) continue;
            if (++at[a] < weft_mesh_axis_size(mesh, a)) break;
            at[a] = 0;
        }
    } while (a >= 0);
}

static void combine(const struct check *c, int64_t local, void *out)
{
    uint32_t dtype = weft_spec_dtype(c->spec);
    size_t at = (size_t)local * wf_dtype_bytes(dtype);
    struct wf_reducing r = {.dtype = dtype, .reduction = c->reduction, .divisor = c->divisor};

    for (int32_t h = 0; h < c->holders; h++)
        wf_reducing_add(&r, wf_number_load(dtype, (const char *)c->shards[c->places[h]] + at));
    wf_reducing_store(&r, out);
}

static weft_status complain(const struct check *c, int64_t index, const void *have,
                            const void *want)
{
    char have_text[96], want_text[96];

    wf_number_print(weft_spec_dtype(c->spec), have, have_text, sizeof have_text);
    wf_number_print(weft_spec_dtype(c->spec), want, want_text, sizeof want_text);
    return wf_fail(WEFT_ERR_MISMATCH,
                   "rank %d: element %lld of the whole tensor is %s; expected %s", c->rank,
                   (long long)index, have_text, want_text);
}

static bool is_near(const struct check *c, const void *have, const void *want)
{
    const struct values *values = c->values;
    struct wf_number a = wf_number_load(weft_spec_dtype(c->spec), have);
    struct wf_number b = wf_number_load(weft_spec_dtype(c->spec), want);
    double most = values->slack * (fabs(b.re) + fabs(b.im) + 2);

    return values->slack > 0 && fabs(a.re - b.re) <= most && fabs(a.im - b.im) <= most;
}

static weft_status check_rank(struct check *c)
{
    uint32_t dtype = weft_spec_dtype(c->spec);
    _Alignas(16) char have[16], want[16];
    weft_segment segment;
    uint64_t done = 0;

    for (int64_t at = 0; weft_spec_segment(c->spec, c->rank, NULL, at, &segment);
         at += segment.length)
        for (int64_t i = 0; i < segment.length; i++) {
            combine(c, segment.local + i, have);
            wf_number_store(dtype, values_at(c->values, segment.global + i), want);
            if (memcmp(have, want, wf_dtype_bytes(dtype)) != 0 && !is_near(c, have, want))
                return complain(c, segment.global + i, have, want);
            if (++done % PIECE == 0) advance(c->values, PIECE);
        }
    advance(c->values, done % PIECE);
    return WEFT_OK;
}

weft_status values_check(const struct values *values, const weft_spec *spec,
                         const void *const *shards)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    struct check c = {.values = values, .spec = spec, .shards = shards};
    weft_status status = WEFT_OK;

    c.places = wf_alloc((size_t)weft_mesh_size(mesh) * sizeof *c.places);
    if (c.places == NULL) return wf_fail_memory((size_t)weft_mesh_size(mesh) * sizeof *c.places);
    for (int32_t i = 0; i < weft_mesh_size(mesh) && status == WEFT_OK; i++) {
        int32_t coord[WEFT_MAX_AXES];
        c.rank = weft_mesh_rank_at(mesh, i);
        if (weft_mesh_coord_of(mesh, c.rank, coord) != WEFT_OK) continue;
        find_holders(&c, coord);
        status = check_rank(&c);
    }
    wf_free(c.places);
    return status;
}
