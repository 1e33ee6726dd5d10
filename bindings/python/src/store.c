/* store.c - tensors of all ranks from checkpoints and to them, and resharding of files. */
#include "checkpoint.h"
#include "interrupt.h"

/* ---- loading ---- */

static PyObject *load_all(context_object *context, weft_checkpoint *from, weft_layout *layout,
                          const weft_load_options *options)
{
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_tensor **tensors;
    weft_status status;
    PyObject *result;
    size_t count;

    if (check(weft_checkpoint_get(from, &info)) < 0) return NULL;
    count = options->names != NULL ? options->count : (size_t)info.tensors;
    tensors = PyMem_Calloc(count + 1, sizeof *tensors);
    if (tensors == NULL) return PyErr_NoMemory();
    WAIT_BEGIN
    status = weft_load(context->raw, from, layout, options, tensors);
    WAIT_END
    result =
        status == WEFT_OK ? tensors_wrap(tensors, (uint32_t)count, context) : raise_status(status);
    PyMem_Free(tensors);
    return result;
}

static PyObject *load(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "checkpoint", "layout", "names", "jobs", NULL};
    weft_load_options options = {.struct_size = sizeof options};
    PyObject *given, *checkpoint, *layout, *list = Py_None, *items = NULL, *result = NULL;
    context_object *context;
    weft_checkpoint *from;
    weft_layout *in;
    const char **texts = NULL;
    uint32_t count = 0;
    int jobs = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|Oi:load", names, &given, &checkpoint,
                                     &layout, &list, &jobs))
        return NULL;
    context = context_of(given);
    from = context != NULL ? checkpoint_of(checkpoint) : NULL;
    if (from == NULL || layout_of(layout, &in) < 0) return NULL;
    if (list != Py_None && (texts = texts_of(list, "names", &items, &count)) == NULL) return NULL;
    options.names = texts;
    options.count = count;
    options.jobs = jobs;
    result = load_all(context, from, in, &options);
    PyMem_Free(texts);
    Py_XDECREF(items);
    return result;
}

/* ---- saving ---- */

struct save {
    context_object *context;
    PyObject *path, *items;
    struct handles tensors;
    struct pairs pairs;
    weft_save_options options;
    weft_stream *owned;
    const char **names;
};

static void close_save(struct save *save)
{
    Py_XDECREF(save->path);
    Py_XDECREF(save->items);
    PyMem_Free(save->names);
    handles_close(&save->tensors);
    pairs_close(&save->pairs);
    if (save->context != NULL) weft_stream_release(save->context->raw, &save->owned);
}

static int read_save(PyObject *args, PyObject *kwargs, struct save *out)
{
    static char *words[] = {"context", "path",       "tensors",  "names",  "layout", "format",
                            "replace", "file_bytes", "metadata", "stream", "jobs",   NULL};
    PyObject *given, *tensors, *names = Py_None, *layout = Py_None, *metadata = Py_None;
    PyObject *stream = Py_None;
    const char *format = NULL;
    unsigned long long file_bytes = 0;
    int replace = 0, jobs = 0;
    weft_layout *in;
    uint32_t count = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&O|OOzpO&OOi:save", words, &given,
                                     PyUnicode_FSConverter, &out->path, &tensors, &names, &layout,
                                     &format, &replace, to_u64, &file_bytes, &metadata, &stream,
                                     &jobs))
        return -1;
    out->options = (weft_save_options){.struct_size = sizeof out->options,
                                       .replace = replace,
                                       .file_bytes = file_bytes,
                                       .jobs = jobs};
    out->context = context_of(given);
    if (out->context == NULL || layout_of(layout, &in) < 0 ||
        format_of(format, &out->options.format) < 0 ||
        handles_open(tensors, binding.tensor, false, "tensors", &out->tensors) < 0 ||
        pairs_open(metadata, &out->pairs) < 0)
        return -1;
    if (names != Py_None) {
        out->names = texts_of(names, "names", &out->items, &count);
        if (out->names == NULL) return -1;
        if (count != out->tensors.count) {
            PyErr_Format(PyExc_ValueError, "there are %u names for %u tensors", count,
                         out->tensors.count);
            return -1;
        }
    }
    out->options.names = out->names;
    out->options.layout = in;
    out->options.metadata = out->pairs.list;
    out->options.pairs = out->pairs.count;
    return stream_of(stream, out->context, &out->options.stream, &out->owned);
}

static PyObject *save(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct save call = {0};
    weft_status status = WEFT_OK;

    (void)module;
    if (read_save(args, kwargs, &call) == 0) {
        WAIT_BEGIN
        status =
            weft_save(call.context->raw, PyBytes_AsString(call.path),
                      (weft_tensor *const *)call.tensors.raw, call.tensors.count, &call.options);
        WAIT_END
    }
    if (status != WEFT_OK) raise_status(status);
    close_save(&call);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *save_begin(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct save call = {0};
    weft_saving *raw = NULL;
    weft_status status = WEFT_OK;
    PyObject *self = NULL;

    (void)module;
    if (read_save(args, kwargs, &call) == 0) {
        WAIT_BEGIN
        status = weft_save_begin(call.context->raw, PyBytes_AsString(call.path),
                                 (weft_tensor *const *)call.tensors.raw, call.tensors.count,
                                 &call.options, &raw);
        WAIT_END
    }
    if (status != WEFT_OK) raise_status(status);
    if (raw != NULL) {
        self = dependent_new(binding.saving, raw, call.context);
        if (self == NULL) weft_saving_release(&raw);
    }
    close_save(&call);
    return self;
}

/* ---- a saving that goes on ---- */

static weft_saving *saving_of(PyObject *self)
{
    return ((dependent_object *)self)->raw;
}

static void saving_dealloc(PyObject *self)
{
    weft_saving *raw = saving_of(self);

    WAIT_BEGIN
    weft_saving_release(&raw);
    WAIT_END
    dependent_free(self);
}

static PyObject *saving_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    double timeout = -1;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|d:wait", names, &timeout)) return NULL;
    WAIT_BEGIN
    status = weft_saving_wait(saving_of(self), nanoseconds(timeout));
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *saving_state(PyObject *self, PyObject *unused)
{
    weft_saving_info info = {.struct_size = sizeof info};

    (void)unused;
    if (check(weft_saving_get(saving_of(self), &info)) < 0) return NULL;
    return Py_BuildValue("{s:O,s:K,s:K,s:L}", "ended", info.ended ? Py_True : Py_False, "bytes",
                         info.bytes, "written", info.written, "copy_ns", info.copy_ns);
}

static int saving_type_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"wait", KEYWORDS(saving_wait),
         "wait(timeout=-1)\n\nWait until the checkpoint is complete on all ranks."},
        {"state", saving_state, METH_NOARGS, "state()\n\nHow far this rank is."},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "A saving that goes on while the caller continues."},
                                  {Py_tp_dealloc, saving_dealloc},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Saving", sizeof(dependent_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.saving);
}

int store_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"load", KEYWORDS(load), "load(context, checkpoint, layout, names=None, jobs=0)"},
        {"save", KEYWORDS(save), "save(context, path, tensors, ...)"},
        {"save_begin", KEYWORDS(save_begin), "save_begin(context, path, tensors, ...)"},
        {0}};

    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return saving_type_add(module);
}
