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

/* Open tensor I, which has the elements of queries, of keys, or of queries without depth. */
static int open_tensor(context_object *context, const weft_cp_info *info, PyObject *object, int i,
                       bool written, struct array *out)
{
    static const char *const names[] = {"q", "k", "v", "out", "lse", "d_out", "d_q", "d_k", "d_v"};
    enum weft_dtype dtype = i == 4 ? WEFT_DTYPE_F32 : (enum weft_dtype)info->dtype;
    bool of_keys = i == 1 || i == 2 || i >= 7;
    uint64_t wanted = (uint64_t)(info->batch * (of_keys ? info->key_heads : info->heads) *
                                 info->length * (i == 4 ? 1 : info->depth));
    uint64_t count = 1;

    if (array_open(object, out) < 0) return -1;
    for (int32_t k = 0; k < out->dims; k++)
        count *= (uint64_t)out->shape[k];
    if (out->dtype != dtype || count != wanted)
        PyErr_Format(PyExc_ValueError, "%s has %llu elements of %s; %llu of %s are needed",
                     names[i], (unsigned long long)count, weft_dtype_name(out->dtype),
                     (unsigned long long)wanted, weft_dtype_name(dtype));
    else if (check_dense(out, names[i], written) == 0 && place_fits(out, context, names[i]) == 0)
        return 0;
    array_close(out);
    return -1;
}

static PyObject *run_kernel(handle_object *self, const struct array *arrays, bool backward,
                            void *user, PyObject *on)
{
    weft_cp_tensors tensors = {.struct_size = sizeof tensors,
                               .q = arrays[0].data,
                               .k = arrays[1].data,
                               .v = arrays[2].data,
                               .out = arrays[3].data,
                               .lse = arrays[4].data,
                               .d_out = arrays[5].data,
                               .d_q = arrays[6].data,
                               .d_k = arrays[7].data,
                               .d_v = arrays[8].data};
    weft_stream *stream, *owned;
    weft_status status;

    if (place_stream(on, &arrays[0], self->context, &stream, &owned) < 0) return NULL;
    WAIT_BEGIN
    status = (backward ? weft_cp_backward : weft_cp_forward)(self->raw, &tensors, call_kernel, user,
                                                             stream);
    weft_stream_release(self->context->raw, &owned);
    WAIT_END
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

/* ARGS: the attention, the function, the tensors of the call, and the stream. */
static PyObject *attention_run(PyObject *module, PyObject *args)
{
    weft_cp_info info = {.struct_size = sizeof info};
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
    if (raw == NULL || check(weft_cp_get(raw, &info)) < 0) return NULL;
    count = PyTuple_Size(list);
    if (count != 5 && count != TENSORS)
        return PyErr_Format(PyExc_ValueError, "a forward has 5 tensors, a backward 9, not %zd",
                            count);
    if (arena_use(&arena, object) == 0 && callback_set(&kernel, function, &arena, &user) == 0)
        while (opened < count &&
               open_tensor(arena.context, &info, PyTuple_GetItem(list, opened), opened,
                           count == TENSORS ? opened > 5 : opened > 2, &arrays[opened]) == 0)
            opened++;
    if (opened == count)
        result = run_kernel((handle_object *)object, arrays, count == TENSORS, user, on);
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
