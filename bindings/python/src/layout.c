/* layout.c - weft.Layout, the placements of a model's tensors, and weft.Rules, which rename and
 * join tensors. */
#include "checkpoint.h"

int layout_of(PyObject *object, weft_layout **out)
{
    *out = NULL;
    if (object == Py_None) return 0;
    if (!is_of(object, binding.layout, "layout")) return -1;
    *out = ((any_object *)object)->raw;
    return 0;
}

/* The mesh of an optional argument. */
static int optional_mesh(PyObject *object, weft_mesh **out)
{
    *out = NULL;
    if (object == Py_None) return 0;
    *out = mesh_of(object, "mesh");
    return *out == NULL ? -1 : 0;
}

static PyObject *wrap_layout(PyTypeObject *type, weft_status status, weft_layout *raw)
{
    any_object *self;

    if (status != WEFT_OK) return raise_status(status);
    self = object_new(type);
    if (self == NULL)
        weft_layout_release(&raw);
    else
        self->raw = raw;
    return (PyObject *)self;
}

static PyObject *layout_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "mesh", NULL};
    PyObject *given = Py_None;
    weft_layout *raw = NULL;
    weft_mesh *mesh;
    const char *text;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|O:Layout", names, &text, &given) ||
        optional_mesh(given, &mesh) < 0)
        return NULL;
    status = weft_layout_parse(text, mesh, &raw);
    return wrap_layout(type, status, raw);
}

static PyObject *layout_open(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "mesh", NULL};
    PyObject *given = Py_None, *path;
    weft_layout *raw = NULL;
    weft_mesh *mesh;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O:open", names, PyUnicode_FSConverter, &path,
                                     &given))
        return NULL;
    if (optional_mesh(given, &mesh) < 0) {
        Py_DECREF(path);
        return NULL;
    }
    status = weft_layout_open(PyBytes_AsString(path), mesh, &raw);
    Py_DECREF(path);
    return wrap_layout((PyTypeObject *)type, status, raw);
}

static void layout_dealloc(PyObject *self)
{
    weft_layout *raw = ((any_object *)self)->raw;

    weft_layout_release(&raw);
    object_free(self);
}

static PyObject *layout_mesh(PyObject *self, void *closure)
{
    (void)closure;
    return mesh_wrap(weft_mesh_retain(weft_layout_mesh(((any_object *)self)->raw)));
}

static PyObject *layout_find(PyObject *self, PyObject *args)
{
    const char *name, *placements;

    if (!PyArg_ParseTuple(args, "s:find", &name) ||
        check(weft_layout_find(((any_object *)self)->raw, name, &placements)) < 0)
        return NULL;
    return PyUnicode_FromString(placements);
}

/* ---- rules ---- */

static PyObject *wrap_rules(PyTypeObject *type, weft_status status, weft_rules *raw)
{
    any_object *self;

    if (status != WEFT_OK) return raise_status(status);
    self = object_new(type);
    if (self == NULL)
        weft_rules_release(&raw);
    else
        self->raw = raw;
    return (PyObject *)self;
}

static PyObject *rules_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "values", NULL};
    const char *text, *values = NULL;
    weft_rules *raw = NULL;
    weft_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|z:Rules", names, &text, &values)) return NULL;
    status = weft_rules_parse(text, values, &raw);
    return wrap_rules(type, status, raw);
}

static PyObject *rules_open(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "values", NULL};
    const char *values = NULL;
    weft_rules *raw = NULL;
    weft_status status;
    PyObject *path;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|z:open", names, PyUnicode_FSConverter, &path,
                                     &values))
        return NULL;
    status = weft_rules_open(PyBytes_AsString(path), values, &raw);
    Py_DECREF(path);
    return wrap_rules((PyTypeObject *)type, status, raw);
}

static void rules_dealloc(PyObject *self)
{
    weft_rules *raw = ((any_object *)self)->raw;

    weft_rules_release(&raw);
    object_free(self);
}

static int rules_type_add(PyObject *module)
{
    static PyMethodDef methods[] = {{"open", KEYWORDS(rules_open) | METH_CLASS,
                                     "open(path, values=None)\n\nThe rules of a file."},
                                    {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Rules(text, values=None)\n\nHow the tensors of a checkpoint become others.  "
                    "values replaces those of lines `let`: \"heads=32,kv_heads=8\"."},
        {Py_tp_new, rules_new},
        {Py_tp_dealloc, rules_dealloc},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Rules", sizeof(any_object), 0, Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.rules);
}

int layout_types_add(PyObject *module)
{
    static PyGetSetDef properties[] = {{"mesh", layout_mesh, NULL, "The mesh.", NULL}, {0}};
    static PyMethodDef methods[] = {
        {"open", KEYWORDS(layout_open) | METH_CLASS,
         "open(path, mesh=None)\n\nThe layout of a file."},
        {"find", layout_find, METH_VARARGS, "find(name)\n\nThe placements of a tensor."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Layout(text, mesh=None)\n\nThe placements of all tensors of a model.  mesh "
                    "replaces that of the text."},
        {Py_tp_new, layout_new},
        {Py_tp_dealloc, layout_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Layout", sizeof(any_object), 0, Py_TPFLAGS_DEFAULT, slots};

    if (rules_type_add(module) < 0) return -1;
    return type_add(module, &spec, &binding.layout);
}
