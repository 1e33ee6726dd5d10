/* symm.c - weft.Symm: symmetric memory. */
#include "interrupt.h"
#include "place.h"
#include "shard.h"

#include <string.h>

typedef struct {
    comm_part_object part;
    struct shard_use use; /* by arrays, which keep this object */
} symm_object;

static symm_object *self_of(PyObject *self)
{
    return (symm_object *)self;
}

static weft_symm *raw_of(PyObject *self)
{
    return comm_part_raw(self, "the symmetric memory");
}

static PyObject *symm_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"comm", "bytes", "channels", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    weft_symm_options options = {.struct_size = sizeof options};
    unsigned long long bytes;
    unsigned channels = 0;
    weft_symm *raw = NULL;
    PyObject *comm, *self;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&|O&:Symm", names, &comm, to_u64, &bytes,
                                     to_u32, &channels) ||
        !is_of(comm, binding.comm, "comm"))
        return NULL;
    self = allocate(type, 0);
    if (self == NULL) return NULL;
    options.channels = channels;
    WAIT_BEGIN
    status = weft_symm_create(((comm_object *)comm)->raw, bytes, &options, &raw);
    WAIT_END
    return comm_part_made(self, status, raw, comm);
}

static void release(symm_object *self)
{
    weft_symm *raw = self->part.raw;

    self->part.raw = NULL;
    self->use.is_closed = true;
    WAIT_BEGIN
    weft_symm_release(&raw);
    WAIT_END
}

static void symm_dealloc(PyObject *object)
{
    symm_object *self = self_of(object);

    if (self->part.raw != NULL) release(self);
    comm_part_free(object);
}

static PyObject *symm_close(PyObject *object, PyObject *unused)
{
    symm_object *self = self_of(object);

    (void)unused;
    if (self->use.exported > 0) {
        PyErr_Format(PyExc_BufferError, "%zd arrays use the symmetric memory; delete them first",
                     self->use.exported);
        return NULL;
    }
    if (self->part.raw != NULL) release(self);
    Py_RETURN_NONE;
}

static PyObject *symm_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* An exception of the block is not replaced: the memory then ends with the object. */
static PyObject *symm_exit(PyObject *self, PyObject *args)
{
    PyObject *kind, *value, *traceback;

    if (!PyArg_ParseTuple(args, "OOO:__exit__", &kind, &value, &traceback)) return NULL;
    if (kind != Py_None) Py_RETURN_NONE;
    return symm_close(self, NULL);
}

/* ---- memory ---- */

static PyObject *symm_memory(PyObject *object, PyObject *args)
{
    symm_object *self = self_of(object);
    weft_symm *raw = raw_of(object);
    PyObject *key = Py_None;
    int64_t bytes;
    void *data;

    if (raw == NULL || !PyArg_ParseTuple(args, "|O:memory", &key)) return NULL;
    data = weft_symm_local(raw);
    if (key != Py_None) {
        int peer;

        if (!PyArg_Parse(key, "i:memory", &peer)) return NULL;
        data = weft_symm_peer(raw, peer);
        if (data == NULL) Py_RETURN_NONE;
    }
    bytes = (int64_t)weft_symm_bytes(raw);
    return shard_new(&(struct shard_facts){.data = data,
                                           .dims = 1,
                                           .shape = &bytes,
                                           .dtype = WEFT_DTYPE_U8,
                                           .device = self->part.context->device,
                                           .owner = object,
                                           .use = &self->use});
}

static PyObject *get_info(PyObject *self, void *closure)
{
    weft_symm *raw = raw_of(self);

    (void)closure;
    if (raw == NULL) return NULL;
    return Py_BuildValue("{s:K,s:I,s:s}", "bytes", (unsigned long long)weft_symm_bytes(raw),
                         "channels", (unsigned)weft_symm_channels(raw), "backend",
                         weft_symm_backend(raw));
}

/* ---- calls ---- */

/* What a call posts; the members that it does not have are 0. */
struct post {
    weft_symm *symm;
    struct array array;
    uint64_t bytes, offset, value;
    int peer;
    unsigned channel;
    uint32_t choice; /* an operation or a comparison */
    int64_t timeout_ns;
    weft_stream *stream;
};

static int find_choice(const char *text, const char *const *names, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        *out = i;
        if (strcmp(text, names[i]) == 0) return 0;
    }
    PyErr_Format(PyExc_ValueError, "'%s' is unknown; the first choice is '%s'", text, names[0]);
    return -1;
}

