/* kernels.cc - weft's kernels, compiled from their source as functions of the simulated device. */
#include "weft_kernels.cu"
#include "weft_onesided.cu"

#include "gpu.h"

#include <atomic>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

thread_local uint32_t wk_host_block;

extern "C" uint64_t wk_host_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

/* Waiting blocks share few processors. */
extern "C" void wk_host_relax(uint32_t round)
{
    struct timespec little = {0, round < 4000 ? 1000 : 100000};

    if (round > 20) nanosleep(&little, nullptr);
}

struct sg_kernel {
    const char *name;
    void (*run)(const void *args);
    size_t bytes; /* of the arguments */
};

namespace
{

template <class Args, void (*Kernel)(const Args &)> void run(const void *args)
{
    Kernel(*static_cast<const Args *>(args));
}

#define KERNEL(name, args) {#name, run<struct args, name>, sizeof(struct args)},
#define FOR_DTYPE(name, number)                                                                    \
    KERNEL(weft_reduce_##name, wk_reduce_args)                                                     \
    KERNEL(weft_regions_reduce_##name, wk_regions_reduce_args)                                     \
    KERNEL(weft_cast_##name, wk_map_args)                                                          \
    KERNEL(weft_scale_##name, wk_map_args)                                                         \
    KERNEL(weft_pull_reduce_##name, wk_pull_args)                                                  \
    KERNEL(weft_gather_reduce_##name, wk_gather_reduce_args)
#define FOR_REAL(name, number)                                                                     \
    KERNEL(weft_regions_cast_##name, wk_regions_cast_args)                                         \
    KERNEL(weft_pull_cast_##name, wk_pull_args)
#define FOR_DRAWN(name)                                                                            \
    KERNEL(weft_draw_uniform_##name, wk_draw_args)                                                 \
    KERNEL(weft_draw_normal_##name, wk_draw_args)                                                  \
    KERNEL(weft_draw_truncated_##name, wk_draw_args)
#define FOR_MERGED(name) KERNEL(weft_merge_##name, wk_merge_args)
#define FOR_WORD(bytes)                                                                            \
    KERNEL(weft_copy_##bytes, wk_copy_args)                                                        \
    KERNEL(weft_transpose_##bytes, wk_transpose_args)                                              \
    KERNEL(weft_pull_##bytes, wk_pull_args)                                                        \
    KERNEL(weft_pull_turned_##bytes, wk_pull_args)                                                 \
    KERNEL(weft_draw_choice_##bytes, wk_draw_args)

const struct sg_kernel kernels[] = {
    KERNEL(weft_span_powers_one, wk_spans_args) KERNEL(weft_span_powers_two, wk_spans_args) KERNEL(
        weft_span_powers_any, wk_spans_args) KERNEL(weft_span_powers_largest, wk_spans_args)
        KERNEL(weft_span_sums, wk_span_sums_args) KERNEL(weft_span_limit, wk_spans_args) KERNEL(
            weft_span_clamp, wk_spans_args) KERNEL(weft_span_table,
                                                   wk_span_table_args) WK_MERGED_DTYPES(FOR_MERGED)
            WK_DRAWN_DTYPES(FOR_DRAWN) KERNEL(weft_draw_integers_1, wk_draw_args) KERNEL(
                weft_draw_integers_2, wk_draw_args) KERNEL(weft_draw_integers_4, wk_draw_args)
                KERNEL(weft_draw_integers_8, wk_draw_args) WK_REAL_DTYPES(FOR_REAL) WK_REAL_DTYPES(
                    FOR_DTYPE) WK_COMPLEX_DTYPES(FOR_DTYPE) FOR_WORD(1) FOR_WORD(2) FOR_WORD(4)
                    FOR_WORD(8) FOR_WORD(16) KERNEL(weft_fill_1, wk_map_args)
                        KERNEL(weft_fill_2, wk_map_args) KERNEL(weft_fill_4, wk_map_args)
                            KERNEL(weft_fill_8, wk_map_args) KERNEL(weft_key_f32, wk_map_args)
                                KERNEL(weft_key_f64, wk_map_args) KERNEL(weft_table, wk_table_args)
                                    KERNEL(weft_sync, wk_sync_args) KERNEL(weft_move, wk_move_args)
                                        KERNEL(weft_post, wk_post_args)
                                            KERNEL(weft_fetch, wk_fetch_args)
                                                KERNEL(weft_decline, wk_decline_args)
                                                    KERNEL(weft_signal, wk_signal_args)
                                                        KERNEL(weft_await_signal, wk_signal_args)};

struct launch {
    const struct sg_kernel *kernel;
    unsigned blocks;
    alignas(16) char args[4096];
};

void run_launch(void *self)
{
    const struct launch *launch = static_cast<struct launch *>(self);

    for (unsigned block = 0; block < launch->blocks; block++) {
        wk_host_block = block;
        launch->kernel->run(launch->args);
    }
}

std::atomic<long> launches;

} // namespace

const struct sg_kernel *sg_kernel_find(const char *name)
{
    bool is_span = strncmp(name, "weft_span_", 10) == 0 || strncmp(name, "weft_merge_", 11) == 0;

    if (is_span && sg_setting("STANDIN_NO_SPANS", 0) != 0) return nullptr;
    for (const struct sg_kernel &kernel : kernels)
        if (strcmp(kernel.name, name) == 0) return &kernel;
    return nullptr;
}

int sg_launch(const struct sg_kernel *kernel, unsigned blocks, void **arguments,
              struct sg_stream *stream)
{
    struct launch launch = {kernel, blocks, {}};

    static_assert(sizeof launch.args >= sizeof(struct wk_move_args), "room for all arguments");
    static_assert(sizeof launch.args >= sizeof(struct wk_span_table_args), "room for addresses");
    if (blocks == 0) return SG_INVALID_VALUE;
    if (++launches >= sg_setting("STANDIN_FAIL_LAUNCH", LONG_MAX)) {
        sg_break(SG_LAUNCH_FAILED);
        return SG_LAUNCH_FAILED;
    }
    memcpy(launch.args, arguments[0], kernel->bytes);
    return sg_enqueue(stream, run_launch, &launch, sizeof launch);
}
