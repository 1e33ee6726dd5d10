/* gpu_wait.c - waiting for work on the device, with a time limit. */
#include "gpu.h"

#include <sched.h>
#include <time.h>

uint64_t wf_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void wf_pause(uint64_t began_ns)
{
    uint64_t waited = wf_now_ns() - began_ns;

    if (waited < 50000) return;
    if (waited < 1000000)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = waited < 20000000 ? 50000 : 500000}, NULL);
}

weft_status wf_gpu_ask(const struct wf_gpu_device *device, gpu_result (*ask)(void *), void *of,
                       const char *work)
{
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = ask(of);
    wf_leave(&scope);
    return wf_gpu_check(result, work);
}

weft_status wf_gpu_await(const struct wf_gpu_device *device, gpu_result (*ask)(void *), void *of,
                         int64_t timeout_ns, const char *work)
{
    uint64_t began = wf_now_ns();
    struct wf_scope scope;
    gpu_result result;
    bool late = false;

    WF_TRY(wf_enter(device, &scope));
    while ((result = ask(of)) == GPU_NOT_READY && !late) {
        late = timeout_ns >= 0 && wf_now_ns() - began >= (uint64_t)timeout_ns;
        if (!late) wf_pause(began);
    }
    wf_leave(&scope);
    if (result == GPU_NOT_READY)
        return wf_fail(WEFT_ERR_TIMEOUT, "%s was not done within %.3f s", work,
                       (double)timeout_ns / 1e9);
    return wf_gpu_check(result, work);
}
