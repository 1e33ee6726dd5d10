/* trace.c - what a rank does between the creation of an object and its stop.
 *
 * Observers run on threads of weft, possibly under its locks, so they must not wait for the GIL:
 * they copy records to an array, which Python reads at the end. */
#include "classes.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- counts ---- */

typedef struct {
    HANDLE_HEAD(weft_counts) /* RAW is NULL unless it counts */
    weft_counts counts;
} counting_object;

static PyObject *counting_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", NULL};
    context_object *context;
    counting_object *self;
    PyObject *given;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Counting", names, &given)) return NULL;
    context = context_of(given);
    self = context != NULL ? (counting_object *)dependent_new(type, NULL, context) : NULL;
    if (self == NULL) return NULL;
    self->counts.struct_size = sizeof self->counts;
    if (check(weft_counts_begin(context->raw, &self->counts)) == 0) {
        self->raw = &self->counts;
        return (PyObject *)self;
    }
    Py_DECREF((PyObject *)self);
    return NULL;
}

static weft_status end(PyObject *object)
{
    counting_object *self = (counting_object *)object;
    weft_status status = WEFT_OK;

    if (self->raw != NULL) status = weft_counts_end(self->context->raw, self->raw);
    self->raw = NULL;
    return status;
}

static void counting_dealloc(PyObject *self)
{
    (void)!end(self);
    dependent_free(self);
}

/* The numbers of operations by name, of those that there were. */
static PyObject *operations_of(const weft_counts *counts)
{
    PyObject *all = PyDict_New();

    for (int i = 0; all != NULL && i < WEFT_OP_COUNT; i++) {
        PyObject *number;

        if (counts->operations[i] == 0) continue;
        number = PyLong_FromUnsignedLongLong(counts->operations[i]);
        if (number == NULL ||
            PyDict_SetItemString(all, weft_operation_name((enum weft_operation)i), number) < 0)
            Py_CLEAR(all);
        Py_XDECREF(number);
    }
    return all;
}

static PyObject *counting_stop(PyObject *self, PyObject *unused)
{
    const weft_counts *counts = &((counting_object *)self)->counts;
    PyObject *made, *operations;

    (void)unused;
    if (check(end(self)) < 0) return NULL;
    made = record_make(&record_weft_counts_out, (const char *)counts, NULL);
    operations = made != NULL ? operations_of(counts) : NULL;
    if (operations == NULL || PyDict_SetItemString(made, "operations", operations) < 0)
        Py_CLEAR(made);
    Py_XDECREF(operations);
    return made;
}

static int counting_type_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"stop", counting_stop, METH_NOARGS, "stop()\n\nStop, and return the counts."}, {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Counting(context)\n\nCount the operations from now on."},
        {Py_tp_new, counting_new},
        {Py_tp_dealloc, counting_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Counting", sizeof(counting_object), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.counts);
}

/* ---- records ---- */

typedef struct {
    HANDLE_HEAD(weft_observation) /* RAW is NULL unless it observes */
    weft_record *records;
    unsigned long long capacity;
    _Atomic(unsigned long long) used; /* may exceed the capacity: those records are lost */
} recording_object;

static void keep_record(void *self, const weft_record *record)
{
    recording_object *recording = self;
    unsigned long long at = atomic_fetch_add(&recording->used, 1);

    if (at < recording->capacity) recording->records[at] = *record;
}

static int begin(recording_object *self)
{
    weft_observer observer = {
        .struct_size = sizeof observer, .self = self, .finished = keep_record};

    self->records = calloc(self->capacity > 0 ? self->capacity : 1, sizeof *self->records);
    if (self->records != NULL)
        return check(weft_observe(self->context->raw, &observer, &self->raw));
    PyErr_NoMemory();
    return -1;
}

static PyObject *recording_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "capacity", NULL};
    unsigned long long capacity;
    recording_object *self;
    context_object *context;
    PyObject *given;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&:Recording", names, &given, to_u64,
                                     &capacity))
        return NULL;
    context = context_of(given);
    self = context != NULL ? (recording_object *)dependent_new(type, NULL, context) : NULL;
    if (self == NULL) return NULL;
    self->capacity = capacity;
    if (begin(self) == 0) return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* The release waits for callbacks on other threads, which do not wait for the GIL. */
static void recording_dealloc(PyObject *object)
{
    recording_object *self = (recording_object *)object;

    weft_observation_release(&self->raw);
    free(self->records);
    dependent_free(object);
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

/* (records, how many were lost) */
static PyObject *recording_stop(PyObject *object, PyObject *unused)
{
    recording_object *self = (recording_object *)object;
    unsigned long long used, lost = 0;
    PyObject *list;

    (void)unused;
    weft_observation_release(&self->raw);
    used = atomic_load(&self->used);
    if (used > self->capacity) lost = used - self->capacity;
    list = PyList_New((Py_ssize_t)(used - lost));
    for (unsigned long long i = 0; list != NULL && i < used - lost; i++) {
        PyObject *item = record_to_python(self->context->raw, &self->records[i]);

        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list != NULL ? Py_BuildValue("(NK)", list, lost) : NULL;
}

int trace_types_add(PyObject *module)
{
    static PyMethodDef methods[] = {{"stop", recording_stop, METH_NOARGS,
                                     "stop()\n\nStop, and return a dictionary per operation that "
                                     "has finished, and how many found no room."},
                                    {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Recording(context, capacity)\n\nRecord the operations from now on."},
        {Py_tp_new, recording_new},
        {Py_tp_dealloc, recording_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Recording", sizeof(recording_object), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    return counting_type_add(module) < 0 ? -1 : type_add(module, &spec, &binding.trace);
}
