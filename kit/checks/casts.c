/* casts.c - what an element becomes in another dtype, to the last bit. */
#include "casts.h"

#include <math.h>
#include <string.h>

/* Bits of the mantissa; 0: not a float. */
static int mantissa_of(uint32_t dtype)
{
    static const int bits[WEFT_DTYPE_COUNT] = {
        [WEFT_DTYPE_F16] = 10, [WEFT_DTYPE_BF16] = 7,   [WEFT_DTYPE_F32] = 23,
        [WEFT_DTYPE_F64] = 52, [WEFT_DTYPE_F8E4M3] = 3, [WEFT_DTYPE_F8E5M2] = 2};

    return bits[dtype];
}

bool kit_cast_is_offered(uint32_t from, uint32_t to)
{
    bool integers = from >= WEFT_DTYPE_I8 && from <= WEFT_DTYPE_U64 && to >= WEFT_DTYPE_I8 &&
                    to <= WEFT_DTYPE_U64;

    if (from == to) return false;
    if (mantissa_of(from) > 0 && mantissa_of(to) > 0) return true;
    return integers && wf_dtype_bytes(from) < wf_dtype_bytes(to) &&
           (wf_dtype_is_signed(to) || !wf_dtype_is_signed(from));
}

static uint64_t load_bits(uint32_t dtype, const void *element)
{
    uint64_t bits = 0;

    memcpy(&bits, element, wf_dtype_bytes(dtype)); /* little-endian, as all hosts of weft */
    return bits;
}

/* A NaN keeps its sign and the leading bits of its payload, and becomes quiet. */
static uint64_t want_nan(uint32_t from, uint32_t to, uint64_t bits)
{
    int in = mantissa_of(from), out = mantissa_of(to), width = 8 * (int)wf_dtype_bytes(to);
    uint64_t sign = bits >> (8 * wf_dtype_bytes(from) - 1);
    uint64_t infinity = ((UINT64_C(1) << (width - 1 - out)) - 1) << out;
    uint64_t payload = bits << (64 - in) >> (64 - out);
    uint64_t code = infinity | UINT64_C(1) << (out - 1) | payload;

    if (to == WEFT_DTYPE_F8E4M3) code = 0x7f;
    if (to == WEFT_DTYPE_F8E5M2) code = 0x7e;
    return code | sign << (width - 1);
}

void kit_cast_want(uint32_t from, uint32_t to, const void *element, void *out)
{
    struct wf_number number = wf_number_load(from, element);
    uint64_t bits;

    if (mantissa_of(from) == 0 || !isnan(number.re)) {
        wf_number_store(to, number, out);
        return;
    }
    bits = want_nan(from, to, load_bits(from, element));
    memcpy(out, &bits, wf_dtype_bytes(to));
}
