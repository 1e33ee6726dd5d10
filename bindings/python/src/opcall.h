/* opcall.h - the call of an operator, read from Python objects. */
#ifndef WEFT_PYTHON_OPCALL_H
#define WEFT_PYTHON_OPCALL_H

#include "shard.h"

/* A call, and the objects that own what it points to. */
struct opcall {
    weft_op_call call;
    struct handles inputs;
    PyObject *attr_items; /* pairs of name and value */
    weft_op_attr *attrs;
    int64_t *numbers; /* of all lists */
    weft_op_tensor *outputs;
};

/* Read a call.  INPUTS is a list of objects of TYPE (Spec or Tensor) and None; ATTRS is None or a
 * dictionary of numbers, lists of numbers and texts; OUTPUTS is None or a list of pairs of dtype
 * and shape; MESH is None or a Mesh.  After a failure there is nothing to close. */
int opcall_open(const char *name, PyObject *inputs, PyTypeObject *type, PyObject *attrs,
                PyObject *outputs, PyObject *mesh, struct opcall *out);
void opcall_close(struct opcall *call);

/* How many outputs CALL has.  The cache of choices makes the question cheap. */
int opcall_count_outputs(const weft_op_call *call, uint32_t *out);

/* The dictionary of COUNT attributes. */
PyObject *attrs_to_python(const weft_op_attr *attrs, uint32_t count);

/* A new reference; it takes over the caller's reference to RAW, also if it fails. */
PyObject *choice_wrap(weft_op_choice *raw);

/* ---- kernels (apply.c) ---- */

/* Call the function with the parts of RUN: name, rank, inputs, outputs, attributes, count and the
 * address of the stream. */
weft_status kernel_call(void *user, const weft_op_run *run);

#endif
