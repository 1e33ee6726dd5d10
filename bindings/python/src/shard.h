/* shard.h - memory of weft that other libraries use through DLPack. */
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
    PyObject *owner; /* a handle, open or closed, whose memory DATA is; the shard and its arrays
                        keep it */
};

/* A weft.Shard, which is open. */
PyObject *shard_new(const struct shard_facts *facts);
/* Memory that is the function's until it returns; FRAME is the call. */
PyObject *frame_shard(PyObject *frame, struct shard_facts *facts);
/* The address of a stream (VALUE_NATIVE), or a shard of unknown size (VALUE_MEMORY). */
PyObject *frame_make(uint8_t kind, void *pointer, PyObject *frame);

#endif
