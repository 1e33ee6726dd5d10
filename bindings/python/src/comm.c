/* comm.c - weft._weft.Communicator, the base of weft.Comm. */
#include "comm_info.h"
#include "message.h"

#include <stdlib.h>
#include <string.h>

static comm_object *self_of(PyObject *self)
{
    return (comm_object *)self;
}

/* A communicator of TYPE; it takes over RAW if it is OWNED. */
static PyObject *new_comm(PyTypeObject *type, weft_comm *raw, context_object *context, bool owned)
{
    PyObject *self = dependent_new(type, raw, context);

    if (self != NULL)
        self_of(self)->is_borrowed = !owned;
    else if (owned)
        weft_comm_release(&raw);
    return self;
}

static PyObject *comm_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", NULL};
    context_object *context;
    PyObject *given;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Communicator", names, &given)) return NULL;
    context = context_of(given);
    if (context == NULL) return NULL;
    return new_comm(type, weft_world(context->raw), context, false);
}

static void comm_dealloc(PyObject *object)
{
    comm_object *self = self_of(object);

    if (!self->is_borrowed) weft_comm_release(&self->raw);
    dependent_free(object);
}

/* ---- communicators of communicators ---- */

static PyObject *made(PyObject *self, weft_status status, weft_comm *raw, bool owned)
{
    if (status != WEFT_OK) return raise_status(status);
    if (raw == NULL) Py_RETURN_NONE;
    return new_comm(Py_TYPE(self), raw, self_of(self)->context, owned);
}

static PyObject *comm_split(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"colour", "key", "name", "timeout", NULL};
    weft_subcomm_options options = {.struct_size = sizeof options};
    int colour, key = 0;
    weft_comm *raw = NULL;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|izO&:split", names, &colour, &key,
                                     &options.name, to_timeout, &options.timeout_ns))
        return NULL;
    WAIT_BEGIN
    status = weft_comm_split(self_of(self)->raw, colour, key, &options, &raw);
    WAIT_END
    return made(self, status, raw, true);
}

static PyObject *comm_create(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ranks", "name", "timeout", NULL};
    weft_subcomm_options options = {.struct_size = sizeof options};
    PyObject *list;
    weft_comm *raw = NULL;
    weft_status status;
    Py_ssize_t count;
    int32_t *ranks;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|zO&:create", names, &list, &options.name,
                                     to_timeout, &options.timeout_ns))
        return NULL;
    count = PySequence_Size(list);
    if (count < 0) return NULL;
    ranks = PyMem_Calloc((size_t)count + 1, sizeof *ranks);
    if (ranks == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *rank = PySequence_GetItem(list, i);

        if (rank != NULL) (void)PyArg_Parse(rank, "i:rank", &ranks[i]);
        Py_XDECREF(rank);
    }
    if (PyErr_Occurred()) {
        PyMem_Free(ranks);
        return NULL;
    }
    WAIT_BEGIN
    status = weft_comm_create(self_of(self)->raw, (int32_t)count, ranks, &options, &raw);
    WAIT_END
    PyMem_Free(ranks);
    return made(self, status, raw, true);
}

static PyObject *comm_along(PyObject *self, PyObject *args)
{
    const char *axes;
    PyObject *mesh;
    weft_mesh *on;
    weft_comm *raw = NULL;
    weft_status status;

    if (!PyArg_ParseTuple(args, "Os:along", &mesh, &axes)) return NULL;
    on = mesh_of(mesh, "mesh");
    if (on == NULL) return NULL;
    WAIT_BEGIN
    status = weft_comm_along(self_of(self)->raw, on, axes, &raw);
    WAIT_END
    return made(self, status, raw, false);
}

/* ---- collectives ---- */

struct call {
    weft_collective_args args;
    struct array send, recv;
    bool has_send, has_recv;
    uint64_t *lists; /* send counts, send offsets, receive counts, receive offsets */
    weft_stream *owned;
};

/* How many elements each array of a collective has, as multiples of the count. */
enum extent { UNEVEN, ONCE, EACH_RANK };

struct extents {
    enum extent send, recv;
    bool send_on_root, recv_on_root; /* other ranks have no such array */
};

static const struct extents *extents_of(uint32_t collective)
{
    static const struct extents all[WEFT_COLL_COUNT] = {
        [WEFT_COLL_ALL_REDUCE] = {ONCE, ONCE, false, false},
        [WEFT_COLL_BROADCAST] = {ONCE, ONCE, true, false},
        [WEFT_COLL_REDUCE] = {ONCE, ONCE, false, true},
        [WEFT_COLL_ALL_GATHER] = {ONCE, EACH_RANK, false, false},
        [WEFT_COLL_GATHER] = {ONCE, EACH_RANK, false, true},
        [WEFT_COLL_REDUCE_SCATTER] = {EACH_RANK, ONCE, false, false},
        [WEFT_COLL_SCATTER] = {EACH_RANK, ONCE, true, false},
        [WEFT_COLL_ALL_TO_ALL] = {EACH_RANK, EACH_RANK, false, false},
    };

    return &all[collective];
}

