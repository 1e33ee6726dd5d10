/* backward.c - weft.Backward: the calls that compute the gradients of a call. */
#include "opcall.h"
#include "interrupt.h"

static weft_op_backward *raw_of(PyObject *self)
{
    return ((any_object *)self)->raw;
}

static weft_op_backward_info info_of(PyObject *self)
{
    weft_op_backward_info info = {.struct_size = sizeof info};

    if (weft_op_backward_get(raw_of(self), &info) != WEFT_OK) info = (weft_op_backward_info){0};
    return info;
}

/* One byte per input: whether its gradient is wanted; NULL: all. */
static int read_wanted(PyObject *wanted, uint32_t inputs, unsigned char **out)
{
    *out = NULL;
    if (wanted == Py_None) return 0;
    if (PySequence_Size(wanted) != (Py_ssize_t)inputs) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "wanted must have an entry for each of %u inputs",
                         inputs);
        return -1;
    }
    *out = PyMem_Calloc((size_t)inputs + 1, 1);
    if (*out == NULL) PyErr_NoMemory();
    for (uint32_t i = 0; *out != NULL && i < inputs && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(wanted, (Py_ssize_t)i);

        if (item != NULL) (*out)[i] = PyObject_IsTrue(item) == 1;
        Py_XDECREF(item);
    }
    if (!PyErr_Occurred()) return 0;
    PyMem_Free(*out);
    return -1;
}

static PyObject *backward_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "inputs", "attrs", "outputs", "wanted", "mixed_dtypes", NULL};
    PyObject *inputs, *attrs = Py_None, *outputs = Py_None, *wanted = Py_None;
    weft_op_backward *raw = NULL;
    struct opcall call;
    unsigned char *flags;
    any_object *self;
    const char *name;
    int failed, mixed = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|OOOp:Backward", names, &name, &inputs,
                                     &attrs, &outputs, &wanted, &mixed))
        return NULL;
    if (opcall_open(name, inputs, binding.spec, attrs, outputs, Py_None, &call) < 0) return NULL;
    call.call.flags = mixed ? WEFT_OP_MIXED_DTYPES : 0;
    failed = read_wanted(wanted, call.inputs.count, &flags) < 0 ||
             check(weft_op_backward_create(&call.call, flags, &raw)) < 0;
    PyMem_Free(flags);
    opcall_close(&call);
    if (failed) return NULL;
    self = object_new(type);
    if (self == NULL)
        weft_op_backward_release(&raw);
    else
        self->raw = raw;
    return (PyObject *)self;
}

static void backward_dealloc(PyObject *self)
{
    weft_op_backward *raw = raw_of(self);

    weft_op_backward_release(&raw);
    object_free(self);
}

static PyObject *operand_to_python(const weft_op_operand *operand)
{
    static const char *const sources[] = {"input", "output", "gradient", "result", "nothing"};

    if (operand == NULL) Py_RETURN_NONE;
    return Py_BuildValue("(sI)", sources[operand->source], operand->index);
}

/* (name, attributes, operands) of a call. */
static PyObject *call_at(PyObject *self, uint32_t i)
{
    const weft_op_gradient_call *call = weft_op_backward_call(raw_of(self), i);
    PyObject *operands = PyTuple_New(call->call->input_count);

    for (uint32_t k = 0; operands != NULL && k < call->call->input_count; k++) {
        PyObject *item = operand_to_python(&call->operands[k]);

        if (item == NULL || PyTuple_SetItem(operands, (Py_ssize_t)k, item) < 0) Py_CLEAR(operands);
    }
    if (operands == NULL) return NULL;
    return Py_BuildValue("(sNN)", call->call->name,
                         attrs_to_python(call->call->attrs, call->call->attr_count), operands);
}

static PyObject *gradient_at(PyObject *self, uint32_t i)
{
    const weft_op_operand *operand = weft_op_backward_gradient(raw_of(self), i);

    return spec_or_none(operand != NULL ? weft_op_backward_spec(raw_of(self), operand) : NULL);
}

static PyObject *get_calls(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_made(self, info_of(self).calls, call_at);
}

static PyObject *get_gradients(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_made(self, info_of(self).inputs, gradient_at);
}

static PyObject *get_local(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(info_of(self).local);
}

static PyObject *get_cost(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(info_of(self).cost_ns);
}

static PyObject *run(PyObject *self, context_object *context, struct handles *forward,
                     struct handles *gradients, struct kernel *kernel, PyObject *on)
{
    uint32_t count = info_of(self).inputs;
    weft_tensor **outputs = PyMem_Calloc((size_t)count + 1, sizeof *outputs);
    weft_stream *stream, *owned;
    weft_status status;
    PyObject *result;

    if (outputs == NULL) return PyErr_NoMemory();
    if (stream_of(on, context, &stream, &owned) < 0) {
        PyMem_Free(outputs);
        return NULL;
    }
    WAIT_BEGIN
    status = weft_op_backward_apply(context->raw, raw_of(self), (weft_tensor *const *)forward->raw,
                                    (weft_tensor *const *)gradients->raw, kernel_call, kernel,
                                    stream, outputs);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    result =
        status == WEFT_OK ? tensors_wrap(outputs, count, context) : kernel_raise(kernel, status);
    PyMem_Free(outputs);
    return result;
}

static PyObject *backward_apply(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "forward", "gradients", "kernel", "stream", NULL};
    PyObject *given, *forward, *gradients, *stream = Py_None, *result = NULL;
    weft_op_backward_info info = info_of(self);
    struct handles tensors, slopes;
    struct kernel kernel = {0};
    context_object *context;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|O:apply", names, &given, &forward,
                                     &gradients, &kernel.function, &stream))
        return NULL;
    context = context_of(given);
    if (context == NULL || handles_open(forward, binding.tensor, true, "forward", &tensors) < 0)
        return NULL;
    kernel.device = context->device;
    if (handles_open(gradients, binding.tensor, true, "gradients", &slopes) == 0) {
        if (tensors.count != info.inputs + info.outputs || slopes.count != info.outputs)
            PyErr_Format(PyExc_ValueError,
                         "the call has %u inputs and %u outputs; forward has %u tensors and "
                         "gradients %u",
                         info.inputs, info.outputs, tensors.count, slopes.count);
        else
            result = run(self, context, &tensors, &slopes, &kernel, stream);
        handles_close(&slopes);
    }
    handles_close(&tensors);
    return result;
}

int backward_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"calls", get_calls, NULL,
         "The calls in order: name, attributes, and where each input comes from.", NULL},
        {"gradients", get_gradients, NULL,
         "The layout of the gradient of each input; None: it has none.", NULL},
        {"local", get_local, NULL, "Whether no call moves an input by communication.", NULL},
        {"cost_ns", get_cost, NULL, "The predicted time of the moves.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"apply", KEYWORDS(backward_apply),
         "apply(context, forward, gradients, kernel, stream=None)\n\nRun the calls.  forward has "
         "the inputs and the outputs of the call, gradients those of the outputs."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Backward(name, inputs, attrs=None, outputs=None, wanted=None)\n\nThe calls "
                    "that compute the gradients of a call.  inputs are layouts."},
        {Py_tp_new, backward_new},
        {Py_tp_dealloc, backward_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Backward", sizeof(any_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return type_add(module, &spec, &binding.op_backward);
}
