/* cpu_plugin.c - the plugin's tables and its one exported symbol. */
#include "cpu_comm.h"
#include "kernel/cpu_kernel.h"
#include "cpu_pull.h"
#include "memory/cpu_symm.h"

static const weft_device_table device_table = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = cpu_probe,
    .open = cpu_device_open,
    .close = cpu_device_close,
    .describe = cpu_device_describe,
    .allocate = cpu_device_allocate,
    .free = cpu_device_free,
    .query_pointer = cpu_device_query_pointer,
    .copy = cpu_device_copy,
    .fill = cpu_device_fill,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_query = cpu_stream_query,
    .stream_wait = cpu_stream_wait,
    .stream_call = cpu_stream_call,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_query = cpu_event_query,
    .event_wait = cpu_event_wait,
    .stream_wait_event = cpu_stream_wait_event,
    .event_elapsed = cpu_event_elapsed,
    .allocate_on = cpu_device_allocate_on,
    .free_on = cpu_device_free_on,
};

static const weft_comm_table comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
    .prepare = cpu_comm_prepare,
    .commit = cpu_comm_commit,
    .destroy = cpu_comm_destroy,
    .abort = cpu_comm_abort,
    .async_error = cpu_comm_async_error,
    .support = cpu_comm_support,
    .collective = cpu_comm_collective,
    .send = cpu_comm_send,
    .receive = cpu_comm_receive,
    .group_begin = cpu_comm_group_begin,
    .group_end = cpu_comm_group_end,
    .pull = cpu_comm_pull,
    .cost = cpu_comm_cost,
    .pull_cast = cpu_comm_pull_cast,
    .exchange = cpu_comm_exchange,
    .carrier = cpu_comm_carrier,
};

static const weft_kernel_table kernel_table = {
    .struct_size = sizeof(weft_kernel_table),
    .signature = WEFT_KERNEL_SIGNATURE,
    .regions_create = cpu_regions_create,
    .regions_destroy = cpu_regions_destroy,
    .regions_copy = cpu_regions_copy,
    .regions_reduce = cpu_regions_reduce,
    .reduce = cpu_kernel_reduce,
    .cast = cpu_kernel_cast,
    .scale = cpu_kernel_scale,
    .fill = cpu_kernel_fill,
    .regions_average = cpu_regions_average,
    .regions_cast = cpu_regions_cast,
};

static const weft_symm_table symm_table = {
    .struct_size = sizeof(weft_symm_table),
    .signature = WEFT_SYMM_SIGNATURE,
    .window_create = cpu_window_create,
    .window_destroy = cpu_window_destroy,
    .window_register = cpu_window_register,
    .handle = cpu_window_handle,
    .put = cpu_symm_put,
    .get = cpu_symm_get,
    .put_signal = cpu_symm_put_signal,
    .signal = cpu_symm_signal,
    .wait_signal = cpu_symm_wait_signal,
    .fence = cpu_symm_fence,
    .quiet = cpu_symm_quiet,
    .barrier = cpu_symm_barrier,
};

static const weft_plugin plugin = {
    .struct_size = sizeof(weft_plugin),
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .host_minor_needed = WEFT_ABI_MINOR,
    .name = "gloo-cpu",
    .version = WEFT_CPU_VERSION,
    .build = WEFT_CPU_VERSION,
    .description = "shared memory between the ranks of a host, UCX or Gloo between hosts",
    .device = &device_table,
    .comm = &comm_table,
    .symm = &symm_table,
    .kernel = &kernel_table,
};

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    plug_host_set(host);
    return &plugin;
}
