/* array.c - see array.h. */
#include "array.h"

#include <stddef.h>
#include <string.h>

/* 1: FOUND, which it takes over, is an object; 0: NULL, for an attribute that there is not; -1:
 * NULL for another reason, such as no memory. */
static int is_found(PyObject *found)
{
    Py_XDECREF(found);
    if (found != NULL) return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
}

/* The same, with 0 also for objects that are not True. */
static int is_true(PyObject *found)
{
    bool is = found == Py_True;
    int result = is_found(found);

    return result > 0 ? is : result;
}

/* ---- types of arrays ---- */

/* Properties of a type. */
struct kind {
    PyTypeObject *type;
    const struct exchange *exchange; /* it lives as long as the process; NULL: TYPE has none */
    bool has_mask;                   /* as numpy.ma's */
    bool is_immutable;               /* as JAX's, whatever version of DLPack they are exported in */
};

static int find_exchange(PyTypeObject *type, const struct exchange **out)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");

    *out = NULL;
    if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        *out = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    while (*out != NULL && (*out)->version.major != 1)
        *out = (*out)->previous;
    return is_found(capsule);
}

static int has_attribute(PyObject *object, const char *name)
{
    return is_found(PyObject_GetAttrString(object, name));
}

/* The properties of TYPE.  They are valid until the next call; NULL: not known, with an exception.
 */
static const struct kind *kind_of(PyTypeObject *type)
{
    static struct kind kinds[16];
    static unsigned next;
    struct kind kind, *place;
    PyTypeObject *before;
    int mask, immutable;

    for (unsigned i = 0; i < 16; i++)
        if (kinds[i].type == type) return &kinds[i];
    mask = has_attribute((PyObject *)type, "mask");
    if (mask > 0) mask = has_attribute((PyObject *)type, "filled");
    immutable = mask >= 0 ? is_true(arrays_call("is_immutable", "(O)", type)) : -1;
    if (immutable < 0 || find_exchange(type, &kind.exchange) < 0) return NULL;
    kind.type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    kind.has_mask = mask > 0;
    kind.is_immutable = immutable > 0;
    place = &kinds[next];
    next = (next + 1) % 16;
    before = place->type;
    *place = kind;
    Py_XDECREF((PyObject *)before);
    return place;
}

/* ---- the parts of an array ---- */

static int take_strides(struct array *array, const int64_t *strides)
{
    int64_t dense = 1;

    array->is_dense = true;
    for (int32_t i = array->dims - 1; i >= 0; i--) {
        if (strides != NULL && array->shape[i] > 1 && strides[i] != dense) array->is_dense = false;
        array->strides[i] = strides != NULL ? strides[i] : dense;
        dense *= array->shape[i];
    }
    if (dense == 0) array->is_dense = true;
    return 0;
}

static int take_dims(struct array *array, int64_t dims)
{
    if (dims < 0 || dims > WEFT_MAX_DIMS)
        return refuse(PyExc_ValueError, "the array has %lld dimensions; weft has at most %d",
                      (long long)dims, WEFT_MAX_DIMS);
    array->dims = (int32_t)dims;
    return 0;
}

static int take_dl(struct array *array, const weft_dl_tensor *dl)
{
    if (take_dims(array, dl->ndim) < 0) return -1;
    if (check(weft_dtype_from_dlpack(dl->dtype, &array->dtype)) < 0) return -1;
    for (int32_t i = 0; i < dl->ndim; i++)
        array->shape[i] = dl->shape[i];
    array->data = dl->data != NULL ? (char *)dl->data + dl->byte_offset : NULL;
    array->device = dl->device;
    take_strides(array, dl->strides);
    if (dl->data != NULL || array_bytes(array) == 0) return 0;
    return refuse(PyExc_ValueError, "the array has no memory, as a DTensor or a fake tensor has "
                                    "none; give the array that has the shard (of a DTensor: "
                                    "to_local())");
}

/* ---- __dlpack__ ---- */

static int open_dlpack(PyObject *object, struct array *array)
{
    PyObject *capsule = arrays_call("capsule_of", "(O)", object);
    const weft_dl_tensor *dl = NULL;

    if (capsule == NULL) return -1;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        array->managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        PyCapsule_SetName(capsule, "used_dltensor_versioned");
        array->is_read_only = (array->managed->flags & WEFT_DL_READ_ONLY) != 0;
        dl = &array->managed->tensor;
        if (array->managed->version.major != 1)
            PyErr_Format(PyExc_BufferError, "the array is of DLPack %u.%u; weft knows 1.x",
                         array->managed->version.major, array->managed->version.minor);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        array->unversioned = PyCapsule_GetPointer(capsule, "dltensor");
        PyCapsule_SetName(capsule, "used_dltensor");
        dl = &array->unversioned->tensor;
    } else {
        PyErr_SetString(PyExc_BufferError, "__dlpack__ returned no DLPack capsule");
    }
    Py_DECREF(capsule);
    return PyErr_Occurred() ? -1 : take_dl(array, dl);
}

