/* call.c - see call.h. */
#include "call_state.h"
#include "callback.h"
#include "interrupt.h"
#include "place.h"

#include <string.h>

/* ---- which object is which argument ---- */

static int bind_positions(struct call *call, PyObject *args)
{
    Py_ssize_t count = args != NULL ? PyTuple_Size(args) : 0, given = 0;
    const int8_t *next = call->function->stated;

    while (given < count && *next >= 0)
        call->objects[*next++] = PyTuple_GetItem(args, given++);
    if (given == count) return 0;
    PyErr_Format(PyExc_TypeError, "%s() takes at most %zd positional arguments, not %zd",
                 call->function->name, given, count);
    return -1;
}

/* Set the option called NAME; 0: the function has no such option. */
static int set_option(struct call *call, PyObject *name, PyObject *value)
{
    for (int i = 0; i < call->function->count; i++) {
        const struct value_type *type = &call->function->arguments[i];
        int result = 0;

        if (type->is_out) continue;
        if (type->kind == VALUE_RECORD)
            result = record_set(type->record, call->values[i].pointer, name, value, &call->arena);
        else if (type->kind == VALUE_BITS)
            result = record_set(&(struct record){.count = 1, .fields = type}, (char *)call->values,
                                name, value, &call->arena);
        if (result != 0) return result;
    }
    return 0;
}

/* The argument called NAME; -1: no argument has this name; an option may have it. */
static int find_stated(const struct function *function, PyObject *name)
{
    for (const int8_t *next = function->stated; *next >= 0; next++)
        if (PyUnicode_CompareWithASCIIString(name, function->arguments[*next].name) == 0)
            return *next;
    return -1;
}

static int bind_names(struct call *call, PyObject *kwargs)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;

    while (kwargs != NULL && PyDict_Next(kwargs, &position, &name, &value)) {
        int i = find_stated(call->function, name);

        if (i < 0) continue;
        if (call->objects[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got two values for the argument '%U'",
                         call->function->name, name);
            return -1;
        }
        call->objects[i] = value;
    }
    return 0;
}

/* Set the options of KWARGS.  The other arguments are read, so their context is known. */
static int set_options(struct call *call, PyObject *kwargs)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;

    while (kwargs != NULL && PyDict_Next(kwargs, &position, &name, &value)) {
        int result = find_stated(call->function, name) >= 0 ? 1 : set_option(call, name, value);

        if (result == 0)
            PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", call->function->name, name);
        if (result <= 0) return -1;
    }
    return 0;
}

/* Make room for structs: options, and those that the function fills. */
static int take_records(struct call *call)
{
    for (int i = 0; i < call->function->count; i++) {
        const struct value_type *type = &call->function->arguments[i];
        char *memory;

        if (type->kind != VALUE_RECORD || (type->is_out && type->is_pointer)) continue;
        memory = arena_take(&call->arena, type->record->size);
        if (memory == NULL) return -1;
        if (type->record->is_sized && type->record->size_bytes == 4)
            *(uint32_t *)(void *)memory = (uint32_t)type->record->size;
        else if (type->record->is_sized)
            *(size_t *)(void *)memory = type->record->size;
        call->values[i].pointer = memory;
    }
    return 0;
}

static int bind_all(struct call *call, PyObject *args, PyObject *kwargs)
{
    const struct function *function = call->function;

    if (function->self >= 0) call->objects[function->self] = call->self;
    if (take_records(call) < 0 || bind_positions(call, args) < 0 || bind_names(call, kwargs) < 0)
        return -1;
    for (const int8_t *next = function->stated; *next >= 0; next++) {
        if (call->objects[*next] != NULL || function->arguments[*next].is_optional) continue;
        PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function->name,
                     function->arguments[*next].name);
        return -1;
    }
    return 0;
}

/* ---- values ---- */

/* Read the arguments, or the lists whose lengths other arguments tell. */
static int read_values(struct call *call, bool counted)
{
    const struct record record = {.count = call->function->count,
                                  .fields = call->function->arguments};

    for (int i = 0; i < record.count; i++) {
        const struct value_type *type = &record.fields[i];

        if (type->kind == VALUE_TIMEOUT && !counted) call->values[i].i64 = WEFT_FOREVER;
        if (call->objects[i] == NULL || type->kind == VALUE_STREAM ||
            (type->count != NULL || type->measure != NULL) !=
                counted) /* of streams and arrays: set_places */
            continue;
        if (type->kind == VALUE_HANDLE && (call->objects[i] != Py_None || !type->is_optional)) {
            call->values[i].pointer =
                handle_use(call->objects[i], type->handle, type->name, &call->arena);
            if (call->values[i].pointer == NULL) return -1;
        } else if (field_set(&record, type, (char *)call->values, call->objects[i], &call->arena) <
                   0) {
            return -1;
        }
    }
    return 0;
}

/* Open the array at INDEX, and set or check the number of its bytes. */
static int open_array(struct call *call, int index)
{
    const struct value_type *type = &call->function->arguments[index];
    PyObject *object = call->objects[index];
    uint64_t bytes = 0, wanted;
    int result;

    if (object != NULL && (object != Py_None || type->measure == NULL)) {
        result = type->kind == VALUE_BYTES ? array_open_host(object, type->is_pointer, &call->array)
                                           : place_open(object, type->is_pointer, type->name,
                                                        call->arena.context, &call->array);
        if (result < 0) return -1;
        call->has_array = true;
        call->values[index].pointer = call->array.data;
        bytes = array_bytes(&call->array);
        if (call->arena.context != NULL && place_hold(call->arena.context, object) < 0) return -1;
    }
    if (type->measure != NULL) {
        wanted = type->measure(call->values);
        if (bytes >= wanted) return 0;
        PyErr_Format(PyExc_ValueError, "%s has %llu bytes; the call needs %llu", type->name,
                     (unsigned long long)bytes, (unsigned long long)wanted);
        return -1;
    }
    call->values[type->of].u64 = bytes;
    if (type->of + 1 < call->function->count && type[type->of + 1 - index].kind == VALUE_DTYPE) {
        call->values[type->of].u64 = call->has_array ? array_elements(&call->array) : 0;
        call->values[type->of + 1].i32 = (int32_t)call->array.dtype;
    }
    return 0;
}

