/* pipeline.c - weft._weft.Pipeline, the base of weft.Pipeline: the stages of a model on ranks. */
#include "interrupt.h"
#include "shard.h"

#include <stdlib.h>

enum { FORWARD, BACKWARD, UNSHARD, RESHARD, REDUCE, OVERLAP, SHAPES, FUNCTIONS };

typedef struct {
    HANDLE_HEAD(weft_pipeline)
    PyObject *functions[FUNCTIONS]; /* NULL: the caller has given none */
    struct kernel kernel;           /* the exception of a function */
} pipeline_object;

static pipeline_object *self_of(PyObject *self)
{
    return (pipeline_object *)self;
}

/* ---- callbacks ---- */

/* The tuple of COUNT tensors; None for one that does not exist.  TENSORS NULL: an empty tuple. */
static PyObject *tensors_of(const weft_pipeline_tensor *tensors, uint32_t count,
                            weft_dl_device device, bool written)
{
    uint32_t length = tensors != NULL ? count : 0;
    PyObject *tuple = PyTuple_New(length);

    for (uint32_t i = 0; tuple != NULL && i < length; i++) {
        PyObject *item = Py_None;

        if (tensors[i].memory != NULL)
            item = shard_new(&(struct shard_facts){.data = tensors[i].memory,
                                                   .dims = tensors[i].dims,
                                                   .shape = tensors[i].shape,
                                                   .dtype = tensors[i].dtype,
                                                   .device = device,
                                                   .is_read_only = !written});
        else
            Py_INCREF(item);
        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* RESULT is None, or the numbers of the inputs whose gradients the function has left out. */
static void take_absent(PyObject *result, const weft_pipeline_call *call)
{
    Py_ssize_t count = result != NULL && result != Py_None ? PySequence_Size(result) : 0;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(result, i);
        long long number = item != NULL ? PyLong_AsLongLong(item) : -1;

        Py_XDECREF(item);
        if (PyErr_Occurred()) return;
        if (call->d_inputs == NULL || number < 0 || number >= call->input_count) {
            PyErr_Format(PyExc_ValueError, "the stage has no gradient of input %lld", number);
            return;
        }
        call->d_inputs[number].absent = true;
    }
}

/* The tensors that a function gets. */
enum { INPUTS, OUTPUTS, D_OUTPUTS, D_INPUTS, TENSORS };
struct tensors {
    PyObject *tuples[TENSORS];
};

/* The arguments of a function for CALL; *OUT has their tensors, which the caller closes also after
 * a failure. */
static PyObject *open_call(const pipeline_object *self, const weft_pipeline_call *call,
                           struct tensors *out)
{
    weft_dl_device device = self->context->device;
    bool is_forward = call->kind == WEFT_ACTION_F;
    PyObject **tuples = out->tuples;

    tuples[INPUTS] = tensors_of(call->inputs, call->input_count, device, false);
    tuples[OUTPUTS] = tensors_of(call->outputs, call->output_count, device, is_forward);
    tuples[D_OUTPUTS] = tensors_of(call->d_outputs, call->output_count, device, false);
    tuples[D_INPUTS] = tensors_of(call->d_inputs, call->input_count, device, true);
    for (int i = 0; i < TENSORS; i++)
        if (tuples[i] == NULL) return NULL;
    return Py_BuildValue("(siiIOdOOOON)", weft_action_name(call->kind), (int)call->stage,
                         (int)call->microbatch, (unsigned)call->parts,
                         call->is_last ? Py_True : Py_False, call->loss_scale, tuples[INPUTS],
                         tuples[OUTPUTS], tuples[D_OUTPUTS], tuples[D_INPUTS],
                         PyLong_FromVoidPtr(weft_stream_native(self->context->raw, call->stream)));
}

/* End the use of the tensors; the number of arrays that still use their memory. */
static Py_ssize_t close_call(struct tensors *tensors)
{
    Py_ssize_t kept = 0;

    for (int i = 0; i < TENSORS; i++) {
        kept += shards_close(tensors->tuples[i]);
        Py_CLEAR(tensors->tuples[i]);
    }
    return kept;
}

static weft_status call_function(pipeline_object *self, int which, const weft_pipeline_call *call)
{
    static const char *const names[] = {"a forward", "a backward", "an unshard", "a reshard",
                                        "a reduce"};
    PyGILState_STATE state = PyGILState_Ensure();
    struct tensors tensors;
    PyObject *arguments = open_call(self, call, &tensors), *result = NULL;
    weft_status status;
    Py_ssize_t kept;

    if (arguments != NULL) result = PyObject_CallObject(self->functions[which], arguments);
    take_absent(result, call);
    Py_XDECREF(arguments);
    kept = close_call(&tensors);
    status = kernel_end(&self->kernel, result != NULL ? kept : 0, names[which]);
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static weft_status call_overlap(void *user, const weft_pipeline_call *first,
                                const weft_pipeline_call *second)
{
    PyGILState_STATE state = PyGILState_Ensure();
    pipeline_object *self = user;
    struct tensors tensors[2];
    PyObject *one = open_call(self, first, &tensors[0]);
    PyObject *other = one != NULL ? open_call(self, second, &tensors[1]) : NULL, *result = NULL;
    weft_status status;
    Py_ssize_t kept;

    if (other != NULL)
        result = PyObject_CallFunctionObjArgs(self->functions[OVERLAP], one, other, NULL);
    take_absent(result, first->parts != 0 ? first : second);
    kept = close_call(&tensors[0]);
    if (one != NULL) kept += close_call(&tensors[1]);
    Py_XDECREF(one);
    Py_XDECREF(other);
    status = kernel_end(&self->kernel, result != NULL ? kept : 0, "an overlap");
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static weft_status call_forward(void *user, const weft_pipeline_call *call)
{
    return call_function(user, FORWARD, call);
}

static weft_status call_backward(void *user, const weft_pipeline_call *call)
{
    return call_function(user, BACKWARD, call);
}

static weft_status call_unshard(void *user, const weft_pipeline_call *call)
{
    return call_function(user, UNSHARD, call);
}

static weft_status call_reshard(void *user, const weft_pipeline_call *call)
{
    return call_function(user, RESHARD, call);
}

static weft_status call_reduce(void *user, const weft_pipeline_call *call)
{
    return call_function(user, REDUCE, call);
}

/* ---- making one ---- */

/* (dtype, shape, without_gradient) */
static int read_tensor(PyObject *item, weft_pipeline_tensor *out)
{
    enum weft_dtype dtype;
    const char *text;
    PyObject *shape;
    int without = 0;

    if (item != NULL && !PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a value is a tuple of dtype, shape and, if it has no "
                                         "gradient, True");
        return -1;
    }
    if (item == NULL || !PyArg_ParseTuple(item, "sO|p:values", &text, &shape, &without) ||
        check(weft_dtype_parse(text, &dtype)) < 0)
        return -1;
    out->dims = numbers_of(shape, out->shape);
    out->dtype = dtype;
    out->without_gradient = without != 0;
    return out->dims < 0 ? -1 : 0;
}

static int read_stage(PyObject *list, weft_pipeline_values *out)
{
    Py_ssize_t count = list != NULL ? PySequence_Size(list) : -1;

    if (count > WEFT_PIPELINE_TENSORS)
        PyErr_Format(PyExc_ValueError, "a stage passes on at most %d tensors",
                     WEFT_PIPELINE_TENSORS);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);

        (void)read_tensor(item, &out->tensors[i]);
        Py_XDECREF(item);
    }
    out->count = (uint32_t)count;
    return PyErr_Occurred() ? -1 : 0;
}