static const char *const signals[] = {"set", "add"};
static const char *const comparisons[] = {"==", "!=", ">=", ">", "<=", "<"};

/* Open ARRAY, whose bytes travel. */
static int open_array(PyObject *self, PyObject *array, bool written, struct post *post)
{
    if (array_open(array, &post->array) < 0) return -1;
    if (check_dense(&post->array, "array", written) == 0 &&
        place_fits(&post->array, self_of(self)->part.context, "array") == 0) {
        post->bytes = weft_dtype_bytes(post->array.dtype);
        for (int32_t i = 0; i < post->array.dims; i++)
            post->bytes *= (uint64_t)post->array.shape[i];
        return 0;
    }
    array_close(&post->array);
    return -1;
}

/* Run CALL on the stream ON. */
static PyObject *run(PyObject *self, PyObject *on, struct post *post,
                     weft_status (*call)(const struct post *post))
{
    context_object *context = self_of(self)->part.context;
    const struct array *array =
        post->array.dims > 0 || post->array.data != NULL ? &post->array : NULL;
    weft_stream *owned;
    weft_status status;

    post->symm = raw_of(self);
    if (post->symm == NULL || place_stream(on, array, context, &post->stream, &owned) < 0)
        return NULL;
    WAIT_BEGIN
    status = call(post);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static weft_status post_put(const struct post *p)
{
    return weft_symm_put_to(p->symm, p->array.data, p->peer, p->offset, p->bytes, p->stream);
}

static weft_status post_put_signal(const struct post *p)
{
    return weft_symm_put_signal_to(p->symm, p->array.data, p->peer, p->offset, p->bytes, p->channel,
                                   p->value, (enum weft_signal_op)p->choice, p->stream);
}

static weft_status post_get(const struct post *p)
{
    return weft_symm_get_from(p->symm, p->peer, p->offset, p->array.data, p->bytes, p->stream);
}

static weft_status post_signal(const struct post *p)
{
    return weft_symm_signal_to(p->symm, p->peer, p->channel, p->value,
                               (enum weft_signal_op)p->choice, p->stream);
}

static weft_status post_wait(const struct post *p)
{
    return weft_symm_wait_from(p->symm, p->peer, p->channel, (enum weft_compare)p->choice, p->value,
                               p->timeout_ns, p->stream);
}

static weft_status post_fence(const struct post *p)
{
    return weft_symm_fence(p->symm, p->stream);
}

static weft_status post_quiet(const struct post *p)
{
    return weft_symm_quiet(p->symm, p->stream);
}

static weft_status post_barrier(const struct post *p)
{
    return weft_symm_barrier(p->symm, p->stream);
}

static PyObject *symm_put(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"source", "peer", "offset", "signal", "op", "stream", NULL};
    PyObject *source, *signal = Py_None, *on = Py_None, *result;
    unsigned long long offset = 0, value = 0;
    struct post post = {0};
    const char *op = "set";

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|O&OsO:put", names, &source, &post.peer,
                                     to_u64, &offset, &signal, &op, &on) ||
        find_choice(op, signals, 2, &post.choice) < 0)
        return NULL;
    if (signal != Py_None && !PyTuple_Check(signal)) {
        PyErr_SetString(PyExc_TypeError, "signal must be None or a tuple (channel, value)");
        return NULL;
    }
    if (signal != Py_None &&
        !PyArg_ParseTuple(signal, "O&O&:signal", to_u32, &post.channel, to_u64, &value))
        return NULL;
    post.offset = offset;
    post.value = value;
    if (open_array(self, source, false, &post) < 0) return NULL;
    result = run(self, on, &post, signal != Py_None ? post_put_signal : post_put);
    array_close(&post.array);
    return result;
}

static PyObject *symm_get(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"peer", "target", "offset", "stream", NULL};
    PyObject *target, *on = Py_None, *result;
    unsigned long long offset = 0;
    struct post post = {0};

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO|O&O:get", names, &post.peer, &target, to_u64,
                                     &offset, &on))
        return NULL;
    post.offset = offset;
    if (open_array(self, target, true, &post) < 0) return NULL;
    result = run(self, on, &post, post_get);
    array_close(&post.array);
    return result;
}

