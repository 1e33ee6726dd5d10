/* comm.c - what weft.Comm has beside its generated members: collectives and messages on arrays. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"
#include "tensor.h"

#include <string.h>

static comm_object *self_of(PyObject *self)
{
    return (comm_object *)self;
}

/* ---- arrays of calls ---- */

/* Open the array OBJECT, unless it is None; *IS_OPEN says whether. */
static int side_open(PyObject *object, bool written, const char *name, context_object *context,
                     struct array *array, bool *is_open)
{
    if (object == Py_None) return 0;
    if (place_open(object, written, name, context, array) < 0) return -1;
    *is_open = true;
    return 0;
}

static uint64_t side_elements(const struct array *array)
{
    int64_t count = 1;

    for (int32_t i = 0; i < array->dims; i++)
        count *= array->shape[i];
    return (uint64_t)count;
}

/* Keep OBJECT until the end of the group of calls, if one has begun. */
static int side_hold(context_object *context, PyObject *object)
{
    if (context->groups == 0 || object == Py_None) return 0;
    if (context->held == NULL) context->held = PyList_New(0);
    return context->held != NULL ? PyList_Append(context->held, object) : -1;
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

/* The counts of LIST and their offsets; *TOTAL is their sum. */
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

/* Read the counts LIST of ARRAY, which may be NULL, to COUNTS and their offsets behind them. */
static int read_side(PyObject *list, uint64_t size, const char *name, const struct array *array,
                     uint64_t *counts)
{
    uint64_t total, elements = array != NULL ? side_elements(array) : UINT64_MAX;

    if (read_counts(list, size, counts, counts + size, &total) < 0) return -1;
    if (total <= elements) return 0;
    PyErr_Format(PyExc_ValueError, "%s has %llu elements; its counts add up to %llu", name,
                 elements, total);
    return -1;
}

static int read_lists(struct call *call, PyObject *send, PyObject *recv, uint64_t size)
{
    if (send == Py_None && recv == Py_None) return 0;
    call->lists = PyMem_Calloc(4 * size, sizeof *call->lists);
    if (call->lists == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (send != Py_None) {
        call->args.send_counts = call->lists;
        call->args.send_offsets = call->lists + size;
        if (read_side(send, size, "send", call->has_send ? &call->send : NULL, call->lists) < 0)
            return -1;
    }
    if (recv != Py_None) {
        call->args.recv_counts = call->lists + 2 * size;
        call->args.recv_offsets = call->lists + 3 * size;
        if (read_side(recv, size, "recv", call->has_recv ? &call->recv : NULL,
                      call->lists + 2 * size) < 0)
            return -1;
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
    PyObject *name, *reduction = NULL;
    weft_comm *comm = self_of(self)->raw;
    context_object *context = self_of(self)->context;
    uint64_t size = (uint64_t)weft_comm_size(comm);
    weft_status status = WEFT_ERR_INVALID;
    unsigned long long count = 0;
    weft_stream *on;
    int root = 0, ready;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOiOOO&O:collective", names, &name, &send,
                                     &recv, &reduction, &root, &send_counts, &recv_counts, to_u64,
                                     &count, &stream))
        return NULL;
    call.args.root = root;
    call.args.count = count;
    ready = read_names(name, reduction, &call.args) == 0 &&
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

/* ---- messages ---- */

typedef weft_status (*message_function)(weft_comm *, void *, uint64_t, enum weft_dtype, int32_t,
                                        uint32_t, weft_stream *);

static weft_status post_send(weft_comm *comm, void *data, uint64_t count, enum weft_dtype dtype,
                             int32_t peer, uint32_t tag, weft_stream *stream)
{
    return weft_send(comm, data, count, dtype, peer, tag, stream);
}

static PyObject *message(PyObject *self, PyObject *args, PyObject *kwargs, bool written,
                         message_function post)
{
    static char *names[] = {"array", "peer", "tag", "stream", NULL};
    context_object *context = self_of(self)->context;
    PyObject *object, *stream = Py_None;
    weft_stream *on, *owned;
    weft_status status;
    struct array array;
    unsigned tag = 0;
    bool is_open = false;
    int peer;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|O&O", names, &object, &peer, to_u32, &tag,
                                     &stream))
        return NULL;
    if (object == Py_None) {
        PyErr_SetString(PyExc_TypeError, "array is None");
        return NULL;
    }
    if (side_open(object, written, "array", context, &array, &is_open) < 0 ||
        side_hold(context, object) < 0 || place_stream(stream, &array, context, &on, &owned) < 0) {
        if (is_open) array_close(&array);
        return NULL;
    }
    WAIT_BEGIN
    status =
        post(self_of(self)->raw, array.data, side_elements(&array), array.dtype, peer, tag, on);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    array_close(&array);
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *comm_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return message(self, args, kwargs, false, post_send);
}

static PyObject *comm_receive(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return message(self, args, kwargs, true, weft_receive);
}

static PyObject *group(PyObject *self, weft_status (*call)(weft_comm *))
{
    weft_status status;

    WAIT_BEGIN
    status = call(self_of(self)->raw);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *comm_group_begin(PyObject *self, PyObject *unused)
{
    PyObject *done = group(self, weft_group_begin);

    (void)unused;
    if (done != NULL) self_of(self)->context->groups++;
    return done;
}

static PyObject *comm_group_end(PyObject *self, PyObject *unused)
{
    context_object *context = self_of(self)->context;
    PyObject *done = group(self, weft_group_end);

    (void)unused;
    if (context->groups > 0 && --context->groups == 0) Py_CLEAR(context->held);
    return done;
}
/* ---- the report ---- */

/* It runs on the calling thread, which does not have the GIL. */
static void add_line(void *argument, const char *text)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    if (line == NULL || PyList_Append(argument, line) < 0) PyErr_Clear();
    Py_XDECREF(line);
    PyGILState_Release(state);
}

static PyObject *comm_report(PyObject *self, PyObject *unused)
{
    PyObject *lines = PyList_New(0);

    (void)unused;
    if (lines == NULL) return NULL;
    WAIT_BEGIN
    weft_comm_dump(self_of(self)->raw, add_line, lines);
    WAIT_END
    return lines;
}

int comm_members_add(void)
{
    static PyGetSetDef properties[] = {{0}};
    static PyMethodDef methods[] = {
        {"collective", KEYWORDS(comm_collective),
         "collective($self, name, send=None, recv=None, op=\"sum\", root=0, send_counts=None, "
         "recv_counts=None, count=0, stream=None)\n--\n\nPost any collective."},
        {"send", KEYWORDS(comm_send),
         "send($self, array, peer, tag=0, stream=None)\n--\n\nSend an array to a rank."},
        {"receive", KEYWORDS(comm_receive),
         "receive($self, array, peer, tag=0, stream=None)\n--\n\nReceive an array from a rank."},
        {"group_begin", comm_group_begin, METH_NOARGS,
         "group_begin($self, /)\n--\n\nBegin a group of calls, which start together."},
        {"group_end", comm_group_end, METH_NOARGS, "group_end($self, /)\n--\n\nEnd the group."},
        {"report", comm_report, METH_NOARGS,
         "report($self, /)\n--\n\nThe recent operations of this rank and the positions of "
         "others, as lines."},
        {0}};

    return type_extend(binding.comm, methods, properties);
}
