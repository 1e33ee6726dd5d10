/* call_state.h - a call of call.c while it runs. */
#ifndef WEFT_PYTHON_CALL_STATE_H
#define WEFT_PYTHON_CALL_STATE_H

#include "call.h"
#include "array.h"

struct call {
    const struct function *function;
    PyObject *self;
    PyObject *names;        /* a tuple, or NULL: of the arguments that are given by name */
    PyObject *const *named; /* these arguments */
    Py_ssize_t name_count;
    unsigned given;   /* the arguments that are given, by their bits */
    bool has_options; /* some names are those of options */
    bool has_array;   /* `array` is open; at most one argument is an array */
    weft_stream *owned_stream;
    /* The Python arguments, borrowed; NULL: not given.  The last is the option `name`. */
    PyObject *objects[CALL_ARGUMENTS + 1];
    union value values[CALL_ARGUMENTS + 1], outs[CALL_ARGUMENTS];
    size_t counts[CALL_ARGUMENTS]; /* of lists that the function fills */
    struct array array;
    char text[512]; /* that the function writes, if it is not longer */
    struct arena arena;
};

/* The entries of LIST, which the function fills or returns. */
size_t call_count(const struct call *call, const struct value_type *list);
/* What the call returns to Python, after the C function has succeeded. */
PyObject *call_results(const struct call *call);

#endif
