/* module.c - the extension weft._weft. */
#include "call.h"

#include <string.h>

struct binding binding;

/* The extension keeps its types in static memory, so it serves the main interpreter only. */
static int refuse_others(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
    return refuse(PyExc_ImportError, "weft cannot be imported in a sub-interpreter");
}

static int refuse_other_library(void)
{
    if (strcmp(weft_version(), WEFT_VERSION_STRING) == 0) return 0;
    return refuse(PyExc_ImportError, "the extension is of weft %s, but libweft is %s",
                  WEFT_VERSION_STRING, weft_version());
}

static int module_exec(PyObject *module)
{
    static int (*const parts[])(PyObject *) = {
        context_type_add, array_functions_add, trace_types_add,   bound_types_add,
        shard_type_add,   pairs_functions_add, callback_type_add, attention_functions_add};
    static PyMethodDef functions[] = {{"use", handle_class_use, METH_O,
                                       "use($module, class_, /)\n--\n\nMake objects of this "
                                       "subclass of a class here from now on."},
                                      {0}};
    PyObject *errors;

    if (refuse_others() < 0 || refuse_other_library() < 0) return -1;
    errors = PyImport_ImportModule("weft._errors");
    if (errors == NULL) return -1;
    binding.error_of = PyObject_GetAttrString(errors, "error_of");
    Py_DECREF(errors);
    if (binding.error_of == NULL) return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) < 0) return -1;
    if (members_add(module) < 0 || tensor_members_add() < 0 || comm_members_add() < 0 ||
        symm_members_add() < 0 || PyModule_AddFunctions(module, functions) < 0)
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
