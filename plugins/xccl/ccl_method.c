/* ccl_method.c - the method of each collective for each dtype and reduction, chosen from the
 * capabilities of the library and the devices.  The choice is equal on all ranks, because these
 * agree on the capabilities first.
 *
 * The library moves bytes of any dtype.  It has no 16-bit integers, bit operations or complex
 * numbers, and its minimum and maximum lose NaN. */
#include "ccl.h"

#include <string.h>

static struct ccl_method move(uint32_t collective, uint32_t dtype)
{
    struct ccl_method way = {
        .kind = CCL_METHOD_NATIVE, .dtype = CCL_U8, .factor = (uint32_t)kit_dtype_bytes(dtype)};

    switch (collective) {
    case WEFT_COLL_ALL_GATHER_V:
        way.kind = CCL_METHOD_PIECES;
        break;
    case WEFT_COLL_ALL_TO_ALL:
    case WEFT_COLL_GATHER:
    case WEFT_COLL_SCATTER:
    case WEFT_COLL_ALL_TO_ALL_V:
    case WEFT_COLL_GATHER_V:
    case WEFT_COLL_SCATTER_V:
        way.kind = CCL_METHOD_MESSAGES;
        break;
    default:
        break;
    }
    return way;
}

/* The library's dtype for DTYPE; -1 if the library cannot reduce it. */
static int computes_with(const struct ccl_means *means, uint32_t dtype)
{
    static const int8_t table[WEFT_DTYPE_COUNT] = {[WEFT_DTYPE_BOOL] = CCL_U8,
                                                   [WEFT_DTYPE_I8] = CCL_I8,
                                                   [WEFT_DTYPE_U8] = CCL_U8,
                                                   [WEFT_DTYPE_I16] = -1,
                                                   [WEFT_DTYPE_U16] = -1,
                                                   [WEFT_DTYPE_I32] = CCL_I32,
                                                   [WEFT_DTYPE_U32] = CCL_U32,
                                                   [WEFT_DTYPE_I64] = CCL_I64,
                                                   [WEFT_DTYPE_U64] = CCL_U64,
                                                   [WEFT_DTYPE_F16] = CCL_F16,
                                                   [WEFT_DTYPE_BF16] = CCL_BF16,
                                                   [WEFT_DTYPE_F32] = CCL_F32,
                                                   [WEFT_DTYPE_F64] = CCL_F64,
                                                   [WEFT_DTYPE_F8E4M3] = CCL_F8E4M3,
                                                   [WEFT_DTYPE_F8E5M2] = CCL_F8E5M2,
                                                   [WEFT_DTYPE_C64] = CCL_F32,
                                                   [WEFT_DTYPE_C128] = CCL_F64};
    bool is_f8 = dtype == WEFT_DTYPE_F8E4M3 || dtype == WEFT_DTYPE_F8E5M2;

    if (is_f8 && (means->version < VENDOR_F8_MIN || means->capability < VENDOR_F8_CAPABILITY))
        return -1;
    return table[dtype];
}

/* The library's op with the same meaning, or -1. */
static int op_on_bool(uint32_t reduction)
{
    switch (reduction) {
    case WEFT_REDUCE_SUM:
    case WEFT_REDUCE_MAX:
    case WEFT_REDUCE_BOR:
        return CCL_MAX;
    case WEFT_REDUCE_PROD:
    case WEFT_REDUCE_MIN:
    case WEFT_REDUCE_BAND:
        return CCL_MIN;
    default:
        return -1;
    }
}

static int op_on(const struct ccl_means *means, uint32_t dtype, uint32_t reduction)
{
    bool is_complex = dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
    bool is_float = dtype >= WEFT_DTYPE_F16 && !is_complex;
    bool is_f8 = dtype == WEFT_DTYPE_F8E4M3 || dtype == WEFT_DTYPE_F8E5M2;

    if (dtype == WEFT_DTYPE_BOOL) return op_on_bool(reduction);
    switch (reduction) {
    case WEFT_REDUCE_SUM:
        return CCL_SUM;
    case WEFT_REDUCE_PROD:
        return is_complex ? -1 : CCL_PROD;
    case WEFT_REDUCE_MIN:
        return is_float ? -1 : CCL_MIN;
    case WEFT_REDUCE_MAX:
        return is_float ? -1 : CCL_MAX;
    case WEFT_REDUCE_AVG: /* the library multiplies by 1/n rounded to the dtype, which is too
                             coarse in f8; integers overflow before the division */
        return is_f8 || dtype < WEFT_DTYPE_F16 ? -1 : CCL_AVG;
    case WEFT_REDUCE_PREMUL_SUM: /* the library refuses it in f8 on a single rank */
        return is_complex || (is_f8 && means->size == 1) ? -1 : CCL_SUM;
    default:
        return -1;
    }
}

