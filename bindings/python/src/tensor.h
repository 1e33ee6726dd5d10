/* tensor.h - weft.Tensor: the members that are written by hand. */
#ifndef WEFT_PYTHON_TENSOR_H
#define WEFT_PYTHON_TENSOR_H

#include "array.h"

/* ---- move.c ---- */

/* 0 if ARRAY has the dtype and the shape of RANK's shard of SPEC.  NAME is the argument's name. */
int shard_fits(const struct array *array, const weft_spec *spec, int32_t rank, const char *name);
bool has_shape(const struct array *array, const weft_shard *shard);
/* ---- share.c ---- */

/* The capsule of TENSOR; ARGS and KWARGS are those of __dlpack__.  OWNER, whose memory it is, lives
 * as long as the capsule or its consumer; END is called with the GIL when that is over. */
PyObject *share_capsule(const weft_dl_tensor *tensor, bool is_read_only, PyObject *owner,
                        void (*end)(PyObject *owner), PyObject *args, PyObject *kwargs);

#endif
