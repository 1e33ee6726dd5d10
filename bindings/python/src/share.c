/* share.c - DLPack capsules. */
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
    if (!PyTuple_Check(device))
        return refuse(PyExc_TypeError, "dl_device must be None or a tuple (type, number)");
    if (!PyArg_ParseTuple(device, "ii:dl_device", &type, &number)) return -1;
    if (type == (int)own->type && number == (int)own->id) return 0;
    return refuse(PyExc_BufferError, "the tensor is on device (%d, %d), not on (%d, %d)",
                  (int)own->type, (int)own->id, type, number);
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
    if (copy == Py_True)
        return PyErr_Format(PyExc_BufferError, "a tensor of weft is shared without a copy");
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
