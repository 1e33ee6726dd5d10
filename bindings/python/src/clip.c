/* clip.c - gradients clipped by their norm, or by value. */
#include "tensor.h"
#include "interrupt.h"

#include <string.h>

static int read_nonfinite(const char *text, uint32_t *out)
{
    static const char *const names[] = {"scale", "keep", "zero", "error"};

    for (*out = 0; *out < 4; ++*out)
        if (strcmp(names[*out], text) == 0) return 0;
    PyErr_Format(PyExc_ValueError, "nonfinite is '%s'; expected 'scale', 'keep', 'zero' or 'error'",
                 text);
    return -1;
}

/* Clip, and wait for the norm. */
static weft_status clip(weft_context *context, const struct handles *tensors, double max_norm,
                        const weft_clip_options *options, weft_stream *stream, double *out)
{
    void *total = NULL;
    weft_status status = weft_alloc(context, sizeof(double), WEFT_MEMORY_DEVICE, &total), freed;

    if (status != WEFT_OK) return status;
    status = weft_memory_fill(context, total, 0, sizeof(double), stream);
    if (status == WEFT_OK)
        status = weft_clip_grad_norm(context, tensors->count, (weft_tensor *const *)tensors->raw,
                                     max_norm, options, stream, total);
    if (status == WEFT_OK) status = weft_memory_copy(context, total, out, sizeof *out, stream);
    if (status == WEFT_OK) status = weft_stream_wait(context, stream, WEFT_FOREVER);
    freed = weft_free(context, total);
    return status != WEFT_OK ? status : freed;
}

static PyObject *clip_grad_norm(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context",         "tensors", "max_norm", "p", "nonfinite",
                            "reduce_partials", "stages",  "stream",   NULL};
    weft_clip_options options = {.struct_size = sizeof options};
    PyObject *given, *list, *stages = Py_None, *on = Py_None;
    const char *nonfinite = "scale";
    weft_stream *stream, *owned;
    context_object *context;
    struct handles tensors;
    double max_norm, norm = 0;
    weft_status status;
    int reduce = 0;

    (void)module;
    options.p = 2;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOd|dspOO:clip_grad_norm", names, &given, &list,
                                     &max_norm, &options.p, &nonfinite, &reduce, &stages, &on))
        return NULL;
    context = context_of(given);
    if (context == NULL || read_nonfinite(nonfinite, &options.nonfinite) < 0 ||
        (stages != Py_None && !is_of(stages, binding.comm, "stages")) ||
        handles_open(list, binding.tensor, true, "tensors", &tensors) < 0)
        return NULL;
    if (stages != Py_None) options.stages = ((comm_object *)stages)->raw;
    options.reduce_partials = reduce;
    if (stream_of(on, context, &stream, &owned) < 0) {
        handles_close(&tensors);
        return NULL;
    }
    WAIT_BEGIN
    status = clip(context->raw, &tensors, max_norm, &options, stream, &norm);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    handles_close(&tensors);
    return status == WEFT_OK ? PyFloat_FromDouble(norm) : raise_status(status);
}

static PyObject *clip_grad_value(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "tensors", "most", "stream", NULL};
    PyObject *given, *list, *on = Py_None;
    weft_stream *stream, *owned;
    context_object *context;
    struct handles tensors;
    weft_status status;
    double most;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOd|O:clip_grad_value", names, &given, &list,
                                     &most, &on))
        return NULL;
    context = context_of(given);
    if (context == NULL || handles_open(list, binding.tensor, true, "tensors", &tensors) < 0)
        return NULL;
    if (stream_of(on, context, &stream, &owned) < 0) {
        handles_close(&tensors);
        return NULL;
    }
    WAIT_BEGIN
    status = weft_clip_grad_value(context->raw, tensors.count, (weft_tensor *const *)tensors.raw,
                                  most, stream);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    handles_close(&tensors);
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

int clip_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"clip_grad_norm", KEYWORDS(clip_grad_norm),
         "clip_grad_norm(context, tensors, max_norm, p=2.0, nonfinite=\"scale\", "
         "reduce_partials=False, stages=None, stream=None)\n\nScale gradients so that their norm "
         "is at most max_norm, and return the norm before.  Waits.  Collective."},
        {"clip_grad_value", KEYWORDS(clip_grad_value),
         "clip_grad_value(context, tensors, most, stream=None)\n\nLimit every element to "
         "-most ... most."},
        {0}};

    return PyModule_AddFunctions(module, functions);
}
