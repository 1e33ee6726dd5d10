/* choice.c - rules of operators, and weft.Choice: a strategy for one call. */
#include "opcall.h"
#include "interrupt.h"

/* ---- rules ---- */

static PyObject *op_register(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "replace", NULL};
    const char *text;
    int replace = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|p:op_register", names, &text, &replace))
        return NULL;
    if (check(replace ? weft_op_replace(text) : weft_op_register(text)) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *op_remove(PyObject *module, PyObject *args)
{
    const char *name;

    (void)module;
    if (!PyArg_ParseTuple(args, "s:op_remove", &name) || check(weft_op_remove(name)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static weft_status print_format(const void *text, char *buffer, size_t capacity, size_t *length)
{
    return weft_op_format(text, buffer, capacity, length);
}

static weft_status print_rules(const void *name, char *buffer, size_t capacity, size_t *length)
{
    return weft_op_print(name, buffer, capacity, length);
}

static weft_status print_words(const void *name, char *buffer, size_t capacity, size_t *length)
{
    return weft_op_explain(name, buffer, capacity, length);
}

static weft_status print_names(const void *unused, char *buffer, size_t capacity, size_t *length)
{
    (void)unused;
    return weft_op_print_names(buffer, capacity, length);
}

static PyObject *op_text(PyObject *module, PyObject *args)
{
    static const struct {
        char letter;
        print_function print;
    } kinds[] = {{'f', print_format}, {'r', print_rules}, {'e', print_words}, {'n', print_names}};
    const char *text = NULL;
    int kind;

    (void)module;
    if (!PyArg_ParseTuple(args, "C|s:op_text", &kind, &text)) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].letter == kind) return text_of(kinds[i].print, text);
    PyErr_SetString(PyExc_ValueError, "the kind must be 'f', 'r', 'e' or 'n'");
    return NULL;
}

static PyObject *op_digest(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(weft_op_digest());
}

static PyObject *op_fallback_count(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(weft_op_fallback_count());
}

static PyObject *op_cache_clear(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    weft_op_cache_clear();
    Py_RETURN_NONE;
}

/* ---- questions ---- */

struct question {
    struct opcall call;
    weft_op_options options;
    struct handles fixed_inputs, fixed_outputs, wanted_outputs;
    weft_cost_table *costs;
};

static void close_question(struct question *question)
{
    opcall_close(&question->call);
    handles_close(&question->fixed_inputs);
    handles_close(&question->fixed_outputs);
    handles_close(&question->wanted_outputs);
    weft_cost_table_release(&question->costs);
}

static int check_count(const struct handles *list, uint32_t wanted, const char *name)
{
    if (list->items == NULL || list->count == wanted) return 0;
    PyErr_Format(PyExc_ValueError, "%s has %u entries; the call needs %u", name, list->count,
                 wanted);
    return -1;
}

/* C reads an entry of these lists for each input or output. */
static int check_counts(const struct question *question)
{
    uint32_t outputs;

    if (check_count(&question->fixed_inputs, question->call.inputs.count, "fixed_inputs") < 0)
        return -1;
    if (question->fixed_outputs.items == NULL && question->wanted_outputs.items == NULL) return 0;
    if (opcall_count_outputs(&question->call.call, &outputs) < 0) return -1;
    if (check_count(&question->fixed_outputs, outputs, "fixed_outputs") < 0) return -1;
    return check_count(&question->wanted_outputs, outputs, "wanted_outputs");
}

static int open_question(PyObject *args, PyObject *kwargs, struct question *out)
{
    static char *names[] = {
        "name",           "inputs",       "attrs", "outputs",      "mesh",
        "flags",          "memory_limit", "costs", "fixed_inputs", "fixed_outputs",
        "wanted_outputs", "mixed_dtypes", NULL};
    PyObject *inputs, *attrs = Py_None, *outputs = Py_None, *mesh = Py_None;
    PyObject *fixed_inputs = Py_None, *fixed_outputs = Py_None, *wanted = Py_None;
    const char *name, *costs = NULL;
    unsigned flags = 0;
    unsigned long long limit = 0;
    int mixed = 0;

    *out = (struct question){.options = {.struct_size = sizeof out->options}};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|OOOO&O&zOOOp", names, &name, &inputs, &attrs,
                                     &outputs, &mesh, to_u32, &flags, to_u64, &limit, &costs,
                                     &fixed_inputs, &fixed_outputs, &wanted, &mixed))
        return -1;
    if (opcall_open(name, inputs, binding.spec, attrs, outputs, mesh, &out->call) < 0) return -1;
    out->call.call.flags = mixed ? WEFT_OP_MIXED_DTYPES : 0;
    if (handles_open(fixed_inputs, binding.spec, true, "fixed_inputs", &out->fixed_inputs) < 0 ||
        handles_open(fixed_outputs, binding.spec, true, "fixed_outputs", &out->fixed_outputs) < 0 ||
        handles_open(wanted, binding.spec, true, "wanted_outputs", &out->wanted_outputs) < 0 ||
        check_counts(out) < 0 || check(weft_cost_table_open(costs, &out->costs)) < 0) {
        close_question(out);
        return -1;
    }
    out->options.flags = flags;
    out->options.memory_limit = limit;
    out->options.costs = out->costs;
    out->options.fixed_inputs = (const weft_spec *const *)out->fixed_inputs.raw;
    out->options.fixed_outputs = (const weft_spec *const *)out->fixed_outputs.raw;
    out->options.wanted_outputs = (const weft_spec *const *)out->wanted_outputs.raw;
    return 0;
}

