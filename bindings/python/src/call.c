/* call.c - see call.h. */
#include "call_state.h"
#include "callback.h"
#include "interrupt.h"
#include "place.h"

/* ---- which object is which argument ---- */

/* The lowest argument of a set. */
static int first_of(unsigned set)
{
    return __builtin_ctz(set);
}

static void bind(struct call *call, int argument, PyObject *object)
{
    call->objects[argument] = object;
    call->given |= 1U << argument;
}

static int bind_positions(struct call *call, PyObject *const *args, Py_ssize_t count)
{
    const int8_t *next = call->function->stated;
    Py_ssize_t given = 0;

    while (given < count && *next >= 0)
        bind(call, *next++, args[given++]);
    if (given == count) return 0;
    return refuse(PyExc_TypeError, "%s() takes at most %zd positional arguments, not %zd",
                  call->function->name, given, count);
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
    for (const int8_t *next = function->stated; *next >= 0; next++) {
        const char *stated = *next == OPTION_NAME ? "name" : function->arguments[*next].name;

        if (PyUnicode_CompareWithASCIIString(name, stated) == 0) return *next;
    }
    return -1;
}

static int bind_names(struct call *call)
{
    for (Py_ssize_t i = 0; i < call->name_count; i++) {
        PyObject *name = PyTuple_GetItem(call->names, i);
        int argument = find_stated(call->function, name);

        if (argument < 0) {
            call->has_options = true;
        } else if ((call->given & 1U << argument) != 0) {
            return refuse(PyExc_TypeError, "%s() got two values for the argument '%U'",
                          call->function->name, name);
        } else {
            bind(call, argument, call->named[i]);
        }
    }
    return 0;
}

/* Set the option `name`. */
static int set_name(struct call *call)
{
    PyObject *name = PyUnicode_FromString("name");
    int result = name != NULL ? set_option(call, name, call->objects[OPTION_NAME]) : -1;

    Py_XDECREF(name);
    return result < 0 ? -1 : 0;
}

/* Set the options.  The other arguments are read, so their context is known. */
static int set_options(struct call *call)
{
    for (Py_ssize_t i = 0; i < call->name_count; i++) {
        PyObject *name = PyTuple_GetItem(call->names, i);
        int result =
            find_stated(call->function, name) >= 0 ? 1 : set_option(call, name, call->named[i]);

        if (result == 0)
            Py_XDECREF(package_call("weft._errors", "refuse_option", "(sOs)", call->function->name,
                                    name, call->function->names));
        if (result <= 0) return -1;
    }
    return 0;
}

/* Set what Python does not give: room for structs, limits of time, sizes of elements. */
static int preset(struct call *call)
{
    for (unsigned left = call->function->presets; left != 0; left &= left - 1) {
        const struct value_type *type = &call->function->arguments[first_of(left)];
        union value *value = &call->values[first_of(left)];

        if (type->kind == VALUE_TIMEOUT) value->i64 = WEFT_FOREVER;
        if (type->kind == VALUE_ELEMENT) value->size = type->length;
        if (type->kind != VALUE_RECORD) continue;
        value->pointer = arena_take(&call->arena, type->record->size);
        if (value->pointer == NULL) return -1;
        record_begin(type->record, value->pointer);
    }
    return 0;
}

static int bind_all(struct call *call, PyObject *const *args, Py_ssize_t count)
{
    const struct function *function = call->function;
    unsigned missing;

    if (function->self >= 0) bind(call, function->self, call->self);
    if (preset(call) < 0 || bind_positions(call, args, count) < 0 || bind_names(call) < 0)
        return -1;
    missing = function->required & ~call->given;
    if (missing == 0) return 0;
    return refuse(PyExc_TypeError, "%s() needs the argument '%s'", function->name,
                  function->arguments[first_of(missing)].name);
}

/* ---- values ---- */

