/* call_state.h - a call of call.c while it runs. */
#ifndef WEFT_PYTHON_CALL_STATE_H
#define WEFT_PYTHON_CALL_STATE_H

#include "call.h"
#include "array.h"

struct call {
    const struct function *function;
    PyObject *self;
    PyObject *objects[CALL_ARGUMENTS]; /* the Python arguments, borrowed; NULL: not given */
    union value values[CALL_ARGUMENTS + 1], outs[CALL_ARGUMENTS];
    size_t counts[CALL_ARGUMENTS]; /* of lists */
    struct arena arena;
    weft_stream *owned_stream;
    struct array array; /* at most one argument is an array */
    bool has_array;
};

/* What the call returns to Python, after the C function has succeeded. */
PyObject *call_results(const struct call *call);

#endif