/* ---- buffers ---- */

/* The dtype of a buffer's FORMAT of BYTES bytes per element. */
static int read_format(const char *format, Py_ssize_t bytes, enum weft_dtype *out)
{
    static const char letters[] = "bhilqncBHILQNefd?", codes[] = "00000011111112226"; /* DLPack's */
    static struct {
        char letter;
        enum weft_dtype dtype;
        Py_ssize_t bytes;
    } last; /* most arrays have the dtype of the one before */
    const char *letter = format != NULL ? format : "B", *found;
    weft_dl_dtype dtype = {.bits = (uint8_t)(bytes * 8), .lanes = 1};

    if (letter[0] != 0 && letter[1] == 0 && letter[0] == last.letter && bytes == last.bytes) {
        *out = last.dtype;
        return 0;
    }
    if (*letter == '@' || *letter == '=' || *letter == '<') letter++; /* '<': as ctypes writes it */
    found = letter[0] != 0 && letter[1] == 0 ? strchr(letters, letter[0]) : NULL;
    dtype.code = found != NULL ? (uint8_t)(codes[found - letters] - '0') : 5;
    if (found == NULL && (letter[0] != 'Z' || letter[1] == 0 || letter[2] != 0))
        return refuse(PyExc_TypeError, "the buffer has format '%s'; weft has no dtype for it",
                      format != NULL ? format : "");
    if (check(weft_dtype_from_dlpack(dtype, out)) < 0) return -1;
    if (found != NULL) {
        last.letter = letter[0];
        last.bytes = bytes;
        last.dtype = *out;
    }
    return 0;
}

static int open_buffer(PyObject *object, struct array *array)
{
    const Py_buffer *view = &array->view;
    int64_t dense = 1;

    if (PyObject_GetBuffer(object, &array->view, PyBUF_RECORDS_RO) < 0) return -1;
    array->has_view = array->is_dense = true;
    if (take_dims(array, view->ndim) < 0) return -1;
    if (read_format(view->format, view->itemsize, &array->dtype) < 0) return -1;
    for (int i = view->ndim - 1; i >= 0; dense *= view->shape[i--]) {
        array->shape[i] = view->shape[i];
        array->strides[i] = dense;
        if (view->strides == NULL || view->strides[i] == dense * view->itemsize) continue;
        if (view->shape[i] <= 1 || view->len == 0) continue; /* no step is taken */
        if (view->strides[i] % view->itemsize != 0)
            return refuse(PyExc_BufferError,
                          "stride %d of the buffer is %zd bytes; it must be a multiple of the %zd "
                          "bytes of an element",
                          i, view->strides[i], view->itemsize);
        array->strides[i] = view->strides[i] / view->itemsize;
        array->is_dense = false;
    }
    array->data = view->buf;
    array->device = (weft_dl_device){WEFT_DL_CPU, 0};
    array->is_read_only = view->readonly;
    return 0;
}

/* ---- __cuda_array_interface__ ---- */

/* The facts that weft._arrays.cuda_facts returns. */
static int take_cuda(PyObject *facts, struct array *array)
{
    PyObject *address, *shape, *strides, *stream;
    int64_t steps[WEFT_MAX_DIMS];
    const char *dtype;
    int read_only;

    if (!PyArg_ParseTuple(facts, "OpsO!OO", &address, &read_only, &dtype, &PyTuple_Type, &shape,
                          &strides, &stream) ||
        take_dims(array, PyTuple_Size(shape)) < 0 ||
        check(weft_dtype_parse(dtype, &array->dtype)) < 0)
        return -1;
    array->data = PyLong_AsVoidPtr(address);
    array->is_read_only = read_only;
    array->device = (weft_dl_device){WEFT_DL_CUDA, ANY_DEVICE};
    array->has_native = stream != Py_None;
    if (array->has_native) array->native = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred() || numbers_of(shape, array->shape) < 0) return -1;
    if (strides != Py_None && numbers_of(strides, steps) != array->dims) return -1;
    return take_strides(array, strides != Py_None ? steps : NULL);
}

static int open_cuda(PyObject *object, struct array *array)
{
    PyObject *facts = arrays_call("cuda_facts", "(O)", object);
    int result = facts != NULL ? take_cuda(facts, array) : -1;

    array->owner = Py_NewRef(object);
    Py_XDECREF(facts);
    return result;
}

/* ---- any array ---- */

/* weft does not record what it does for automatic differentiation. */
static int refuse_grad(PyObject *object)
{
    int is = is_true(PyObject_GetAttrString(object, "requires_grad"));

    if (is <= 0) return is;
    return refuse(PyExc_ValueError, "the tensor requires grad; detach it");
}

