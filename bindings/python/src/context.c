/* context.c - weft.Context: joining and leaving a job, and the streams of calls. */
#include "binding.h"
#include "interrupt.h"
#include "join.h"
#include "place.h"

static context_object *self_of(PyObject *self)
{
    return (context_object *)self;
}

context_object *context_of(PyObject *object)
{
    if (!PyObject_TypeCheck(object, binding.context)) {
        PyErr_SetString(PyExc_TypeError, "context must be a weft.Context");
        return NULL;
    }
    if (self_of(object)->raw == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the context was closed");
        return NULL;
    }
    return self_of(object);
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"backend",         "rank",        "size",   "rendezvous",
                            "token",           "plugin_path", "device", "timeout",
                            "simulated_ranks", "exchange",    NULL};
    weft_options options = {.struct_size = sizeof options};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    int rank = 0, size = 0, device = -1, simulated = 0;
    int32_t chosen;
    PyObject *function = Py_None;
    weft_context *raw = NULL;
    PyObject *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z$iizzziO&iO:Context", names, &options.backend,
                                     &rank, &size, &options.rendezvous, &options.token,
                                     &options.plugin_path, &device, to_timeout, &options.timeout_ns,
                                     &simulated, &function))
        return NULL;
    if (refuse_second_library() < 0) return NULL;
    options.rank = rank;
    options.size = size;
    options.simulated_ranks = simulated;
    chosen = device;
    if (device >= 0) options.device = &chosen;
    if (join_job(&options, function, &raw) < 0) return NULL;
    self = allocate(type, 0);
    if (self == NULL)
        weft_context_release(&raw);
    else
        self_of(self)->raw = raw;
    if (self != NULL && ((self_of(self)->layouts = PyDict_New()) == NULL ||
                         place_find(self_of(self)) < 0 || interrupt_add(self_of(self)) < 0))
        Py_CLEAR(self);
    return self;
}

static void release(context_object *self)
{
    weft_context *raw = self->raw;

    interrupt_remove(self);
    self->raw = NULL;
    WAIT_BEGIN
    weft_context_release(&raw);
    WAIT_END
}

static void context_dealloc(PyObject *self)
{
    release(self_of(self));
    Py_XDECREF(self_of(self)->layouts);
    Py_XDECREF(self_of(self)->held);
    object_free(self);
}

static PyObject *context_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (self_of(self)->calls > 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the context cannot be closed: a call that uses it is running");
        return NULL;
    }
    PyDict_Clear(self_of(self)->layouts); /* it has tensors, which use the context */
    Py_CLEAR(self_of(self)->held);
    if (self_of(self)->used > 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "the context cannot be closed: %zd of its tensors, streams, moves and "
                     "communicators are in use; delete them first, also arrays of their memory: "
                     "write `del x`, or use them in a function that is called in the `with` block",
                     self_of(self)->used);
        return NULL;
    }
    release(self_of(self));
    Py_RETURN_NONE;
}

/* The process ends.  Objects that still use the context can only be deleted. */
static PyObject *context_leave(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyDict_Clear(self_of(self)->layouts);
    release(self_of(self));
    Py_RETURN_NONE;
}

static PyObject *context_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* An exception of the block is not replaced: the context then ends with the objects that use it. */
static PyObject *context_exit(PyObject *self, PyObject *args)
{
    PyObject *kind, *value, *traceback;

    if (!PyArg_ParseTuple(args, "OOO:__exit__", &kind, &value, &traceback)) return NULL;
    if (kind != Py_None && self_of(self)->used > 0) Py_RETURN_NONE;
    return context_close(self, NULL);
}

static PyObject *get_backend(PyObject *self, void *closure)
{
    const context_object *context = context_of(self);

    (void)closure;
    if (context == NULL) return NULL;
    return PyUnicode_FromString(weft_context_plugin(context->raw)->name);
}

static PyObject *get_kind(PyObject *self, void *closure)
{
    const context_object *context = context_of(self);

    (void)closure;
    if (context == NULL) return NULL;
    return PyUnicode_FromString(context->device.type == WEFT_DL_CPU    ? "cpu"
                                : context->device.type == WEFT_DL_CUDA ? "cuda"
                                                                       : "rocm");
}

