/* tensor.c - what weft.Tensor has beside its generated members: tensors of arrays, and arrays of
 * tensors. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"
#include "shard.h"

#include <stdlib.h>

static weft_tensor *raw_of(PyObject *self)
{
    return ((tensor_object *)self)->raw;
}

/* ---- tensors of arrays ---- */

/* Threads without the GIL may release a tensor, also when the interpreter has ended. */
static void release_array(void *array, void *memory)
{
    PyGILState_STATE state;

    (void)memory;
    if (!Py_IsInitialized()) return;
    state = PyGILState_Ensure();
    array_close(array);
    free(array);
    PyGILState_Release(state);
}

/* Make the default stream wait for the work on ARRAY that its library has posted. */
static int wait_for_array(const struct array *array, context_object *context)
{
    weft_stream *stream, *owned = NULL;
    weft_work *work = NULL;
    weft_status status;

    if (place_stream(Py_None, array, context, &stream, &owned) < 0) return -1;
    if (owned == NULL) return 0;
    status = weft_work_record(context->raw, owned, &work);
    if (status == WEFT_OK) status = weft_stream_wait_work(NULL, work);
    weft_work_release(&work);
    weft_stream_release(&owned);
    return check(status);
}

/* A tensor of ARRAY, which it takes over after success. */
static int wrap_array(struct array *array, context_object *context, const weft_spec *spec,
                      weft_tensor_options *options, weft_tensor **out)
{
    weft_status status;

    options->release = release_array;
    options->user = array;
    options->shape = array->shape;
    options->strides = array->strides;
    if (shard_fits(array, spec, weft_rank(context->raw), "array") < 0 ||
        writable(array, "array") < 0 || place_fits(array, context, "array") < 0 ||
        wait_for_array(array, context) < 0)
        return -1;
    WAIT_BEGIN
    status = weft_tensor_wrap(context->raw, spec, array->data, options, out);
    WAIT_END
    return check(status);
}

static PyObject *wrap(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "spec", "array", "name", "agree", NULL};
    weft_tensor_options options = {.struct_size = sizeof options};
    PyObject *given, *spec, *object, *made = NULL;
    context_object *context;
    weft_spec *layout;
    struct array *array;
    weft_tensor *raw = NULL;
    int agree = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|zp:wrap", names, &given, &spec, &object,
                                     &options.name, &agree))
        return NULL;
    options.agree = agree;
    context = context_of(given);
    layout = context != NULL ? handle_of(spec, &class_weft_spec, "spec") : NULL;
    if (layout == NULL) return NULL;
    array = calloc(1, sizeof *array);
    if (array == NULL) return PyErr_NoMemory();
    context->calls++; /* the array's code cannot close it */
    if (array_open(object, array) == 0 && wrap_array(array, context, layout, &options, &raw) == 0)
        made =
            handle_make(class_for(type, &class_weft_tensor), &class_weft_tensor, raw, true, NULL);
    else
        release_array(array, NULL);
    if (made != NULL) join_context(made, context);
    context->calls--;
    return made;
}

/* ---- shards for other libraries ---- */

/* The stream with a number of DLPack's: None and 1 are the default stream, -1 waits for nothing. */
static int consumer_of(PyObject *stream, context_object *context, weft_stream **out)
{
    long long number;

    *out = NULL;
    if (stream == Py_None || context->device.type == WEFT_DL_CPU) return 0;
    number = PyLong_AsLongLong(stream);
    if (PyErr_Occurred()) return -1;
    if (number >= -1 && number <= 1) return 0;
    return check(weft_stream_wrap(context->raw, (void *)(intptr_t)number, out));
}

/* Share the shard of RANK with a consumer that uses it on STREAM, a number of DLPack's, or None. */
static int export_of(PyObject *self, int rank, PyObject *stream, weft_dl_versioned **out)
{
    context_object *context = ((tensor_object *)self)->context;
    weft_dlpack_options options = {.struct_size = sizeof options, .rank = rank};
    void *managed = NULL;
    weft_status status;

    options.device_type = context->device.type;
    if (consumer_of(stream, context, &options.consumer) < 0) return -1;
    status = weft_tensor_to_dlpack(raw_of(self), &options, &managed);
    if (status == WEFT_OK) *out = managed;
    weft_stream_release(&options.consumer);
    return check(status);
}

