/* wrong.c - the entry of every wrong plugin. */
#include "wrong.h"

struct wrong wrong, right;

/* The example's own entry, renamed by the build. */
const weft_plugin *example_entry(const weft_host *host);
const weft_plugin *weft_plugin_entry(const weft_host *host);

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    const weft_plugin *example = example_entry(host);

    right = (struct wrong){*example, *example->device, *example->comm, *example->symm,
                           *example->kernel};
    wrong = right;
    wrong.plugin.name = WRONG_NAME;
    wrong.plugin.device = &wrong.device;
    wrong.plugin.comm = &wrong.comm;
    wrong.plugin.symm = &wrong.symm;
    wrong.plugin.kernel = &wrong.kernel;
    wrong_install();
    return &wrong.plugin;
}
