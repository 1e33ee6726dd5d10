/* npy.h - arrays as NumPy's files. */
#ifndef WEFT_CLI_NPY_H
#define WEFT_CLI_NPY_H

#include "weft/weft.h"

/* Write a row-major array to PATH.  NumPy has no bf16 and f8: their bits go out as unsigned
 * integers. */
weft_status npy_write(const char *path, uint32_t dtype, int32_t dims, const int64_t *shape,
                      const void *elements);

#endif
