/* apply.c - functions of Python as kernels of operators.
 *
 * A kernel gets the shards of its rank as weft.Shard, which other libraries read through DLPack.
 * Their memory is the kernel's until it returns, so an array that outlives the kernel is an error.
 */
#include "opcall.h"
#include "interrupt.h"

#include <stdlib.h>

typedef struct {
    PyObject_HEAD void *data; /* NULL: the shard is empty */
    PyObject *spec;
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS], offset[WEFT_MAX_DIMS];
    weft_dl_dtype dtype;
    weft_dl_device device;
    Py_ssize_t exported; /* arrays of other libraries that use the memory */
    bool is_open, is_read_only;
} shard_object;

static shard_object *self_of(PyObject *self)
{
    return (shard_object *)self;
}

static void shard_dealloc(PyObject *self)
{
    Py_XDECREF(self_of(self)->spec);
    object_free(self);
}

static void end_export(weft_dl_versioned *managed)
{
    PyObject *shard = managed->manager_ctx;

    self_of(shard)->exported--;
    Py_DECREF(shard);
    free(managed);
}

static PyObject *shard_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    shard_object *self = self_of(object);
    weft_dl_versioned *managed;

    if (!self->is_open) {
        PyErr_SetString(PyExc_BufferError, "the kernel has returned; its shards cannot be used");
        return NULL;
    }
    managed = calloc(1, sizeof *managed);
    if (managed == NULL) return PyErr_NoMemory();
    managed->version = (weft_dl_version){1, 1};
    managed->manager_ctx = Py_NewRef(object);
    managed->deleter = end_export;
    managed->flags = self->is_read_only ? WEFT_DL_READ_ONLY : 0;
    managed->tensor = (weft_dl_tensor){.data = self->data,
                                       .device = self->device,
                                       .ndim = self->dims,
                                       .dtype = self->dtype,
                                       .shape = self->shape,
                                       .strides = self->strides};
    self->exported++;
    return share_capsule(managed, object, args, kwargs);
}

static PyObject *shard_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(ii)", (int)self_of(self)->device.type, (int)self_of(self)->device.id);
}

static PyObject *get_spec(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self_of(self)->spec);
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of(self_of(self)->dims, self_of(self)->shape);
}

static PyObject *get_offset(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of(self_of(self)->dims, self_of(self)->offset);
}

/* ---- calling the function ---- */

static PyObject *shard_new(const weft_op_local *local, weft_dl_device device, bool is_read_only)
{
    shard_object *self;

    if (local->spec == NULL) Py_RETURN_NONE;
    self = object_new(binding.shard);
    if (self == NULL) return NULL;
    self->spec = spec_wrap(weft_spec_retain(local->spec));
    if (self->spec == NULL ||
        check(weft_dtype_to_dlpack(weft_spec_dtype(local->spec), &self->dtype)) < 0) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    self->data = local->memory;
    self->dims = local->shard->dims;
    for (int32_t i = 0; i < self->dims; i++) {
        self->shape[i] = local->shard->shape[i];
        self->strides[i] = local->strides[i];
        self->offset[i] = local->shard->offset[i];
    }
    self->device = device;
    self->is_open = true;
    self->is_read_only = is_read_only;
    return (PyObject *)self;
}

