/* records.c - values of C and Python objects. */
#include "callback.h"

#include <string.h>

/* ---- from Python ---- */

size_t value_bytes(const struct value_type *type, uint8_t kind)
{
    switch (kind) {
    case VALUE_BOOL:
        return sizeof(bool);
    case VALUE_U8:
        return 1;
    case VALUE_I32:
    case VALUE_U32:
    case VALUE_BITS:
        return 4;
    case VALUE_ENUM:
        return type->element == VALUE_U8 ? 1 : 4;
    case VALUE_RECORD:
        return type->record->size;
    default:
        return 8;
    }
}

static int refuse(const struct value_type *type, const char *wanted, PyObject *object)
{
    PyErr_Format(PyExc_TypeError, "%s must be %s, not %R", type->name, wanted, object);
    return -1;
}

static int out_of_range(const struct value_type *type, PyObject *object, const char *range)
{
    PyErr_Format(PyExc_ValueError, "%s is %S, which is out of range; expected a number from %s",
                 type->name, object, range);
    return -1;
}

static int read_signed(const struct value_type *type, PyObject *object, bool wide, void *out)
{
    PyObject *number = PyNumber_Index(object);
    int over = 0;
    long long value;

    if (number == NULL) return -1;
    value = PyLong_AsLongLongAndOverflow(number, &over);
    Py_DECREF(number);
    if (over != 0 || (!wide && (value < INT32_MIN || value > INT32_MAX)))
        return out_of_range(type, object, wide ? "-2^63 to 2^63 - 1" : "-2^31 to 2^31 - 1");
    if (wide)
        *(int64_t *)out = value;
    else
        *(int32_t *)out = (int32_t)value;
    return 0;
}

static int read_unsigned(const struct value_type *type, PyObject *object, uint64_t most, void *out)
{
    PyObject *number = PyNumber_Index(object);
    uint64_t value;

    if (number == NULL) return -1;
    value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    if (PyErr_Occurred() || value > most) {
        PyErr_Clear();
        return out_of_range(type, object,
                            most == UINT8_MAX    ? "0 to 255"
                            : most == UINT32_MAX ? "0 to 2^32 - 1"
                                                 : "0 to 2^64 - 1");
    }
    if (most == UINT8_MAX)
        *(uint8_t *)out = (uint8_t)value;
    else if (most == UINT32_MAX)
        *(uint32_t *)out = (uint32_t)value;
    else
        *(uint64_t *)out = value;
    return 0;
}

static int read_text(const struct value_type *type, PyObject *object, const char **out)
{
    Py_ssize_t length;

    if (!PyUnicode_Check(object)) return refuse(type, "a str", object);
    *out = PyUnicode_AsUTF8AndSize(object, &length);
    if (*out == NULL) return -1;
    if ((size_t)length == strlen(*out)) return 0;
    PyErr_Format(PyExc_ValueError, "%s has a zero byte", type->name);
    return -1;
}

static int read_path(PyObject *object, struct arena *arena, const char **out)
{
    PyObject *bytes = NULL;
    char *text;

    if (!PyUnicode_FSConverter(object, &bytes)) return -1;
    if (arena_hold(arena, bytes) < 0 || PyBytes_AsStringAndSize(bytes, &text, NULL) < 0) return -1;
    *out = text;
    return 0;
}