/* The list of what a stage passes on, as read_stage reads it. */
static PyObject *write_stage(const weft_pipeline_values *values)
{
    PyObject *list = PyList_New(values->count);

    for (uint32_t i = 0; list != NULL && i < values->count; i++) {
        const weft_pipeline_tensor *tensor = &values->tensors[i];
        PyObject *item = Py_BuildValue("(sNO)", weft_dtype_name((enum weft_dtype)tensor->dtype),
                                       tuple_of(tensor->dims, tensor->shape),
                                       tensor->without_gradient ? Py_True : Py_False);

        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static weft_status call_shapes(void *user, int32_t stage, const weft_pipeline_values *in,
                               weft_pipeline_values *out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    pipeline_object *self = user;
    PyObject *inputs = write_stage(in), *outputs = NULL;
    weft_status status;

    if (inputs != NULL)
        outputs = PyObject_CallFunction(self->functions[SHAPES], "iO", (int)stage, inputs);
    if (outputs != NULL) (void)read_stage(outputs, out);
    status = kernel_end(&self->kernel, 0, "shapes");
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    PyGILState_Release(state);
    return status;
}

/* What each stage but the last passes on; PyMem_Free frees it. */
static weft_pipeline_values *read_values(PyObject *list, const weft_schedule *schedule)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    weft_pipeline_values *values;

    if (check(weft_schedule_get(schedule, &info)) < 0) return NULL;
    if (PySequence_Size(list) != info.stages - 1) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError,
                         "values must have an entry for each of %d stages but "
                         "the last",
                         (int)info.stages);
        return NULL;
    }
    values = PyMem_Calloc((size_t)info.stages, sizeof *values);
    if (values == NULL) PyErr_NoMemory();
    for (int32_t i = 0; values != NULL && i < info.stages - 1 && !PyErr_Occurred(); i++) {
        PyObject *stage = PySequence_GetItem(list, i);

        (void)read_stage(stage, &values[i]);
        Py_XDECREF(stage);
    }
    if (!PyErr_Occurred()) return values;
    PyMem_Free(values);
    return NULL;
}

