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
    size_t counts[CALL_ARGUMENTS]; /* of lists that the function fills */
    struct arena arena;
    weft_stream *owned_stream;
    struct array array; /* at most one argument is an array */
    bool has_array;
};

/* The entries of LIST, which the function fills or returns. */
size_t call_count(const struct call *call, const struct value_type *list);
/* What the call returns to Python, after the C function has succeeded. */
PyObject *call_results(const struct call *call);

#endif
