/* memory.h - how much memory this machine has left. */
#ifndef WEFT_CLI_COMMON_MEMORY_H
#define WEFT_CLI_COMMON_MEMORY_H

#include <stdint.h>

/* Bytes that this process can still use: the available memory of the kernel, within the limits
 * of the control group and of the address space.  UINT64_MAX if the system does not report it. */
uint64_t cli_free_memory(void);

#endif
