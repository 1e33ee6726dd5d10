/* fsdp.c - weft.FSDP and its groups: parameters that are whole only while a layer uses them. */
#include "tensor.h"
#include "interrupt.h"

#include <string.h>

/* A group; its parameters keep it, so its context outlives it. */
typedef struct {
    HANDLE_HEAD(weft_fsdp_group)
    uint32_t count;
} group_object;

static PyObject *fsdp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "compute", "one_stream", "groups_max", NULL};
    weft_fsdp_options options = {.struct_size = sizeof options};
    PyObject *given, *compute = Py_None, *self;
    weft_fsdp *raw = NULL;
    context_object *context;
    weft_status status;
    unsigned most = 0;
    int one_stream = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OpO&:FSDP", names, &given, &compute,
                                     &one_stream, to_u32, &most))
        return NULL;
    context = context_of(given);
    if (context == NULL || (compute != Py_None && !is_of(compute, binding.stream, "compute")))
        return NULL;
    if (compute != Py_None) options.compute = ((stream_object *)compute)->raw;
    options.one_stream = one_stream;
    options.groups_max = most;
    WAIT_BEGIN
    status = weft_fsdp_create(context->raw, &options, &raw);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    self = dependent_new(type, raw, context);
    if (self == NULL) weft_fsdp_release(&raw);
    return self;
}

static void fsdp_dealloc(PyObject *self)
{
    weft_fsdp *raw = ((dependent_object *)self)->raw;

    WAIT_BEGIN
    weft_fsdp_release(&raw);
    WAIT_END
    dependent_free(self);
}

static PyObject *shard_spec(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"spec", "axes", "dim", NULL};
    PyObject *layout;
    weft_spec *spec, *raw = NULL;
    const char *axes;
    int dim = 0;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os|i:shard_spec", names, &layout, &axes, &dim))
        return NULL;
    spec = spec_of(layout, "spec");
    if (spec == NULL || check(weft_fsdp_shard_spec(spec, axes, dim, &raw)) < 0) return NULL;
    return spec_wrap(raw);
}

/* ---- groups ---- */

static group_object *group_of(PyObject *self)
{
    return (group_object *)self;
}

/* The parameters of a list of tensors; FROZEN lists the numbers of those without a gradient. */
static weft_fsdp_param *read_params(const struct handles *tensors, PyObject *frozen)
{
    weft_fsdp_param *params = PyMem_Calloc((size_t)tensors->count + 1, sizeof *params);
    Py_ssize_t count = frozen != Py_None ? PySequence_Size(frozen) : 0;

    if (params == NULL) PyErr_NoMemory();
    for (uint32_t i = 0; params != NULL && i < tensors->count; i++)
        params[i].tensor = tensors->raw[i];
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(frozen, i);
        long number = item != NULL ? PyLong_AsLong(item) : -1;

        Py_XDECREF(item);
        if (number >= 0 && number < (long)tensors->count)
            params[number].frozen = true;
        else if (!PyErr_Occurred())
            PyErr_Format(PyExc_IndexError, "the group has no parameter %ld", number);
    }
    if (!PyErr_Occurred()) return params;
    PyMem_Free(params);
    return NULL;
}

static PyObject *make_group(PyObject *fsdp, const struct handles *tensors, PyObject *frozen,
                            const weft_fsdp_group_options *options)
{
    context_object *context = ((dependent_object *)fsdp)->context;
    weft_fsdp_param *params = read_params(tensors, frozen);
    weft_fsdp_group *raw = NULL;
    weft_status status;
    PyObject *self;

    if (params == NULL) return NULL;
    WAIT_BEGIN
    status = weft_fsdp_group_create(((dependent_object *)fsdp)->raw, tensors->count, params,
                                    options, &raw);
    WAIT_END
    PyMem_Free(params);
    if (status != WEFT_OK) return raise_status(status);
    self = dependent_new(binding.fsdp_group, raw, context);
    if (self == NULL) {
        weft_fsdp_group_release(&raw);
        return NULL;
    }
    group_of(self)->keeps = Py_NewRef(fsdp);
    group_of(self)->count = tensors->count;
    return self;
}

static PyObject *fsdp_group(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tensors",      "name",           "shard",          "replicate",
                            "gather_dtype", "reduce_dtype",   "gradient_dtype", "divide",
                            "sum_only",     "absent_as_zero", "frozen",         NULL};
    weft_fsdp_group_options options = {.struct_size = sizeof options};
    PyObject *list, *frozen = Py_None, *result;
    int sum_only = 0, absent = 0;
    struct handles tensors;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O|$zzzzzzdppO:group", names, &list, &options.name, &options.shard,
            &options.replicate, &options.gather_dtype, &options.reduce_dtype,
            &options.gradient_dtype, &options.divide, &sum_only, &absent, &frozen))
        return NULL;
    options.sum_only = sum_only;
    options.absent_as_zero = absent;
    if (handles_open(list, binding.tensor, false, "tensors", &tensors) < 0) return NULL;
    result = make_group(self, &tensors, frozen, &options);
    handles_close(&tensors);
    return result;
}

