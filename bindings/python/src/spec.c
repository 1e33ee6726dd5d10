/* spec.c - weft.Spec. */
#include "binding.h"

static weft_spec *raw_of(PyObject *self)
{
    return ((spec_object *)self)->raw;
}

static PyObject *spec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "mesh", NULL};
    const char *text;
    PyObject *mesh;
    weft_mesh *on;
    weft_spec *raw = NULL;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO:Spec", names, &text, &mesh)) return NULL;
    on = mesh_of(mesh, "mesh");
    if (on == NULL || check(weft_spec_parse(on, text, &raw)) < 0) return NULL;
    return spec_wrap(raw);
}

static void spec_dealloc(PyObject *self)
{
    weft_spec_release(&((spec_object *)self)->raw);
    object_free(self);
}

static weft_status print(const void *spec, char *buffer, size_t capacity, size_t *length)
{
    return weft_spec_print(spec, buffer, capacity, length);
}

static PyObject *spec_str(PyObject *self)
{
    return text_of(print, raw_of(self));
}

static PyObject *get_mesh(PyObject *self, void *closure)
{
    (void)closure;
    return mesh_wrap(weft_mesh_retain(weft_spec_mesh(raw_of(self))));
}

static PyObject *spec_repr(PyObject *self)
{
    PyObject *text = spec_str(self), *mesh = get_mesh(self, NULL), *repr = NULL;

    if (text != NULL && mesh != NULL) repr = PyUnicode_FromFormat("weft.spec(%R, %R)", text, mesh);
    Py_XDECREF(text);
    Py_XDECREF(mesh);
    return repr;
}

static Py_hash_t spec_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)weft_spec_hash(raw_of(self));

    return hash == -1 ? -2 : hash;
}

