/* clip.c - gradients clipped by their norm. */
#include "classes.h"
#include "interrupt.h"

struct clip {
    weft_tensor *const *tensors;
    size_t count;
    double max_norm, norm;
    weft_clip_options options;
};

/* Clip, and wait for the norm. */
static weft_status run(struct clip *clip, weft_context *context, weft_stream *stream)
{
    void *total = NULL;
    weft_status status = weft_alloc(context, sizeof(double), WEFT_MEMORY_DEVICE, &total), freed;

    if (status != WEFT_OK) return status;
    status = weft_memory_fill(context, total, 0, sizeof(double), stream);
    if (status == WEFT_OK)
        status = weft_clip_grad_norm(context, (uint32_t)clip->count, clip->tensors, clip->max_norm,
                                     &clip->options, stream, total);
    if (status == WEFT_OK)
        status = weft_memory_copy(context, total, &clip->norm, sizeof clip->norm, stream);
    if (status == WEFT_OK) status = weft_stream_wait(context, stream, WEFT_FOREVER);
    freed = weft_free(context, total);
    return status != WEFT_OK ? status : freed;
}

static int read_arguments(PyObject *list, PyObject *options, struct arena *arena, struct clip *out)
{
    static const struct value_type tensors = {.name = "tensors",
                                              .kind = VALUE_LIST,
                                              .element = VALUE_HANDLE,
                                              .of = -1,
                                              .handle = &class_weft_tensor};
    static const struct value_type record = {
        .name = "options", .kind = VALUE_RECORD, .record = &record_weft_clip_options_in};
    void *raw = NULL;

    out->options.struct_size = sizeof out->options;
    if (list_read(&tensors, list, arena, &raw, &out->count) < 0) return -1;
    out->tensors = raw;
    return value_read(&record, options, arena, &out->options);
}

static PyObject *clip_grad_norm(PyObject *module, PyObject *args)
{
    PyObject *given, *list, *options, *on, *result = NULL;
    weft_stream *stream, *owned;
    struct arena arena = {0};
    struct clip clip = {0};
    context_object *context;
    weft_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOdO!O:clip_grad_norm", &given, &list, &clip.max_norm,
                          &PyDict_Type, &options, &on))
        return NULL;
    context = context_of(given);
    if (context != NULL && read_arguments(list, options, &arena, &clip) == 0 &&
        stream_of(on, context, &stream, &owned) == 0) {
        WAIT_BEGIN
        status = run(&clip, context->raw, stream);
        weft_stream_release(context->raw, &owned);
        WAIT_END
        result = status == WEFT_OK ? PyFloat_FromDouble(clip.norm) : raise_status(status);
    }
    arena_end(&arena);
    return result;
}

int clip_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"clip_grad_norm", clip_grad_norm, METH_VARARGS,
         "clip_grad_norm(context, tensors, max_norm, options, stream)"},
        {0}};

    return PyModule_AddFunctions(module, functions);
}
