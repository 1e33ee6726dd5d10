/* apply.c - functions of Python as kernels of operators.
 *
 * A kernel gets the shards of its rank as weft.Shard, which other libraries read through DLPack.
 * Their memory is the kernel's until it returns, so an array that outlives the kernel is an error.
 */
#include "opcall.h"
#include "interrupt.h"

/* The shard of LOCAL; None if the operator has no such tensor. */
static PyObject *shard_of(const weft_op_local *local, weft_dl_device device, bool is_read_only)
{
    if (local->spec == NULL) Py_RETURN_NONE;
    return shard_new(&(struct shard_facts){.data = local->memory,
                                           .dims = local->shard->dims,
                                           .shape = local->shard->shape,
                                           .strides = local->strides,
                                           .offset = local->shard->offset,
                                           .dtype = weft_spec_dtype(local->spec),
                                           .device = device,
                                           .spec = local->spec,
                                           .is_read_only = is_read_only});
}

/* An operator in place writes its input.  A phase has no choice, and writes outputs alone. */
static bool is_written(const weft_op_run *run, uint32_t input)
{
    if (run->choice == NULL) return false;
    for (uint32_t i = 0; i < run->output_count; i++)
        if (weft_op_choice_memory(run->choice, i) == input) return true;
    return false;
}

static PyObject *shards_of(const weft_op_run *run, weft_dl_device device, bool outputs)
{
    uint32_t count = outputs ? run->output_count : run->input_count;
    const weft_op_local *locals = outputs ? run->outputs : run->inputs;
    PyObject *tuple = PyTuple_New(count);

    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = shard_of(&locals[i], device, !outputs && !is_written(run, i));

        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

weft_status kernel_call(void *user, const weft_op_run *run)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct kernel *kernel = user;
    PyObject *inputs = shards_of(run, kernel->device, false);
    PyObject *outputs = shards_of(run, kernel->device, true), *result = NULL;
    PyObject *attrs = attrs_to_python(run->attrs, run->attr_count);
    weft_status status;
    Py_ssize_t kept;

    if (inputs != NULL && outputs != NULL && attrs != NULL)
        result = PyObject_CallFunction(
            kernel->function, "siOOOdN", run->name, (int)run->rank, inputs, outputs, attrs,
            run->count, PyLong_FromVoidPtr(weft_stream_native(run->context, run->stream)));
    kept = shards_close(inputs) + shards_close(outputs);
    status = kernel_end(kernel, result != NULL ? kept : 0, run->name);
    Py_XDECREF(result);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    Py_XDECREF(attrs);
    PyGILState_Release(state);
    return status;
}

/* ---- applying ---- */

/* How many outputs the call of tensors has. */
static int count_outputs(const struct opcall *call, uint32_t *out)
{
    weft_op_call question = call->call;
    const weft_spec **specs = PyMem_Calloc((size_t)call->inputs.count + 1, sizeof *specs);
    int result;

    if (specs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < call->inputs.count; i++)
        specs[i] = weft_tensor_spec(call->inputs.raw[i]);
    question.inputs = specs;
    result = opcall_count_outputs(&question, out);
    PyMem_Free(specs);
    return result;
}

/* weft_op_apply or weft_op_apply_phases */
typedef weft_status apply_function(weft_context *context, const weft_op_call *call,
                                   weft_tensor *const *inputs,
                                   weft_status (*kernel)(void *user, const weft_op_run *run),
                                   void *user, weft_stream *stream, weft_tensor **outputs);

/* The COUNT outputs; those that do not exist are None. */
static PyObject *run(context_object *context, struct opcall *call, struct kernel *kernel,
                     PyObject *on, apply_function *apply, uint32_t count)
{
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
    status = apply(context->raw, &call->call, (weft_tensor *const *)call->inputs.raw, kernel_call,
                   kernel, stream, outputs);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    result =
        status == WEFT_OK ? tensors_wrap(outputs, count, context) : kernel_raise(kernel, status);
    PyMem_Free(outputs);
    return result;
}

static PyObject *op_apply(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "name", "inputs", "kernel",       "attrs",
                            "outputs", "mesh", "stream", "mixed_dtypes", NULL};
    PyObject *given, *inputs, *attrs = Py_None, *outputs = Py_None, *mesh = Py_None;
    PyObject *stream = Py_None, *result = NULL;
    struct kernel kernel = {0};
    context_object *context;
    struct opcall call;
    const char *name;
    uint32_t count;
    int mixed = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OsOO|OOOOp:op_apply", names, &given, &name,
                                     &inputs, &kernel.function, &attrs, &outputs, &mesh, &stream,
                                     &mixed))
        return NULL;
    context = context_of(given);
    if (context == NULL ||
        opcall_open(name, inputs, binding.tensor, attrs, outputs, mesh, &call) < 0)
        return NULL;
    call.call.flags = mixed ? WEFT_OP_MIXED_DTYPES : 0;
    kernel.device = context->device;
    if (count_outputs(&call, &count) == 0)
        result = run(context, &call, &kernel, stream, weft_op_apply, count);
    opcall_close(&call);
    return result;
}

static PyObject *op_apply_phases(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "name",   "inputs",       "kernel",
                            "attrs",   "stream", "mixed_dtypes", NULL};
    PyObject *given, *inputs, *attrs = Py_None, *stream = Py_None, *result;
    struct kernel kernel = {0};
    context_object *context;
    struct opcall call;
    const char *name;
    int mixed = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OsOO|OOp:op_apply_phases", names, &given, &name,
                                     &inputs, &kernel.function, &attrs, &stream, &mixed))
        return NULL;
    context = context_of(given);
    if (context == NULL ||
        opcall_open(name, inputs, binding.tensor, attrs, Py_None, Py_None, &call) < 0)
        return NULL;
    call.call.flags = mixed ? WEFT_OP_MIXED_DTYPES : 0;
    kernel.device = context->device;
    result = run(context, &call, &kernel, stream, weft_op_apply_phases, WEFT_OP_PHASES_OUTPUTS);
    opcall_close(&call);
    return result;
}

static PyObject *op_moves_set(PyObject *module, PyObject *args)
{
    enum weft_op_moves before;
    context_object *context;
    PyObject *given;
    int moves;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oi:op_moves_set", &given, &moves)) return NULL;
    context = context_of(given);
    if (context == NULL ||
        check(weft_op_moves_set(context->raw, (enum weft_op_moves)moves, &before)) < 0)
        return NULL;
    return PyLong_FromLong(before);
}

int apply_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"op_apply", KEYWORDS(op_apply),
         "op_apply(context, name, inputs, kernel, attrs=None, outputs=None, mesh=None, "
         "stream=None)"},
        {"op_apply_phases", KEYWORDS(op_apply_phases),
         "op_apply_phases(context, name, inputs, kernel, attrs=None, stream=None)"},
        {"op_moves_set", op_moves_set, METH_VARARGS, "op_moves_set(context, moves)"},
        {0}};

    return PyModule_AddFunctions(module, functions);
}
