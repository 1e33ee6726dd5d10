/* overlap.c - weft.Overlap: matmuls that run while their input is gathered or their output reduced.
 */
#include "interrupt.h"
#include "place.h"
#include "shard.h"

typedef struct {
    comm_part_object part;
    int running; /* calls that use the handle */
} overlap_object;

static overlap_object *self_of(PyObject *self)
{
    return (overlap_object *)self;
}

static weft_overlap_state *raw_of(PyObject *self)
{
    return comm_part_raw(self, "the overlap");
}

static PyObject *overlap_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"comm", "bytes", "messages", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    weft_overlap_options options = {.struct_size = sizeof options};
    weft_overlap_state *raw = NULL;
    unsigned long long bytes;
    weft_status status;
    int messages = 0;
    PyObject *comm, *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&|p:Overlap", names, &comm, to_u64, &bytes,
                                     &messages) ||
        !is_of(comm, binding.comm, "comm"))
        return NULL;
    options.bytes = bytes;
    options.messages = messages != 0;
    self = allocate(type, 0);
    if (self == NULL) return NULL;
    WAIT_BEGIN
    status = weft_overlap_create(((comm_object *)comm)->raw, &options, &raw);
    WAIT_END
    return comm_part_made(self, status, raw, comm);
}

static PyObject *overlap_close(PyObject *object, PyObject *unused)
{
    overlap_object *self = self_of(object);
    weft_overlap_state *raw = self->part.raw;

    (void)unused;
    if (self->running > 0) {
        PyErr_SetString(PyExc_RuntimeError, "a call of the overlap is running");
        return NULL;
    }
    self->part.raw = NULL;
    WAIT_BEGIN
    weft_overlap_release(&raw);
    WAIT_END
    Py_RETURN_NONE;
}

static void overlap_dealloc(PyObject *self)
{
    Py_XDECREF(overlap_close(self, NULL));
    comm_part_free(self);
}

/* ---- calls ---- */

struct run {
    struct kernel kernel;
    const weft_overlap_call *call;
    bool writes;
};

/* The function gets the rows, the index of the first one, and the address of the stream. */
static weft_status call_rows(void *user, const weft_overlap_rows *rows)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct run *run = user;
    int64_t shape[] = {rows->count, run->call->width};
    PyObject *result = NULL;
    PyObject *shard = shard_new(&(struct shard_facts){.data = rows->memory,
                                                      .dims = 2,
                                                      .shape = shape,
                                                      .dtype = run->call->dtype,
                                                      .device = run->kernel.device,
                                                      .is_read_only = !run->writes});
    weft_status status;
    Py_ssize_t kept;

    if (shard != NULL)
        result = PyObject_CallFunction(
            run->kernel.function, "OLN", shard, (long long)rows->first,
            PyLong_FromVoidPtr(weft_stream_native(rows->context, rows->stream)));
    kept = shard_close(shard);
    status = kernel_end(&run->kernel, result != NULL ? kept : 0, "an overlap");
    Py_XDECREF(result);
    Py_XDECREF(shard);
    PyGILState_Release(state);
    return status;
}

/* The number of rows that RANK of RANKS has of ROWS, which is more than 0. */
static int64_t share_of(int64_t rows, int64_t ranks, int64_t rank)
{
    int64_t share = rows / ranks + (rows % ranks != 0);
    int64_t before = rank <= rows / share ? rank * share : rows;

    return rows - before < share ? rows - before : share;
}

static int check_rows(PyObject *self, const struct array *array, int64_t rows)
{
    const weft_comm *comm = ((comm_object *)self_of(self)->part.keeps)->raw;
    int64_t wanted;

    if (rows < 0) {
        PyErr_SetString(PyExc_ValueError, "rows must not be negative");
        return -1;
    }
    wanted = rows > 0 ? share_of(rows, weft_comm_size(comm), weft_comm_rank(comm)) : 0;
    if (array->shape[0] == wanted) return 0;
    PyErr_Format(PyExc_ValueError, "the shard has %lld rows; this rank's share of %lld is %lld",
                 (long long)array->shape[0], (long long)rows, (long long)wanted);
    return -1;
}

/* Width and dtype of a call whose shard is ARRAY, [rows of this rank, width]. */
static int read_call(PyObject *self, const struct array *array, bool written,
                     weft_overlap_call *call)
{
    if (array->dims != 2) {
        PyErr_SetString(PyExc_ValueError, "the shard must have two dimensions, rows and width");
        return -1;
    }
    call->width = array->shape[1];
    call->dtype = array->dtype;
    if (check_rows(self, array, call->rows) < 0 || check_dense(array, "shard", written) < 0)
        return -1;
    return place_fits(array, self_of(self)->part.context, "shard");
}