/* Read a set of arguments. */
static int read_values(struct call *call, unsigned set)
{
    const struct record record = {.count = call->function->count,
                                  .fields = call->function->arguments};

    for (; set != 0; set &= set - 1) {
        int i = first_of(set);
        const struct value_type *type = &record.fields[i];
        PyObject *object = call->objects[i];

        if (type->kind == VALUE_HANDLE && (object != Py_None || !type->is_optional)) {
            call->values[i].pointer = handle_use(object, type->handle, type->name, &call->arena);
            if (call->values[i].pointer == NULL) return -1;
        } else if (field_set(&record, type, (char *)call->values, object, &call->arena) < 0) {
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
    uint64_t bytes, wanted;
    int result;

    if (object != NULL && (object != Py_None || type->measure == NULL)) {
        result = type->kind == VALUE_HOST
                     ? host_open(call->self, object, type->is_pointer, &call->array)
                     : place_open(object, type->is_pointer, type->name, call->arena.context,
                                  &call->array);
        if (result < 0) return -1;
        call->has_array = true;
        call->values[index].pointer = call->array.data;
        if (call->arena.context != NULL && place_hold(call->arena.context, object) < 0) return -1;
    }
    if (type->measure == NULL && type->of + 1 < call->function->count &&
        type[type->of + 1 - index].kind == VALUE_DTYPE) {
        call->values[type->of].u64 = call->has_array ? array_elements(&call->array) : 0;
        call->values[type->of + 1].i32 = (int32_t)call->array.dtype;
        return 0;
    }
    bytes = call->has_array ? array_bytes(&call->array) : 0;
    if (type->measure == NULL) call->values[type->of].u64 = bytes;
    wanted = type->measure != NULL ? type->measure(call->values) : bytes;
    if (bytes >= wanted) return 0;
    return refuse(PyExc_ValueError, "%s has %llu bytes; the call needs %llu", type->name,
                  (unsigned long long)bytes, (unsigned long long)wanted);
}

/* The stream at INDEX; if it is not given, the stream of the array, which on the host is the
 * default one. */
static int find_stream(struct call *call, int index)
{
    PyObject *object = call->objects[index] != NULL ? call->objects[index] : Py_None;

    if (call->arena.context == NULL) return 0;
    return place_stream(object, call->has_array ? &call->array : NULL, call->arena.context,
                        (weft_stream **)&call->values[index].pointer, &call->owned_stream);
}

/* The context, the array, and the stream, which is the last. */
static int set_places(struct call *call)
{
    context_object *context = call->arena.context;

    if (context != NULL && context->raw == NULL && context_of((PyObject *)context) == NULL)
        return -1;
    for (unsigned left = call->function->places; left != 0; left &= left - 1) {
        int i = first_of(left);
        uint8_t kind = call->function->arguments[i].kind;

        if (kind == VALUE_CONTEXT)
            call->values[i].pointer = context != NULL ? context->raw : NULL;
        else if (kind == VALUE_STREAM ? find_stream(call, i) < 0 : open_array(call, i) < 0)
            return -1;
    }
    return 0;
}

/* Where the function writes its results. */
static int set_outs(struct call *call)
{
    for (unsigned left = call->function->outs; left != 0; left &= left - 1) {
        int i = first_of(left);
        const struct value_type *type = &call->function->arguments[i];

        call->values[i].pointer = &call->outs[i];
        if (type->kind != VALUE_LIST || type->is_pointer) continue;
        call->counts[i] = type->length > 0 ? type->length : call_count(call, type);
        call->outs[i].pointer =
            arena_take(&call->arena, call->counts[i] * value_bytes(type, type->element));
        if (call->outs[i].pointer == NULL) return -1;
        call->values[i].pointer = call->outs[i].pointer;
        if (type->of >= 0 && call->function->arguments[type->of].kind == VALUE_COUNT)
            call->values[type->of].size = call->counts[i];
        if (call->counts[i] == 0 && type->measure != NULL) call->values[i].pointer = NULL;
    }
    return 0;
}

static int prepare(struct call *call, PyObject *const *args, Py_ssize_t count)
{
    unsigned counted = call->function->counted, places = call->function->places;

    if (bind_all(call, args, count) < 0 ||
        read_values(call, call->given & ~(places | counted | 1U << OPTION_NAME)) < 0 ||
        ((call->given & 1U << OPTION_NAME) != 0 && set_name(call) < 0) ||
        (call->has_options && set_options(call) < 0) ||
        read_values(call, call->given & counted) < 0)
        return -1;
    return set_places(call) < 0 || set_outs(call) < 0 ? -1 : 0;
}

/* ---- the call ---- */

static weft_status run(struct call *call)
{
    weft_status status;

    if (call->function->waits + call->has_options < 2) return call->function->call(call->values);
    WAIT_BEGIN
    status = call->function->call(call->values);
    if (call->owned_stream != NULL) weft_stream_release(&call->owned_stream);
    WAIT_END
    return status;
}

/* Run a function that writes a text; -1: no memory. */
static int run_print(struct call *call, int buffer, weft_status *status)
{
    size_t length = 0, capacity = sizeof call->text;
    char *text = call->text;

    for (int round = 0; text != NULL && round < 2; round++) {
        call->outs[buffer].pointer = text;
        call->values[buffer].pointer = text;
        call->values[buffer + 1].size = capacity;
        call->values[buffer + 2].pointer = &length;
        *status = run(call);
        if (*status != WEFT_OK || length < capacity) break;
        capacity = length + 1;
        if (round == 0) text = arena_take(&call->arena, capacity);
    }
    return text != NULL ? 0 : -1;
}

/* Whether the function has returned that its first argument is out of range. */
static bool is_refused(const struct call *call)
{
    const struct function *function = call->function;
    const union value *result = &call->values[function->count];

    if (!function->refuses) return false;
    return function->arguments[function->count].kind == VALUE_I32 ? result->i32 == function->refused
                                                                  : result->constant == NULL;
}

static PyObject *refuse_index(const struct call *call)
{
    const char *name = call->function->arguments[call->function->stated[0]].name;

    return PyErr_Format(PyExc_IndexError, "%s is %R; %R has no such %s", name,
                        call->objects[call->function->stated[0]], call->self, name);
}

/* Call the function; false: it has failed, or the RESULT is known. */
static bool call_c(struct call *call, PyObject **result)
{
    const struct function *function = call->function;
    weft_status status;

    if (function->buffer < 0)
        status = run(call);
    else if (run_print(call, function->buffer, &status) < 0)
        return false;
    if (PyErr_Occurred()) return false; /* a callback raised it */
    if (function->tests && status >= 0)
        *result = PyBool_FromLong(status == WEFT_OK);
    else if (status != WEFT_OK)
        raise_status(status);
    else if (is_refused(call))
        refuse_index(call);
    else
        return true;
    return false;
}

/* Prepare and run a call; true: its results are to be made.  call_end ends it. */
static bool call_begin(struct call *call, const struct function *function, PyObject *self,
                       PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **result)
{
    call->function = function;
    call->self = self;
    call->names = names;
    call->named = names != NULL ? args + count : NULL;
    call->name_count = names != NULL ? PyTuple_Size(names) : 0;
    call->given = 0;
    call->has_options = call->has_array = false;
    call->owned_stream = NULL;
    arena_begin(&call->arena);
    call->arena.callback = callback_field;
    for (int i = 0; i < function->count; i++) {
        call->objects[i] = NULL;
        call->values[i].u64 = call->outs[i].u64 = 0;
    }
    *result = NULL;
    return prepare(call, args, count) == 0 && call_c(call, result);
}

static PyObject *call_end(struct call *call, PyObject *result)
{
    if (call->owned_stream != NULL) weft_stream_release(&call->owned_stream);
    if (call->has_array) array_close(&call->array);
    arena_end(&call->arena);
    return result;
}

PyObject *call_function(const struct function *function, PyObject *self, PyObject *const *args,
                        Py_ssize_t count, PyObject *names)
{
    struct call call;
    PyObject *result;

    if (call_begin(&call, function, self, args, count, names, &result))
        result = call_results(&call);
    return call_end(&call, result);
}

PyObject *call_new(const struct function *function, PyTypeObject *type, PyObject *args,
                   PyObject *kwargs)
{
    PyObject *all[64], *names = kwargs != NULL ? PySequence_Tuple(kwargs) : NULL, *name, *result;
    Py_ssize_t count = PyTuple_Size(args), given = 0, position = 0;

    if (kwargs != NULL && names == NULL) return NULL;
    if (count + (names != NULL ? PyTuple_Size(names) : 0) >
        (Py_ssize_t)(sizeof all / sizeof *all)) {
        Py_XDECREF(names);
        return PyErr_Format(PyExc_TypeError, "%s() got too many arguments", function->name);
    }
    for (; given < count; given++)
        all[given] = PyTuple_GetItem(args, given);
    while (kwargs != NULL && PyDict_Next(kwargs, &position, &name, &all[given]))
        given++;
    result = call_function(function, (PyObject *)type, all, count, names);
    Py_XDECREF(names);
    return result;
}

PyObject *call_property(PyObject *self, void *closure)
{
    return call_function(closure, self, NULL, 0, NULL);
}
