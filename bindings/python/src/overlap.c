/* overlap.c - matmuls of Python that run while their input is gathered or their output reduced. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"
#include "shard.h"

struct run {
    struct kernel kernel;
    weft_overlap_call call;
    int writes;
};

/* The function gets the rows, the index of the first one, and the address of the stream. */
static weft_status call_rows(void *user, const weft_overlap_rows *rows)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct run *run = user;
    int64_t shape[] = {rows->count, run->call.width};
    PyObject *shard = shard_new(&(struct shard_facts){.data = rows->memory,
                                                      .dims = 2,
                                                      .shape = shape,
                                                      .dtype = run->call.dtype,
                                                      .device = run->kernel.device,
                                                      .is_read_only = !run->writes});
    PyObject *shards = shard != NULL ? Py_BuildValue("(N)", shard) : NULL, *arguments = NULL;
    weft_status status;

    if (shards != NULL)
        arguments =
            Py_BuildValue("(OLN)", shard, (long long)rows->first,
                          PyLong_FromVoidPtr(weft_stream_native(rows->context, rows->stream)));
    status = kernel_run(&run->kernel, arguments, shards, "an overlap");
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

/* Width and dtype of a call whose shard is ARRAY, [rows of this rank, width]. */
static int read_shard(const handle_object *overlap, const struct array *array, struct run *run)
{
    const weft_comm *comm = ((comm_object *)overlap->keeps)->raw;
    int64_t rows = run->call.rows, wanted;

    if (array->dims != 2) {
        PyErr_SetString(PyExc_ValueError, "the shard must have two dimensions, rows and width");
        return -1;
    }
    if (rows < 0) {
        PyErr_SetString(PyExc_ValueError, "rows must not be negative");
        return -1;
    }
    wanted = rows > 0 ? share_of(rows, weft_comm_size(comm), weft_comm_rank(comm)) : 0;
    if (array->shape[0] != wanted) {
        PyErr_Format(PyExc_ValueError, "the shard has %lld rows; this rank's share of %lld is %lld",
                     (long long)array->shape[0], (long long)rows, (long long)wanted);
        return -1;
    }
    run->call.width = array->shape[1];
    run->call.dtype = array->dtype;
    if (check_dense(array, "shard", run->writes) < 0) return -1;
    return place_fits(array, overlap->context, "shard");
}

static PyObject *run_rows(handle_object *overlap, const struct array *array, struct run *run,
                          PyObject *on)
{
    context_object *context = overlap->context;
    weft_stream *stream, *owned;
    weft_status status;

    run->kernel.device = context->device;
    if (read_shard(overlap, array, run) < 0 ||
        place_stream(on, array, context, &stream, &owned) < 0)
        return NULL;
    overlap->calls++;
    WAIT_BEGIN
    status = run->writes ? weft_overlap_reduce_scatter(overlap->raw, &run->call, call_rows, run,
                                                       array->data, stream)
                         : weft_overlap_gather(overlap->raw, &run->call, array->data, call_rows,
                                               run, stream);
    weft_stream_release(context->raw, &owned);
    WAIT_END
    overlap->calls--;
    if (status != WEFT_OK) return kernel_raise(&run->kernel, status);
    Py_RETURN_NONE;
}

/* ARGS: the overlap, shard, rows, function, chunks, flops, stream, and whether it writes rows. */
static PyObject *overlap_run(PyObject *module, PyObject *args)
{
    struct run run = {.call = {.struct_size = sizeof run.call}};
    PyObject *overlap, *shard, *on, *result;
    unsigned long long flops;
    struct array array;
    long long rows;
    int chunks;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOLOiO&Op", &overlap, &shard, &rows, &run.kernel.function, &chunks,
                          to_u64, &flops, &on, &run.writes) ||
        handle_of(overlap, &class_weft_overlap_state, "self") == NULL ||
        array_open(shard, &array) < 0)
        return NULL;
    run.call.rows = rows;
    run.call.chunks = chunks;
    run.call.flops = flops;
    result = run_rows((handle_object *)overlap, &array, &run, on);
    array_close(&array);
    return result;
}

int overlap_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {{"overlap_run", overlap_run, METH_VARARGS, NULL}, {0}};

    return PyModule_AddFunctions(module, functions);
}
