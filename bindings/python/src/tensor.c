/* tensor.c - what weft.Tensor has beside its generated members: tensors of arrays. */
#include "classes.h"
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
    static const struct value_type type = {
        .kind = VALUE_HANDLE, .is_owned = 1, .handle = &class_weft_tensor};

    return value_make(&type, &raw, (PyObject *)context);
}

/* ---- tensors of arrays ---- */

/* Threads without the GIL may release a tensor, also when the interpreter has ended. */
static void release_array(void *array, void *memory)
{
    PyGILState_STATE state;

    (void)memory;
    if (!Py_IsInitialized()) return;
    state = PyGILState_Ensure();
    array_close(array);
    free(array);
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

/* A tensor of ARRAY, which it takes over after success. */
static int wrap_array(struct array *array, context_object *context, const weft_spec *spec,
                      weft_tensor_options *options, weft_tensor **out)
{
    weft_status status;

    options->release = release_array;
    options->argument = array;
    options->shape = array->shape;
    options->strides = array->strides;
    if (shard_fits(array, spec, weft_rank(context->raw), "array") < 0 ||
        writable(array, "array") < 0 || place_fits(array, context, "array") < 0 ||
        wait_for_array(array, context) < 0)
        return -1;
    WAIT_BEGIN
    status = weft_tensor_wrap(context->raw, spec, array->data, options, out);
    WAIT_END
    return check(status);
}

static PyObject *wrap(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "spec", "array", "name", "agree", NULL};
    weft_tensor_options options = {.struct_size = sizeof options};
    PyObject *given, *spec, *object, *made = NULL;
    context_object *context;
    weft_spec *layout;
    struct array *array;
    weft_tensor *raw = NULL;
    int agree = 0;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|zp:wrap", names, &given, &spec, &object,
                                     &options.name, &agree))
        return NULL;
    options.agree = agree;
    context = context_of(given);
    layout = context != NULL ? spec_of(spec, "spec") : NULL;
    if (layout == NULL) return NULL;
    array = calloc(1, sizeof *array);
    if (array == NULL) return PyErr_NoMemory();
    context->calls++; /* the array's code cannot close it */
    if (array_open(object, array) == 0 && wrap_array(array, context, layout, &options, &raw) == 0)
        made = tensor_wrap(raw, context);
    else
        release_array(array, NULL);
    context->calls--;
    return made;
}

int tensor_members_add(void)
{
    static PyGetSetDef properties[] = {{0}};
    static PyMethodDef methods[] = {
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