static PyObject *symm_signal(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"peer", "channel", "value", "op", "stream", NULL};
    unsigned long long value;
    struct post post = {0};
    PyObject *on = Py_None;
    const char *op = "set";

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO&O&|sO:signal", names, &post.peer, to_u32,
                                     &post.channel, to_u64, &value, &op, &on) ||
        find_choice(op, signals, 2, &post.choice) < 0)
        return NULL;
    post.value = value;
    return run(self, on, &post, post_signal);
}

static PyObject *symm_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"peer", "channel", "value", "compare", "timeout", "stream", NULL};
    unsigned long long value;
    struct post post = {0};
    PyObject *on = Py_None;
    const char *compare = ">=";

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO&O&|sO&O:wait", names, &post.peer, to_u32,
                                     &post.channel, to_u64, &value, &compare, to_timeout,
                                     &post.timeout_ns, &on) ||
        find_choice(compare, comparisons, 6, &post.choice) < 0)
        return NULL;
    post.value = value;
    return run(self, on, &post, post_wait);
}

static PyObject *symm_test(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"peer", "channel", "value", "compare", NULL};
    weft_symm *raw = raw_of(self);
    unsigned long long value;
    const char *compare = ">=";
    weft_status status;
    unsigned channel;
    uint32_t choice;
    int peer;

    if (raw == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "iO&O&|s:test", names, &peer, to_u32, &channel,
                                     to_u64, &value, &compare) ||
        find_choice(compare, comparisons, 6, &choice) < 0)
        return NULL;
    status = weft_symm_test_from(raw, peer, channel, (enum weft_compare)choice, value);
    if (status == WEFT_IN_PROGRESS) Py_RETURN_FALSE;
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_TRUE;
}

/* A call that has a stream alone. */
static PyObject *order(PyObject *self, PyObject *args, PyObject *kwargs,
                       weft_status (*call)(const struct post *post))
{
    static char *names[] = {"stream", NULL};
    struct post post = {0};
    PyObject *on = Py_None;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &on)) return NULL;
    return run(self, on, &post, call);
}

static PyObject *symm_fence(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return order(self, args, kwargs, post_fence);
}

static PyObject *symm_quiet(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return order(self, args, kwargs, post_quiet);
}

static PyObject *symm_barrier(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return order(self, args, kwargs, post_barrier);
}

int symm_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"info", get_info, NULL, "Bytes of each rank, channels, and the backend.", NULL}, {0}};
    static PyMethodDef methods[] = {
        {"memory", symm_memory, METH_VARARGS,
         "memory(peer=None)\n\nThe bytes of this rank, or of a peer, for from_dlpack; None: this "
         "rank cannot address them."},
        {"put", KEYWORDS(symm_put),
         "put(source, peer, offset=0, signal=None, op=\"set\", stream=None)\n\nCopy an array to a "
         "peer's memory; signal is (channel, value), which arrives after the data."},
        {"get", KEYWORDS(symm_get),
         "get(peer, target, offset=0, stream=None)\n\nCopy from a peer's "
         "memory to an array."},
        {"signal", KEYWORDS(symm_signal),
         "signal(peer, channel, value, op=\"set\", stream=None)\n\nSet a peer's signal, or add."},
        {"wait", KEYWORDS(symm_wait),
         "wait(peer, channel, value, compare=\">=\", timeout=0, stream=None)\n\nMake a stream wait "
         "for a signal of a peer.  timeout is in seconds; 0: the communicator's."},
        {"test", KEYWORDS(symm_test),
         "test(peer, channel, value, compare=\">=\")\n\nWhether a signal has arrived."},
        {"fence", KEYWORDS(symm_fence), "fence(stream=None)\n\nOrder puts and signals."},
        {"quiet", KEYWORDS(symm_quiet), "quiet(stream=None)\n\nWait until they have arrived."},
        {"barrier", KEYWORDS(symm_barrier),
         "barrier(stream=None)\n\nWait until those of all ranks have arrived.  Collective."},
        {"close", symm_close, METH_NOARGS, "close()\n\nFree the memory.  Collective."},
        {"__enter__", symm_enter, METH_NOARGS, NULL},
        {"__exit__", symm_exit, METH_VARARGS, NULL},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Symm(comm, bytes, channels=0)\n\nMemory of the same size on all ranks of a "
                    "communicator, which each of them reads and writes.  Collective, and so is its "
                    "end (docs/symmetric-memory.md)."},
        {Py_tp_new, symm_new},
        {Py_tp_dealloc, symm_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Symm", sizeof(symm_object), 0, Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.symm);
}
