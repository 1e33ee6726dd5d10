/* fsdp_clip.c - gradients clipped on any backend, compared with a plain loop on the host.
 *
 * Elements are random numbers, which do not depend on the layout: replicas of the same numbers give
 * the norm, and the same numbers in the same layout give the elements before. */
#include "fsdp_clip.h"

#include "rank.h"
#include "weft/clip.h"
#include "weft/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After the listed ones come small tensors, so that their addresses need several kernels. */
enum { LISTED = 5, MANY = 460 };

static const char *const types[LISTED] = {"f32[257,130]", "f64[31,7]", "bf16[1000]", "f32[40,6]",
                                          "f32[5,3]"};
static const char *const placements[LISTED] = {"S(0)", "R", "S(0)", "S(1)", "O(0)"};

static weft_tensor *tensors[MANY];

static void expect(bool claim, const char *what, int tensor, double got, double want)
{
    if (claim) return;
    fprintf(stderr, "rank %d: %s, tensor %d: %.17g, not %.17g\n", weft_rank(context), what, tensor,
            got, want);
    exit(1);
}

static weft_spec *make_spec(int index, bool whole)
{
    const char *type = index < LISTED ? types[index] : "f32[3,5]";
    const char *placed = index < LISTED ? placements[index] : "S(0)";
    weft_spec *spec = NULL;
    char text[64];

    snprintf(text, sizeof text, "%s %s", type, whole ? "R" : placed);
    must(weft_spec_parse(mesh, text, &spec), text);
    return spec;
}

static void draw(weft_tensor *tensor, int index)
{
    weft_random random = {.seed = (uint64_t)index + 100};

    must(weft_tensor_uniform(tensor, &random, -1, 1, stream), "weft_tensor_uniform");
}

/* Elements of this rank, in host memory that the caller frees. */
struct elements {
    enum weft_dtype dtype;
    uint64_t count;
    char *memory;
};

static struct elements read_tensor(weft_tensor *tensor)
{
    struct elements e = {.dtype = weft_spec_dtype(weft_tensor_spec(tensor)),
                         .count = (uint64_t)weft_tensor_shard(tensor)->elements};
    uint64_t bytes = e.count * weft_dtype_bytes(e.dtype);

    e.memory = malloc(bytes + 1);
    if (e.memory == NULL) exit(1);
    must(weft_tensor_to_host(tensor, e.memory, bytes, stream), "weft_tensor_to_host");
    return e;
}

/* The numbers of tensor INDEX before clipping: this rank's, or all. */
static struct elements read_drawn(int index, bool whole)
{
    weft_spec *spec = make_spec(index, whole);
    weft_tensor *tensor = NULL;
    struct elements e;

    must(weft_tensor_create(context, spec, NULL, &tensor), "weft_tensor_create");
    draw(tensor, index);
    e = read_tensor(tensor);
    weft_tensor_release(&tensor);
    weft_spec_release(&spec);
    return e;
}