static PyObject *run_call(PyObject *self, PyObject *args, PyObject *kwargs, bool writes)
{
    static char *names[] = {"shard", "rows", "function", "chunks", "flops", "stream", NULL};
    context_object *context = self_of(self)->part.context;
    weft_overlap_call call = {.struct_size = sizeof call};
    struct run run = {.call = &call, .writes = writes};
    PyObject *shard, *on = Py_None;
    weft_overlap_state *raw = raw_of(self);
    weft_stream *stream, *owned;
    unsigned long long flops = 0;
    weft_status status;
    struct array array;
    long long rows;
    int chunks = 0;

    if (raw == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OLO|iO&O", names, &shard, &rows,
                                     &run.kernel.function, &chunks, to_u64, &flops, &on) ||
        array_open(shard, &array) < 0)
        return NULL;
    call.rows = rows;
    call.chunks = chunks;
    call.flops = flops;
    run.kernel.device = context->device;
    if (read_call(self, &array, writes, &call) < 0 ||
        place_stream(on, &array, context, &stream, &owned) < 0) {
        array_close(&array);
        return NULL;
    }
    self_of(self)->running++;
    WAIT_BEGIN
    status = writes ? weft_overlap_reduce_scatter(raw, &call, call_rows, &run, array.data, stream)
                    : weft_overlap_gather(raw, &call, array.data, call_rows, &run, stream);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    self_of(self)->running--;
    array_close(&array);
    if (status != WEFT_OK) return kernel_raise(&run.kernel, status);
    Py_RETURN_NONE;
}

static PyObject *overlap_gather(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return run_call(self, args, kwargs, false);
}

static PyObject *overlap_reduce_scatter(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return run_call(self, args, kwargs, true);
}

static PyObject *overlap_predict(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rows", "width", "dtype", "chunks", "flops", NULL};
    weft_overlap_call call = {.struct_size = sizeof call};
    weft_overlap_info info = {.struct_size = sizeof info};
    weft_overlap_state *raw = raw_of(self);
    unsigned long long flops = 0;
    enum weft_dtype dtype;
    long long rows, width;
    const char *text;
    int chunks = 0;

    if (raw == NULL || !PyArg_ParseTupleAndKeywords(args, kwargs, "LLs|iO&:predict", names, &rows,
                                                    &width, &text, &chunks, to_u64, &flops))
        return NULL;
    if (check(weft_dtype_parse(text, &dtype)) < 0) return NULL;
    call.rows = rows;
    call.width = width;
    call.dtype = dtype;
    call.chunks = chunks;
    call.flops = flops;
    if (check(weft_overlap_get(raw, &call, &info)) < 0) return NULL;
    return Py_BuildValue(
        "{s:O,s:O,s:i,s:i,s:K,s:K,s:K,s:K,s:K}", "symmetric", info.symmetric ? Py_True : Py_False,
        "concurrent", info.concurrent ? Py_True : Py_False, "gather_chunks",
        (int)info.gather_chunks, "reduce_scatter_chunks", (int)info.reduce_scatter_chunks,
        "compute_ns", (unsigned long long)info.compute_ns, "gather_plain_ns",
        (unsigned long long)info.gather_plain_ns, "gather_overlapped_ns",
        (unsigned long long)info.gather_overlapped_ns, "reduce_scatter_plain_ns",
        (unsigned long long)info.reduce_scatter_plain_ns, "reduce_scatter_overlapped_ns",
        (unsigned long long)info.reduce_scatter_overlapped_ns);
}

int overlap_type_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"gather", KEYWORDS(overlap_gather),
         "gather(shard, rows, function, chunks=0, flops=0, stream=None)\n\nGather the rows of all "
         "ranks and call function(shard, first, stream) for parts of them as they arrive.  rows "
         "are those of the whole tensor.  chunks: 0 by costs, -1 plain.  Collective."},
        {"reduce_scatter", KEYWORDS(overlap_reduce_scatter),
         "reduce_scatter(shard, rows, function, chunks=0, flops=0, stream=None)\n\nCall function "
         "for parts of all rows, which it writes, and set shard to the sum of all ranks.  "
         "Collective."},
        {"predict", KEYWORDS(overlap_predict),
         "predict(rows, width, dtype, chunks=0, flops=0)\n\nHow a call would run, and its times in "
         "nanoseconds."},
        {"close", overlap_close, METH_NOARGS, "close()\n\nFree its memory.  Collective."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Overlap(comm, bytes, messages=False)\n\nMatmuls that run while their input is "
                    "gathered, or while their output is reduced (docs/training/overlap.md).  "
                    "Collective, and so is its end."},
        {Py_tp_new, overlap_new},
        {Py_tp_dealloc, overlap_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Overlap", sizeof(overlap_object), 0, Py_TPFLAGS_DEFAULT,
                               slots};

    return type_add(module, &spec, &binding.overlap_state);
}
