/* trace.c - weft.Counts and weft.Trace: what a rank does in a block of code.
 *
 * Observers run on threads of weft, possibly under its locks, so they must not wait for the GIL:
 * they copy records to an array, which Python reads at the end. */
#include "binding.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* An object of TYPE that uses CONTEXT between its begin and its end only. */
static PyObject *observer_new(PyTypeObject *type, context_object *context)
{
    dependent_object *self = object_new(type);

    if (self != NULL) self->context = (context_object *)Py_NewRef((PyObject *)context);
    return (PyObject *)self;
}

static void observer_free(PyObject *self)
{
    Py_XDECREF((PyObject *)((dependent_object *)self)->context);
    object_free(self);
}

static int refuse_begin(PyObject *self)
{
    if (((dependent_object *)self)->raw == NULL)
        return context_of((PyObject *)((dependent_object *)self)->context) != NULL ? 0 : -1;
    PyErr_SetString(PyExc_RuntimeError, "the block has begun");
    return -1;
}

/* ---- counts ---- */

typedef struct {
    PyObject_HEAD weft_counts *raw; /* while it counts */
    context_object *context;
    weft_counts counts;
} counts_object;

static counts_object *counts_of(PyObject *self)
{
    return (counts_object *)self;
}

static PyObject *counts_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", NULL};
    context_object *context;
    PyObject *given;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Counts", names, &given)) return NULL;
    context = context_of(given);
    return context != NULL ? observer_new(type, context) : NULL;
}

static weft_status end_counts(counts_object *self)
{
    weft_status status;

    if (self->raw == NULL) return WEFT_OK;
    status = weft_counts_end(self->context->raw, self->raw);
    self->raw = NULL;
    self->context->used--;
    return status;
}

static void counts_dealloc(PyObject *self)
{
    (void)!end_counts(counts_of(self));
    observer_free(self);
}

static PyObject *counts_begin(PyObject *object, PyObject *unused)
{
    counts_object *self = counts_of(object);

    (void)unused;
    if (refuse_begin(object) < 0) return NULL;
    self->counts = (weft_counts){.struct_size = sizeof self->counts};
    if (check(weft_counts_begin(self->context->raw, &self->counts)) < 0) return NULL;
    self->raw = &self->counts;
    self->context->used++;
    return Py_NewRef(object);
}

static PyObject *counts_end(PyObject *self, PyObject *args)
{
    (void)args;
    if (check(end_counts(counts_of(self))) < 0) return NULL;
    Py_RETURN_NONE;
}

static int put(PyObject *dictionary, const char *key, PyObject *value)
{
    int result = value != NULL ? PyDict_SetItemString(dictionary, key, value) : -1;

    Py_XDECREF(value);
    return result;
}

static PyObject *axes_to_python(const weft_counts *counts)
{
    PyObject *axes = PyDict_New();

    for (uint32_t i = 0; axes != NULL && i < counts->axis_count; i++) {
        const weft_axis_count *axis = &counts->axes[i];

        if (put(axes, axis->axes,
                Py_BuildValue("{s:K,s:K,s:K}", "operations", axis->operations, "sent", axis->sent,
                              "received", axis->received)) < 0)
            Py_CLEAR(axes);
    }
    return axes;
}

static PyObject *counts_result(PyObject *self, void *closure)
{
    const weft_counts *counts = &counts_of(self)->counts;
    PyObject *operations = PyDict_New(), *axes = axes_to_python(counts);

    (void)closure;
    for (int i = 0; operations != NULL && i < WEFT_OP_COUNT; i++)
        if (counts->operations[i] > 0 &&
            put(operations, weft_operation_name((enum weft_operation)i),
                PyLong_FromUnsignedLongLong(counts->operations[i])) < 0)
            Py_CLEAR(operations);
    if (operations == NULL || axes == NULL) {
        Py_XDECREF(operations);
        Py_XDECREF(axes);
        return NULL;
    }
    return Py_BuildValue("{s:N,s:N,s:K,s:K,s:K,s:K,s:K,s:K}", "operations", operations, "axes",
                         axes, "sent", counts->sent, "received", counts->received, "implicit_moves",
                         counts->implicit_moves, "cache_hits", counts->cache_hits, "cache_misses",
                         counts->cache_misses, "failed", counts->failed);
}

static int counts_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"result", counts_result, NULL, "The counts, after the end.", NULL}, {0}};
    static PyMethodDef methods[] = {{"__enter__", counts_begin, METH_NOARGS, NULL},
                                    {"__exit__", counts_end, METH_VARARGS, NULL},
                                    {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Counts(context)\n\nCount the operations of a `with` block."},
        {Py_tp_new, counts_new},
        {Py_tp_dealloc, counts_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Counts", sizeof(counts_object), 0, Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.counts);
}

/* ---- records ---- */

typedef struct {
    PyObject_HEAD weft_observation *raw; /* while it observes */
    context_object *context;
    weft_record *records;
    PyObject *list; /* of the records, after the end */
    unsigned long long capacity;
    int32_t rank;
    _Atomic(unsigned long long) used; /* may exceed the capacity: those records are lost */
} trace_object;

static trace_object *trace_of(PyObject *self)
{
    return (trace_object *)self;
}

static void keep_record(void *self, const weft_record *record)
{
    trace_object *trace = self;
    unsigned long long at = atomic_fetch_add(&trace->used, 1);

    if (at < trace->capacity) trace->records[at] = *record;
}

static PyObject *trace_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "capacity", NULL};
    unsigned long long capacity = 65536;
    context_object *context;
    PyObject *given, *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O&:Trace", names, &given, to_u64, &capacity))
        return NULL;
    context = context_of(given);
    self = context != NULL ? observer_new(type, context) : NULL;
    if (self == NULL) return NULL;
    trace_of(self)->capacity = capacity;
    trace_of(self)->rank = weft_rank(context->raw);
    return self;
}