static struct ccl_method reduce(const struct ccl_means *means, uint32_t collective, uint32_t dtype,
                                uint32_t reduction)
{
    bool is_complex = dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
    bool is_ordering = reduction == WEFT_REDUCE_MIN || reduction == WEFT_REDUCE_MAX;
    int computing = computes_with(means, dtype), op = op_on(means, dtype, reduction);
    struct ccl_method way = {.kind = CCL_METHOD_NONE};

    if (!kit_reduction_defined(reduction, dtype)) return way;
    if (computing >= 0 && op >= 0) {
        way = (struct ccl_method){.kind = collective == WEFT_COLL_REDUCE_SCATTER_V
                                              ? CCL_METHOD_PIECES
                                              : CCL_METHOD_NATIVE,
                                  .dtype = computing,
                                  .op = op,
                                  .factor = is_complex ? 2 : 1,
                                  .premultiplied = reduction == WEFT_REDUCE_PREMUL_SUM};
    } else if (means->kernels && is_ordering &&
               (dtype == WEFT_DTYPE_F32 || dtype == WEFT_DTYPE_F64)) {
        way = (struct ccl_method){.kind = CCL_METHOD_KEYS,
                                  .dtype = dtype == WEFT_DTYPE_F32 ? CCL_U32 : CCL_U64,
                                  .op = reduction == WEFT_REDUCE_MIN ? CCL_MIN : CCL_MAX,
                                  .factor = 1};
    } else if (means->kernels) {
        way = (struct ccl_method){.kind = CCL_METHOD_EXCHANGE,
                                  .dtype = CCL_U8,
                                  .factor = (uint32_t)kit_dtype_bytes(dtype)};
    }
    return way;
}

struct ccl_method ccl_method_find(const struct ccl_means *means, uint32_t collective,
                                  uint32_t dtype, uint32_t reduction)
{
    struct ccl_method none = {.kind = CCL_METHOD_NONE};

    if (collective == WEFT_COLL_BARRIER)
        return (struct ccl_method){CCL_METHOD_NATIVE, CCL_U8, CCL_MAX, 1, false};
    if (collective >= WEFT_COLL_COUNT || dtype >= WEFT_DTYPE_COUNT) return none;
    if (!kit_collective_reduces(collective)) return move(collective, dtype);
    if (reduction >= WEFT_REDUCE_COUNT) return none;
    return reduce(means, collective, dtype, reduction);
}

/* True if the divisor is not the number of ranks.  The library averages over its ranks; for another
 * divisor each rank's data is multiplied first. */
static bool divides_otherwise(const struct gpu_comm *comm, const struct gpu_op *op)
{
    return op->reduction == WEFT_REDUCE_AVG && op->divisor != (uint32_t)comm->size;
}

struct ccl_method ccl_method_of(const struct gpu_comm *comm, const struct gpu_op *op)
{
    struct ccl_method way = {
        .kind = CCL_METHOD_NATIVE, .dtype = CCL_U8, .factor = (uint32_t)op->bytes};

    if (op->kind >= GPU_OP_SEND) return way;
    way = ccl_method_find(&comm->means, op->kind, op->dtype, op->reduction);
    if (kit_collective_reduces(op->kind) && divides_otherwise(comm, op) &&
        (way.kind == CCL_METHOD_NATIVE || way.kind == CCL_METHOD_PIECES))
        way.premultiplied = true;
    return way;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* VALUE, between 0 and 1, rounded to nearest even. */
static uint16_t f16_of(float value)
{
    uint32_t bits = bits_of(value);

    /* The last bit of a subnormal f16 has the value of the last bit of 0.5f. */
    if (value < 0x1p-14f) return (uint16_t)(bits_of(value + 0.5f) - bits_of(0.5f));
    return (uint16_t)((bits - (112u << 23) + 0xfff + (bits >> 13 & 1)) >> 13);
}

static uint16_t bf16_of(float value)
{
    uint32_t bits = bits_of(value);

    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void ccl_set_reciprocal(const struct ccl_method *way, struct gpu_op *op)
{
    double exact = 1.0 / (double)op->divisor;
    float single = (float)exact;
    uint16_t small = way->dtype == CCL_F16 ? f16_of(single) : bf16_of(single);

    if (way->dtype == CCL_F64)
        memcpy(op->scale, &exact, sizeof exact);
    else if (way->dtype == CCL_F32)
        memcpy(op->scale, &single, sizeof single);
    else
        memcpy(op->scale, &small, sizeof small);
}

weft_status gpu_op_supported(const struct gpu_comm *comm, const struct gpu_op *op)
{
    if (ccl_method_of(comm, op).kind != CCL_METHOD_NONE) return WEFT_OK;
    return plug_fail(WEFT_ERR_UNSUPPORTED, "%s does not support %s on %s%s", gpu_op_name(op->kind),
                     kit_reduction_name(op->reduction), kit_dtype_name(op->dtype),
                     comm->means.kernels ? "" : ", because the device has no kernels");
}

/* Collectives for which newer libraries have a call. */
static bool has_own_call(uint32_t collective, bool at_best)
{
    return collective == WEFT_COLL_ALL_TO_ALL && (at_best || ccl_api.ncclAlltoAll != NULL);
}

weft_status gpu_comm_support(void *opened, const weft_support_query *given, uint32_t *level)
{
    const struct gpu_device *device = opened;
    struct ccl_means best = {.version = 99999, .capability = 999, .kernels = true};
    weft_support_query query;
    struct ccl_method way;

    plug_take_struct(&query, given, sizeof query);
    if (device != NULL)
        best = (struct ccl_means){ccl_version, device->capability, query.size,
                                  device->kernels != NULL};
    else if (gpu_vendor_image(0) == NULL && plug_knob(VENDOR_KERNELS_KNOB) == NULL)
        best.kernels = false;
    way = ccl_method_find(&best, query.collective, query.dtype, query.reduction);
    if (way.kind == CCL_METHOD_NONE)
        *level = WEFT_SUPPORT_NO;
    else if (way.kind == CCL_METHOD_NATIVE || has_own_call(query.collective, device == NULL))
        *level = WEFT_SUPPORT_NATIVE;
    else
        *level = WEFT_SUPPORT_EMULATED;
    return WEFT_OK;
}
