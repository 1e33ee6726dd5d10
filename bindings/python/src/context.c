/* context.c - weft.Context: joining and leaving a job, and the streams of calls.  weft/_context.py
 * has its other members. */
#include "classes.h"
#include "interrupt.h"

#include <string.h>

static context_object *self_of(PyObject *self)
{
    return (context_object *)self;
}

context_object *context_of(PyObject *object)
{
    return handle_of(object, &class_weft_context, "context") != NULL ? self_of(object) : NULL;
}

/* ---- joining and leaving ---- */

struct gather {
    PyObject *function; /* the caller's all-gather */
    int ranks;
};

static weft_status gather_by_call(void *self, const void *mine, void *all, uint64_t bytes)
{
    const struct gather *gather = self;
    weft_status status = WEFT_OK;
    PyGILState_STATE state;
    char *chars = NULL;
    Py_ssize_t length = 0;
    PyObject *result;

    if (!Py_IsInitialized()) return weft_fail(WEFT_ERR_ABORTED, "the interpreter has ended");
    state = PyGILState_Ensure();
    result = PyObject_CallFunction(gather->function, "y#", mine, (Py_ssize_t)bytes);
    if (result == NULL || PyBytes_AsStringAndSize(result, &chars, &length) < 0) {
        PyErr_WriteUnraisable(gather->function);
        status = weft_fail(WEFT_ERR_INVALID, "the function `exchange` failed");
    } else if ((uint64_t)length != (uint64_t)gather->ranks * bytes) {
        status = weft_fail(WEFT_ERR_INVALID,
                           "the function `exchange` returned %lld bytes for %llu of each of %d "
                           "ranks",
                           (long long)length, (unsigned long long)bytes, gather->ranks);
    } else {
        memcpy(all, chars, (size_t)length);
    }
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

/* Note the device of the new context CONTEXT. */
static int find_device(context_object *context)
{
    weft_device_info info = {.struct_size = sizeof info};
    const char *backend = weft_context_plugin(context->raw)->name;

    if (check(weft_device_get(context->raw, &info)) < 0) return -1;
    context->device = (weft_dl_device){WEFT_DL_CPU, 0};
    context->is_inline = (info.features & WEFT_FEATURE_HOST_MEMORY) != 0 &&
                         (info.features & WEFT_FEATURE_INLINE) != 0 &&
                         !weft_is_simulated(context->raw);
    if ((info.features & WEFT_FEATURE_HOST_MEMORY) == 0)
        context->device = (weft_dl_device){
            strcmp(backend, "rccl") == 0 ? WEFT_DL_ROCM : WEFT_DL_CUDA, info.device};
    return 0;
}

/* It waits for the other ranks, and nothing interrupts it: weft/_context.py calls it on a thread of
 * its own. */
static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"backend",         "rank",        "size",   "rendezvous",
                            "token",           "plugin_path", "device", "timeout",
                            "simulated_ranks", "exchange",    NULL};
    weft_init_options options = {.struct_size = sizeof options};
    int rank = 0, size = 0, device = -1, simulated = 0;
    struct gather gather = {.function = Py_None};
    weft_exchange exchange = {.user = &gather, .all_gather = gather_by_call};
    context_object *self;
    weft_status status;
    int32_t chosen;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ziizzziO&iO:Context", names, &options.backend,
                                     &rank, &size, &options.rendezvous, &options.token,
                                     &options.plugin_path, &device, to_timeout, &options.timeout_ns,
                                     &simulated, &gather.function))
        return NULL;
    options.rank = rank;
    options.size = gather.ranks = size;
    options.simulated_ranks = simulated;
    chosen = device;
    if (device >= 0) options.device = &chosen;
    if (gather.function != Py_None) options.exchange = &exchange;
    self = object_new(type);
    if (self == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS status = weft_init(&options, &self->raw);
    Py_END_ALLOW_THREADS if (check(status) < 0 || find_device(self) < 0 || interrupt_add(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
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
    Py_XDECREF(self_of(self)->held);
    object_free(self);
}

/* A RuntimeError that names the objects that use the context, the last one first; those that end
 * now are left out.  Returns NULL. */
static PyObject *refuse_close(const context_object *context)
{
    PyObject *list = PyList_New(0);

    for (handle_object *one = context->last; list != NULL && one != NULL; one = one->before)
        if (one->raw != NULL && Py_REFCNT((PyObject *)one) > 0 &&
            PyList_Append(list, (PyObject *)one) < 0)
            Py_CLEAR(list);
    if (list == NULL) return NULL;
    return package_call("weft._texts", "refuse_close", "(nN)", context->used, list);
}

static PyObject *context_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (self_of(self)->calls > 0)
        return PyErr_Format(PyExc_RuntimeError,
                            "the context cannot be closed: a call that uses it is running");
    Py_CLEAR(self_of(self)->held);
    if (self_of(self)->used > 0) return refuse_close(self_of(self));
    release(self_of(self));
    Py_RETURN_NONE;
}

static PyObject *context_leave(PyObject *self, PyObject *unused)
{
    (void)unused;
    release(self_of(self));
    Py_RETURN_NONE;
}

/* ---- properties ---- */

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

static PyObject *get_closed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self_of(self)->raw == NULL);
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
        return refuse(PyExc_TypeError, "stream must be None, a weft.Stream, the address of a "
                                       "vendor's stream, or an object with __cuda_stream__");
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
        {"closed", get_closed, NULL, "Whether close was called.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"close", context_close, METH_NOARGS,
         "close()\n\nLeave the job.  Tensors, streams and moves of the context must be gone."},
        {"_leave", context_leave, METH_NOARGS, "Leave the job when the process ends."},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_new, context_new},
                                  {Py_tp_dealloc, context_dealloc},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Context", sizeof(context_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return type_add(module, &spec, &binding.context);
}
