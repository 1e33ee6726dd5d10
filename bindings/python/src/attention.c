/* attention.c - weft._weft.Attention, the base of weft.Attention: attention over a sequence that
 * ranks share. */
#include "attention.h"
#include "interrupt.h"
#include "place.h"
#include "shard.h"

typedef struct {
    HANDLE_HEAD(weft_cp)
    weft_cp_sizes sizes;
    int64_t length; /* of this rank's part of the sequence */
} attention_object;

static attention_object *self_of(PyObject *self)
{
    return (attention_object *)self;
}

/* The length of RANK's part of the sequence. */
static int find_length(PyObject *plan, int32_t rank, int64_t *out)
{
    const sequence_object *sequence = (sequence_object *)plan;
    int32_t coordinates[WEFT_MAX_AXES];

    if (check(weft_mesh_coord_of(sequence->mesh, rank, coordinates)) < 0) return -1;
    *out = weft_cp_plan_length(sequence->raw, coordinates[sequence->axis]);
    return 0;
}

static PyObject *attention_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "plan",      "batch",        "heads", "depth",
                            "dtype",   "key_heads", "sequence_dim", NULL};
    weft_cp_sizes sizes = {.struct_size = sizeof sizes};
    long long batch, heads, depth, key_heads = 0;
    PyObject *given, *plan, *self;
    context_object *context;
    enum weft_dtype dtype;
    weft_cp *raw = NULL;
    weft_status status;
    const char *text;
    int64_t length;
    int dim = 2;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOLLLs|Li:Attention", names, &given, &plan,
                                     &batch, &heads, &depth, &text, &key_heads, &dim) ||
        !is_of(plan, binding.cp_plan, "plan") || check(weft_dtype_parse(text, &dtype)) < 0)
        return NULL;
    context = context_of(given);
    if (context == NULL || find_length(plan, weft_rank(context->raw), &length) < 0) return NULL;
    sizes.batch = batch;
    sizes.heads = heads;
    sizes.depth = depth;
    sizes.key_heads = key_heads > 0 ? key_heads : heads;
    sizes.dtype = dtype;
    sizes.sequence_dim = dim;
    WAIT_BEGIN
    status = weft_cp_create(context->raw, ((sequence_object *)plan)->raw, &sizes, &raw);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    self = dependent_new(type, raw, context);
    if (self == NULL)
        weft_cp_release(&raw);
    else {
        self_of(self)->sizes = sizes;
        self_of(self)->length = length;
    }
    return self;
}

static void attention_dealloc(PyObject *self)
{
    weft_cp *raw = self_of(self)->raw;

    WAIT_BEGIN
    weft_cp_release(&raw);
    WAIT_END
    dependent_free(self);
}

/* A tensor of a call: [batch, head, sequence, depth] by its strides, or without the depth. */
static PyObject *local_of(const weft_cp_local *local, const weft_cp_call *call, bool of_keys,
                          bool has_depth, bool written, weft_dl_device device)
{
    int64_t shape[] = {call->batch, of_keys ? call->key_heads : call->heads,
                       of_keys ? call->problem->keys : call->problem->queries, call->depth};
    int64_t strides[] = {local->batch, local->head, local->sequence, 1};

    if (local->memory == NULL) Py_RETURN_NONE;
    return shard_new(&(struct shard_facts){.data = local->memory,
                                           .dims = has_depth ? 4 : 3,
                                           .shape = shape,
                                           .strides = strides,
                                           .dtype = has_depth ? call->dtype : WEFT_DTYPE_F32,
                                           .device = device,
                                           .is_read_only = !written});
}

