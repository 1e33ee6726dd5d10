/* apply.c - calls of operators, and functions of Python as their kernels.
 *
 * A kernel gets the shards of its rank as weft.Shard, which other libraries read through DLPack.
 * Their memory is the kernel's until it returns, so an array that outlives the kernel is an error.
 */
#include "classes.h"
#include "interrupt.h"
#include "shard.h"

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

static const struct value_type attrs_type = {
    .kind = VALUE_LIST, .element = VALUE_RECORD, .of = -1, .record = &record_weft_op_attr_out};

/* Call the function with the parts of RUN: name, rank, inputs, outputs, attributes, count and the
 * address of the stream. */
static weft_status kernel_call(void *user, const weft_op_run *run)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct kernel *kernel = user;
    PyObject *inputs = shards_of(run, kernel->device, false);
    PyObject *outputs = shards_of(run, kernel->device, true), *result = NULL;
    weft_status status;
    Py_ssize_t kept;

    if (inputs != NULL && outputs != NULL)
        result = PyObject_CallFunction(
            kernel->function, "siOONdN", run->name, (int)run->rank, inputs, outputs,
            list_make(&attrs_type, run->attrs, run->attr_count, NULL), run->count,
            PyLong_FromVoidPtr(weft_stream_native(run->context, run->stream)));
    kept = shards_close(inputs) + shards_close(outputs);
    status = kernel_end(kernel, result != NULL ? kept : 0, run->name);
    Py_XDECREF(result);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    PyGILState_Release(state);
    return status;
}

/* ---- questions ---- */

/* Read a call from a dictionary of the fields of weft_op_call. */
static int read_call(PyObject *given, struct arena *arena, weft_op_call *out)
{
    static const struct value_type type = {
        .name = "call", .kind = VALUE_RECORD, .record = &record_weft_op_call_in};

    *out = (weft_op_call){.struct_size = sizeof *out};
    return value_read(&type, given, arena, out);
}

/* How many outputs CALL has.  The cache of choices makes the question cheap. */
static int count_outputs(const weft_op_call *call, uint32_t *out)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    weft_op_choice *choice = NULL;
    weft_status status = weft_op_propose(call, NULL, &choice);

    if (status == WEFT_OK) status = weft_op_choice_get(choice, &info);
    weft_op_choice_release(&choice);
    *out = info.outputs;
    return check(status);
}

/* Set the list of layouts called NAME, of which C reads an entry for each input or output of CALL;
 * 0 if there is no such list. */
static int set_layouts(const weft_op_call *call, PyObject *name, PyObject *value,
                       struct arena *arena, weft_op_options *out)
{
    static const char *const names[] = {"fixed_inputs", "fixed_outputs", "wanted_outputs"};
    const weft_spec *const **lists[] = {&out->fixed_inputs, &out->fixed_outputs,
                                        &out->wanted_outputs};

    for (int i = 0; i < 3; i++) {
        const struct value_type type = {.name = names[i],
                                        .kind = VALUE_LIST,
                                        .element = VALUE_HANDLE,
                                        .of = -1,
                                        .handle = &class_weft_spec};
        uint32_t wanted = call->input_count;
        size_t count = 0;
        void *list = NULL;

        if (PyUnicode_CompareWithASCIIString(name, names[i]) != 0) continue;
        if (value == Py_None) return 1;
        if (list_read(&type, value, arena, &list, &count) < 0 ||
            (i > 0 && count_outputs(call, &wanted) < 0))
            return -1;
        *lists[i] = list;
        if (count == wanted) return 1;
        PyErr_Format(PyExc_ValueError, "%s has %zu entries; the call needs %u", names[i], count,
                     wanted);
        return -1;
    }
    return 0;
}

