/* dlpack.c - shards shared with other libraries through DLPack. */
#include "tensor.h"

#include "weft/dlpack.h"

#include <string.h>

enum { MAJOR = 1, MINOR = 1, MINORS = 256 };

/* DLDataTypeCode */
enum { INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, COMPLEX = 5, BOOL = 6, E4M3FN = 10, E5M2 = 12 };

static const weft_dl_dtype dtypes[WEFT_DTYPE_COUNT] = {
    [WEFT_DTYPE_BOOL] = {BOOL, 8, 1},     [WEFT_DTYPE_I8] = {INT, 8, 1},
    [WEFT_DTYPE_U8] = {UINT, 8, 1},       [WEFT_DTYPE_I16] = {INT, 16, 1},
    [WEFT_DTYPE_U16] = {UINT, 16, 1},     [WEFT_DTYPE_I32] = {INT, 32, 1},
    [WEFT_DTYPE_U32] = {UINT, 32, 1},     [WEFT_DTYPE_I64] = {INT, 64, 1},
    [WEFT_DTYPE_U64] = {UINT, 64, 1},     [WEFT_DTYPE_F16] = {FLOAT, 16, 1},
    [WEFT_DTYPE_BF16] = {BFLOAT, 16, 1},  [WEFT_DTYPE_F32] = {FLOAT, 32, 1},
    [WEFT_DTYPE_F64] = {FLOAT, 64, 1},    [WEFT_DTYPE_F8E4M3] = {E4M3FN, 8, 1},
    [WEFT_DTYPE_F8E5M2] = {E5M2, 8, 1},   [WEFT_DTYPE_C64] = {COMPLEX, 64, 1},
    [WEFT_DTYPE_C128] = {COMPLEX, 128, 1}};

weft_status weft_dtype_from_dlpack(weft_dl_dtype dtype, enum weft_dtype *out)
{
    if (out == NULL) return wf_fail_null("weft_dtype_from_dlpack", "out");
    for (enum weft_dtype i = 0; i < WEFT_DTYPE_COUNT; i++)
        if (dtypes[i].code == dtype.code && dtypes[i].bits == dtype.bits && dtype.lanes == 1) {
            *out = i;
            return WEFT_OK;
        }
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "weft has no dtype for DLPack's code %u with %u bits and %u lanes", dtype.code,
                   dtype.bits, dtype.lanes);
}

weft_status weft_dtype_to_dlpack(enum weft_dtype dtype, weft_dl_dtype *out)
{
    if (out == NULL) return wf_fail_null("weft_dtype_to_dlpack", "out");
    if ((unsigned)dtype >= WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "weft_dtype_to_dlpack: %d is not a dtype", (int)dtype);
    *out = dtypes[dtype];
    return WEFT_OK;
}

static weft_status read_options(const weft_dlpack_options *options, const char *function,
                                weft_dlpack_options *out)
{
    *out = (weft_dlpack_options){0};
    return wf_fail_named(wf_options_read("weft_dlpack_options", options, out, sizeof *out),
                         function);
}

/* If ranks are simulated, OPTIONS say which one's shard is shared. */
static weft_status check_rank(const weft_context *context, const weft_dlpack_options *options)
{
    if (!context->is_simulated || (options->rank >= 0 && options->rank < context->size))
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "weft_dlpack_options.rank is %d; expected 0 to %d",
                   options->rank, context->size - 1);
}

/* Work on the consumer's stream begins after the work on the producer's. */
static weft_status hand_over(weft_context *context, const weft_dlpack_options *options,
                             const char *function)
{
    weft_work *work = NULL;
    weft_status status;

    WF_TRY(wf_stream_check(context, options->producer, function));
    WF_TRY(wf_stream_check(context, options->consumer, function));
    if (options->producer == options->consumer) return WEFT_OK;
    WF_TRY(weft_work_record(context, options->producer, &work));
    status = weft_stream_wait_work(options->consumer, work);
    weft_work_release(&work);
    return status;
}

/* ---- export ---- */

/* A shard that was exported, in one of the two forms. */
struct shared {
    weft_tensor *tensor;
    weft_dl_versioned versioned;
    weft_dl_unversioned unversioned;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS];
};

static void drop_shared(struct shared *shared)
{
    weft_tensor_release(&shared->tensor);
    wf_free(shared);
}

static void delete_versioned(weft_dl_versioned *self)
{
    drop_shared(self->manager_ctx);
}

static void delete_unversioned(weft_dl_unversioned *self)
{
    drop_shared(self->manager_ctx);
}

