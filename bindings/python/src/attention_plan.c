/* attention_plan.c - weft.AttentionPlan: which queries and keys each rank holds. */
#include "attention.h"

#include <string.h>

const char *const attention_masks[] = {"full", "causal", "window", "blocks", "custom"};

static weft_cp_plan *plan_of(PyObject *self)
{
    return ((sequence_object *)self)->raw;
}

static int find_name(const char *text, const char *const *names, uint32_t count, const char *what,
                     uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        *out = i;
        if (strcmp(text, names[i]) == 0) return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s is '%s'; the first choice is '%s'", what, text, names[0]);
    return -1;
}

static int read_names(const char *mask, const char *balance, const char *variant,
                      weft_cp_options *options)
{
    static const char *const balances[] = {"contiguous", "head_tail", "per_document"};
    static const char *const variants[] = {"ring", "gather", "heads"};

    if (find_name(mask, attention_masks, 3, "mask", &options->mask) < 0 ||
        find_name(balance, balances, 3, "balance", &options->balance) < 0)
        return -1;
    return find_name(variant, variants, 3, "variant", &options->variant);
}

/* The lengths of documents; PyMem_Free frees them.  None has none. */
static int read_documents(PyObject *list, int64_t **out, size_t *count)
{
    Py_ssize_t length = list != Py_None ? PySequence_Size(list) : 0;

    *out = NULL;
    *count = 0;
    if (list == Py_None) return 0;
    if (length >= 0) *out = PyMem_Calloc((size_t)length + 1, sizeof **out);
    if (*out == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    for (Py_ssize_t i = 0; *out != NULL && i < length && !PyErr_Occurred(); i++) {
        PyObject *number = PySequence_GetItem(list, i);

        (*out)[i] = number != NULL ? PyLong_AsLongLong(number) : 0;
        Py_XDECREF(number);
    }
    *count = (size_t)length;
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"mesh",    "axis",   "length",    "mask", "balance",
                            "variant", "window", "documents", NULL};
    const char *axis, *mask = "full", *balance = "contiguous", *variant = "ring";
    weft_cp_options options = {.struct_size = sizeof options};
    PyObject *mesh, *documents = Py_None;
    weft_cp_plan *raw = NULL;
    long long length, window = 0;
    sequence_object *self = NULL;
    int64_t *lengths = NULL;
    int32_t number;
    weft_mesh *on;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OsL|sssLO:AttentionPlan", names, &mesh, &axis,
                                     &length, &mask, &balance, &variant, &window, &documents))
        return NULL;
    on = mesh_of(mesh, "mesh");
    if (on == NULL || read_names(mask, balance, variant, &options) < 0 ||
        check(weft_mesh_find_axis(on, axis, &number)) < 0)
        return NULL;
    options.window = window;
    if (read_documents(documents, &lengths, &options.document_count) == 0) {
        options.documents = lengths;
        if (check(weft_cp_plan_create(on, axis, length, &options, &raw)) == 0)
            self = object_new(type);
        if (self == NULL) {
            weft_cp_plan_release(&raw);
        } else {
            self->raw = raw;
            self->mesh = weft_mesh_retain(on);
            self->axis = number;
        }
    }
    PyMem_Free(lengths);
    return (PyObject *)self;
}

static void plan_dealloc(PyObject *self)
{
    weft_cp_plan_release(&((sequence_object *)self)->raw);
    weft_mesh_release(&((sequence_object *)self)->mesh);
    object_free(self);
}

static PyObject *get_info(PyObject *self, void *closure)
{
    weft_cp_plan_info info = {.struct_size = sizeof info};

    (void)closure;
    if (check(weft_cp_plan_get(plan_of(self), &info)) < 0) return NULL;
    return Py_BuildValue(
        "{s:i,s:i,s:L,s:L,s:K,s:K}", "ranks", (int)info.ranks, "steps", (int)info.steps, "length",
        (long long)info.length, "longest", (long long)info.longest, "work_largest",
        (unsigned long long)info.work_largest, "work_total", (unsigned long long)info.work_total);
}

static PyObject *plan_runs(PyObject *self, PyObject *args)
{
    PyObject *list;
    int coordinate;
    weft_run run;

    if (!PyArg_ParseTuple(args, "i:runs", &coordinate)) return NULL;
    list = PyList_New(0);
    for (int64_t at = 0; list != NULL && weft_cp_plan_run(plan_of(self), coordinate, at, &run);
         at += run.length) {
        PyObject *pair = Py_BuildValue("(LL)", (long long)run.start, (long long)run.length);

        if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

static PyObject *plan_work(PyObject *self, PyObject *args)
{
    int coordinate;

    if (!PyArg_ParseTuple(args, "i:work", &coordinate)) return NULL;
    return PyLong_FromUnsignedLongLong(weft_cp_plan_work(plan_of(self), coordinate));
}

int attention_plan_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"info", get_info, NULL, "Ranks, steps, lengths and work.", NULL}, {0}};
    static PyMethodDef methods[] = {
        {"runs", plan_runs, METH_VARARGS,
         "runs(coordinate)\n\nThe indices of a rank, as pairs of start and length."},
        {"work", plan_work, METH_VARARGS,
         "work(coordinate)\n\nPairs of a query and a key that a rank computes."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "AttentionPlan(mesh, axis, length, mask=\"full\", balance=\"contiguous\", "
                    "variant=\"ring\", window=0, documents=None)\n\nWhich queries and keys each "
                    "rank of a mesh axis holds, and what it computes "
                    "(docs/training/context-parallel.md).\n\n"
                    ">>> import weft\n"
                    ">>> plan = weft.AttentionPlan(weft.mesh(\"cp=2\"), \"cp\", 8, \"causal\", "
                    "\"head_tail\")\n"
                    ">>> plan.runs(0), plan.work(0) == plan.work(1)\n"
                    "([(0, 2), (6, 2)], True)\n"},
        {Py_tp_new, plan_new},
        {Py_tp_dealloc, plan_dealloc},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.AttentionPlan", sizeof(sequence_object), 0, Py_TPFLAGS_DEFAULT,
                               slots};

    return type_add(module, &spec, &binding.cp_plan);
}
