/* tensor.c - what weft.Tensor has beside its generated members: tensors of memory of weft and of
 * arrays. */
#include "call.h"
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

#include <stdlib.h>

weft_tensor *tensor_raw(PyObject *self)
{
    return ((tensor_object *)self)->raw;
}

PyObject *tensor_wrap(weft_tensor *raw, context_object *context)
{
    PyObject *self = dependent_new(binding.tensor, raw, context);

    if (self == NULL) weft_tensor_release(&raw);
    return self;
}

/* ---- creation ---- */

static PyObject *create(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "spec", "name", NULL};
    weft_tensor_options options = {.struct_size = sizeof options};
    PyObject *given, *spec;
    context_object *context;
    weft_spec *layout;
    weft_tensor *raw = NULL;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|z:Tensor", names, &given, &spec,
                                     &options.name))
        return NULL;
    context = context_of(given);
    layout = context != NULL ? spec_of(spec, "spec") : NULL;
    if (layout == NULL || check(weft_tensor_create(context->raw, layout, &options, &raw)) < 0)
        return NULL;
    return tensor_wrap(raw, context);
}

/* The array that a tensor wraps, and the object that owns its memory. */
struct wrapped {
    struct array array;
    PyObject *owner;
};

/* Threads without the GIL may release a tensor, also when the interpreter has ended. */
static void release_wrapped(void *argument, void *memory)
{
    struct wrapped *wrapped = argument;
    PyGILState_STATE state;

    (void)memory;
    if (!Py_IsInitialized()) return;
    state = PyGILState_Ensure();
    array_close(&wrapped->array);
    Py_DECREF(wrapped->owner);
    free(wrapped);
    PyGILState_Release(state);
}

/* Make the default stream wait for the work on ARRAY that its library has posted. */
static int wait_for_array(const struct array *array, context_object *context)
{
    weft_stream *stream, *owned = NULL;
    weft_work *work = NULL;
    weft_status status;

    if (place_stream(Py_None, array, context, &stream, &owned) < 0) return -1;
    if (owned == NULL) return 0;
    status = weft_work_record(context->raw, owned, &work);
    if (status == WEFT_OK) status = weft_stream_wait_work(NULL, work);
    weft_work_release(&work);
    weft_stream_release(context->raw, &owned);
    return check(status);
}

static PyObject *wrap(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "spec", "array", "name", "agree", NULL};
    weft_tensor_options options = {.struct_size = sizeof options, .release = release_wrapped};
    struct wrapped *wrapped;
    PyObject *given, *spec, *array;
    context_object *context;
    weft_spec *layout;
    weft_tensor *raw = NULL;
    weft_status status;
    int agree = 0;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|zp:wrap", names, &given, &spec, &array,
                                     &options.name, &agree))
        return NULL;
    context = context_of(given);
    layout = context != NULL ? spec_of(spec, "spec") : NULL;
    if (layout == NULL) return NULL;
    wrapped = calloc(1, sizeof *wrapped);
    if (wrapped == NULL) return PyErr_NoMemory();
    if (array_open(array, &wrapped->array) < 0) {
        free(wrapped);
        return NULL;
    }
    wrapped->owner = Py_NewRef(array);
    options.argument = wrapped;
    options.agree = agree;
    options.shape = wrapped->array.shape;
    options.strides = wrapped->array.strides;
    if (shard_fits(&wrapped->array, layout, weft_rank(context->raw), "array") < 0 ||
        writable(&wrapped->array, "array") < 0 ||
        place_fits(&wrapped->array, context, "array") < 0 ||
        wait_for_array(&wrapped->array, context) < 0) {
        release_wrapped(wrapped, NULL);
        return NULL;
    }
    WAIT_BEGIN
    status = weft_tensor_wrap(context->raw, layout, wrapped->array.data, &options, &raw);
    WAIT_END
    if (status == WEFT_OK) return tensor_wrap(raw, context);
    (void)raise_status(status);
    release_wrapped(wrapped, NULL);
    return NULL;
}

int tensor_members_add(void)
{
    static PyGetSetDef properties[] = {{0}};
    static PyMethodDef methods[] = {
        {"create", KEYWORDS(create) | METH_CLASS,
         "create($type, context, spec, name=None)\n--\n\nA tensor in memory that is not set."},
        {"wrap", KEYWORDS(wrap) | METH_CLASS,
         "wrap($type, context, spec, array, name=None, agree=False)\n--\n\nA tensor whose shard "
         "on this rank is the array."},
        {"local", KEYWORDS(tensor_local),
         "local($self, rank, stream=None)\n--\n\nThe shard of a rank: of this one or, if ranks "
         "are simulated, of any.  stream is a number of DLPack's: the stream of who uses the "
         "shard."},
        {0}};

    return type_extend(binding.tensor, methods, properties);
}
