/* binding.h - what the files of the extension share.
 *
 * The extension is for one interpreter, so its types and its cached objects are in one static
 * struct.  A function that returns NULL or -1 has set a Python exception. */
#ifndef WEFT_PYTHON_BINDING_H
#define WEFT_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <weft/dlpack.h>
#include <weft/feed.h>
#include <weft/file.h>
#include <weft/parallel.h>
#include <weft/weft.h>
#include <weft/recorder.h>
#include <weft/symm.h>
#include <weft/trace.h>
#include "handle_types.h"

#include <stdbool.h>
#include <stdint.h>

struct binding {
    HANDLE_TYPES /* of handle_types.h: the type of weft_mesh is `mesh` */
        PyTypeObject *shard,
        *callback, *trace, *fixed;
    PyObject *error_of; /* weft._errors.error_of */
};

extern struct binding binding;

/* ---- objects: a handle of weft, and the Python object that must outlive it ---- */

/* Every object of a handle begins so. */
#define HANDLE_HEAD(handle)                                                                        \
    PyObject_HEAD handle *raw;      /* NULL: it was closed */                                      \
    struct context_object *context; /* which counts it as used; NULL: none */                      \
    PyObject *keeps;                /* what must outlive the handle; may be NULL */                \
    Py_ssize_t calls;               /* that run without the GIL */                                 \
    Py_ssize_t users;               /* open handles that keep it */                                \
    struct handle_object *before;   /* of the objects that its context counts */                   \
    struct handle_object *after;                                                                   \
    bool is_borrowed; /* RAW is not released */

typedef struct handle_object {
    HANDLE_HEAD(void)
} handle_object;

typedef struct {
    HANDLE_HEAD(weft_stream)
} stream_object;

typedef struct {
    HANDLE_HEAD(weft_tensor)
} tensor_object;

typedef struct {
    HANDLE_HEAD(weft_comm)
} comm_object;

typedef struct context_object {
    HANDLE_HEAD(weft_context)    /* without a context and what it keeps */
    Py_ssize_t used;             /* objects that need the context */
    handle_object *last;         /* of those; NULL: there is none */
    weft_dl_device device;       /* where its backend works */
    bool is_inline;              /* its default stream copies host memory without a wait */
    int groups;                  /* groups of calls that have begun */
    PyObject *held;              /* a list of the arrays that their calls use; may be NULL */
    struct context_object *next; /* of interrupt.c */
} context_object;

/* ---- errors.c ---- */

/* Set the exception of STATUS with the text of weft_last_error.  Returns NULL. */
PyObject *raise_status(weft_status status);
/* 0, or -1 with the exception of STATUS. */
int check(weft_status status);
/* Set an exception of KIND, as PyErr_Format does.  Returns -1. */
int refuse(PyObject *kind, const char *format, ...);

/* ---- objects.c ---- */

/* A new object of TYPE whose members are 0, and its end, when its members are released. */
void *object_new(PyTypeObject *type);
void object_free(PyObject *object);

/* A new object of TYPE with RAW, which CONTEXT must outlive; NULL: the caller still has RAW. */
PyObject *dependent_new(PyTypeObject *type, void *raw, context_object *context);
/* Free such an object, whose RAW is released. */
void dependent_free(PyObject *object);

/* Call a function of a module of the package; FORMAT is of Py_BuildValue, for a tuple. */
PyObject *package_call(const char *name, const char *function, const char *format, ...);

/* Whether OBJECT is of TYPE; otherwise TypeError.  NAME is the argument's name. */
bool is_of(PyObject *object, PyTypeObject *type, const char *name);

/* ---- handles.c ---- */

/* The text of any object of the package (weft._texts). */
PyObject *handle_repr(PyObject *self);

/* ---- numbers.c ---- */

/* A tuple of COUNT numbers. */
PyObject *tuple_of(int32_t count, const int64_t *numbers);
/* Up to WEFT_MAX_DIMS numbers of a sequence; their count, or -1. */
int32_t numbers_of(PyObject *sequence, int64_t *out);
/* Converters of PyArg_Parse, for "O&": an integer that fits uint64_t, else ValueError.  The format
 * K takes other integers modulo 2^64. */
int to_u64(PyObject *object, void *out);
/* The same for a time limit in seconds, which becomes an int64_t of nanoseconds: 0 is the default,
 * math.inf no limit.  ValueError: it is negative or not a number. */
int to_timeout(PyObject *object, void *out);

/* ---- context.c ---- */

/* The context of OBJECT, which is open; NULL with an exception otherwise. */
context_object *context_of(PyObject *object);
/* The stream of OBJECT: None, a Stream, an integer or an object with __cuda_stream__.  *OUT is the
 * stream, and *OWNED one that the caller releases after use, or NULL. */
int stream_of(PyObject *object, context_object *context, weft_stream **out, weft_stream **owned);

/* ---- types, added by their files ---- */

int context_type_add(PyObject *module);
int tensor_members_add(void); /* to the generated type */
int comm_members_add(void);
int symm_members_add(void);
int array_functions_add(PyObject *module);
int bound_types_add(PyObject *module);
int trace_types_add(PyObject *module);
int shard_type_add(PyObject *module);
int pairs_functions_add(PyObject *module);
int callback_type_add(PyObject *module);
int attention_functions_add(PyObject *module);

/* A function that gets its arguments as a tuple and a dictionary, or as call_function gets them. */
#define KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS
#define VECTOR(function)   (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS

/* Create the type of SPEC and add it to MODULE; *OUT keeps a reference. */
int type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **out);

#endif