static int read_options(const weft_op_call *call, PyObject *given, struct arena *arena,
                        weft_op_options *out)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;

    *out = (weft_op_options){.struct_size = sizeof *out};
    while (PyDict_Next(given, &position, &name, &value)) {
        int result = record_set(&record_weft_op_options_in, (char *)out, name, value, arena);

        if (result == 0) result = set_layouts(call, name, value, arena, out);
        if (result == 0) PyErr_Format(PyExc_TypeError, "an operator has no option %R", name);
        if (result <= 0) return -1;
    }
    return 0;
}

static PyObject *op_ask(PyObject *module, PyObject *args)
{
    PyObject *given, *chosen, *result = NULL;
    weft_op_choice *choice = NULL;
    weft_op_options options;
    weft_op_list *list = NULL;
    struct arena arena = {0};
    weft_status status;
    weft_op_call call;
    int what;

    (void)module;
    if (!PyArg_ParseTuple(args, "CO!O!:op_ask", &what, &PyDict_Type, &given, &PyDict_Type, &chosen))
        return NULL;
    if (read_call(given, &arena, &call) == 0 &&
        read_options(&call, chosen, &arena, &options) == 0) {
        WAIT_BEGIN
        status = what == 'l'   ? weft_op_list_create(&call, &options, &list)
                 : what == 'p' ? weft_op_propose(&call, &options, &choice)
                               : weft_op_check(&call, &options, &choice);
        WAIT_END
        result = status != WEFT_OK ? raise_status(status)
                 : list != NULL    ? handle_make(&class_weft_op_list, list, true, NULL)
                                   : handle_make(&class_weft_op_choice, choice, true, NULL);
    }
    arena_end(&arena);
    return result;
}

/* ---- applying ---- */

/* What runs: the phases of CALL, CALL, or BACKWARD. */
struct application {
    weft_op_call call;
    const weft_op_backward *backward; /* NULL: the call runs */
    bool phases;
    weft_tensor *const *inputs, *const *gradients;
    uint32_t outputs;
};

static weft_status apply(const struct application *a, weft_context *context, struct kernel *kernel,
                         weft_stream *stream, weft_tensor **outputs)
{
    if (a->backward != NULL)
        return weft_op_backward_apply(context, a->backward, a->inputs, a->gradients, kernel_call,
                                      kernel, stream, outputs);
    if (a->phases)
        return weft_op_apply_phases(context, &a->call, a->inputs, kernel_call, kernel, stream,
                                    outputs);
    return weft_op_apply(context, &a->call, a->inputs, kernel_call, kernel, stream, outputs);
}

/* The outputs; those that do not exist are None. */
static PyObject *run(const struct application *a, context_object *context, PyObject *function,
                     PyObject *on, struct arena *arena)
{
    weft_tensor **outputs = arena_take(arena, a->outputs * sizeof *outputs);
    struct kernel kernel = {.function = function, .device = context->device};
    weft_stream *stream, *owned;
    weft_status status;

    if (outputs == NULL || stream_of(on, context, &stream, &owned) < 0) return NULL;
    WAIT_BEGIN
    status = apply(a, context->raw, &kernel, stream, outputs);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    return status == WEFT_OK ? tensors_wrap(outputs, a->outputs, context)
                             : kernel_raise(&kernel, status);
}

static int read_tensors(const char *name, PyObject *given, struct arena *arena,
                        weft_tensor *const **out, size_t *count)
{
    const struct value_type type = {.name = name,
                                    .kind = VALUE_LIST,
                                    .element = VALUE_HANDLE,
                                    .of = -1,
                                    .handle = &class_weft_tensor};
    void *list = NULL;
    int result = list_read(&type, given, arena, &list, count);

    *out = list;
    return result;
}

/* Set how many outputs the call of A, whose inputs are tensors, has. */
static int set_outputs(struct application *a, struct arena *arena)
{
    weft_op_call question = a->call;
    const weft_spec **specs;

    a->outputs = WEFT_OP_PHASES_OUTPUTS;
    if (a->phases) return 0;
    specs = arena_take(arena, question.input_count * sizeof *specs);
    if (specs == NULL) return -1;
    for (uint32_t i = 0; i < question.input_count; i++)
        specs[i] = weft_tensor_spec(a->inputs[i]);
    question.inputs = specs;
    return count_outputs(&question, &a->outputs);
}

