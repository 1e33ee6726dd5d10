/* draw.c - random elements of a tensor.
 *
 * The device draws if its backend has a kernel (drawer.c).  Else the host draws.  If it cannot
 * write the device's memory, it draws into a block of its own, which is copied. */
#include "tensor.h"

#include "kit/arithmetic/cpu_random.h"
#include "base/number.h"
#include "exec/host/host.h"

#include <float.h>
#include <math.h>

enum { BLOCK = 65536 }; /* bytes */

/* ---- what may be drawn ---- */

/* The dtype of a number, or of a part of a complex number. */
static uint32_t part_of(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64    ? WEFT_DTYPE_F32
           : dtype == WEFT_DTYPE_C128 ? WEFT_DTYPE_F64
                                      : dtype;
}

/* The largest finite number of DTYPE, a float. */
static double largest_of(uint32_t dtype)
{
    switch (part_of(dtype)) {
    case WEFT_DTYPE_F8E4M3:
        return 448;
    case WEFT_DTYPE_F8E5M2:
        return 57344;
    case WEFT_DTYPE_F16:
        return 65504;
    case WEFT_DTYPE_BF16:
        return 0x1.fep127;
    case WEFT_DTYPE_F32:
        return FLT_MAX;
    default:
        return DBL_MAX;
    }
}

static weft_status check_number(const char *name, double value)
{
    if (isfinite(value)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s is %g; expected a finite number", name, value);
}

/* VALUE is finite, and the dtype of DRAW reaches it. */
static weft_status check_reach(const struct cpu_draw *draw, const char *name, double value)
{
    double largest = largest_of(draw->dtype);
    struct wf_exact given, end;

    WF_TRY(check_number(name, value));
    if (fabs(value) <= largest) return WEFT_OK;
    given = wf_exact(value);
    end = wf_exact(largest);
    return wf_fail(WEFT_ERR_INVALID, "%s is %s, but %s holds -%s to %s", name, given.text,
                   kit_dtype_name(draw->dtype), end.text, end.text);
}

/* The distance of two values of a uniform draw is a normal number of the dtype that computes it. */
static weft_status check_unit(const struct cpu_draw *draw, const struct cpu_sampler *sampler)
{
    bool wide = part_of(draw->dtype) == WEFT_DTYPE_F64;
    double unit = wide ? sampler->unit : (double)sampler->range.unit;

    if (!isfinite(unit))
        return wf_fail(WEFT_ERR_INVALID, "the distance from %s to %s is beyond the range of %s",
                       wf_exact(draw->low).text, wf_exact(draw->high).text,
                       kit_dtype_name(draw->dtype));
    if (unit >= (wide ? DBL_MIN : (double)FLT_MIN)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "the distance from %s to %s is too small: its steps are below the smallest "
                   "normal number of %s, in which %s is drawn",
                   wf_exact(draw->low).text, wf_exact(draw->high).text, wide ? "f64" : "f32",
                   kit_dtype_name(draw->dtype));
}

static weft_status check_limits(const struct cpu_draw *draw)
{
    bool open = draw->distribution == CPU_UNIFORM;
    struct cpu_sampler sampler;

    WF_TRY(check_number("low", draw->low));
    WF_TRY(check_number("high", draw->high));
    if (draw->low > draw->high || (open && draw->low >= draw->high))
        return wf_fail(WEFT_ERR_INVALID, "low is %s and high is %s; expected low %s high",
                       wf_exact(draw->low).text, wf_exact(draw->high).text, open ? "<" : "<=");
    if (open) WF_TRY(check_reach(draw, "low", draw->low));
    if (open) WF_TRY(check_reach(draw, "high", draw->high));
    cpu_sampler_set(&sampler, &cpu_kernels_base, draw);
    if (sampler.first > sampler.last)
        return wf_fail(WEFT_ERR_INVALID, "%s has no number from %s to %s",
                       kit_dtype_name(draw->dtype), wf_exact(draw->low).text,
                       wf_exact(draw->high).text);
    return open ? check_unit(draw, &sampler) : WEFT_OK;
}

static weft_status check_normal(const struct cpu_draw *draw)
{
    bool truncated = draw->distribution == CPU_TRUNCATED_NORMAL;

    WF_TRY(check_number("mean", draw->mean));
    WF_TRY(check_number("deviation", draw->deviation));
    if (draw->deviation < 0 || (truncated && draw->deviation == 0))
        return wf_fail(WEFT_ERR_INVALID, "deviation is %s; expected a %s number",
                       wf_exact(draw->deviation).text, truncated ? "positive" : "non-negative");
    if (truncated) return check_limits(draw);
    WF_TRY(check_reach(draw, "mean", draw->mean));
    return check_reach(draw, "deviation", draw->deviation);
}

static weft_status check_probability(const struct cpu_draw *draw)
{
    double probability = draw->probability;

    if (!(probability >= 0 && probability <= 1))
        return wf_fail(WEFT_ERR_INVALID, "probability is %s; expected 0 to 1",
                       wf_exact(probability).text);
    if (draw->distribution != CPU_DROPOUT || probability == 1) return WEFT_OK;
    return check_reach(draw, "1 / (1 - probability)", 1 / (1 - probability));
}

static weft_status check_dtype(const struct cpu_draw *draw)
{
    bool real = wf_dtype_is_float(draw->dtype), complex = wf_dtype_is_complex(draw->dtype);
    const char *kinds = "floats and complex numbers";
    bool defined = real || complex;

    if (draw->distribution == CPU_BERNOULLI) return WEFT_OK;
    if (draw->distribution == CPU_INTEGERS) {
        kinds = "integers and bool";
        defined = !real && !complex;
    } else if (draw->distribution == CPU_TRUNCATED_NORMAL) {
        kinds = "floats";
        defined = real;
    }
    if (defined) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED, "the distribution is not defined on %s, but on %s",
                   kit_dtype_name(draw->dtype), kinds);
}

