/* place.c - see place.h. */
#include "place.h"
#include "tensor.h"

/* ---- arrays ---- */

/* Host memory that a device can use as well. */
static bool is_shared(const weft_dl_device *device)
{
    return device->type == WEFT_DL_CUDA_HOST || device->type == WEFT_DL_ROCM_HOST ||
           device->type == WEFT_DL_CUDA_MANAGED;
}

/* Whether DATA, which its library takes for plain host memory, is known to the context's device. */
static bool is_pinned(const void *data, context_object *context)
{
    weft_pointer_info info = {.struct_size = sizeof info};

    return weft_pointer_get(context->raw, data, &info) == WEFT_OK && info.kind != WEFT_MEMORY_HOST;
}

int place_fits(const struct array *array, context_object *context, const char *name)
{
    const weft_dl_device *have = &array->device, *need = &context->device;

    if (have->type == need->type && (have->id == need->id || need->type == WEFT_DL_CPU)) return 0;
    if (have->type == need->type && have->id == ANY_DEVICE) return 0;
    if (is_shared(have) || array_elements(array) == 0) return 0;
    if (have->type == WEFT_DL_CPU && is_pinned(array->data, context)) return 0;
    Py_XDECREF(arrays_call("refuse_place", "(s(ii)s(ii))", name, (int)have->type, (int)have->id,
                           weft_context_plugin(context->raw)->name, (int)need->type,
                           (int)need->id));
    return -1;
}

int place_open(PyObject *object, bool written, const char *name, context_object *context,
               struct array *out)
{
    if (array_open(object, out) < 0) return -1;
    if (context == NULL && out->device.type != WEFT_DL_CPU)
        PyErr_Format(PyExc_ValueError, "%s is not in host memory", name);
    else if (check_dense(out, name, written) == 0 &&
             (context == NULL || place_fits(out, context, name) == 0))
        return 0;
    array_close(out);
    return -1;
}

weft_status place_tensor(const struct array *array, const context_object *context,
                         weft_tensor **out)
{
    int32_t size = 1, rank = weft_rank(context->raw);
    weft_mesh_options alone = {.struct_size = sizeof alone, .ranks = &rank};
    weft_tensor_options options = {.struct_size = sizeof options, .strides = array->strides};
    weft_placement replicated = {0};
    weft_spec *spec = NULL;
    weft_mesh *mesh = NULL;
    weft_status status = weft_mesh_create(1, &size, &alone, &mesh);

    if (status == WEFT_OK)
        status =
            weft_spec_create(mesh, array->dtype, array->dims, array->shape, &replicated, &spec);
    if (status == WEFT_OK)
        status = weft_tensor_wrap(context->raw, spec, array->data, &options, out);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return status;
}

int place_hold(context_object *context, PyObject *object)
{
    if (context->groups == 0) return 0;
    if (context->held == NULL) context->held = PyList_New(0);
    return context->held != NULL ? PyList_Append(context->held, object) : -1;
}

/* ---- streams ---- */

int place_stream(PyObject *stream, const struct array *array, context_object *context,
                 weft_stream **out, weft_stream **owned)
{
    void *native = array != NULL ? array->native : NULL;

    if (stream != Py_None || array == NULL || (array->exchange == NULL && !array->has_native) ||
        context->device.type == WEFT_DL_CPU || array->device.type != context->device.type)
        return stream_of(stream, context, out, owned);
    if (!array->has_native &&
        array->exchange->current_stream(array->device.type, array->device.id, &native) != 0)
        return -1;
    if (check(weft_stream_wrap(context->raw, native, owned)) < 0) return -1;
    *out = *owned;
    return 0;
}
