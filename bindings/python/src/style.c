/* style.c - weft.style_layouts and weft.Styles: styles of tensor parallel. */
#include "binding.h"

#include <string.h>

static weft_styles *raw_of(PyObject *self)
{
    return ((any_object *)self)->raw;
}

static int read_part(const char *text, enum weft_style_part *out)
{
    static const char *const parts[] = {"weight", "bias", "input", "output"};

    for (unsigned i = 0; i < 4; i++) {
        *out = (enum weft_style_part)i;
        if (strcmp(text, parts[i]) == 0) return 0;
    }
    PyErr_Format(PyExc_ValueError, "part is '%s'; expected 'weight', 'bias', 'input' or 'output'",
                 text);
    return -1;
}

static int read_kind(const char *text, uint32_t *out)
{
    static const char *const kinds[] = {"column", "row", "sequence", "loss", "placed"};

    for (unsigned i = 0; i < 5; i++) {
        *out = i;
        if (strcmp(text, kinds[i]) == 0) return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 "style is '%s'; expected 'column', 'row', 'sequence', 'loss' or 'placed'", text);
    return -1;
}

/* The index of AXIS, a name or a number, in MESH. */
static int read_axis(PyObject *axis, const weft_mesh *mesh, int32_t *out)
{
    const char *name;

    if (PyLong_Check(axis)) return PyArg_Parse(axis, "i:axis", out) ? 0 : -1;
    name = PyUnicode_AsUTF8AndSize(axis, NULL);
    if (name == NULL) return -1;
    return check(weft_mesh_find_axis(mesh, name, out));
}

static PyObject *specs_of(weft_spec **specs)
{
    PyObject *tuple = PyTuple_New(WEFT_STYLE_LAYOUTS);

    for (int i = 0; i < WEFT_STYLE_LAYOUTS; i++) {
        PyObject *spec = spec_wrap(specs[i]);

        if (tuple == NULL)
            Py_XDECREF(spec);
        else if (spec == NULL || PyTuple_SetItem(tuple, i, spec) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *style_layouts(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"style",        "part",  "spec",   "axis", "embedding",
                            "sequence_dim", "given", "passed", NULL};
    weft_style style = {.struct_size = sizeof style};
    weft_spec *specs[WEFT_STYLE_LAYOUTS], *layout;
    const char *kind, *text;
    PyObject *spec, *axis;
    enum weft_style_part part;
    int embedding = 0, dim = 0;
    int32_t number;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ssOO|$pizz:style_layouts", names, &kind, &text,
                                     &spec, &axis, &embedding, &dim, &style.given, &style.passed))
        return NULL;
    style.embedding = embedding != 0;
    style.sequence_dim = dim;
    layout = spec_of(spec, "spec");
    if (layout == NULL || read_kind(kind, &style.kind) < 0 || read_part(text, &part) < 0 ||
        read_axis(axis, weft_spec_mesh(layout), &number) < 0 ||
        check(weft_style_layouts(&style, part, layout, number, specs)) < 0)
        return NULL;
    return specs_of(specs);
}

/* ---- lists of styles ---- */

static PyObject *styles_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "mesh", NULL};
    PyObject *mesh = Py_None;
    const weft_mesh *on = NULL;
    weft_styles *raw = NULL;
    any_object *self;
    const char *text;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|O:Styles", names, &text, &mesh)) return NULL;
    if (mesh != Py_None && (on = mesh_of(mesh, "mesh")) == NULL) return NULL;
    if (check(weft_styles_parse(text, on, &raw)) < 0) return NULL;
    self = object_new(binding.styles);
    if (self != NULL)
        self->raw = raw;
    else
        weft_styles_release(&raw);
    return (PyObject *)self;
}

static void styles_dealloc(PyObject *self)
{
    weft_styles *raw = raw_of(self);

    weft_styles_release(&raw);
    object_free(self);
}

static PyObject *get_mesh(PyObject *self, void *closure)
{
    (void)closure;
    return mesh_wrap(weft_mesh_retain(weft_styles_mesh(raw_of(self))));
}

static PyObject *styles_find(PyObject *self, PyObject *args)
{
    const char *name, *pattern;
    PyObject *axis;
    int32_t number;

    if (!PyArg_ParseTuple(args, "sO:find", &name, &axis) ||
        read_axis(axis, weft_styles_mesh(raw_of(self)), &number) < 0 ||
        check(weft_styles_find(raw_of(self), name, number, &pattern)) < 0)
        return NULL;
    return PyUnicode_FromString(pattern);
}

static PyObject *styles_apply(PyObject *self, PyObject *args)
{
    enum weft_style_part part;
    const char *name, *text;
    weft_spec *layout, *raw = NULL;
    PyObject *spec;

    if (!PyArg_ParseTuple(args, "ssO:apply", &name, &text, &spec) || read_part(text, &part) < 0)
        return NULL;
    layout = spec_of(spec, "spec");
    if (layout == NULL || check(weft_styles_apply(raw_of(self), name, part, layout, &raw)) < 0)
        return NULL;
    return spec_wrap(raw);
}

int style_types_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"style_layouts", KEYWORDS(style_layouts),
         "style_layouts(style, part, spec, axis, *, embedding=False, sequence_dim=0, given=None, "
         "passed=None)\n\nThe layouts of a part of a module: from, to, and those of its gradient.\n"
         "style is \"column\", \"row\", \"sequence\", \"loss\" or \"placed\"; part is \"weight\", "
         "\"bias\", \"input\" or \"output\".\n\n"
         ">>> import weft\n"
         ">>> y = weft.spec(\"f32[8,16] R\", \"tp=4\")\n"
         ">>> print(*weft.style_layouts(\"row\", \"output\", y, \"tp\", passed=\"S(1)\"), "
         "sep=\"; \")\n"
         "f32[8,16] P(sum); f32[8,16] S(1); f32[8,16] S(1); f32[8,16] R\n"},
        {0}};
    static PyGetSetDef properties[] = {{"mesh", get_mesh, NULL, "The mesh.", NULL}, {0}};
    static PyMethodDef methods[] = {
        {"find", styles_find, METH_VARARGS,
         "find(name, axis)\n\nThe pattern of the first line that matches a name on an axis."},
        {"apply", styles_apply, METH_VARARGS,
         "apply(name, part, spec)\n\nThe layout of a tensor by the lines that match its name."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Styles(text, mesh=None)\n\nA list of styles: a mesh, then lines of a pattern "
                    "of names, an axis and a style (docs/training/tensor-parallel.md)."},
        {Py_tp_new, styles_new},
        {Py_tp_dealloc, styles_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Styles", sizeof(any_object), 0, Py_TPFLAGS_DEFAULT, slots};

    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return type_add(module, &spec, &binding.styles);
}
