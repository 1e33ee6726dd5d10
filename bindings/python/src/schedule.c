/* schedule.c - weft.Schedule and weft.Timeline: orders of work in a pipeline, and their times. */
#include "binding.h"

static weft_schedule *raw_of(PyObject *self)
{
    return ((any_object *)self)->raw;
}

PyObject *schedule_wrap(weft_schedule *raw)
{
    any_object *self = object_new(binding.schedule);

    if (self == NULL)
        weft_schedule_release(&raw);
    else
        self->raw = raw;
    return (PyObject *)self;
}

static PyObject *schedule_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "ranks", "microbatches", "chunks", NULL};
    weft_schedule *raw = NULL;
    const char *name;
    int ranks, microbatches, chunks = 0;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sii|i:Schedule", names, &name, &ranks,
                                     &microbatches, &chunks) ||
        check(weft_schedule_create(name, ranks, chunks, microbatches, &raw)) < 0)
        return NULL;
    return schedule_wrap(raw);
}

static PyObject *schedule_parse(PyObject *type, PyObject *args)
{
    weft_schedule *raw = NULL;
    const char *text;

    (void)type;
    if (!PyArg_ParseTuple(args, "s:parse", &text) || check(weft_schedule_parse(text, &raw)) < 0)
        return NULL;
    return schedule_wrap(raw);
}

static PyObject *schedule_known(PyObject *type, PyObject *unused)
{
    PyObject *names = PyList_New(0);

    (void)type;
    (void)unused;
    for (uint32_t i = 0; names != NULL && weft_schedule_known(i) != NULL; i++) {
        PyObject *name = PyUnicode_FromString(weft_schedule_known(i));

        if (name == NULL || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static void schedule_dealloc(PyObject *self)
{
    weft_schedule *raw = raw_of(self);

    weft_schedule_release(&raw);
    object_free(self);
}

static weft_status print(const void *schedule, char *buffer, size_t capacity, size_t *length)
{
    return weft_schedule_print(schedule, buffer, capacity, length);
}

static PyObject *schedule_str(PyObject *self)
{
    return text_of(print, raw_of(self));
}

static weft_schedule_info info_of(PyObject *self)
{
    weft_schedule_info info = {.struct_size = sizeof info};

    (void)check(weft_schedule_get(raw_of(self), &info));
    return info;
}

static PyObject *get_info(PyObject *self, void *closure)
{
    weft_schedule_info info = info_of(self);

    (void)closure;
    if (PyErr_Occurred()) return NULL;
    return Py_BuildValue("{s:s,s:i,s:i,s:i,s:L,s:K,s:O}", "name", info.name, "ranks",
                         (int)info.ranks, "stages", (int)info.stages, "microbatches",
                         (int)info.microbatches, "actions", (long long)info.actions, "digest",
                         (unsigned long long)info.digest, "lowered",
                         info.lowered ? Py_True : Py_False);
}

static PyObject *schedule_rank_of(PyObject *self, PyObject *args)
{
    int stage;

    if (!PyArg_ParseTuple(args, "i:rank_of", &stage)) return NULL;
    return PyLong_FromLong(weft_schedule_rank_of(raw_of(self), stage));
}

static PyObject *schedule_actions(PyObject *self, PyObject *args)
{
    const weft_action *actions;
    PyObject *list;
    size_t count = 0;
    int rank;

    if (!PyArg_ParseTuple(args, "i:actions", &rank) ||
        check(weft_schedule_actions(raw_of(self), rank, &actions, &count)) < 0)
        return NULL;
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *action =
            Py_BuildValue("(siiO)", weft_action_name(actions[i].kind), (int)actions[i].stage,
                          (int)actions[i].microbatch, actions[i].with_next ? Py_True : Py_False);

        if (action == NULL || PyList_Append(list, action) < 0) Py_CLEAR(list);
        Py_XDECREF(action);
    }
    return list;
}

static PyObject *schedule_lower(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sharded", "reduce", "merge", "late", NULL};
    int sharded = 0, reduce = 0, merge = 0, late = 0;
    weft_schedule *raw = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$pppp:lower", names, &sharded, &reduce, &merge,
                                     &late))
        return NULL;
    if (check(weft_schedule_lower(
            raw_of(self),
            (sharded ? WEFT_LOWER_SHARDED : 0U) | (reduce ? WEFT_LOWER_REDUCE : 0U) |
                (merge ? WEFT_LOWER_MERGE : 0U) | (late ? WEFT_LOWER_LATE : 0U),
            &raw)) < 0)
        return NULL;
    return schedule_wrap(raw);
}

