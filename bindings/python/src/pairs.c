/* pairs.c - calls that read one array and write another: tokens of experts, and buffers of a
 * sequence. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"

struct job {
    void *raw;
    context_object *context;
    int dim;
    bool reverse, keeps; /* KEEPS: rows of dropped tokens */
    struct array source, target;
};

struct way {
    const struct handle_class *class;
    weft_status (*post)(const struct job *job, weft_tensor *source, weft_tensor *target,
                        weft_stream *stream);
};

/* Post JOB with tensors in the memory of its arrays. */
static weft_status post_tensors(const struct job *job, const struct way *way, weft_stream *stream)
{
    weft_tensor *source = NULL, *target = NULL;
    weft_status status = place_tensor(&job->source, job->context, &source);

    if (status == WEFT_OK) status = place_tensor(&job->target, job->context, &target);
    if (status == WEFT_OK) status = way->post(job, source, target, stream);
    weft_tensor_release(&source);
    weft_tensor_release(&target);
    return status;
}

/* Post JOB, whose arrays are open. */
static PyObject *post_job(struct job *job, const struct way *way, PyObject *on)
{
    weft_stream *stream, *owned;
    weft_status status;

    if (place_stream(on, &job->source, job->context, &stream, &owned) < 0) return NULL;
    WAIT_BEGIN
    status = post_tensors(job, way, stream);
    weft_stream_release(&owned);
    WAIT_END
    return status == WEFT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

/* ARGS: the object, source, target, stream, whether back, dimension, whether dropped rows stay. */
static PyObject *run_pair(PyObject *args, const struct way *way)
{
    PyObject *object, *from, *to, *on, *result = NULL;
    struct job job = {0};
    int reverse, keeps = 0;

    if (!PyArg_ParseTuple(args, "OOOOp|ip", &object, &from, &to, &on, &reverse, &job.dim, &keeps))
        return NULL;
    job.raw = handle_of(object, way->class, "self");
    if (job.raw == NULL) return NULL;
    job.context = ((handle_object *)object)->context;
    job.reverse = reverse != 0;
    job.keeps = keeps != 0;
    ((handle_object *)object)->calls++; /* the arrays cannot close it */
    if (place_open(from, false, "source", job.context, &job.source) == 0) {
        if (place_open(to, true, "target", job.context, &job.target) == 0) {
            result = post_job(&job, way, on);
            array_close(&job.target);
        }
        array_close(&job.source);
    }
    ((handle_object *)object)->calls--;
    return result;
}

/* ---- tokens ---- */

static weft_status post_tokens(const struct job *job, weft_tensor *source, weft_tensor *target,
                               weft_stream *stream)
{
    const weft_routing_call_options options = {.struct_size = sizeof options,
                                               .keep_dropped = job->keeps};

    return (job->reverse ? weft_routing_combine : weft_routing_dispatch)(job->raw, source, target,
                                                                         &options, stream, NULL);
}

static PyObject *routing_move(PyObject *module, PyObject *args)
{
    static const struct way way = {&class_weft_routing, post_tokens};

    (void)module;
    return run_pair(args, &way);
}

/* ---- buffers of a sequence ---- */

static weft_status post_buffers(const struct job *job, weft_tensor *source, weft_tensor *target,
                                weft_stream *stream)
{
    return (job->reverse ? weft_cp_restore : weft_cp_shard)(job->raw, source, job->dim, target,
                                                            NULL, stream, NULL);
}

static PyObject *attention_copy(PyObject *module, PyObject *args)
{
    static const struct way way = {&class_weft_cp, post_buffers};

    (void)module;
    return run_pair(args, &way);
}

int pairs_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {{"routing_move", routing_move, METH_VARARGS, NULL},
                                      {"attention_copy", attention_copy, METH_VARARGS, NULL},
                                      {0}};

    return PyModule_AddFunctions(module, functions);
}
