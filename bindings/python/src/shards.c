/* shards.c - a layout from the shapes of its shards: their number follows from the mesh. */
#include "classes.h"

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

static PyObject *spec_from_shards(PyObject *module, PyObject *args, PyObject *kwargs)
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

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OssiO:from_shards", names, &mesh, &name, &text,
                                     &dims, &list))
        return NULL;
    on = handle_of(mesh, &class_weft_mesh, "mesh");
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

int shards_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {{"spec_from_shards", KEYWORDS(spec_from_shards), NULL}, {0}};

    return PyModule_AddFunctions(module, functions);
}
