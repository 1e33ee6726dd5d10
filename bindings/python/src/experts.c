/* experts.c - weft.Experts and weft.Routing: tokens that travel to the ranks of their experts. */
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

typedef struct {
    HANDLE_HEAD(weft_experts)
    int count; /* of experts on all ranks */
} experts_object;

static experts_object *experts_of(PyObject *self)
{
    return (experts_object *)self;
}

typedef struct {
    HANDLE_HEAD(weft_routing)
} routing_object;

static routing_object *self_of(PyObject *self)
{
    return (routing_object *)self;
}

static PyObject *experts_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "mesh", "axis", "experts", "capacity", NULL};
    weft_experts_options options = {.struct_size = sizeof options};
    PyObject *given, *mesh, *self;
    context_object *context;
    weft_experts *raw = NULL;
    long long capacity = 0;
    weft_status status;
    const char *axis;
    weft_mesh *on;
    int count;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOsi|L:Experts", names, &given, &mesh, &axis,
                                     &count, &capacity))
        return NULL;
    context = context_of(given);
    on = context != NULL ? mesh_of(mesh, "mesh") : NULL;
    if (on == NULL) return NULL;
    options.experts = count;
    options.capacity = capacity;
    WAIT_BEGIN
    status = weft_experts_create(context->raw, on, axis, &options, &raw);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    self = dependent_new(type, raw, context);
    if (self == NULL)
        weft_experts_release(&raw);
    else
        experts_of(self)->count = count;
    return self;
}

static void experts_dealloc(PyObject *self)
{
    weft_experts_release(&experts_of(self)->raw);
    dependent_free(self);
}

/* The counts of LIST; PyMem_Free frees them. */
static int64_t *counts_of(PyObject *list)
{
    Py_ssize_t count = PySequence_Size(list);
    int64_t *counts = count >= 0 ? PyMem_Calloc((size_t)count + 1, sizeof *counts) : NULL;

    if (counts == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    for (Py_ssize_t i = 0; counts != NULL && i < count && !PyErr_Occurred(); i++) {
        PyObject *number = PySequence_GetItem(list, i);

        counts[i] = number != NULL ? PyLong_AsLongLong(number) : 0;
        Py_XDECREF(number);
    }
    if (!PyErr_Occurred()) return counts;
    PyMem_Free(counts);
    return NULL;
}

static PyObject *experts_route(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"counts", "stream", NULL};
    context_object *context = experts_of(self)->context;
    PyObject *list, *on = Py_None;
    weft_stream *stream, *owned;
    weft_routing *raw = NULL;
    routing_object *routing;
    weft_status status;
    int64_t *counts;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:route", names, &list, &on)) return NULL;
    if (PySequence_Size(list) != experts_of(self)->count) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "counts must have one number for each of %d experts",
                         experts_of(self)->count);
        return NULL;
    }
    counts = counts_of(list);
    if (counts == NULL || stream_of(on, context, &stream, &owned) < 0) {
        PyMem_Free(counts);
        return NULL;
    }
    WAIT_BEGIN
    status = weft_experts_route(experts_of(self)->raw, counts, stream, &raw);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    PyMem_Free(counts);
    if (status != WEFT_OK) return raise_status(status);
    routing = object_new(binding.routing);
    if (routing == NULL) {
        weft_routing_release(&raw);
        return NULL;
    }
    routing->raw = raw;
    routing->context = context;
    routing->keeps = Py_NewRef(self);
    return (PyObject *)routing;
}

/* ---- routings ---- */

static void routing_dealloc(PyObject *self)
{
    weft_routing_release(&self_of(self)->raw);
    Py_XDECREF(self_of(self)->keeps);
    object_free(self);
}

