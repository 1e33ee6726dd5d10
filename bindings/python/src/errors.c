/* errors.c - statuses as exceptions. */
#include "binding.h"

PyObject *raise_status(weft_status status)
{
    PyObject *error;

    if (status == WEFT_ERR_ABORTED && PyErr_CheckSignals() < 0) return NULL;
    error = PyObject_CallFunction(binding.error_of, "iss", (int)status, weft_status_name(status),
                                  weft_last_error());
    if (error == NULL) return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return NULL;
}

int check(weft_status status)
{
    if (status == WEFT_OK) return 0;
    raise_status(status);
    return -1;
}
