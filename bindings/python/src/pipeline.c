/* pipeline.c - weft._weft.Pipeline, the base of weft.Pipeline, whose functions weft calls. */
#include "classes.h"
#include "interrupt.h"
#include "shard.h"

typedef struct {
    HANDLE_HEAD(weft_pipeline)
    struct kernel kernel; /* the exception of a function */
} pipeline_object;

static const struct value_type values_type = {.name = "values",
                                              .kind = VALUE_RECORD,
                                              .element = VALUE_RECORD,
                                              .of = -1,
                                              .record = &record_weft_pipeline_values_in};

/* ---- callbacks ---- */

/* The tuple of COUNT tensors; None for one that does not exist.  TENSORS NULL: an empty tuple. */
static PyObject *tensors_of(const weft_pipeline_tensor *tensors, uint32_t count,
                            weft_dl_device device, bool written)
{
    uint32_t length = tensors != NULL ? count : 0;
    PyObject *tuple = PyTuple_New(length);

    for (uint32_t i = 0; tuple != NULL && i < length; i++) {
        PyObject *item = tensors[i].memory == NULL
                             ? Py_NewRef(Py_None)
                             : shard_new(&(struct shard_facts){.data = tensors[i].memory,
                                                               .dims = tensors[i].dims,
                                                               .shape = tensors[i].shape,
                                                               .dtype = tensors[i].dtype,
                                                               .device = device,
                                                               .is_read_only = !written});

        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

enum { TENSORS = 6, TENSORS_END = 10 }; /* the items of an action that are tuples of tensors */

/* The fields of a weft.Action. */
static PyObject *action_of(const pipeline_object *self, const weft_pipeline_call *call)
{
    weft_dl_device device = self->context->device;
    bool is_forward = call->kind == WEFT_ACTION_F;

    return Py_BuildValue("(siiIOdNNNNN)", weft_action_name(call->kind), (int)call->stage,
                         (int)call->microbatch, (unsigned)call->parts,
                         call->is_last ? Py_True : Py_False, call->loss_scale,
                         tensors_of(call->inputs, call->input_count, device, false),
                         tensors_of(call->outputs, call->output_count, device, is_forward),
                         tensors_of(call->d_outputs, call->output_count, device, false),
                         tensors_of(call->d_inputs, call->input_count, device, true),
                         PyLong_FromVoidPtr(weft_stream_native(self->context->raw, call->stream)));
}

/* End the use of its tensors; the number of arrays that still use their memory. */
static Py_ssize_t action_close(PyObject *action)
{
    Py_ssize_t kept = 0;

    for (int i = TENSORS; action != NULL && i < TENSORS_END; i++)
        kept += shards_close(PyTuple_GetItem(action, i));
    Py_XDECREF(action);
    return kept;
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

/* Call the function NAME with one action, or with two.  SECOND may be NULL. */
static weft_status call_named(pipeline_object *self, const char *name,
                              const weft_pipeline_call *first, const weft_pipeline_call *second)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *one = action_of(self, first), *other = NULL, *result = NULL;
    weft_status status;
    Py_ssize_t kept;

    if (one != NULL && second == NULL)
        result = PyObject_CallMethod((PyObject *)self, "_call", "sO", name, one);
    else if (one != NULL && (other = action_of(self, second)) != NULL)
        result = PyObject_CallMethod((PyObject *)self, "_call", "sOO", name, one, other);
    take_absent(result, second == NULL || first->parts != 0 ? first : second);
    kept = action_close(one) + action_close(other);
    status = kernel_end(&self->kernel, result != NULL ? kept : 0, "a pipeline");
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static weft_status call_overlap(void *user, const weft_pipeline_call *first,
                                const weft_pipeline_call *second)
{
    return call_named(user, "overlap", first, second);
}

#define CALLBACK(name)                                                                             \
    static weft_status call_##name(void *user, const weft_pipeline_call *call)                     \
    {                                                                                              \
        return call_named(user, #name, call, NULL);                                                \
    }
CALLBACK(forward)
CALLBACK(backward)
CALLBACK(unshard)
CALLBACK(reshard)
CALLBACK(reduce)

static weft_status call_shapes(void *user, int32_t stage, const weft_pipeline_values *in,
                               weft_pipeline_values *out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    pipeline_object *self = user;
    PyObject *inputs = record_make(&record_weft_pipeline_values_out, (const char *)in, NULL);
    PyObject *outputs = NULL;
    struct arena arena = {0};
    weft_status status;

    if (inputs != NULL)
        outputs = PyObject_CallMethod((PyObject *)self, "_call_shapes", "iO", (int)stage, inputs);
    if (outputs != NULL) (void)value_read(&values_type, outputs, &arena, out);
    status = kernel_end(&self->kernel, 0, "shapes");
    arena_end(&arena);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    PyGILState_Release(state);
    return status;
}

/* ---- the object ---- */

/* What each stage but the last passes on. */
static int read_values(PyObject *list, const weft_schedule *schedule, struct arena *arena,
                       const weft_pipeline_values **out, uint32_t *length)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    void *values = NULL;
    size_t count = 0;

    if (list == Py_None) return 0;
    if (check(weft_schedule_get(schedule, &info)) < 0 ||
        list_read(&values_type, list, arena, &values, &count) < 0)
        return -1;
    *out = values;
    *length = (uint32_t)count;
    if (count + 1 == (size_t)info.stages) return 0;
    PyErr_Format(PyExc_ValueError,
                 "values has %zu entries; expected one for each of %d stages but "
                 "the last",
                 count, (int)info.stages);
    return -1;
}

static PyObject *create(pipeline_object *self, PyObject *comm, const weft_schedule *schedule,
                        weft_pipeline_options *options)
{
    weft_status status;

    self->context = (context_object *)Py_NewRef((PyObject *)((comm_object *)comm)->context);
    self->context->used++;
    options->user = self;
    WAIT_BEGIN
    status = weft_pipeline_create(((comm_object *)comm)->raw, schedule, options, &self->raw);
    WAIT_END
    if (status != WEFT_OK) return kernel_raise(&self->kernel, status);
    Py_RETURN_NONE;
}

/* ARGS: the communicator, the schedule, the values, the scale, and which functions there are. */
static PyObject *pipeline_open(PyObject *object, PyObject *args)
{
    weft_pipeline_options options = {
        .struct_size = sizeof options, .forward = call_forward, .backward = call_backward};
    int unshard, reshard, reduce, overlap, shapes;
    PyObject *comm, *schedule, *list, *result = NULL;
    struct arena arena = {0};
    weft_schedule *order;

    if (!PyArg_ParseTuple(args, "OOOdppppp", &comm, &schedule, &list, &options.loss_scale, &unshard,
                          &reshard, &reduce, &overlap, &shapes) ||
        handle_of(comm, &class_weft_comm, "comm") == NULL)
        return NULL;
    order = handle_of(schedule, &class_weft_schedule, "schedule");
    if (order == NULL) return NULL;
    if (((pipeline_object *)object)->context != NULL)
        return PyErr_Format(PyExc_RuntimeError, "the pipeline was opened before");
    if (unshard) options.unshard = call_unshard;
    if (reshard) options.reshard = call_reshard;
    if (reduce) options.reduce = call_reduce;
    if (overlap) options.overlap = call_overlap;
    if (shapes) options.shapes = call_shapes;
    if (read_values(list, order, &arena, &options.values, &options.value_count) == 0)
        result = create((pipeline_object *)object, comm, order, &options);
    arena_end(&arena);
    return result;
}

static PyObject *pipeline_run(PyObject *object, PyObject *unused)
{
    weft_pipeline *raw = handle_of(object, &class_weft_pipeline, "self");
    weft_status status;

    (void)unused;
    if (raw == NULL) return NULL;
    WAIT_BEGIN
    status = weft_pipeline_run(raw);
    WAIT_END
    if (status != WEFT_OK) return kernel_raise(&((pipeline_object *)object)->kernel, status);
    Py_RETURN_NONE;
}

static void pipeline_dealloc(PyObject *object)
{
    handle_dealloc(object, &class_weft_pipeline);
}

int pipeline_type_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"open", pipeline_open, METH_VARARGS, NULL},
        {"run", pipeline_run, METH_NOARGS,
         "run()\n\nRun all actions of this rank, once each.  Collective."},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "The base of weft.Pipeline."},
                                  {Py_tp_new, PyType_GenericNew},
                                  {Py_tp_dealloc, pipeline_dealloc},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Pipeline", sizeof(pipeline_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return type_add(module, &spec, &binding.pipeline);
}
