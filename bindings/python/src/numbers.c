/* numbers.c - numbers of Python as numbers of C, and back. */
#include "call.h"

#include <string.h>

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
        return 4;
    case VALUE_BITS:
        return type->element == VALUE_U64 ? 8 : 4;
    case VALUE_ENUM:
        return type->element == VALUE_U8 ? 1 : 4;
    case VALUE_RECORD:
        return type->record->size;
    default:
        return 8;
    }
}

void value_store(void *out, size_t bytes, uint64_t value)
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

/* A TypeError; one of another object, which has no name of an argument, is replaced. */
int value_refuse(const struct value_type *type, const char *wanted, PyObject *object)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return refuse(PyExc_TypeError, "%s%s must be %s, not %R",
                  type->kind == VALUE_LIST && strncmp(wanted, "a list", 6) != 0 ? "an entry of "
                                                                                : "",
                  type->name, wanted, object);
}

int integer_read(const struct value_type *type, uint8_t kind, PyObject *object, void *out)
{
    PyObject *number = PyLong_CheckExact(object) ? Py_NewRef(object) : PyNumber_Index(object);
    bool narrow = integers[kind].bytes < 8, failed;
    uint64_t value;

    if (number == NULL) return value_refuse(type, "an int", object);
    value = integers[kind].is_signed ? (uint64_t)PyLong_AsLongLong(number)
                                     : PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    failed = value == UINT64_MAX && PyErr_Occurred() != NULL;
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    if (integers[kind].is_signed)
        narrow = narrow && (int64_t)value != (int32_t)value;
    else
        narrow = narrow && value >> (8 * integers[kind].bytes) != 0;
    if (!failed && !narrow) {
        value_store(out, integers[kind].bytes, value);
        return 0;
    }
    PyErr_Clear();
    return refuse(PyExc_ValueError, "%s is %S, which is out of range; expected a number from %s",
                  type->name, object, integers[kind].range);
}

int double_read(const struct value_type *type, PyObject *object, double *out)
{
    *out = PyFloat_AsDouble(object);
    return PyErr_Occurred() ? value_refuse(type, "a number", object) : 0;
}

/* With math.inf a call waits forever.  Of a limit that is not OPTIONAL, 0 is the default. */
int timeout_read(const struct value_type *type, PyObject *object, int64_t *out)
{
    double seconds;

    if (double_read(type, object, &seconds) < 0) return -1;
    if (!(seconds >= 0))
        return refuse(PyExc_ValueError,
                      "%s is %S; expected a number of seconds, %s, or math.inf for no limit",
                      type->name, object,
                      type->is_optional ? "None for no limit" : "0 for the default");
    *out = seconds < 9e9 ? (int64_t)(seconds * 1e9) : WEFT_FOREVER;
    if (*out == 0 && seconds > 0 && !type->is_optional) *out = 1;
    return 0;
}

/* ---- numbers for functions that are written by hand ---- */

int to_u64(PyObject *object, void *out)
{
    static const struct value_type type = {.name = "the number"};

    return integer_read(&type, VALUE_U64, object, out) == 0;
}

int to_timeout(PyObject *object, void *out)
{
    static const struct value_type type = {.name = "timeout"};

    return timeout_read(&type, object, out) == 0;
}

static const struct value_type sizes = {.name = "the shape", .kind = VALUE_LIST};

int32_t numbers_of(PyObject *sequence, int64_t *out)
{
    bool is_list = sequence != Py_None && !PyUnicode_Check(sequence) && !PyBytes_Check(sequence);
    PyObject *items = is_list ? PySequence_Tuple(sequence) : NULL;
    Py_ssize_t count = items != NULL ? PyTuple_Size(items) : 0;
    int64_t number;

    if (items == NULL) return value_refuse(&sizes, "a list", sequence);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++)
        if (integer_read(&sizes, VALUE_I64, PyTuple_GetItem(items, i), &number) == 0 &&
            i < WEFT_MAX_DIMS)
            out[i] = number;
    Py_DECREF(items);
    if (count > WEFT_MAX_DIMS && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "a shape has at most %d dimensions", WEFT_MAX_DIMS);
    return PyErr_Occurred() ? -1 : (int32_t)count;
}

PyObject *tuple_of(int32_t count, const int64_t *numbers)
{
    PyObject *tuple = PyTuple_New(count);

    for (int32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(numbers[i]);

        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}
