/* files.c - what of file.h needs the memory of arrays, a list whose length only the checkpoint
 * knows, or a function of Python. */
#include "classes.h"
#include "interrupt.h"
#include "tensor.h"

#include <stddef.h>
#include <string.h>

/* Call CALL, which returns a status, without the GIL; OBJECT cannot be closed meanwhile. */
#define CALL_WITH(object, status, call)                                                            \
    do {                                                                                           \
        ((handle_object *)(object))->calls++;                                                      \
        WAIT_BEGIN(status) = (call);                                                               \
        WAIT_END((handle_object *)(object))->calls--;                                              \
    } while (0)

/* ---- arrays ---- */

/* Open ARRAY, which is in host memory, row-major and without gaps. */
static int open_host(PyObject *object, const char *name, bool written, struct array *out)
{
    if (array_open(object, out) < 0) return -1;
    if (out->device.type != WEFT_DL_CPU)
        PyErr_Format(PyExc_ValueError, "%s is not in host memory", name);
    else if (check_dense(out, name, written) == 0)
        return 0;
    array_close(out);
    return -1;
}

/* 0 if ARRAY has room for NEEDED bytes. */
static int check_target(const struct array *array, uint64_t needed)
{
    if (array_bytes(array) >= needed) return 0;
    PyErr_Format(PyExc_ValueError, "%llu bytes are read, but target has %llu", needed,
                 array_bytes(array));
    return -1;
}

static PyObject *ended(struct array *array, weft_status status)
{
    array_close(array);
    if (PyErr_Occurred()) return NULL;
    if (status != WEFT_OK) return raise_status(status);
    Py_RETURN_NONE;
}

/* Numbers of GIVEN, one per dimension; NULL for None. */
struct box {
    int64_t numbers[WEFT_MAX_DIMS];
    const int64_t *given;
    int32_t count;
};

static int read_box(PyObject *given, struct box *out)
{
    out->given = given != Py_None ? out->numbers : NULL;
    out->count = given != Py_None ? numbers_of(given, out->numbers) : 0;
    return out->count < 0 ? -1 : 0;
}

static int check_box(const struct box *box, int32_t dims)
{
    if (box->given == NULL || box->count == dims) return 0;
    PyErr_Format(PyExc_ValueError, "expected %d numbers, one per dimension, not %d", (int)dims,
                 (int)box->count);
    return -1;
}

/* Read to ARRAY; nothing runs code of the caller, who could close the checkpoint. */
static PyObject *read_opened(PyObject *object, uint64_t index, const struct box *offset,
                             const struct box *sizes, struct array *array)
{
    weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
    const int64_t *start = offset->given, *extent = sizes->given;
    weft_checkpoint *raw = handle_of(object, &class_weft_checkpoint, "checkpoint");
    weft_status status;
    uint64_t count = 1;

    if (raw == NULL || check(weft_checkpoint_tensor_get(raw, index, &tensor)) < 0 ||
        check_box(offset, tensor.dims) < 0 || check_box(sizes, tensor.dims) < 0)
        return ended(array, WEFT_OK);
    for (int32_t i = 0; i < tensor.dims; i++)
        count *= (uint64_t)(extent != NULL ? extent[i]
                                           : tensor.shape[i] - (start != NULL ? start[i] : 0));
    if (check_target(array, (count * tensor.bits + 7) / 8) < 0) return ended(array, WEFT_OK);
    CALL_WITH(object, status, weft_checkpoint_read(raw, index, start, extent, array->data));
    return ended(array, status);
}

static PyObject *read_part(PyObject *module, PyObject *args)
{
    PyObject *object, *target, *offset, *sizes;
    struct box start, extent;
    unsigned long long index;
    struct array array;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&OOO:checkpoint_read", &object, to_u64, &index, &target, &offset,
                          &sizes) ||
        read_box(offset, &start) < 0 || read_box(sizes, &extent) < 0 ||
        open_host(target, "target", true, &array) < 0)
        return NULL;
    return read_opened(object, index, &start, &extent, &array);
}

