/* writer.c - weft.Writer: a new checkpoint, written in parts. */
#include "checkpoint.h"
#include "interrupt.h"
#include "tensor.h"

typedef struct {
    HANDLE_HEAD(weft_checkpoint_writer)
    PyObject *names;                           /* name -> (index, shape, dtype) */
} writer_object;

static weft_checkpoint_writer *writer_of(PyObject *self)
{
    weft_checkpoint_writer *raw = ((writer_object *)self)->raw;

    if (raw == NULL) PyErr_SetString(PyExc_RuntimeError, "the writer was closed");
    return raw;
}

/* ---- creation ---- */

struct entries {
    PyObject *items;
    weft_checkpoint_entry *list;
    int64_t (*shapes)[WEFT_MAX_DIMS];
    Py_ssize_t count;
};

static void close_entries(struct entries *entries)
{
    Py_CLEAR(entries->items);
    PyMem_Free(entries->list);
    PyMem_Free(entries->shapes);
}

static int read_entry(PyObject *item, weft_checkpoint_entry *entry, int64_t *shape)
{
    PyObject *sizes;

    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError,
                        "an entry is a tuple of name, dtype, shape and, for files per rank, "
                        "placements");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "ssO|z", &entry->name, &entry->dtype, &sizes, &entry->placements))
        return -1;
    entry->dims = numbers_of(sizes, shape);
    entry->shape = shape;
    return entry->dims < 0 ? -1 : 0;
}

static int open_entries(PyObject *given, struct entries *out)
{
    *out = (struct entries){.items = PySequence_Tuple(given)};
    if (out->items == NULL) return -1;
    out->count = PyTuple_Size(out->items);
    out->list = PyMem_Calloc((size_t)out->count + 1, sizeof *out->list);
    out->shapes = PyMem_Calloc((size_t)out->count + 1, sizeof *out->shapes);
    if (out->list == NULL || out->shapes == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < out->count && !PyErr_Occurred(); i++)
        read_entry(PyTuple_GetItem(out->items, i), &out->list[i], out->shapes[i]);
    if (!PyErr_Occurred()) return 0;
    close_entries(out);
    return -1;
}

/* The dtype of weft with the NAME of weft or of safetensors ("F8_E4M3"); WEFT_DTYPE_COUNT: none. */
static enum weft_dtype dtype_of(const char *name)
{
    enum weft_dtype dtype;
    char plain[32];
    size_t length = 0;

    for (; *name != 0 && length + 1 < sizeof plain; name++)
        if (*name != '_')
            plain[length++] = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
    plain[length] = 0;
    return weft_dtype_parse(plain, &dtype) == WEFT_OK ? dtype : WEFT_DTYPE_COUNT;
}

/* The number, the shape and the dtype of each entry by its name. */
static PyObject *index_names(const struct entries *entries)
{
    PyObject *names = PyDict_New();

    for (Py_ssize_t i = 0; names != NULL && i < entries->count; i++) {
        PyObject *value =
            Py_BuildValue("(nNi)", i, tuple_of(entries->list[i].dims, entries->list[i].shape),
                          (int)dtype_of(entries->list[i].dtype));

        if (value == NULL || PyDict_SetItemString(names, entries->list[i].name, value) < 0)
            Py_CLEAR(names);
        Py_XDECREF(value);
    }
    return names;
}

static PyObject *make(PyTypeObject *type, PyObject *path, const struct entries *entries,
                      const weft_checkpoint_options *options)
{
    PyObject *names = index_names(entries);
    writer_object *self = names != NULL ? object_new(type) : NULL;
    weft_status status;

    if (self == NULL) {
        Py_XDECREF(names);
        return NULL;
    }
    self->names = names;
    WAIT_BEGIN
    status = weft_checkpoint_create(PyBytes_AsString(path), entries->list, (size_t)entries->count,
                                    options, &self->raw);
    WAIT_END
    if (status == WEFT_OK) return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return raise_status(status);
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "entries",    "format",   "replace",
                            "mesh", "file_bytes", "metadata", NULL};
    weft_checkpoint_options options = {.struct_size = sizeof options};
    PyObject *path, *given, *mesh = Py_None, *metadata = Py_None, *self = NULL;
    struct pairs pairs = {0};
    struct entries entries;
    const char *format = NULL;
    unsigned long long file_bytes = 0;
    int replace = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O|zpOO&O:Writer", names,
                                     PyUnicode_FSConverter, &path, &given, &format, &replace, &mesh,
                                     to_u64, &file_bytes, &metadata))
        return NULL;
    options.replace = replace;
    options.file_bytes = file_bytes;
    if (open_entries(given, &entries) == 0) {
        if (format_of(format, &options.format) == 0 && pairs_open(metadata, &pairs) == 0 &&
            (mesh == Py_None || (options.mesh = mesh_of(mesh, "mesh")) != NULL)) {
            options.metadata = pairs.list;
            options.pairs = pairs.count;
            self = make(type, path, &entries, &options);
        }
        pairs_close(&pairs);
        close_entries(&entries);
    }
    Py_DECREF(path);
    return self;
}

