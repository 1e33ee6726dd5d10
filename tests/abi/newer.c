/* newer.c - the example plugin, built for the next minor of the ABI.  A host of this minor gets the
 * tables that it knows, which are the first part of the newer ones. */
#include "example.h"

#include "plugin/older.h"

static weft_plugin newer;
static weft_device_table device;
static weft_comm_table comm;
static weft_symm_table symm;
static weft_kernel_table kernel;

const weft_plugin *example_entry(const weft_host *host);
const weft_plugin *weft_plugin_entry(const weft_host *host);

#define SHORTEN(table, appended, number)                                                           \
    {                                                                                              \
        table.struct_size = offsetof(weft_##table##_table, appended);                              \
        table.signature = UINT64_C(number);                                                        \
    }

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    const weft_plugin *example = example_entry(host);

    newer = *example;
    device = *example->device;
    comm = *example->comm;
    symm = *example->symm;
    kernel = *example->kernel;
    newer.name = "newer";
    newer.host_minor_needed = WEFT_ABI_MINOR - 1;
    newer.device = &device;
    newer.comm = &comm;
    newer.symm = &symm;
    newer.kernel = &kernel;
    if (host->abi_minor < WEFT_ABI_MINOR) {
        WF_OLDER_DEVICE(SHORTEN)
        WF_OLDER_COMM(SHORTEN)
        WF_OLDER_SYMM(SHORTEN)
        WF_OLDER_KERNEL(SHORTEN)
    }
    return &newer;
}
