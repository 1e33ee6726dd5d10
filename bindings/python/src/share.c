/* share.c - DLPack capsules, and the shards of a tensor for other libraries. */
#include "shard.h"

#include <stdlib.h>

/* What a capsule shares. */
struct shared {
    weft_dl_versioned versioned;
    weft_dl_unversioned old;
    PyObject *owner; /* of the memory */
    void (*end)(PyObject *owner);
};

/* Consumers may call it without the GIL, and when the interpreter has ended. */
static void drop(struct shared *shared)
{
    PyGILState_STATE state;

    if (!Py_IsInitialized()) return;
    state = PyGILState_Ensure();
    shared->end(shared->owner);
    Py_DECREF(shared->owner);
    free(shared);
    PyGILState_Release(state);
}

static void delete_versioned(weft_dl_versioned *self)
{
    drop(self->manager_ctx);
}

static void delete_old(weft_dl_unversioned *self)
{
    drop(self->manager_ctx);
}

/* A consumer gives a capsule another name. */
static void capsule_destroy(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned") || PyCapsule_IsValid(capsule, "dltensor"))
        drop(PyCapsule_GetContext(capsule));
}

/* DEVICE is None, or the type and number of the tensor's own device. */
static int check_device(const weft_dl_device *own, PyObject *device)
{
    int type, number;

    if (device == Py_None) return 0;
    if (!PyTuple_Check(device)) {
        PyErr_SetString(PyExc_TypeError, "dl_device must be None or a tuple (type, number)");
        return -1;
    }
    if (!PyArg_ParseTuple(device, "ii:dl_device", &type, &number)) return -1;
    if (type == (int)own->type && number == (int)own->id) return 0;
    PyErr_Format(PyExc_BufferError, "the tensor is on device (%d, %d), not on (%d, %d)",
                 (int)own->type, (int)own->id, type, number);
    return -1;
}

PyObject *share_capsule(const weft_dl_tensor *tensor, bool is_read_only, PyObject *owner,
                        void (*end)(PyObject *owner), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None, *capsule;
    int major = 0, minor = 0;
    struct shared *shared;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy) ||
        (version != Py_None && !PyArg_Parse(version, "(ii):max_version", &major, &minor)) ||
        check_device(&tensor->device, device) < 0)
        return NULL;
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "a tensor of weft is shared without a copy");
        return NULL;
    }
    shared = calloc(1, sizeof *shared);
    if (shared == NULL) return PyErr_NoMemory();
    *shared = (struct shared){.versioned = {.version = {1, 1},
                                            .manager_ctx = shared,
                                            .deleter = delete_versioned,
                                            .flags = is_read_only ? WEFT_DL_READ_ONLY : 0,
                                            .tensor = *tensor},
                              .old = {*tensor, shared, delete_old},
                              .owner = Py_NewRef(owner),
                              .end = end};
    capsule = major >= 1 ? PyCapsule_New(&shared->versioned, "dltensor_versioned", capsule_destroy)
                         : PyCapsule_New(&shared->old, "dltensor", capsule_destroy);
    if (capsule != NULL && PyCapsule_SetContext(capsule, shared) == 0) return capsule;
    Py_XDECREF(capsule);
    Py_DECREF(owner);
    free(shared);
    return NULL;
}

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
    weft_status status;

    options.device_type = context->device.type;
    if (consumer_of(stream, context, &options.consumer) < 0) return -1;
    status = weft_tensor_to_dlpack(tensor_raw(self), &options, out);
    weft_stream_release(context->raw, &options.consumer);
    return check(status);
}

PyObject *tensor_local(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rank", "stream", NULL};
    weft_local_info local = {.struct_size = sizeof local};
    weft_dl_versioned *managed = NULL;
    struct shard_facts facts = {.owner = self};
    PyObject *shard, *stream = Py_None;
    int rank;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|O:local", names, &rank, &stream) ||
        check(weft_tensor_local_of(tensor_raw(self), rank, &local)) < 0 ||
        export_of(self, rank, stream, &managed) < 0)
        return NULL;
    facts.spec = weft_tensor_spec(tensor_raw(self));
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