static void writer_dealloc(PyObject *object)
{
    writer_object *self = (writer_object *)object;

    weft_checkpoint_writer_close(&self->raw);
    Py_XDECREF(self->names);
    object_free(object);
}

/* ---- writing ---- */

/* The start and the sizes of the box that SOURCE is. */
static int read_box(PyObject *self, const char *name, PyObject *offset, const struct array *array,
                    size_t *index, int64_t *start)
{
    PyObject *entry = PyDict_GetItemString(((writer_object *)self)->names, name);
    Py_ssize_t number;
    PyObject *shape;
    int32_t dims = array->dims;
    int dtype;

    if (entry == NULL) {
        PyErr_Format(PyExc_KeyError, "the checkpoint has no tensor '%s'", name);
        return -1;
    }
    if (!PyArg_ParseTuple(entry, "nOi", &number, &shape, &dtype)) return -1;
    if ((int)array->dtype != dtype) {
        PyErr_Format(PyExc_TypeError, "tensor %s is %s, the array %s", name,
                     dtype < WEFT_DTYPE_COUNT ? weft_dtype_name((enum weft_dtype)dtype)
                                              : "of a dtype that arrays do not have",
                     weft_dtype_name(array->dtype));
        return -1;
    }
    for (int32_t i = 0; i < array->dims; i++)
        start[i] = 0;
    if (offset != Py_None && (dims = numbers_of(offset, start)) < 0) return -1;
    if (dims != array->dims || array->dims != (int32_t)PyTuple_Size(shape)) {
        PyErr_Format(PyExc_ValueError, "tensor %s has %zd dimensions, the array %d", name,
                     PyTuple_Size(shape), (int)array->dims);
        return -1;
    }
    *index = (size_t)number;
    return 0;
}

static PyObject *writer_write(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "array", "offset", NULL};
    weft_checkpoint_writer *raw = writer_of(self);
    PyObject *object, *offset = Py_None;
    int64_t start[WEFT_MAX_DIMS];
    weft_status status = WEFT_OK;
    struct array array;
    const char *name;
    size_t index;

    if (raw == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "sO|O:write", names, &name, &object, &offset))
        return NULL;
    if (array_open(object, &array) < 0) return NULL;
    if (array.device.type != WEFT_DL_CPU)
        PyErr_SetString(PyExc_ValueError, "array is not in host memory");
    else if (check_dense(&array, "array", false) == 0 &&
             read_box(self, name, offset, &array, &index, start) == 0) {
        WAIT_BEGIN
        status = weft_checkpoint_write(raw, index, start, array.shape, array.data);
        WAIT_END
    }
    array_close(&array);
    if (PyErr_Occurred()) return NULL;
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *writer_commit(PyObject *self, PyObject *unused)
{
    weft_checkpoint_writer *raw = writer_of(self);
    weft_status status;

    (void)unused;
    if (raw == NULL) return NULL;
    WAIT_BEGIN
    status = weft_checkpoint_commit(raw);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *writer_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    weft_checkpoint_writer_close(&((writer_object *)self)->raw);
    Py_RETURN_NONE;
}

static PyObject *writer_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* Without an exception, commit. */
static PyObject *writer_exit(PyObject *self, PyObject *args)
{
    PyObject *kind, *value, *traceback, *done = NULL;

    if (!PyArg_ParseTuple(args, "OOO:__exit__", &kind, &value, &traceback)) return NULL;
    if (kind == Py_None && (done = writer_commit(self, NULL)) == NULL) {
        weft_checkpoint_writer_close(&((writer_object *)self)->raw);
        return NULL;
    }
    Py_XDECREF(done);
    return writer_close(self, NULL);
}

int writer_type_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"write", KEYWORDS(writer_write),
         "write(name, array, offset=None)\n\nWrite the box of a tensor that begins at offset."},
        {"commit", writer_commit, METH_NOARGS,
         "commit()\n\nFlush the files and give them their names."},
        {"close", writer_close, METH_NOARGS,
         "close()\n\nWithout a commit, remove what was written."},
        {"__enter__", writer_enter, METH_NOARGS, NULL},
        {"__exit__", writer_exit, METH_VARARGS, NULL},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Writer(path, entries, format=None, replace=False, mesh=None, file_bytes=0, "
                    "metadata=None)\n\nA new checkpoint.  An entry is (name, dtype, shape) or, for "
                    "files per rank, (name, dtype, shape, placements).  At the end of a `with` "
                    "block it is complete."},
        {Py_tp_new, writer_new},
        {Py_tp_dealloc, writer_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Writer", sizeof(writer_object), 0, Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.checkpoint_writer);
}
