/* shmem_plugin.c - the plugin's tables and its one exported symbol. */
#include "shmem.h"

static const weft_device_table device_table = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = wf_shmem_probe,
    .open = wf_pe_open,
    .close = wf_pe_close,
    .describe = wf_pe_describe,
    .allocate = wf_pe_allocate,
    .free = wf_pe_free,
    .query_pointer = wf_pe_query_pointer,
    .copy = wf_gpu_copy,
    .fill = wf_gpu_fill,
    .stream_create = wf_gpu_stream_create,
    .stream_destroy = wf_gpu_stream_destroy,
    .stream_query = wf_gpu_stream_query,
    .stream_wait = wf_gpu_stream_wait,
    .stream_call = wf_gpu_stream_call,
    .stream_wrap = wf_gpu_stream_wrap,
    .stream_native = wf_gpu_stream_native,
    .event_create = wf_gpu_event_create,
    .event_destroy = wf_gpu_event_destroy,
    .event_record = wf_gpu_event_record,
    .event_query = wf_gpu_event_query,
    .event_wait = wf_gpu_event_wait,
    .stream_wait_event = wf_gpu_stream_wait_event,
    .event_elapsed = wf_gpu_event_elapsed,
    .bind_thread = wf_gpu_bind_thread,
    .event_wrap = wf_gpu_event_wrap,
    .event_native = wf_gpu_event_native,
};

static const weft_comm_table comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
    .prepare = wf_comm_prepare,
    .commit = wf_comm_commit,
    .destroy = wf_comm_destroy,
    .abort = wf_comm_abort,
    .async_error = wf_comm_async_error,
    .support = wf_comm_support,
    .collective = wf_comm_collective,
    .send = wf_comm_send,
    .receive = wf_comm_receive,
    .group_begin = wf_comm_group_begin,
    .group_end = wf_comm_group_end,
    .pull = wf_comm_pull,
    .cost = wf_comm_cost,
};

static const weft_plugin plugin = {
    .struct_size = sizeof(weft_plugin),
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .host_minor_needed = WEFT_ABI_MINOR,
    .name = VENDOR_PLUGIN,
    .version = VENDOR_VERSION,
    .build = VENDOR_BUILD,
    .description = VENDOR_DESCRIPTION,
    .device = &device_table,
    .comm = &comm_table,
    .symm = &wf_symm_table,
    .kernel = &wf_gpu_kernel_table,
};

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    wf_host = host;
    return &plugin;
}
