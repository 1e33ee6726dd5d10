/* share.c - this rank's shard as a DLPack capsule. */
#include "shard.h"

#include <stdio.h>
#include <stdlib.h>

/* A capsule's memory: a struct of weft, and the object that keeps its memory. */
struct shared {
    weft_dl_versioned outer;
    weft_dl_unversioned old;
    weft_dl_versioned *inner;
    PyObject *owner;
};

/* Consumers may call it without the GIL, and when the interpreter has ended. */
static void drop(struct shared *shared)
{
    PyGILState_STATE state;

    if (!Py_IsInitialized()) return;
    state = PyGILState_Ensure();
    shared->inner->deleter(shared->inner);
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

static void capsule_destroy(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        weft_dl_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");

        managed->deleter(managed);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        weft_dl_unversioned *managed = PyCapsule_GetPointer(capsule, "dltensor");

        managed->deleter(managed);
    }
}

/* Whether *VERSION, None or a pair, permits the versioned form. */
static int wants_versions(PyObject *version, bool *out)
{
    PyObject *major;

    *out = false;
    if (version == Py_None) return 0;
    major = PySequence_GetItem(version, 0);
    if (major == NULL) return -1;
    *out = PyLong_AsLong(major) >= 1;
    Py_DECREF(major);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *capsule_of(struct shared *shared, weft_dl_versioned *inner, PyObject *owner,
                            bool versioned)
{
    PyObject *capsule;

    shared->inner = inner;
    shared->owner = Py_NewRef(owner);
    shared->outer = *inner;
    shared->outer.manager_ctx = shared;
    shared->outer.deleter = delete_versioned;
    shared->old = (weft_dl_unversioned){inner->tensor, shared, delete_old};
    capsule = versioned ? PyCapsule_New(&shared->outer, "dltensor_versioned", capsule_destroy)
                        : PyCapsule_New(&shared->old, "dltensor", capsule_destroy);
    if (capsule == NULL) drop(shared);
    return capsule;
}

/* DEVICE is None, or the type and number of the tensor's own device. */
static int check_device(const weft_dl_versioned *inner, PyObject *device)
{
    const weft_dl_device *own = &inner->tensor.device;
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

PyObject *share_capsule(weft_dl_versioned *inner, PyObject *owner, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    struct shared *shared;
    bool versioned;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy) ||
        wants_versions(version, &versioned) < 0 || check_device(inner, device) < 0)
        goto fail;
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "a tensor of weft is shared without a copy");
        goto fail;
    }
    shared = calloc(1, sizeof *shared);
    if (shared != NULL) return capsule_of(shared, inner, owner, versioned);
    PyErr_NoMemory();

fail:
    inner->deleter(inner);
    return NULL;
}

/* The stream with a number of DLPack's: None and 1 are the default stream, -1 waits for nothing. */
static int consumer_of(PyObject *stream, context_object *context, weft_stream **out)
{
    long long number;

    *out = NULL;
    if (stream == NULL || stream == Py_None || context->device.type == WEFT_DL_CPU) return 0;
    number = PyLong_AsLongLong(stream);
    if (PyErr_Occurred()) return -1;
    if (number >= -1 && number <= 1) return 0;
    return check(weft_stream_wrap(context->raw, (void *)(intptr_t)number, out));
}

/* With simulated ranks a tensor has several shards, and an array can be one of them only.  A job
 * with one process per rank has no shard of another rank. */
static int refuse_shards(PyObject *self)
{
    const weft_context *context = ((tensor_object *)self)->context->raw;
    const weft_spec *spec = weft_tensor_spec(tensor_raw(self));
    const weft_placement *placements = weft_spec_placements(spec);
    weft_local_info local = {.struct_size = sizeof local};
    int32_t size = weft_size(context), next = (weft_rank(context) + 1) % size;
    bool is_whole;

    if (size == 1 || weft_tensor_local_of(tensor_raw(self), next, &local) != WEFT_OK) return 0;
    weft_spec_shard(spec, weft_rank(context), &local.shard);
    is_whole = local.shard.member && local.shard.elements == weft_spec_elements(spec);
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++)
        is_whole = is_whole && placements[i].kind != WEFT_PLACE_PARTIAL;
    if (is_whole) return 0;
    PyErr_Format(PyExc_TypeError,
                 "the tensor has a shard on each of %d simulated ranks, but an array is one shard; "
                 "use tensor.local(rank), the shard of a rank, or tensor.full(), the whole tensor",
                 (int)size);
    return -1;
}

