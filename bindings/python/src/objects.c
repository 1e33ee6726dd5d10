/* objects.c - handles of weft as Python objects. */
#include "binding.h"

#include <stdlib.h>

void object_free(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(object);
    Py_DECREF(type);
}

static PyObject *new_object(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return allocate(type, 0);
}

PyObject *mesh_wrap(weft_mesh *raw)
{
    PyObject *object = new_object(binding.mesh);

    if (object == NULL)
        weft_mesh_release(&raw);
    else
        ((mesh_object *)object)->raw = raw;
    return object;
}

PyObject *spec_wrap(weft_spec *raw)
{
    PyObject *object = new_object(binding.spec);

    if (object == NULL)
        weft_spec_release(&raw);
    else
        ((spec_object *)object)->raw = raw;
    return object;
}

PyObject *plan_wrap(weft_plan *raw)
{
    PyObject *object = new_object(binding.plan);

    if (object == NULL)
        weft_plan_release(&raw);
    else
        ((plan_object *)object)->raw = raw;
    return object;
}

PyObject *text_of(print_function print, const void *object)
{
    char small[512], *large;
    size_t length = 0;
    weft_status status = print(object, small, sizeof small, &length);
    PyObject *text;

    if (status != WEFT_OK) return raise_status(status);
    if (length < sizeof small) return PyUnicode_FromStringAndSize(small, (Py_ssize_t)length);
    large = malloc(length + 1);
    if (large == NULL) return PyErr_NoMemory();
    status = print(object, large, length + 1, &length);
    text = status == WEFT_OK ? PyUnicode_FromStringAndSize(large, (Py_ssize_t)length)
                             : raise_status(status);
    free(large);
    return text;
}

static bool is_of(PyObject *object, PyTypeObject *type, const char *name)
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
