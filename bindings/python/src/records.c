/* records.c - Python objects as values of C, see call.h. */
#include "call.h"

#include <stdio.h>
#include <string.h>

/* ---- values ---- */

static int read_text(const struct value_type *type, PyObject *object, const char **out)
{
    Py_ssize_t length;

    if (!PyUnicode_Check(object)) return value_refuse(type, "a str", object);
    *out = PyUnicode_AsUTF8AndSize(object, &length);
    if (*out == NULL) return -1;
    if ((size_t)length == strlen(*out)) return 0;
    return refuse(PyExc_ValueError, "%s has a zero byte", type->name);
}

static int read_axes(const struct value_type *type, PyObject *object, struct arena *arena,
                     const char **out)
{
    if (PyLong_Check(object)) {
        object = PyObject_Str(object);
        if (arena_hold(arena, object) < 0) return -1;
    }
    return read_text(type, object, out);
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

/* An enum takes four bytes, or one. */
static int read_enum(const struct value_type *type, PyObject *object, void *out)
{
    const struct choices *choices = type->choices;
    PyObject *all, *text;
    uint32_t found = 0;

    while (found < choices->count &&
           choices->objects[found] != object) /* most texts are literals */
        found++;
    for (uint32_t i = 0; found == choices->count && PyUnicode_Check(object) && i < found; i++)
        if (PyUnicode_CompareWithASCIIString(object, choices->texts[i]) == 0) found = i;
    if (found < choices->count) {
        if (choices->objects[found] == NULL && PyUnicode_CheckExact(object))
            choices->objects[found] = Py_NewRef(object);
        value_store(out, value_bytes(type, VALUE_ENUM), (uint32_t)choices->values[found]);
        return 0;
    }
    all = PyList_New(0);
    for (uint32_t i = 0; all != NULL && i < choices->count; i++) {
        text = PyUnicode_FromString(choices->texts[i]);
        if (text == NULL || PyList_Append(all, text) < 0) Py_CLEAR(all);
        Py_XDECREF(text);
    }
    if (all != NULL)
        Py_XDECREF(package_call("weft._errors", "refuse_choice", "(sON)", type->name, object, all));
    return -1;
}

void record_begin(const struct record *record, char *memory)
{
    if (record->is_sized) value_store(memory, record->size_bytes, record->size);
    for (int i = 0; i < record->count; i++)
        if (record->fields[i].kind == VALUE_ELEMENT)
            value_store(memory + record->fields[i].offset, sizeof(size_t),
                        record->fields[i].length);
}

/* Set the fields of a struct that are called by name in the list PAIRS. */
static int read_pairs(const struct value_type *type, PyObject *pairs, struct arena *arena,
                      char *out)
{
    for (Py_ssize_t i = 0; i < PyList_Size(pairs); i++) {
        PyObject *pair = PyList_GetItem(pairs, i), *name = PyTuple_GetItem(pair, 0);
        int result = record_set(type->record, out, name, PyTuple_GetItem(pair, 1), arena);

        if (result == 0)
            PyErr_Format(PyExc_TypeError, "an entry of %s has no %R", type->name, name);
        if (result <= 0) return -1;
    }
    return 0;
}

/* A struct from a dictionary of its fields, or from a sequence of them. */
static int read_record(const struct value_type *type, PyObject *object, struct arena *arena,
                       char *out)
{
    const struct record *record = type->record;
    bool has_names = PyDict_Check(object);
    Py_ssize_t count, next = 0;
    PyObject *given;

    record_begin(record, out);
    if (!has_names && (PyUnicode_Check(object) || !PySequence_Check(object)))
        return refuse(PyExc_TypeError, "an entry of %s must be a dictionary or a tuple, not %R",
                      type->name, object);
    given = has_names ? PyDict_Items(object) : PySequence_List(object);
    if (arena_hold(arena, given) < 0) return -1;
    if (has_names) return read_pairs(type, given, arena, out);
    count = PyList_Size(given);
    for (int i = 0; i < record->count && next < count; i++)
        if (record->fields[i].name != NULL && record->fields[i].kind != VALUE_BITS &&
            field_set(record, &record->fields[i], out, PyList_GetItem(given, next++), arena) < 0)
            return -1;
    if (next == count) return 0;
    return refuse(PyExc_ValueError, "an entry of %s has at most %zd values, not %zd", type->name,
                  next, count);
}

static int read_kind(const struct value_type *type, uint8_t kind, PyObject *object,
                     struct arena *arena, void *out)
{
    switch (kind) {
    case VALUE_BOOL:
        *(bool *)out = PyObject_IsTrue(object) == 1;
        return PyErr_Occurred() ? -1 : 0;
    case VALUE_U8:
    case VALUE_I32:
    case VALUE_U32:
    case VALUE_I64:
    case VALUE_U64:
    case VALUE_SIZE:
        return integer_read(type, kind, object, out);
    case VALUE_F64:
        return double_read(type, object, out);
    case VALUE_TIMEOUT:
        return timeout_read(type, object, out);
    case VALUE_ENUM:
        return read_enum(type, object, out);
    case VALUE_TEXT:
        return read_text(type, object, out);
    case VALUE_AXES:
        return read_axes(type, object, arena, out);
    case VALUE_PATH:
        return read_path(object, arena, out);
    case VALUE_ADDRESS:
        *(void **)out = PyLong_AsVoidPtr(object);
        return PyErr_Occurred() ? value_refuse(type, "an address, an int", object) : 0;
    case VALUE_HANDLE:
        *(void **)out = handle_use(object, type->handle, type->name, arena);
        if (*(void **)out == NULL) return -1;
        return type->handle->retain == NULL ? arena_keep(arena, Py_NewRef(object)) : 0;
    case VALUE_STREAM:
        return arena_stream(arena, object, out);
    case VALUE_RECORD:
        return read_record(type, object, arena, out);
    case VALUE_STATE:
        *(void **)out = arena_take(arena, type->record->size);
        if (*(void **)out == NULL) return -1;
        record_begin(type->record, *(void **)out);
        return read_record(type, object, arena, *(void **)out);
    default:
        return 0;
    }
}

int value_read(const struct value_type *type, PyObject *object, struct arena *arena, void *out)
{
    if (object == Py_None && type->is_optional) return 0;
    return read_kind(type, type->kind, object, arena, out);
}

/* ---- lists and structs ---- */

static int refuse_list(const struct value_type *type, PyObject *object)
{
    char wanted[64] = "a list";

    if (type->element == VALUE_HANDLE)
        snprintf(wanted, sizeof wanted, "a list of weft.%s", type->handle->name);
    return value_refuse(type, wanted, object);
}

int list_read(const struct value_type *type, PyObject *object, struct arena *arena, void **out,
              size_t *count)
{
    size_t bytes = value_bytes(type, type->element);
    PyObject *items;
    char *memory;

    if (object == Py_None || PyUnicode_Check(object) || PyBytes_Check(object))
        return refuse_list(type, object);
    if (PyDict_Check(object) && type->element == VALUE_RECORD && type->record->count == 2) {
        object = PyDict_Items(object); /* of pairs, such as metadata */
        if (arena_hold(arena, object) < 0) return -1;
    }
    items = PySequence_Tuple(object);
    if (items == NULL) return refuse_list(type, object);
    if (arena_hold(arena, items) < 0) return -1;
    *count = (size_t)PyTuple_Size(items);
    if (*count > INT32_MAX) return refuse(PyExc_ValueError, "%s has too many entries", type->name);
    memory = arena_take(arena, *count * bytes);
    *out = memory;
    for (size_t i = 0; memory != NULL && i < *count; i++) {
        PyObject *item = PyTuple_GetItem(items, (Py_ssize_t)i);

        if (item == Py_None && type->element == VALUE_HANDLE && type->is_owned == 0) continue;
        if (read_kind(type, type->element, item, arena, memory + i * bytes) < 0) return -1;
    }
    return memory != NULL ? 0 : -1;
}

size_t count_of(const struct record *record, const struct value_type *list, const char *memory)
{
    const struct value_type *of = list->of >= 0 ? &record->fields[list->of] : NULL;

    if (list->measure != NULL)
        return (size_t)list->measure((const union value *)(const void *)memory);
    if (of == NULL) return list->length;
    if (list->count != NULL)
        return (size_t)list->count(*(void *const *)(const void *)(memory + of->offset));
    return (size_t)value_load(memory + of->offset, value_bytes(of, of->element));
}

/* Whether the count of FIELD is known: from another list, which was set, or from a handle. */
static bool has_count(const struct record *record, const struct value_type *field,
                      const char *memory)
{
    if (field->count != NULL || field->measure != NULL) return true;
    for (int i = 0; i < record->count; i++) {
        const struct value_type *other = &record->fields[i];

        if (other != field && other->kind == VALUE_LIST && other->of == field->of &&
            other->of >= 0 && other->length == 0 && other->within == 0 &&
            *(void *const *)(const void *)(memory + other->offset) != NULL)
            return true;
    }
    return false;
}

/* Set the list FIELD of RECORD, and the field that has its count. */
static int set_list(const struct record *record, const struct value_type *field, char *memory,
                    PyObject *object, struct arena *arena)
{
    const struct value_type *of = field->of >= 0 ? &record->fields[field->of] : NULL;
    size_t entries = 0, most = field->length;
    void *list = NULL;

    if (object == Py_None && field->is_optional) return 0;
    if (list_read(field, object, arena, &list, &entries) < 0) return -1;
    if (most > 0 && entries > most)
        return refuse(PyExc_ValueError, "%s has %zu entries; expected at most %zu", field->name,
                      entries, most);
    if (field->within != 0) {
        value_store(*(char **)(void *)(memory + of->offset) + field->within, sizeof(size_t),
                    entries);
    } else if (most == 0 && has_count(record, field, memory)) {
        size_t wanted = count_of(record, field, memory);

        if (entries != wanted)
            return refuse(PyExc_ValueError, "%s has %zu entries; expected %zu%s", field->name,
                          entries, wanted,
                          field->count == NULL && field->measure == NULL ? ", as the list beside it"
                                                                         : "");
    } else if (of != NULL) {
        value_store(memory + of->offset, value_bytes(of, of->element), entries);
    }
    if (most > 0)
        memcpy(memory + field->offset, list, entries * value_bytes(field, field->element));
    else
        memcpy(memory + field->offset, &list, sizeof list);
    return 0;
}

int field_set(const struct record *record, const struct value_type *field, char *memory,
              PyObject *object, struct arena *arena)
{
    if (field->kind == VALUE_LIST) return set_list(record, field, memory, object, arena);
    if (field->kind == VALUE_CALLBACK) return arena->callback(record, field, memory, object, arena);
    return value_read(field, object, arena, memory + field->offset);
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

        if (field->kind == VALUE_BITS) {
            int result = set_bit(field, memory, name, object);

            if (result != 0) return result;
            continue;
        }
        if (field->name == NULL || PyUnicode_CompareWithASCIIString(name, field->name) != 0)
            continue;
        return field_set(record, field, memory, object, arena) < 0 ? -1 : 1;
    }
    return 0;
}
