/* checkpoint.c - weft.Checkpoint: named tensors in files, read in parts of any size. */
#include "checkpoint.h"
#include "interrupt.h"
#include "tensor.h"

#include <string.h>

weft_checkpoint *checkpoint_of(PyObject *object)
{
    weft_checkpoint *raw;

    if (!is_of(object, binding.checkpoint, "checkpoint")) return NULL;
    raw = ((checkpoint_object *)object)->raw;
    if (raw == NULL) PyErr_SetString(PyExc_RuntimeError, "the checkpoint was closed");
    return raw;
}

int format_of(const char *name, uint32_t *out)
{
    *out = WEFT_FILE_ANY;
    if (name == NULL) return 0;
    for (*out = WEFT_FILE_SAFETENSORS; *out <= WEFT_FILE_NPY; ++*out)
        if (strcmp(weft_file_format_name((enum weft_file_format) * out), name) == 0) return 0;
    PyErr_Format(PyExc_ValueError,
                 "'%s' is not a format; expected 'safetensors', 'huggingface', 'ranks', "
                 "'dcp-safetensors', 'dcp' or 'npy'",
                 name);
    return -1;
}

int pairs_open(PyObject *dictionary, struct pairs *out)
{
    *out = (struct pairs){0};
    if (dictionary == Py_None) return 0;
    out->items = PyMapping_Items(dictionary);
    if (out->items == NULL) return -1;
    out->count = (size_t)PyList_Size(out->items);
    out->list = PyMem_Calloc(out->count + 1, sizeof *out->list);
    if (out->list == NULL) PyErr_NoMemory();
    for (size_t i = 0; out->list != NULL && i < out->count && !PyErr_Occurred(); i++) {
        PyObject *item = PyList_GetItem(out->items, (Py_ssize_t)i);

        out->list[i].key = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(item, 0), NULL);
        if (out->list[i].key == NULL) break;
        out->list[i].value = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(item, 1), NULL);
    }
    if (!PyErr_Occurred()) return 0;
    pairs_close(out);
    return -1;
}

void pairs_close(struct pairs *pairs)
{
    PyMem_Free(pairs->list);
    Py_CLEAR(pairs->items);
    *pairs = (struct pairs){0};
}

/* ---- life ---- */

static PyObject *wrap(PyTypeObject *type, weft_checkpoint *raw, PyObject *from)
{
    checkpoint_object *self = object_new(type);

    if (self == NULL) {
        weft_checkpoint_close(&raw);
        return NULL;
    }
    self->raw = raw;
    self->from = Py_XNewRef(from);
    return (PyObject *)self;
}

static PyObject *checkpoint_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", NULL};
    PyObject *path;
    weft_checkpoint *raw = NULL;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:Checkpoint", names, PyUnicode_FSConverter,
                                     &path))
        return NULL;
    WAIT_BEGIN
    status = weft_checkpoint_open(PyBytes_AsString(path), &raw);
    WAIT_END
    Py_DECREF(path);
    return status == WEFT_OK ? wrap(type, raw, NULL) : raise_status(status);
}

static PyObject *checkpoint_map(PyObject *self, PyObject *rules)
{
    weft_checkpoint *raw = NULL, *from = checkpoint_of(self);

    if (from == NULL || !is_of(rules, binding.rules, "rules") ||
        check(weft_checkpoint_map(from, ((any_object *)rules)->raw, &raw)) < 0)
        return NULL;
    return wrap(Py_TYPE(self), raw, self);
}

static void checkpoint_dealloc(PyObject *object)
{
    checkpoint_object *self = (checkpoint_object *)object;

    weft_checkpoint_close(&self->raw);
    Py_XDECREF(self->from);
    object_free(object);
}

/* ---- properties ---- */

static int info_of(PyObject *self, weft_checkpoint_info *out)
{
    weft_checkpoint *raw = checkpoint_of(self);

    *out = (weft_checkpoint_info){.struct_size = sizeof *out};
    return raw == NULL ? -1 : check(weft_checkpoint_get(raw, out));
}

static PyObject *get_format(PyObject *self, void *closure)
{
    weft_checkpoint_info info;

    (void)closure;
    if (info_of(self, &info) < 0) return NULL;
    return PyUnicode_FromString(weft_file_format_name((enum weft_file_format)info.format));
}

static PyObject *get_bytes(PyObject *self, void *closure)
{
    weft_checkpoint_info info;

    (void)closure;
    return info_of(self, &info) < 0 ? NULL : PyLong_FromUnsignedLongLong(info.bytes);
}

static PyObject *get_files(PyObject *self, void *closure)
{
    weft_checkpoint_info info;

    (void)closure;
    return info_of(self, &info) < 0 ? NULL : PyLong_FromUnsignedLong(info.files);
}

