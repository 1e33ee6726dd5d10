/* wrong_one_thread.c - serves only the thread that opened the device.
 * Runs: --level stress
 * Fails: stress/threads */
#include "wrong.h"

static _Thread_local bool has_opened;

static weft_status open_device(const weft_device_options *options, void **device)
{
    has_opened = true;
    return right.device.open(options, device);
}

static weft_status collective(void *comm, const weft_collective_args *args)
{
    if (!has_opened) return plug_fail(WEFT_ERR_INVALID, "this thread opened no device");
    return run_right(comm, args);
}

INSTALL(wrong.device.open = open_device, wrong.comm.collective = collective)
