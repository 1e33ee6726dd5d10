/* shard.c - see shard.h. */
#include "shard.h"

typedef struct {
    PyObject_HEAD void *data; /* NULL: the shard is empty */
    PyObject *spec;           /* or None */
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS], offset[WEFT_MAX_DIMS];
    weft_dl_dtype dtype;
    weft_dl_device device;
    handle_object *owner; /* of the memory; NULL: a call */
    Py_ssize_t exported;  /* arrays of other libraries */
    bool is_closed;       /* the call has ended */
    bool is_read_only;
} shard_object;

static shard_object *self_of(PyObject *self)
{
    return (shard_object *)self;
}

static void shard_dealloc(PyObject *self)
{
    Py_XDECREF(self_of(self)->spec);
    Py_XDECREF((PyObject *)self_of(self)->owner);
    object_free(self);
}

/* ---- DLPack ---- */

/* Count arrays of the memory, also at its owner. */
static void count_export(shard_object *self, int change)
{
    self->exported += change;
    if (self->owner != NULL) self->owner->users += change;
}

static void end_export(PyObject *shard)
{
    count_export(self_of(shard), -1);
}

static PyObject *shard_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    shard_object *self = self_of(object);
    const weft_dl_tensor tensor = {.data = self->data,
                                   .device = self->device,
                                   .ndim = self->dims,
                                   .dtype = self->dtype,
                                   .shape = self->shape,
                                   .strides = self->strides};
    PyObject *capsule;

    if (self->is_closed || (self->owner != NULL && self->owner->raw == NULL)) {
        PyErr_SetString(PyExc_BufferError,
                        self->owner != NULL ? "the memory was closed; it cannot be used"
                                            : "the kernel has returned; its shards cannot be used");
        return NULL;
    }
    capsule = share_capsule(&tensor, self->is_read_only, object, end_export, args, kwargs);
    if (capsule != NULL) count_export(self, 1);
    return capsule;
}

static PyObject *shard_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(ii)", (int)self_of(self)->device.type, (int)self_of(self)->device.id);
}

/* A NumPy array, which shares host memory. */
static PyObject *shard_array(PyObject *self, PyObject *args, PyObject *kwargs)
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

/* ---- properties ---- */

static PyObject *get_spec(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self_of(self)->spec);
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of(self_of(self)->dims, self_of(self)->shape);
}

static PyObject *get_offset(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of(self_of(self)->dims, self_of(self)->offset);
}

/* (address, strides in elements, dtype, whether it is read-only). */
static PyObject *get_memory(PyObject *object, void *closure)
{
    shard_object *self = self_of(object);
    enum weft_dtype dtype;

    (void)closure;
    if (check(weft_dtype_from_dlpack(self->dtype, &dtype)) < 0) return NULL;
    return Py_BuildValue("(NNsN)", PyLong_FromVoidPtr(self->data),
                         tuple_of(self->dims, self->strides), weft_dtype_name(dtype),
                         PyBool_FromLong(self->is_read_only));
}

/* ---- making and closing ---- */

PyObject *shard_new(const struct shard_facts *facts)
{
    shard_object *self = object_new(binding.shard);
    int64_t dense = 1;

    if (self == NULL) return NULL;
    self->spec =
        facts->spec != NULL ? spec_wrap(weft_spec_retain(facts->spec)) : Py_NewRef(Py_None);
    if (self->spec == NULL || check(weft_dtype_to_dlpack(facts->dtype, &self->dtype)) < 0) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    self->data = facts->data;
    self->dims = facts->dims;
    for (int32_t i = facts->dims - 1; i >= 0; i--) {
        self->shape[i] = facts->shape[i];
        self->strides[i] = facts->strides != NULL ? facts->strides[i] : dense;
        self->offset[i] = facts->offset != NULL ? facts->offset[i] : 0;
        dense *= facts->shape[i];
    }
    self->device = facts->device;
    self->owner = (handle_object *)Py_XNewRef(facts->owner);
    self->is_read_only = facts->is_read_only;
    return (PyObject *)self;
}

Py_ssize_t shard_close(PyObject *shard)
{
    if (shard == NULL || shard == Py_None) return 0;
    self_of(shard)->is_closed = true;
    return self_of(shard)->exported;
}

Py_ssize_t shards_close(PyObject *shards)
{
    Py_ssize_t kept = 0;

    for (Py_ssize_t i = 0; shards != NULL && i < PyTuple_Size(shards); i++)
        kept += shard_close(PyTuple_GetItem(shards, i));
    return kept;
}

/* ---- exceptions ---- */

weft_status kernel_end(struct kernel *kernel, Py_ssize_t kept, const char *what)
{
    PyObject *text;
    const char *chars = NULL;
    weft_status status;

    if (!PyErr_Occurred() && kept > 0)
        PyErr_Format(PyExc_BufferError,
                     "the kernel of %s keeps %zd arrays of its shards; copy them instead", what,
                     kept);
    if (!PyErr_Occurred()) return WEFT_OK;
    PyErr_Fetch(&kernel->kind, &kernel->value, &kernel->traceback);
    PyErr_NormalizeException(&kernel->kind, &kernel->value, &kernel->traceback);
    text = kernel->value != NULL ? PyObject_Repr(kernel->value) : NULL;
    if (text != NULL) chars = PyUnicode_AsUTF8AndSize(text, NULL);
    PyErr_Clear();
    status = weft_fail(WEFT_ERR_INVALID, "the kernel of %s raised %s", what,
                       chars != NULL ? chars : "an exception");
    Py_XDECREF(text);
    return status;
}

weft_status kernel_run(struct kernel *kernel, PyObject *arguments, PyObject *shards,
                       const char *what)
{
    PyObject *result = arguments != NULL ? PyObject_CallObject(kernel->function, arguments) : NULL;
    Py_ssize_t kept = shards_close(shards);
    weft_status status = kernel_end(kernel, result != NULL ? kept : 0, what);

    Py_XDECREF(result);
    Py_XDECREF(arguments);
    Py_XDECREF(shards);
    return status;
}

PyObject *kernel_raise(struct kernel *kernel, weft_status status)
{
    if (kernel->kind == NULL) return raise_status(status);
    PyErr_Restore(kernel->kind, kernel->value, kernel->traceback);
    kernel->kind = NULL;
    return NULL;
}

int shard_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"spec", get_spec, NULL, "The layout of the whole tensor, or None.", NULL},
        {"shape", get_shape, NULL, "The shape of the shard.", NULL},
        {"offset", get_offset, NULL, "The index of its first element in the whole tensor.", NULL},
        {"_memory", get_memory, NULL, "Address, strides, dtype, and whether it is read-only.",
         NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"__dlpack__", KEYWORDS(shard_dlpack),
         "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)"},
        {"__dlpack_device__", shard_device, METH_NOARGS, "__dlpack_device__()"},
        {"__array__", KEYWORDS(shard_array), "__array__(dtype=None, copy=None)"},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "A tensor as a kernel gets it: its rank's shard."},
                                  {Py_tp_dealloc, shard_dealloc},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Shard", sizeof(shard_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.shard);
}
