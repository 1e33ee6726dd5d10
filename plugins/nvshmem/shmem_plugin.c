/* shmem_plugin.c - the plugin's tables. */
#include "shmem.h"

const weft_device_table gpu_device_table = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = shmem_probe,
    .open = shmem_pe_open,
    .close = shmem_pe_close,
    .describe = shmem_pe_describe,
    .allocate = shmem_pe_allocate,
    .free = shmem_pe_free,
    .query_pointer = shmem_pe_query_pointer,
    .allocate_on = shmem_pe_allocate_on,
    .free_on = shmem_pe_free_on,
    .stream_destroy = shmem_pe_stream_destroy,
    .stream_query = shmem_pe_stream_query,
    .stream_wait = shmem_pe_stream_wait,
#include "device/gpu_device.def"
};

const weft_comm_table gpu_comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
#include "comm/gpu_comm.def"
    .pull = shmem_comm_pull,
    .pull_cast = shmem_comm_pull_cast,
    .cost = shmem_comm_cost,
};