static PyObject *op_apply(PyObject *module, PyObject *args)
{
    PyObject *given, *called, *list, *function, *on, *result = NULL;
    struct application a = {0};
    struct arena arena = {0};
    context_object *context;
    size_t count = 0;
    int phases;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!OOOp:op_apply", &given, &PyDict_Type, &called, &list, &function,
                          &on, &phases))
        return NULL;
    context = context_of(given);
    if (context != NULL && read_call(called, &arena, &a.call) == 0 &&
        read_tensors("inputs", list, &arena, &a.inputs, &count) == 0) {
        a.phases = phases != 0;
        a.call.inputs = NULL;
        a.call.input_count = (uint32_t)count;
        if (set_outputs(&a, &arena) == 0) result = run(&a, context, function, on, &arena);
    }
    arena_end(&arena);
    return result;
}

/* ---- gradients ---- */

static PyObject *op_backward_apply(PyObject *module, PyObject *args)
{
    weft_op_backward_info info = {.struct_size = sizeof info};
    PyObject *given, *object, *forward, *gradients, *function, *on, *result = NULL;
    size_t tensors = 0, slopes = 0;
    struct application a = {0};
    struct arena arena = {0};
    context_object *context;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOO:op_backward_apply", &object, &given, &forward, &gradients,
                          &function, &on))
        return NULL;
    context = context_of(given);
    a.backward = context != NULL ? handle_of(object, &class_weft_op_backward, "backward") : NULL;
    if (a.backward == NULL || check(weft_op_backward_get(a.backward, &info)) < 0) return NULL;
    a.outputs = info.inputs;
    if (read_tensors("forward", forward, &arena, &a.inputs, &tensors) == 0 &&
        read_tensors("gradients", gradients, &arena, &a.gradients, &slopes) == 0) {
        if (tensors != info.inputs + info.outputs || slopes != info.outputs)
            PyErr_Format(PyExc_ValueError,
                         "the call has %u inputs and %u outputs; forward has %zu tensors and "
                         "gradients %zu",
                         info.inputs, info.outputs, tensors, slopes);
        else {
            ((handle_object *)object)->calls++; /* it cannot be closed meanwhile */
            result = run(&a, context, function, on, &arena);
            ((handle_object *)object)->calls--;
        }
    }
    arena_end(&arena);
    return result;
}

/* A call of a backward, and where its inputs come from. */
static PyObject *op_backward_call(PyObject *module, PyObject *args)
{
    static const struct value_type operands = {.kind = VALUE_LIST,
                                               .element = VALUE_RECORD,
                                               .of = -1,
                                               .record = &record_weft_op_operand_out};
    const weft_op_gradient_call *call;
    weft_op_backward *raw;
    PyObject *object;
    unsigned index;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&:op_backward_call", &object, to_u32, &index)) return NULL;
    raw = handle_of(object, &class_weft_op_backward, "backward");
    if (raw == NULL) return NULL;
    call = weft_op_backward_call(raw, index);
    if (call == NULL) Py_RETURN_NONE;
    return Py_BuildValue("(NN)",
                         record_make(&record_weft_op_call_out, (const char *)call->call, NULL),
                         list_make(&operands, call->operands, call->call->input_count, NULL));
}

int apply_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"op_ask", op_ask, METH_VARARGS,
         "op_ask(what, call, options)\n\n'c': check, 'p': propose, 'l': list the strategies of a "
         "call."},
        {"op_apply", op_apply, METH_VARARGS,
         "op_apply(context, call, inputs, kernel, stream, phases)"},
        {"op_backward_call", op_backward_call, METH_VARARGS, "op_backward_call(backward, index)"},
        {"op_backward_apply", op_backward_apply, METH_VARARGS,
         "op_backward_apply(backward, context, forward, gradients, kernel, stream)"},
        {0}};

    return PyModule_AddFunctions(module, functions);
}