/* Set the count from an array that every rank has, and compare both arrays with it. */
static int read_count(struct call *call, uint64_t size, bool is_root)
{
    const struct extents *extents = extents_of(call->args.collective);
    uint64_t send = call->has_send ? side_elements(&call->send) : 0;
    uint64_t recv = call->has_recv ? side_elements(&call->recv) : 0;
    bool needs_send = !extents->send_on_root || is_root;
    bool needs_recv = !extents->recv_on_root || is_root;
    bool by_send = extents->recv_on_root || extents->recv == EACH_RANK;
    uint64_t given = by_send ? send : recv, wanted_send, wanted_recv;

    if (extents->send == UNEVEN) return 0;
    call->args.count = (by_send ? extents->send : extents->recv) == ONCE ? given : given / size;
    wanted_send = !needs_send ? 0 : call->args.count * (extents->send == ONCE ? 1 : size);
    wanted_recv = !needs_recv ? 0 : call->args.count * (extents->recv == ONCE ? 1 : size);
    if ((!needs_send || (call->has_send && send == wanted_send)) &&
        (!needs_recv || (call->has_recv && recv == wanted_recv)))
        return 0;
    if ((needs_send && !call->has_send) || (needs_recv && !call->has_recv))
        PyErr_Format(PyExc_TypeError, "%s is None; this rank needs an array",
                     needs_send && !call->has_send ? "send" : "recv");
    else
        PyErr_Format(PyExc_ValueError,
                     "send has %llu elements and recv %llu; on %llu ranks they must have %llu and "
                     "%llu",
                     send, recv, size, wanted_send, wanted_recv);
    return -1;
}

/* The counts of LIST and their offsets, one after the other; *TOTAL is their sum. */
static int read_counts(PyObject *list, uint64_t size, uint64_t *counts, uint64_t *offsets,
                       uint64_t *total)
{
    *total = 0;
    if (PySequence_Size(list) != (Py_ssize_t)size) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "expected one count for each of %llu ranks", size);
        return -1;
    }
    for (uint64_t i = 0; i < size; i++) {
        PyObject *count = PySequence_GetItem(list, (Py_ssize_t)i);

        unsigned long long number;

        if (count == NULL || !to_u64(count, &number)) {
            Py_XDECREF(count);
            return -1;
        }
        Py_DECREF(count);
        counts[i] = number;
        offsets[i] = *total;
        *total += counts[i];
        if (*total < counts[i]) {
            PyErr_SetString(PyExc_OverflowError, "the counts add up to more than 2^64");
            return -1;
        }
    }
    return 0;
}

