/* kernels.h - the engine's kernels of a transformer block, on f32 shards in host memory. */
#ifndef EXAMPLES_BLOCK_KERNELS_H
#define EXAMPLES_BLOCK_KERNELS_H

#include <weft/parallel.h>

/* Computes the operator that run->name names.  USER is not used. */
weft_status block_kernel(void *user, const weft_op_run *run);

#endif