static void group_dealloc(PyObject *object)
{
    group_object *self = group_of(object);

    WAIT_BEGIN
    weft_fsdp_group_release(&self->raw);
    WAIT_END
    Py_XDECREF(self->keeps);
    dependent_free(object);
}

static PyObject *done(weft_status status)
{
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *group_unshard(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"backward", "wait", NULL};
    weft_status status;
    int backward = 0, wait = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pp:unshard", names, &backward, &wait))
        return NULL;
    WAIT_BEGIN
    status = weft_fsdp_unshard_begin(group_of(self)->raw,
                                     backward ? WEFT_FSDP_BACKWARD : WEFT_FSDP_FORWARD);
    if (status == WEFT_OK && wait) status = weft_fsdp_unshard_end(group_of(self)->raw);
    WAIT_END
    return done(status);
}

static PyObject *group_unshard_end(PyObject *self, PyObject *unused)
{
    weft_status status;

    (void)unused;
    WAIT_BEGIN
    status = weft_fsdp_unshard_end(group_of(self)->raw);
    WAIT_END
    return done(status);
}

static PyObject *group_reshard(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ranks", NULL};
    weft_status status;
    int ranks = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:reshard", names, &ranks)) return NULL;
    WAIT_BEGIN
    status = ranks > 0 ? weft_fsdp_reshard_to(group_of(self)->raw, ranks)
                       : weft_fsdp_reshard(group_of(self)->raw);
    WAIT_END
    return done(status);
}

/* The tensor RAW, which the group owns, with a reference of its own; None for NULL. */
static PyObject *borrowed(PyObject *self, weft_tensor *raw)
{
    if (raw == NULL) Py_RETURN_NONE;
    return tensor_wrap(weft_tensor_retain(raw), group_of(self)->context);
}

static PyObject *group_parameter(PyObject *self, PyObject *args)
{
    unsigned index;

    if (!PyArg_ParseTuple(args, "O&:parameter", to_u32, &index)) return NULL;
    return borrowed(self, weft_fsdp_parameter(group_of(self)->raw, index));
}

static PyObject *group_gradient(PyObject *self, PyObject *args)
{
    unsigned index;

    if (!PyArg_ParseTuple(args, "O&:gradient", to_u32, &index)) return NULL;
    return borrowed(self, weft_fsdp_gradient(group_of(self)->raw, index));
}

static PyObject *group_gradient_spec(PyObject *self, PyObject *args)
{
    const weft_spec *spec;
    unsigned index;

    if (!PyArg_ParseTuple(args, "O&:gradient_spec", to_u32, &index)) return NULL;
    spec = weft_fsdp_gradient_spec(group_of(self)->raw, index);
    if (spec == NULL) Py_RETURN_NONE;
    return spec_wrap(weft_spec_retain(spec));
}

static PyObject *group_gradient_create(PyObject *self, PyObject *args)
{
    weft_tensor *raw = NULL;
    unsigned index;

    if (!PyArg_ParseTuple(args, "O&:gradient_create", to_u32, &index) ||
        check(weft_fsdp_gradient_create(group_of(self)->raw, index, &raw)) < 0)
        return NULL;
    return tensor_wrap(raw, group_of(self)->context);
}

static PyObject *group_prefetch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"groups", "backward", NULL};
    struct handles groups;
    weft_status status;
    PyObject *list;
    int backward = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:prefetch", names, &list, &backward) ||
        handles_open(list, binding.fsdp_group, false, "groups", &groups) < 0)
        return NULL;
    status = weft_fsdp_prefetch_set(group_of(self)->raw,
                                    backward ? WEFT_FSDP_BACKWARD : WEFT_FSDP_FORWARD, groups.count,
                                    (weft_fsdp_group *const *)groups.raw);
    handles_close(&groups);
    return done(status);
}

static PyObject *group_reduce(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"gradients", "keep", "local", "shard_only", "wait", NULL};
    int keep = 0, local = 0, shard_only = 0, wait = 1;
    struct handles gradients;
    weft_status status;
    uint32_t flags;
    PyObject *list;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pppp:reduce", names, &list, &keep, &local,
                                     &shard_only, &wait) ||
        handles_open(list, binding.tensor, true, "gradients", &gradients) < 0)
        return NULL;
    if (gradients.count != group_of(self)->count) {
        PyErr_Format(PyExc_ValueError, "the group has %u parameters, but there are %u gradients",
                     group_of(self)->count, gradients.count);
        handles_close(&gradients);
        return NULL;
    }
    flags = (keep ? WEFT_FSDP_KEEP : 0u) | (local ? WEFT_FSDP_LOCAL : 0u) |
            (shard_only ? WEFT_FSDP_SHARD_ONLY : 0u);
    WAIT_BEGIN
    status =
        weft_fsdp_reduce_begin(group_of(self)->raw, (weft_tensor *const *)gradients.raw, flags);
    if (status == WEFT_OK && wait) status = weft_fsdp_reduce_end(group_of(self)->raw);
    WAIT_END
    handles_close(&gradients);
    return done(status);
}

