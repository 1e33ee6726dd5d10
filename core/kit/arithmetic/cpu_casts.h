/* cpu_casts.h - converting buffers from one dtype to another.
 *
 * The one definition of what a cast gives on a host; docs/dtypes.md states it.  The core compiles
 * it for the simulator, and gloo-cpu for its kernels.  Every level of vector hardware gives the
 * same bits. */
#ifndef WEFT_CPU_CASTS_H
#define WEFT_CPU_CASTS_H

#include "cpu_reduce.h"

/* Convert COUNT elements.  Both dtypes are known, and both or neither complex.  SOURCE and TARGET
 * do not overlap, unless they are equal and so are the dtypes. */
void cpu_cast_elements(const struct cpu_kernels *kernels, uint32_t from, uint32_t to,
                       const void *source, void *target, size_t count);

#endif
