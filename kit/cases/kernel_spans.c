/* kernel_spans.c - sums of powers, limits of the norm, and clamps of lists of spans.
 *
 * A list has spans of two dtypes: the first sum is that of spans of the dtype of the case, which
 * are not aligned; the second sum is that of a span of f32; the third sum has no span.  Elements
 * are small multiples of 1/2, so that sums of first and second powers are exact in any order. */

#include "cases.h"

#include "checks/casts.h"

#include <math.h>
#include <string.h>

enum { SPANS = 4, SUMS = 3, BODY = 9001, OTHERS = 300 };

/* ELEMENTS of the case's dtype, at these places of their image. */
static const uint64_t places[SPANS - 1] = {1, 7, 8}, counts[SPANS - 1] = {5, 0, BODY};

struct bench {
    struct kit *kit;
    uint32_t dtype;
    struct kit_image data, others, sums; /* SUMS: the sums, a sum that was given, and the norm */
    void *list;
    void *memory[SPANS];
};

static void store(uint32_t dtype, double value, void *out)
{
    if (dtype == WEFT_DTYPE_F64)
        memcpy(out, &value, sizeof value);
    else
        kit_cast_want(WEFT_DTYPE_F64, dtype, &value, out);
}

static double load(uint32_t dtype, const void *element)
{
    return wf_number_load(dtype, element).re;
}

/* Element I of a span. */
static double value_of(uint64_t i)
{
    return ((double)(i * 5 % 13) - 6) / 2;
}

static uint8_t *element(const struct bench *b, struct kit_image *image, uint8_t *copy, uint64_t i)
{
    uint32_t dtype = image == &b->data ? b->dtype : (uint32_t)WEFT_DTYPE_F32;

    return copy + image->start + i * wf_dtype_bytes(dtype);
}

static bool make_list(struct bench *b)
{
    const weft_span spans[SPANS] = {{counts[0], b->dtype, 0},
                                    {counts[1], b->dtype, 0},
                                    {OTHERS, WEFT_DTYPE_F32, 1},
                                    {counts[2], b->dtype, 0}};
    uint64_t bytes = wf_dtype_bytes(b->dtype);
    weft_status status =
        b->kit->plugin->kernel->spans_create(b->kit->device, SPANS, spans, SUMS, &b->list);

    b->memory[0] = kit_image_at(&b->data, places[0] * bytes);
    b->memory[1] = NULL;
    b->memory[2] = kit_image_at(&b->others, 0);
    b->memory[3] = kit_image_at(&b->data, places[2] * bytes);
    return status != WEFT_ERR_UNSUPPORTED && kit_ok(b->kit, "spans_create", status);
}

/* ODD takes the place of one element of the last span, unless it is 0. */
static bool bench_make(struct bench *b, double odd)
{
    uint64_t all = places[2] + BODY;

    if (!kit_image_make(b->kit, &b->data, all * wf_dtype_bytes(b->dtype), 0, KIT_DEVICE) ||
        !kit_image_make(b->kit, &b->others, OTHERS * sizeof(float), 0, KIT_DEVICE) ||
        !kit_image_make(b->kit, &b->sums, (SUMS + 2) * sizeof(double), 0, KIT_DEVICE))
        return false;
    for (uint64_t i = 0; i < all; i++)
        store(b->dtype, value_of(i), element(b, &b->data, b->data.before, i));
    if (odd != 0) store(b->dtype, odd, element(b, &b->data, b->data.before, places[2] + BODY / 2));
    for (uint64_t i = 0; i < OTHERS; i++)
        store(WEFT_DTYPE_F32, value_of(i), element(b, &b->others, b->others.before, i));
    return kit_image_upload(b->kit, &b->data) && kit_image_upload(b->kit, &b->others) &&
           make_list(b);
}

static void bench_free(struct bench *b)
{
    if (b->list != NULL) b->kit->plugin->kernel->spans_destroy(b->list);
    kit_images_free(b->kit, &b->data, &b->others);
    kit_image_free(b->kit, &b->sums);
}

static double given(const struct bench *b, int index)
{
    double value;

    memcpy(&value, b->sums.got + b->sums.start + (size_t)index * sizeof value, sizeof value);
    return value;
}

static bool is_near(double got, double want, double tolerance)
{
    if (isnan(want)) return isnan(got);
    return got == want || fabs(got - want) <= tolerance * fabs(want);
}

/* ---- sums ---- */

static double added(double sum, double value, double p)
{
    if (!isinf(p)) return sum + pow(fabs(value), p);
    value = isnan(value) ? (double)INFINITY : fabs(value);
    return value > sum ? value : sum;
}

static void want_sums(struct bench *b, double p, double *want)
{
    want[0] = want[1] = want[2] = 0;
    for (int s = 0; s < SPANS - 1; s++)
        for (uint64_t i = places[s]; i < places[s] + counts[s]; i++)
            want[0] = added(want[0], load(b->dtype, element(b, &b->data, b->data.before, i)), p);
    for (uint64_t i = 0; i < OTHERS; i++)
        want[1] = added(want[1], value_of(i), p);
}

