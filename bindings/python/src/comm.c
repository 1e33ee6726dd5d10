/* comm.c - what weft.Comm has beside its generated members: collectives on arrays, and groups. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

#include <string.h>

static comm_object *self_of(PyObject *self)
{
    return (comm_object *)self;
}

/* ---- collectives ---- */

struct call {
    weft_collective_args args;
    struct array send, recv;
    bool has_send, has_recv;
    uint64_t send_used, recv_used; /* elements that the call uses on this rank */
    size_t size;                   /* of the communicator */
    struct arena arena;            /* of counts and offsets */
};

/* Open the array OBJECT, unless it is None; *IS_OPEN says whether. */
static int side_open(PyObject *object, bool written, const char *name, context_object *context,
                     struct array *array, bool *is_open)
{
    if (object == Py_None) return 0;
    if (place_open(object, written, name, context, array) < 0) return -1;
    *is_open = true;
    return place_hold(context, object);
}

/* Read one count for each of SIZE ranks, and find their offsets.  weft refuses sums that wrap. */
static int read_counts(PyObject *list, size_t size, struct arena *arena, const uint64_t **counts,
                       const uint64_t **offsets)
{
    Py_ssize_t given = list != Py_None ? PySequence_Size(list) : 0;
    unsigned long long number = 0;
    uint64_t *read;

    if (list == Py_None || given < 0) return (int)given;
    if ((size_t)given != size)
        return refuse(PyExc_ValueError, "expected one count for each of %zu ranks, not %zd", size,
                      given);
    read = arena_take(arena, 2 * size * sizeof *read);
    for (size_t i = 0; read != NULL && i < size; i++) {
        PyObject *item = PySequence_GetItem(list, (Py_ssize_t)i);
        int is_read = item != NULL && to_u64(item, &number);

        Py_XDECREF(item);
        if (!is_read) return -1;
        read[i] = number;
        if (i > 0) read[size + i] = read[size + i - 1] + read[i - 1];
    }
    *counts = read;
    *offsets = read != NULL ? read + size : NULL;
    return read != NULL ? 0 : -1;
}

/* The numbers of a collective and a reduction, by their names. */
static int read_names(PyObject *name, PyObject *reduction, weft_collective_args *args)
{
    static const struct value_type collectives = {
        .name = "name", .kind = VALUE_ENUM, .choices = &choices_weft_collective};
    static const struct value_type reductions = {
        .name = "op", .kind = VALUE_ENUM, .choices = &choices_weft_reduction};

    if (value_read(&collectives, name, NULL, &args->collective) < 0) return -1;
    return reduction != NULL ? value_read(&reductions, reduction, NULL, &args->reduction) : 0;
}

/* An array of the call; NULL: it has none. */
static const struct array *any_of(const struct call *call)
{
    if (call->has_send) return &call->send;
    return call->has_recv ? &call->recv : NULL;
}

static int set_sides(struct call *call)
{
    if (any_of(call) != NULL) call->args.dtype = any_of(call)->dtype;
    call->args.send = call->has_send ? call->send.data : NULL;
    call->args.recv = call->has_recv ? call->recv.data : NULL;
    if (!call->has_send || !call->has_recv || call->send.dtype == call->recv.dtype) return 0;
    return refuse(PyExc_ValueError, "send is of %s and recv of %s",
                  weft_dtype_name(call->send.dtype), weft_dtype_name(call->recv.dtype));
}

/* Compare the arrays with what the call needs on this rank.  Without counts they have exactly that,
 * and the count follows from them. */
static int check_sizes(struct call *call, const weft_comm *comm)
{
    bool is_even = call->args.collective < WEFT_COLL_ALL_GATHER_V;
    uint64_t send = call->has_send ? array_elements(&call->send) : 0, send_part;
    uint64_t recv = call->has_recv ? array_elements(&call->recv) : 0, recv_part, count;

    if (is_even) call->args.count = 1;
    if (check(weft_collective_sizes(comm, &call->args, &send_part, &recv_part)) < 0) return -1;
    if ((send_part > 0 && !call->has_send) || (recv_part > 0 && !call->has_recv))
        return refuse(PyExc_TypeError, "%s is None; this rank needs an array",
                      send_part > 0 && !call->has_send ? "send" : "recv");
    if (!is_even)
        count = 1;
    else
        count = call->args.count = send_part > 0   ? send / send_part
                                   : recv_part > 0 ? recv / recv_part
                                                   : 0;
    call->send_used = send_part * count;
    call->recv_used = recv_part * count;
    if (is_even ? (send_part == 0 || send == send_part * count) &&
                      (recv_part == 0 || recv == recv_part * count)
                : send >= send_part && recv >= recv_part)
        return 0;
    return refuse(PyExc_ValueError,
                  "send has %llu elements and recv %llu; this rank needs %llu and %llu", send, recv,
                  call->send_used, call->recv_used);
}

/* Where this rank's own part of SIDE, which has a part for each rank, begins. */
static uintptr_t own_part(const struct call *call, const struct array *side, int32_t rank,
                          const uint64_t *offsets)
{
    uint64_t first = offsets != NULL ? offsets[rank] : (uint64_t)rank * call->args.count;

    return (uintptr_t)side->data + first * weft_dtype_bytes(call->args.dtype);
}

