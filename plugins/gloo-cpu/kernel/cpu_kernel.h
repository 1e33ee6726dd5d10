/* cpu_kernel.h - local arithmetic in stream order: the entries of the kernel table except
 * regions. */
#ifndef WEFT_CPU_KERNEL_H
#define WEFT_CPU_KERNEL_H

#include "cpu.h"

/* ---- cpu_cast.c ---- */

weft_status cpu_kernel_cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                            const void *source, void *target, void *stream);
/* Convert at once, in the calling thread.  Both dtypes are known.  Both or neither are complex. */
void cpu_cast(uint32_t from, uint32_t to, size_t count, const void *source, void *target);

/* ---- cpu_kernel.c ---- */

weft_status cpu_kernel_reduce(void *device, uint32_t dtype, uint32_t reduction, uint64_t count,
                              uint32_t size, const void *const *sources, void *target,
                              void *stream);
weft_status cpu_kernel_scale(void *device, uint32_t dtype, uint64_t count, const void *scale,
                             void *data, void *stream);
weft_status cpu_kernel_fill(void *device, uint32_t dtype, uint64_t count, const void *value,
                            void *target, void *stream);

#endif