/* The memory of a view that conjugates or negates has other elements than the view. */
static int refuse_lazy_view(PyObject *object, const char *method, const char *remedy)
{
    int is = is_true(PyObject_CallMethod(object, method, NULL));

    if (is <= 0) return is;
    return refuse(
        PyExc_ValueError,
        "the memory of the tensor has other elements than the tensor (%s() is true); give "
        "%s()",
        method, remedy);
}

static int open_exchange(PyObject *object, struct array *array)
{
    if (refuse_grad(object) < 0) return -1;
    if (array->exchange->own(object, &array->managed) != 0) {
        PyObject *kind, *value, *traceback;

        PyErr_Fetch(&kind, &value, &traceback);
        Py_XDECREF(arrays_call("refuse", "(O)", value != NULL ? value : Py_None));
        Py_XDECREF(kind);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return -1;
    }
    array->is_read_only = (array->managed->flags & WEFT_DL_READ_ONLY) != 0;
    if (take_dl(array, &array->managed->tensor) < 0) return -1;
    if ((array->dtype == WEFT_DTYPE_C64 || array->dtype == WEFT_DTYPE_C128) &&
        refuse_lazy_view(object, "is_conj", "resolve_conj") < 0)
        return -1;
    return refuse_lazy_view(object, "is_neg", "resolve_neg");
}

/* The buffer of OBJECT, which is faster than __dlpack__; false: it has none that weft can read. */
static bool try_buffer(PyObject *object, struct array *out)
{
    if (!PyObject_CheckBuffer(object)) return false;
    if (open_buffer(object, out) == 0) return true;
    array_close(out);
    return false;
}

/* Open OBJECT, which has no buffer that weft can read. */
static int open_other(PyObject *object, struct array *out)
{
    int found;

    PyErr_Clear();
    found = has_attribute(object, "__dlpack__");
    if (found != 0) return found > 0 ? open_dlpack(object, out) : -1;
    found = has_attribute(object, "__cuda_array_interface__");
    if (found != 0) return found > 0 ? open_cuda(object, out) : -1;
    if (PyObject_CheckBuffer(object)) return open_buffer(object, out); /* for its exception */
    Py_XDECREF(arrays_call("refuse_type", "(O)", object));
    return -1;
}

int array_open(PyObject *object, struct array *out)
{
    const struct kind *kind = kind_of(Py_TYPE(object));
    int result;

    if (kind == NULL) return -1;
    memset(out, 0, offsetof(struct array, dtype));
    out->exchange = kind->exchange;
    out->is_read_only = kind->is_immutable; /* the others state it */
    if (kind->has_mask)                     /* the memory does not say which elements count */
        return refuse(PyExc_ValueError,
                      "the array has a mask, which weft does not move; give its elements: "
                      "filled(value), or data for the masked ones, too");
    if (out->exchange == NULL && try_buffer(object, out)) return 0;
    result = out->exchange != NULL ? open_exchange(object, out) : open_other(object, out);
    if (result < 0) array_close(out);
    return result;
}

int array_open_bytes(PyObject *object, bool written, struct array *out)
{
    memset(out, 0, offsetof(struct array, dtype));
    if (PyObject_GetBuffer(object, &out->view, written ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0)
        return -1;
    out->has_view = true;
    out->data = out->view.buf;
    out->dtype = WEFT_DTYPE_U8;
    out->dims = 1;
    out->shape[0] = out->view.len;
    return 0;
}

void array_close(struct array *array)
{
    if (array->managed != NULL && array->managed->deleter != NULL)
        array->managed->deleter(array->managed);
    if (array->unversioned != NULL && array->unversioned->deleter != NULL)
        array->unversioned->deleter(array->unversioned);
    if (array->has_view) PyBuffer_Release(&array->view);
    Py_CLEAR(array->owner);
    array->managed = NULL;
    array->unversioned = NULL;
    array->has_view = false;
}

uint64_t array_elements(const struct array *array)
{
    uint64_t count = 1;

    for (int32_t i = 0; i < array->dims; i++)
        count *= (uint64_t)array->shape[i];
    return count;
}

uint64_t array_bytes(const struct array *array)
{
    return array_elements(array) * weft_dtype_bytes(array->dtype);
}

int writable(const struct array *array, const char *name)
{
    if (!array->is_read_only) return 0;
    return refuse(PyExc_ValueError, "%s is read-only", name);
}

int check_dense(const struct array *array, const char *name, bool written)
{
    if (array->is_dense) return written ? writable(array, name) : 0;
    return refuse(PyExc_ValueError,
                  "%s is not contiguous in row-major order, and weft copies no arrays; %s", name,
                  written ? "give a contiguous array and copy it to this one afterwards"
                          : "give a contiguous copy, such as numpy.ascontiguousarray(x), or "
                            "x.contiguous() of PyTorch");
}
