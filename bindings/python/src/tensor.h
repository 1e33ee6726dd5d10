/* tensor.h - the methods of weft.Tensor, by file. */
#ifndef WEFT_PYTHON_TENSOR_H
#define WEFT_PYTHON_TENSOR_H

#include "array.h"

weft_tensor *tensor_raw(PyObject *self);
/* A new reference; it takes over the caller's reference to RAW, also if it fails. */
PyObject *tensor_wrap(weft_tensor *raw, context_object *context);
/* The tuple of COUNT such tensors; NULL becomes None.  It takes over all references. */
PyObject *tensors_wrap(weft_tensor **raw, uint32_t count, context_object *context);

/* ---- move.c ---- */

/* 0 if ARRAY has the dtype and the shape of RANK's shard of SPEC.  NAME is the argument's name. */
int shard_fits(const struct array *array, const weft_spec *spec, int32_t rank, const char *name);
bool has_shape(const struct array *array, const weft_shard *shard);
/* 0 if ARRAY is contiguous and, if WRITTEN is true, may be written. */
int check_dense(const struct array *array, const char *name, bool written);
/* 0 if ARRAY may be written. */
int writable(const struct array *array, const char *name);

/* ---- draw.c: methods of a generator's state ---- */

PyObject *tensor_uniform(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_normal(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_truncated_normal(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_bernoulli(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_dropout(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_integers(PyObject *self, PyObject *args, PyObject *kwargs);

#define DRAW(name, text)                                                                           \
    {#name, (PyCFunction)(void (*)(void))tensor_##name, METH_VARARGS | METH_KEYWORDS, text},
#define DRAW_METHODS                                                                               \
    DRAW(uniform, "uniform(seed, offset=0, low=0.0, high=1.0)\n\nlow <= x < high.")                \
    DRAW(normal, "normal(seed, offset=0, mean=0.0, deviation=1.0)\n\nThe normal distribution.")    \
    DRAW(truncated_normal, "truncated_normal(seed, offset=0, mean=0.0, deviation=1.0, low=-2.0, "  \
                           "high=2.0)\n\nThe normal distribution within limits.")                  \
    DRAW(bernoulli, "bernoulli(seed, offset=0, probability=0.5)\n\n1 with a probability, else 0.") \
    DRAW(dropout, "dropout(seed, offset=0, probability=0.5)\n\nA mask for dropout.")               \
    DRAW(integers, "integers(seed, offset=0, low=0, high=2)\n\nlow <= x < high.")

/* ---- share.c ---- */

/* The capsule of INNER, which it takes over, also if it fails, and calls its deleter with the GIL.
 * OWNER lives as long as the capsule; ARGS and KWARGS are those of __dlpack__. */
PyObject *share_capsule(weft_dl_versioned *inner, PyObject *owner, PyObject *args,
                        PyObject *kwargs);
PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused);
PyObject *tensor_local(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_cuda_array(PyObject *self, void *closure);
/* __array__ of an object that has __dlpack__. */
PyObject *share_array(PyObject *self, PyObject *args, PyObject *kwargs);

#define ARRAY_METHOD                                                                               \
    {"__array__", (PyCFunction)(void (*)(void))share_array, METH_VARARGS | METH_KEYWORDS,          \
     "__array__(dtype=None, copy=None)\n\nThis rank's shard as a NumPy array, which shares host "  \
     "memory."},

#define SHARE_METHODS                                                                              \
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,       \
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n\nThis rank's "     \
     "shard as a DLPack capsule."},                                                                \
        {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,                                   \
         "__dlpack_device__()\n\nDevice type and device."},                                        \
        ARRAY_METHOD

#endif
