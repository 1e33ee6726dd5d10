/* array.h - an array library of somebody else: it has arrays of f32 in host memory, and knows
 * DLPack but not weft.
 *
 * Such a library has its own dlpack.h.  The structs of weft have the same layout. */
#ifndef EXAMPLES_DLPACK_ARRAY_H
#define EXAMPLES_DLPACK_ARRAY_H

#include <weft/dlpack.h>

#include <stdbool.h>
#include <stdint.h>

/* A matrix, row by row without gaps. */
struct array {
    float *data;
    int64_t shape[2];
    int references;
    weft_dl_versioned *lender; /* of the memory; NULL: it is the array's own */
};

struct array *array_create(int64_t rows, int64_t columns);
/* Drop a reference.  The last one frees the array and its memory, or gives the memory back. */
void array_release(struct array *array);
/* Arrays that have not been freed. */
int array_count(void);

/* Lend the memory of ARRAY, which has a reference more until the deleter is called. */
weft_dl_versioned *array_lend(struct array *array);
/* Make an array of LENT, without a copy.  NULL: the library has no such arrays, and LENT stays the
 * caller's. */
struct array *array_borrow(weft_dl_versioned *lent);
/* Whether the library has arrays of DTYPE. */
bool array_knows(weft_dl_dtype dtype);

#endif
