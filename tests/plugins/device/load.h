/* load.h - a plugin opened by hand, for programs that measure it without the library. */
#ifndef WEFT_TESTS_GPU_LOAD_H
#define WEFT_TESTS_GPU_LOAD_H

#include "weft_plugin.h"

#include <stdbool.h>

/* The plugin in FILE and its device for LOCAL_RANK; ends the program with a reason if it cannot. */
const weft_plugin *load_plugin(const char *file, int32_t local_rank, void **device);
/* Ends the program, with what the plugin said, unless STATUS is WEFT_OK. */
void must(weft_status status, const char *what);
double now_us(void);

/* Device memory; ends the program if there is none. */
void *device_memory(const weft_plugin *plugin, void *device, uint64_t bytes);
/* Run BODY(self) COUNT times on STREAM between two events; microseconds of one, the best of
 * ROUNDS rounds. */
double device_us(const weft_plugin *plugin, void *device, void *stream, int rounds, int count,
                 void (*body)(void *self), void *self);

#endif
