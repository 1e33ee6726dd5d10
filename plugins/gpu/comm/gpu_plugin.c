/* gpu_plugin.c - the plugin and its one exported symbol. */
#include "vendor.h"
#include VENDOR_COMM

static const weft_plugin plugin = {
    .struct_size = sizeof(weft_plugin),
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .host_minor_needed = WEFT_ABI_MINOR,
    .name = VENDOR_PLUGIN,
    .version = VENDOR_VERSION,
    .build = VENDOR_BUILD,
    .description = VENDOR_DESCRIPTION,
    .device = &gpu_device_table,
    .comm = &gpu_comm_table,
    .symm = VENDOR_SYMM,
    .kernel = &gpu_kernel_table,
};

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    plug_host_set(host);
    return &plugin;
}