/* Keep FUNCTIONS, and make OPTIONS call those that are not None. */
static void take_functions(pipeline_object *self, PyObject *const *functions,
                           weft_pipeline_options *options)
{
    static weft_pipeline_callback *const callbacks[] = {call_forward, call_backward, call_unshard,
                                                        call_reshard, call_reduce};
    weft_pipeline_callback **const places[] = {&options->forward, &options->backward,
                                               &options->unshard, &options->reshard,
                                               &options->reduce};

    for (int i = 0; i < FUNCTIONS; i++) {
        if (functions[i] == Py_None) continue;
        self->functions[i] = Py_NewRef(functions[i]);
        if (i < OVERLAP) *places[i] = callbacks[i];
    }
    if (self->functions[OVERLAP] != NULL) options->overlap = call_overlap;
    if (self->functions[SHAPES] != NULL) options->shapes = call_shapes;
}

static PyObject *pipeline_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"comm",    "schedule", "values",  "forward", "backward",   "unshard",
                            "reshard", "reduce",   "overlap", "shapes",  "loss_scale", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    weft_pipeline_options options = {.struct_size = sizeof options};
    PyObject *functions[FUNCTIONS] = {Py_None, Py_None, Py_None, Py_None,
                                      Py_None, Py_None, Py_None};
    PyObject *comm, *schedule, *list;
    weft_pipeline_values *values = NULL;
    pipeline_object *self;
    struct kernel raised;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OOOOO|OOOOOd:Pipeline", names, &comm, &schedule, &list,
            &functions[FORWARD], &functions[BACKWARD], &functions[UNSHARD], &functions[RESHARD],
            &functions[REDUCE], &functions[OVERLAP], &functions[SHAPES], &options.loss_scale) ||
        !is_of(comm, binding.comm, "comm") || !is_of(schedule, binding.schedule, "schedule"))
        return NULL;
    if (list != Py_None) {
        values = read_values(list, ((any_object *)schedule)->raw);
        if (values == NULL) return NULL;
    }
    self = (pipeline_object *)allocate(type, 0);
    if (self == NULL) {
        PyMem_Free(values);
        return NULL;
    }
    self->context = (context_object *)Py_NewRef((PyObject *)((comm_object *)comm)->context);
    self->context->used++;
    take_functions(self, functions, &options);
    options.values = values;
    options.user = self;
    WAIT_BEGIN
    status = weft_pipeline_create(((comm_object *)comm)->raw, ((any_object *)schedule)->raw,
                                  &options, &self->raw);
    WAIT_END
    PyMem_Free(values);
    if (status == WEFT_OK) return (PyObject *)self;
    raised = self->kernel;
    self->kernel = (struct kernel){0};
    Py_DECREF((PyObject *)self);
    return kernel_raise(&raised, status);
}