static PyObject *read_shard(PyObject *module, PyObject *args)
{
    PyObject *object, *target, *layout;
    unsigned long long index;
    weft_checkpoint *raw;
    weft_spec *spec;
    weft_status status;
    struct array array;
    int rank;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&OOi:checkpoint_read_shard", &object, to_u64, &index, &target,
                          &layout, &rank) ||
        (spec = spec_of(layout, "spec")) == NULL || open_host(target, "target", true, &array) < 0)
        return NULL;
    raw = handle_of(object, &class_weft_checkpoint, "checkpoint");
    if (raw == NULL || check_target(&array, weft_spec_shard_bytes(spec, rank)) < 0)
        return ended(&array, WEFT_OK);
    CALL_WITH(object, status, weft_checkpoint_read_shard(raw, index, spec, rank, array.data));
    return ended(&array, status);
}

/* 0 if the array for tensor NAME has DIMS dimensions and the DTYPE of weft or, in small letters and
 * without `_`, of safetensors. */
static int check_source(const struct array *array, const char *name, int dims, const char *dtype)
{
    enum weft_dtype wanted = WEFT_DTYPE_COUNT;

    if (weft_dtype_parse(dtype, &wanted) != WEFT_OK || array->dtype != wanted)
        PyErr_Format(PyExc_TypeError, "tensor %s is %s, the array %s", name, dtype,
                     weft_dtype_name(array->dtype));
    else if (array->dims != dims)
        PyErr_Format(PyExc_ValueError, "tensor %s has %d dimensions, the array %d", name, dims,
                     (int)array->dims);
    else
        return 0;
    return -1;
}

static PyObject *write_part(PyObject *module, PyObject *args)
{
    PyObject *object, *source, *offset;
    weft_checkpoint_writer *raw;
    struct box start;
    unsigned long long index;
    weft_status status;
    struct array array;
    const char *dtype, *name;
    int dims;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&issOO:checkpoint_write", &object, to_u64, &index, &dims, &dtype,
                          &name, &source, &offset) ||
        read_box(offset, &start) < 0 || check_box(&start, dims) < 0 ||
        open_host(source, "array", false, &array) < 0)
        return NULL;
    raw = handle_of(object, &class_weft_checkpoint_writer, "writer");
    if (raw == NULL || check_source(&array, name, dims, dtype) < 0) return ended(&array, WEFT_OK);
    CALL_WITH(object, status,
              weft_checkpoint_write(raw, index, start.given, array.shape, array.data));
    return ended(&array, status);
}

/* ---- loading ---- */

static PyObject *load_all(PyObject *object, context_object *context, weft_layout *layout,
                          const weft_load_options *options)
{
    weft_checkpoint *from = handle_of(object, &class_weft_checkpoint, "checkpoint");
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_tensor **tensors;
    weft_status status;
    PyObject *result;
    size_t count;

    if (from == NULL || check(weft_checkpoint_get(from, &info)) < 0) return NULL;
    count = options->names != NULL ? options->count : (size_t)info.tensors;
    tensors = PyMem_Calloc(count + 1, sizeof(weft_tensor *));
    if (tensors == NULL) return PyErr_NoMemory();
    CALL_WITH(object, status, weft_load(context->raw, from, layout, options, tensors));
    result =
        status == WEFT_OK ? tensors_wrap(tensors, (uint32_t)count, context) : raise_status(status);
    PyMem_Free(tensors);
    return result;
}

static PyObject *load(PyObject *module, PyObject *args)
{
    static const struct value_type names = {
        .name = "names", .kind = VALUE_LIST, .element = VALUE_TEXT, .of = -1};
    static const struct value_type layout = {
        .name = "layout", .kind = VALUE_HANDLE, .handle = &class_weft_layout};
    weft_load_options options = {.struct_size = sizeof options};
    PyObject *given, *checkpoint, *in, *list, *result = NULL;
    context_object *context;
    struct arena arena = {0};
    weft_layout *raw = NULL;
    void *texts = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOi:load", &given, &checkpoint, &in, &list, &options.jobs) ||
        (context = context_of(given)) == NULL || arena_use(&arena, given) < 0)
        return NULL;
    if (value_read(&layout, in, &arena, &raw) == 0 &&
        (list == Py_None || list_read(&names, list, &arena, &texts, &options.count) == 0)) {
        options.names = texts;
        result = load_all(checkpoint, context, raw, &options);
    }
    arena_end(&arena);
    return result;
}

