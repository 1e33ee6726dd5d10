/* attention.c - the arrays of an attention over a sequence that ranks share. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"

enum { TENSORS = 9 };

static const struct value_type given = {
    .kind = VALUE_RECORD, .is_pointer = 1, .record = &record_weft_cp_call_call};
static const struct callback kernel = {.name = "kernel", .arguments = &given, .count = 1};

static weft_status call_kernel(void *user, const weft_cp_call *call)
{
    const union value value = {.constant = call};

    return callback_run(&kernel, user, &value, NULL);
}

/* Open array I, which is written if WRITTEN. */
static int open_array(context_object *context, PyObject *object, int i, bool written,
                      struct array *out)
{
    static const char *const names[] = {"q", "k", "v", "out", "lse", "d_out", "d_q", "d_k", "d_v"};

    if (array_open(object, out) < 0) return -1;
    if ((!written || writable(out, names[i]) == 0) && place_fits(out, context, names[i]) == 0)
        return 0;
    array_close(out);
    return -1;
}

static weft_status run_tensors(const handle_object *self, const struct array *arrays, int count,
                               void *user, weft_stream *stream)
{
    weft_cp_tensors t = {.struct_size = sizeof t};
    weft_tensor **const all[TENSORS] = {&t.q,     &t.k,   &t.v,   &t.out, &t.lse,
                                        &t.d_out, &t.d_q, &t.d_k, &t.d_v};
    weft_status status = WEFT_OK;

    for (int i = 0; i < count && status == WEFT_OK; i++)
        status = place_tensor(&arrays[i], self->context, all[i]);
    if (status == WEFT_OK)
        status = (count == TENSORS ? weft_cp_backward : weft_cp_forward)(self->raw, &t, call_kernel,
                                                                         user, stream);
    for (int i = 0; i < count; i++)
        weft_tensor_release(all[i]);
    return status;
}

static PyObject *run_kernel(handle_object *self, const struct array *arrays, int count, void *user,
                            PyObject *on)
{
    weft_stream *stream, *owned;
    weft_status status;

    if (place_stream(on, &arrays[0], self->context, &stream, &owned) < 0) return NULL;
    WAIT_BEGIN
    status = run_tensors(self, arrays, count, user, stream);
    weft_stream_release(&owned);
    WAIT_END
    return status == WEFT_OK ? Py_NewRef(Py_None) : raise_status(status);
}

/* ARGS: the attention, the function, the tensors of the call, and the stream. */
static PyObject *attention_run(PyObject *module, PyObject *args)
{
    PyObject *object, *function, *list, *on, *result = NULL;
    struct array arrays[TENSORS] = {0};
    struct arena arena = {0};
    Py_ssize_t count;
    int opened = 0;
    void *user = NULL;
    weft_cp *raw;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!O", &object, &function, &PyTuple_Type, &list, &on))
        return NULL;
    raw = handle_of(object, &class_weft_cp, "self");
    if (raw == NULL) return NULL;
    count = PyTuple_Size(list);
    if (count != 5 && count != TENSORS)
        return PyErr_Format(PyExc_ValueError, "a forward has 5 tensors, a backward 9, not %zd",
                            count);
    if (arena_use(&arena, object, &class_weft_cp) == 0 &&
        callback_set(&kernel, function, &arena, &user) == 0)
        while (opened < count &&
               open_array(arena.context, PyTuple_GetItem(list, opened), opened,
                          count == TENSORS ? opened > 5 : opened > 2, &arrays[opened]) == 0)
            opened++;
    if (opened == count) result = run_kernel((handle_object *)object, arrays, (int)count, user, on);
    while (opened > 0)
        array_close(&arrays[--opened]);
    arena_end(&arena);
    return result;
}

int attention_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {{"attention_run", attention_run, METH_VARARGS, NULL}, {0}};

    return PyModule_AddFunctions(module, functions);
}
