/* opcall.c - see opcall.h. */
#include "opcall.h"

#include <string.h>

/* ---- attributes ---- */

/* Numbers in all lists of ITEMS, pairs of name and value. */
static Py_ssize_t count_numbers(PyObject *items)
{
    Py_ssize_t total = 0;

    for (Py_ssize_t i = 0; i < PyList_Size(items); i++) {
        PyObject *value = PyTuple_GetItem(PyList_GetItem(items, i), 1);

        if (PyUnicode_Check(value) || !PySequence_Check(value)) continue;
        total += PySequence_Size(value);
        if (PyErr_Occurred()) return -1;
    }
    return total;
}

static int read_list(PyObject *value, weft_op_attr *attr, int64_t *numbers)
{
    attr->kind = WEFT_ATTR_LIST;
    attr->count = (uint32_t)PySequence_Size(value);
    attr->list = numbers;
    for (uint32_t i = 0; i < attr->count; i++) {
        PyObject *number = PySequence_GetItem(value, (Py_ssize_t)i);

        numbers[i] = number != NULL ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static int read_attr(PyObject *pair, weft_op_attr *attr, int64_t *numbers)
{
    PyObject *value = PyTuple_GetItem(pair, 1);

    if (!PyUnicode_Check(PyTuple_GetItem(pair, 0))) {
        PyErr_SetString(PyExc_TypeError, "the name of an attribute must be a str");
        return -1;
    }
    attr->name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(pair, 0), NULL);
    if (attr->name == NULL) return -1;
    if (PyLong_Check(value)) {
        attr->kind = WEFT_ATTR_INT;
        attr->integer = PyLong_AsLongLong(value);
    } else if (PyFloat_Check(value)) {
        attr->kind = WEFT_ATTR_REAL;
        attr->real = PyFloat_AsDouble(value);
    } else if (PyUnicode_Check(value)) {
        attr->kind = WEFT_ATTR_TEXT;
        attr->text = PyUnicode_AsUTF8AndSize(value, NULL);
    } else if (PySequence_Check(value)) {
        return read_list(value, attr, numbers);
    } else {
        PyErr_Format(PyExc_TypeError, "attribute %s must be a number, a list of numbers or a str",
                     attr->name);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int read_attrs(PyObject *attrs, struct opcall *out)
{
    Py_ssize_t count, numbers, at = 0;

    if (attrs == Py_None) return 0;
    out->attr_items = PyMapping_Items(attrs);
    if (out->attr_items == NULL) return -1;
    count = PyList_Size(out->attr_items);
    numbers = count_numbers(out->attr_items);
    if (numbers < 0) return -1;
    out->attrs = PyMem_Calloc((size_t)count + 1, sizeof *out->attrs);
    out->numbers = PyMem_Calloc((size_t)numbers + 1, sizeof *out->numbers);
    if (out->attrs == NULL || out->numbers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_attr(PyList_GetItem(out->attr_items, i), &out->attrs[i], out->numbers + at) < 0)
            return -1;
        at += out->attrs[i].count;
    }
    out->call.attrs = out->attrs;
    out->call.attr_count = (uint32_t)count;
    return 0;
}

static PyObject *attr_value(const weft_op_attr *attr)
{
    PyObject *list;

    switch (attr->kind) {
    case WEFT_ATTR_INT:
        return PyLong_FromLongLong(attr->integer);
    case WEFT_ATTR_REAL:
        return PyFloat_FromDouble(attr->real);
    case WEFT_ATTR_TEXT:
        return PyUnicode_FromString(attr->text);
    default:
        break;
    }
    list = PyList_New(attr->count);
    for (uint32_t i = 0; list != NULL && i < attr->count; i++) {
        PyObject *number = PyLong_FromLongLong(attr->list[i]);

        if (number == NULL || PyList_SetItem(list, (Py_ssize_t)i, number) < 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *attrs_to_python(const weft_op_attr *attrs, uint32_t count)
{
    PyObject *all = PyDict_New();

    for (uint32_t i = 0; all != NULL && i < count; i++) {
        PyObject *value = attr_value(&attrs[i]);

        if (value == NULL || PyDict_SetItemString(all, attrs[i].name, value) < 0) Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

/* ---- outputs ---- */

static int read_output(PyObject *item, weft_op_tensor *out)
{
    const char *name;
    enum weft_dtype dtype;
    PyObject *shape;

    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "sO", &name, &shape)) {
        PyErr_SetString(PyExc_TypeError, "an output is a pair of dtype and shape");
        return -1;
    }
    if (check(weft_dtype_parse(name, &dtype)) < 0) return -1;
    out->dtype = dtype;
    out->dims = numbers_of(shape, out->shape);
    return out->dims < 0 ? -1 : 0;
}

static int read_outputs(PyObject *outputs, struct opcall *out)
{
    Py_ssize_t count;

    if (outputs == Py_None) return 0;
    count = PySequence_Size(outputs);
    if (count < 0) return -1;
    out->outputs = PyMem_Calloc((size_t)count + 1, sizeof *out->outputs);
    if (out->outputs == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; out->outputs != NULL && i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(outputs, i);

        if (item != NULL) read_output(item, &out->outputs[i]);
        Py_XDECREF(item);
    }
    out->call.outputs = out->outputs;
    out->call.output_count = (uint32_t)count;
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- calls ---- */

int opcall_open(const char *name, PyObject *inputs, PyTypeObject *type, PyObject *attrs,
                PyObject *outputs, PyObject *mesh, struct opcall *out)
{
    memset(out, 0, sizeof *out);
    out->call.struct_size = sizeof out->call;
    out->call.name = name;
    if (mesh != Py_None && (out->call.mesh = mesh_of(mesh, "mesh")) == NULL) return -1;
    if (handles_open(inputs, type, true, "inputs", &out->inputs) < 0) return -1;
    out->call.input_count = out->inputs.count;
    if (type == binding.spec) out->call.inputs = (const weft_spec *const *)out->inputs.raw;
    if (read_attrs(attrs, out) == 0 && read_outputs(outputs, out) == 0) return 0;
    opcall_close(out);
    return -1;
}

void opcall_close(struct opcall *call)
{
    handles_close(&call->inputs);
    Py_CLEAR(call->attr_items);
    PyMem_Free(call->attrs);
    PyMem_Free(call->numbers);
    PyMem_Free(call->outputs);
    memset(call, 0, sizeof *call);
}

int opcall_count_outputs(const weft_op_call *call, uint32_t *out)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    weft_op_choice *choice = NULL;
    weft_status status = weft_op_propose(call, NULL, &choice);

    if (status == WEFT_OK) status = weft_op_choice_get(choice, &info);
    weft_op_choice_release(&choice);
    *out = info.outputs;
    return check(status);
}
