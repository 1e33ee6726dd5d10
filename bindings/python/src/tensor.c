/* tensor.c - weft.Tensor: layouts, moves, views, comparison and text.  draw.c and share.c add
 * random numbers and DLPack. */
#include "tensor.h"
#include "interrupt.h"

#include "place.h"

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

PyObject *tensors_wrap(weft_tensor **raw, uint32_t count, context_object *context)
{
    PyObject *tuple = PyTuple_New(count);

    for (uint32_t i = 0; i < count; i++) {
        PyObject *item = Py_None;

        if (raw[i] != NULL)
            item = tensor_wrap(raw[i], context); /* it takes RAW over, also without memory */
        else
            Py_INCREF(item);
        if (tuple == NULL || item == NULL) {
            Py_XDECREF(item);
            Py_CLEAR(tuple);
        } else {
            PyTuple_SetItem(tuple, (Py_ssize_t)i, item);
        }
    }
    return tuple;
}

static void tensor_dealloc(PyObject *object)
{
    weft_tensor_release(&((tensor_object *)object)->raw);
    dependent_free(object);
}

static context_object *context_at(PyObject *self)
{
    return ((tensor_object *)self)->context;
}

/* ---- creation ---- */

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
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

static PyObject *tensor_wrap_array(PyObject *type, PyObject *args, PyObject *kwargs)
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

/* ---- properties ---- */

static PyObject *get_spec(PyObject *self, void *closure)
{
    (void)closure;
    return spec_wrap(weft_spec_retain(weft_tensor_spec(tensor_raw(self))));
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(weft_tensor_name(tensor_raw(self)));
}

static PyObject *get_context(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef((PyObject *)context_at(self));
}

static weft_status print(const void *tensor, char *buffer, size_t capacity, size_t *length)
{
    return weft_tensor_print((weft_tensor *)tensor, NULL, buffer, capacity, length);
}

static weft_status print_full(const void *tensor, char *buffer, size_t capacity, size_t *length)
{
    weft_status status;

    WAIT_BEGIN
    status = weft_tensor_print_full((weft_tensor *)tensor, NULL, buffer, capacity, length);
    WAIT_END
    return status;
}

static PyObject *tensor_str(PyObject *self)
{
    return text_of(print, tensor_raw(self));
}

static PyObject *tensor_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    return text_of(print_full, tensor_raw(self));
}

/* ---- moves ---- */

static PyObject *tensor_move(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"target", "stream", NULL};
    PyObject *target, *stream = Py_None;
    weft_spec *layout, *parsed = NULL;
    weft_stream *on, *owned;
    weft_tensor *raw = NULL;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:move", names, &target, &stream))
        return NULL;
    if (PyUnicode_Check(target)) {
        const char *text = PyUnicode_AsUTF8AndSize(target, NULL);

        if (text == NULL ||
            check(weft_spec_with(weft_tensor_spec(tensor_raw(self)), text, &parsed)) < 0)
            return NULL;
        layout = parsed;
    } else {
        layout = weft_spec_retain(spec_of(target, "target"));
    }
    if (layout == NULL || stream_of(stream, context_at(self), &on, &owned) < 0) {
        weft_spec_release(&layout);
        return NULL;
    }
    WAIT_BEGIN
    status = weft_tensor_move(tensor_raw(self), layout, on, &raw);
    weft_stream_release(context_at(self)->raw, &owned);
    WAIT_END
    weft_spec_release(&layout);
    return status == WEFT_OK ? tensor_wrap(raw, context_at(self)) : raise_status(status);
}

