/* work.c - weft.Work: the work that was posted to a stream so far. */
#include "binding.h"
#include "interrupt.h"

static weft_work *raw_of(PyObject *self)
{
    return ((dependent_object *)self)->raw;
}

static PyObject *work_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "stream", NULL};
    PyObject *given, *on = Py_None, *self;
    weft_stream *stream, *owned;
    context_object *context;
    weft_work *raw = NULL;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Work", names, &given, &on)) return NULL;
    context = context_of(given);
    if (context == NULL || stream_of(on, context, &stream, &owned) < 0) return NULL;
    status = weft_work_record(context->raw, stream, &raw);
    weft_stream_release(context->raw, &owned);
    if (status != WEFT_OK) return raise_status(status);
    self = dependent_new(type, raw, context);
    if (self == NULL) weft_work_release(&raw);
    return self;
}

static PyObject *work_wrap(PyObject *type, PyObject *args)
{
    context_object *context;
    weft_work *raw = NULL;
    PyObject *given, *address, *self;
    void *native;

    if (!PyArg_ParseTuple(args, "OO:wrap", &given, &address)) return NULL;
    context = context_of(given);
    native = context != NULL ? PyLong_AsVoidPtr(address) : NULL;
    if (PyErr_Occurred() || check(weft_work_wrap(context->raw, native, &raw)) < 0) return NULL;
    self = dependent_new((PyTypeObject *)type, raw, context);
    if (self == NULL) weft_work_release(&raw);
    return self;
}

static PyObject *get_native(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(weft_work_native(raw_of(self)));
}

static void work_dealloc(PyObject *self)
{
    weft_work *raw = raw_of(self);

    weft_work_release(&raw);
    dependent_free(self);
}

static PyObject *work_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", NULL};
    double timeout = -1;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|d:wait", names, &timeout)) return NULL;
    WAIT_BEGIN
    status = weft_work_wait(raw_of(self), nanoseconds(timeout));
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *work_test(PyObject *self, PyObject *unused)
{
    weft_status status = weft_work_test(raw_of(self));

    (void)unused;
    if (status == WEFT_IN_PROGRESS) Py_RETURN_FALSE;
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_TRUE;
}

static PyObject *work_hold(PyObject *self, PyObject *given)
{
    context_object *context = ((dependent_object *)self)->context;
    weft_stream *stream, *owned;
    weft_status status;

    if (stream_of(given, context, &stream, &owned) < 0) return NULL;
    status = weft_stream_wait_work(stream, raw_of(self));
    weft_stream_release(context->raw, &owned);
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *work_elapsed(PyObject *self, PyObject *later)
{
    int64_t nanoseconds = 0;

    if (!is_of(later, binding.work, "later") ||
        check(weft_work_elapsed(raw_of(self), raw_of(later), &nanoseconds)) < 0)
        return NULL;
    return PyLong_FromLongLong(nanoseconds);
}

int work_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"native", get_native, NULL, "The address of the vendor's event; 0: there is none.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"wrap", work_wrap, METH_VARARGS | METH_CLASS,
         "wrap(context, event)\n\nThe work before an event of the vendor, given by its address, "
         "that the caller has recorded and that outlives the object."},
        {"wait", KEYWORDS(work_wait), "wait(timeout=-1)\n\nWait until the work is complete."},
        {"test", work_test, METH_NOARGS, "test()\n\nWhether the work is complete."},
        {"hold", work_hold, METH_O,
         "hold(stream)\n\nMake a stream wait for the work; the host does not wait."},
        {"elapsed", work_elapsed, METH_O,
         "elapsed(later)\n\nNanoseconds of the device from this work to a later one."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Work(context, stream=None)\n\nThe work that was posted to a stream so far."},
        {Py_tp_new, work_new},
        {Py_tp_dealloc, work_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Work", sizeof(dependent_object), 0, Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.work);
}
