/* call.c - see call.h. */
#include "call_state.h"
#include "callback.h"
#include "interrupt.h"
#include "place.h"

#include <string.h>

/* ---- which object is which argument ---- */

/* Whether Python gives this argument by position or by name. */
static bool is_stated(const struct function *function, int index)
{
    const struct value_type *type = &function->arguments[index];

    return type->name != NULL && !type->is_out && index != function->self &&
           type->kind != VALUE_RECORD && type->kind != VALUE_BITS;
}

/* The next argument of the Python call after *AT: those that must be given come first, streams
 * last.  -1: no argument is left. */
static int next_stated(const struct function *function, int *group, int *at)
{
    for (; *group < 3; ++*group, *at = 0)
        while (*at < function->count) {
            const struct value_type *type = &function->arguments[*at];
            int of = type->kind == VALUE_STREAM ? 2 : type->is_optional ? 1 : 0;

            ++*at;
            if (of == *group && is_stated(function, *at - 1)) return *at - 1;
        }
    return -1;
}

static int bind_positions(struct call *call, PyObject *args)
{
    Py_ssize_t count = args != NULL ? PyTuple_Size(args) : 0, given = 0;
    int group = 0, at = 0, index;

    while (given < count && (index = next_stated(call->function, &group, &at)) >= 0)
        call->objects[index] = PyTuple_GetItem(args, given++);
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
        else if (type->kind == VALUE_BITS) {
            const struct record one = {.count = 1, .fields = type};

            result = record_set(&one, (char *)&call->values[i], name, value, &call->arena);
        }
        if (result != 0) return result;
    }
    return 0;
}

/* The argument called NAME; -1: no argument has this name; an option may have it. */
static int find_stated(const struct function *function, PyObject *name)
{
    for (int i = 0; i < function->count; i++)
        if (is_stated(function, i) &&
            PyUnicode_CompareWithASCIIString(name, function->arguments[i].name) == 0)
            return i;
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
    int group = 0, at = 0, index;

    if (take_records(call) < 0 || bind_positions(call, args) < 0 || bind_names(call, kwargs) < 0)
        return -1;
    while ((index = next_stated(call->function, &group, &at)) >= 0) {
        const struct value_type *type = &call->function->arguments[index];

        if (call->objects[index] != NULL || type->is_optional) continue;
        PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", call->function->name,
                     type->name);
        return -1;
    }
    return 0;
}

/* ---- values ---- */

static int read_handle(struct call *call, int index, PyObject *object)
{
    const struct value_type *type = &call->function->arguments[index];

    call->values[index].pointer = handle_of(object, type->handle, type->name);
    if (call->values[index].pointer == NULL || arena_use(&call->arena, object) < 0) return -1;
    call->objects[index] = object;
    return 0;
}

static int read_list(struct call *call, int index)
{
    const struct value_type *type = &call->function->arguments[index];
    PyObject *object = call->objects[index];

    call->counts[index] = SIZE_MAX;
    if (object == NULL || object == Py_None) {
        if (type->is_optional) return 0;
        PyErr_Format(PyExc_TypeError, "%s must be a list", type->name);
        return -1;
    }
    return list_read(type, object, &call->arena, &call->values[index].pointer,
                     &call->counts[index]);
}

static int read_value(struct call *call, int index)
{
    const struct value_type *type = &call->function->arguments[index];
    PyObject *object = call->objects[index];

    if (index == call->function->self) return read_handle(call, index, call->self);
    if (type->is_out) return 0;
    switch (type->kind) {
    case VALUE_LIST:
        return read_list(call, index);
    case VALUE_STREAM:
        return 0; /* set_places */
    case VALUE_HANDLE:
        return object == NULL || (object == Py_None && type->is_optional)
                   ? 0
                   : read_handle(call, index, object);
    case VALUE_CALLBACK:
        return object == NULL || (object == Py_None && type->is_optional)
                   ? 0
                   : callback_set(type->callback, object, &call->arena,
                                  &call->values[type->of].pointer);
    case VALUE_TIMEOUT:
        if (object == NULL || object == Py_None) call->values[index].i64 = WEFT_FOREVER;
        /* fall through */
    default:
        return object == NULL ? 0 : value_read(type, object, &call->arena, &call->values[index]);
    }
}