static PyObject *group_reduce_end(PyObject *self, PyObject *unused)
{
    weft_status status;

    (void)unused;
    WAIT_BEGIN
    status = weft_fsdp_reduce_end(group_of(self)->raw);
    WAIT_END
    return done(status);
}

static PyObject *group_gradients_clear(PyObject *self, PyObject *unused)
{
    (void)unused;
    return done(weft_fsdp_gradients_clear(group_of(self)->raw));
}

static PyObject *group_rebind(PyObject *self, PyObject *args)
{
    PyObject *tensor;
    unsigned index;

    if (!PyArg_ParseTuple(args, "O&O!:rebind", to_u32, &index, binding.tensor, &tensor))
        return NULL;
    return done(weft_fsdp_rebind(group_of(self)->raw, index, tensor_raw(tensor)));
}

static PyObject *group_state(PyObject *self, PyObject *unused)
{
    static const char *const states[] = {"sharded", "part kept", "gathering", "gathered"};
    weft_fsdp_group_info info = {.struct_size = sizeof info};

    (void)unused;
    if (check(weft_fsdp_group_get(group_of(self)->raw, &info)) < 0) return NULL;
    return Py_BuildValue("{s:s,s:O,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "state", states[info.state],
                         "reducing", info.reducing ? Py_True : Py_False, "bytes_shard",
                         info.bytes_shard, "bytes_gathered", info.bytes_gathered, "bytes_kept",
                         info.bytes_kept, "bytes_gradients", info.bytes_gradients, "bytes_sums",
                         info.bytes_sums, "bytes_peak", info.bytes_peak, "bytes_received",
                         info.bytes_received);
}

static Py_ssize_t group_length(PyObject *self)
{
    return group_of(self)->count;
}

static PyMethodDef group_methods[] = {
    {"unshard", KEYWORDS(group_unshard),
     "unshard(backward=False, wait=True)\n\nGather the parameters.  Without wait, unshard_end "
     "makes "
     "the compute stream wait for them."},
    {"unshard_end", group_unshard_end, METH_NOARGS, "unshard_end()"},
    {"reshard", KEYWORDS(group_reshard),
     "reshard(ranks=0)\n\nFree the gathered parameters; with ranks, keep a part of them."},
    {"parameter", group_parameter, METH_VARARGS,
     "parameter(index)\n\nA gathered parameter; None: the parameters are not gathered."},
    {"prefetch", KEYWORDS(group_prefetch),
     "prefetch(groups, backward=False)\n\nThe groups that the end of unshard begins to gather."},
    {"gradient_spec", group_gradient_spec, METH_VARARGS, "gradient_spec(index)"},
    {"gradient_create", group_gradient_create, METH_VARARGS,
     "gradient_create(index)\n\nA gradient of zeros, in the layout that reduce expects."},
    {"reduce", KEYWORDS(group_reduce),
     "reduce(gradients, keep=False, local=False, shard_only=False, wait=True)\n\nReduce a gradient "
     "per parameter; None is an absent one."},
    {"reduce_end", group_reduce_end, METH_NOARGS, "reduce_end()"},
    {"gradient", group_gradient, METH_VARARGS,
     "gradient(index)\n\nA reduced gradient, in the layout of the parameter."},
    {"gradients_clear", group_gradients_clear, METH_NOARGS, "gradients_clear()"},
    {"rebind", group_rebind, METH_VARARGS,
     "rebind(index, tensor)\n\nReplace a stored parameter by a tensor of the same layout."},
    {"state", group_state, METH_NOARGS, "state()\n\nThe state and the memory of the group."},
    {0}};

static int group_type_add(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_doc, "Parameters that are gathered together."},
                                  {Py_tp_dealloc, group_dealloc},
                                  {Py_mp_length, group_length},
                                  {Py_tp_methods, group_methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.FSDPGroup", sizeof(group_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.fsdp_group);
}

int fsdp_types_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"group", KEYWORDS(fsdp_group),
         "group(tensors, *, name=None, shard=None, replicate=None, gather_dtype=None, "
         "reduce_dtype=None, gradient_dtype=None, divide=0.0, sum_only=False, "
         "absent_as_zero=False, frozen=None)\n\nA group of stored parameters.  Collective."},
        {"shard_spec", KEYWORDS(shard_spec) | METH_STATIC,
         "shard_spec(spec, axes, dim=0)\n\nThe layout in which axes also split a dimension."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "FSDP(context, compute=None, one_stream=False, groups_max=0)\n\nWhat groups of "
                    "parameters share.  Collective."},
        {Py_tp_new, fsdp_new},
        {Py_tp_dealloc, fsdp_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.FSDP", sizeof(dependent_object), 0, Py_TPFLAGS_DEFAULT, slots};

    if (group_type_add(module) < 0) return -1;
    return type_add(module, &spec, &binding.fsdp);
}
