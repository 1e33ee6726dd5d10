/* kernels_draws.cc - the kernels of random numbers, spans and merges.  They take square roots,
 * which AMD devices correct (roots.h). */
#include "draws.h"
#include "spans.h"
#include "merges.h"

#include "kernel.h"

#define FOR_DRAWN(name)                                                                            \
    SG_KERNEL(weft_draw_uniform_##name, wk_draw_args)                                              \
    SG_KERNEL(weft_draw_normal_##name, wk_draw_args)                                               \
    SG_KERNEL(weft_draw_truncated_##name, wk_draw_args)
#define FOR_MERGED(name) SG_KERNEL(weft_merge_##name, wk_merge_args)

/* clang-format off */
const struct sg_kernel sg_kernels_draws[] = {
    SG_KERNEL(weft_span_powers_one, wk_spans_args)
    SG_KERNEL(weft_span_powers_two, wk_spans_args)
    SG_KERNEL(weft_span_powers_any, wk_spans_args)
    SG_KERNEL(weft_span_powers_largest, wk_spans_args)
    SG_KERNEL(weft_span_sums, wk_span_sums_args)
    SG_KERNEL(weft_span_limit, wk_spans_args)
    SG_KERNEL(weft_span_clamp, wk_spans_args)
    SG_KERNEL(weft_span_table, wk_span_table_args)
    WK_MERGED_DTYPES(FOR_MERGED)
    WK_DRAWN_DTYPES(FOR_DRAWN)
    SG_KERNEL(weft_draw_integers_1, wk_draw_args)
    SG_KERNEL(weft_draw_integers_2, wk_draw_args)
    SG_KERNEL(weft_draw_integers_4, wk_draw_args)
    SG_KERNEL(weft_draw_integers_8, wk_draw_args)
    SG_KERNEL(weft_draw_choice_1, wk_draw_args)
    SG_KERNEL(weft_draw_choice_2, wk_draw_args)
    SG_KERNEL(weft_draw_choice_4, wk_draw_args)
    SG_KERNEL(weft_draw_choice_8, wk_draw_args)
    SG_KERNEL(weft_draw_choice_16, wk_draw_args)
    {}
};
/* clang-format on */
