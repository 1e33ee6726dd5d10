/* move.c - one array moved between layouts: weft.move_array. */
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

#include <stdio.h>

static PyObject *describe(PyObject *module, PyObject *object)
{
    struct array array;
    PyObject *shape, *result = NULL;

    (void)module;
    if (array_open(object, &array) < 0) return NULL;
    shape = tuple_of(array.dims, array.shape);
    if (shape != NULL) result = Py_BuildValue("(sN)", weft_dtype_name(array.dtype), shape);
    array_close(&array);
    return result;
}

bool has_shape(const struct array *array, const weft_shard *shard)
{
    if (array->dims != shard->dims) return false;
    for (int32_t i = 0; i < shard->dims; i++)
        if (array->shape[i] != shard->shape[i]) return false;
    return true;
}

int shard_fits(const struct array *array, const weft_spec *spec, int32_t rank, const char *name)
{
    char found[256], wanted[256];
    weft_shard shard;
    size_t at = 0, end = 0;

    weft_spec_shard(spec, rank, &shard);
    if (array->dtype == weft_spec_dtype(spec) && has_shape(array, &shard)) return 0;
    for (int32_t i = 0; i < array->dims; i++)
        at += (size_t)snprintf(found + at, sizeof found - at, "%s%lld", i > 0 ? "," : "",
                               (long long)array->shape[i]);
    for (int32_t i = 0; i < shard.dims; i++)
        end += (size_t)snprintf(wanted + end, sizeof wanted - end, "%s%lld", i > 0 ? "," : "",
                                (long long)shard.shape[i]);
    found[at] = wanted[end] = 0;
    PyErr_Format(PyExc_ValueError, "%s is %s[%s], but the shard of rank %d is %s[%s]", name,
                 weft_dtype_name(array->dtype), found, (int)rank,
                 weft_dtype_name(weft_spec_dtype(spec)), wanted);
    return -1;
}

int writable(const struct array *array, const char *name)
{
    if (!array->is_read_only) return 0;
    PyErr_Format(PyExc_ValueError, "%s is read-only", name);
    return -1;
}

int check_dense(const struct array *array, const char *name, bool written)
{
    if (array->is_dense) return written ? writable(array, name) : 0;
    PyErr_Format(PyExc_ValueError,
                 "%s is not contiguous in row-major order, and weft copies no arrays; %s", name,
                 written ? "give a contiguous array and copy it to this one afterwards"
                         : "give a contiguous copy, such as numpy.ascontiguousarray(x), or "
                           "x.contiguous() of PyTorch");
    return -1;
}

/* Two dense arrays are the same memory, or have none in common. */
static int check_apart(const struct array *array, const struct array *out)
{
    uintptr_t a = (uintptr_t)array->data, b = (uintptr_t)out->data;

    if (a == b || a + array_bytes(array) <= b || b + array_bytes(out) <= a) return 0;
    PyErr_SetString(PyExc_ValueError, "out overlaps a part of the array; give the array itself, or "
                                      "an array with memory of its own");
    return -1;
}

static int run_one(context_object *context, const weft_spec *from, const struct array *source,
                   const weft_spec *to, const struct array *target, PyObject *stream)
{
    weft_stream *raw, *owned;
    weft_status status;

    if (place_stream(stream, source, context, &raw, &owned) < 0) return -1;
    WAIT_BEGIN
    status = weft_move(context->raw, from, source->data, to, target->data, raw, NULL);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    return check(status);
}

/* The array of the library of LIKE that has the memory of TENSOR, which this takes over. */
static PyObject *share_with(PyObject *like, weft_tensor *raw, context_object *context)
{
    PyObject *tensor = tensor_wrap(raw, context), *module = NULL, *result = NULL;

    if (tensor != NULL) module = PyImport_ImportModule("weft._arrays");
    if (module != NULL) result = PyObject_CallMethod(module, "share", "OO", like, tensor);
    Py_XDECREF(module);
    Py_XDECREF(tensor);
    return result;
}

/* Wait until the elements of SOURCE have been moved: not every library orders its reads after the
 * stream of a producer. */
static int wait_for(PyObject *stream, const struct array *source, context_object *context)
{
    weft_stream *raw, *owned;
    weft_status status;

    if (place_stream(stream, source, context, &raw, &owned) < 0) return -1;
    WAIT_BEGIN
    status = weft_stream_wait(context->raw, raw, WEFT_FOREVER);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    return check(status);
}

/* Move to a new array whose memory is a tensor's: LIKE's library has no arrays that others write.
 */
static PyObject *move_immutable(context_object *context, PyObject *like, const struct array *in,
                                const weft_spec *from, const weft_spec *to, PyObject *stream)
{
    struct array target = {.device = context->device};
    weft_tensor *tensor = NULL;

    if (check(weft_tensor_create(context->raw, to, NULL, &tensor)) < 0) return NULL;
    target.data = weft_tensor_memory(tensor);
    if (run_one(context, from, in, to, &target, stream) < 0 || wait_for(stream, in, context) < 0) {
        weft_tensor_release(&tensor);
        return NULL;
    }
    return share_with(like, tensor, context);
}

static PyObject *move_array(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "array", "source", "target", "out", "stream", NULL};
    PyObject *given, *object, *source, *target, *out = Py_None, *stream = Py_None;
    context_object *context;
    weft_spec *from, *to;
    struct array in, result;
    weft_shard shard;
    int failed;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|OO:move_array", names, &given, &object,
                                     &source, &target, &out, &stream))
        return NULL;
    context = context_of(given);
    from = context != NULL ? spec_of(source, "source") : NULL;
    to = from != NULL ? spec_of(target, "target") : NULL;
    if (to == NULL || array_open(object, &in) < 0) return NULL;
    if (shard_fits(&in, from, weft_rank(context->raw), "array") < 0 ||
        check_dense(&in, "array", false) < 0 || place_fits(&in, context, "array") < 0)
        goto fail;
    if (out == Py_None && in.device.id == ANY_DEVICE) { /* of a library that makes no arrays */
        out = move_immutable(context, object, &in, from, to, stream);
        array_close(&in);
        return out;
    }
    if (out == Py_None) {
        weft_spec_shard(to, weft_rank(context->raw), &shard);
        out = array_empty(object, &in, shard.dims, shard.shape, weft_spec_dtype(to), &result);
        if (out == NULL) goto fail;
        if (result.is_read_only) {
            array_close(&result);
            Py_DECREF(out);
            out = move_immutable(context, object, &in, from, to, stream);
            array_close(&in);
            return out;
        }
    } else {
        if (array_open(out, &result) < 0) goto fail;
        Py_INCREF(out);
    }
    failed = shard_fits(&result, to, weft_rank(context->raw), "out") < 0 ||
             check_dense(&result, "out", true) < 0 || place_fits(&result, context, "out") < 0 ||
             check_apart(&in, &result) < 0 || run_one(context, from, &in, to, &result, stream) < 0;
    array_close(&result);
    array_close(&in);
    if (failed) Py_CLEAR(out);
    return out;

fail:
    array_close(&in);
    return NULL;
}

int array_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"describe", describe, METH_O,
         "describe($module, array, /)\n--\n\nThe dtype and the shape of an array: (\"f32\", (3, "
         "4))."},
        {"move_array", KEYWORDS(move_array),
         "move_array($module, context, array, source, target, out=None, stream=None)\n--\n\n"
         "Move this rank's shard from one layout to another.  Collective."},
        {0}};

    return PyModule_AddFunctions(module, functions);
}
