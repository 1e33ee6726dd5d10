/* comm_info.c - what a communicator knows of its ranks, its failure and its backend. */
#include "comm_info.h"

#include <string.h>

static weft_comm *raw_of(PyObject *self)
{
    return ((comm_object *)self)->raw;
}

PyObject *comm_world_rank(PyObject *self, PyObject *args)
{
    int rank;

    if (!PyArg_ParseTuple(args, "i:world_rank", &rank)) return NULL;
    return PyLong_FromLong(weft_comm_world_rank(raw_of(self), rank));
}

PyObject *comm_find_rank(PyObject *self, PyObject *args)
{
    int rank;

    if (!PyArg_ParseTuple(args, "i:find_rank", &rank)) return NULL;
    return PyLong_FromLong(weft_comm_find_rank(raw_of(self), rank));
}

PyObject *comm_same_host(PyObject *self, PyObject *args)
{
    int a, b;

    if (!PyArg_ParseTuple(args, "ii:same_host", &a, &b)) return NULL;
    return PyBool_FromLong(weft_comm_same_host(raw_of(self), a, b));
}

PyObject *comm_get_native(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(weft_comm_native(raw_of(self)));
}

PyObject *comm_check(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (check(weft_comm_async_error(raw_of(self))) < 0) return NULL;
    Py_RETURN_NONE;
}

/* It runs on the calling thread, which does not have the GIL. */
static void add_line(void *argument, const char *text)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    if (line == NULL || PyList_Append(argument, line) < 0) PyErr_Clear();
    Py_XDECREF(line);
    PyGILState_Release(state);
}

PyObject *comm_report(PyObject *self, PyObject *unused)
{
    PyObject *lines = PyList_New(0);

    (void)unused;
    if (lines == NULL) return NULL;
    WAIT_BEGIN
    weft_comm_dump(raw_of(self), add_line, lines);
    WAIT_END
    return lines;
}

static int find_name(const char *name, const char *const *names, uint32_t count, const char *what,
                     uint32_t *out)
{
    char list[512];

    for (uint32_t i = 0; i < count; i++) {
        *out = i;
        if (strcmp(names[i], name) == 0) return 0;
    }
    PyOS_snprintf(list, sizeof list, "%s", names[0]);
    for (uint32_t i = 1; i < count; i++) {
        size_t length = strlen(list);

        PyOS_snprintf(list + length, sizeof list - length, ", %s", names[i]);
    }
    PyErr_Format(PyExc_ValueError, "\"%s\" is not a %s; the %ss are %s", name, what, what, list);
    return -1;
}

int read_names(const char *collective, const char *reduction, uint32_t *collective_out,
               uint32_t *reduction_out)
{
#define NAME(name, value, text) text,
    static const char *const collectives[] = {WEFT_COLLECTIVE_LIST(NAME)};
    static const char *const reductions[] = {WEFT_REDUCTION_LIST(NAME)};
#undef NAME

    if (find_name(collective, collectives, WEFT_COLL_COUNT, "collective", collective_out) < 0)
        return -1;
    return find_name(reduction, reductions, WEFT_REDUCE_COUNT, "reduction", reduction_out);
}

PyObject *comm_support(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"collective", "dtype", "op", NULL};
    static const char *const levels[] = {"none", "emulated", "native"};
    const char *collective, *text, *op = "sum";
    enum weft_support_level level;
    uint32_t number, reduction;
    enum weft_dtype dtype;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ss|s:support", names, &collective, &text,
                                     &op) ||
        read_names(collective, op, &number, &reduction) < 0 ||
        check(weft_dtype_parse(text, &dtype)) < 0 ||
        check(weft_comm_support(raw_of(self), (enum weft_collective)number, dtype,
                                (enum weft_reduction)reduction, &level)) < 0)
        return NULL;
    return PyUnicode_FromString(levels[level]);
}