typedef weft_status (*ask_function)(const weft_op_call *, const weft_op_options *,
                                    weft_op_choice **);

static PyObject *ask(PyObject *args, PyObject *kwargs, ask_function function)
{
    struct question question;
    weft_op_choice *raw = NULL;
    weft_status status;

    if (open_question(args, kwargs, &question) < 0) return NULL;
    WAIT_BEGIN
    status = function(&question.call.call, &question.options, &raw);
    WAIT_END
    close_question(&question);
    return status == WEFT_OK ? choice_wrap(raw) : raise_status(status);
}

static PyObject *op_check(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    return ask(args, kwargs, weft_op_check);
}

static PyObject *op_propose(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    return ask(args, kwargs, weft_op_propose);
}

static PyObject *op_list(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct question question;
    weft_op_list *raw = NULL;
    weft_status status;
    PyObject *list;

    (void)module;
    if (open_question(args, kwargs, &question) < 0) return NULL;
    WAIT_BEGIN
    status = weft_op_list_create(&question.call.call, &question.options, &raw);
    WAIT_END
    close_question(&question);
    if (status != WEFT_OK) return raise_status(status);
    list = PyList_New(weft_op_list_count(raw));
    for (uint32_t i = 0; list != NULL && i < weft_op_list_count(raw); i++) {
        PyObject *item = choice_wrap(weft_op_choice_retain(weft_op_list_choice(raw, i)));

        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
    }
    weft_op_list_release(&raw);
    return list;
}

/* ---- the type ---- */

static weft_op_choice *raw_of(PyObject *self)
{
    return ((any_object *)self)->raw;
}

PyObject *choice_wrap(weft_op_choice *raw)
{
    any_object *self = object_new(binding.op_choice);

    if (self == NULL)
        weft_op_choice_release(&raw);
    else
        self->raw = raw;
    return (PyObject *)self;
}

static void choice_dealloc(PyObject *self)
{
    weft_op_choice *raw = raw_of(self);

    weft_op_choice_release(&raw);
    object_free(self);
}

static weft_op_choice_info info_of(PyObject *self)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    if (weft_op_choice_get(raw_of(self), &info) != WEFT_OK) info = (weft_op_choice_info){0};
    return info;
}

static PyObject *input_at(PyObject *self, uint32_t i)
{
    return spec_or_none(weft_op_choice_input(raw_of(self), i));
}

static PyObject *output_at(PyObject *self, uint32_t i)
{
    return spec_or_none(weft_op_choice_output(raw_of(self), i));
}

