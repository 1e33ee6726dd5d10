/* attention.c - the kernel of an attention over a sequence that ranks share. */
#include "classes.h"
#include "interrupt.h"
#include "place.h"
#include "shard.h"

enum { TENSORS = 9 };

/* A tensor of a call: [batch, head, sequence, depth] by its strides, or without the depth. */
static PyObject *local_of(const weft_cp_local *local, const weft_cp_call *call, bool of_keys,
                          bool has_depth, bool written, weft_dl_device device)
{
    int64_t shape[] = {call->batch, of_keys ? call->key_heads : call->heads,
                       of_keys ? call->problem->keys : call->problem->queries, call->depth};
    int64_t strides[] = {local->batch, local->head, local->sequence, 1};

    if (local->memory == NULL) Py_RETURN_NONE;
    return shard_new(&(struct shard_facts){.data = local->memory,
                                           .dims = has_depth ? 4 : 3,
                                           .shape = shape,
                                           .strides = strides,
                                           .dtype = has_depth ? call->dtype : WEFT_DTYPE_F32,
                                           .device = device,
                                           .is_read_only = !written});
}

/* The tuple q, k, v, out, lse, d_out, d_q, d_k, d_v. */
static PyObject *locals_of(const weft_cp_call *call, weft_dl_device device)
{
    bool back = call->backward;
    const struct {
        const weft_cp_local *local;
        bool of_keys, has_depth, written, present;
    } parts[] = {{&call->q, false, true, false, true},    {&call->k, true, true, false, true},
                 {&call->v, true, true, false, true},     {&call->out, false, true, !back, true},
                 {&call->lse, false, false, !back, true}, {&call->d_out, false, true, false, back},
                 {&call->d_q, false, true, true, back},   {&call->d_k, true, true, true, back},
                 {&call->d_v, true, true, true, back}};
    PyObject *tuple = PyTuple_New(9);

    for (int i = 0; tuple != NULL && i < 9; i++) {
        PyObject *item = parts[i].present ? local_of(parts[i].local, call, parts[i].of_keys,
                                                     parts[i].has_depth, parts[i].written, device)
                                          : Py_NewRef(Py_None);

        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* The function gets the mask, its diagonal and window, the indices of the first query and key, the
 * first heads, whether it is a backward, the tensors, and the address of the stream. */
static weft_status call_kernel(void *user, const weft_cp_call *call)
{
    PyGILState_STATE state = PyGILState_Ensure();
    const weft_cp_problem *problem = call->problem;
    struct kernel *kernel = user;
    PyObject *tensors = locals_of(call, kernel->device), *arguments = NULL;
    weft_status status;

    if (tensors != NULL)
        arguments = Py_BuildValue(
            "(sLLLLLLOON)", choices_weft_cp_mask.texts[problem->mask], (long long)problem->diagonal,
            (long long)problem->window, (long long)problem->query_index,
            (long long)problem->key_index, (long long)call->first_head,
            (long long)call->first_key_head, call->backward ? Py_True : Py_False, tensors,
            PyLong_FromVoidPtr(weft_stream_native(call->context, call->stream)));
    status = kernel_run(kernel, arguments, tensors, "an attention");
    PyGILState_Release(state);
    return status;
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
                            struct kernel *kernel, PyObject *on)
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
    self->calls++;
    WAIT_BEGIN
    status = (backward ? weft_cp_backward : weft_cp_forward)(self->raw, &tensors, call_kernel,
                                                             kernel, stream);
    weft_stream_release(self->context->raw, &owned);
    WAIT_END
    self->calls--;
    if (status != WEFT_OK) return kernel_raise(kernel, status);
    Py_RETURN_NONE;
}

/* ARGS: the attention, the function, the tensors of the call, and the stream. */
static PyObject *attention_run(PyObject *module, PyObject *args)
{
    weft_cp_info info = {.struct_size = sizeof info};
    struct array arrays[TENSORS] = {0};
    struct kernel kernel = {0};
    PyObject *object, *list, *on, *result = NULL;
    context_object *context;
    Py_ssize_t count;
    int opened = 0;
    weft_cp *raw;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!O", &object, &kernel.function, &PyTuple_Type, &list, &on))
        return NULL;
    raw = handle_of(object, &class_weft_cp, "self");
    if (raw == NULL || check(weft_cp_get(raw, &info)) < 0) return NULL;
    count = PyTuple_Size(list);
    if (count != 5 && count != TENSORS)
        return PyErr_Format(PyExc_ValueError, "a forward has 5 tensors, a backward 9, not %zd",
                            count);
    context = ((handle_object *)object)->context;
    kernel.device = context->device;
    while (opened < count &&
           open_tensor(context, &info, PyTuple_GetItem(list, opened), opened,
                       count == TENSORS ? opened > 5 : opened > 2, &arrays[opened]) == 0)
        opened++;
    if (opened == count)
        result = run_kernel((handle_object *)object, arrays, count == TENSORS, &kernel, on);
    while (opened > 0)
        array_close(&arrays[--opened]);
    return result;
}

int attention_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {{"attention_run", attention_run, METH_VARARGS, NULL}, {0}};

    return PyModule_AddFunctions(module, functions);
}
