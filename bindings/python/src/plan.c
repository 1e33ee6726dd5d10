/* plan.c - weft.Plan. */
#include "binding.h"
#include "interrupt.h"

#include <stddef.h>
#include <string.h>

static weft_plan *raw_of(PyObject *self)
{
    return ((plan_object *)self)->raw;
}

static int read_goal(const char *text, uint32_t *out)
{
    static const char *const goals[] = {"time", "bytes", "memory"};

    for (uint32_t i = 0; i < 3; i++) {
        *out = i;
        if (strcmp(text, goals[i]) == 0) return 0;
    }
    PyErr_Format(PyExc_ValueError, "minimize is '%s'; expected 'time', 'bytes' or 'memory'", text);
    return -1;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"source", "target", "minimize", "memory_limit", "costs", NULL};
    weft_plan_options options = {.struct_size = sizeof options};
    const char *goal = "time", *costs = NULL;
    PyObject *source, *target, *self;
    weft_spec *from, *to;
    weft_cost_table *table = NULL;
    weft_plan *raw = NULL;
    unsigned long long limit = 0;
    weft_status status;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|sO&z:Plan", names, &source, &target, &goal,
                                     to_u64, &limit, &costs))
        return NULL;
    from = spec_of(source, "source");
    to = from != NULL ? spec_of(target, "target") : NULL;
    if (to == NULL || read_goal(goal, &options.minimize) < 0) return NULL;
    options.memory_limit = limit;
    if (check(weft_cost_table_open(costs, &table)) < 0) return NULL;
    options.costs = table;
    WAIT_BEGIN
    status = weft_plan_create(from, to, &options, &raw);
    WAIT_END
    weft_cost_table_release(&table);
    if (status != WEFT_OK) return raise_status(status);
    self = plan_wrap(raw);
    if (self == NULL) return NULL;
    ((plan_object *)self)->options = Py_BuildValue("(sKz)", goal, limit, costs);
    if (((plan_object *)self)->options == NULL) Py_CLEAR(self);
    return self;
}

static void plan_dealloc(PyObject *self)
{
    weft_plan_release(&((plan_object *)self)->raw);
    Py_XDECREF(((plan_object *)self)->options);
    object_free(self);
}

static weft_status print(const void *plan, char *buffer, size_t capacity, size_t *length)
{
    return weft_plan_print(plan, buffer, capacity, length);
}

/* A plan, and the one that would be chosen without it, or NULL. */
struct plan_pair {
    const weft_plan *plan, *runner_up;
};

static weft_status print_json(const void *object, char *buffer, size_t capacity, size_t *length)
{
    const struct plan_pair *pair = object;

    return weft_plan_print_json(pair->plan, pair->runner_up, buffer, capacity, length);
}

static PyObject *plan_str(PyObject *self)
{
    return text_of(print, raw_of(self));
}

static PyObject *plan_json(PyObject *self, PyObject *args)
{
    struct plan_pair pair = {raw_of(self), NULL};
    PyObject *other = Py_None;

    if (!PyArg_ParseTuple(args, "|O:json", &other) ||
        (other != Py_None && !is_of(other, binding.plan, "runner_up")))
        return NULL;
    if (other != Py_None) pair.runner_up = raw_of(other);
    return text_of(print_json, &pair);
}

static PyObject *plan_runner_up(PyObject *self, PyObject *unused)
{
    PyObject *given = ((plan_object *)self)->options;
    weft_plan_options options = {.struct_size = sizeof options};
    unsigned long long limit = 0;
    const char *goal = "time", *costs;
    weft_plan *raw = NULL;
    weft_status status;

    (void)unused;
    if (given != NULL && (!PyArg_ParseTuple(given, "sKz", &goal, &limit, &costs) ||
                          read_goal(goal, &options.minimize) < 0))
        return NULL;
    WAIT_BEGIN
    status = weft_plan_create_runner_up(raw_of(self), &options, &raw);
    WAIT_END
    if (status == WEFT_ERR_NOT_FOUND) Py_RETURN_NONE;
    return status == WEFT_OK ? plan_wrap(raw) : raise_status(status);
}

static PyObject *plan_measure(PyObject *self, PyObject *args)
{
    PyObject *step = Py_None;
    uint64_t first = 0, second = 0;
    unsigned long index;
    weft_status status;

    if (!PyArg_ParseTuple(args, "|O:measure", &step)) return NULL;
    index = step != Py_None ? PyLong_AsUnsignedLong(step) : 0;
    if (PyErr_Occurred()) return NULL;
    if (index > UINT32_MAX) index = UINT32_MAX;
    WAIT_BEGIN
    status = step == Py_None
                 ? weft_plan_measure(raw_of(self), &first, &second)
                 : weft_plan_measure_step(raw_of(self), (uint32_t)index, &first, &second);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    return Py_BuildValue("(KK)", (unsigned long long)first, (unsigned long long)second);
}

static PyObject *get_costs(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(weft_cost_table_name(weft_plan_costs(raw_of(self))));
}

static PyObject *get_spec(PyObject *self, bool target)
{
    weft_plan_info info = {.struct_size = sizeof info};
    const weft_spec *spec;

    if (check(weft_plan_get(raw_of(self), &info)) < 0) return NULL;
    spec = target ? info.to : info.from;
    if (spec == NULL) Py_RETURN_NONE;
    return spec_wrap(weft_spec_retain(spec));
}

