/* records.c - Python objects as values of C, see call.h. */
#include "callback.h"

#include <string.h>

/* ---- values ---- */

/* The integers, by their kinds. */
static const struct {
    uint8_t bytes;
    bool is_signed;
    const char *range;
} integers[] = {
    [VALUE_U8] = {1, false, "0 to 255"},       [VALUE_I32] = {4, true, "-2^31 to 2^31 - 1"},
    [VALUE_U32] = {4, false, "0 to 2^32 - 1"}, [VALUE_I64] = {8, true, "-2^63 to 2^63 - 1"},
    [VALUE_U64] = {8, false, "0 to 2^64 - 1"}, [VALUE_SIZE] = {8, false, "0 to 2^64 - 1"}};

size_t value_bytes(const struct value_type *type, uint8_t kind)
{
    switch (kind) {
    case VALUE_BOOL:
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

static void store(void *out, size_t bytes, uint64_t value)
{
    if (bytes == 1)
        *(uint8_t *)out = (uint8_t)value;
    else if (bytes == 4)
        *(uint32_t *)out = (uint32_t)value;
    else
        *(uint64_t *)out = value;
}

uint64_t value_load(const void *memory, size_t bytes)
{
    return bytes == 1   ? *(const uint8_t *)memory
           : bytes == 4 ? *(const uint32_t *)memory
                        : *(const uint64_t *)memory;
}

static int refuse(const struct value_type *type, const char *wanted, PyObject *object)
{
    PyErr_Format(PyExc_TypeError, "%s must be %s, not %R", type->name, wanted, object);
    return -1;
}

static int read_integer(const struct value_type *type, uint8_t kind, PyObject *object, void *out)
{
    PyObject *number = PyNumber_Index(object);
    bool narrow = integers[kind].bytes < 8;
    uint64_t value;

    if (number == NULL) return -1;
    value = integers[kind].is_signed ? (uint64_t)PyLong_AsLongLong(number)
                                     : PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    if (integers[kind].is_signed)
        narrow = narrow && (int64_t)value != (int32_t)value;
    else
        narrow = narrow && value >> (8 * integers[kind].bytes) != 0;
    if (!PyErr_Occurred() && !narrow) {
        store(out, integers[kind].bytes, value);
        return 0;
    }
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s is %S, which is out of range; expected a number from %s",
                 type->name, object, integers[kind].range);
    return -1;
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

/* An enum takes four bytes, or one. */
static int read_enum(const struct value_type *type, PyObject *object, void *out)
{
    const struct value_type texts = {.element = VALUE_TEXT};
    const struct choices *choices = type->choices;
    PyObject *all, *comma, *text;

    for (uint32_t i = 0; PyUnicode_Check(object) && i < choices->count; i++)
        if (PyUnicode_CompareWithASCIIString(object, choices->texts[i]) == 0) {
            store(out, value_bytes(type, VALUE_ENUM), (uint32_t)choices->values[i]);
            return 0;
        }
    all = list_make(&texts, choices->texts, choices->count, NULL);
    comma = PyUnicode_FromString(", ");
    text = all != NULL && comma != NULL ? PyUnicode_Join(comma, all) : NULL;
    if (text != NULL)
        PyErr_Format(PyExc_ValueError, "%s is %R; expected one of: %U", type->name, object, text);
    Py_XDECREF(all);
    Py_XDECREF(comma);
    Py_XDECREF(text);
    return -1;
}

/* With less than 0 seconds or math.inf a call waits forever.  Of a limit that is not OPTIONAL, 0 is
 * the default, and it is not negative. */
static int read_timeout(const struct value_type *type, PyObject *object, int64_t *out)
{
    double seconds = PyFloat_AsDouble(object);

    if (PyErr_Occurred()) return -1;
    if (!type->is_optional && !(seconds >= 0)) {
        PyErr_Format(PyExc_ValueError,
                     "%s is %S; expected a number of seconds, 0 for the default, or math.inf for "
                     "no limit",
                     type->name, object);
        return -1;
    }
    *out = seconds >= 0 && seconds < 9e9 ? (int64_t)(seconds * 1e9) : WEFT_FOREVER;
    if (*out == 0 && seconds > 0 && !type->is_optional) *out = 1;
    return 0;
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

    if (!has_names && (PyUnicode_Check(object) || !PySequence_Check(object))) {
        PyErr_Format(PyExc_TypeError, "an entry of %s must be a dictionary or a tuple, not %R",
                     type->name, object);
        return -1;
    }
    given = has_names ? PyDict_Items(object) : PySequence_List(object);
    if (arena_hold(arena, given) < 0) return -1;
    if (has_names) return read_pairs(type, given, arena, out);
    count = PyList_Size(given);
    for (int i = 0; i < record->count && next < count; i++)
        if (record->fields[i].name != NULL && record->fields[i].kind != VALUE_BITS &&
            field_set(record, &record->fields[i], out, PyList_GetItem(given, next++), arena) < 0)
            return -1;
    if (next == count) return 0;
    PyErr_Format(PyExc_ValueError, "an entry of %s has at most %zd values, not %zd", type->name,
                 next, count);
    return -1;
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
        return read_integer(type, kind, object, out);
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
        return *(void **)out != NULL ? read_record(type, object, arena, *(void **)out) : -1;
    default:
        return 0;
    }
}

int value_read(const struct value_type *type, PyObject *object, struct arena *arena, void *out)
{
    if (object == Py_None && type->is_optional) return 0;
    return read_kind(type, type->kind, object, arena, out);
}

/* ---- numbers for functions that are written by hand ---- */

int to_u64(PyObject *object, void *out)
{
    static const struct value_type type = {.name = "the number", .kind = VALUE_U64};

    return value_read(&type, object, NULL, out) == 0;
}

int to_u32(PyObject *object, void *out)
{
    static const struct value_type type = {.name = "the number", .kind = VALUE_U32};

    return value_read(&type, object, NULL, out) == 0;
}

int to_timeout(PyObject *object, void *out)
{
    static const struct value_type type = {.name = "timeout", .kind = VALUE_TIMEOUT};

    return value_read(&type, object, NULL, out) == 0;
}

static const struct value_type sizes = {.name = "the shape", .element = VALUE_I64};

int32_t numbers_of(PyObject *sequence, int64_t *out)
{
    struct arena arena = {0};
    void *numbers = NULL;
    size_t count = 0;
    int result = list_read(&sizes, sequence, &arena, &numbers, &count);

    if (result == 0 && count > WEFT_MAX_DIMS)
        PyErr_Format(PyExc_ValueError, "a shape has at most %d dimensions", WEFT_MAX_DIMS);
    else if (result == 0)
        memcpy(out, numbers, count * sizeof *out);
    arena_end(&arena);
    return PyErr_Occurred() ? -1 : (int32_t)count;
}

PyObject *tuple_of(int32_t count, const int64_t *numbers)
{
    return list_make(&sizes, numbers, (size_t)count, NULL);
}

/* ---- lists and structs ---- */

int list_read(const struct value_type *type, PyObject *object, struct arena *arena, void **out,
              size_t *count)
{
    size_t bytes = value_bytes(type, type->element);
    PyObject *items;
    char *memory;

    if (object == Py_None || PyUnicode_Check(object) || PyBytes_Check(object))
        return refuse(type, "a list", object);
    items = PySequence_Tuple(object);
    if (arena_hold(arena, items) < 0) return -1;
    *count = (size_t)PyTuple_Size(items);
    if (*count > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s has too many entries", type->name);
        return -1;
    }
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
    if (most > 0 && entries > most) {
        PyErr_Format(PyExc_ValueError, "%s has %zu entries; expected at most %zu", field->name,
                     entries, most);
        return -1;
    }
    if (field->within != 0) {
        store(*(char **)(void *)(memory + of->offset) + field->within, 4, entries);
    } else if (most == 0 && has_count(record, field, memory)) {
        size_t wanted = count_of(record, field, memory);

        if (entries != wanted) {
            PyErr_Format(PyExc_ValueError, "%s has %zu entries; expected %zu%s", field->name,
                         entries, wanted,
                         field->count == NULL && field->measure == NULL ? ", as the list beside it"
                                                                        : "");
            return -1;
        }
    } else if (of != NULL) {
        store(memory + of->offset, value_bytes(of, of->element), entries);
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
    if (field->kind == VALUE_CALLBACK) return callback_field(record, field, memory, object, arena);
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
