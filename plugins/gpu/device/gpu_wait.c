/* gpu_wait.c - waits for device work, with a time limit. */
#include "gpu.h"

#include <sched.h>
#include <time.h>

void gpu_pause(uint64_t began_ns)
{
    uint64_t waited = plug_now() - began_ns;

    if (waited < 50000) return;
    if (waited < 1000000)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = waited < 20000000 ? 50000 : 500000}, NULL);
}

weft_status gpu_ask(const struct gpu_device *device, vendor_result (*ask)(void *), void *of,
                    const char *work)
{
    struct gpu_scope scope;
    vendor_result result;

    PLUG_TRY(gpu_enter(device, &scope));
    result = ask(of);
    gpu_leave(&scope);
    return gpu_check(result, work);
}

weft_status gpu_await(const struct gpu_device *device, vendor_result (*ask)(void *), void *of,
                      int64_t timeout_ns, const char *work)
{
    uint64_t began = plug_now();
    struct gpu_scope scope;
    vendor_result result;
    bool late = false;

    PLUG_TRY(gpu_enter(device, &scope));
    while ((result = ask(of)) == GPU_NOT_READY && !late) {
        late = timeout_ns >= 0 && plug_now() - began >= (uint64_t)timeout_ns;
        if (!late) gpu_pause(began);
    }
    gpu_leave(&scope);
    if (result == GPU_NOT_READY)
        return plug_fail(WEFT_ERR_TIMEOUT, "%s was not complete within %.3f s", work,
                         (double)timeout_ns / 1e9);
    return gpu_check(result, work);
}
