/* kernel_numbers.c - cast, scale and fill of the kernel table. */

#include "cases.h"

#include "checks/bench.h"

#include <math.h>
#include <string.h>

/* Numbers that casts often get wrong: ties, limits of ranges, halves, NaN. */
static const double interesting[] = {
    0,     1,     -1,     0.5,   -0.5,  1.5,  2.5,  -2.5,  3.75, 17,   -17,  100,   -100.7,
    127.9, 128,   -128.9, 255.9, 256.5, -1e3, 448,  464.5, 1e3,  2049, 2051, 65519, 65520,
    57344, 61440, 1e6,    -1e6,  3e9,   -3e9, 1e19, -1e19, 2e30, 1e-3, 1e-9, -1e-9, 1e300};

static bool is_integer(uint32_t dtype)
{
    return !wf_dtype_is_float(dtype) && !wf_dtype_is_complex(dtype);
}

/* The limits of an integer dtype. */
static double lowest(uint32_t dtype)
{
    return wf_dtype_is_signed(dtype) ? -ldexp(1, (int)wf_dtype_bytes(dtype) * 8 - 1) : 0;
}

static double past_highest(uint32_t dtype)
{
    return ldexp(1, (int)wf_dtype_bytes(dtype) * 8 - wf_dtype_is_signed(dtype));
}

static uint64_t to_integer(uint32_t dtype, double value)
{
    if (isnan(value)) return 0;
    if (dtype == WEFT_DTYPE_BOOL) return value != 0;
    value = trunc(value);
    if (value >= past_highest(dtype))
        return dtype == WEFT_DTYPE_U64 ? UINT64_MAX : (uint64_t)(past_highest(dtype) / 2) * 2 - 1;
    if (value < lowest(dtype)) value = lowest(dtype);
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

/* The value of NUMBER, of dtype FROM, in dtype TO, before rounding. */
static struct wf_number converted(uint32_t from, uint32_t to, struct wf_number number)
{
    double value = number.re;

    if (wf_dtype_is_complex(from)) return number;
    if (is_integer(from)) {
        value = wf_dtype_is_signed(from) ? (double)(int64_t)number.integer : (double)number.integer;
        if (is_integer(to) && to != WEFT_DTYPE_BOOL)
            return number; /* the sources are within the range */
    }
    if (is_integer(to)) return (struct wf_number){.integer = to_integer(to, value)};
    return (struct wf_number){.re = value};
}

/* The value of element I of the source of a cast.  Integers stay within the range of every dtype.
 */
static struct wf_number cast_input(uint32_t from, uint32_t to, uint64_t i)
{
    double value = interesting[i % WF_COUNT(interesting)];
    bool keep_positive = !wf_dtype_is_signed(from) || (is_integer(to) && !wf_dtype_is_signed(to));

    if (from == WEFT_DTYPE_BOOL) return (struct wf_number){.integer = i % 2};
    if (!is_integer(from)) return (struct wf_number){.re = value, .im = -value / 2};
    value = (double)(i * 5 % 101);
    if (!keep_positive && i % 2 == 1) value = -value;
    return (struct wf_number){.integer = (uint64_t)(int64_t)value};
}

static void element(const struct kit_bench *b, uint32_t source, uint64_t i, void *out)
{
    (void)source;
    wf_number_store(b->from, cast_input(b->from, b->to, i), out);
}

static double want(const struct kit_bench *b, uint32_t source, uint64_t i, void *out)
{
    uint8_t bytes[16];

    element(b, source, i, bytes);
    wf_number_store(b->to, converted(b->from, b->to, wf_number_load(b->from, bytes)), out);
    return 0;
}

static void cast(struct kit *kit, uint32_t from, uint32_t to)
{
    struct kit_bench b = {.kit = kit,
                          .from = from,
                          .to = to,
                          .size = 1,
                          .by_value = true,
                          .element = element,
                          .want = want};

    kit_bench_cast(&b, "cast", 2 * WF_COUNT(interesting));
}

static void scale(struct kit *kit, uint32_t dtype)
{
    uint64_t count = 333, bytes = wf_dtype_bytes(dtype);
    struct kit_image data = {0};
    uint8_t factor[16];

    if (!kit_begin(kit, "scale/%s", wf_dtype_name(dtype))) return;
    kit_pattern_scale(dtype, 0, factor);
    if (kit_image_make(kit, &data, count * bytes, 0, KIT_DEVICE)) {
        for (uint64_t i = 0; i < count; i++)
            kit_pattern_element(KIT_EXACT, kit_case_seed(kit), dtype, WEFT_REDUCE_SUM, 1, 0, i,
                                data.before + data.start + i * bytes);
        if (kit_image_upload(kit, &data)) {
            for (uint64_t i = 0; i < count; i++) {
                uint8_t *at = data.want + data.start + i * bytes;
                struct wf_number one = wf_number_load(dtype, at);
                wf_number_store(
                    dtype,
                    wf_number_combine(dtype, WEFT_REDUCE_PROD, one, wf_number_load(dtype, factor)),
                    at);
            }
            if (kit_done_if_supported(kit, "scale",
                                      kit->plugin->kernel->scale(kit->device, dtype, count, factor,
                                                                 kit_image_at(&data, 0), NULL)))
                kit_image_check(kit, &data, "data",
                                &(struct kit_compare){.dtype = dtype, .by_value = true});
        }
    }
    kit_image_free(kit, &data);
    kit_end(kit);
}

static void fill(struct kit *kit, uint32_t dtype, uint64_t count)
{
    uint64_t bytes = wf_dtype_bytes(dtype);
    struct kit_image target = {0};
    uint8_t value[16];

    if (!kit_begin(kit, "fill/%s/count=%llu", wf_dtype_name(dtype), (unsigned long long)count))
        return;
    kit_pattern_bits(kit_case_seed(kit), dtype, 0, 0, value);
    if (kit_image_make(kit, &target, count * bytes, 0, KIT_DEVICE) &&
        kit_image_upload(kit, &target)) {
        for (uint64_t i = 0; i < count; i++)
            memcpy(target.want + target.start + i * bytes, value, bytes);
        if (kit_done(kit, "fill",
                     kit->plugin->kernel->fill(kit->device, dtype, count, value,
                                               count > 0 ? kit_image_at(&target, 0) : NULL, NULL)))
            kit_image_check(kit, &target, "target", &(struct kit_compare){.dtype = dtype});
    }
    kit_image_free(kit, &target);
    kit_end(kit);
}

void kit_kernel_numbers(struct kit *kit)
{
    for (uint32_t from = 0; from < WEFT_DTYPE_COUNT; from++)
        for (uint32_t to = 0; to < WEFT_DTYPE_COUNT; to++)
            if (wf_dtype_is_complex(from) == wf_dtype_is_complex(to)) cast(kit, from, to);
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        if (dtype != WEFT_DTYPE_BOOL) scale(kit, dtype);
        fill(kit, dtype, 0);
        fill(kit, dtype, 1);
        fill(kit, dtype, 517);
    }
}
