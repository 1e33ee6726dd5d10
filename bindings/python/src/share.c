/* share.c - this rank's shard as a DLPack capsule. */
#include "tensor.h"

#include <stdlib.h>

/* A capsule's memory: weft's struct, and the tensor that keeps the context. */
struct shared {
    weft_dl_versioned outer;
    weft_dl_unversioned old;
    weft_dl_versioned *inner;
    PyObject *tensor;
};

/* Consumers may call it without the GIL, and when the interpreter has ended. */
static void drop(struct shared *shared)
{
    PyGILState_STATE state;

    if (!Py_IsInitialized()) return;
    state = PyGILState_Ensure();
    shared->inner->deleter(shared->inner);
    Py_DECREF(shared->tensor);
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

static struct shared *share(PyObject *self)
{
    struct shared *shared = calloc(1, sizeof *shared);

    if (shared == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (check(weft_tensor_to_dlpack(tensor_raw(self), NULL, &shared->inner)) < 0) {
        free(shared);
        return NULL;
    }
    shared->tensor = Py_NewRef(self);
    shared->outer = *shared->inner;
    shared->outer.manager_ctx = shared;
    shared->outer.deleter = delete_versioned;
    shared->old = (weft_dl_unversioned){shared->inner->tensor, shared, delete_old};
    return shared;
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

PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None, *capsule;
    struct shared *shared;
    bool versioned;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy) ||
        wants_versions(version, &versioned) < 0)
        return NULL;
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "a tensor of weft is shared without a copy");
        return NULL;
    }
    shared = share(self);
    if (shared == NULL) return NULL;
    capsule = versioned ? PyCapsule_New(&shared->outer, "dltensor_versioned", capsule_destroy)
                        : PyCapsule_New(&shared->old, "dltensor", capsule_destroy);
    if (capsule == NULL) drop(shared);
    return capsule;
}

PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    weft_dl_versioned *managed = NULL;
    weft_dl_device device;

    (void)unused;
    if (check(weft_tensor_to_dlpack(tensor_raw(self), NULL, &managed)) < 0) return NULL;
    device = managed->tensor.device;
    managed->deleter(managed);
    return Py_BuildValue("(ii)", (int)device.type, (int)device.id);
}
