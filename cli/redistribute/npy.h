/* npy.h - writes arrays as files of NumPy. */
#ifndef WEFT_CLI_NPY_H
#define WEFT_CLI_NPY_H

#include "weft/weft.h"

/* Write a row-major array to PATH.  NumPy does not have bf16 and f8, so their bits are written
 * as unsigned integers. */
weft_status npy_write(const char *path, uint32_t dtype, int32_t dims, const int64_t *shape,
                      const void *elements);

#endif
