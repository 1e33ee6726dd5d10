/* ccl_plugin.c - the plugin's tables. */
#include "ccl.h"

static weft_status open_device(const weft_device_options *options, void **device)
{
    WF_TRY(wf_ccl_load());
    return wf_gpu_open(options, device);
}

const weft_device_table wf_device_table = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = wf_ccl_probe,
    .open = open_device,
    .close = wf_gpu_close,
    .describe = wf_gpu_describe,
    .allocate = wf_gpu_allocate,
    .free = wf_gpu_free,
    .query_pointer = wf_gpu_query_pointer,
    .stream_destroy = wf_gpu_stream_destroy,
    .stream_query = wf_gpu_stream_query,
    .stream_wait = wf_gpu_stream_wait,
#include "gpu_device.def"
};

const weft_comm_table wf_comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
#include "gpu_comm.def"
    .split = wf_comm_split,
    .wrap = wf_comm_wrap,
    .native = wf_comm_native,
};
