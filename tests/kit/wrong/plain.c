/* plain.c - a correct plugin with few of the optional functions, made from the example plugin.  It
 * denies averages of integers, so weft must not request one; such a request fails here. */
#include "wrong.h"

#include <stdio.h>

static struct wrong plain, right_tables;
static const weft_host *host;

const weft_plugin *example_entry(const weft_host *given);
const weft_plugin *weft_plugin_entry(const weft_host *given);

static bool averages_integers(uint32_t dtype, uint32_t reduction)
{
    return dtype > WEFT_DTYPE_BOOL && dtype < WEFT_DTYPE_F16 && reduction == WEFT_REDUCE_AVG;
}

static bool is_asked(uint32_t dtype, uint32_t reduction)
{
    if (!averages_integers(dtype, reduction)) return false;
    host->set_error(WEFT_ERR_INTERNAL, NULL, 0, "a plugin that denies it is to average integers");
    return true;
}

static bool reduces(uint32_t collective)
{
    return collective == WEFT_COLL_ALL_REDUCE || collective == WEFT_COLL_REDUCE ||
           collective == WEFT_COLL_REDUCE_SCATTER || collective == WEFT_COLL_REDUCE_SCATTER_V;
}

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    if (!reduces(query->collective) || !averages_integers(query->dtype, query->reduction))
        return right_tables.comm.support(device, query, level);
    *level = WEFT_SUPPORT_NO;
    return WEFT_OK;
}

static weft_status collective(void *comm, const weft_collective_args *args)
{
    if (reduces(args->collective) && is_asked(args->dtype, args->reduction))
        return WEFT_ERR_INTERNAL;
    return right_tables.comm.collective(comm, args);
}

static weft_status pull(void *comm, const weft_pull_args *args)
{
    if (args->regions != NULL && args->holders > 1 && is_asked(args->dtype, args->reduction))
        return WEFT_ERR_INTERNAL;
    return right_tables.comm.pull(comm, args);
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
    plain = right_tables;
    plain.plugin.name = "plain";
    plain.plugin.device = &plain.device;
    plain.plugin.comm = &plain.comm;
    plain.plugin.symm = &plain.symm;
    plain.plugin.kernel = &plain.kernel;
    plain.device.ranges_wanted = NULL;
    plain.device.range_begin = NULL;
    plain.device.range_end = NULL;
    plain.device.allocate_on = NULL;
    plain.device.free_on = NULL;
    plain.comm.support = support;
    plain.comm.collective = collective;
    plain.comm.pull = pull;
    plain.comm.pull_cast = NULL;
    plain.kernel.regions_reduce = regions_reduce;
    plain.kernel.regions_average = NULL;
    plain.kernel.regions_cast = NULL;
    plain.kernel.regions_draw = NULL;
    plain.kernel.spans_create = NULL;
    plain.kernel.spans_destroy = NULL;
    plain.kernel.spans_powers = NULL;
    plain.kernel.spans_limit = NULL;
    plain.kernel.spans_clamp = NULL;
    plain.kernel.merge_rows = NULL;
    return &plain.plugin;
}
