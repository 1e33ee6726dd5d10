/* symm.c - weft.Symm: the memory and its end.  The calls on it are generated. */
#include "interrupt.h"
#include "shard.h"

typedef struct {
    handle_object part;
    struct shard_use use; /* by arrays, which keep this object */
} symm_object;

static symm_object *self_of(PyObject *self)
{
    return (symm_object *)self;
}

static weft_symm *raw_of(PyObject *self)
{
    return comm_part_raw(self, "the symmetric memory");
}

static PyObject *symm_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"comm", "bytes", "channels", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    weft_symm_options options = {.struct_size = sizeof options};
    unsigned long long bytes;
    unsigned channels = 0;
    weft_symm *raw = NULL;
    PyObject *comm, *self;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&|O&:Symm", names, &comm, to_u64, &bytes,
                                     to_u32, &channels) ||
        !is_of(comm, binding.comm, "comm"))
        return NULL;
    self = allocate(type, 0);
    if (self == NULL) return NULL;
    options.channels = channels;
    WAIT_BEGIN
    status = weft_symm_create(((comm_object *)comm)->raw, bytes, &options, &raw);
    WAIT_END
    return comm_part_made(self, status, raw, comm);
}

static void release(symm_object *self)
{
    weft_symm *raw = self->part.raw;

    self->part.raw = NULL;
    self->use.is_closed = true;
    WAIT_BEGIN
    weft_symm_release(&raw);
    WAIT_END
}

static void symm_dealloc(PyObject *object)
{
    symm_object *self = self_of(object);

    if (self->part.raw != NULL) release(self);
    comm_part_free(object);
}

static PyObject *symm_close(PyObject *object, PyObject *unused)
{
    symm_object *self = self_of(object);

    (void)unused;
    if (self->part.calls > 0) {
        PyErr_SetString(PyExc_RuntimeError, "the Symm is in use by another thread");
        return NULL;
    }
    if (self->use.exported > 0) {
        PyErr_Format(PyExc_BufferError, "%zd arrays use the symmetric memory; delete them first",
                     self->use.exported);
        return NULL;
    }
    if (self->part.raw != NULL) release(self);
    Py_RETURN_NONE;
}

static PyObject *symm_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* An exception of the block is not replaced: the memory then ends with the object. */
static PyObject *symm_exit(PyObject *self, PyObject *args)
{
    PyObject *kind, *value, *traceback;

    if (!PyArg_ParseTuple(args, "OOO:__exit__", &kind, &value, &traceback)) return NULL;
    if (kind != Py_None) Py_RETURN_NONE;
    return symm_close(self, NULL);
}

/* ---- memory ---- */

static PyObject *symm_memory(PyObject *object, PyObject *args)
{
    symm_object *self = self_of(object);
    weft_symm *raw = raw_of(object);
    PyObject *key = Py_None;
    int64_t bytes;
    void *data;

    if (raw == NULL || !PyArg_ParseTuple(args, "|O:memory", &key)) return NULL;
    data = weft_symm_local(raw);
    if (key != Py_None) {
        int peer;

        if (!PyArg_Parse(key, "i:memory", &peer)) return NULL;
        data = weft_symm_peer(raw, peer);
        if (data == NULL) Py_RETURN_NONE;
    }
    bytes = (int64_t)weft_symm_bytes(raw);
    return shard_new(&(struct shard_facts){.data = data,
                                           .dims = 1,
                                           .shape = &bytes,
                                           .dtype = WEFT_DTYPE_U8,
                                           .device = self->part.context->device,
                                           .owner = object,
                                           .use = &self->use});
}

int symm_type_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"memory", symm_memory, METH_VARARGS,
         "memory(peer=None)\n\nThe bytes of this rank, or of a peer, for from_dlpack; None: this "
         "rank cannot address them."},
        {"close", symm_close, METH_NOARGS, "close()\n\nFree the memory.  Collective."},
        {"__enter__", symm_enter, METH_NOARGS, NULL},
        {"__exit__", symm_exit, METH_VARARGS, NULL},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Symm(comm, bytes, channels=0)\n\nMemory of the same size on all ranks of a "
                    "communicator, which each of them reads and writes.  Collective, and so is its "
                    "end (docs/symmetric-memory.md)."},
        {Py_tp_new, symm_new},
        {Py_tp_dealloc, symm_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Symm", sizeof(symm_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return type_add(module, &spec, &binding.symm);
}
