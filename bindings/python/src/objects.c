/* objects.c - handles of weft as Python objects. */
#include "classes.h"

void object_free(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(object);
    Py_DECREF(type);
}

void *object_new(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return allocate(type, 0);
}

PyObject *dependent_new(PyTypeObject *type, void *raw, context_object *context)
{
    handle_object *self = object_new(type);

    if (self == NULL) return NULL;
    self->raw = raw;
    self->context = (context_object *)Py_NewRef((PyObject *)context);
    context->used++;
    return (PyObject *)self;
}

void dependent_free(PyObject *object)
{
    context_object *context = ((handle_object *)object)->context;

    if (context != NULL) {
        context->used--;
        Py_DECREF((PyObject *)context);
    }
    Py_XDECREF(((handle_object *)object)->keeps);
    object_free(object);
}

PyObject *spec_wrap(weft_spec *raw)
{
    return handle_make(&class_weft_spec, raw, true, NULL);
}

bool is_of(PyObject *object, PyTypeObject *type, const char *name)
{
    PyObject *found, *wanted;

    if (PyObject_TypeCheck(object, type)) return true;
    found = PyType_GetName(Py_TYPE(object));
    wanted = PyType_GetName(type);
    if (found != NULL && wanted != NULL)
        PyErr_Format(PyExc_TypeError, "%s must be a weft.%U, not %U", name, wanted, found);
    Py_XDECREF(found);
    Py_XDECREF(wanted);
    return false;
}

weft_mesh *mesh_of(PyObject *object, const char *name)
{
    return is_of(object, binding.mesh, name) ? ((mesh_object *)object)->raw : NULL;
}

weft_spec *spec_of(PyObject *object, const char *name)
{
    return is_of(object, binding.spec, name) ? ((spec_object *)object)->raw : NULL;
}

int type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (type == NULL) return -1;
    *out = (PyTypeObject *)type;
    return PyModule_AddType(module, *out);
}

/* ---- lists ---- */

static int item_of(PyObject *item, PyTypeObject *type, bool optional, const char *name, void **out)
{
    if (optional && item == Py_None) return 0;
    if (!is_of(item, type, name)) return -1;
    *out = ((handle_object *)item)->raw;
    return 0;
}

int handles_open(PyObject *list, PyTypeObject *type, bool optional, const char *name,
                 struct handles *out)
{
    *out = (struct handles){0};
    if (list == Py_None) return 0;
    out->items = PySequence_Tuple(list);
    if (out->items == NULL) return -1;
    out->count = (uint32_t)PyTuple_Size(out->items);
    out->raw = PyMem_Calloc((size_t)out->count + 1, sizeof *out->raw);
    if (out->raw == NULL) PyErr_NoMemory();
    for (uint32_t i = 0; out->raw != NULL && i < out->count; i++)
        if (item_of(PyTuple_GetItem(out->items, (Py_ssize_t)i), type, optional, name,
                    &out->raw[i]) < 0)
            break;
    if (!PyErr_Occurred()) return 0;
    handles_close(out);
    return -1;
}

void handles_close(struct handles *handles)
{
    PyMem_Free(handles->raw);
    Py_CLEAR(handles->items);
    handles->raw = NULL;
    handles->count = 0;
}

PyObject *tuple_of(int32_t count, const int64_t *numbers)
{
    PyObject *tuple = PyTuple_New(count);

    for (int32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);

        if (number == NULL || PyTuple_SetItem(tuple, i, number) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

int32_t numbers_of(PyObject *sequence, int64_t *out)
{
    Py_ssize_t count = PySequence_Size(sequence);

    if (count > WEFT_MAX_DIMS)
        PyErr_Format(PyExc_ValueError, "a shape has at most %d dimensions", WEFT_MAX_DIMS);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *number = PySequence_GetItem(sequence, i);

        out[i] = number != NULL ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
    }
    return PyErr_Occurred() ? -1 : (int32_t)count;
}

static int to_unsigned(PyObject *object, uint64_t most, uint64_t *out)
{
    PyObject *number = PyNumber_Index(object);

    if (number == NULL) return 0;
    *out = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (!PyErr_Occurred() && *out <= most) return 1;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return 0;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%S is out of range; expected a number from 0 to %llu", object,
                 (unsigned long long)most);
    return 0;
}

int to_u64(PyObject *object, void *out)
{
    uint64_t number;

    if (!to_unsigned(object, UINT64_MAX, &number)) return 0;
    *(unsigned long long *)out = number;
    return 1;
}

int to_u32(PyObject *object, void *out)
{
    uint64_t number;

    if (!to_unsigned(object, UINT32_MAX, &number)) return 0;
    *(unsigned *)out = (unsigned)number;
    return 1;
}

int64_t nanoseconds(double seconds)
{
    return seconds >= 0 && seconds < 9e9 ? (int64_t)(seconds * 1e9) : WEFT_FOREVER;
}

int to_timeout(PyObject *object, void *out)
{
    double seconds = PyFloat_AsDouble(object);
    int64_t ns = nanoseconds(seconds);

    if (PyErr_Occurred()) return 0;
    if (!(seconds >= 0)) {
        PyErr_Format(PyExc_ValueError,
                     "timeout is %S; expected a number of seconds, 0 for the default, or math.inf "
                     "for no limit",
                     object);
        return 0;
    }
    *(int64_t *)out = ns == 0 && seconds > 0 ? 1 : ns;
    return 1;
}
