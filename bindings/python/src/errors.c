/* errors.c - statuses as exceptions. */
#include "binding.h"

PyObject *raise_status(weft_status status)
{
    int64_t code = 0;
    const char *vendor;
    PyObject *error;

    if (PyErr_Occurred()) return NULL; /* that of a function of Python, which the call has made */
    if (status == WEFT_ERR_ABORTED && PyErr_CheckSignals() < 0) return NULL;
    vendor = weft_last_error_vendor(&code);
    error = PyObject_CallFunction(binding.error_of, "isszL", (int)status, weft_status_name(status),
                                  weft_last_error(), vendor, (long long)code);
    if (error == NULL) return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return NULL;
}

int refuse(PyObject *kind, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)PyErr_FormatV(kind, format, values);
    va_end(values);
    return -1;
}

int check(weft_status status)
{
    if (status == WEFT_OK) return 0;
    raise_status(status);
    return -1;
}