static weft_status check_draw(const struct cpu_draw *draw)
{
    WF_TRY(check_dtype(draw));
    switch (draw->distribution) {
    case CPU_UNIFORM:
        return check_limits(draw);
    case CPU_NORMAL:
    case CPU_TRUNCATED_NORMAL:
        return check_normal(draw);
    case CPU_BERNOULLI:
    case CPU_DROPOUT:
        return check_probability(draw);
    default:
        return WEFT_OK;
    }
}

/* ---- drawing ---- */

/* The host writes the memory itself. */
static void draw_in_place(const weft_tensor *tensor, const struct wf_local *local,
                          const struct cpu_sampler *sampler)
{
    const int64_t *strides = local->is_dense ? NULL : local->strides;
    weft_segment part;

    for (int64_t at = 0; weft_spec_segment(tensor->spec, local->rank, strides, at, &part);
         at += part.length)
        cpu_sample(sampler, (uint64_t)part.global, (size_t)part.length,
                   (char *)local->memory + part.local * (int64_t)sampler->element);
}

/* Copy the DONE bytes of BLOCK to TARGET, and wait: the block is used again. */
static weft_status copy_block(const weft_tensor *tensor, const char *block, uint64_t done,
                              char *target, weft_stream *stream)
{
    weft_context *context = tensor->context;
    weft_status status =
        context->plugin->device->copy(context->device, target, block, done, stream);
    weft_status waited = wf_host_wait(context, stream); /* the stream reads BLOCK */

    return status != WEFT_OK ? status : waited;
}

/* Draw into BLOCK, and copy each block that is full or whose memory ends. */
static weft_status draw_staged(const weft_tensor *tensor, const struct wf_local *local,
                               const struct cpu_sampler *sampler, char *block, weft_stream *stream)
{
    int64_t element = (int64_t)sampler->element, most = BLOCK / element, begin = 0, held = 0;
    const int64_t *strides = local->is_dense ? NULL : local->strides;
    char *memory = local->memory;
    weft_segment part;

    for (int64_t at = 0; weft_spec_segment(tensor->spec, local->rank, strides, at, &part);
         at += part.length) {
        if (part.length > most) part.length = most;
        if (held > 0 && (part.local != begin + held || held + part.length > most)) {
            WF_TRY(copy_block(tensor, block, (uint64_t)(held * element), memory + begin * element,
                              stream));
            held = 0;
        }
        if (held == 0) begin = part.local;
        cpu_sample(sampler, (uint64_t)part.global, (size_t)part.length, block + held * element);
        held += part.length;
    }
    if (held == 0) return WEFT_OK;
    return copy_block(tensor, block, (uint64_t)(held * element), memory + begin * element, stream);
}

static weft_status draw_on_host(const weft_tensor *tensor, const struct cpu_sampler *sampler,
                                weft_stream *stream)
{
    weft_status status;
    char *block;

    WF_TRY(wf_host_wait(tensor->context, stream));
    if ((tensor->context->features & WEFT_FEATURE_HOST_MEMORY) != 0) {
        for (int32_t i = 0; i < tensor->local_count; i++)
            draw_in_place(tensor, &tensor->locals[i], sampler);
        return WEFT_OK;
    }
    block = wf_alloc(BLOCK);
    if (block == NULL) return wf_fail_memory(BLOCK);
    status = draw_staged(tensor, &tensor->own, sampler, block, stream);
    wf_free(block);
    return status;
}

static weft_status draw_elements(const weft_tensor *tensor, const struct cpu_draw *draw,
                                 weft_stream *stream, const char *function)
{
    weft_status status = WEFT_OK;
    struct cpu_sampler sampler;

    cpu_sampler_set(&sampler, &cpu_kernels_base, draw);
    for (int32_t i = 0; i < tensor->local_count && status == WEFT_OK; i++)
        status = wf_local_draw(tensor, &tensor->locals[i], &sampler, stream, function);
    return status != WEFT_ERR_UNSUPPORTED ? status : draw_on_host(tensor, &sampler, stream);
}