/* Share the shard of RANK with a consumer that uses it on STREAM, a number of DLPack's; or NULL. */
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

static int export(PyObject *self, PyObject *stream, weft_dl_versioned **out)
{
    if (refuse_shards(self) < 0) return -1;
    return export_of(self, weft_rank(((tensor_object *)self)->context->raw), stream, out);
}

PyObject *tensor_local(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rank", NULL};
    weft_local_info local = {.struct_size = sizeof local};
    weft_dl_versioned *managed = NULL;
    struct shard_facts facts = {.owner = self};
    PyObject *shard;
    int rank;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i:local", names, &rank) ||
        check(weft_tensor_local_of(tensor_raw(self), rank, &local)) < 0 ||
        export_of(self, rank, NULL, &managed) < 0)
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

PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    weft_dl_versioned *inner = NULL;

    PyObject *stream = kwargs != NULL ? PyDict_GetItemString(kwargs, "stream") : NULL;

    if (export(self, stream, &inner) < 0) return NULL;
    return share_capsule(inner, self, args, kwargs);
}

PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    weft_dl_versioned *managed = NULL;
    weft_dl_device device;

    (void)unused;
    if (export(self, NULL, &managed) < 0) return NULL;
    device = managed->tensor.device;
    managed->deleter(managed);
    return Py_BuildValue("(ii)", (int)device.type, (int)device.id);
}

/* ---- NumPy ---- */

PyObject *share_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None, *module, *result;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    module = PyImport_ImportModule("weft._arrays");
    if (module == NULL) return NULL;
    result = PyObject_CallMethod(module, "as_numpy", "OOO", self, dtype, copy);
    Py_DECREF(module);
    return result;
}

/* ---- __cuda_array_interface__ ---- */

/* The type string of NumPy; it has none for the small floating-point types. */
static int write_typestr(weft_dl_dtype dtype, char *out, size_t size)
{
    static const char letters[] = "iuf??cb";
    char letter = dtype.code < sizeof letters - 1 ? letters[dtype.code] : '?';

    if (letter == '?') {
        PyErr_SetString(PyExc_AttributeError,
                        "__cuda_array_interface__ has no type for this dtype");
        return -1;
    }
    snprintf(out, size, "%c%c%d", dtype.bits > 8 ? '<' : '|', letter, dtype.bits / 8);
    return 0;
}

PyObject *tensor_cuda_array(PyObject *self, void *closure)
{
    const context_object *context = ((tensor_object *)self)->context;
    weft_dl_versioned *managed = NULL;
    int64_t strides[WEFT_MAX_DIMS];
    PyObject *result = NULL;
    char type[8];

    (void)closure;
    if (context->device.type != WEFT_DL_CUDA) {
        PyErr_SetString(PyExc_AttributeError, "the tensor is not on a CUDA device");
        return NULL;
    }
    if (export(self, NULL, &managed) < 0) return NULL;
    for (int32_t i = 0; i < managed->tensor.ndim; i++)
        strides[i] = managed->tensor.strides[i] * (managed->tensor.dtype.bits / 8);
    if (write_typestr(managed->tensor.dtype, type, sizeof type) == 0)
        result = Py_BuildValue(
            "{s:N,s:N,s:s,s:(NO),s:i,s:i}", "shape",
            tuple_of(managed->tensor.ndim, managed->tensor.shape), "strides",
            tuple_of(managed->tensor.ndim, strides), "typestr", type, "data",
            PyLong_FromVoidPtr((char *)managed->tensor.data + managed->tensor.byte_offset),
            (managed->flags & WEFT_DL_READ_ONLY) != 0 ? Py_True : Py_False, "version", 3, "stream",
            1);
    managed->deleter(managed);
    return result;
}
