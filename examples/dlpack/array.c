/* array.c - see array.h. */
#include "array.h"

#include <stdlib.h>

enum { FLOAT = 2 /* kDLFloat */ };

static const weft_dl_dtype f32 = {FLOAT, 32, 1};
static int arrays;

static struct array *make(int64_t rows, int64_t columns, float *data, weft_dl_versioned *lender)
{
    struct array *array = malloc(sizeof *array);

    if (array == NULL || data == NULL) abort();
    *array = (struct array){data, {rows, columns}, 1, lender};
    arrays++;
    return array;
}

struct array *array_create(int64_t rows, int64_t columns)
{
    return make(rows, columns, calloc((size_t)(rows * columns) + 1, sizeof(float)), NULL);
}

void array_release(struct array *array)
{
    if (--array->references > 0) return;
    if (array->lender == NULL)
        free(array->data);
    else if (array->lender->deleter != NULL)
        array->lender->deleter(array->lender);
    free(array);
    arrays--;
}

int array_count(void)
{
    return arrays;
}

static void end_loan(weft_dl_versioned *lent)
{
    array_release(lent->manager_ctx);
    free(lent);
}

weft_dl_versioned *array_lend(struct array *array)
{
    weft_dl_versioned *lent = calloc(1, sizeof *lent);

    if (lent == NULL) abort();
    array->references++;
    lent->version = (weft_dl_version){1, 0};
    lent->manager_ctx = array;
    lent->deleter = end_loan;
    lent->tensor = (weft_dl_tensor){.data = array->data,
                                    .device = {.type = WEFT_DL_CPU},
                                    .ndim = 2,
                                    .dtype = f32,
                                    .shape = array->shape};
    return lent;
}

bool array_knows(weft_dl_dtype dtype)
{
    return dtype.code == f32.code && dtype.bits == f32.bits && dtype.lanes == f32.lanes;
}

struct array *array_borrow(weft_dl_versioned *lent)
{
    const weft_dl_tensor *t = &lent->tensor;

    if (lent->version.major != 1 || t->device.type != WEFT_DL_CPU || t->ndim != 2 ||
        !array_knows(t->dtype) || (lent->flags & WEFT_DL_READ_ONLY) != 0)
        return NULL;
    if (t->strides != NULL && (t->strides[1] != 1 || t->strides[0] != t->shape[1])) return NULL;
    return make(t->shape[0], t->shape[1], (float *)(void *)((char *)t->data + t->byte_offset),
                lent);
}
