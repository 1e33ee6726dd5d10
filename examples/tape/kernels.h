/* kernels.h - the kernels of tape.c, on the shards of one rank. */
#ifndef TAPE_KERNELS_H
#define TAPE_KERNELS_H

#include <weft/parallel.h>

/* The number that attribute NAME has. */
double attr_of(size_t count, const weft_op_attr *attrs, const char *name);

/* One kernel for all operators; run->name tells which.  Unless USER is NULL, it is a weft_op_choice
 * ** that gets a reference to the strategy. */
weft_status tape_kernel(void *user, const weft_op_run *run);

#endif
