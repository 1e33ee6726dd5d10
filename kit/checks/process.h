/* process.h - what a plugin does to the process that loads it. */
#ifndef WEFT_KIT_PROCESS_H
#define WEFT_KIT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* ---- exports.c ---- */

/* True if the shared object at PATH exports more than the entry of a plugin.  OUT receives the
 * name. */
bool kit_exports_more(const char *path, char *out, size_t capacity);

/* ---- files.c ---- */

/* Number of files that this process has open; -1 if the system does not report it. */
int kit_open_files(void);

#endif
