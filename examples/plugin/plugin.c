/* plugin.c - the exported symbol. */
#include "example.h"

static const weft_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .host_minor_needed = WEFT_ABI_MINOR,
    .name = "example",
    .version = "1.0.0",
    .build = "example-1.0.0",
    .description = "example plugin: CPU memory, ranks of one host",
    .device = &example_device,
    .comm = &example_comm_table,
    .symm = &example_symm,
    .kernel = &example_kernel,
};

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    plug_host_set(host);
    return &plugin;
}