static PyObject *numbers(const int64_t *values, int64_t count)
{
    PyObject *list = PyList_New(0);

    for (int64_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);

        if (number == NULL || PyList_Append(list, number) < 0) Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

static PyObject *get_info(PyObject *self, void *closure)
{
    weft_routing_info info = {.struct_size = sizeof info};

    (void)closure;
    if (check(weft_routing_get(self_of(self)->raw, &info)) < 0) return NULL;
    return Py_BuildValue("{s:L,s:L,s:L,s:i,s:N}", "tokens", (long long)info.tokens, "sent",
                         (long long)info.sent, "received", (long long)info.received, "first_expert",
                         (int)info.first_expert, "counts", numbers(info.counts, info.experts));
}

/* Whether ARRAY has at least ROWS rows of one width. */
static int check_rows(PyObject *self, const struct array *array, int64_t rows, const char *name,
                      bool written)
{
    if (array->dims != 2 || array->shape[0] != rows) {
        PyErr_Format(PyExc_ValueError, "%s must have %lld rows of one width", name,
                     (long long)rows);
        return -1;
    }
    if (check_dense(array, name, written) < 0) return -1;
    return place_fits(array, self_of(self)->context, name);
}

static int check_pair(PyObject *self, const struct array *source, const struct array *target,
                      bool combine)
{
    weft_routing_info info = {.struct_size = sizeof info};

    if (check(weft_routing_get(self_of(self)->raw, &info)) < 0 ||
        check_rows(self, source, combine ? info.received : info.tokens, "source", false) < 0 ||
        check_rows(self, target, combine ? info.tokens : info.received, "target", true) < 0)
        return -1;
    if (source->dtype == target->dtype && source->shape[1] == target->shape[1]) return 0;
    PyErr_SetString(PyExc_ValueError, "source and target differ in width or dtype");
    return -1;
}

static PyObject *travel(PyObject *self, PyObject *args, PyObject *kwargs, bool combine)
{
    static char *names[] = {"source", "target", "stream", NULL};
    context_object *context = self_of(self)->context;
    weft_routing *raw = self_of(self)->raw;
    PyObject *from, *to, *on = Py_None;
    struct array source, target;
    weft_stream *stream, *owned;
    weft_status status = WEFT_ERR_INVALID;
    bool is_ready;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O", names, &from, &to, &on) ||
        array_open(from, &source) < 0)
        return NULL;
    if (array_open(to, &target) < 0) {
        array_close(&source);
        return NULL;
    }
    is_ready = check_pair(self, &source, &target, combine) == 0 &&
               place_stream(on, &source, context, &stream, &owned) == 0;
    if (is_ready) {
        WAIT_BEGIN
        status = (combine ? weft_routing_combine : weft_routing_dispatch)(
            raw, source.dtype, source.shape[1], source.data, target.data, stream);
        weft_stream_release(context->raw, &owned);
        WAIT_END
    }
    array_close(&source);
    array_close(&target);
    if (!is_ready) return NULL;
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *routing_dispatch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return travel(self, args, kwargs, false);
}

static PyObject *routing_combine(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return travel(self, args, kwargs, true);
}

static PyObject *routing_spec(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "width", "stream", NULL};
    context_object *context = self_of(self)->context;
    weft_stream *stream, *owned;
    weft_spec *raw = NULL;
    PyObject *on = Py_None;
    enum weft_dtype dtype;
    weft_status status;
    const char *text;
    long long width;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sL|O:spec", names, &text, &width, &on) ||
        check(weft_dtype_parse(text, &dtype)) < 0 || stream_of(on, context, &stream, &owned) < 0)
        return NULL;
    WAIT_BEGIN
    status = weft_routing_spec(self_of(self)->raw, dtype, width, stream, &raw);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    return status == WEFT_OK ? spec_wrap(raw) : raise_status(status);
}

static int routing_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"info", get_info, NULL,
         "Tokens of this rank, those sent and received, its first expert, and counts: the tokens "
         "received for each expert of this rank.",
         NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"dispatch", KEYWORDS(routing_dispatch),
         "dispatch(source, target, stream=None)\n\nTokens, [tokens, width] ordered by expert, to "
         "the ranks of their experts, [received, width].  Collective."},
        {"combine", KEYWORDS(routing_combine),
         "combine(source, target, stream=None)\n\nThe reverse; rows of dropped tokens become 0.  "
         "Collective."},
        {"spec", KEYWORDS(routing_spec),
         "spec(dtype, width, stream=None)\n\nThe layout of the received tokens of all ranks.  "
         "Collective."},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "Where the tokens of one step travel."},
                                  {Py_tp_dealloc, routing_dealloc},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Routing", sizeof(routing_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.routing);
}

int experts_types_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"route", KEYWORDS(experts_route),
         "route(counts, stream=None)\n\nExchange how many tokens this rank has for each "
         "of all experts.  Collective."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Experts(context, mesh, axis, experts, capacity=0)\n\nExperts on the ranks of "
                    "a mesh axis (docs/training/experts.md).  Collective."},
        {Py_tp_new, experts_new},
        {Py_tp_dealloc, experts_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Experts", sizeof(experts_object), 0, Py_TPFLAGS_DEFAULT,
                               slots};

    if (type_add(module, &spec, &binding.experts) < 0) return -1;
    return routing_type_add(module);
}