static PyObject *spec_compare(PyObject *self, PyObject *other, int op)
{
    bool equal;

    if (!PyObject_TypeCheck(other, binding.spec) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    equal = raw_of(self) == raw_of(other);
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static PyObject *sizes(int32_t count, const int64_t *values)
{
    PyObject *tuple = PyTuple_New(count);

    for (int32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);

        if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    return sizes(weft_spec_dims(raw_of(self)), weft_spec_shape(raw_of(self)));
}

static PyObject *get_elements(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong((unsigned long long)weft_spec_elements(raw_of(self)));
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(weft_dtype_name(weft_spec_dtype(raw_of(self))));
}

/* The text after the closing bracket of the shape. */
static PyObject *get_placements(PyObject *self, void *closure)
{
    PyObject *text = spec_str(self), *parts, *placements;

    (void)closure;
    if (text == NULL) return NULL;
    parts = PyObject_CallMethod(text, "partition", "s", "] ");
    Py_DECREF(text);
    if (parts == NULL) return NULL;
    placements = PyTuple_GetItem(parts, 2);
    Py_XINCREF(placements);
    Py_DECREF(parts);
    return placements;
}

static PyObject *spec_with(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"placements", "mesh", "dtype", NULL};
    const char *placements = NULL, *dtype = NULL;
    PyObject *mesh = Py_None, *unchanged = NULL;
    weft_spec *raw = weft_spec_retain(raw_of(self)), *next = NULL;
    enum weft_dtype wanted;
    weft_mesh *on;
    int failed = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zOz:with_", names, &placements, &mesh, &dtype))
        goto fail;
    if (placements == NULL && mesh != Py_None) {
        unchanged = get_placements(self, NULL);
        placements = unchanged != NULL ? PyUnicode_AsUTF8AndSize(unchanged, NULL) : NULL;
        if (placements == NULL) goto fail;
    }
    if (placements != NULL) {
        on = mesh != Py_None ? mesh_of(mesh, "mesh") : (weft_mesh *)weft_spec_mesh(raw);
        if (on == NULL || check(weft_spec_with_mesh(raw, on, placements, &next)) < 0) goto fail;
        weft_spec_release(&raw);
        raw = next;
    }
    if (dtype != NULL) {
        failed = check(weft_dtype_parse(dtype, &wanted));
        if (failed < 0 || check(weft_spec_with_dtype(raw, wanted, &next)) < 0) goto fail;
        weft_spec_release(&raw);
        raw = next;
    }
    Py_XDECREF(unchanged);
    return spec_wrap(raw);

fail:
    Py_XDECREF(unchanged);
    weft_spec_release(&raw);
    return NULL;
}

static PyObject *spec_shard(PyObject *self, PyObject *args)
{
    weft_shard shard;
    PyObject *shape, *offset;
    int rank;

    if (!PyArg_ParseTuple(args, "i:shard", &rank)) return NULL;
    weft_spec_shard(raw_of(self), rank, &shard);
    shape = sizes(shard.dims, shard.shape);
    offset = sizes(shard.dims, shard.offset);
    if (shape == NULL || offset == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(offset);
        return NULL;
    }
    return Py_BuildValue("(NN)", shape, offset);
}

/* The COUNT numbers of LIST. */
static int read_numbers(PyObject *list, Py_ssize_t count, int64_t *out)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = PySequence_GetItem(list, i);

        out[i] = value != NULL ? PyLong_AsLongLong(value) : -1;
        Py_XDECREF(value);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static PyObject *spec_from_shards(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"mesh", "dtype", "placements", "dims", "shards", NULL};
    weft_placement placements[WEFT_MAX_AXES];
    PyObject *mesh, *list;
    const char *name, *text;
    enum weft_dtype dtype;
    int64_t *shards;
    weft_spec *raw = NULL;
    weft_mesh *on;
    weft_status status;
    Py_ssize_t count;
    int dims;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OssiO:from_shards", names, &mesh, &name, &text,
                                     &dims, &list))
        return NULL;
    on = mesh_of(mesh, "mesh");
    count = on != NULL ? PySequence_Size(list) : -1;
    if (count < 0) return NULL;
    if (dims < 0 || dims > WEFT_MAX_DIMS || count != (Py_ssize_t)dims * weft_mesh_size(on))
        return PyErr_Format(PyExc_ValueError, "shards has %zd sizes; expected %d for each rank",
                            count, dims);
    shards = PyMem_Calloc((size_t)count + 1, sizeof *shards);
    if (shards == NULL) return PyErr_NoMemory();
    if (read_numbers(list, count, shards) < 0 || check(weft_dtype_parse(name, &dtype)) < 0 ||
        check(weft_placements_parse(text, weft_mesh_axes(on), placements)) < 0) {
        PyMem_Free(shards);
        return NULL;
    }
    status = weft_spec_from_shards(on, dtype, dims, placements, shards, &raw);
    weft_placements_free(weft_mesh_axes(on), placements);
    PyMem_Free(shards);
    return status == WEFT_OK ? spec_wrap(raw) : raise_status(status);
}

static PyObject *derived(PyObject *self, weft_status (*derive)(const weft_spec *, weft_spec **))
{
    weft_spec *raw = NULL;

    if (check(derive(raw_of(self), &raw)) < 0) return NULL;
    return spec_wrap(raw);
}

static PyObject *spec_dual(PyObject *self, PyObject *unused)
{
    (void)unused;
    return derived(self, weft_spec_dual);
}

static PyObject *spec_gradient(PyObject *self, PyObject *unused)
{
    (void)unused;
    return derived(self, weft_spec_gradient);
}

static PyObject *spec_gradient_of_move(PyObject *self, PyObject *gradient)
{
    weft_spec *arrives = spec_of(gradient, "gradient"), *raw = NULL;

    if (arrives == NULL || check(weft_spec_gradient_of_move(raw_of(self), arrives, &raw)) < 0)
        return NULL;
    return spec_wrap(raw);
}

static PyObject *spec_order_to_strides(PyObject *self, PyObject *unused)
{
    (void)unused;
    return derived(self, weft_spec_order_to_strides);
}