static weft_status find_device(const weft_tensor *tensor, int32_t wanted, weft_dl_device *out)
{
    weft_device_info info = {.struct_size = sizeof info};
    bool on_host = (tensor->context->features & WEFT_FEATURE_HOST_MEMORY) != 0;

    if (wanted == 0 && !on_host)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_dlpack_options.device_type is 0, but the memory is on a device; state "
                       "its type, such as WEFT_DL_CUDA (%d) or WEFT_DL_ROCM (%d)",
                       WEFT_DL_CUDA, WEFT_DL_ROCM);
    WF_TRY(weft_device_get(tensor->context, &info));
    *out = (weft_dl_device){wanted != 0 ? wanted : WEFT_DL_CPU, on_host ? 0 : info.device};
    return WEFT_OK;
}

static weft_status share(weft_tensor *tensor, const weft_dlpack_options *options,
                         const char *function, struct shared **out)
{
    weft_dl_device device = {0};
    const struct wf_local *local;
    struct shared *shared;
    weft_status status;

    status = check_rank(tensor->context, options);
    if (status == WEFT_OK) status = find_device(tensor, options->device_type, &device);
    if (status == WEFT_OK) status = hand_over(tensor->context, options, function);
    if (status != WEFT_OK) return wf_tensor_fail(tensor, status, function);
    shared = wf_calloc(1, sizeof *shared);
    if (shared == NULL) return wf_fail_named(wf_fail_memory(sizeof *shared), function);
    local = wf_local_of(tensor, options->rank);
    memcpy(shared->shape, local->shard.shape, sizeof shared->shape);
    memcpy(shared->strides, local->strides, sizeof shared->strides);
    shared->tensor = weft_tensor_retain(tensor);
    shared->versioned = (weft_dl_versioned){
        .version = {MAJOR, MINOR},
        .manager_ctx = shared,
        .deleter = delete_versioned,
        .flags = tensor->is_read_only ? WEFT_DL_READ_ONLY : 0,
        .tensor = {.data = local->memory,
                   .device = device,
                   .ndim = local->shard.dims,
                   .dtype = dtypes[tensor->spec->layout.dtype],
                   .shape = shared->shape,
                   .strides = shared->strides},
    };
    shared->unversioned =
        (weft_dl_unversioned){shared->versioned.tensor, shared, delete_unversioned};
    *out = shared;
    return WEFT_OK;
}

weft_status weft_tensor_to_dlpack(weft_tensor *tensor, const weft_dlpack_options *options,
                                  void **out)
{
    static const char what[] = "weft_tensor_to_dlpack";
    weft_dlpack_options wanted;
    struct shared *shared = NULL;

    WF_TRY(wf_tensor_check(tensor, what, "tensor"));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(read_options(options, what, &wanted));
    if (wanted.unversioned && tensor->is_read_only)
        return wf_tensor_fail(tensor,
                              wf_fail(WEFT_ERR_INVALID,
                                      "the tensor is read-only, which unversioned DLPack cannot "
                                      "state; share it without weft_dlpack_options.unversioned"),
                              what);
    WF_TRY(share(tensor, &wanted, what, &shared));
    *out = wanted.unversioned ? (void *)&shared->unversioned : (void *)&shared->versioned;
    return WEFT_OK;
}

/* ---- import ---- */

/* What a tensor releases: one of the two forms. */
static void release_versioned(void *user, void *memory)
{
    weft_dl_versioned *managed = user;

    (void)memory;
    if (managed->deleter != NULL) managed->deleter(managed);
}

static void release_unversioned(void *user, void *memory)
{
    weft_dl_unversioned *managed = user;

    (void)memory;
    if (managed->deleter != NULL) managed->deleter(managed);
}

static weft_status check_dtype(const weft_dl_dtype *dtype, uint32_t wanted)
{
    const weft_dl_dtype *want = &dtypes[wanted];
    enum weft_dtype known;

    if (dtype->code == want->code && dtype->bits == want->bits && dtype->lanes == 1) return WEFT_OK;
    if (weft_dtype_from_dlpack(*dtype, &known) == WEFT_OK)
        return wf_fail(WEFT_ERR_INVALID, "the DLPack tensor has dtype %s, but the spec has %s",
                       weft_dtype_name(known), weft_dtype_name((enum weft_dtype)wanted));
    return wf_fail(WEFT_ERR_INVALID,
                   "the DLPack tensor has dtype code %u with %u bits and %u lanes, but %s has code "
                   "%u with %u bits and 1 lane",
                   dtype->code, dtype->bits, dtype->lanes, weft_dtype_name((enum weft_dtype)wanted),
                   want->code, want->bits);
}

