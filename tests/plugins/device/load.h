/* load.h - a plugin opened by hand, for programs that measure it without the library. */
#ifndef WEFT_TESTS_GPU_LOAD_H
#define WEFT_TESTS_GPU_LOAD_H

#include "weft_plugin.h"

#include <stdbool.h>

/* Load the plugin in FILE and open its device for LOCAL_RANK.  Ends the program with a reason on an
 * error. */
const weft_plugin *load_plugin(const char *file, int32_t local_rank, void **device);
/* Ends the program, with the plugin's error text, unless STATUS is WEFT_OK. */
void must(weft_status status, const char *what);
double now_us(void);

/* Device memory.  Ends the program if memory is exhausted. */
void *device_memory(const weft_plugin *plugin, void *device, uint64_t bytes);
/* Run BODY(self) COUNT times on STREAM between two events.  Returns microseconds per run, the
 * minimum of ROUNDS rounds. */
double device_us(const weft_plugin *plugin, void *device, void *stream, int rounds, int count,
                 void (*body)(void *self), void *self);

#endif