static PyObject *spec_strides_to_order(PyObject *self, PyObject *unused)
{
    (void)unused;
    return derived(self, weft_spec_strides_to_order);
}

static PyObject *spec_picture(PyObject *self, PyObject *unused)
{
    (void)unused;
    return picture_of("of_spec", "(O)", self);
}

/* 0, or -1 with ValueError if SELF has no dimension DIM. */
static int check_dim(PyObject *self, int dim)
{
    int32_t dims = weft_spec_dims(raw_of(self));
    PyObject *text;

    if (dim >= 0 && dim < dims) return 0;
    text = spec_str(self);
    if (text != NULL)
        PyErr_Format(PyExc_ValueError, "dim is %d, but %U has %d dimensions, from 0 on", dim, text,
                     (int)dims);
    Py_XDECREF(text);
    return -1;
}

static PyObject *spec_runs(PyObject *self, PyObject *args)
{
    PyObject *list;
    int rank, dim;
    weft_run run;

    if (!PyArg_ParseTuple(args, "ii:runs", &rank, &dim) || check_dim(self, dim) < 0) return NULL;
    list = PyList_New(0);
    for (int64_t at = 0; list != NULL && weft_spec_run(raw_of(self), rank, dim, at, &run);
         at += run.length) {
        PyObject *item = Py_BuildValue("(LL)", (long long)run.start, (long long)run.length);

        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *spec_segments(PyObject *self, PyObject *args)
{
    PyObject *list, *given = Py_None;
    int64_t strides[WEFT_MAX_DIMS];
    weft_segment segment;
    int rank;

    if (!PyArg_ParseTuple(args, "i|O:segments", &rank, &given)) return NULL;
    if (given != Py_None) {
        int32_t count = numbers_of(given, strides);

        if (count >= 0 && count != weft_spec_dims(raw_of(self)))
            PyErr_SetString(PyExc_ValueError, "strides has one number for each dimension");
        if (PyErr_Occurred()) return NULL;
    }
    list = PyList_New(0);
    for (int64_t at = 0;
         list != NULL &&
         weft_spec_segment(raw_of(self), rank, given != Py_None ? strides : NULL, at, &segment);
         at += segment.length) {
        PyObject *item = Py_BuildValue("(LLL)", (long long)segment.global, (long long)segment.local,
                                       (long long)segment.length);

        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *spec_overlaps(PyObject *self, PyObject *args)
{
    const weft_spec *second;
    weft_overlap overlap;
    PyObject *list, *other;
    int rank, other_rank, dim;

    if (!PyArg_ParseTuple(args, "iOii:overlaps", &rank, &other, &other_rank, &dim)) return NULL;
    second = spec_of(other, "other");
    if (second == NULL || check_dim(self, dim) < 0 || check_dim(other, dim) < 0) return NULL;
    list = PyList_New(0);
    for (int64_t at = 0; list != NULL && weft_spec_overlap(raw_of(self), rank, second, other_rank,
                                                           dim, at, &overlap);
         at = overlap.start + overlap.length) {
        PyObject *item =
            Py_BuildValue("(LLLL)", (long long)overlap.start, (long long)overlap.length,
                          (long long)overlap.first, (long long)overlap.second);

        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *owners_balance(PyObject *module, PyObject *args)
{
    Py_ssize_t count;
    uint64_t *bytes;
    int32_t *out;
    PyObject *list, *result = NULL;
    int owners;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oi:owners_balance", &list, &owners)) return NULL;
    count = PySequence_Size(list);
    if (count < 0) return NULL;
    bytes = PyMem_Calloc((size_t)count + 1, sizeof *bytes);
    out = PyMem_Calloc((size_t)count + 1, sizeof *out);
    if (bytes == NULL || out == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);

        if (item != NULL) bytes[i] = PyLong_AsUnsignedLongLong(item);
        Py_XDECREF(item);
    }
    if (!PyErr_Occurred() && check(weft_owners_balance((uint32_t)count, bytes, owners, out)) == 0)
        result = PyList_New(count);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        PyObject *item = PyLong_FromLong(out[i]);

        if (item == NULL || PyList_SetItem(result, i, item) < 0) Py_CLEAR(result);
    }
    PyMem_Free(bytes);
    PyMem_Free(out);
    return result;
}

static int functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"owners_balance", owners_balance, METH_VARARGS,
         "owners_balance(bytes, owners)\n\nThe owner of each of these tensors, so that the owners "
         "have about equally many bytes: the c of its O(c)."},
        {0}};

    return PyModule_AddFunctions(module, functions);
}

int spec_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"mesh", get_mesh, NULL, "The mesh.", NULL},
        {"dtype", get_dtype, NULL, "The name of the dtype, such as \"bf16\".", NULL},
        {"shape", get_shape, NULL, "The sizes of the whole tensor.", NULL},
        {"elements", get_elements, NULL, "The number of elements of the whole tensor.", NULL},
        {"placements", get_placements, NULL, "The placements as text, one per axis.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"with_", (PyCFunction)(void (*)(void))spec_with, METH_VARARGS | METH_KEYWORDS,
         "with_(placements=None, mesh=None, dtype=None)\n\nThe same tensor in another layout, on "
         "another mesh or with another dtype."},
        {"from_shards", (PyCFunction)(void (*)(void))spec_from_shards,
         METH_VARARGS | METH_KEYWORDS | METH_CLASS,
         "from_shards(mesh, dtype, placements, dims, shards)\n\nThe layout whose shards have these "
         "shapes: dims sizes for each rank of the mesh."},
        {"shard", spec_shard, METH_VARARGS,
         "shard(rank)\n\nThe shape of a rank's shard and its first global index: (shape, offset)."},
        {"runs", spec_runs, METH_VARARGS,
         "runs(rank, dim)\n\nThe global indices of a dimension that a rank holds: (start, "
         "length)."},
        {"segments", spec_segments, METH_VARARGS,
         "segments(rank, strides=None)\n\nThe elements of a rank's shard that are consecutive in "
         "the whole tensor and in its memory: (global, local, length), in elements."},
        {"overlaps", spec_overlaps, METH_VARARGS,
         "overlaps(rank, other, other_rank, dim)\n\nThe global indices of a dimension that shards "
         "of two layouts share: (start, length, first, second), where first and second are the "
         "local indices of start."},
        {"_repr_svg_", spec_picture, METH_NOARGS,
         "_repr_svg_()\n\nA picture of what each rank holds, for notebooks."},
        {"dual", spec_dual, METH_NOARGS,
         "dual()\n\nThe layout of the gradient before the gradients of copies are added."},
        {"gradient", spec_gradient, METH_NOARGS,
         "gradient()\n\nThe layout that the gradient has by default."},
        {"gradient_of_move", spec_gradient_of_move, METH_O,
         "gradient_of_move(gradient)\n\nThe layout to which the gradient of a move from here is "
         "moved back, if it arrives in the layout `gradient`."},
        {"order_to_strides", spec_order_to_strides, METH_NOARGS,
         "order_to_strides()\n\nThe same layout with the order of splits written as strides."},
        {"strides_to_order", spec_strides_to_order, METH_NOARGS,
         "strides_to_order()\n\nThe same layout with strides written as an order of splits."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Spec(text, mesh)\n\nThe layout of a tensor, such as \"f32[4096,4096] S(0),R\"."
                    "\nEqual layouts are equal objects."},
        {Py_tp_new, spec_new},
        {Py_tp_dealloc, spec_dealloc},
        {Py_tp_str, spec_str},
        {Py_tp_repr, spec_repr},
        {Py_tp_hash, spec_hash},
        {Py_tp_richcompare, spec_compare},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Spec", sizeof(spec_object), 0, Py_TPFLAGS_DEFAULT, slots};

    if (functions_add(module) < 0) return -1;
    return type_add(module, &spec, &binding.spec);
}