/* Functions often have the pipeline among their variables. */
static int pipeline_traverse(PyObject *object, visitproc visit, void *arg)
{
    pipeline_object *self = self_of(object);

    Py_VISIT(Py_TYPE(object));
    for (int i = 0; i < FUNCTIONS; i++)
        Py_VISIT(self->functions[i]);
    Py_VISIT(self->kernel.kind);
    Py_VISIT(self->kernel.value);
    Py_VISIT(self->kernel.traceback);
    return 0;
}

static int pipeline_clear(PyObject *object)
{
    pipeline_object *self = self_of(object);

    for (int i = 0; i < FUNCTIONS; i++)
        Py_CLEAR(self->functions[i]);
    Py_CLEAR(self->kernel.kind);
    Py_CLEAR(self->kernel.value);
    Py_CLEAR(self->kernel.traceback);
    return 0;
}

static void pipeline_dealloc(PyObject *object)
{
    pipeline_object *self = self_of(object);

    PyObject_GC_UnTrack(object);
    WAIT_BEGIN
    weft_pipeline_release(&self->raw);
    WAIT_END
    pipeline_clear(object);
    if (self->context != NULL) {
        self->context->used--;
        Py_DECREF((PyObject *)self->context);
    }
    object_free(object);
}

static PyObject *pipeline_run(PyObject *self, PyObject *unused)
{
    weft_status status;

    (void)unused;
    WAIT_BEGIN
    status = weft_pipeline_run(self_of(self)->raw);
    WAIT_END
    if (status != WEFT_OK) return kernel_raise(&self_of(self)->kernel, status);
    Py_RETURN_NONE;
}

static PyObject *pipeline_values(PyObject *self, PyObject *args)
{
    weft_pipeline_values values;
    int stage;

    if (!PyArg_ParseTuple(args, "i:values", &stage) ||
        check(weft_pipeline_values_get(self_of(self)->raw, stage, &values)) < 0)
        return NULL;
    return write_stage(&values);
}

static PyObject *get_info(PyObject *self, void *closure)
{
    weft_pipeline_info info = {.struct_size = sizeof info};

    (void)closure;
    if (check(weft_pipeline_get(self_of(self)->raw, &info)) < 0) return NULL;
    return Py_BuildValue("{s:n,s:I,s:K,s:K,s:K}", "actions", (Py_ssize_t)info.actions, "directions",
                         (unsigned)info.directions, "bytes", (unsigned long long)info.bytes, "sent",
                         (unsigned long long)info.sent, "received",
                         (unsigned long long)info.received);
}

static PyObject *get_schedule(PyObject *self, void *closure)
{
    weft_pipeline_info info = {.struct_size = sizeof info};

    (void)closure;
    if (check(weft_pipeline_get(self_of(self)->raw, &info)) < 0) return NULL;
    return schedule_wrap(weft_schedule_retain(info.schedule));
}

int pipeline_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"info", get_info, NULL, "Actions, directions and bytes of this rank.", NULL},
        {"schedule", get_schedule, NULL, "The schedule with sends and receives.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"run", pipeline_run, METH_NOARGS,
         "run()\n\nRun all actions of this rank, once each.  Collective."},
        {"values", pipeline_values, METH_VARARGS, "values(stage)\n\nWhat a stage passes on."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Pipeline(comm, schedule, values, forward, backward, unshard=None, "
                    "reshard=None, reduce=None, overlap=None, shapes=None, loss_scale=0)"},
        {Py_tp_new, pipeline_new},
        {Py_tp_dealloc, pipeline_dealloc},
        {Py_tp_traverse, pipeline_traverse},
        {Py_tp_clear, pipeline_clear},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Pipeline", sizeof(pipeline_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                               slots};

    return type_add(module, &spec, &binding.pipeline);
}