/* ---- timelines ---- */

static weft_timeline *timeline_of(PyObject *self)
{
    return ((any_object *)self)->raw;
}

/* A dictionary with the members of weft_stage_cost that are not 0. */
static int read_cost(PyObject *item, weft_stage_cost *out)
{
    static char *names[] = {"forward", "input",  "weight",     "send_forward", "send_backward",
                            "unshard", "reduce", "activation", "parameters",   NULL};
    long long values[9] = {0};
    PyObject *none = PyTuple_New(0);
    int is_read = none != NULL && item != NULL && PyDict_Check(item) &&
                  PyArg_ParseTupleAndKeywords(none, item, "|$LLLLLLLLL:costs", names, &values[0],
                                              &values[1], &values[2], &values[3], &values[4],
                                              &values[5], &values[6], &values[7], &values[8]);

    Py_XDECREF(none);
    if (!is_read && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "costs must be a list of dictionaries, one per stage");
    for (int i = 0; is_read && i < 9; i++)
        if (values[i] < 0) PyErr_Format(PyExc_ValueError, "the cost %s is negative", names[i]);
    if (PyErr_Occurred()) return -1;
    *out = (weft_stage_cost){(uint64_t)values[0], (uint64_t)values[1], (uint64_t)values[2],
                             (uint64_t)values[3], (uint64_t)values[4], (uint64_t)values[5],
                             (uint64_t)values[6], (uint64_t)values[7], (uint64_t)values[8]};
    return 0;
}

static int read_costs(PyObject *list, int32_t stages, weft_stage_cost **out)
{
    *out = NULL;
    if (list == Py_None) return 0;
    if (PySequence_Size(list) != stages) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "costs must have one entry for each of %d stages",
                         (int)stages);
        return -1;
    }
    *out = PyMem_Calloc((size_t)stages, sizeof **out);
    for (int32_t i = 0; *out != NULL && i < stages; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        int result = read_cost(item, &(*out)[i]);

        Py_XDECREF(item);
        if (result < 0) return -1;
    }
    if (*out == NULL) PyErr_NoMemory();
    return *out != NULL ? 0 : -1;
}

static PyObject *schedule_simulate(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"costs", "memory_limit", NULL};
    weft_timeline_options options = {.struct_size = sizeof options};
    unsigned long long limit = 0;
    weft_stage_cost *stages;
    PyObject *costs = Py_None;
    weft_timeline *raw = NULL;
    any_object *made = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO&:simulate", names, &costs, to_u64, &limit))
        return NULL;
    options.memory_limit = limit;
    if (read_costs(costs, info_of(self).stages, &stages) == 0) {
        options.stages = stages;
        if (check(weft_timeline_create(raw_of(self), &options, &raw)) == 0)
            made = object_new(binding.timeline);
        if (made != NULL)
            made->raw = raw;
        else
            weft_timeline_release(&raw);
    }
    PyMem_Free(stages);
    return (PyObject *)made;
}

static void timeline_dealloc(PyObject *self)
{
    weft_timeline *raw = timeline_of(self);

    weft_timeline_release(&raw);
    object_free(self);
}

static weft_status print_json(const void *timeline, char *buffer, size_t capacity, size_t *length)
{
    return weft_timeline_print_json(timeline, buffer, capacity, length);
}

static PyObject *timeline_json(PyObject *self, PyObject *unused)
{
    (void)unused;
    return text_of(print_json, timeline_of(self));
}

static PyObject *get_figures(PyObject *self, void *closure)
{
    weft_timeline_info info = {.struct_size = sizeof info};

    (void)closure;
    if (check(weft_timeline_get(timeline_of(self), &info)) < 0) return NULL;
    return Py_BuildValue("{s:K,s:K,s:d,s:K}", "makespan", (unsigned long long)info.makespan, "busy",
                         (unsigned long long)info.busy, "idle_share", info.idle_share, "peak",
                         (unsigned long long)info.peak);
}

