/* ccl_plugin.c - the plugin's tables. */
#include "ccl.h"

static weft_status open_device(const weft_device_options *options, void **device)
{
    PLUG_TRY(ccl_load());
    return gpu_open(options, device);
}

const weft_device_table gpu_device_table = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = ccl_probe,
    .open = open_device,
    .close = gpu_close,
    .describe = gpu_describe,
    .allocate = gpu_allocate,
    .free = gpu_free,
    .query_pointer = gpu_query_pointer,
    .allocate_on = gpu_allocate_on,
    .free_on = gpu_free_on,
    .stream_destroy = gpu_stream_destroy,
    .stream_query = gpu_stream_query,
    .stream_wait = gpu_stream_wait,
#include "device/gpu_device.def"
};

const weft_comm_table gpu_comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
#include "comm/gpu_comm.def"
    .split = ccl_comm_split,
    .wrap = ccl_comm_wrap,
    .native = ccl_comm_native,
};