/* The stream at INDEX; if it is not given, the stream of the array. */
static int find_stream(struct call *call, int index)
{
    PyObject *object = call->objects[index] != NULL ? call->objects[index] : Py_None;
    const struct array *array = call->has_array ? &call->array : NULL;
    weft_stream *stream = NULL;

    if (call->arena.context != NULL &&
        place_stream(object, array, call->arena.context, &stream, &call->owned_stream) < 0)
        return -1;
    call->values[index].pointer = stream;
    return 0;
}

/* The context, the array, and the stream, which is the last argument: they may follow from others.
 */
static int set_places(struct call *call)
{
    if (call->arena.context != NULL && context_of((PyObject *)call->arena.context) == NULL)
        return -1;
    for (int i = 0; i < call->function->count; i++) {
        uint8_t kind = call->function->arguments[i].kind;

        if (kind == VALUE_CONTEXT)
            call->values[i].pointer = call->arena.context != NULL ? call->arena.context->raw : NULL;
        if ((kind == VALUE_ARRAY || kind == VALUE_BYTES) && open_array(call, i) < 0) return -1;
        if (kind == VALUE_STREAM && find_stream(call, i) < 0) return -1;
    }
    return 0;
}

size_t call_count(const struct call *call, const struct value_type *list)
{
    const struct record record = {.fields = call->function->arguments};

    return count_of(&record, list, (const char *)call->values);
}

/* Where the function writes its results. */
static int set_outs(struct call *call)
{
    for (int i = 0; i < call->function->count; i++) {
        const struct value_type *type = &call->function->arguments[i];

        if (!type->is_out || (type->kind == VALUE_RECORD && !type->is_pointer) ||
            type->kind == VALUE_UNUSED)
            continue;
        call->values[i].pointer = &call->outs[i];
        if (type->kind == VALUE_LIST && !type->is_pointer) {
            call->counts[i] = call_count(call, type);
            call->outs[i].pointer =
                arena_take(&call->arena, call->counts[i] * value_bytes(type, type->element));
            if (call->outs[i].pointer == NULL) return -1;
            call->values[i].pointer = call->outs[i].pointer;
            if (call->counts[i] == 0 && type->measure != NULL) call->values[i].pointer = NULL;
        }
    }
    return 0;
}

static int prepare(struct call *call, PyObject *args, PyObject *kwargs)
{
    if (bind_all(call, args, kwargs) < 0 || read_values(call, false) < 0 ||
        set_options(call, kwargs) < 0 || read_values(call, true) < 0)
        return -1;
    return set_places(call) < 0 || set_outs(call) < 0 ? -1 : 0;
}

/* ---- the call ---- */

static weft_status run(struct call *call)
{
    weft_status status;

    if (!call->function->waits) return call->function->call(call->values);
    WAIT_BEGIN
    status = call->function->call(call->values);
    if (call->owned_stream != NULL)
        weft_stream_release(call->arena.context->raw, &call->owned_stream);
    WAIT_END
    return status;
}

/* Run a function that writes a text; -1: no memory. */
static int run_print(struct call *call, int buffer, weft_status *status)
{
    size_t length = 0, capacity = 512;

    for (int round = 0; round < 2; round++) {
        char *text = arena_take(&call->arena, capacity);

        if (text == NULL) return -1;
        call->outs[buffer].pointer = text;
        call->values[buffer].pointer = text;
        call->values[buffer + 1].size = capacity;
        call->values[buffer + 2].pointer = &length;
        *status = run(call);
        if (*status != WEFT_OK || length < capacity) break;
        capacity = length + 1;
    }
    return 0;
}

static PyObject *finish(struct call *call)
{
    int buffer = -1;
    weft_status status;

    for (int i = 0; i < call->function->count; i++)
        if (call->function->arguments[i].kind == VALUE_BUFFER) buffer = i;
    if (buffer < 0)
        status = run(call);
    else if (run_print(call, buffer, &status) < 0)
        return NULL;
    if (PyErr_Occurred()) return NULL; /* a callback raised it */
    if (call->function->tests && status >= 0) return PyBool_FromLong(status == WEFT_OK);
    if (status != WEFT_OK) return raise_status(status);
    return call_results(call);
}

PyObject *call_function(const struct function *function, PyObject *self, PyObject *args,
                        PyObject *kwargs)
{
    struct call call = {.function = function, .self = self};
    PyObject *result = prepare(&call, args, kwargs) == 0 ? finish(&call) : NULL;

    if (call.owned_stream != NULL) weft_stream_release(call.arena.context->raw, &call.owned_stream);
    if (call.has_array) array_close(&call.array);
    arena_end(&call.arena);
    return result;
}

PyObject *call_property(PyObject *self, void *closure)
{
    return call_function(closure, self, NULL, NULL);
}

PyObject *call_entry(PyObject *self, void *closure)
{
    const struct entry *entry = closure;
    PyObject *all = call_function(entry->function, self, NULL, NULL), *one;

    if (all == NULL) return NULL;
    one = PyDict_GetItemString(all, entry->name);
    Py_XINCREF(one);
    Py_DECREF(all);
    return one;
}