static PyObject *get_mesh(PyObject *self, void *closure)
{
    weft_checkpoint_info info;

    (void)closure;
    if (info_of(self, &info) < 0) return NULL;
    if (info.mesh == NULL) Py_RETURN_NONE;
    return mesh_wrap(weft_mesh_retain(info.mesh));
}

static PyObject *get_metadata(PyObject *self, void *closure)
{
    weft_checkpoint_info info;
    PyObject *all;

    (void)closure;
    if (info_of(self, &info) < 0) return NULL;
    all = PyDict_New();
    for (uint64_t i = 0; all != NULL && i < info.metadata; i++) {
        const char *key, *value;
        PyObject *text = NULL;

        if (check(weft_checkpoint_metadata_get(checkpoint_of(self), i, &key, &value)) == 0)
            text = PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "replace");
        if (text == NULL || PyDict_SetItemString(all, key, text) < 0) Py_CLEAR(all);
        Py_XDECREF(text);
    }
    return all;
}

static int tensor_info(PyObject *self, size_t index, weft_checkpoint_tensor_info *out)
{
    weft_checkpoint *raw = checkpoint_of(self);

    *out = (weft_checkpoint_tensor_info){.struct_size = sizeof *out};
    return raw == NULL ? -1 : check(weft_checkpoint_tensor_get(raw, index, out));
}

static PyObject *get_names(PyObject *self, void *closure)
{
    weft_checkpoint_info info;
    PyObject *list;

    (void)closure;
    if (info_of(self, &info) < 0) return NULL;
    list = PyList_New((Py_ssize_t)info.tensors);
    for (uint64_t i = 0; list != NULL && i < info.tensors; i++) {
        weft_checkpoint_tensor_info tensor;
        PyObject *name = NULL;

        if (tensor_info(self, i, &tensor) == 0) name = PyUnicode_FromString(tensor.name);
        if (name == NULL || PyList_SetItem(list, (Py_ssize_t)i, name) < 0) Py_CLEAR(list);
    }
    return list;
}

/* ---- tensors ---- */

static int find(PyObject *self, const char *name, size_t *index)
{
    weft_checkpoint *raw = checkpoint_of(self);

    return raw == NULL ? -1 : check(weft_checkpoint_find(raw, name, index));
}

static PyObject *checkpoint_describe(PyObject *self, PyObject *args)
{
    weft_checkpoint_tensor_info tensor;
    PyObject *dtype, *spec;
    const char *name;
    size_t index;

    if (!PyArg_ParseTuple(args, "s:describe", &name) || find(self, name, &index) < 0 ||
        tensor_info(self, index, &tensor) < 0)
        return NULL;
    dtype = tensor.dtype < WEFT_DTYPE_COUNT
                ? PyUnicode_FromString(weft_dtype_name((enum weft_dtype)tensor.dtype))
                : Py_NewRef(Py_None);
    spec = tensor.spec != NULL ? spec_wrap(weft_spec_retain(tensor.spec)) : Py_NewRef(Py_None);
    if (dtype == NULL || spec == NULL) {
        Py_XDECREF(dtype);
        Py_XDECREF(spec);
        return NULL;
    }
    return Py_BuildValue("{s:N,s:s,s:N,s:K,s:K,s:N}", "dtype", dtype, "stored", tensor.dtype_name,
                         "shape", tuple_of(tensor.dims, tensor.shape), "bytes", tensor.bytes,
                         "pieces", tensor.pieces, "spec", spec);
}

/* Optional numbers, one per dimension; NULL for None. */
static int read_box(PyObject *given, int32_t dims, int64_t *numbers, const int64_t **out)
{
    int32_t count;

    *out = NULL;
    if (given == Py_None) return 0;
    count = numbers_of(given, numbers);
    if (count < 0) return -1;
    *out = numbers;
    if (count == dims) return 0;
    PyErr_Format(PyExc_ValueError, "expected %d numbers, one per dimension, not %d", (int)dims,
                 (int)count);
    return -1;
}

/* The bytes of the box of TENSOR. */
static uint64_t bytes_of(const weft_checkpoint_tensor_info *tensor, const int64_t *offset,
                         const int64_t *sizes)
{
    uint64_t count = 1;

    for (int32_t i = 0; i < tensor->dims; i++)
        count *= (uint64_t)(sizes != NULL    ? sizes[i]
                            : offset != NULL ? tensor->shape[i] - offset[i]
                                             : tensor->shape[i]);
    return (count * tensor->bits + 7) / 8;
}

/* Open TARGET, host memory of at least NEEDED bytes that may be written. */
static int open_target(PyObject *target, uint64_t needed, struct array *out)
{
    uint64_t bytes;

    if (array_open(target, out) < 0) return -1;
    bytes = weft_dtype_bytes(out->dtype);
    for (int32_t i = 0; i < out->dims; i++)
        bytes *= (uint64_t)out->shape[i];
    if (check_dense(out, "target", true) == 0) {
        if (out->device.type == WEFT_DL_CPU && bytes >= needed) return 0;
        if (out->device.type != WEFT_DL_CPU)
            PyErr_SetString(PyExc_ValueError, "target is not in host memory");
        else
            PyErr_Format(PyExc_ValueError, "%llu bytes are read, but target has %llu", needed,
                         bytes);
    }
    array_close(out);
    return -1;
}

