/* move.c - one array moved between layouts: weft.move_array. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

static PyObject *describe(PyObject *module, PyObject *object)
{
    struct array array;
    PyObject *result;

    (void)module;
    if (array_open(object, &array) < 0) return NULL;
    result = Py_BuildValue("(sN)", weft_dtype_name(array.dtype), tuple_of(array.dims, array.shape));
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

int shard_refuse(const struct array *array, enum weft_dtype dtype, const weft_shard *shard,
                 int32_t rank, const char *name, const char *advice)
{
    Py_XDECREF(arrays_call("refuse_shape", "(ssNisNs)", name, weft_dtype_name(array->dtype),
                           tuple_of(array->dims, array->shape), (int)rank, weft_dtype_name(dtype),
                           tuple_of(shard->dims, shard->shape), advice));
    return -1;
}

int shard_fits(const struct array *array, const weft_spec *spec, int32_t rank, const char *name)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    if (array->dtype == weft_spec_dtype(spec) && has_shape(array, &shard)) return 0;
    return shard_refuse(array, weft_spec_dtype(spec), &shard, rank, name, "");
}

/* Two dense arrays are the same memory, or have none in common. */
static int check_apart(const struct array *array, const struct array *out)
{
    uintptr_t a = (uintptr_t)array->data, b = (uintptr_t)out->data;

    if (a == b || a + array_bytes(array) <= b || b + array_bytes(out) <= a) return 0;
    return refuse(PyExc_ValueError, "out overlaps a part of the array; give the array itself, or "
                                    "an array in separate memory");
}

static int run_one(context_object *context, const weft_spec *from, const struct array *source,
                   const weft_spec *to, const struct array *target, PyObject *stream)
{
    const weft_move_item item = {
        .from = from, .source = source->data, .to = to, .target = target->data};
    weft_stream *raw, *owned;
    weft_status status;

    if (place_stream(stream, source, context, &raw, &owned) < 0) return -1;
    WAIT_BEGIN
    status = weft_move(context->raw, 1, &item, sizeof item, NULL, raw, NULL);
    weft_stream_release(&owned);
    WAIT_END
    return check(status);
}

/* Open the array OUT, or a new one: a new reference.  None: the library of OBJECT has no arrays
 * that others write. */
static PyObject *open_target(context_object *context, PyObject *object, const struct array *in,
                             const weft_spec *from, const weft_spec *to, PyObject *out,
                             struct array *result)
{
    weft_shard shard;

    if (shard_fits(in, from, weft_rank(context->raw), "array") < 0 ||
        check_dense(in, "array", false) < 0 || place_fits(in, context, "array") < 0)
        return NULL;
    if (out != Py_None) return array_open(out, result) == 0 ? Py_NewRef(out) : NULL;
    if (in->device.id == ANY_DEVICE) return Py_NewRef(out); /* its library makes no arrays */
    weft_spec_shard(to, weft_rank(context->raw), &shard);
    out = array_empty(object, in, shard.dims, shard.shape, weft_spec_dtype(to), result);
    if (out == NULL || !result->is_read_only) return out;
    array_close(result);
    Py_DECREF(out);
    return Py_NewRef(Py_None);
}

static PyObject *move_array(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "array", "source", "target", "out", "stream", NULL};
    PyObject *given, *object, *source, *target, *out = Py_None, *stream = Py_None;
    context_object *context;
    weft_spec *from, *to;
    struct array in, result;

    (void)module;
    if (!(kwargs == NULL /* as weft.redistribute calls it, and faster */
              ? PyArg_UnpackTuple(args, "move_array", 4, 6, &given, &object, &source, &target, &out,
                                  &stream)
              : PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|OO:move_array", names, &given,
                                            &object, &source, &target, &out, &stream)))
        return NULL;
    context = context_of(given);
    from = context != NULL ? handle_of(source, &class_weft_spec, "source") : NULL;
    to = from != NULL ? handle_of(target, &class_weft_spec, "target") : NULL;
    if (to == NULL) return NULL;
    context->calls++; /* the code of arrays cannot close it */
    if (array_open(object, &in) < 0) {
        context->calls--;
        return NULL;
    }
    out = open_target(context, object, &in, from, to, out, &result);
    if (out != NULL && out != Py_None) {
        if (shard_fits(&result, to, weft_rank(context->raw), "out") < 0 ||
            check_dense(&result, "out", true) < 0 || place_fits(&result, context, "out") < 0 ||
            check_apart(&in, &result) < 0 || run_one(context, from, &in, to, &result, stream) < 0)
            Py_CLEAR(out);
        array_close(&result);
    }
    array_close(&in);
    context->calls--;
    if (out != Py_None) return out;
    Py_DECREF(out);
    return arrays_call("move_shared", "(OOOOO)", given, object, source, target, stream);
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
