/* shard.h - memory of weft that a function of Python gets, and that other libraries use through
 * DLPack; and the exceptions of such functions. */
#ifndef WEFT_PYTHON_SHARD_H
#define WEFT_PYTHON_SHARD_H

#include "tensor.h"

struct shard_facts {
    void *data; /* NULL: it is empty */
    int32_t dims;
    const int64_t *shape;
    const int64_t *strides; /* in elements; NULL: row-major without gaps */
    const int64_t *offset;  /* in the whole tensor; NULL: 0 */
    enum weft_dtype dtype;
    weft_dl_device device;
    const weft_spec *spec; /* of the whole tensor; NULL: none */
    bool is_read_only;
    PyObject *owner; /* a handle whose memory DATA is, which the shard and its arrays keep; NULL: a
                        call */
};

/* A weft.Shard, which is open. */
PyObject *shard_new(const struct shard_facts *facts);
/* End the use of a shard, or of all shards of a tuple; returns the number of arrays that still use
 * their memory.  NULL and None are accepted: 0 arrays use them. */
Py_ssize_t shard_close(PyObject *shard);
Py_ssize_t shards_close(PyObject *shards);

/* A function of Python that weft calls, and the exception that it raised. */
struct kernel {
    PyObject *function;
    weft_dl_device device; /* of the memory that it gets */
    PyObject *kind, *value, *traceback;
};

/* After a call of the function: refuse KEPT arrays of its shards; keep the exception, if there is
 * one, and return a status whose text has it.  WHAT names the function. */
weft_status kernel_end(struct kernel *kernel, Py_ssize_t kept, const char *what);
/* Call the function with ARGUMENTS, and end the use of the tuple SHARDS.  It takes over both; NULL
 * has an exception, which it keeps. */
weft_status kernel_run(struct kernel *kernel, PyObject *arguments, PyObject *shards,
                       const char *what);
/* Raise the exception of the kernel if it has one, otherwise that of STATUS.  Returns NULL. */
PyObject *kernel_raise(struct kernel *kernel, weft_status status);

#endif