static PyObject *checkpoint_read_into(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "target", "offset", "sizes", NULL};
    PyObject *target, *offset = Py_None, *sizes = Py_None;
    int64_t offsets[WEFT_MAX_DIMS], extents[WEFT_MAX_DIMS];
    const int64_t *start, *extent;
    weft_checkpoint_tensor_info tensor;
    weft_checkpoint *raw;
    weft_status status;
    struct array array;
    const char *name;
    size_t index;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|OO:read_into", names, &name, &target,
                                     &offset, &sizes) ||
        find(self, name, &index) < 0 || tensor_info(self, index, &tensor) < 0 ||
        read_box(offset, tensor.dims, offsets, &start) < 0 ||
        read_box(sizes, tensor.dims, extents, &extent) < 0 ||
        open_target(target, bytes_of(&tensor, start, extent), &array) < 0)
        return NULL;
    raw = checkpoint_of(self);
    WAIT_BEGIN
    status = weft_checkpoint_read(raw, index, start, extent, array.data);
    WAIT_END
    array_close(&array);
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *checkpoint_read_shard(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "target", "spec", "rank", NULL};
    weft_checkpoint *raw;
    PyObject *target, *layout;
    weft_spec *spec;
    weft_status status;
    struct array array;
    const char *name;
    size_t index;
    int rank;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOOi:read_shard", names, &name, &target,
                                     &layout, &rank) ||
        (spec = spec_of(layout, "spec")) == NULL || find(self, name, &index) < 0 ||
        open_target(target, weft_spec_shard_bytes(spec, rank), &array) < 0)
        return NULL;
    raw = checkpoint_of(self);
    WAIT_BEGIN
    status = weft_checkpoint_read_shard(raw, index, spec, rank, array.data);
    WAIT_END
    array_close(&array);
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *checkpoint_checksum(PyObject *self, PyObject *args)
{
    weft_checkpoint *raw;
    weft_status status;
    const char *name;
    uint64_t sum = 0;
    size_t index;

    if (!PyArg_ParseTuple(args, "s:checksum", &name) || find(self, name, &index) < 0) return NULL;
    raw = checkpoint_of(self);
    WAIT_BEGIN
    status = weft_checkpoint_checksum(raw, index, &sum);
    WAIT_END
    return status == WEFT_OK ? PyLong_FromUnsignedLongLong(sum) : raise_status(status);
}

static PyObject *checkpoint_check_replicas(PyObject *self, PyObject *args)
{
    weft_checkpoint *raw;
    weft_status status;
    const char *name;
    size_t index;

    if (!PyArg_ParseTuple(args, "s:check_replicas", &name) || find(self, name, &index) < 0)
        return NULL;
    raw = checkpoint_of(self);
    WAIT_BEGIN
    status = weft_checkpoint_check_replicas(raw, index);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

int checkpoint_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"format", get_format, NULL, "The format: \"safetensors\", \"dcp\", ...", NULL},
        {"names", get_names, NULL, "The names of the tensors, in ascending order.", NULL},
        {"bytes", get_bytes, NULL, "The bytes of all elements.", NULL},
        {"files", get_files, NULL, "The number of files with elements.", NULL},
        {"mesh", get_mesh, NULL, "The mesh of files per rank; otherwise None.", NULL},
        {"metadata", get_metadata, NULL, "The metadata of the first file.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"describe", checkpoint_describe, METH_VARARGS,
         "describe(name)\n\nThe dtype, the shape and the place of a tensor."},
        {"read_into", KEYWORDS(checkpoint_read_into),
         "read_into(name, target, offset=None, sizes=None)\n\nRead a box of a tensor to an array."},
        {"read_shard", KEYWORDS(checkpoint_read_shard),
         "read_shard(name, target, spec, rank)\n\nRead a rank's shard of a tensor to an array."},
        {"checksum", checkpoint_checksum, METH_VARARGS,
         "checksum(name)\n\nA checksum of the elements, equal in every layout and format."},
        {"check_replicas", checkpoint_check_replicas, METH_VARARGS,
         "check_replicas(name)\n\nCompare the replicas in files of several ranks."},
        {"map", checkpoint_map, METH_O,
         "map(rules)\n\nThe checkpoint with the tensors that rules make of this one."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Checkpoint(path)\n\nNamed tensors in files of any format."},
        {Py_tp_new, checkpoint_new},
        {Py_tp_dealloc, checkpoint_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft._weft.Checkpoint", sizeof(checkpoint_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

    return type_add(module, &spec, &binding.checkpoint);
}