static PyObject *tensor_local(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rank", "stream", NULL};
    weft_tensor_local_info local = {.struct_size = sizeof local};
    weft_dl_versioned *managed = NULL;
    struct shard_facts facts = {.owner = self};
    PyObject *shard, *stream = Py_None;
    int rank;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|O:local", names, &rank, &stream) ||
        check(weft_tensor_local_of(raw_of(self), rank, &local)) < 0 ||
        export_of(self, rank, stream, &managed) < 0)
        return NULL;
    facts.spec = weft_tensor_spec(raw_of(self));
    facts.dtype = weft_spec_dtype(facts.spec);
    facts.data = local.memory;
    facts.dims = local.shard.dims;
    facts.shape = local.shard.shape;
    facts.strides = local.strides;
    facts.offset = local.shard.offset;
    facts.device = managed->tensor.device;
    facts.is_read_only = (managed->flags & WEFT_DL_READ_ONLY) != 0;
    shard = shard_new(&facts);
    managed->deleter(managed);
    return shard;
}

/* ---- copies from and to host memory ---- */

/* Whether FOUND has the bits of DTYPE, which NumPy does not have. */
static bool has_bits(enum weft_dtype found, enum weft_dtype dtype)
{
    if (dtype == WEFT_DTYPE_BF16) return found == WEFT_DTYPE_U16;
    return (dtype == WEFT_DTYPE_F8E4M3 || dtype == WEFT_DTYPE_F8E5M2) && found == WEFT_DTYPE_U8;
}

static bool is_empty(const weft_shard *shard)
{
    for (int32_t i = 0; i < shard->dims; i++)
        if (shard->shape[i] == 0) return true;
    return false;
}

/* 0 if HOST may be copied from or to TENSOR. */
static int host_fits(const struct array *host, const weft_tensor *tensor)
{
    const weft_shard *shard = weft_tensor_shard(tensor);
    enum weft_dtype dtype = weft_spec_dtype(weft_tensor_spec(tensor));

    if (host->dtype == dtype && has_shape(host, shard)) return 0;
    if (host->dtype == WEFT_DTYPE_U8 && host->dims == 1) return 0;
    if (has_bits(host->dtype, dtype)) dtype = host->dtype;
    if (host->dtype == dtype &&
        (has_shape(host, shard) ||
         (host->dims == 1 && weft_is_simulated(weft_tensor_context(tensor)))))
        return 0;
    if (is_empty(shard)) return 0;
    return shard_refuse(host, dtype, shard, weft_rank(weft_tensor_context(tensor)), "host",
                        "; give such an array, or its bytes: u8 in one dimension");
}

int host_open(PyObject *tensor, PyObject *host, bool written, struct array *out)
{
    int result = array_open(host, out);

    if (result < 0 && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError,
                     "host must be an array in host memory, such as one of NumPy, not %R", host);
    if (result < 0) return -1;
    result = host_fits(out, raw_of(tensor));
    if (result == 0 && out->has_view && out->is_dense && !(written && out->is_read_only)) return 0;
    array_close(out);
    return result == 0 ? array_open_bytes(host, written, out) : -1; /* mostly its exception */
}

/* Whether a copy of BYTES is over before another thread could take the GIL: the backend copies in
 * the calling thread, and the shard has no gaps, for which a call may wait. */
static bool is_short(const tensor_object *self, Py_ssize_t bytes)
{
    const weft_shard *shard = weft_tensor_shard(self->raw);
    const int64_t *strides = weft_tensor_strides(self->raw);
    bool is = bytes <= 4096 && self->context != NULL && self->context->is_inline;

    for (int64_t i = shard->dims - 1, dense = 1; i >= 0; dense *= shard->shape[i--])
        is = is && (strides[i] == dense || shard->shape[i] <= 1);
    return is;
}

PyObject *host_copy(PyObject *tensor, PyObject *host, bool written,
                    weft_status (*call)(union value *values))
{
    union value values[4] = {{.pointer = raw_of(tensor)}};
    struct array array;
    weft_status status;

    if (host_open(tensor, host, written, &array) < 0) return NULL;
    values[1].pointer = array.data;
    values[2].u64 = (uint64_t)array.view.len;
    if (is_short((tensor_object *)tensor, array.view.len)) {
        status = call(values);
    } else {
        WAIT_BEGIN
        status = call(values);
        WAIT_END
    }
    array_close(&array);
    return status == WEFT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

int tensor_members_add(void)
{
    static PyMethodDef methods[] = {
        {"wrap", KEYWORDS(wrap) | METH_CLASS,
         "wrap($type, context, spec, array, name=None, agree=False)\n--\n\nA tensor whose shard "
         "on this rank is the array."},
        {"local", KEYWORDS(tensor_local),
         "local($self, rank, stream=None)\n--\n\nThe shard of a rank: of this one or, if ranks "
         "are simulated, of any.  stream is a number of DLPack's: the stream of who uses the "
         "shard."},
        {0}};

    return type_extend(binding.tensor, methods, NULL);
}