static PyObject *get_source(PyObject *self, void *closure)
{
    (void)closure;
    return get_spec(self, false);
}

static PyObject *get_target(PyObject *self, void *closure)
{
    (void)closure;
    return get_spec(self, true);
}

/* A number of weft_plan_info; CLOSURE is its offset. */
static PyObject *get_number(PyObject *self, void *closure)
{
    weft_plan_info info = {.struct_size = sizeof info};

    if (check(weft_plan_get(raw_of(self), &info)) < 0) return NULL;
    return PyLong_FromUnsignedLongLong(*(uint64_t *)((char *)&info + (uintptr_t)closure));
}

static PyObject *get_flag(PyObject *self, void *closure)
{
    weft_plan_info info = {.struct_size = sizeof info};

    if (check(weft_plan_get(raw_of(self), &info)) < 0) return NULL;
    return PyBool_FromLong(*(bool *)((char *)&info + (uintptr_t)closure));
}

static PyObject *get_lower_bound(PyObject *self, void *closure)
{
    uint64_t bytes = 0;

    (void)closure;
    if (check(weft_plan_lower_bound(raw_of(self), &bytes)) < 0) return NULL;
    return PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *step_to_python(const weft_step_info *step)
{
    PyObject *from, *to;

    from = step->from != NULL ? spec_wrap(weft_spec_retain(step->from)) : Py_NewRef(Py_None);
    to = step->to != NULL ? spec_wrap(weft_spec_retain(step->to)) : Py_NewRef(Py_None);
    if (from == NULL || to == NULL) {
        Py_XDECREF(from);
        Py_XDECREF(to);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:N,s:N,s:K,s:K,s:K,s:K}", "kind",
                         weft_step_name((enum weft_step_kind)step->kind), "source", from, "target",
                         to, "bytes_sent", step->bytes_sent, "bytes_received", step->bytes_received,
                         "scratch_bytes", step->scratch_bytes, "cost_ns", step->cost_ns);
}

static PyObject *get_steps(PyObject *self, void *closure)
{
    weft_plan_info info = {.struct_size = sizeof info};
    PyObject *list;

    (void)closure;
    if (check(weft_plan_get(raw_of(self), &info)) < 0) return NULL;
    list = PyList_New(info.steps);
    for (uint32_t i = 0; list != NULL && i < info.steps; i++) {
        weft_step_info step = {.struct_size = sizeof step};
        PyObject *item = NULL;

        if (check(weft_plan_step_get(raw_of(self), i, &step)) == 0) item = step_to_python(&step);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *plan_picture(PyObject *self, PyObject *unused)
{
    PyObject *options = ((plan_object *)self)->options;

    (void)unused;
    return picture_of("of_plan", "(OO)", self, options != NULL ? options : Py_None);
}

int plan_type_add(PyObject *module)
{
#define AT(field) (void *)offsetof(weft_plan_info, field)
    static PyGetSetDef properties[] = {
        {"steps", get_steps, NULL, "A dictionary per step.", NULL},
        {"source", get_source, NULL, "The layout that the plan begins with.", NULL},
        {"target", get_target, NULL, "The layout that the plan ends with.", NULL},
        {"cost_ns", get_number, NULL, "The predicted time in nanoseconds.", AT(cost_ns)},
        {"bytes_received_max", get_number, NULL, "Bytes that the busiest rank receives.",
         AT(bytes_received_max)},
        {"scratch_bytes", get_number, NULL, "Scratch of the rank that needs most.", AT(peak_bytes)},
        {"digest", get_number, NULL, "A hash; equal plans have equal digests.", AT(digest)},
        {"exact", get_flag, NULL, "Whether bytes_received_max is counted.", AT(exact)},
        {"least", get_flag, NULL, "Whether no better plan exists among those known.", AT(least)},
        {"costs", get_costs, NULL, "The name of the cost table.", NULL},
        {"lower_bound", get_lower_bound, NULL,
         "Bytes that the busiest rank must receive in any method.", NULL},
        {0}};
#undef AT
    static PyMethodDef methods[] = {
        {"_repr_svg_", plan_picture, METH_NOARGS,
         "_repr_svg_()\n\nA picture of the steps, for notebooks."},
        {"json", plan_json, METH_VARARGS,
         "json(runner_up=None)\n\nThe plan as a JSON object, beside another plan."},
        {"runner_up", plan_runner_up, METH_NOARGS,
         "runner_up()\n\nThe plan that would be chosen if this one did not exist; None: there is "
         "no other plan."},
        {"measure", plan_measure, METH_VARARGS,
         "measure(step=None)\n\nThe bytes that the rank that receives most receives, and all "
         "ranks together.  Of a step: those that a rank sends at most, and receives at most."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Plan(source, target, minimize=\"time\", memory_limit=0, costs=None)\n\nThe "
                    "steps that take a tensor from one layout to another.  Nothing is moved."},
        {Py_tp_new, plan_new},
        {Py_tp_dealloc, plan_dealloc},
        {Py_tp_str, plan_str},
        {Py_tp_repr, plan_str},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Plan", sizeof(plan_object), 0, Py_TPFLAGS_DEFAULT, slots};

    return type_add(module, &spec, &binding.plan);
}