/* ---- resharding ---- */

/* STATE: a function that gets the bytes done and in all, and may return False to stop; or None. */
static bool call_progress(void *state, uint64_t done, uint64_t total)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result = NULL;
    bool goes_on = PyErr_CheckSignals() == 0;

    if (goes_on && state != Py_None) {
        result = PyObject_CallFunction(state, "KK", done, total);
        goes_on = result != NULL && result != Py_False;
    }
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return goes_on;
}

#define OPTION(field, type, ...)                                                                   \
    {                                                                                              \
        .name = #field, .kind = type, .offset = offsetof(weft_reshard_options, field), __VA_ARGS__ \
    }

static const struct value_type reshard_fields[] = {
    OPTION(layout, VALUE_HANDLE, .is_optional = 1, .handle = &class_weft_layout),
    OPTION(format, VALUE_ENUM, .is_optional = 1, .choices = &choices_weft_file_format),
    OPTION(replace, VALUE_BOOL),
    OPTION(file_bytes, VALUE_U64),
    OPTION(checksums, VALUE_BOOL),
    OPTION(keep, VALUE_BOOL),
    OPTION(resume, VALUE_BOOL),
    OPTION(memory, VALUE_U64),
    OPTION(jobs, VALUE_I32)};

static const struct record reshard_record = {
    .count = sizeof reshard_fields / sizeof *reshard_fields, .fields = reshard_fields};

static int read_options(PyObject *given, struct arena *arena, weft_reshard_options *out)
{
    Py_ssize_t position = 0;
    PyObject *name, *value;

    while (given != NULL && PyDict_Next(given, &position, &name, &value)) {
        int result = record_set(&reshard_record, (char *)out, name, value, arena);

        if (result == 0) PyErr_Format(PyExc_TypeError, "reshard() has no argument '%U'", name);
        if (result <= 0) return -1;
    }
    return 0;
}

/* The plan keeps the checkpoint, the layout and the function. */
static PyObject *reshard_create(PyObject *module, PyObject *args, PyObject *kwargs)
{
    weft_reshard_options options = {.struct_size = sizeof options, .progress = call_progress};
    PyObject *checkpoint, *path, *progress, *layout, *keeps, *made = NULL;
    weft_reshard *raw = NULL;
    struct arena arena = {0};
    weft_checkpoint *from;
    weft_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&O:reshard_create", &checkpoint, PyUnicode_FSConverter, &path,
                          &progress))
        return NULL;
    if (read_options(kwargs, &arena, &options) == 0 &&
        (from = handle_of(checkpoint, &class_weft_checkpoint, "checkpoint")) != NULL) {
        layout = kwargs != NULL ? PyDict_GetItemString(kwargs, "layout") : NULL;
        keeps = PyTuple_Pack(3, checkpoint, layout != NULL ? layout : Py_None, progress);
        options.state = progress;
        CALL_WITH(checkpoint, status,
                  weft_reshard_create(from, PyBytes_AsString(path), &options, &raw));
        if (status != WEFT_OK)
            raise_status(status);
        else if (keeps != NULL)
            made = handle_make(&class_weft_reshard, raw, true, keeps);
        else
            weft_reshard_close(&raw);
        Py_XDECREF(keeps);
    }
    arena_end(&arena);
    Py_DECREF(path);
    return made;
}

int file_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {{"checkpoint_read", read_part, METH_VARARGS, NULL},
                                      {"checkpoint_read_shard", read_shard, METH_VARARGS, NULL},
                                      {"checkpoint_write", write_part, METH_VARARGS, NULL},
                                      {"load", load, METH_VARARGS, NULL},
                                      {"reshard_create", KEYWORDS(reshard_create), NULL},
                                      {0}};

    return PyModule_AddFunctions(module, functions);
}
