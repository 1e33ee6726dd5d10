/* callback.h - functions of Python that weft calls: api/python.py writes a trampoline for each. */
#ifndef WEFT_PYTHON_CALLBACK_H
#define WEFT_PYTHON_CALLBACK_H

#include "call.h"
#include "shard.h"

/* A callback that a function or a struct of options takes. */
struct callback {
    const char *name;                            /* in Python */
    void (*trampoline)(void);                    /* its C function, in any type */
    const struct value_type *arguments, *result; /* RESULT, a struct that C passes; may be NULL */
    uint8_t count;
    uint8_t slot; /* its number among those with the same `user` */
    bool stops;   /* False, which it may return, is a failure */
};

/* Let FUNCTION serve CALLBACK.  *USER is the first argument of the trampoline; NULL is replaced,
 * and the arena keeps it. */
int callback_set(const struct callback *callback, PyObject *function, struct arena *arena,
                 void **user);
/* The same for the callback FIELD of a struct at MEMORY; None for FUNCTION sets nothing. */
int callback_field(const struct record *record, const struct value_type *field, char *memory,
                   PyObject *function, struct arena *arena);
/* Call the function with the VALUES of C, which become values of Python. */
weft_status callback_run(const struct callback *callback, void *user, const union value *values,
                         void *out);

#endif
