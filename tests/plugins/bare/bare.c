/* bare.c - another plugin without some of its entries.
 *
 * BARE_PLUGIN is the file of that plugin.  BARE_LACKS lists what is hidden: "kernel" the kernel
 * table, "reduce" its regions_reduce and regions_average, "memory" WEFT_FEATURE_HOST_MEMORY.  With
 * "copies", regions_copy does nothing: a defect, for what a failing test prints. */
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

static int lacks(const char *what)
{
    const char *list = getenv("BARE_LACKS");

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
    return &bare.plugin;
}
