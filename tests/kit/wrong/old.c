/* old.c - a correct plugin of ABI 1.0, made from the example plugin.  ABI 1.0 does not define
 * averages of integers, so weft must not request one; such a request fails here. */
#include "wrong.h"

#include <stdio.h>

static struct wrong old, right_tables;
static const weft_host *host;

const weft_plugin *example_entry(const weft_host *given);
const weft_plugin *weft_plugin_entry(const weft_host *given);

static bool is_asked(uint32_t dtype, uint32_t reduction)
{
    bool integer = dtype > WEFT_DTYPE_BOOL && dtype < WEFT_DTYPE_F16;

    if (!integer || reduction != WEFT_REDUCE_AVG) return false;
    host->set_error(WEFT_ERR_INTERNAL, NULL, 0, "a plugin of 1.0 is to average integers");
    return true;
}

static bool reduces(uint32_t collective)
{
    return collective == WEFT_COLL_ALL_REDUCE || collective == WEFT_COLL_REDUCE ||
           collective == WEFT_COLL_REDUCE_SCATTER || collective == WEFT_COLL_REDUCE_SCATTER_V;
}

/* Structs have the size of ABI 1.0. */
static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_collective_args known = *args;

    if (reduces(args->collective) && is_asked(args->dtype, args->reduction))
        return WEFT_ERR_INTERNAL;
    known.struct_size = offsetof(weft_collective_args, divisor);
    return right_tables.comm.collective(comm, &known);
}

static weft_status pull(void *comm, const weft_pull_args *args)
{
    weft_pull_args known = *args;

    if (args->regions != NULL && args->holders > 1 && is_asked(args->dtype, args->reduction))
        return WEFT_ERR_INTERNAL;
    known.struct_size = offsetof(weft_pull_args, divisor);
    return right_tables.comm.pull(comm, &known);
}

static weft_status regions_reduce(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream)
{
    if (is_asked(dtype, reduction)) return WEFT_ERR_INTERNAL;
    return right_tables.kernel.regions_reduce(list, dtype, reduction, size, sources, targets,
                                              stream);
}

const weft_plugin *weft_plugin_entry(const weft_host *given)
{
    const weft_plugin *example = example_entry(given);

    host = given;
    right_tables = (struct wrong){*example, *example->device, *example->comm, *example->symm,
                                  *example->kernel};
    old = right_tables;
    old.plugin.abi_minor = 0;
    old.plugin.host_minor_needed = 0;
    old.plugin.name = "old";
    old.plugin.device = &old.device;
    old.plugin.comm = &old.comm;
    old.plugin.symm = &old.symm;
    old.plugin.kernel = &old.kernel;
    old.device.signature = UINT64_C(0x5e79676d3b7cbc33); /* as 1.0 has them */
    old.device.struct_size = offsetof(weft_device_table, ranges_wanted);
    old.comm.signature = UINT64_C(0x515084483af48e11);
    old.comm.struct_size = offsetof(weft_comm_table, pull_cast);
    old.comm.collective = collective;
    old.comm.pull = pull;
    old.kernel.signature = UINT64_C(0xe9d8ce2c0645d831);
    old.kernel.struct_size = offsetof(weft_kernel_table, regions_average);
    old.kernel.regions_reduce = regions_reduce;
    return &old.plugin;
}
