/* Bits that partials keep: the contribution of a single rank passes through a sum, a minimum or a
 * maximum unchanged, including -0.0 and infinities.  An average is finite if the mean is. */
#include "base/number.h"
#include "system/redistribute/pairs.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <math.h>

enum { RANKS = 4, COUNT = 8 };

/* To the target layout and back. */
static const struct {
    const char *mesh, *from, *partial;
    uint32_t reduction;
} trips[] = {
    {"4", "R", "P(sum)", WEFT_REDUCE_SUM},
    {"4", "S(0)", "P(sum)", WEFT_REDUCE_SUM},
    {"2x2", "R,S(0)", "P,P", WEFT_REDUCE_SUM},
    {"2x2", "S(0),R", "S(0),P", WEFT_REDUCE_SUM},
    {"4", "R", "P(min)", WEFT_REDUCE_MIN},
    {"4", "S(0)", "P(max)", WEFT_REDUCE_MAX},
    {"2x2", "R,R", "P(max),P(max)", WEFT_REDUCE_MAX},
    {"4", "R", "P(avg)", WEFT_REDUCE_AVG},
    {"2x2", "R,S(0)", "P(avg),P(sum)", WEFT_REDUCE_AVG},
};

static double largest(uint32_t dtype)
{
    static const double known[WEFT_DTYPE_COUNT] = {
        [WEFT_DTYPE_F16] = 65504,          [WEFT_DTYPE_BF16] = 0x1.fep127,
        [WEFT_DTYPE_F32] = 0x1.fffffep127, [WEFT_DTYPE_F64] = 0x1.fffffffffffffp1023,
        [WEFT_DTYPE_F8E4M3] = 448,         [WEFT_DTYPE_F8E5M2] = 57344,
        [WEFT_DTYPE_C64] = 0x1.fffffep127, [WEFT_DTYPE_C128] = 0x1.fffffffffffffp1023};

    return known[dtype];
}

static void make_values(uint32_t dtype, char *out)
{
    double infinity = dtype == WEFT_DTYPE_F8E4M3 ? 1 : (double)INFINITY;
    double most = largest(dtype);
    double values[COUNT] = {-0.0, 0.0, -1, most, -most, infinity, -infinity, -0.0};

    for (int i = 0; i < COUNT; i++)
        wf_number_store_reduced(dtype, WEFT_REDUCE_MAX,
                                &(struct wf_number){.re = values[i], .im = values[COUNT - 1 - i]},
                                1, 1, out + (size_t)i * wf_dtype_bytes(dtype));
}

static weft_status go(weft_context *context, const weft_spec *from, const weft_spec *to,
                      bool packed, const void *source, void *target)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed};
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;

    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
    WF_TRY(weft_redistribute(bound, source, target, NULL, NULL));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    weft_bound_release(&bound);
    return WEFT_OK;
}

static weft_spec *spec_on(const weft_mesh *mesh, uint32_t dtype, const char *placements)
{
    char text[64];
    weft_spec *spec = NULL;

    snprintf(text, sizeof text, "%s[%d] %s", wf_dtype_name(dtype), COUNT, placements);
    return weft_spec_parse(mesh, text, &spec) == WEFT_OK ? spec : NULL;
}

/* One round trip of DTYPE on this rank. */
static weft_status travel(weft_context *context, size_t trip, uint32_t dtype, bool packed)
{
    size_t bytes = wf_dtype_bytes(dtype);
    _Alignas(16) char whole[COUNT * 16], mine[COUNT * 16], partial[COUNT * 16], back[COUNT * 16];
    OWNED(weft_mesh) *mesh = NULL;
    OWNED(weft_spec) *from = NULL, *made = NULL, *all = NULL;
    weft_segment segment;
    weft_status status;

    WF_TRY(weft_mesh_parse(trips[trip].mesh, &mesh));
    from = spec_on(mesh, dtype, trips[trip].from);
    made = spec_on(mesh, dtype, trips[trip].partial);
    all = spec_on(mesh, dtype, mesh->axes == 1 ? "R" : "R,R");
    if (from == NULL || made == NULL || all == NULL) return WEFT_ERR_INTERNAL;
    make_values(dtype, whole);
    for (int64_t at = 0; weft_spec_segment(from, weft_rank(context), NULL, at, &segment);
         at += segment.length)
        memcpy(mine + (size_t)segment.local * bytes, whole + (size_t)segment.global * bytes,
               (size_t)segment.length * bytes);
    status = go(context, from, made, packed, mine, partial);
    if (status == WEFT_OK) status = go(context, made, all, packed, partial, back);
    if (status == WEFT_OK && memcmp(back, whole, COUNT * bytes) != 0)
        status = wf_fail(WEFT_ERR_MISMATCH, "%s: %s -> %s -> R changes bits", wf_dtype_name(dtype),
                         trips[trip].from, trips[trip].partial);
    return status;
}

TEST_ON_RANKS(RANKS, partials_give_back_the_bits_that_they_were_made_of)
{
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(NULL, &context));
    for (uint32_t dtype = WEFT_DTYPE_F16; dtype < WEFT_DTYPE_COUNT; dtype++)
        for (size_t trip = 0; trip < WF_COUNT(trips); trip++)
            for (int packed = 0; packed < 2; packed++)
                if (wf_reduction_defined(trips[trip].reduction, dtype))
                    WF_TRY(travel(context, trip, dtype, packed));
    return WEFT_OK;
}
