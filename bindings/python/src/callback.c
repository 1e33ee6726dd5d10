/* callback.c - functions of Python that weft calls.
 *
 * A callback runs in the thread that has called weft.  Its exception stays set in that thread: the
 * call of weft, which fails with the status of the callback, then raises it. */
#include "callback.h"
#include "shard.h"

#include <string.h>

enum { SLOTS = 8 }; /* callbacks of one struct; the generator checks it */

/* The `user` of callbacks; and, for a call of one, the owner of the memory that it gets, which is
 * open until the function returns. */
typedef struct callback_object {
    HANDLE_HEAD(struct callback_object)
    PyObject *functions[SLOTS];
    struct arena results; /* the memory of what a function has returned last */
} callback_object;

static int callback_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    for (int i = 0; i < SLOTS; i++)
        Py_VISIT(((callback_object *)object)->functions[i]);
    return 0;
}

static int callback_clear(PyObject *object)
{
    for (int i = 0; i < SLOTS; i++)
        Py_CLEAR(((callback_object *)object)->functions[i]);
    return 0;
}

static void callback_dealloc(PyObject *object)
{
    callback_object *self = (callback_object *)object;

    PyObject_GC_UnTrack(object);
    (void)callback_clear(object);
    arena_end(&self->results);
    Py_XDECREF((PyObject *)self->context);
    object_free(object);
}

static callback_object *callback_new(context_object *context)
{
    callback_object *self = object_new(binding.callback);

    if (self == NULL) return NULL;
    self->raw = self;
    self->context = (context_object *)Py_XNewRef((PyObject *)context);
    return self;
}

int callback_set(const struct callback *callback, PyObject *function, struct arena *arena,
                 void **user)
{
    callback_object *self = *user;

    if (!PyCallable_Check(function))
        return refuse(PyExc_TypeError, "%s must be a function, not %R", callback->name, function);
    if (self == NULL) {
        self = callback_new(arena->context);
        if (self == NULL || arena_keep(arena, (PyObject *)self) < 0) return -1;
        *user = self;
    }
    Py_XDECREF(self->functions[callback->slot]);
    self->functions[callback->slot] = Py_NewRef(function);
    return 0;
}

int callback_field(const struct record *record, const struct value_type *field, char *memory,
                   PyObject *function, struct arena *arena)
{
    void *user = memory + record->fields[field->of].offset;

    if (function == Py_None && field->is_optional) return 0;
    if (callback_set(field->callback, function, arena, user) < 0) return -1;
    memcpy(memory + field->offset, &field->callback->trampoline, sizeof(void (*)(void)));
    return 0;
}

/* ---- calls ---- */

static PyObject *arguments_of(const struct callback *callback, const union value *values,
                              PyObject *frame)
{
    PyObject *tuple = PyTuple_New(callback->count);

    for (int i = 0; tuple != NULL && i < callback->count; i++) {
        PyObject *item = value_make(&callback->arguments[i], &values[i], frame);

        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* Call the function of the callback, and take what it returns. */
static weft_status call(const struct callback *callback, callback_object *self,
                        const union value *values, callback_object *frame, void *out)
{
    PyObject *arguments = arguments_of(callback, values, (PyObject *)frame), *result;
    weft_status status = WEFT_OK;

    if (arguments == NULL) return WEFT_OK;
    result = PyObject_CallObject(self->functions[callback->slot], arguments);
    Py_DECREF(arguments);
    frame->raw = NULL;
    if (result != NULL && callback->result != NULL) {
        arena_end(&self->results);
        self->results = (struct arena){0};
        (void)value_read(callback->result, result, &self->results, out);
    }
    if (result == Py_False && callback->stops) status = WEFT_ERR_ABORTED;
    if (result != NULL && frame->users > 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_BufferError,
                     "the function `%s` keeps %zd array%s of its shards; copy them instead",
                     callback->name, frame->users, frame->users == 1 ? "" : "s");
    Py_XDECREF(result);
    return status;
}

/* The status of the exception that is set, whose text other ranks get too. */
static weft_status failed(const struct callback *callback)
{
    PyObject *kind, *value, *traceback, *text;
    const char *chars = NULL;
    weft_status status;

    PyErr_Fetch(&kind, &value, &traceback);
    PyErr_NormalizeException(&kind, &value, &traceback);
    text = value != NULL ? PyObject_Repr(value) : NULL;
    if (text != NULL) chars = PyUnicode_AsUTF8AndSize(text, NULL);
    PyErr_Clear();
    status = weft_fail(WEFT_ERR_INVALID, "the function `%s` of Python raised %s", callback->name,
                       chars != NULL ? chars : "an exception");
    Py_XDECREF(text);
    PyErr_Restore(kind, value, traceback);
    return status;
}

weft_status callback_run(const struct callback *callback, void *user, const union value *values,
                         void *out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    callback_object *self = user, *frame = NULL;
    weft_status status = WEFT_OK;

    if (!PyErr_Occurred() && self->functions[callback->slot] == NULL)
        PyErr_SetString(PyExc_RuntimeError, "the garbage collector has ended the function");
    if (!PyErr_Occurred()) frame = callback_new(self->context);
    if (frame != NULL) status = call(callback, self, values, frame, out);
    if (PyErr_Occurred()) status = failed(callback);
    Py_XDECREF((PyObject *)frame);
    PyGILState_Release(state);
    return status;
}

int callback_type_add(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, callback_dealloc},
                                  {Py_tp_traverse, callback_traverse},
                                  {Py_tp_clear, callback_clear},
                                  {0, NULL}};
    static PyType_Spec spec = {
        "weft._weft.Callback", sizeof(callback_object), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.callback);
}
