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
    join_context((PyObject *)self, context);
    return (PyObject *)self;
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

weft_spec *spec_of(PyObject *object, const char *name)
{
    return handle_of(object, &class_weft_spec, name);
}

int type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (type == NULL) return -1;
    *out = (PyTypeObject *)type;
    return PyModule_AddType(module, *out);
}
