/* plugin.h - finding, checking and choosing plugins.
 *
 * search.c lists candidate files, elf.c looks at one without running it, loader.c opens and checks
 * it, choice.c reads WEFT_BACKEND, registry.c puts them together as weft_backends. */
#ifndef WEFT_PLUGIN_PLUGIN_H
#define WEFT_PLUGIN_PLUGIN_H

#include "base/base.h"
#include "weft/backend.h"

/* The tables of candidate INDEX, as checked copies that are as long as this build's own structs
 * (what an older plugin lacks is NULL).  Valid for the life of the process.  NULL unless usable. */
const weft_plugin *wf_backends_plugin(const weft_backends *backends, size_t index);

#endif