static PyObject *tensor_move_into(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"target", "stream", NULL};
    PyObject *target, *stream = Py_None;
    weft_stream *on, *owned;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O:move_into", names, binding.tensor, &target,
                                     &stream) ||
        stream_of(stream, context_at(self), &on, &owned) < 0)
        return NULL;
    WAIT_BEGIN
    status = weft_tensor_move_into(tensor_raw(self), tensor_raw(target), on, NULL);
    weft_stream_release(context_at(self)->raw, &owned);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *move_into(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tensors", "targets", "stream", NULL};
    PyObject *sources, *targets, *stream = Py_None, *result = NULL;
    weft_stream *on = NULL, *owned = NULL;
    struct handles from, to;
    context_object *context;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:move_into", names, &sources, &targets,
                                     &stream) ||
        handles_open(sources, binding.tensor, false, "tensors", &from) < 0)
        return NULL;
    if (handles_open(targets, binding.tensor, false, "targets", &to) < 0) {
        handles_close(&from);
        return NULL;
    }
    if (from.count == 0 || from.count != to.count) {
        PyErr_SetString(PyExc_ValueError, "there must be a target for each tensor, and at least 1");
    } else {
        PyObject *first = PySequence_GetItem(from.items, 0);

        context = first != NULL ? context_at(first) : NULL;
        if (context != NULL && stream_of(stream, context, &on, &owned) == 0) {
            weft_status status;

            WAIT_BEGIN
            status = weft_tensors_move_into(from.count, (weft_tensor *const *)from.raw,
                                            (weft_tensor *const *)to.raw, on, NULL);
            weft_stream_release(context->raw, &owned);
            WAIT_END
            result = status == WEFT_OK ? Py_NewRef(Py_None) : raise_status(status);
        }
        Py_XDECREF(first);
    }
    handles_close(&from);
    handles_close(&to);
    return result;
}

static PyObject *tensor_full(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rank", NULL};
    weft_tensor *raw = NULL;
    weft_status status;
    int rank = WEFT_EVERY_RANK;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:full", names, &rank)) return NULL;
    WAIT_BEGIN
    status = weft_tensor_full(tensor_raw(self), rank, NULL, &raw);
    WAIT_END
    return status == WEFT_OK ? tensor_wrap(raw, context_at(self)) : raise_status(status);
}

/* ---- views ---- */

static PyObject *tensor_narrow(PyObject *self, PyObject *args)
{
    long long start, length;
    weft_tensor *raw = NULL;
    int dim;

    if (!PyArg_ParseTuple(args, "iLL:narrow", &dim, &start, &length)) return NULL;
    if (check(weft_tensor_narrow(tensor_raw(self), dim, start, length, &raw)) < 0) return NULL;
    return tensor_wrap(raw, context_at(self));
}

static PyObject *tensor_transpose(PyObject *self, PyObject *args)
{
    weft_tensor *raw = NULL;
    int a, b;

    if (!PyArg_ParseTuple(args, "ii:transpose", &a, &b)) return NULL;
    if (check(weft_tensor_transpose(tensor_raw(self), a, b, &raw)) < 0) return NULL;
    return tensor_wrap(raw, context_at(self));
}

static PyObject *tensor_reshape(PyObject *self, PyObject *sizes)
{
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = numbers_of(sizes, shape);
    weft_tensor *raw = NULL;

    if (dims < 0) return NULL;
    if (check(weft_tensor_reshape(tensor_raw(self), dims, shape, &raw)) < 0) return NULL;
    return tensor_wrap(raw, context_at(self));
}

/* ---- elements ---- */

