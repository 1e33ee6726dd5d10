/* cpu_plugin.c - the plugin's tables and its one exported symbol. */
#include "comm.h"
#include "kernel.h"
#include "pull.h"
#include "symm.h"

static const weft_device_table device_table = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = wf_cpu_probe,
    .open = wf_cpu_device_open,
    .close = wf_cpu_device_close,
    .describe = wf_cpu_device_describe,
    .allocate = wf_cpu_device_allocate,
    .free = wf_cpu_device_free,
    .query_pointer = wf_cpu_device_query_pointer,
    .copy = wf_cpu_device_copy,
    .fill = wf_cpu_device_fill,
    .stream_create = wf_cpu_stream_create,
    .stream_destroy = wf_cpu_stream_destroy,
    .stream_query = wf_cpu_stream_query,
    .stream_wait = wf_cpu_stream_wait,
    .stream_call = wf_cpu_stream_call,
    .event_create = wf_cpu_event_create,
    .event_destroy = wf_cpu_event_destroy,
    .event_record = wf_cpu_event_record,
    .event_query = wf_cpu_event_query,
    .event_wait = wf_cpu_event_wait,
    .stream_wait_event = wf_cpu_stream_wait_event,
    .event_elapsed = wf_cpu_event_elapsed,
};

static const weft_comm_table comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
    .prepare = wf_cpu_comm_prepare,
    .commit = wf_cpu_comm_commit,
    .destroy = wf_cpu_comm_destroy,
    .abort = wf_cpu_comm_abort,
    .async_error = wf_cpu_comm_async_error,
    .support = wf_cpu_comm_support,
    .collective = wf_cpu_comm_collective,
    .send = wf_cpu_comm_send,
    .receive = wf_cpu_comm_receive,
    .group_begin = wf_cpu_comm_group_begin,
    .group_end = wf_cpu_comm_group_end,
    .pull = wf_cpu_comm_pull,
    .cost = wf_cpu_comm_cost,
};

static const weft_kernel_table kernel_table = {
    .struct_size = sizeof(weft_kernel_table),
    .signature = WEFT_KERNEL_SIGNATURE,
    .regions_create = wf_cpu_regions_create,
    .regions_destroy = wf_cpu_regions_destroy,
    .regions_copy = wf_cpu_regions_copy,
    .regions_reduce = wf_cpu_regions_reduce,
    .reduce = wf_cpu_kernel_reduce,
    .cast = wf_cpu_kernel_cast,
    .scale = wf_cpu_kernel_scale,
    .fill = wf_cpu_kernel_fill,
    .regions_average = wf_cpu_regions_average,
};

static const weft_symm_table symm_table = {
    .struct_size = sizeof(weft_symm_table),
    .signature = WEFT_SYMM_SIGNATURE,
    .window_create = wf_cpu_window_create,
    .window_destroy = wf_cpu_window_destroy,
    .window_register = wf_cpu_window_register,
    .handle = wf_cpu_window_handle,
    .put = wf_cpu_symm_put,
    .get = wf_cpu_symm_get,
    .put_signal = wf_cpu_symm_put_signal,
    .signal = wf_cpu_symm_signal,
    .wait_signal = wf_cpu_symm_wait_signal,
    .fence = wf_cpu_symm_fence,
    .quiet = wf_cpu_symm_quiet,
    .barrier = wf_cpu_symm_barrier,
};

static weft_plugin plugin = {
    .struct_size = sizeof(weft_plugin),
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .host_minor_needed = WEFT_ABI_MINOR,
    .name = "gloo-cpu",
    .version = WEFT_CPU_VERSION,
    .build = WEFT_CPU_VERSION,
    .device = &device_table,
    .comm = &comm_table,
    .symm = &symm_table,
    .kernel = &kernel_table,
};

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    wf_cpu_host_set(host);
    plugin.description =
        wf_hosts_expected()
            ? "shared memory between the ranks of a host, Gloo between hosts"
            : "shared memory between the ranks of a host; one host only, without Gloo";
    return &plugin;
}