static PyObject *gradient_at(PyObject *self, uint32_t i)
{
    return spec_or_none(weft_op_choice_gradient(raw_of(self), i));
}

static PyObject *output_gradient_at(PyObject *self, uint32_t i)
{
    return spec_or_none(weft_op_choice_output_gradient(raw_of(self), i));
}

static PyObject *move_at(PyObject *self, uint32_t i)
{
    const weft_plan *plan = weft_op_choice_move(raw_of(self), i);

    return plan != NULL ? plan_wrap(weft_plan_retain(plan)) : Py_NewRef(Py_None);
}

static PyObject *memory_at(PyObject *self, uint32_t i)
{
    uint32_t input = weft_op_choice_memory(raw_of(self), i);

    return input != UINT32_MAX ? PyLong_FromUnsignedLong(input) : Py_NewRef(Py_None);
}

typedef PyObject *item_function(PyObject *self, uint32_t i);

/* A property with an item for each input, or for each output. */
struct items {
    item_function *make;
    bool by_output;
};

static PyObject *get_items(PyObject *self, void *closure)
{
    const struct items *items = closure;
    weft_op_choice_info info = info_of(self);

    return tuple_made(self, items->by_output ? info.outputs : info.inputs, items->make);
}

static PyObject *get_rule(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(info_of(self).rule);
}

static PyObject *get_local(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(info_of(self).local);
}

static PyObject *get_cost(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(info_of(self).cost_ns);
}

static PyObject *get_output_cost(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(info_of(self).output_ns);
}

static PyMethodDef functions[] = {
    {"op_register", KEYWORDS(op_register), "op_register(text, replace=False)"},
    {"op_remove", op_remove, METH_VARARGS, "op_remove(name)"},
    {"op_text", op_text, METH_VARARGS,
     "op_text(kind, text=None)\n\n'f': the one form of rules; 'r': the rules of an operator; 'e': "
     "the same with words; 'n': the names of all operators."},
    {"op_digest", op_digest, METH_NOARGS, "op_digest()"},
    {"op_fallback_count", op_fallback_count, METH_NOARGS, "op_fallback_count()"},
    {"op_cache_clear", op_cache_clear, METH_NOARGS, "op_cache_clear()"},
    {"op_check", KEYWORDS(op_check), "op_check(name, inputs, ...)"},
    {"op_propose", KEYWORDS(op_propose), "op_propose(name, inputs, ...)"},
    {"op_list", KEYWORDS(op_list), "op_list(name, inputs, ...)"},
    {0}};

int choice_type_add(PyObject *module)
{
    static struct items inputs_items = {input_at, false};
    static struct items outputs_items = {output_at, true};
    static struct items gradients_items = {gradient_at, false};
    static struct items output_gradients_items = {output_gradient_at, true};
    static struct items moves_items = {move_at, false};
    static struct items memory_items = {memory_at, true};
    static PyGetSetDef properties[] = {
        {"rule", get_rule, NULL, "The rule.", NULL},
        {"inputs", get_items, NULL, "The layouts in which the operator reads its inputs.",
         &inputs_items},
        {"outputs", get_items, NULL, "The layouts of the outputs.", &outputs_items},
        {"gradients", get_items, NULL, "The layouts of the gradients of inputs.", &gradients_items},
        {"output_gradients", get_items, NULL, "The layouts of the gradients of outputs.",
         &output_gradients_items},
        {"moves", get_items, NULL, "The plan that moves each input; None: it is in place.",
         &moves_items},
        {"memory", get_items, NULL,
         "The input whose memory each output is; None: it has memory of its own.", &memory_items},
        {"local", get_local, NULL, "Whether no move communicates.", NULL},
        {"cost_ns", get_cost, NULL, "The predicted time of the moves.", NULL},
        {"output_ns", get_output_cost, NULL, "The predicted time of moves of outputs.", NULL},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "The layouts in which ranks can run an operator."},
                                  {Py_tp_dealloc, choice_dealloc},
                                  {Py_tp_getset, properties},
                                  {0, NULL}};
    static PyType_Spec spec = {"weft.Choice", sizeof(any_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return type_add(module, &spec, &binding.op_choice);
}
