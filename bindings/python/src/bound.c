/* bound.c - weft.Move and weft.FixedMove: moves of many arrays that are bound once, for hot loops.
 */
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

#include <stdlib.h>

/* The arrays of a call: COUNT sources, then COUNT targets. */
struct opened {
    struct array *arrays;
    const void **sources;
    void **targets;
    uint32_t count; /* of arrays that are open */
};

static void close_arrays(struct opened *opened)
{
    while (opened->count > 0)
        array_close(&opened->arrays[--opened->count]);
}

static void free_arrays(struct opened *opened)
{
    close_arrays(opened);
    free(opened->arrays);
    free(opened->sources);
    free(opened->targets);
}

static int allocate_arrays(struct opened *opened, uint32_t count)
{
    opened->arrays = calloc(2 * (size_t)count, sizeof *opened->arrays);
    opened->sources = calloc(count, sizeof *opened->sources);
    opened->targets = calloc(count, sizeof *opened->targets);
    if (opened->arrays != NULL && opened->sources != NULL && opened->targets != NULL) return 0;
    PyErr_NoMemory();
    return -1;
}

typedef struct {
    HANDLE_HEAD(weft_bound)
    uint32_t count;
    struct handles from, to; /* the specs */
    weft_shard *shards;      /* of this rank: COUNT sources, then COUNT targets */
    struct opened memory;    /* of a call */
} bound_object;

static void bound_dealloc(PyObject *object)
{
    bound_object *self = (bound_object *)object;

    weft_bound_release(&self->raw);
    handles_close(&self->from);
    handles_close(&self->to);
    free(self->shards);
    free_arrays(&self->memory);
    dependent_free(object);
}

static const weft_spec *spec_at(const struct handles *specs, uint32_t i)
{
    return specs->raw[i];
}

/* Read the specs, which are as many, and at least 1. */
static int take_specs(bound_object *self, PyObject *sources, PyObject *targets)
{
    if (handles_open(sources, binding.spec, false, "sources", &self->from) < 0 ||
        handles_open(targets, binding.spec, false, "targets", &self->to) < 0)
        return -1;
    if (self->from.count == 0 || self->from.count != self->to.count) {
        PyErr_SetString(PyExc_ValueError,
                        "sources and targets must be lists of the same length, at least 1");
        return -1;
    }
    self->count = self->from.count;
    self->shards = calloc(2 * (size_t)self->count, sizeof *self->shards);
    if (self->shards != NULL) return allocate_arrays(&self->memory, self->count);
    PyErr_NoMemory();
    return -1;
}

static int bind(bound_object *self)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan *plan = NULL;
    weft_status status;

    options.costs = weft_context_costs(self->context->raw);
    WAIT_BEGIN
    status = weft_plan_create_batch(self->count, (const weft_spec *const *)self->from.raw,
                                    (const weft_spec *const *)self->to.raw, &options, &plan);
    if (status == WEFT_OK)
        status = weft_plan_bind(plan, weft_world(self->context->raw), NULL, &self->raw);
    weft_plan_release(&plan);
    WAIT_END
    return check(status);
}

static void note_shards(bound_object *self)
{
    int32_t rank = weft_rank(self->context->raw);

    for (uint32_t i = 0; i < self->count; i++) {
        weft_spec_shard(spec_at(&self->from, i), rank, &self->shards[i]);
        weft_spec_shard(spec_at(&self->to, i), rank, &self->shards[self->count + i]);
    }
}

static PyObject *bound_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "sources", "targets", NULL};
    PyObject *given, *sources, *targets;
    context_object *context;
    bound_object *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:Move", names, &given, &sources, &targets))
        return NULL;
    context = context_of(given);
    self = context != NULL ? (bound_object *)dependent_new(type, NULL, context) : NULL;
    if (self == NULL) return NULL;
    if (take_specs(self, sources, targets) == 0 && bind(self) == 0) {
        note_shards(self);
        return (PyObject *)self;
    }
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* Open ITEM as the next array of OPENED. */
static int open_item(bound_object *self, PyObject *item, bool written, struct opened *opened)
{
    struct array *array = &opened->arrays[opened->count];
    const weft_shard *shard = &self->shards[opened->count];
    uint32_t i = written ? opened->count - self->count : opened->count;
    const weft_spec *spec = spec_at(written ? &self->to : &self->from, i);
    const char *name = written ? "target" : "source";

    if (array_open(item, array) < 0) return -1;
    opened->count++;
    if ((array->dtype != weft_spec_dtype(spec) || !has_shape(array, shard)) &&
        shard_fits(array, spec, weft_rank(self->context->raw), name) < 0)
        return -1;
    if (written)
        opened->targets[i] = array->data;
    else
        opened->sources[i] = array->data;
    if (check_dense(array, name, written) < 0) return -1;
    return place_fits(array, self->context, name);
}