static weft_status check_tensor(const weft_tensor *tensor)
{
    const struct wf_layout *layout = &tensor->spec->layout;

    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if (layout->placements[a].kind == WEFT_PLACE_PARTIAL)
            return wf_fail(WEFT_ERR_INVALID,
                           "the tensor is partial along axis %d; draw it in another layout", a);
    return WEFT_OK;
}

static weft_status draw_tensor(weft_tensor *tensor, weft_random *random, struct cpu_draw draw,
                               weft_stream *stream, const char *function)
{
    weft_status status;

    WF_TRY(wf_tensor_check(tensor, function, "tensor"));
    if (random == NULL) return wf_fail_null(function, "random");
    WF_TRY(wf_tensor_check_writable(tensor, function));
    WF_TRY(wf_stream_check(tensor->context, stream, function));
    draw.dtype = tensor->spec->layout.dtype;
    draw.bits = (struct cpu_bits){random->seed, random->offset};
    wf_tensor_use(tensor, stream);
    status = check_tensor(tensor);
    if (status == WEFT_OK) status = check_draw(&draw);
    if (status == WEFT_OK) status = draw_elements(tensor, &draw, stream, function);
    if (status != WEFT_OK) return wf_tensor_fail(tensor, status, function);
    random->offset++;
    return WEFT_OK;
}

weft_status weft_tensor_uniform(weft_tensor *tensor, weft_random *random, double low, double high,
                                weft_stream *stream)
{
    struct cpu_draw draw = {.distribution = CPU_UNIFORM, .low = low, .high = high};

    return draw_tensor(tensor, random, draw, stream, "weft_tensor_uniform");
}

weft_status weft_tensor_normal(weft_tensor *tensor, weft_random *random, double mean,
                               double deviation, weft_stream *stream)
{
    struct cpu_draw draw = {.distribution = CPU_NORMAL, .mean = mean, .deviation = deviation};

    return draw_tensor(tensor, random, draw, stream, "weft_tensor_normal");
}

weft_status weft_tensor_truncated_normal(weft_tensor *tensor, weft_random *random, double mean,
                                         double deviation, double low, double high,
                                         weft_stream *stream)
{
    struct cpu_draw draw = {.distribution = CPU_TRUNCATED_NORMAL,
                            .mean = mean,
                            .deviation = deviation,
                            .low = low,
                            .high = high};

    return draw_tensor(tensor, random, draw, stream, "weft_tensor_truncated_normal");
}

weft_status weft_tensor_bernoulli(weft_tensor *tensor, weft_random *random, double probability,
                                  weft_stream *stream)
{
    struct cpu_draw draw = {.distribution = CPU_BERNOULLI, .probability = probability};

    return draw_tensor(tensor, random, draw, stream, "weft_tensor_bernoulli");
}

weft_status weft_tensor_dropout(weft_tensor *tensor, weft_random *random, double probability,
                                weft_stream *stream)
{
    struct cpu_draw draw = {.distribution = CPU_DROPOUT, .probability = probability};

    return draw_tensor(tensor, random, draw, stream, "weft_tensor_dropout");
}

/* LOW and HIGH - 1 are numbers of DTYPE. */
static weft_status check_integers(uint32_t dtype, int64_t low, int64_t high)
{
    uint32_t bits = 8 * (uint32_t)wf_dtype_bytes(dtype);
    bool has_sign = wf_dtype_is_signed(dtype);
    int64_t most = dtype == WEFT_DTYPE_BOOL ? 1
                   : bits == 64             ? INT64_MAX
                                            : (INT64_C(1) << (bits - has_sign)) - 1;
    int64_t least = !has_sign ? 0 : bits == 64 ? INT64_MIN : -most - 1;

    if (low >= high)
        return wf_fail(WEFT_ERR_INVALID, "low is %lld and high is %lld; expected low < high",
                       (long long)low, (long long)high);
    if (low < least || high - 1 > most)
        return wf_fail(WEFT_ERR_INVALID, "low is %lld and high is %lld, but %s holds %lld to %lld",
                       (long long)low, (long long)high, kit_dtype_name(dtype), (long long)least,
                       (long long)most);
    return WEFT_OK;
}

weft_status weft_tensor_integers(weft_tensor *tensor, weft_random *random, int64_t low,
                                 int64_t high, weft_stream *stream)
{
    struct cpu_draw draw = {
        .distribution = CPU_INTEGERS, .first = low, .range = (uint64_t)high - (uint64_t)low};
    weft_status status;

    WF_TRY(wf_tensor_check(tensor, "weft_tensor_integers", "tensor"));
    draw.dtype = tensor->spec->layout.dtype;
    status = check_dtype(&draw);
    if (status == WEFT_OK) status = check_integers(draw.dtype, low, high);
    if (status != WEFT_OK) return wf_tensor_fail(tensor, status, "weft_tensor_integers");
    return draw_tensor(tensor, random, draw, stream, "weft_tensor_integers");
}
