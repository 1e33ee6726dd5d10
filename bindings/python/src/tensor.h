/* tensor.h - weft.Tensor: the members that are written by hand. */
#ifndef WEFT_PYTHON_TENSOR_H
#define WEFT_PYTHON_TENSOR_H

#include "array.h"

union value;

/* ---- move.c ---- */

/* 0 if ARRAY has the dtype and the shape of RANK's shard of SPEC.  NAME is the argument's name. */
int shard_fits(const struct array *array, const weft_spec *spec, int32_t rank, const char *name);
bool has_shape(const struct array *array, const weft_shard *shard);
/* The ValueError of ARRAY, which is not SHARD of RANK; ADVICE follows the text.  Returns -1. */
int shard_refuse(const struct array *array, enum weft_dtype dtype, const weft_shard *shard,
                 int32_t rank, const char *name, const char *advice);

/* ---- tensor.c ---- */

/* Open HOST, an array in host memory that is copied from or, if it is WRITTEN, to: it has the dtype
 * and the shape of the tensor's shard, or is its bytes.  If ranks are simulated, it may have the
 * elements of all shards, whose number C compares. */
int host_open(PyObject *tensor, PyObject *host, bool written, struct array *out);
/* The same and CALL, with the tensor, the memory of HOST, its bytes and no stream. */
PyObject *host_copy(PyObject *tensor, PyObject *host, bool written,
                    weft_status (*call)(union value *values));

/* ---- share.c ---- */

/* The capsule of TENSOR; ARGS and KWARGS are those of __dlpack__.  OWNER, whose memory it is, lives
 * as long as the capsule or its consumer; END is called with the GIL when that is over. */
PyObject *share_capsule(const weft_dl_tensor *tensor, bool is_read_only, PyObject *owner,
                        void (*end)(PyObject *owner), PyObject *args, PyObject *kwargs);

#endif