static void run_powers(struct bench *b, double p, double tolerance)
{
    double want[SUMS];
    weft_status status;

    want_sums(b, p, want);
    if (!kit_image_upload(b->kit, &b->sums)) return;
    status = b->kit->plugin->kernel->spans_powers(b->list, b->memory, p, kit_image_at(&b->sums, 0),
                                                  NULL);
    if (!kit_done(b->kit, "spans_powers", status) || !kit_image_download(b->kit, &b->sums)) return;
    for (int i = 0; i < SUMS; i++)
        kit_check(b->kit, is_near(given(b, i), want[i], tolerance), "sum %d is %.17g, not %.17g", i,
                  given(b, i), want[i]);
}

static void powers(struct kit *kit, uint32_t dtype, double p, double odd, const char *name)
{
    struct bench b = {.kit = kit, .dtype = dtype};

    if (!kit_begin(kit, "spans_powers/%s/%s", wf_dtype_name(dtype), name)) return;
    if (bench_make(&b, odd)) {
        run_powers(&b, p, p == 1 || p == 2 || isinf(p) ? 0 : 1e-10);
        run_powers(&b, p, p == 1 || p == 2 || isinf(p) ? 0 : 1e-10); /* nothing stays in the list */
        kit_image_check(kit, &b.data, "the elements", &(struct kit_compare){.dtype = dtype});
    }
    bench_free(&b);
    kit_end(kit);
}

/* ---- changes ---- */

/* What ELEMENT of DTYPE becomes; NULL for LIMIT: clamped to MOST. */
static void change(uint32_t dtype, const weft_norm_limit *limit, double most, double norm,
                   uint8_t *at)
{
    double value = load(dtype, at), factor = limit != NULL ? limit->most / (norm + 1e-6) : 1;
    float near;

    if (limit != NULL && !isfinite(norm) && limit->nonfinite != WEFT_NONFINITE_SCALE)
        factor = limit->nonfinite == WEFT_NONFINITE_ZERO ? 0 : 1;
    if (limit != NULL && factor >= 1) return;
    if (limit == NULL && !(fabs(value) > most)) return;
    if (limit == NULL)
        value = value > 0 ? most : -most;
    else if (factor == 0 && limit->nonfinite == WEFT_NONFINITE_ZERO)
        value = 0;
    else
        value = dtype == WEFT_DTYPE_F64 ? value * factor : (double)((float)value * (float)factor);
    near = (float)value;
    if (dtype == WEFT_DTYPE_F64)
        memcpy(at, &value, sizeof value);
    else if (dtype == WEFT_DTYPE_F32)
        memcpy(at, &near, sizeof near);
    else
        kit_cast_want(WEFT_DTYPE_F32, dtype, &near, at);
}

static void want_changes(struct bench *b, const weft_norm_limit *limit, double most, double norm)
{
    for (int s = 0; s < SPANS - 1; s++)
        for (uint64_t i = places[s]; i < places[s] + counts[s]; i++)
            change(b->dtype, limit, most, norm, element(b, &b->data, b->data.want, i));
    for (uint64_t i = 0; i < OTHERS; i++)
        change(WEFT_DTYPE_F32, limit, most, norm, element(b, &b->others, b->others.want, i));
}

static void check_changes(struct bench *b, const char *function, weft_status status)
{
    if (!kit_done(b->kit, function, status)) return;
    kit_image_check(b->kit, &b->data, "spans of the dtype",
                    &(struct kit_compare){.dtype = b->dtype, .by_value = true});
    kit_image_check(b->kit, &b->others, "spans of f32",
                    &(struct kit_compare){.dtype = WEFT_DTYPE_F32, .by_value = true});
}

struct limit_case {
    const char *name;
    double p, most, sum, norm;
    uint32_t nonfinite;
};

static void limit(struct kit *kit, uint32_t dtype, const struct limit_case *c)
{
    const weft_norm_limit how = {
        .struct_size = sizeof how, .nonfinite = c->nonfinite, .p = c->p, .most = c->most};
    struct bench b = {.kit = kit, .dtype = dtype};
    double *sums;

    if (!kit_begin(kit, "spans_limit/%s/%s", wf_dtype_name(dtype), c->name)) return;
    if (bench_make(&b, isfinite(c->sum) ? 0 : (double)NAN)) {
        memcpy(b.sums.before + b.sums.start + SUMS * sizeof c->sum, &c->sum, sizeof c->sum);
        want_changes(&b, &how, 0, c->norm);
        sums = kit_image_at(&b.sums, 0);
        if (kit_image_upload(kit, &b.sums)) {
            check_changes(&b, "spans_limit",
                          kit->plugin->kernel->spans_limit(b.list, b.memory, &how, sums + SUMS,
                                                           sums + SUMS + 1, NULL));
            kit_check(kit,
                      kit_image_download(kit, &b.sums) &&
                          is_near(given(&b, SUMS + 1), c->norm, c->p == 3 ? 1e-12 : 0),
                      "the norm is %.17g, not %.17g", given(&b, SUMS + 1), c->norm);
        }
    }
    bench_free(&b);
    kit_end(kit);
}