/* It waits for callbacks on other threads, which do not wait for the GIL. */
static void stop(trace_object *self)
{
    if (self->raw != NULL) self->context->used--;
    weft_observation_release(&self->raw);
}

static void trace_dealloc(PyObject *self)
{
    stop(trace_of(self));
    free(trace_of(self)->records);
    Py_XDECREF(trace_of(self)->list);
    observer_free(self);
}

static PyObject *trace_begin(PyObject *object, PyObject *unused)
{
    trace_object *self = trace_of(object);
    weft_observer observer = {
        .struct_size = sizeof observer, .self = self, .finished = keep_record};

    (void)unused;
    if (refuse_begin(object) < 0) return NULL;
    if (self->records == NULL)
        self->records = calloc(self->capacity > 0 ? self->capacity : 1, sizeof *self->records);
    if (self->records == NULL) return PyErr_NoMemory();
    atomic_store(&self->used, 0);
    Py_CLEAR(self->list);
    if (check(weft_observe(self->context->raw, &observer, &self->raw)) < 0) return NULL;
    self->context->used++;
    return Py_NewRef(object);
}

static PyObject *record_to_python(weft_context *context, const weft_record *record)
{
    const char *name = weft_operation_name((enum weft_operation)record->operation);
    char text[256];

    weft_record_print(context, record, text, sizeof text);
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:i,s:i}", "operation",
        name != NULL ? name : "", "text", text, "comm", weft_trace_text(context, record->comm_name),
        "label", weft_trace_text(context, record->label), "id", record->id, "sequence",
        record->sequence, "sent", record->sent, "received", record->received, "submitted_ns",
        weft_ticks_to_ns(record->submitted), "started_ns", weft_ticks_to_ns(record->started),
        "finished_ns", weft_ticks_to_ns(record->finished), "peer", (int)record->peer, "status",
        (int)record->status);
}

static PyObject *records_to_python(trace_object *self)
{
    unsigned long long used = atomic_load(&self->used);
    PyObject *list;

    if (used > self->capacity) used = self->capacity;
    list = PyList_New((Py_ssize_t)used);
    for (unsigned long long i = 0; list != NULL && i < used; i++) {
        PyObject *item = record_to_python(self->context->raw, &self->records[i]);

        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *trace_end(PyObject *object, PyObject *args)
{
    trace_object *self = trace_of(object);

    (void)args;
    if (self->raw == NULL) Py_RETURN_NONE;
    weft_observation_release(&self->raw);
    self->context->used--;
    self->list = records_to_python(self);
    free(self->records);
    self->records = NULL;
    if (self->list == NULL) return NULL;
    Py_RETURN_NONE;
}

static PyObject *trace_records(PyObject *self, void *closure)
{
    (void)closure;
    if (trace_of(self)->list != NULL) return Py_NewRef(trace_of(self)->list);
    PyErr_SetString(PyExc_RuntimeError, "the trace has not ended");
    return NULL;
}

static PyObject *trace_lost(PyObject *object, void *closure)
{
    trace_object *self = trace_of(object);
    unsigned long long used = atomic_load(&self->used);

    (void)closure;
    return PyLong_FromUnsignedLongLong(used > self->capacity ? used - self->capacity : 0);
}

static PyObject *trace_rank(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(trace_of(self)->rank);
}

static PyObject *dump(PyObject *module, PyObject *args)
{
    context_object *context;
    const char *prefix = NULL;
    PyObject *given;

    (void)module;
    if (!PyArg_ParseTuple(args, "O|z:dump", &given, &prefix)) return NULL;
    context = context_of(given);
    if (context == NULL || check(weft_dump(context->raw, prefix)) < 0) return NULL;
    Py_RETURN_NONE;
}

int trace_types_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"dump", dump, METH_VARARGS,
         "dump(context, prefix=None)\n\nWrite the ring of recent operations as PREFIX.RANK and "
         "PREFIX-RANK.json."},
        {0}};
    static PyGetSetDef properties[] = {
        {"records", trace_records, NULL, "A dictionary per operation that has finished.", NULL},
        {"rank", trace_rank, NULL, "The rank whose operations these are.", NULL},
        {"lost", trace_lost, NULL, "Operations for which there was no room.", NULL},
        {0}};
    static PyMethodDef methods[] = {{"__enter__", trace_begin, METH_NOARGS, NULL},
                                    {"__exit__", trace_end, METH_VARARGS, NULL},
                                    {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Trace(context, capacity=65536)\n\nRecord the operations of a `with` block."},
        {Py_tp_new, trace_new},
        {Py_tp_dealloc, trace_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Trace", sizeof(trace_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    if (PyModule_AddFunctions(module, functions) < 0 || counts_type_add(module) < 0) return -1;
    return type_add(module, &spec, &binding.trace);
}
