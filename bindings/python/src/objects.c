/* objects.c - objects, types and modules of Python. */
#include "binding.h"

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

PyObject *package_call(const char *name, const char *function, const char *format, ...)
{
    PyObject *module, *called = NULL, *args, *result = NULL;
    va_list given;

    va_start(given, format);
    args = Py_VaBuildValue(format, given);
    va_end(given);
    module = args != NULL ? PyImport_ImportModule(name) : NULL;
    if (module != NULL) called = PyObject_GetAttrString(module, function);
    if (called != NULL) result = PyObject_Call(called, args, NULL);
    if (result == NULL && !PyErr_Occurred()) PyErr_NoMemory(); /* of CPython 3.11's own frames */
    Py_XDECREF(module);
    Py_XDECREF(called);
    Py_XDECREF(args);
    return result;
}

int type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (type == NULL) return -1;
    *out = (PyTypeObject *)type;
    return PyModule_AddType(module, *out);
}