static PyObject *tensor_fill(PyObject *self, PyObject *args)
{
    double value;

    if (!PyArg_ParseTuple(args, "d:fill", &value)) return NULL;
    if (check(weft_tensor_fill(tensor_raw(self), value, NULL)) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *tensor_from_host(PyObject *self, PyObject *source)
{
    weft_status status;
    Py_buffer view;

    if (refuse_mask(source) < 0 || PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) < 0) return NULL;
    WAIT_BEGIN
    status = weft_tensor_from_host(tensor_raw(self), view.buf, (uint64_t)view.len, NULL);
    WAIT_END
    PyBuffer_Release(&view);
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *tensor_to_host(PyObject *self, PyObject *target)
{
    weft_status status;
    Py_buffer view;

    if (refuse_mask(target) < 0 || PyObject_GetBuffer(target, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    WAIT_BEGIN
    status = weft_tensor_to_host(tensor_raw(self), view.buf, (uint64_t)view.len, NULL);
    WAIT_END
    PyBuffer_Release(&view);
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *tensor_compare(PyObject *self, PyObject *args)
{
    weft_difference_info info = {.struct_size = sizeof info};
    PyObject *other, *index;
    weft_status status;
    int32_t dims;

    if (!PyArg_ParseTuple(args, "O!:compare", binding.tensor, &other)) return NULL;
    WAIT_BEGIN
    status = weft_tensor_compare(tensor_raw(self), tensor_raw(other), NULL, &info);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    dims = weft_spec_dims(weft_tensor_spec(tensor_raw(self)));
    index = tuple_of(dims, info.index);
    if (index == NULL) return NULL;
    return Py_BuildValue("{s:O,s:K,s:d,s:i,s:N}", "equal", info.equal ? Py_True : Py_False,
                         "differing", info.differing, "largest", info.largest, "rank",
                         (int)info.rank, "index", index);
}

int tensor_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"spec", get_spec, NULL, "The layout.", NULL},
        {"name", get_name, NULL, "The name in messages; \"\" if it has none.", NULL},
        {"context", get_context, NULL, "The context.", NULL},
        {"__cuda_array_interface__", tensor_cuda_array, NULL,
         "This rank's shard on a CUDA device; its work is on the default stream.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"wrap", KEYWORDS(tensor_wrap_array) | METH_CLASS,
         "wrap(context, spec, array, name=None, agree=False)\n\nA tensor whose shard on this rank "
         "is the array."},
        {"move", KEYWORDS(tensor_move),
         "move(target, stream=None)\n\nThe tensor in another layout, a spec or placements.  "
         "Collective."},
        {"move_into", KEYWORDS(tensor_move_into),
         "move_into(target, stream=None)\n\nMove the elements to another tensor.  Collective."},
        {"full", KEYWORDS(tensor_full),
         "full(rank=-1)\n\nThe whole tensor on one rank, or on every rank.  Collective."},
        {"local", KEYWORDS(tensor_local),
         "local(rank)\n\nThe shard of a rank: of this one or, if ranks are simulated, of any."},
        {"narrow", tensor_narrow, METH_VARARGS,
         "narrow(dim, start, length)\n\nA view of the indices from start on."},
        {"transpose", tensor_transpose, METH_VARARGS,
         "transpose(a, b)\n\nA view with two dimensions swapped."},
        {"reshape", tensor_reshape, METH_O, "reshape(shape)\n\nA view with another shape."},
        {"fill", tensor_fill, METH_VARARGS, "fill(value)\n\nSet every element."},
        {"from_host", tensor_from_host, METH_O,
         "from_host(source)\n\nSet this rank's shard from a contiguous buffer in host memory."},
        {"to_host", tensor_to_host, METH_O,
         "to_host(target)\n\nCopy this rank's shard to a contiguous buffer in host memory."},
        {"compare", tensor_compare, METH_VARARGS,
         "compare(other)\n\nHow two tensors differ.  Collective."},
        {"text", tensor_text, METH_NOARGS, "text()\n\nThe whole tensor as text.  Collective."},
        DRAW_METHODS SHARE_METHODS{0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Tensor(context, spec, name=None)\n\nA layout and this rank's memory, which is "
                    "not set."},
        {Py_tp_new, tensor_new},
        {Py_tp_dealloc, tensor_dealloc},
        {Py_tp_str, tensor_str},
        {Py_tp_repr, tensor_str},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Tensor", sizeof(tensor_object), 0, Py_TPFLAGS_DEFAULT, slots};

    static PyMethodDef functions[] = {
        {"move_into", KEYWORDS(move_into),
         "move_into(tensors, targets, stream=None)\n\nMove the elements of tensors to other "
         "tensors, as one batch.  Collective."},
        {0}};

    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return type_add(module, &spec, &binding.tensor);
}
