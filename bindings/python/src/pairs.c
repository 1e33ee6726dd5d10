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
    int (*check)(const struct job *job); /* the sizes of the arrays */
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

/* Check the sizes of the arrays of JOB, which are open, and post it. */
static PyObject *post_job(struct job *job, const struct way *way, PyObject *on)
{
    weft_stream *stream, *owned;
    weft_status status;

    if (way->check(job) < 0 || place_stream(on, &job->source, job->context, &stream, &owned) < 0)
        return NULL;
    WAIT_BEGIN
    status = post_tensors(job, way, stream);
    weft_stream_release(&owned);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
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

static int check_tokens(const struct job *job)
{
    const struct array *tokens = job->reverse ? &job->target : &job->source;
    const struct array *received = job->reverse ? &job->source : &job->target;
    weft_routing_info info = {.struct_size = sizeof info};

    if (check(weft_routing_get(job->raw, &info)) < 0) return -1;
    if (tokens->dims == 2 && received->dims == 2 && tokens->dtype == received->dtype &&
        tokens->shape[0] == info.tokens && received->shape[0] == info.received &&
        tokens->shape[1] == received->shape[1])
        return 0;
    PyErr_Format(PyExc_ValueError, "%s must have %lld rows and %s %lld, of one width and dtype",
                 job->reverse ? "target" : "source", (long long)info.tokens,
                 job->reverse ? "source" : "target", (long long)info.received);
    return -1;
}

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
    static const struct way way = {&class_weft_routing, check_tokens, post_tokens};

    (void)module;
    return run_pair(args, &way);
}

/* ---- buffers of a sequence ---- */

/* Whether one array has the dimensions of the other, but this rank's part of the sequence. */
static int check_buffers(const struct job *job)
{
    const struct array *whole = job->reverse ? &job->target : &job->source;
    const struct array *shard = job->reverse ? &job->source : &job->target;
    weft_cp_info info = {.struct_size = sizeof info};
    bool fits = whole->dtype == shard->dtype && whole->dims == shard->dims && job->dim >= 0 &&
                job->dim < whole->dims;

    if (check(weft_cp_get(job->raw, &info)) < 0) return -1;
    for (int32_t i = 0; fits && i < whole->dims; i++)
        fits = i == job->dim ? shard->shape[i] == info.length : whole->shape[i] == shard->shape[i];
    if (fits) return 0;
    PyErr_Format(PyExc_ValueError,
                 "source and target must have one dtype, and the same sizes but in dimension %d, "
                 "where the part of this rank has %lld",
                 job->dim, (long long)info.length);
    return -1;
}

static weft_status post_buffers(const struct job *job, weft_tensor *source, weft_tensor *target,
                                weft_stream *stream)
{
    return (job->reverse ? weft_cp_restore : weft_cp_shard)(job->raw, source, job->dim, target,
                                                            NULL, stream, NULL);
}

static PyObject *attention_copy(PyObject *module, PyObject *args)
{
    static const struct way way = {&class_weft_cp, check_buffers, post_buffers};

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
