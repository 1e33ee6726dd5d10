/* bare.c - another plugin without some of its entries.
 *
 * BARE_PLUGIN is the file of that plugin.  BARE_LACKS lists what is hidden: "kernel" the kernel
 * table, "reduce" its regions_reduce and regions_average, "memory" WEFT_FEATURE_HOST_MEMORY.
 * "casts": all entries that cast refuse, as those of a GPU plugin without kernels for its device.
 * "copies": regions_copy does nothing, a defect, for what a failing test prints.
 * BARE_RANK is the only rank that lacks these things, if it is set. */
#include "weft_plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct {
    weft_plugin plugin;
    weft_device_table device;
    weft_comm_table comm;
    weft_symm_table symm;
    weft_kernel_table kernel;
} bare;

static weft_status (*describe_all)(void *device, weft_device_info *out);

static weft_status describe(void *device, weft_device_info *out)
{
    weft_status status = describe_all(device, out);

    if (status == WEFT_OK) out->features &= ~(uint64_t)WEFT_FEATURE_HOST_MEMORY;
    return status;
}

static weft_status copy_nothing(void *list, const void *const *sources, void *const *targets,
                                void *stream)
{
    (void)list, (void)sources, (void)targets, (void)stream;
    return WEFT_OK;
}

/* ---- casts ---- */

static weft_status refuse_cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                               const void *source, void *target, void *stream)
{
    (void)device, (void)from, (void)to, (void)count, (void)source, (void)target, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status refuse_regions_cast(void *list, uint32_t from, uint32_t to,
                                       const void *const *sources, void *const *targets,
                                       void *stream)
{
    (void)list, (void)from, (void)to, (void)sources, (void)targets, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status refuse_pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    (void)comm, (void)args, (void)to;
    return WEFT_ERR_UNSUPPORTED;
}

/* ---- the plugin ---- */

static int lacks(const char *what)
{
    const char *list = getenv("BARE_LACKS"), *only = getenv("BARE_RANK");
    const char *rank = getenv("WEFT_RANK");

    if (only != NULL && (rank == NULL || strcmp(only, rank) != 0)) return 0;
    return list != NULL && strstr(list, what) != NULL;
}

static const weft_plugin *open_plugin(const weft_host *host)
{
    const char *file = getenv("BARE_PLUGIN");
    void *opened = file != NULL ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    const weft_plugin *(*entry)(const weft_host *) = NULL;
    void *symbol = opened != NULL ? dlsym(opened, "weft_plugin_entry") : NULL;

    if (symbol == NULL) {
        host->set_error(WEFT_ERR_NO_LIBRARY, NULL, 0, "BARE_PLUGIN is not the file of a plugin");
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof entry);
    return entry(host);
}

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    const weft_plugin *whole = open_plugin(host);

    if (whole == NULL) return NULL;
    bare.plugin = *whole;
    bare.plugin.name = "bare"; /* texts are in this plugin's memory */
    bare.plugin.version = "1";
    bare.plugin.build = "bare";
    bare.plugin.description = "another plugin without some of its entries";
    bare.device = *whole->device;
    bare.comm = *whole->comm;
    bare.plugin.device = &bare.device;
    bare.plugin.comm = &bare.comm;
    if (whole->symm != NULL) {
        bare.symm = *whole->symm;
        bare.plugin.symm = &bare.symm;
    }
    if (whole->kernel != NULL) {
        bare.kernel = *whole->kernel;
        bare.plugin.kernel = &bare.kernel;
    }
    describe_all = bare.device.describe;
    if (lacks("memory")) bare.device.describe = describe;
    if (lacks("copies")) bare.kernel.regions_copy = copy_nothing;
    if (lacks("kernel")) bare.plugin.kernel = NULL;
    if (lacks("reduce")) {
        bare.kernel.regions_reduce = NULL;
        bare.kernel.regions_average = NULL;
    }
    if (lacks("casts")) {
        bare.kernel.cast = refuse_cast;
        bare.kernel.regions_cast = refuse_regions_cast;
        bare.comm.pull_cast = refuse_pull_cast;
    }
    return &bare.plugin;
}
