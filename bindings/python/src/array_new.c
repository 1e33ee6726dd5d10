/* array_new.c - new arrays of other libraries, see array.h. */
#include "array.h"

static void raise_text(void *context, const char *kind, const char *text)
{
    (void)context;
    PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, text);
}

static PyObject *exchange_empty(const struct array *like, weft_dl_tensor *prototype)
{
    weft_dl_versioned *managed = NULL;
    void *object = NULL;

    prototype->device = like->device;
    if (like->exchange->allocate(prototype, &managed, NULL, raise_text) != 0 ||
        like->exchange->give(managed, &object) != 0) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return NULL;
    }
    return object;
}

/* weft._arrays.empty(like, shape, dtype), for libraries without the exchange table. */
static PyObject *python_empty(PyObject *like, int32_t dims, const int64_t *shape,
                              enum weft_dtype dtype)
{
    PyObject *sizes = tuple_of(dims, shape);

    if (sizes == NULL) return NULL;
    return arrays_call("empty", "(ONs)", like, sizes, weft_dtype_name(dtype));
}

PyObject *array_empty(PyObject *like, const struct array *opened, int32_t dims,
                      const int64_t *shape, enum weft_dtype dtype, struct array *out)
{
    weft_dl_tensor prototype = {.ndim = dims, .shape = (int64_t *)shape};
    PyObject *object;

    if (check(weft_dtype_to_dlpack(dtype, &prototype.dtype)) < 0) return NULL;
    object = opened->exchange != NULL ? exchange_empty(opened, &prototype)
                                      : python_empty(like, dims, shape, dtype);
    if (object != NULL && array_open(object, out) < 0) Py_CLEAR(object);
    return object;
}
