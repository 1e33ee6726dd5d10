/* shmem_plugin.c - the plugin's tables. */
#include "shmem.h"

const weft_device_table wf_device_table = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = wf_shmem_probe,
    .open = wf_pe_open,
    .close = wf_pe_close,
    .describe = wf_pe_describe,
    .allocate = wf_pe_allocate,
    .free = wf_pe_free,
    .query_pointer = wf_pe_query_pointer,
    .stream_destroy = wf_pe_stream_destroy,
    .stream_query = wf_pe_stream_query,
    .stream_wait = wf_pe_stream_wait,
#include "gpu_device.def"
};

const weft_comm_table wf_comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
#include "gpu_comm.def"
    .pull = wf_comm_pull,
    .cost = wf_comm_cost,
};
