/* results.c - values of C as Python objects, and what a call returns, see call.h. */
#include "call_state.h"
#include "shard.h"

#include <string.h>

/* ---- values ---- */

static PyObject *make_choice(const struct choices *choices, int32_t value)
{
    for (uint32_t i = 0; i < choices->count; i++)
        if (choices->values[i] == value) {
            if (choices->objects[i] == NULL)
                choices->objects[i] = PyUnicode_InternFromString(choices->texts[i]);
            return Py_XNewRef(choices->objects[i]);
        }
    return PyLong_FromLong(value);
}

static PyObject *make_unsigned(const struct value_type *type, uint64_t value, uint8_t kind)
{
    if (type->is_absent && value == (kind == VALUE_U32 ? UINT32_MAX : UINT64_MAX)) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *make_bits(const struct choices *choices, uint64_t bits)
{
    PyObject *set = PyFrozenSet_New(NULL);

    for (uint32_t i = 0; set != NULL && i < choices->count; i++) {
        PyObject *text;

        if ((bits & (uint32_t)choices->values[i]) == 0) continue;
        text = PyUnicode_FromString(choices->texts[i]);
        if (text == NULL || PySet_Add(set, text) < 0) Py_CLEAR(set);
        Py_XDECREF(text);
    }
    return set;
}

static PyObject *make_text(const char *text)
{
    if (text == NULL) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

/* The object of a handle, of the class AS. */
static PyObject *make_handle(const struct value_type *type, void *raw, PyObject *owner,
                             PyTypeObject *as)
{
    PyObject *made;
    context_object *context;

    if (type->handle->type == &binding.context && owner != NULL)
        return Py_NewRef((PyObject *)context_behind(owner));
    made = handle_make(as, type->handle, raw, type->is_owned, owner);
    if (owner == NULL || made == NULL || made == Py_None ||
        (type->handle->retain != NULL && type->handle->type != &binding.tensor))
        return made;
    context = context_behind(PyTuple_Check(owner) ? PyTuple_GetItem(owner, 0) : owner);
    if (context != NULL) join_context(made, context);
    return made;
}

static PyObject *make_kind(const struct value_type *type, uint8_t kind, const void *memory,
                           PyObject *owner)
{
    switch (kind) {
    case VALUE_BOOL:
        return PyBool_FromLong(*(const bool *)memory);
    case VALUE_I32:
        if (type->is_absent && *(const int32_t *)memory == -1) Py_RETURN_NONE;
        return PyLong_FromLong(*(const int32_t *)memory);
    case VALUE_TIMEOUT:
    case VALUE_I64:
        return PyLong_FromLongLong(*(const int64_t *)memory);
    case VALUE_U8:
    case VALUE_U32:
    case VALUE_U64:
    case VALUE_SIZE:
        return make_unsigned(type, value_load(memory, value_bytes(type, kind)), kind);
    case VALUE_F64:
        return PyFloat_FromDouble(*(const double *)memory);
    case VALUE_ENUM:
        return make_choice(type->choices, (int32_t)value_load(memory, value_bytes(type, kind)));
    case VALUE_BITS:
        return make_bits(type->choices, value_load(memory, value_bytes(type, kind)));
    case VALUE_TEXT:
    case VALUE_PATH:
    case VALUE_BUFFER:
        return make_text(type->is_pointer || type->length == 0 ? *(const char *const *)memory
                                                               : (const char *)memory);
    case VALUE_ADDRESS:
        if (*(void *const *)memory == NULL) Py_RETURN_NONE;
        return PyLong_FromVoidPtr(*(void *const *)memory);
    case VALUE_NATIVE:
    case VALUE_MEMORY:
        return frame_make(kind, *(void *const *)memory, owner);
    case VALUE_HANDLE:
        return make_handle(type, *(void *const *)memory, owner, *type->handle->type);
    case VALUE_RECORD:
        return record_make(type->record, memory, owner);
    default:
        Py_RETURN_NONE;
    }
}

PyObject *value_make(const struct value_type *type, const void *memory, PyObject *owner)
{
    if (type->kind == VALUE_RECORD && type->is_pointer) {
        memory = *(const void *const *)memory;
        if (memory == NULL) Py_RETURN_NONE;
    }
    return make_kind(type, type->kind, memory, owner);
}

PyObject *list_make(const struct value_type *type, const void *memory, size_t count,
                    PyObject *owner)
{
    size_t bytes = value_bytes(type, type->element);
    PyObject *tuple;

    if (memory == NULL) Py_RETURN_NONE;
    tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) { /* also without memory: it takes over owned handles */
        PyObject *item = make_kind(type, type->element, (const char *)memory + i * bytes, owner);

        if (tuple != NULL && item != NULL) {
            PyTuple_SetItem(tuple, (Py_ssize_t)i, item);
            continue;
        }
        Py_XDECREF(item);
        Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *field_make(const struct record *record, const struct value_type *field,
                     const char *memory, PyObject *owner)
{
    const char *at = memory + field->offset;

    if (field->kind != VALUE_LIST) return value_make(field, at, owner);
    return list_make(field, field->length > 0 ? at : *(const void *const *)(const void *)at,
                     count_of(record, field, memory), owner);
}

PyObject *record_make(const struct record *record, const char *memory, PyObject *owner)
{
    PyObject *made = record->make != NULL ? record->make(memory, owner) : PyDict_New();

    for (int i = 0; made != NULL && i < record->count; i++) {
        const struct value_type *field = &record->fields[i];
        PyObject *value;

        if (field->name == NULL) continue;
        if (record->keys[i] == NULL) record->keys[i] = PyUnicode_InternFromString(field->name);
        value = record->keys[i] != NULL ? field_make(record, field, memory, owner) : NULL;
        if (value == NULL || PyDict_SetItem(made, record->keys[i], value) < 0) Py_CLEAR(made);
        Py_XDECREF(value);
    }
    return made;
}

/* ---- calls ---- */

size_t call_count(const struct call *call, const struct value_type *list)
{
    const struct record record = {.fields = call->function->arguments};

    return count_of(&record, list, (const char *)call->values);
}

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

    if (type->kind == VALUE_HANDLE)
        return make_handle(type, call->outs[index].pointer, owner,
                           class_for(call->self, type->handle));
    if (type->kind == VALUE_RECORD && !type->is_pointer)
        return record_make(type->record, call->values[index].pointer, owner);
    if (type->kind == VALUE_LIST)
        return list_make(type, call->outs[index].pointer,
                         type->is_pointer ? call->outs[type->of].size : call->counts[index], owner);
    return value_make(type, &call->outs[index], owner);
}

/* What the function returns to C, which is not a status. */
static PyObject *make_answer(const struct call *call, PyObject *owner)
{
    const struct value_type *type = &call->function->arguments[call->function->count];
    const union value *value = &call->values[call->function->count];

    if (type->kind == VALUE_LIST)
        return list_make(type, value->constant, call_count(call, type), owner);
    return value_make(type, value, owner);
}

static PyObject *make_all(const struct call *call, PyObject *owner)
{
    unsigned set = call->function->results;
    PyObject *made[CALL_ARGUMENTS], *tuple;
    Py_ssize_t count = 0;

    for (; set != 0; set &= set - 1)
        made[count++] = make_out(call, __builtin_ctz(set), owner);
    if (count == 0) Py_RETURN_NONE;
    if (count == 1) return made[0];
    tuple = PyErr_Occurred() ? NULL : PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++)
        if (tuple != NULL)
            PyTuple_SetItem(tuple, i, made[i]);
        else
            Py_XDECREF(made[i]);
    return tuple;
}

PyObject *call_results(const struct call *call)
{
    const struct function *function = call->function;
    bool is_found = function->returns && function->results != 0 &&
                    function->arguments[function->count].kind == VALUE_BOOL;
    PyObject *owner, *made;

    if (is_found && !call->values[function->count].flag) Py_RETURN_NONE;
    owner = function->keeps ? kept(call) : NULL;
    if (owner == NULL && function->keeps && PyErr_Occurred()) return NULL;
    made = function->returns && !is_found ? make_answer(call, owner) : make_all(call, owner);
    Py_XDECREF(owner);
    return made;
}
