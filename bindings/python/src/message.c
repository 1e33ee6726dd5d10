/* message.c - see message.h. */
#include "message.h"
#include "interrupt.h"
#include "tensor.h"

static comm_object *self_of(PyObject *self)
{
    return (comm_object *)self;
}

/* ---- arrays of calls ---- */

int side_open(PyObject *object, bool written, const char *name, context_object *context,
              struct array *array, bool *is_open)
{
    if (object == Py_None) return 0;
    if (array_open(object, array) < 0) return -1;
    *is_open = true;
    return check_dense(array, name, written) < 0 ? -1 : place_fits(array, context, name);
}

uint64_t side_elements(const struct array *array)
{
    int64_t count = 1;

    for (int32_t i = 0; i < array->dims; i++)
        count *= array->shape[i];
    return (uint64_t)count;
}

int side_hold(context_object *context, PyObject *object)
{
    if (context->groups == 0 || object == Py_None) return 0;
    if (context->held == NULL) context->held = PyList_New(0);
    return context->held != NULL ? PyList_Append(context->held, object) : -1;
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

PyObject *comm_send(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return message(self, args, kwargs, false, post_send);
}

PyObject *comm_receive(PyObject *self, PyObject *args, PyObject *kwargs)
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

PyObject *comm_group_begin(PyObject *self, PyObject *unused)
{
    PyObject *done = group(self, weft_group_begin);

    (void)unused;
    if (done != NULL) self_of(self)->context->groups++;
    return done;
}

PyObject *comm_group_end(PyObject *self, PyObject *unused)
{
    context_object *context = self_of(self)->context;
    PyObject *done = group(self, weft_group_end);

    (void)unused;
    if (context->groups > 0 && --context->groups == 0) Py_CLEAR(context->held);
    return done;
}
