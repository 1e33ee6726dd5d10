/* bound.c - weft.Move and weft.FixedMove: moves of many arrays that are bound once, for hot loops.
 */
#include "classes.h"
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

/* The arrays of a call, sources before targets, and their memory. */
struct opened {
    struct array *arrays;
    void **memory;
    uint32_t count; /* of arrays that are open */
};

static void close_arrays(struct opened *opened)
{
    while (opened->count > 0)
        array_close(&opened->arrays[--opened->count]);
}

static int allocate_arrays(struct opened *opened, struct arena *arena, uint32_t count)
{
    opened->arrays = arena_take(arena, 2 * (size_t)count * sizeof *opened->arrays);
    opened->memory = arena_take(arena, 2 * (size_t)count * sizeof *opened->memory);
    return opened->arrays != NULL && opened->memory != NULL ? 0 : -1;
}

typedef struct {
    HANDLE_HEAD(weft_bound)
    uint32_t count;               /* of sources, and of targets */
    struct arena arena;           /* of what follows */
    const weft_spec *const *from; /* COUNT */
    const weft_spec *const *to;   /* COUNT */
    weft_shard *shards;           /* of this rank: COUNT sources, then COUNT targets */
    struct opened opened;         /* of a call */
} bound_object;

static void bound_dealloc(PyObject *object)
{
    arena_end(&((bound_object *)object)->arena);
    handle_dealloc(object, &class_weft_bound);
}

static const weft_spec *spec_at(const bound_object *self, uint32_t i)
{
    return i < self->count ? self->from[i] : self->to[i - self->count];
}

/* Read the specs, which are as many, and at least 1, and note the shards of this rank. */
static int take_specs(bound_object *self, PyObject *sources, PyObject *targets)
{
    static const struct value_type lists[] = {
        {.name = "sources", .element = VALUE_HANDLE, .is_owned = 1, .handle = &class_weft_spec},
        {.name = "targets", .element = VALUE_HANDLE, .is_owned = 1, .handle = &class_weft_spec}};
    size_t count = 0, targets_count = 0;
    void *from = NULL, *to = NULL;

    if (list_read(&lists[0], sources, &self->arena, &from, &count) < 0 ||
        list_read(&lists[1], targets, &self->arena, &to, &targets_count) < 0)
        return -1;
    if (count == 0 || count != targets_count)
        return refuse(PyExc_ValueError,
                      "sources and targets must be lists of the same length, at least 1");
    self->count = (uint32_t)count;
    self->from = from;
    self->to = to;
    self->shards = arena_take(&self->arena, 2 * count * sizeof *self->shards);
    if (self->shards == NULL) return -1;
    for (uint32_t i = 0; i < 2 * self->count; i++)
        weft_spec_shard(spec_at(self, i), weft_rank(self->context->raw), &self->shards[i]);
    return allocate_arrays(&self->opened, &self->arena, self->count);
}

static int bind(bound_object *self)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan *plan = NULL;
    weft_status status;

    options.costs = weft_context_costs(self->context->raw);
    WAIT_BEGIN
    status = weft_plan_create_batch(self->count, self->from, self->to, &options, &plan);
    if (status == WEFT_OK)
        status = weft_plan_bind(plan, weft_world(self->context->raw), NULL, &self->raw);
    weft_plan_release(&plan);
    WAIT_END
    return check(status);
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
    if (take_specs(self, sources, targets) == 0 && bind(self) == 0) return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* Open ITEM as the next array of OPENED. */
static int open_item(bound_object *self, PyObject *item, struct opened *opened)
{
    uint32_t i = opened->count;
    struct array *array = &opened->arrays[i];
    const weft_spec *spec = spec_at(self, i);
    bool written = i >= self->count;
    const char *name = written ? "target" : "source";

    if (array_open(item, array) < 0) return -1;
    opened->count++;
    opened->memory[i] = array->data;
    if ((array->dtype != weft_spec_dtype(spec) || !has_shape(array, &self->shards[i])) &&
        shard_fits(array, spec, weft_rank(self->context->raw), name) < 0)
        return -1;
    if (check_dense(array, name, written) < 0) return -1;
    return place_fits(array, self->context, name);
}

static int open_list(bound_object *self, PyObject *list, const char *name, struct opened *opened)
{
    Py_ssize_t length = PySequence_Size(list);

    if (length < 0) return -1;
    if (length != (Py_ssize_t)self->count)
        return refuse(PyExc_ValueError, "%s has %zd arrays; the move has %u", name, length,
                      self->count);
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        int result = item != NULL ? open_item(self, item, opened) : -1;

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
    status = weft_redistribute_batch(self->raw, (const void *const *)opened->memory,
                                     opened->memory + self->count, raw, NULL);
    weft_stream_release(&owned);
    WAIT_END
    return check(status);
}

/* Begin a call: one thread at a time runs a move, and an array's code cannot run it either. */
static int enter(bound_object *self)
{
    if (self->calls++ == 0) return 0;
    self->calls--;
    return refuse(PyExc_RuntimeError, "another call of the move is running");
}

static PyObject *bound_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sources", "targets", "stream", NULL};
    bound_object *self = (bound_object *)object;
    PyObject *sources, *targets, *stream = Py_None;
    int failed;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:Move", names, &sources, &targets,
                                     &stream) ||
        enter(self) < 0)
        return NULL;
    failed = open_list(self, sources, "sources", &self->opened) < 0 ||
             open_list(self, targets, "targets", &self->opened) < 0 ||
             run_bound(self, &self->opened, stream) < 0;
    close_arrays(&self->opened);
    self->calls--;
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---- bound moves of fixed arrays ---- */

typedef struct {
    PyObject_HEAD bound_object *move;
    struct arena arena; /* of what follows */
    struct opened opened;
} fixed_object;

static void fixed_dealloc(PyObject *object)
{
    fixed_object *self = (fixed_object *)object;

    close_arrays(&self->opened);
    arena_end(&self->arena);
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
    self = object_new(binding.fixed);
    if (self == NULL) return NULL;
    self->move = (bound_object *)Py_NewRef(object);
    if (allocate_arrays(&self->opened, &self->arena, move->count) == 0 &&
        open_list(move, sources, "sources", &self->opened) == 0 &&
        open_list(move, targets, "targets", &self->opened) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static PyObject *fixed_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", NULL};
    fixed_object *self = (fixed_object *)object;
    PyObject *stream = Py_None;
    int failed;

    if ((kwargs != NULL ||
         PyTuple_Size(args) > 0) && /* reading nothing takes as long as the call */
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|O:FixedMove", names, &stream))
        return NULL;
    if (enter(self->move) < 0) return NULL;
    failed = run_bound(self->move, &self->opened, stream) < 0;
    self->move->calls--;
    return failed ? NULL : Py_NewRef(Py_None);
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
        {Py_tp_repr, handle_repr},
        {Py_tp_dealloc, bound_dealloc},
        {Py_tp_call, bound_call},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Move", sizeof(bound_object), 0, Py_TPFLAGS_DEFAULT, slots};
    static PyType_Slot fixed_slots[] = {
        {Py_tp_doc, "A bound move of arrays that it keeps: call it with stream=None."},
        {Py_tp_repr, handle_repr},
        {Py_tp_dealloc, fixed_dealloc},
        {Py_tp_call, fixed_call},
        {0, NULL}};
    static PyType_Spec fixed_spec = {"weft.FixedMove", sizeof(fixed_object), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                     fixed_slots};

    if (type_add(module, &fixed_spec, &binding.fixed) < 0) return -1;
    return type_add(module, &spec, &binding.bound);
}
