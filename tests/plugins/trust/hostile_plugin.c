/* hostile_plugin.c - code that must never run: its constructor ends the process with 66. */
#include "weft_plugin.h"

#include <unistd.h>

const weft_plugin *weft_plugin_entry(const weft_host *host);

__attribute__((constructor)) static void take_over(void)
{
    _exit(66);
}

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    (void)host;
    return NULL;
}
