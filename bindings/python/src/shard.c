/* shard.c - weft.Shard, see shard.h. */
#include "shard.h"

#include "classes.h"

typedef struct {
    PyObject_HEAD void *data; /* NULL: the shard is empty */
    PyObject *spec;           /* or None */
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS], offset[WEFT_MAX_DIMS];
    weft_dl_dtype dtype;
    weft_dl_device device;
    handle_object *owner; /* of the memory; arrays of other libraries count as its users */
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

static void end_export(PyObject *shard)
{
    self_of(shard)->owner->users--;
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

    if (self->owner->raw == NULL)
        return PyErr_Format(PyExc_BufferError,
                            Py_TYPE((PyObject *)self->owner) == binding.callback
                                ? "the kernel has returned; its shards cannot be used"
                                : "the memory was closed; it cannot be used");
    self->owner->users++; /* before the arguments can close it */
    capsule = share_capsule(&tensor, self->is_read_only, object, end_export, args, kwargs);
    if (capsule == NULL) self->owner->users--;
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
    PyObject *dtype = Py_None, *copy = Py_None;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    return arrays_call("as_numpy", "(OOO)", self, dtype, copy);
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

/* ---- making ---- */

PyObject *shard_new(const struct shard_facts *facts)
{
    shard_object *self = object_new(binding.shard);
    int64_t dense = 1;

    if (self == NULL) return NULL;
    self->spec = handle_make(binding.spec, &class_weft_spec, (weft_spec *)facts->spec, false, NULL);
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
    self->owner = (handle_object *)Py_NewRef(facts->owner);
    self->is_read_only = facts->is_read_only;
    return (PyObject *)self;
}

PyObject *frame_shard(PyObject *frame, struct shard_facts *facts)
{
    facts->device = ((handle_object *)frame)->context->device;
    facts->owner = frame;
    return shard_new(facts);
}

PyObject *frame_make(uint8_t kind, void *pointer, PyObject *frame)
{
    if (kind == VALUE_NATIVE) return PyLong_FromVoidPtr(weft_stream_native(pointer));
    if (pointer == NULL) Py_RETURN_NONE;
    return frame_shard(frame, &(struct shard_facts){.data = pointer, .dtype = WEFT_DTYPE_U8});
}

/* The same memory with another shape, strides, or None, dtype and right to write. */
static PyObject *shard_view(PyObject *object, PyObject *args)
{
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS];
    shard_object *self = self_of(object);
    PyObject *sizes, *steps;
    struct shard_facts facts = {
        .shape = shape, .device = self->device, .owner = (PyObject *)self->owner};
    const char *name;
    int written;

    if (!PyArg_ParseTuple(args, "OOsp:_view", &sizes, &steps, &name, &written) ||
        check(weft_dtype_parse(name, &facts.dtype)) < 0 ||
        (facts.dims = numbers_of(sizes, shape)) < 0)
        return NULL;
    if (steps != Py_None) {
        int32_t count = numbers_of(steps, strides);

        if (count != facts.dims)
            return count < 0 ? NULL : PyErr_Format(PyExc_ValueError, "a stride per size is needed");
        facts.strides = strides;
    }
    facts.data = self->data;
    facts.is_read_only = !written;
    return shard_new(&facts);
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
        {"_view", shard_view, METH_VARARGS, "_view(shape, strides, dtype, is_written, /)"},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "A tensor as a kernel gets it: its rank's shard."},
                                  {Py_tp_repr, handle_repr},
                                  {Py_tp_dealloc, shard_dealloc},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Shard", sizeof(shard_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.shard);
}
