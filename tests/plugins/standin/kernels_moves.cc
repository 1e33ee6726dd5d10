/* kernels_moves.cc - the kernels that move elements, and those that access the memory of peers:
 * the same on the devices of all vendors. */
#include "moves.h"
#include "signals.h"
#include "weft_onesided.cu"

#include "kernel.h"

#define FOR_DTYPE(name, number)                                                                    \
    SG_KERNEL(weft_reduce_##name, wk_reduce_args)                                                  \
    SG_KERNEL(weft_regions_reduce_##name, wk_regions_reduce_args)                                  \
    SG_KERNEL(weft_cast_##name, wk_map_args)                                                       \
    SG_KERNEL(weft_scale_##name, wk_map_args)                                                      \
    SG_KERNEL(weft_pull_reduce_##name, wk_pull_args)                                               \
    SG_KERNEL(weft_gather_reduce_##name, wk_gather_reduce_args)
#define FOR_REAL(name, number)                                                                     \
    SG_KERNEL(weft_regions_cast_##name, wk_regions_cast_args)                                      \
    SG_KERNEL(weft_pull_cast_##name, wk_pull_args)
#define FOR_WORD(bytes)                                                                            \
    SG_KERNEL(weft_copy_##bytes, wk_copy_args)                                                     \
    SG_KERNEL(weft_transpose_##bytes, wk_transpose_args)                                           \
    SG_KERNEL(weft_pull_##bytes, wk_pull_args)                                                     \
    SG_KERNEL(weft_pull_turned_##bytes, wk_pull_args)

/* clang-format off */
const struct sg_kernel sg_kernels_moves[] = {
    WK_REAL_DTYPES(FOR_REAL)
    WK_REAL_DTYPES(FOR_DTYPE)
    WK_COMPLEX_DTYPES(FOR_DTYPE)
    FOR_WORD(1) FOR_WORD(2) FOR_WORD(4) FOR_WORD(8) FOR_WORD(16)
    SG_KERNEL(weft_fill_1, wk_map_args)
    SG_KERNEL(weft_fill_2, wk_map_args)
    SG_KERNEL(weft_fill_4, wk_map_args)
    SG_KERNEL(weft_fill_8, wk_map_args)
    SG_KERNEL(weft_key_f32, wk_map_args)
    SG_KERNEL(weft_key_f64, wk_map_args)
    SG_KERNEL(weft_table, wk_table_args)
    SG_KERNEL(weft_sync, wk_sync_args)
    SG_KERNEL(weft_move, wk_move_args)
    SG_KERNEL(weft_post, wk_post_args)
    SG_KERNEL(weft_fetch, wk_fetch_args)
    SG_KERNEL(weft_decline, wk_decline_args)
    SG_KERNEL(weft_signal, wk_signal_args)
    SG_KERNEL(weft_await_signal, wk_signal_args)
    {}
};
/* clang-format on */
