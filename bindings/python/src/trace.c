/* trace.c - what a rank does between the creation of an object and its stop.
 *
 * Observers run on threads of weft, possibly under its locks, so they must not wait for the GIL:
 * they copy records to an array, which Python reads at the end. */
#include "classes.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct {
    HANDLE_HEAD(weft_observation) /* RAW is NULL unless it records */
    weft_record *records;
    unsigned long long capacity;
    _Atomic(unsigned long long) used; /* may exceed the capacity: those records are lost */
} recording_object;

static recording_object *self_of(PyObject *self)
{
    return (recording_object *)self;
}

static void keep_record(void *user, const weft_record *record)
{
    recording_object *recording = user;
    unsigned long long at = atomic_fetch_add(&recording->used, 1);

    if (at < recording->capacity) recording->records[at] = *record;
}

static weft_status begin_recording(recording_object *self)
{
    weft_observer observer = {
        .struct_size = sizeof observer, .user = self, .finished = keep_record};

    self->records = calloc(self->capacity > 0 ? self->capacity : 1, sizeof *self->records);
    if (self->records == NULL)
        return weft_fail(WEFT_ERR_NO_MEMORY, "there is no memory for %llu records", self->capacity);
    return weft_observe(self->context->raw, &observer, &self->raw);
}

static PyObject *recording_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "capacity", NULL};
    PyObject *given, *capacity;
    recording_object *self;
    context_object *context;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:Recording", names, &given, &capacity))
        return NULL;
    context = context_of(given);
    self = context != NULL ? (recording_object *)dependent_new(type, NULL, context) : NULL;
    if (self == NULL) return NULL;
    if (to_u64(capacity, &self->capacity) && check(begin_recording(self)) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void recording_dealloc(PyObject *self)
{
    weft_observation_release(&self_of(self)->raw);
    free(self_of(self)->records);
    dependent_free(self);
}

static PyObject *record_to_python(weft_context *context, const weft_record *record)
{
    const char *name = weft_record_operation_name((enum weft_record_operation)record->operation);
    char text[256];

    if (check(weft_record_print(context, record, text, sizeof text, NULL)) < 0) return NULL;
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:N,s:z}", "operation",
        name != NULL ? name : "", "text", text, "comm", weft_trace_text(context, record->comm_name),
        "label", weft_trace_text(context, record->label), "id", record->id, "sequence",
        record->sequence, "sent", record->sent, "received", record->received, "submitted_ns",
        weft_ticks_to_ns(record->submitted), "started_ns", weft_ticks_to_ns(record->started),
        "finished_ns", weft_ticks_to_ns(record->finished), "peer",
        record->peer >= 0 ? PyLong_FromLong(record->peer) : Py_NewRef(Py_None), "error",
        record->status != WEFT_OK ? weft_status_name(record->status) : NULL);
}

/* (records, how many were lost).  The release waits for callbacks on other threads, which do not
 * wait for the GIL. */
static PyObject *recording_stop(PyObject *object, PyObject *unused)
{
    recording_object *self = self_of(object);
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
    return Py_BuildValue("(NK)", list, lost);
}

int trace_types_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"stop", recording_stop, METH_NOARGS,
         "stop()\n\nStop, and return a dictionary per operation that has finished, and how many "
         "found no room."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Recording(context, capacity)\n\nRecord the operations from now on."},
        {Py_tp_new, recording_new},
        {Py_tp_dealloc, recording_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Recording", sizeof(recording_object), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.trace);
}