static int read_choice(const struct value_type *type, PyObject *object, int32_t *out)
{
    const struct choices *choices = type->choices;
    PyObject *list, *comma, *text;

    for (uint32_t i = 0; i < choices->count; i++) {
        if (!PyUnicode_Check(object) ||
            PyUnicode_CompareWithASCIIString(object, choices->texts[i]) != 0)
            continue;
        *out = choices->values[i];
        return 0;
    }
    list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < choices->count; i++) {
        text = PyUnicode_FromString(choices->texts[i]);
        if (text == NULL || PyList_Append(list, text) < 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    comma = PyUnicode_FromString(", ");
    text = list != NULL && comma != NULL ? PyUnicode_Join(comma, list) : NULL;
    if (text != NULL)
        PyErr_Format(PyExc_ValueError, "%s is %R; expected one of: %U", type->name, object, text);
    Py_XDECREF(list);
    Py_XDECREF(comma);
    Py_XDECREF(text);
    return -1;
}

/* An enum takes four bytes, or one. */
static int read_enum(const struct value_type *type, PyObject *object, void *out)
{
    int32_t value = 0;

    if (read_choice(type, object, &value) < 0) return -1;
    if (type->element == VALUE_U8)
        *(uint8_t *)out = (uint8_t)value;
    else
        *(int32_t *)out = value;
    return 0;
}

static int read_timeout(const struct value_type *type, PyObject *object, int64_t *out)
{
    if (!type->is_optional) return to_timeout(object, out) ? 0 : -1;
    *out = nanoseconds(PyFloat_AsDouble(object));
    return PyErr_Occurred() ? -1 : 0;
}

/* A struct from a dictionary of its fields, or from a sequence of them. */
static int read_record(const struct value_type *type, PyObject *object, struct arena *arena,
                       char *out)
{
    const struct record *record = type->record;
    PyObject *pairs, *given;
    int result = -1;

    if (!PyDict_Check(object) && (PyUnicode_Check(object) || !PySequence_Check(object))) {
        PyErr_Format(PyExc_TypeError, "an entry of %s must be a dictionary or a tuple, not %R",
                     type->name, object);
        return -1;
    }
    given = PyDict_Check(object) ? Py_NewRef(object) : PyDict_New();
    if (given == NULL) return -1;
    if (!PyDict_Check(object)) {
        PyObject *values = PySequence_Tuple(object);
        Py_ssize_t next = 0, count = values != NULL ? PyTuple_Size(values) : -1;

        for (int i = 0; i < record->count && next < count; i++)
            if (record->fields[i].name != NULL &&
                PyDict_SetItemString(given, record->fields[i].name,
                                     PyTuple_GetItem(values, next++)) < 0)
                break;
        if (count >= 0 && next < count && !PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "an entry of %s has at most %zd values, not %zd",
                         type->name, next, count);
        Py_XDECREF(values);
    }
    pairs = PyErr_Occurred() ? NULL : PyDict_Items(given);
    for (Py_ssize_t i = 0; pairs != NULL && i < PyList_Size(pairs); i++) {
        PyObject *pair = PyList_GetItem(pairs, i), *name = PyTuple_GetItem(pair, 0);

        result = record_set(record, out, name, PyTuple_GetItem(pair, 1), arena);
        if (result == 0)
            PyErr_Format(PyExc_TypeError, "an entry of %s has no %R", type->name, name);
        if (result <= 0) break;
    }
    if (pairs != NULL && arena_hold(arena, pairs) < 0) result = -1;
    Py_DECREF(given);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_kind(const struct value_type *type, uint8_t kind, PyObject *object,
                     struct arena *arena, void *out)
{
    switch (kind) {
    case VALUE_BOOL:
        *(bool *)out = PyObject_IsTrue(object) == 1;
        return PyErr_Occurred() ? -1 : 0;
    case VALUE_U8:
        return read_unsigned(type, object, UINT8_MAX, out);
    case VALUE_I32:
        return read_signed(type, object, false, out);
    case VALUE_U32:
        return read_unsigned(type, object, UINT32_MAX, out);
    case VALUE_I64:
        return read_signed(type, object, true, out);
    case VALUE_U64:
    case VALUE_SIZE:
        return read_unsigned(type, object, UINT64_MAX, out);
    case VALUE_F64:
        *(double *)out = PyFloat_AsDouble(object);
        return PyErr_Occurred() ? -1 : 0;
    case VALUE_TIMEOUT:
        return read_timeout(type, object, out);
    case VALUE_ENUM:
        return read_enum(type, object, out);
    case VALUE_TEXT:
        return read_text(type, object, out);
    case VALUE_PATH:
        return read_path(object, arena, out);
    case VALUE_ADDRESS:
        *(void **)out = PyLong_AsVoidPtr(object);
        return PyErr_Occurred() ? -1 : 0;
    case VALUE_HANDLE: {
        void *raw = handle_of(object, type->handle, type->name);

        *(void **)out = raw;
        if (raw == NULL || arena_use(arena, object) < 0) return -1;
        return type->handle->retain == NULL ? arena_keep(arena, Py_NewRef(object)) : 0;
    }
    case VALUE_STREAM:
        return arena_stream(arena, object, out);
    case VALUE_RECORD:
        return read_record(type, object, arena, out);
    case VALUE_STATE: {
        char *memory = arena_take(arena, type->record->size);

        *(void **)out = memory;
        return memory != NULL ? read_record(type, object, arena, memory) : -1;
    }
    default:
        return 0;
    }
}

int value_read(const struct value_type *type, PyObject *object, struct arena *arena, void *out)
{
    if (object == Py_None && type->is_optional) return 0;
    return read_kind(type, type->kind, object, arena, out);
}

int list_read(const struct value_type *type, PyObject *object, struct arena *arena, void **out,
              size_t *count)
{
    size_t bytes = value_bytes(type, type->element);
    PyObject *items;
    char *memory;

    if (PyUnicode_Check(object) || PyBytes_Check(object)) return refuse(type, "a list", object);
    items = PySequence_Tuple(object);
    if (arena_hold(arena, items) < 0) return -1;
    *count = (size_t)PyTuple_Size(items);
    memory = arena_take(arena, *count * bytes);
    *out = memory;
    for (size_t i = 0; memory != NULL && i < *count; i++) {
        PyObject *item = PyTuple_GetItem(items, (Py_ssize_t)i);

        if (item == Py_None && type->element == VALUE_HANDLE && type->is_owned == 0) continue;
        if (read_kind(type, type->element, item, arena, memory + i * bytes) < 0) return -1;
    }
    return memory != NULL ? 0 : -1;
}

/* Set the list FIELD of RECORD, and the field that has its count. */
static int set_list(const struct record *record, const struct value_type *field, char *memory,
                    PyObject *object, struct arena *arena)
{
    const struct value_type *count = field->of >= 0 ? &record->fields[field->of] : NULL;
    size_t entries = 0;
    void *list = NULL;

    if (object == Py_None) return 0;
    if (list_read(field, object, arena, &list, &entries) < 0) return -1;
    if (field->length > 0) {
        if (entries > field->length) {
            PyErr_Format(PyExc_ValueError, "%s has %zu entries; expected at most %u", field->name,
                         entries, field->length);
            return -1;
        }
        memcpy(memory + field->offset, list, entries * value_bytes(field, field->element));
    } else {
        memcpy(memory + field->offset, &list, sizeof list);
    }
    if (count == NULL) return 0;
    if (value_bytes(count, count->element) == 4)
        *(uint32_t *)(void *)(memory + count->offset) = (uint32_t)entries;
    else
        *(uint64_t *)(void *)(memory + count->offset) = entries;
    return 0;
}

/* Set the bit of FIELD that is called NAME; 0 if there is none. */
static int set_bit(const struct value_type *field, char *memory, PyObject *name, PyObject *object)
{
    for (uint32_t i = 0; i < field->choices->count; i++) {
        int is_set;

        if (PyUnicode_CompareWithASCIIString(name, field->choices->texts[i]) != 0) continue;
        is_set = PyObject_IsTrue(object);
        if (is_set == 1)
            *(uint32_t *)(void *)(memory + field->offset) |= (uint32_t)field->choices->values[i];
        return is_set < 0 ? -1 : 1;
    }
    return 0;
}

int record_set(const struct record *record, char *memory, PyObject *name, PyObject *object,
               struct arena *arena)
{
    for (int i = 0; i < record->count; i++) {
        const struct value_type *field = &record->fields[i];
        int result;

        if (field->kind == VALUE_BITS) {
            result = set_bit(field, memory, name, object);
            if (result != 0) return result;
            continue;
        }
        if (field->name == NULL || PyUnicode_CompareWithASCIIString(name, field->name) != 0)
            continue;
        if (field->kind == VALUE_LIST)
            result = set_list(record, field, memory, object, arena);
        else if (field->kind == VALUE_CALLBACK)
            result = callback_field(record, field, memory, object, arena);
        else
            result = value_read(field, object, arena, memory + field->offset);
        return result < 0 ? -1 : 1;
    }
    return 0;
}

/* ---- to Python ---- */

static PyObject *make_choice(const struct choices *choices, int32_t value)
{
    for (uint32_t i = 0; i < choices->count; i++)
        if (choices->values[i] == value) return PyUnicode_FromString(choices->texts[i]);
    return PyLong_FromLong(value);
}

static PyObject *make_bits(const struct choices *choices, uint32_t bits)
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

static PyObject *make_handle(const struct value_type *type, void *raw, PyObject *owner)
{
    PyObject *made = NULL;
    context_object *context;

    if (type->handle->type == &binding.context && owner != NULL)
        return Py_NewRef((PyObject *)context_behind(owner));
    made = handle_make(type->handle, raw, type->is_owned, owner);
    context = owner != NULL && made != NULL && made != Py_None
                  ? context_behind(PyTuple_Check(owner) ? PyTuple_GetItem(owner, 0) : owner)
                  : NULL;

    if (context == NULL) return made;
    if (type->handle->retain != NULL && type->handle->type != &binding.tensor) return made;
    ((handle_object *)made)->context = (context_object *)Py_NewRef((PyObject *)context);
    context->used++;
    return made;
}

static PyObject *make_kind(const struct value_type *type, uint8_t kind, const void *memory,
                           PyObject *owner)
{
    switch (kind) {
    case VALUE_BOOL:
        return PyBool_FromLong(*(const bool *)memory);
    case VALUE_U8:
        return PyLong_FromLong(*(const uint8_t *)memory);
    case VALUE_I32:
        return PyLong_FromLong(*(const int32_t *)memory);
    case VALUE_U32:
        return PyLong_FromUnsignedLong(*(const uint32_t *)memory);
    case VALUE_TIMEOUT:
    case VALUE_I64:
        return PyLong_FromLongLong(*(const int64_t *)memory);
    case VALUE_U64:
    case VALUE_SIZE:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)memory);
    case VALUE_F64:
        return PyFloat_FromDouble(*(const double *)memory);
    case VALUE_ENUM:
        return make_choice(type->choices, type->element == VALUE_U8 ? *(const uint8_t *)memory
                                                                    : *(const int32_t *)memory);
    case VALUE_BITS:
        return make_bits(type->choices, *(const uint32_t *)memory);
    case VALUE_TEXT:
    case VALUE_PATH:
        return make_text(type->is_pointer || type->length == 0 ? *(const char *const *)memory
                                                               : (const char *)memory);
    case VALUE_ADDRESS:
        return PyLong_FromVoidPtr(*(void *const *)memory);
    case VALUE_NATIVE:
    case VALUE_MEMORY:
        return frame_make(kind, *(void *const *)memory, owner);
    case VALUE_HANDLE:
        return make_handle(type, *(void *const *)memory, owner);
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
    for (size_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = make_kind(type, type->element, (const char *)memory + i * bytes, owner);

        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *make_field(const struct record *record, const struct value_type *field,
                            const char *memory, PyObject *owner)
{
    const char *at = memory + field->offset;
    size_t count = field->length;

    if (field->kind != VALUE_LIST) return value_make(field, at, owner);
    if (field->of >= 0) {
        const struct value_type *of = &record->fields[field->of];
        const char *number = memory + of->offset;

        count = value_bytes(of, of->element) == 4 ? *(const uint32_t *)(const void *)number
                                                  : *(const uint64_t *)(const void *)number;
    }
    return list_make(field, field->length > 0 ? at : *(const void *const *)(const void *)at, count,
                     owner);
}

PyObject *record_make(const struct record *record, const char *memory, PyObject *owner)
{
    PyObject *made = record->make != NULL ? record->make(memory, owner) : PyDict_New();

    for (int i = 0; made != NULL && i < record->count; i++) {
        const struct value_type *field = &record->fields[i];
        PyObject *value;

        if (field->name == NULL) continue;
        if (record->keys[i] == NULL) record->keys[i] = PyUnicode_InternFromString(field->name);
        value = record->keys[i] != NULL ? make_field(record, field, memory, owner) : NULL;
        if (value == NULL || PyDict_SetItem(made, record->keys[i], value) < 0) Py_CLEAR(made);
        Py_XDECREF(value);
    }
    return made;
}