static void clamp(struct kit *kit, uint32_t dtype, double most)
{
    struct bench b = {.kit = kit, .dtype = dtype};

    if (!kit_begin(kit, "spans_clamp/%s/most=%g", wf_dtype_name(dtype), most)) return;
    if (bench_make(&b, (double)NAN)) {
        want_changes(&b, NULL, most, 0);
        check_changes(&b, "spans_clamp",
                      kit->plugin->kernel->spans_clamp(b.list, b.memory, most, NULL));
    }
    bench_free(&b);
    kit_end(kit);
}

/* ---- the rest ---- */

/* A list without spans has sums and a norm; wrong arguments are refused. */
void kit_kernel_spans_edges(struct kit *kit)
{
    const weft_kernel_table *table = kit->plugin->kernel;
    const weft_span beyond = {1, WEFT_DTYPE_F32, 2}, integers = {1, WEFT_DTYPE_I32, 0};
    const weft_span one = {1, WEFT_DTYPE_F32, 0};
    void *nowhere = NULL, *list = NULL, *unmade = NULL;
    weft_status status = table->spans_create(kit->device, 1, &one, 1, &list);

    if (status != WEFT_ERR_UNSUPPORTED && kit_ok(kit, "spans_create", status)) {
        kit_expect(kit, "spans_create with a sum beyond the last",
                   table->spans_create(kit->device, 1, &beyond, 2, &unmade), WEFT_ERR_INVALID);
        kit_expect(kit, "spans_create of integers",
                   table->spans_create(kit->device, 1, &integers, 1, &unmade),
                   WEFT_ERR_UNSUPPORTED);
        kit_expect(kit, "spans_clamp of memory that is NULL",
                   table->spans_clamp(list, &nowhere, 1, NULL), WEFT_ERR_INVALID);
        kit_expect(kit, "spans_powers without sums",
                   table->spans_powers(list, (void *[]){list}, 2, NULL, NULL), WEFT_ERR_INVALID);
        table->spans_destroy(list);
    }
}

static const struct limit_case limits[] = {
    {"scaled", 2, 2.5, 25, 5, WEFT_NONFINITE_SCALE},
    {"first_powers", 1, 0.75, 3, 3, WEFT_NONFINITE_SCALE},
    {"third_powers", 3, 10, 27, 3, WEFT_NONFINITE_SCALE},
    {"largest", (double)INFINITY, 1, 6, 6, WEFT_NONFINITE_KEEP},
    {"untouched", 2, 5.5, 25, 5, WEFT_NONFINITE_ZERO},
    {"to_zero", 2, 0, 25, 5, WEFT_NONFINITE_ZERO},
    {"nan_scaled", 2, 1, (double)NAN, (double)NAN, WEFT_NONFINITE_SCALE},
    {"nan_kept", 2, 1, (double)NAN, (double)NAN, WEFT_NONFINITE_KEEP},
    {"nan_to_zero", 2, 1, (double)NAN, (double)NAN, WEFT_NONFINITE_ZERO},
    {"infinite_scaled", 2, 1, (double)INFINITY, (double)INFINITY, WEFT_NONFINITE_SCALE},
    {"infinite_kept", 1, 1, (double)INFINITY, (double)INFINITY, WEFT_NONFINITE_KEEP},
};

/* The number of functions of spans that the plugin has, of FUNCTIONS. */
enum { FUNCTIONS = 5 };

static int functions_of(const weft_kernel_table *table)
{
    return (table->spans_create != NULL) + (table->spans_destroy != NULL) +
           (table->spans_powers != NULL) + (table->spans_limit != NULL) +
           (table->spans_clamp != NULL);
}

void kit_kernel_spans_complete(struct kit *kit)
{
    kit_check(kit, false, "the plugin has %d of %d functions of spans; expected all or none",
              functions_of(kit->plugin->kernel), (int)FUNCTIONS);
}

void kit_kernel_spans(struct kit *kit)
{
    for (uint32_t dtype = WEFT_DTYPE_F16; dtype <= WEFT_DTYPE_F8E5M2; dtype++) {
        powers(kit, dtype, 1, 0, "p=1");
        powers(kit, dtype, 2, 0, "p=2");
        powers(kit, dtype, 0.5, 0, "p=0.5");
        powers(kit, dtype, 3, 0, "p=3");
        powers(kit, dtype, (double)INFINITY, 0, "p=inf");
        powers(kit, dtype, 2, (double)NAN, "p=2/nan");
        powers(kit, dtype, 3, (double)NAN, "p=3/nan");
        powers(kit, dtype, (double)INFINITY, (double)NAN, "p=inf/nan");
        for (size_t i = 0; i < WF_COUNT(limits); i++)
            limit(kit, dtype, &limits[i]);
        clamp(kit, dtype, 1.5);
        clamp(kit, dtype, 1.2345);
        clamp(kit, dtype, 0);
    }
}

bool kit_when_spans(struct kit *kit)
{
    return functions_of(kit->plugin->kernel) == FUNCTIONS;
}

bool kit_when_some_spans(struct kit *kit)
{
    int functions = functions_of(kit->plugin->kernel);

    return functions > 0 && functions < FUNCTIONS;
}