/* The tuple q, k, v, out, lse, d_out, d_q, d_k, d_v. */
static PyObject *locals_of(const weft_cp_call *call, weft_dl_device device)
{
    bool back = call->backward;
    const struct {
        const weft_cp_local *local;
        bool of_keys, has_depth, written, present;
    } parts[] = {{&call->q, false, true, false, true},    {&call->k, true, true, false, true},
                 {&call->v, true, true, false, true},     {&call->out, false, true, !back, true},
                 {&call->lse, false, false, !back, true}, {&call->d_out, false, true, false, back},
                 {&call->d_q, false, true, true, back},   {&call->d_k, true, true, true, back},
                 {&call->d_v, true, true, true, back}};
    PyObject *tuple = PyTuple_New(9);

    for (int i = 0; tuple != NULL && i < 9; i++) {
        PyObject *item = parts[i].present ? local_of(parts[i].local, call, parts[i].of_keys,
                                                     parts[i].has_depth, parts[i].written, device)
                                          : Py_NewRef(Py_None);

        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* The function gets the mask, its diagonal and window, the indices of the first query and key, the
 * first heads, whether it is a backward, the tensors, and the address of the stream. */
static weft_status call_kernel(void *user, const weft_cp_call *call)
{
    PyGILState_STATE state = PyGILState_Ensure();
    const weft_cp_problem *problem = call->problem;
    struct kernel *kernel = user;
    PyObject *tensors = locals_of(call, kernel->device), *result = NULL;
    weft_status status;
    Py_ssize_t kept;

    if (tensors != NULL)
        result = PyObject_CallFunction(
            kernel->function, "sLLLLLLOON", attention_masks[problem->mask],
            (long long)problem->diagonal, (long long)problem->window,
            (long long)problem->query_index, (long long)problem->key_index,
            (long long)call->first_head, (long long)call->first_key_head,
            call->backward ? Py_True : Py_False, tensors,
            PyLong_FromVoidPtr(weft_stream_native(call->context, call->stream)));
    kept = shards_close(tensors);
    status = kernel_end(kernel, result != NULL ? kept : 0, "an attention");
    Py_XDECREF(result);
    Py_XDECREF(tensors);
    PyGILState_Release(state);
    return status;
}

enum { TENSORS = 9 };

/* The number of elements that a tensor must have: of queries, of keys, or of queries without depth.
 */
static uint64_t wanted(const attention_object *self, int i)
{
    bool of_keys = i == 1 || i == 2 || i >= 7;
    int64_t heads = of_keys ? self->sizes.key_heads : self->sizes.heads;

    return (uint64_t)(self->sizes.batch * heads * self->length * (i == 4 ? 1 : self->sizes.depth));
}

static int open_tensor(attention_object *self, PyObject *object, int i, bool written,
                       struct array *out)
{
    static const char *const names[] = {"q", "k", "v", "out", "lse", "d_out", "d_q", "d_k", "d_v"};
    enum weft_dtype dtype = i == 4 ? WEFT_DTYPE_F32 : (enum weft_dtype)self->sizes.dtype;
    uint64_t count = 1;

    if (array_open(object, out) < 0) return -1;
    for (int32_t k = 0; k < out->dims; k++)
        count *= (uint64_t)out->shape[k];
    if (out->dtype != dtype || count != wanted(self, i))
        PyErr_Format(PyExc_ValueError, "%s has %llu elements of %s; %llu of %s are needed",
                     names[i], (unsigned long long)count, weft_dtype_name(out->dtype),
                     (unsigned long long)wanted(self, i), weft_dtype_name(dtype));
    else if (check_dense(out, names[i], written) == 0 &&
             place_fits(out, self->context, names[i]) == 0)
        return 0;
    array_close(out);
    return -1;
}

static weft_status run_kernel(attention_object *self, const struct array *arrays, bool backward,
                              struct kernel *kernel, weft_stream *stream)
{
    weft_cp_tensors tensors = {.struct_size = sizeof tensors,
                               .q = arrays[0].data,
                               .k = arrays[1].data,
                               .v = arrays[2].data,
                               .out = arrays[3].data,
                               .lse = arrays[4].data,
                               .d_out = arrays[5].data,
                               .d_q = arrays[6].data,
                               .d_k = arrays[7].data,
                               .d_v = arrays[8].data};

    return (backward ? weft_cp_backward : weft_cp_forward)(self->raw, &tensors, call_kernel, kernel,
                                                           stream);
}

/* ARGS: the function, the tensors of the call, and the stream. */
static PyObject *attention_run(PyObject *object, PyObject *args)
{
    attention_object *self = self_of(object);
    struct array arrays[TENSORS] = {0};
    struct kernel kernel = {.device = self->context->device};
    weft_stream *stream = NULL, *owned = NULL;
    weft_status status = WEFT_ERR_INVALID;
    PyObject *list, *on;
    Py_ssize_t count;
    int opened = 0;
    bool backward, ready;

    if (!PyArg_ParseTuple(args, "OO!O:run", &kernel.function, &PyTuple_Type, &list, &on))
        return NULL;
    count = PyTuple_Size(list);
    if (count != 5 && count != TENSORS) {
        PyErr_SetString(PyExc_ValueError, "a forward has 5 tensors, a backward 9");
        return NULL;
    }
    backward = count == TENSORS;
    while (opened < count && open_tensor(self, PyTuple_GetItem(list, opened), opened,
                                         backward ? opened > 5 : opened > 2, &arrays[opened]) == 0)
        opened++;
    ready = opened == count && place_stream(on, &arrays[0], self->context, &stream, &owned) == 0;
    if (ready) {
        WAIT_BEGIN
        status = run_kernel(self, arrays, backward, &kernel, stream);
        weft_stream_release(self->context->raw, &owned);
        WAIT_END
    }
    while (opened > 0)
        array_close(&arrays[--opened]);
    if (!ready) return NULL;
    if (status != WEFT_OK) return kernel_raise(&kernel, status);
    Py_RETURN_NONE;
}

/* Whether WHOLE has the dimensions of SHARD, but the whole sequence in DIM. */
static int check_buffers(const attention_object *self, const struct array *whole,
                         const struct array *shard, int dim)
{
    bool fits =
        whole->dtype == shard->dtype && whole->dims == shard->dims && dim >= 0 && dim < whole->dims;

    for (int32_t i = 0; fits && i < whole->dims; i++)
        fits = i == dim ? shard->shape[i] == self->length : whole->shape[i] == shard->shape[i];
    if (fits) return 0;
    PyErr_Format(PyExc_ValueError,
                 "source and target must have one dtype, and the same sizes but in dimension %d, "
                 "where the part of this rank has %lld",
                 dim, (long long)self->length);
    return -1;
}

static PyObject *copy_buffer(PyObject *object, PyObject *args, PyObject *kwargs, bool restore)
{
    static char *names[] = {"source", "target", "dim", "stream", NULL};
    attention_object *self = self_of(object);
    PyObject *from, *to, *on = Py_None;
    weft_stream *stream, *owned;
    struct array source, target;
    const struct array *whole;
    weft_status status = WEFT_ERR_INVALID;
    bool ready;
    int dim;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOi|O", names, &from, &to, &dim, &on) ||
        array_open(from, &source) < 0)
        return NULL;
    if (array_open(to, &target) < 0) {
        array_close(&source);
        return NULL;
    }
    whole = restore ? &target : &source;
    ready = check_buffers(self, whole, restore ? &source : &target, dim) == 0 &&
            check_dense(&source, "source", false) == 0 &&
            check_dense(&target, "target", true) == 0 &&
            place_fits(&source, self->context, "source") == 0 &&
            place_fits(&target, self->context, "target") == 0 &&
            place_stream(on, &source, self->context, &stream, &owned) == 0;
    if (ready) {
        WAIT_BEGIN
        status = (restore ? weft_cp_restore : weft_cp_shard)(self->raw, whole->dtype, whole->dims,
                                                             whole->shape, dim, source.data,
                                                             target.data, stream);
        weft_stream_release(self->context->raw, &owned);
        WAIT_END
    }
    array_close(&source);
    array_close(&target);
    if (!ready) return NULL;
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *attention_shard(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return copy_buffer(self, args, kwargs, false);
}

static PyObject *attention_restore(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return copy_buffer(self, args, kwargs, true);
}

int attention_types_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"run", attention_run, METH_VARARGS, "run(function, tensors, stream)"},
        {"shard", KEYWORDS(attention_shard),
         "shard(source, target, dim, stream=None)\n\nThis rank's part of a whole buffer."},
        {"restore", KEYWORDS(attention_restore),
         "restore(source, target, dim, stream=None)\n\nThe whole buffer on every rank.  "
         "Collective."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Attention(context, plan, batch, heads, depth, dtype, key_heads=0, "
                    "sequence_dim=2)"},
        {Py_tp_new, attention_new},
        {Py_tp_dealloc, attention_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Attention", sizeof(attention_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    if (type_add(module, &spec, &binding.cp) < 0) return -1;
    return attention_plan_type_add(module);
}