static PyObject *get_layouts(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self_of(self)->layouts);
}

static PyObject *get_closed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self_of(self)->raw == NULL);
}

static PyObject *context_repr(PyObject *self)
{
    const weft_context *raw = self_of(self)->raw;

    if (raw == NULL) return PyUnicode_FromString("<weft.Context, closed>");
    return PyUnicode_FromFormat("<weft.Context, rank %d of %d on %s>", (int)weft_rank(raw),
                                (int)weft_size(raw), weft_context_plugin(raw)->name);
}

static PyObject *context_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", NULL};
    context_object *context = context_of(self);
    PyObject *stream = Py_None;
    weft_stream *raw = NULL, *owned = NULL;
    weft_status status;

    if (context == NULL || !PyArg_ParseTupleAndKeywords(args, kwargs, "|O:wait", names, &stream))
        return NULL;
    if (stream_of(stream, context, &raw, &owned) < 0) return NULL;
    WAIT_BEGIN
    status = weft_stream_wait(context->raw, raw, WEFT_FOREVER);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

/* ---- streams ---- */

/* The vendor's stream with the number NUMBER. */
static int wrap_native(PyObject *value, context_object *context, weft_stream **out,
                       weft_stream **owned)
{
    void *native = PyLong_AsVoidPtr(value);

    if (native == NULL && PyErr_Occurred()) return -1;
    if (check(weft_stream_wrap(context->raw, native, owned)) < 0) return -1;
    *out = *owned;
    return 0;
}

int stream_of(PyObject *object, context_object *context, weft_stream **out, weft_stream **owned)
{
    PyObject *pair, *value;
    int result = -1;

    *out = *owned = NULL;
    if (object == NULL || object == Py_None) return 0;
    if (PyObject_TypeCheck(object, binding.stream)) {
        *out = ((stream_object *)object)->raw;
        return 0;
    }
    if (PyLong_Check(object)) return wrap_native(object, context, out, owned);
    pair = PyObject_CallMethod(object, "__cuda_stream__", NULL);
    if (pair == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "stream must be None, a weft.Stream, the address of a "
                                         "vendor's stream, or an object with __cuda_stream__");
        return -1;
    }
    value = PySequence_GetItem(pair, 1);
    Py_DECREF(pair);
    if (value != NULL) result = wrap_native(value, context, out, owned);
    Py_XDECREF(value);
    return result;
}

int context_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"backend", get_backend, NULL, "The name of the plugin that communicates.", NULL},
        {"kind", get_kind, NULL, "Where the backend's memory is: \"cpu\", \"cuda\" or \"rocm\".",
         NULL},
        {"_layouts", get_layouts, NULL, "The layouts that weft.redistribute has used.", NULL},
        {"closed", get_closed, NULL, "Whether close was called.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"close", context_close, METH_NOARGS,
         "close()\n\nLeave the job.  Tensors, streams and moves of the context must be gone."},
        {"_leave", context_leave, METH_NOARGS, "Leave the job when the process ends."},
        {"wait", (PyCFunction)(void (*)(void))context_wait, METH_VARARGS | METH_KEYWORDS,
         "wait(stream=None)\n\nWait for the work on a stream."},
        {"__enter__", context_enter, METH_NOARGS, NULL},
        {"__exit__", context_exit, METH_VARARGS, NULL},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Context(backend=None, *, rank=0, size=0, rendezvous=None, token=None, "
                    "plugin_path=None, device=-1, timeout=0, simulated_ranks=0, exchange=None)\n\n"
                    "This process's connection to its job.  Without rank and size they come from "
                    "the launcher.  timeout is in seconds; 0: WEFT_TIMEOUT, math.inf: no limit.  "
                    "exchange is a function that gets the bytes of this rank and returns those of "
                    "all ranks, joined."},
        {Py_tp_new, context_new},
        {Py_tp_dealloc, context_dealloc},
        {Py_tp_repr, context_repr},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Context", sizeof(context_object), 0, Py_TPFLAGS_DEFAULT,
                               slots};

    return type_add(module, &spec, &binding.context);
}