/* In place, as comm.h says: both are the same memory, or one is this rank's part of the other. */
static bool is_in_place(const struct call *call, int32_t rank)
{
    const weft_collective_args *args = &call->args;
    uintptr_t send = (uintptr_t)call->send.data, recv = (uintptr_t)call->recv.data;

    switch (args->collective) {
    case WEFT_COLL_ALL_GATHER:
    case WEFT_COLL_ALL_GATHER_V:
    case WEFT_COLL_GATHER:
    case WEFT_COLL_GATHER_V:
        return send == own_part(call, &call->recv, rank, args->recv_offsets);
    case WEFT_COLL_REDUCE_SCATTER:
    case WEFT_COLL_REDUCE_SCATTER_V:
    case WEFT_COLL_SCATTER:
    case WEFT_COLL_SCATTER_V:
        return recv == own_part(call, &call->send, rank, args->send_offsets);
    case WEFT_COLL_ALL_TO_ALL_V:
        return send == recv && memcmp(args->send_counts, args->recv_counts,
                                      call->size * sizeof *args->send_counts) == 0;
    default:
        return send == recv;
    }
}

/* The elements that the call uses of both arrays are apart, or it is in place. */
static int check_apart(const struct call *call, const weft_comm *comm)
{
    uintptr_t send = (uintptr_t)call->send.data, recv = (uintptr_t)call->recv.data;
    size_t element = weft_dtype_bytes(call->args.dtype);

    if (call->send_used == 0 || call->recv_used == 0 || send + call->send_used * element <= recv ||
        recv + call->recv_used * element <= send || is_in_place(call, weft_comm_rank(comm)))
        return 0;
    return refuse(PyExc_ValueError,
                  "send overlaps a part of recv; give arrays with memory of their own, or in "
                  "place the same array, or this rank's own part where one has a part for each "
                  "rank");
}

static PyObject *comm_collective(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name",        "send",        "recv",  "op",     "root",
                            "send_counts", "recv_counts", "count", "stream", NULL};
    struct call call = {.args = {.struct_size = sizeof call.args}};
    PyObject *send = Py_None, *recv = Py_None, *send_counts = Py_None, *recv_counts = Py_None;
    PyObject *stream = Py_None, *name, *reduction = NULL, *result = NULL;
    weft_comm *comm = self_of(self)->raw;
    context_object *context = self_of(self)->context;
    unsigned long long count = 0;
    weft_stream *on, *owned;
    weft_status status;
    int root = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOiOOO&O:collective", names, &name, &send,
                                     &recv, &reduction, &root, &send_counts, &recv_counts, to_u64,
                                     &count, &stream))
        return NULL;
    call.size = (size_t)weft_comm_size(comm);
    call.args.root = root;
    call.args.count = count;
    if (read_names(name, reduction, &call.args) == 0 &&
        side_open(send, false, "send", context, &call.send, &call.has_send) == 0 &&
        side_open(recv, true, "recv", context, &call.recv, &call.has_recv) == 0 &&
        set_sides(&call) == 0 &&
        read_counts(send_counts, call.size, &call.arena, &call.args.send_counts,
                    &call.args.send_offsets) == 0 &&
        read_counts(recv_counts, call.size, &call.arena, &call.args.recv_counts,
                    &call.args.recv_offsets) == 0 &&
        check_sizes(&call, comm) == 0 && check_apart(&call, comm) == 0 &&
        place_stream(stream, any_of(&call), context, &on, &owned) == 0) {
        call.args.stream = on;
        WAIT_BEGIN
        status = weft_collective(comm, &call.args);
        weft_stream_release(&owned);
        WAIT_END
        result = status == WEFT_OK ? Py_NewRef(Py_None) : raise_status(status);
    }
    if (call.has_send) array_close(&call.send);
    if (call.has_recv) array_close(&call.recv);
    arena_end(&call.arena);
    return result;
}

/* ---- groups ---- */

/* Begin or end a group of calls; CHANGE is 1 or -1.  Arrays of its calls are held until the end. */
static PyObject *group(PyObject *self, weft_status (*call)(weft_comm *), int change)
{
    context_object *context = self_of(self)->context;
    PyObject *result;
    weft_status status;

    WAIT_BEGIN
    status = call(self_of(self)->raw);
    WAIT_END
    result = status == WEFT_OK ? Py_NewRef(Py_None) : raise_status(status);
    if (change < 0 ? context->groups > 0 : status == WEFT_OK) context->groups += change;
    if (context->groups == 0) Py_CLEAR(context->held);
    return result;
}

static PyObject *comm_group_begin(PyObject *self, PyObject *unused)
{
    (void)unused;
    return group(self, weft_group_begin, 1);
}

static PyObject *comm_group_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    return group(self, weft_group_end, -1);
}

int comm_members_add(void)
{
    static PyMethodDef methods[] = {
        {"collective", KEYWORDS(comm_collective),
         "collective($self, name, send=None, recv=None, op=\"sum\", root=0, send_counts=None, "
         "recv_counts=None, count=0, stream=None)\n--\n\nPost any collective."},
        {"group_begin", comm_group_begin, METH_NOARGS,
         "group_begin($self, /)\n--\n\nBegin a group of calls, which start together."},
        {"group_end", comm_group_end, METH_NOARGS, "group_end($self, /)\n--\n\nEnd the group."},
        {0}};

    return type_extend(binding.comm, methods, NULL);
}
