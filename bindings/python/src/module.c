/* module.c - the extension weft._weft. */
#include "binding.h"

#include <string.h>

struct binding binding;

/* The extension keeps its types in static memory, so it serves the main interpreter only. */
static int refuse_others(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
    PyErr_SetString(PyExc_ImportError, "weft cannot be imported in a sub-interpreter");
    return -1;
}

static int refuse_other_library(void)
{
    if (strcmp(weft_version(), WEFT_VERSION_STRING) == 0) return 0;
    PyErr_Format(PyExc_ImportError, "the extension is of weft %s, but libweft is %s",
                 WEFT_VERSION_STRING, weft_version());
    return -1;
}

static int module_exec(PyObject *module)
{
    PyObject *errors;

    if (refuse_others() < 0 || refuse_other_library() < 0) return -1;
    errors = PyImport_ImportModule("weft._errors");
    if (errors == NULL) return -1;
    binding.error_of = PyObject_GetAttrString(errors, "error_of");
    Py_DECREF(errors);
    if (binding.error_of == NULL) return -1;
    if (mesh_type_add(module) < 0 || spec_type_add(module) < 0 || plan_type_add(module) < 0 ||
        context_type_add(module) < 0 || tensor_type_add(module) < 0 || comm_type_add(module) < 0 ||
        array_functions_add(module) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "version", weft_version());
}

PyMODINIT_FUNC PyInit__weft(void);

PyMODINIT_FUNC PyInit__weft(void)
{
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};
    static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                     .m_name = "weft._weft",
                                     .m_doc = "The C part of the package weft.",
                                     .m_slots = slots};

    return PyModuleDef_Init(&definition);
}