static weft_status check_device(weft_context *context, const weft_dl_tensor *dl, const void *data)
{
    bool on_host = (context->features & WEFT_FEATURE_HOST_MEMORY) != 0;
    bool is_host = dl->device.type == WEFT_DL_CPU || dl->device.type == WEFT_DL_CUDA_HOST ||
                   dl->device.type == WEFT_DL_ROCM_HOST;
    weft_device_info info = {.struct_size = sizeof info};
    weft_pointer_info pointer = {.struct_size = sizeof pointer};

    if (on_host && is_host) return WEFT_OK;
    if (!on_host && !is_host) {
        WF_TRY(weft_device_get(context, &info));
        WF_TRY(weft_pointer_get(context, data, &pointer));
        if (pointer.kind == WEFT_MEMORY_DEVICE && pointer.device == info.device) return WEFT_OK;
        return wf_fail(WEFT_ERR_INVALID,
                       "the DLPack tensor has device type %d and id %d, but its memory is not on "
                       "device %d of this context",
                       dl->device.type, dl->device.id, info.device);
    }
    return wf_fail(WEFT_ERR_INVALID,
                   "the DLPack tensor has device type %d, but this context works in %s memory",
                   dl->device.type, on_host ? "host" : "device");
}

/* Wrap the memory of DL.  WANTED has the release callback. */
static weft_status import(weft_context *context, const weft_spec *spec, const weft_dl_tensor *dl,
                          bool is_read_only, weft_tensor_options *wanted,
                          const weft_dlpack_options *options, const char *function,
                          weft_tensor **out)
{
    void *memory = dl->data != NULL ? (void *)((uintptr_t)dl->data + dl->byte_offset) : NULL;
    const struct wf_wrapping wrapping = {
        wanted, memory, options->rank, is_read_only,
        "import it in a layout in which one rank holds all, such as O(0), and move it"};
    int32_t rank = context->is_simulated ? options->rank : context->rank;
    weft_shard shard;
    weft_status status = check_rank(context, options);

    if (status != WEFT_OK) return wf_fail_named(status, function);
    weft_spec_shard(spec, rank, &shard);
    if (dl->ndim != shard.dims)
        status = wf_fail(WEFT_ERR_INVALID,
                         "the DLPack tensor has %d dimensions, but the shard of rank %d has %d",
                         dl->ndim, rank, shard.dims);
    if (status == WEFT_OK && dl->byte_offset > UINTPTR_MAX - (uintptr_t)dl->data)
        status = wf_fail(WEFT_ERR_INVALID, "the byte offset of the DLPack tensor is %llu",
                         (unsigned long long)dl->byte_offset);
    if (status == WEFT_OK && dl->ndim > 0 && dl->shape == NULL)
        status = wf_fail(WEFT_ERR_INVALID, "the shape of the DLPack tensor is NULL");
    if (status == WEFT_OK) status = check_dtype(&dl->dtype, spec->layout.dtype);
    if (status == WEFT_OK && shard.elements > 0) status = check_device(context, dl, memory);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    wanted->shape = dl->ndim > 0 ? dl->shape : NULL;
    wanted->strides = dl->strides;
    return wf_tensor_wrap(context, spec, &wrapping, function, out);
}

static weft_status import_versioned(weft_context *context, const weft_spec *spec,
                                    weft_dl_versioned *managed, const weft_dlpack_options *options,
                                    const char *function, weft_tensor **out)
{
    weft_tensor_options wrapping = {
        .name = options->name, .release = release_versioned, .user = managed};

    if (managed->version.major != MAJOR)
        return wf_fail(WEFT_ERR_VERSION, "%s: the tensor is of DLPack %u.%u; weft knows %d.x",
                       function, managed->version.major, managed->version.minor, MAJOR);
    return import(context, spec, &managed->tensor, (managed->flags & WEFT_DL_READ_ONLY) != 0,
                  &wrapping, options, function, out);
}

static weft_status import_unversioned(weft_context *context, const weft_spec *spec,
                                      weft_dl_unversioned *managed,
                                      const weft_dlpack_options *options, const char *function,
                                      weft_tensor **out)
{
    weft_tensor_options wrapping = {
        .name = options->name, .release = release_unversioned, .user = managed};
    uint64_t start;

    /* A versioned struct begins with its version, which no data is at. */
    memcpy(&start, managed, sizeof start);
    if ((uint32_t)start == MAJOR && start >> 32 < MINORS)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_dlpack_options.unversioned is set, but the tensor begins with "
                       "version %d.%d: it is a weft_dl_versioned",
                       function, MAJOR, (int)(start >> 32));
    return import(context, spec, &managed->tensor, false, &wrapping, options, function, out);
}

weft_status weft_tensor_from_dlpack(weft_context *context, const weft_spec *spec, void *managed,
                                    const weft_dlpack_options *options, weft_tensor **out)
{
    static const char what[] = "weft_tensor_from_dlpack";
    weft_dlpack_options wanted;
    weft_status status;

    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_tensor_check_spec(context, spec, what));
    if (managed == NULL) return wf_fail_null(what, "managed");
    WF_TRY(read_options(options, what, &wanted));
    status = hand_over(context, &wanted, what);
    if (status != WEFT_OK) return wf_fail_named(status, what);
    if (wanted.unversioned) return import_unversioned(context, spec, managed, &wanted, what, out);
    return import_versioned(context, spec, managed, &wanted, what, out);
}