/* Compare the lengths of lists with what says them, and set the counts. */
static int set_counts(struct call *call)
{
    const struct value_type *arguments = call->function->arguments;

    for (int i = 0; i < call->function->count; i++) {
        const struct value_type *list = &arguments[i];
        size_t *count;

        if (list->kind != VALUE_LIST || list->is_out || call->counts[i] == SIZE_MAX ||
            (list->of < 0 && list->measure == NULL))
            continue;
        if (list->offset != 0) {
            *(uint32_t *)(void *)((char *)call->values[list->of].pointer + list->offset) =
                (uint32_t)call->counts[i];
            continue;
        }
        if (list->count != NULL || list->measure != NULL) {
            size_t wanted = list->measure != NULL
                                ? (size_t)list->measure(call->values)
                                : (size_t)list->count(call->values[list->of].constant);

            if (call->counts[i] == wanted) continue;
            PyErr_Format(PyExc_ValueError, "%s has %zu entries; expected %zu", list->name,
                         call->counts[i], wanted);
            return -1;
        }
        count = &call->counts[list->of];
        if (call->values[list->of].flag && *count != call->counts[i]) {
            PyErr_Format(PyExc_ValueError, "%s has %zu entries; the list beside it has %zu",
                         list->name, call->counts[i], *count);
            return -1;
        }
        *count = call->counts[i];
        call->values[list->of].flag = true; /* seen; the count replaces it below */
    }
    for (int i = 0; i < call->function->count; i++) {
        if (arguments[i].kind != VALUE_COUNT || arguments[i].is_out) continue;
        call->values[i].u64 = 0;
        if (arguments[i].element == VALUE_I32 || arguments[i].element == VALUE_U32) {
            if (call->counts[i] > INT32_MAX) {
                PyErr_SetString(PyExc_ValueError, "the list has too many entries");
                return -1;
            }
            call->values[i].u32 = (uint32_t)call->counts[i];
        } else {
            call->values[i].size = call->counts[i];
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

    if (object != NULL && object != Py_None) {
        result = type->kind == VALUE_BYTES ? array_open_host(object, type->is_pointer, &call->array)
                                           : place_open(object, type->is_pointer, type->name,
                                                        call->arena.context, &call->array);
        if (result < 0) return -1;
        call->has_array = true;
        call->values[index].pointer = call->array.data;
        bytes = array_bytes(&call->array);
    }
    if (type->measure == NULL) {
        call->values[type->of].u64 = bytes;
        return 0;
    }
    wanted = type->measure(call->values);
    if (bytes >= wanted) return 0;
    PyErr_Format(PyExc_ValueError, "%s has %llu bytes; the call needs %llu", type->name,
                 (unsigned long long)bytes, (unsigned long long)wanted);
    return -1;
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
            size_t count = type->measure != NULL ? (size_t)type->measure(call->values)
                           : type->count != NULL
                               ? (size_t)type->count(call->values[type->of].constant)
                           : type->of >= 0 ? call->counts[type->of]
                                           : type->length;

            call->counts[i] = count;
            call->outs[i].pointer =
                arena_take(&call->arena, count * value_bytes(type, type->element));
            if (call->outs[i].pointer == NULL) return -1;
            call->values[i].pointer = call->outs[i].pointer;
            if (count == 0 && type->measure != NULL) call->values[i].pointer = NULL;
        }
    }
    return 0;
}

static int prepare(struct call *call, PyObject *args, PyObject *kwargs)
{
    if (bind_all(call, args, kwargs) < 0) return -1;
    for (int i = 0; i < call->function->count; i++)
        if (read_value(call, i) < 0) return -1;
    if (set_options(call, kwargs) < 0) return -1;
    return set_counts(call) < 0 || set_places(call) < 0 || set_outs(call) < 0 ? -1 : 0;
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
    if (PyErr_Occurred()) return NULL; /* that of a callback */
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
