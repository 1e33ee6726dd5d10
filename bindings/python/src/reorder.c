/* reorder.c - orders of compute and communication. */
#include "binding.h"

enum { GIVEN_NODE = 7 }; /* parts of a node: kind, inputs, comm, time, alloc, given, kept */

static int read_inputs(PyObject *list, int32_t *out, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        long number = item != NULL ? PyLong_AsLong(item) : -1;

        Py_XDECREF(item);
        if (PyErr_Occurred()) return -1;
        out[i] = number >= INT32_MIN && number <= INT32_MAX ? (int32_t)number : -1;
    }
    return 0;
}

/* (kind, inputs, comm, time, alloc, given, kept).  *INPUTS is the caller's, also after a failure;
 * PyMem_Free frees it. */
static int read_node(PyObject *item, weft_node *node, int32_t **inputs)
{
    unsigned long long time, alloc;
    int comm, given, kept;
    Py_ssize_t count;
    unsigned kind;
    PyObject *list;

    if (!PyTuple_Check(item) || PyTuple_Size(item) != GIVEN_NODE) {
        PyErr_SetString(PyExc_TypeError, "a node is a tuple of kind, inputs, comm, time, alloc, "
                                         "given and kept");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "O&OiO&O&pp:node", to_u32, &kind, &list, &comm, to_u64, &time,
                          to_u64, &alloc, &given, &kept))
        return -1;
    count = PySequence_Size(list);
    if (count < 0) return -1;
    *inputs = PyMem_Calloc((size_t)count + 1, sizeof **inputs);
    if (*inputs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *node = (weft_node){.kind = kind,
                        .flags = (given ? WEFT_NODE_GIVEN : 0u) | (kept ? WEFT_NODE_KEPT : 0u),
                        .comm = comm,
                        .input_count = (uint32_t)count,
                        .inputs = *inputs,
                        .time = time,
                        .alloc = alloc};
    return read_inputs(list, *inputs, count);
}

static PyObject *order_of(const weft_reorder *reorder, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = PyLong_FromLong(weft_reorder_at(reorder, (size_t)i));

        if (item == NULL || PyList_SetItem(list, i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *collectives_of(const weft_reorder *reorder, uint32_t count)
{
    PyObject *list = PyList_New(count);

    for (uint32_t i = 0; list != NULL && i < count; i++) {
        weft_collective_info c = {.struct_size = sizeof c};
        PyObject *item = NULL;

        if (check(weft_reorder_collective_get(reorder, i, &c)) == 0)
            item = Py_BuildValue("{s:i,s:i,s:K,s:K,s:K,s:i,s:i,s:s,s:s}", "start", (int)c.start,
                                 "wait", (int)c.wait, "time", (unsigned long long)c.time,
                                 "exposed_before", (unsigned long long)c.exposed_before,
                                 "exposed_after", (unsigned long long)c.exposed_after, "moves_up",
                                 (int)c.moves_up, "moves_down", (int)c.moves_down, "limit_up",
                                 weft_reorder_limit_name((enum weft_reorder_limit)c.limit_up),
                                 "limit_down",
                                 weft_reorder_limit_name((enum weft_reorder_limit)c.limit_down));
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *result_of(const weft_reorder *reorder, Py_ssize_t count)
{
    weft_reorder_info info = {.struct_size = sizeof info};
    PyObject *order, *collectives;

    if (check(weft_reorder_get(reorder, &info)) < 0) return NULL;
    order = order_of(reorder, count);
    collectives = order != NULL ? collectives_of(reorder, info.collectives) : NULL;
    if (collectives == NULL) {
        Py_XDECREF(order);
        return NULL;
    }
    return Py_BuildValue(
        "(NNKKKKKKK)", order, collectives, (unsigned long long)info.time_before,
        (unsigned long long)info.time_after, (unsigned long long)info.exposed_before,
        (unsigned long long)info.exposed_after, (unsigned long long)info.peak_before,
        (unsigned long long)info.peak_after, (unsigned long long)info.digest);
}

static PyObject *run(PyObject *list, Py_ssize_t count, const weft_reorder_options *options)
{
    weft_node *nodes = PyMem_Calloc((size_t)count + 1, sizeof *nodes);
    int32_t **inputs = PyMem_Calloc((size_t)count + 1, sizeof *inputs);
    weft_reorder *reorder = NULL;
    PyObject *result = NULL;

    if (nodes == NULL || inputs == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);

        if (item != NULL) (void)read_node(item, &nodes[i], &inputs[i]);
        Py_XDECREF(item);
    }
    if (!PyErr_Occurred() &&
        check(weft_reorder_create(nodes, (size_t)count, options, &reorder)) == 0)
        result = result_of(reorder, count);
    weft_reorder_release(&reorder);
    for (Py_ssize_t i = 0; inputs != NULL && i < count; i++)
        PyMem_Free(inputs[i]);
    PyMem_Free(inputs);
    PyMem_Free(nodes);
    return result;
}

static PyObject *reorder(PyObject *module, PyObject *args)
{
    weft_reorder_options options = {.struct_size = sizeof options};
    unsigned long long limit;
    Py_ssize_t count;
    unsigned pass;
    PyObject *list;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&O&:reorder", &list, to_u32, &pass, to_u64, &limit)) return NULL;
    count = PySequence_Size(list);
    if (count < 0) return NULL;
    options.pass = pass;
    options.memory_limit = limit;
    return run(list, count, &options);
}

int reorder_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"reorder", reorder, METH_VARARGS, "reorder(nodes, method, memory_limit)"}, {0}};

    return PyModule_AddFunctions(module, functions);
}
