/* mesh.c - weft.Mesh. */
#include "binding.h"

static weft_mesh *raw_of(PyObject *self)
{
    return ((mesh_object *)self)->raw;
}

static PyObject *mesh_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", NULL};
    const char *text;
    weft_mesh *raw = NULL;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s:Mesh", names, &text)) return NULL;
    if (check(weft_mesh_parse(text, &raw)) < 0) return NULL;
    return mesh_wrap(raw);
}

static void mesh_dealloc(PyObject *self)
{
    weft_mesh_release(&((mesh_object *)self)->raw);
    object_free(self);
}

static weft_status print(const void *mesh, char *buffer, size_t capacity, size_t *length)
{
    return weft_mesh_print(mesh, buffer, capacity, length);
}

static PyObject *mesh_str(PyObject *self)
{
    return text_of(print, raw_of(self));
}

static PyObject *mesh_repr(PyObject *self)
{
    PyObject *text = mesh_str(self), *repr;

    if (text == NULL) return NULL;
    repr = PyUnicode_FromFormat("weft.mesh(%R)", text);
    Py_DECREF(text);
    return repr;
}

static Py_hash_t mesh_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)weft_mesh_hash(raw_of(self));

    return hash == -1 ? -2 : hash;
}

static PyObject *mesh_compare(PyObject *self, PyObject *other, int op)
{
    bool equal;

    if (!PyObject_TypeCheck(other, binding.mesh) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    equal = raw_of(self) == raw_of(other);
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_ssize_t mesh_length(PyObject *self)
{
    return weft_mesh_size(raw_of(self));
}

static PyObject *get_size(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(weft_mesh_size(raw_of(self)));
}

static PyObject *tuple_of_axes(PyObject *self, PyObject *(*entry)(const weft_mesh *, int32_t))
{
    int32_t axes = weft_mesh_axes(raw_of(self));
    PyObject *tuple = PyTuple_New(axes);

    for (int32_t i = 0; tuple != NULL && i < axes; i++) {
        PyObject *value = entry(raw_of(self), i);

        if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *axis_size(const weft_mesh *mesh, int32_t axis)
{
    return PyLong_FromLong(weft_mesh_axis_size(mesh, axis));
}

static PyObject *axis_name(const weft_mesh *mesh, int32_t axis)
{
    return PyUnicode_FromString(weft_mesh_axis_name(mesh, axis));
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of_axes(self, axis_size);
}

static PyObject *get_names(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of_axes(self, axis_name);
}

static PyObject *get_ranks(PyObject *self, void *closure)
{
    int32_t size = weft_mesh_size(raw_of(self));
    PyObject *tuple = PyTuple_New(size);

    (void)closure;
    for (int32_t i = 0; tuple != NULL && i < size; i++) {
        PyObject *rank = PyLong_FromLong(weft_mesh_rank_at(raw_of(self), i));

        if (rank == NULL || PyTuple_SetItem(tuple, i, rank) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *mesh_coordinate(PyObject *self, PyObject *args)
{
    int32_t coordinate[WEFT_MAX_AXES], axes = weft_mesh_axes(raw_of(self));
    PyObject *tuple;
    int rank;

    if (!PyArg_ParseTuple(args, "i:coordinate", &rank)) return NULL;
    if (check(weft_mesh_coord_of(raw_of(self), rank, coordinate)) < 0) return NULL;
    tuple = PyTuple_New(axes);
    for (int32_t i = 0; tuple != NULL && i < axes; i++) {
        PyObject *value = PyLong_FromLong(coordinate[i]);

        if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *mesh_slice(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"axes", "rank", NULL};
    const char *axes;
    weft_mesh *raw = NULL;
    int rank;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "si:slice", names, &axes, &rank)) return NULL;
    if (check(weft_mesh_slice(raw_of(self), axes, rank, &raw)) < 0) return NULL;
    return mesh_wrap(raw);
}

static PyObject *mesh_flatten(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"axes", "name", NULL};
    const char *axes = NULL, *name = NULL;
    weft_mesh *raw = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zz:flatten", names, &axes, &name)) return NULL;
    if (check(weft_mesh_flatten(raw_of(self), axes, name, &raw)) < 0) return NULL;
    return mesh_wrap(raw);
}

static PyObject *mesh_rank(PyObject *self, PyObject *args)
{
    int32_t coordinate[WEFT_MAX_AXES], rank;
    int64_t given[WEFT_MAX_DIMS];
    PyObject *list;
    int32_t count;

    if (!PyArg_ParseTuple(args, "O:rank", &list)) return NULL;
    count = numbers_of(list, given);
    if (count < 0) return NULL;
    if (count != weft_mesh_axes(raw_of(self)))
        return PyErr_Format(PyExc_ValueError, "the mesh has %d axes; the coordinate has %d numbers",
                            (int)weft_mesh_axes(raw_of(self)), (int)count);
    for (int32_t i = 0; i < count; i++)
        coordinate[i] = (int32_t)given[i];
    if (check(weft_mesh_rank(raw_of(self), coordinate, &rank)) < 0) return NULL;
    return PyLong_FromLong(rank);
}

static PyObject *mesh_find_axis(PyObject *self, PyObject *args)
{
    const char *name;
    int32_t axis;

    if (!PyArg_ParseTuple(args, "s:find_axis", &name) ||
        check(weft_mesh_find_axis(raw_of(self), name, &axis)) < 0)
        return NULL;
    return PyLong_FromLong(axis);
}

static PyObject *mesh_unflatten(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"axis", "sizes", "names", NULL};
    int64_t given[WEFT_MAX_DIMS];
    int32_t sizes[WEFT_MAX_DIMS], count;
    PyObject *list, *names = Py_None, *items = NULL, *result;
    const char **texts = NULL;
    uint32_t named = 0;
    weft_mesh *raw = NULL;
    int axis;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO|O:unflatten", words, &axis, &list, &names))
        return NULL;
    count = numbers_of(list, given);
    if (count < 0) return NULL;
    for (int32_t i = 0; i < count; i++)
        sizes[i] = (int32_t)given[i];
    if (names != Py_None && (texts = texts_of(names, "names", &items, &named)) == NULL) return NULL;
    if (texts != NULL && (int32_t)named != count) {
        PyErr_SetString(PyExc_ValueError, "sizes and names must have the same length");
        result = NULL;
    } else {
        int failed = check(weft_mesh_unflatten(raw_of(self), axis, count, sizes, texts, &raw));

        result = failed < 0 ? NULL : mesh_wrap(raw);
    }
    PyMem_Free(texts);
    Py_XDECREF(items);
    return result;
}

static PyObject *mesh_concatenate(PyObject *self, PyObject *args)
{
    PyObject *first, *second;
    weft_mesh *a, *b, *raw = NULL;

    if (!PyArg_ParseTuple(args, "OO:concatenate", &first, &second)) return NULL;
    a = mesh_of(first, "first");
    b = a != NULL ? mesh_of(second, "second") : NULL;
    if (b == NULL || check(weft_mesh_concatenate(raw_of(self), a, b, &raw)) < 0) return NULL;
    return mesh_wrap(raw);
}

static PyObject *get_hosts(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(weft_mesh_hosts(raw_of(self)));
}

static PyObject *get_devices(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(weft_mesh_devices_per_host(raw_of(self)));
}

static PyObject *mesh_host_of(PyObject *self, PyObject *args)
{
    int rank;

    if (!PyArg_ParseTuple(args, "i:host_of", &rank)) return NULL;
    return PyLong_FromLong(weft_mesh_host_of(raw_of(self), rank));
}

int mesh_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"size", get_size, NULL, "The number of ranks.", NULL},
        {"shape", get_shape, NULL, "The number of ranks along each axis.", NULL},
        {"hosts", get_hosts, NULL, "The number of hosts; 1 if it is not known.", NULL},
        {"devices_per_host", get_devices, NULL, "Devices per host; 0: not known.", NULL},
        {"names", get_names, NULL, "The names of the axes; \"\" for an axis without a name.", NULL},
        {"ranks", get_ranks, NULL, "The ranks, in row-major order of their coordinates.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"coordinate", mesh_coordinate, METH_VARARGS,
         "coordinate(rank)\n\nThe coordinate of a rank, one number per axis."},
        {"rank", mesh_rank, METH_VARARGS, "rank(coordinate)\n\nThe rank at a coordinate."},
        {"find_axis", mesh_find_axis, METH_VARARGS,
         "find_axis(name)\n\nThe number of the axis with this name."},
        {"unflatten", KEYWORDS(mesh_unflatten),
         "unflatten(axis, sizes, names=None)\n\nThe same ranks with an axis as several axes."},
        {"concatenate", mesh_concatenate, METH_VARARGS,
         "concatenate(first, second)\n\nThe axes of two slices of this mesh as one mesh."},
        {"host_of", mesh_host_of, METH_VARARGS, "host_of(rank)\n\nThe host of a rank."},
        {"slice", (PyCFunction)(void (*)(void))mesh_slice, METH_VARARGS | METH_KEYWORDS,
         "slice(axes, rank)\n\nThe submesh with these axes (\"dp,tp\") that contains the rank."},
        {"flatten", (PyCFunction)(void (*)(void))mesh_flatten, METH_VARARGS | METH_KEYWORDS,
         "flatten(axes=None, name=None)\n\nThe same ranks with these axes as one axis."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Mesh(text)\n\nRanks arranged along up to eight axes, such as \"dp=2,tp=4\".\n"
                    "Equal meshes are equal objects."},
        {Py_tp_new, mesh_new},
        {Py_tp_dealloc, mesh_dealloc},
        {Py_tp_str, mesh_str},
        {Py_tp_repr, mesh_repr},
        {Py_tp_hash, mesh_hash},
        {Py_tp_richcompare, mesh_compare},
        {Py_mp_length, mesh_length},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Mesh", sizeof(mesh_object), 0, Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.mesh);
}