static PyObject *get_schedule(PyObject *self, void *closure)
{
    (void)closure;
    return schedule_wrap(weft_schedule_retain(weft_timeline_schedule(timeline_of(self))));
}

static PyObject *timeline_rank(PyObject *self, PyObject *args)
{
    weft_timeline_rank_info info = {.struct_size = sizeof info};
    int rank;

    if (!PyArg_ParseTuple(args, "i:rank", &rank) ||
        check(weft_timeline_rank_get(timeline_of(self), rank, &info)) < 0)
        return NULL;
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "busy", (unsigned long long)info.busy, "end",
                         (unsigned long long)info.end, "exposed", (unsigned long long)info.exposed,
                         "peak", (unsigned long long)info.peak);
}

static PyObject *timeline_span(PyObject *self, PyObject *args)
{
    uint64_t begin, end;
    Py_ssize_t index;
    int rank;

    if (!PyArg_ParseTuple(args, "in:span", &rank, &index) ||
        check(weft_timeline_span(timeline_of(self), rank, (size_t)index, &begin, &end)) < 0)
        return NULL;
    return Py_BuildValue("(KK)", (unsigned long long)begin, (unsigned long long)end);
}

static int timeline_type_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"figures", get_figures, NULL, "Makespan, busy time, idle share and peak memory.", NULL},
        {"schedule", get_schedule, NULL, "The schedule.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"rank", timeline_rank, METH_VARARGS, "rank(rank)\n\nThe figures of a rank."},
        {"span", timeline_span, METH_VARARGS,
         "span(rank, index)\n\nBegin and end of an action of a rank."},
        {"json", timeline_json, METH_NOARGS, "json()\n\nAs `weft schedule --json`."},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "The times at which ranks carry out a schedule."},
                                  {Py_tp_dealloc, timeline_dealloc},
                                  {Py_tp_getset, properties},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Timeline", sizeof(any_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    return type_add(module, &spec, &binding.timeline);
}

int schedule_types_add(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"info", get_info, NULL, "Name, ranks, stages, microbatches, actions and digest.", NULL},
        {0}};
    static PyMethodDef methods[] = {
        {"parse", schedule_parse, METH_VARARGS | METH_STATIC,
         "parse(text)\n\nThe schedule of a CSV text, as PyTorch writes it.  It must be valid."},
        {"known", schedule_known, METH_NOARGS | METH_STATIC,
         "known()\n\nThe names of the schedules that weft makes."},
        {"rank_of", schedule_rank_of, METH_VARARGS,
         "rank_of(stage)\n\nThe rank that runs a stage."},
        {"actions", schedule_actions, METH_VARARGS,
         "actions(rank)\n\nThe actions of a rank, in order: (kind, stage, microbatch, with_next)."},
        {"lower", KEYWORDS(schedule_lower),
         "lower(*, sharded=False, reduce=False, merge=False, late=False)\n\n"
         "The schedule with sends and receives."},
        {"simulate", KEYWORDS(schedule_simulate),
         "simulate(costs=None, memory_limit=0)\n\nThe timeline.  costs has a dictionary per stage: "
         "forward, input, weight, send_forward, send_backward, unshard, reduce, activation, "
         "parameters."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Schedule(name, ranks, microbatches, chunks=0)\n\n"
                    "The order of work in a pipeline; str() is CSV.\n\n"
                    ">>> import weft\n"
                    ">>> print(weft.Schedule(\"gpipe\", 2, 2).actions(0)[0])\n"
                    "('F', 0, 0, False)\n"
                    ">>> weft.Schedule(\"1f1b\", 2, 4).simulate().figures[\"makespan\"]\n"
                    "15\n"},
        {Py_tp_new, schedule_new},
        {Py_tp_dealloc, schedule_dealloc},
        {Py_tp_str, schedule_str},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"weft.Schedule", sizeof(any_object), 0, Py_TPFLAGS_DEFAULT, slots};

    if (type_add(module, &spec, &binding.schedule) < 0) return -1;
    return timeline_type_add(module);
}
