/* kernels.cc - finds and launches the kernels, and is the device that they run on. */
#include "onesided_args.h"
#include "portable.h"

#include "gpu.h"
#include "kernel.h"

#include <atomic>
#include <initializer_list>
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

namespace
{

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
    for (const struct sg_kernel *table : {sg_kernels_moves, sg_kernels_draws})
        for (const struct sg_kernel *kernel = table; kernel->name != nullptr; kernel++)
            if (strcmp(kernel->name, name) == 0) return kernel;
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