static int open_list(bound_object *self, PyObject *list, bool written, struct opened *opened)
{
    for (uint32_t i = 0; i < self->count; i++) {
        PyObject *item = PySequence_GetItem(list, (Py_ssize_t)i);
        int result = item != NULL ? open_item(self, item, written, opened) : -1;

        Py_XDECREF(item);
        if (result < 0) return -1;
    }
    return 0;
}

static int run_bound(bound_object *self, struct opened *opened, PyObject *stream)
{
    weft_stream *raw, *owned;
    weft_status status;

    if (place_stream(stream, &opened->arrays[0], self->context, &raw, &owned) < 0) return -1;
    WAIT_BEGIN
    status = weft_redistribute_batch(self->raw, opened->sources, opened->targets, raw, NULL);
    weft_stream_release(self->context->raw, &owned);
    WAIT_END
    return check(status);
}

static int check_length(PyObject *list, uint32_t count, const char *name)
{
    Py_ssize_t length = PySequence_Size(list);

    if (length == (Py_ssize_t)count) return 0;
    if (length >= 0)
        PyErr_Format(PyExc_ValueError, "%s has %zd arrays; the move has %u", name, length, count);
    return -1;
}

static PyObject *bound_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sources", "targets", "stream", NULL};
    bound_object *self = (bound_object *)object;
    PyObject *sources, *targets, *stream = Py_None;
    struct opened *opened = &self->memory;
    int failed;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:Move", names, &sources, &targets, &stream))
        return NULL;
    if (check_length(sources, self->count, "sources") < 0 ||
        check_length(targets, self->count, "targets") < 0)
        return NULL;
    if (opened->count > 0) {
        PyErr_SetString(PyExc_RuntimeError, "another thread runs the move");
        return NULL;
    }
    failed = open_list(self, sources, false, opened) < 0 ||
             open_list(self, targets, true, opened) < 0 || run_bound(self, opened, stream) < 0;
    close_arrays(opened);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* ---- bound moves of fixed arrays ---- */

typedef struct {
    PyObject_HEAD bound_object *move;
    struct opened memory;
} fixed_object;

static void fixed_dealloc(PyObject *object)
{
    fixed_object *self = (fixed_object *)object;

    free_arrays(&self->memory);
    Py_XDECREF((PyObject *)self->move);
    object_free(object);
}

static PyObject *bound_fix(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sources", "targets", NULL};
    bound_object *move = (bound_object *)object;
    PyObject *sources, *targets;
    fixed_object *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:fix", names, &sources, &targets))
        return NULL;
    if (check_length(sources, move->count, "sources") < 0 ||
        check_length(targets, move->count, "targets") < 0)
        return NULL;
    self = object_new(binding.fixed);
    if (self == NULL) return NULL;
    self->move = (bound_object *)Py_NewRef(object);
    if (allocate_arrays(&self->memory, move->count) == 0 &&
        open_list(move, sources, false, &self->memory) == 0 &&
        open_list(move, targets, true, &self->memory) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static PyObject *fixed_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", NULL};
    fixed_object *self = (fixed_object *)object;
    PyObject *stream = Py_None;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:FixedMove", names, &stream)) return NULL;
    if (run_bound(self->move, &self->memory, stream) < 0) return NULL;
    Py_RETURN_NONE;
}

static int fixed_type_add(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A bound move of arrays that it keeps: call it with stream=None."},
        {Py_tp_dealloc, fixed_dealloc},
        {Py_tp_call, fixed_call},
        {0, NULL}};
    static PyType_Spec spec = {"weft.FixedMove", sizeof(fixed_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.fixed);
}

int bound_types_add(PyObject *module)
{
    static PyMethodDef methods[] = {{"fix", KEYWORDS(bound_fix),
                                     "fix($self, sources, targets)\n--\n\nA function that moves "
                                     "these arrays; it keeps them, and reads "
                                     "their addresses once."},
                                    {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc,
         "Move(context, sources, targets)\n--\n\nA plan that is bound once and called often: "
         "move(arrays, outs, stream=None).  Collective."},
        {Py_tp_new, bound_new},
        {Py_tp_dealloc, bound_dealloc},
        {Py_tp_call, bound_call},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Move", sizeof(bound_object), 0, Py_TPFLAGS_DEFAULT, slots};

    if (fixed_type_add(module) < 0) return -1;
    return type_add(module, &spec, &binding.bound);
}