/* An operator in place writes its input. */
static bool is_written(const weft_op_run *run, uint32_t input)
{
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
        PyObject *item = shard_new(&locals[i], device, !outputs && !is_written(run, i));

        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* End the use of all shards; the number of arrays that still use them. */
static Py_ssize_t close_shards(PyObject *shards)
{
    Py_ssize_t kept = 0;

    for (Py_ssize_t i = 0; shards != NULL && i < PyTuple_Size(shards); i++) {
        PyObject *item = PyTuple_GetItem(shards, i);

        if (item == Py_None) continue;
        self_of(item)->is_open = false;
        kept += self_of(item)->exported;
    }
    return kept;
}

/* Keep the exception, and give its text to the other ranks. */
static weft_status keep_exception(struct kernel *kernel, const char *operator)
{
    PyObject *text;
    const char *chars = NULL;
    weft_status status;

    PyErr_Fetch(&kernel->kind, &kernel->value, &kernel->traceback);
    PyErr_NormalizeException(&kernel->kind, &kernel->value, &kernel->traceback);
    text = kernel->value != NULL ? PyObject_Repr(kernel->value) : NULL;
    if (text != NULL) chars = PyUnicode_AsUTF8AndSize(text, NULL);
    PyErr_Clear();
    status = weft_fail(WEFT_ERR_INVALID, "the kernel of %s raised %s", operator,
                       chars != NULL ? chars : "an exception");
    Py_XDECREF(text);
    return status;
}

weft_status kernel_call(void *user, const weft_op_run *run)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct kernel *kernel = user;
    PyObject *inputs = shards_of(run, kernel->device, false);
    PyObject *outputs = shards_of(run, kernel->device, true), *result = NULL;
    PyObject *attrs = attrs_to_python(run->attrs, run->attr_count);
    weft_status status = WEFT_OK;
    Py_ssize_t kept;

    if (inputs != NULL && outputs != NULL && attrs != NULL)
        result = PyObject_CallFunction(
            kernel->function, "siOOOdN", run->name, (int)run->rank, inputs, outputs, attrs,
            run->count, PyLong_FromVoidPtr(weft_stream_native(run->context, run->stream)));
    kept = close_shards(inputs) + close_shards(outputs);
    if (result != NULL && kept > 0)
        PyErr_Format(PyExc_BufferError,
                     "the kernel of %s keeps %zd arrays of its shards; copy them instead",
                     run->name, kept);
    if (PyErr_Occurred()) status = keep_exception(kernel, run->name);
    Py_XDECREF(result);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    Py_XDECREF(attrs);
    PyGILState_Release(state);
    return status;
}

PyObject *kernel_raise(struct kernel *kernel, weft_status status)
{
    if (kernel->kind == NULL) return raise_status(status);
    PyErr_Restore(kernel->kind, kernel->value, kernel->traceback);
    kernel->kind = NULL;
    return NULL;
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

static PyObject *run(context_object *context, struct opcall *call, struct kernel *kernel,
                     PyObject *on)
{
    uint32_t count;
    weft_tensor **outputs;
    weft_stream *stream, *owned;
    weft_status status;
    PyObject *result;

    if (count_outputs(call, &count) < 0) return NULL;
    outputs = PyMem_Calloc((size_t)count + 1, sizeof *outputs);
    if (outputs == NULL) return PyErr_NoMemory();
    if (stream_of(on, context, &stream, &owned) < 0) {
        PyMem_Free(outputs);
        return NULL;
    }
    WAIT_BEGIN
    status = weft_op_apply(context->raw, &call->call, (weft_tensor *const *)call->inputs.raw,
                           kernel_call, kernel, stream, outputs);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    result =
        status == WEFT_OK ? tensors_wrap(outputs, count, context) : kernel_raise(kernel, status);
    PyMem_Free(outputs);
    return result;
}

static PyObject *op_apply(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "name", "inputs", "kernel", "attrs",
                            "outputs", "mesh", "stream", NULL};
    PyObject *given, *inputs, *attrs = Py_None, *outputs = Py_None, *mesh = Py_None;
    PyObject *stream = Py_None, *result;
    struct kernel kernel = {0};
    context_object *context;
    struct opcall call;
    const char *name;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OsOO|OOOO:op_apply", names, &given, &name,
                                     &inputs, &kernel.function, &attrs, &outputs, &mesh, &stream))
        return NULL;
    context = context_of(given);
    if (context == NULL ||
        opcall_open(name, inputs, binding.tensor, attrs, outputs, mesh, &call) < 0)
        return NULL;
    kernel.device = context->device;
    result = run(context, &call, &kernel, stream);
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
        {"op_moves_set", op_moves_set, METH_VARARGS, "op_moves_set(context, moves)"},
        {0}};
    static PyGetSetDef properties[] = {
        {"spec", get_spec, NULL, "The layout of the whole tensor.", NULL},
        {"shape", get_shape, NULL, "The shape of the shard.", NULL},
        {"offset", get_offset, NULL, "The index of its first element in the whole tensor.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"__dlpack__", KEYWORDS(shard_dlpack),
         "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)"},
        {"__dlpack_device__", shard_device, METH_NOARGS, "__dlpack_device__()"},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "A tensor as a kernel gets it: its rank's shard."},
                                  {Py_tp_dealloc, shard_dealloc},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Shard", sizeof(shard_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return type_add(module, &spec, &binding.shard);
}
