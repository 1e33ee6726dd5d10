/* results.c - what a call returns to Python. */
#include "call_state.h"

#include <string.h>

/* What a handle that the function returns must keep: a new reference, or NULL. */
static PyObject *kept(const struct call *call)
{
    PyObject *found[CALL_ARGUMENTS + 2];
    Py_ssize_t count = 0;
    PyObject *tuple;

    for (int i = 0; i < call->function->count; i++) {
        const struct value_type *type = &call->function->arguments[i];

        if (call->objects[i] == NULL || call->objects[i] == Py_None) continue;
        if (type->kind == VALUE_HANDLE && type->handle->retain == NULL)
            found[count++] = call->objects[i];
    }
    if (count == 0 && call->arena.context != NULL) found[count++] = (PyObject *)call->arena.context;
    if (count > 0 && call->arena.kept != NULL) found[count++] = call->arena.kept;
    if (count <= 1) return count == 1 ? Py_NewRef(found[0]) : NULL;
    tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(found[i]));
    return tuple;
}

static PyObject *make_out(const struct call *call, int index, PyObject *owner)
{
    const struct value_type *type = &call->function->arguments[index];

    if (type->kind == VALUE_BUFFER)
        return PyUnicode_DecodeUTF8(call->outs[index].pointer,
                                    (Py_ssize_t)strlen(call->outs[index].pointer),
                                    "surrogateescape");
    if (type->kind == VALUE_RECORD && !type->is_pointer)
        return record_make(type->record, call->values[index].pointer, owner);
    if (type->kind == VALUE_LIST) {
        size_t count = type->is_pointer ? (size_t)call->outs[type->of].u64 : call->counts[index];

        return list_make(type, call->outs[index].pointer, count, owner);
    }
    return value_make(type, &call->outs[index], owner);
}

static bool is_result(const struct value_type *type)
{
    return type->is_out && type->kind != VALUE_UNUSED && type->kind != VALUE_COUNT;
}

PyObject *call_results(const struct call *call)
{
    const struct function *function = call->function;
    const struct value_type *last = &function->arguments[function->count];
    PyObject *results[CALL_ARGUMENTS], *owner, *tuple;
    Py_ssize_t count = 0;

    for (int i = 0; i < function->count; i++)
        count += is_result(&function->arguments[i]);
    if (function->returns && count > 0 && last->kind == VALUE_BOOL &&
        !call->values[function->count].flag)
        Py_RETURN_NONE;
    owner = kept(call);
    if (owner == NULL && PyErr_Occurred()) return NULL;
    if (function->returns && (count == 0 || last->kind != VALUE_BOOL)) {
        const union value *value = &call->values[function->count];

        tuple = last->kind == VALUE_LIST
                    ? list_make(last, value->constant,
                                (size_t)last->count(call->values[last->of].constant), owner)
                    : value_make(last, value, owner);
        Py_XDECREF(owner);
        return tuple;
    }
    count = 0;
    for (int i = 0; i < function->count; i++)
        if (is_result(&function->arguments[i])) results[count++] = make_out(call, i, owner);
    Py_XDECREF(owner);
    if (count == 0) Py_RETURN_NONE;
    if (count == 1) return results[0];
    tuple = PyErr_Occurred() ? NULL : PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++)
        if (tuple != NULL)
            PyTuple_SetItem(tuple, i, results[i]);
        else
            Py_XDECREF(results[i]);
    return tuple;
}