static double element(const struct elements *e, uint64_t i)
{
    uint16_t half;
    uint32_t bits;
    float single;
    double value;

    if (e->dtype == WEFT_DTYPE_F64) {
        memcpy(&value, e->memory + i * sizeof value, sizeof value);
        return value;
    }
    if (e->dtype == WEFT_DTYPE_F32) {
        memcpy(&single, e->memory + i * sizeof single, sizeof single);
        return (double)single;
    }
    memcpy(&half, e->memory + i * sizeof half, sizeof half);
    bits = (uint32_t)half << 16;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

static double added(double sum, double value, double p)
{
    if (isinf(p)) return fabs(value) > sum ? fabs(value) : sum;
    return sum + pow(fabs(value), p);
}

enum { POWERS = 4 };

static const double powers[POWERS] = {2, 1, 3, (double)INFINITY};

static void find_norms(double *norms)
{
    double sums[POWERS] = {0};

    for (int t = 0; t < MANY; t++) {
        struct elements e = read_drawn(t, true);

        for (uint64_t i = 0; i < e.count; i++)
            for (int p = 0; p < POWERS; p++)
                sums[p] = added(sums[p], element(&e, i), powers[p]);
        free(e.memory);
    }
    for (int p = 0; p < POWERS; p++)
        norms[p] = isinf(powers[p]) ? sums[p] : pow(sums[p], 1 / powers[p]);
}

static double tolerance_of(enum weft_dtype dtype)
{
    return dtype == WEFT_DTYPE_F64 ? 1e-12 : dtype == WEFT_DTYPE_F32 ? 1e-6 : 1e-2;
}

/* Tensors from FIRST on are their numbers times FACTOR, at most MOST; of the small ones, some. */
static void check_elements(int first, double factor, double most, const char *what)
{
    for (int t = first; t < MANY; t += t < LISTED ? 1 : 31) {
        struct elements got = read_tensor(tensors[t]), before = read_drawn(t, false);

        for (uint64_t i = 0; i < got.count; i++) {
            double want = fmax(-most, fmin(most, element(&before, i) * factor));
            double off = fabs(element(&got, i) - want);

            expect(off <= tolerance_of(got.dtype) * fabs(want), what, t, element(&got, i), want);
        }
        free(got.memory);
        free(before.memory);
    }
}

static void draw_all(void)
{
    for (int t = 0; t < MANY; t++)
        draw(tensors[t], t);
}

static double clip(double most, double p, enum weft_nonfinite nonfinite, weft_status want)
{
    const weft_clip_options options = {.struct_size = sizeof options,
                                       .p = p,
                                       .nonfinite = nonfinite,
                                       .nonfinite_is_error = want != WEFT_OK};
    double *total = NULL, norm = 0;
    weft_status status;

    must(weft_alloc(context, sizeof *total, WEFT_MEMORY_DEVICE, (void **)&total), "weft_alloc");
    status = weft_clip_gradient_norm(context, MANY, tensors, most, &options, total, stream, NULL);
    if (status != want) must(status, "weft_clip_gradient_norm");
    expect(status == want, "the status of weft_clip_gradient_norm", 0, status, want);
    must(weft_memory_copy(context, total, &norm, sizeof norm, stream), "weft_memory_copy");
    rank_wait();
    must(weft_free(context, total), "weft_free");
    return norm;
}

static void check_norm(double p, double want)
{
    double got;

    draw_all();
    got = clip(want / 3, p, WEFT_NONFINITE_SCALE, WEFT_OK);
    expect(fabs(got - want) <= 1e-9 * want, "the norm", 0, got, want);
    check_elements(0, want / 3 / (want + 1e-6), INFINITY, "clipped by norm");
    draw_all();
    expect(clip(want * 2, p, WEFT_NONFINITE_ZERO, WEFT_OK) == got, "the same norm", 0, 0, got);
    check_elements(0, 1, INFINITY, "not clipped");
}

/* The first tensor is not a number. */
static void check_nonfinite(void)
{
    struct elements e;

    draw_all();
    must(weft_tensor_fill(tensors[0], (double)NAN, stream), "weft_tensor_fill");
    expect(isnan(clip(1, 2, WEFT_NONFINITE_KEEP, WEFT_OK)), "the norm is NaN", 0, 0, 0);
    expect(isinf(clip(1, (double)INFINITY, WEFT_NONFINITE_KEEP, WEFT_OK)), "the norm is infinite",
           0, 0, 0);
    expect(isnan(clip(1, 2, WEFT_NONFINITE_SCALE, WEFT_ERR_INVALID)), "the norm is NaN", 0, 0, 0);
    check_elements(1, 1, INFINITY, "kept");
    expect(isnan(clip(1, 3, WEFT_NONFINITE_ZERO, WEFT_OK)), "the norm is NaN", 0, 0, 0);
    e = read_tensor(tensors[0]);
    for (uint64_t i = 0; i < e.count; i++)
        expect(element(&e, i) == 0, "set to 0", 0, element(&e, i), 0);
    free(e.memory);
    check_elements(1, 0, INFINITY, "set to 0");
}

void check_clip(void)
{
    double norms[POWERS];

    for (int t = 0; t < MANY; t++) {
        weft_spec *spec = make_spec(t, false);

        must(weft_tensor_create(context, spec, NULL, &tensors[t]), "weft_tensor_create");
        weft_spec_release(&spec);
    }
    find_norms(norms);
    for (int p = 0; p < POWERS; p++)
        check_norm(powers[p], norms[p]);
    check_nonfinite();
    draw_all();
    must(weft_clip_gradient_value(context, MANY, tensors, 0.25, stream, NULL),
         "weft_clip_gradient_value");
    check_elements(0, 1, 0.25, "clipped by value");
    for (int t = 0; t < MANY; t++)
        weft_tensor_release(&tensors[t]);
}