static int read_lists(struct call *call, PyObject *send, PyObject *recv, uint64_t size)
{
    uint64_t total;

    if (send == Py_None && recv == Py_None) return 0;
    call->lists = PyMem_Calloc(4 * size, sizeof *call->lists);
    if (call->lists == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (send != Py_None) {
        call->args.send_counts = call->lists;
        call->args.send_offsets = call->lists + size;
        if (read_counts(send, size, call->lists, call->lists + size, &total) < 0) return -1;
        if (call->has_send && total > side_elements(&call->send)) {
            PyErr_Format(PyExc_ValueError, "send has %llu elements; its counts add up to %llu",
                         side_elements(&call->send), total);
            return -1;
        }
    }
    if (recv != Py_None) {
        call->args.recv_counts = call->lists + 2 * size;
        call->args.recv_offsets = call->lists + 3 * size;
        if (read_counts(recv, size, call->lists + 2 * size, call->lists + 3 * size, &total) < 0)
            return -1;
        if (call->has_recv && total > side_elements(&call->recv)) {
            PyErr_Format(PyExc_ValueError, "recv has %llu elements; its counts add up to %llu",
                         side_elements(&call->recv), total);
            return -1;
        }
    }
    return 0;
}

/* Compare the array whose size a collective with counts does not state, with what RANK moves. */
static int check_uneven(const struct call *call, int32_t rank)
{
    const weft_collective_args *args = &call->args;
    uint32_t which = args->collective;
    bool is_send = which == WEFT_COLL_ALL_GATHER_V || which == WEFT_COLL_GATHER_V;
    const struct array *array = is_send ? &call->send : &call->recv;
    bool has_array = is_send ? call->has_send : call->has_recv;
    uint64_t moved = args->count, have = has_array ? side_elements(array) : 0;

    if (which == WEFT_COLL_ALL_GATHER_V && args->recv_counts != NULL)
        moved = args->recv_counts[rank];
    else if (which == WEFT_COLL_REDUCE_SCATTER_V && args->send_counts != NULL)
        moved = args->send_counts[rank];
    else if (which != WEFT_COLL_GATHER_V && which != WEFT_COLL_SCATTER_V)
        return 0;
    if (moved <= have) return 0;
    PyErr_Format(PyExc_ValueError, "%s has %llu elements; this rank needs %llu",
                 is_send ? "send" : "recv", have, moved);
    return -1;
}

/* An array of the call; NULL: it has none. */
static const struct array *any_of(const struct call *call)
{
    if (call->has_send) return &call->send;
    return call->has_recv ? &call->recv : NULL;
}

static int check_sides(struct call *call)
{
    if (any_of(call) != NULL) call->args.dtype = any_of(call)->dtype;
    call->args.send = call->has_send ? call->send.data : NULL;
    call->args.recv = call->has_recv ? call->recv.data : NULL;
    if (!call->has_send || !call->has_recv || call->send.dtype == call->recv.dtype) return 0;
    PyErr_Format(PyExc_ValueError, "send is of %s and recv of %s",
                 weft_dtype_name(call->send.dtype), weft_dtype_name(call->recv.dtype));
    return -1;
}

static void close_call(struct call *call)
{
    if (call->has_send) array_close(&call->send);
    if (call->has_recv) array_close(&call->recv);
    PyMem_Free(call->lists);
}

static PyObject *comm_collective(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name",        "send",        "recv",  "op",     "root",
                            "send_counts", "recv_counts", "count", "stream", NULL};
    struct call call = {.args = {.struct_size = sizeof call.args}};
    PyObject *send = Py_None, *recv = Py_None, *send_counts = Py_None, *recv_counts = Py_None;
    PyObject *stream = Py_None;
    const char *name, *reduction = "sum";
    weft_comm *comm = self_of(self)->raw;
    context_object *context = self_of(self)->context;
    uint64_t size = (uint64_t)weft_comm_size(comm);
    weft_status status = WEFT_ERR_INVALID;
    unsigned long long count = 0;
    weft_stream *on;
    int root = 0, ready;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|OOsiOOO&O:collective", names, &name, &send,
                                     &recv, &reduction, &root, &send_counts, &recv_counts, to_u64,
                                     &count, &stream))
        return NULL;
    call.args.root = root;
    call.args.count = count;
    ready = read_names(name, reduction, &call.args.collective, &call.args.reduction) == 0 &&
            side_open(send, false, "send", context, &call.send, &call.has_send) == 0 &&
            side_open(recv, true, "recv", context, &call.recv, &call.has_recv) == 0 &&
            check_sides(&call) == 0 && read_lists(&call, send_counts, recv_counts, size) == 0 &&
            read_count(&call, size, weft_comm_rank(comm) == root) == 0 &&
            check_uneven(&call, weft_comm_rank(comm)) == 0 && side_hold(context, send) == 0 &&
            side_hold(context, recv) == 0 &&
            place_stream(stream, any_of(&call), context, &on, &call.owned) == 0;
    if (ready) {
        call.args.stream = on;
        WAIT_BEGIN
        status = weft_collective(comm, &call.args);
        weft_stream_release(context->raw, &call.owned);
        WAIT_END
    }
    close_call(&call);
    if (!ready) return NULL;
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *comm_abort(PyObject *self, PyObject *unused)
{
    (void)unused;
    weft_comm_abort(self_of(self)->raw);
    Py_RETURN_NONE;
}

/* ---- properties ---- */

static PyObject *get_rank(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(weft_comm_rank(self_of(self)->raw));
}

static PyObject *get_size(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(weft_comm_size(self_of(self)->raw));
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(weft_comm_name(self_of(self)->raw));
}

static PyObject *get_context(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef((PyObject *)self_of(self)->context);
}

int comm_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"rank", get_rank, NULL, "This rank's number in the communicator.", NULL},
        {"size", get_size, NULL, "The number of ranks.", NULL},
        {"native", comm_get_native, NULL, "The address of the vendor's communicator, or 0.", NULL},
        {"name", get_name, NULL, "The name in messages.", NULL},
        {"context", get_context, NULL, "The context.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"split", KEYWORDS(comm_split), "split(colour, key=0, name=None, timeout=0)"},
        {"create", KEYWORDS(comm_create), "create(ranks, name=None, timeout=0)"},
        {"along", comm_along, METH_VARARGS, "along(mesh, axes)"},
        {"collective", KEYWORDS(comm_collective),
         "collective(name, send=None, recv=None, op=\"sum\", root=0, send_counts=None, "
         "recv_counts=None, count=0, stream=None)"},
        {"send", KEYWORDS(comm_send), "send(array, peer, tag=0, stream=None)"},
        {"receive", KEYWORDS(comm_receive), "receive(array, peer, tag=0, stream=None)"},
        {"group_begin", comm_group_begin, METH_NOARGS, "group_begin()"},
        {"group_end", comm_group_end, METH_NOARGS, "group_end()"},
        {"abort", comm_abort, METH_NOARGS, "abort()"},
        COMM_INFO_METHODS{0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Communicator(context)\n\nThe communicator of all ranks."},
        {Py_tp_new, comm_new},
        {Py_tp_dealloc, comm_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Communicator", sizeof(comm_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return type_add(module, &spec, &binding.comm);
}
