/* Shards shared through DLPack. */
#include "base/base.h"
#include "holds.h"
#include "support/allocfail.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/dlpack.h"
#include "weft/random.h"

#include <stddef.h>

#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define SAME(mine, my_field, theirs, their_field)                                                  \
    _Static_assert(offsetof(mine, my_field) == offsetof(theirs, their_field), #my_field)
SAME(weft_dl_versioned, version, DLManagedTensorVersioned, version);
SAME(weft_dl_versioned, manager_ctx, DLManagedTensorVersioned, manager_ctx);
SAME(weft_dl_versioned, deleter, DLManagedTensorVersioned, deleter);
SAME(weft_dl_versioned, flags, DLManagedTensorVersioned, flags);
SAME(weft_dl_versioned, tensor, DLManagedTensorVersioned, dl_tensor);
SAME(weft_dl_unversioned, tensor, DLManagedTensor, dl_tensor);
SAME(weft_dl_unversioned, manager_ctx, DLManagedTensor, manager_ctx);
SAME(weft_dl_unversioned, deleter, DLManagedTensor, deleter);
SAME(weft_dl_tensor, device, DLTensor, device);
SAME(weft_dl_tensor, ndim, DLTensor, ndim);
SAME(weft_dl_tensor, dtype, DLTensor, dtype);
SAME(weft_dl_tensor, shape, DLTensor, shape);
SAME(weft_dl_tensor, strides, DLTensor, strides);
SAME(weft_dl_tensor, byte_offset, DLTensor, byte_offset);
_Static_assert(sizeof(weft_dl_versioned) == sizeof(DLManagedTensorVersioned), "size");
_Static_assert(sizeof(weft_dl_unversioned) == sizeof(DLManagedTensor), "size");
_Static_assert((int)WEFT_DL_CPU == (int)kDLCPU && (int)WEFT_DL_CUDA == (int)kDLCUDA, "devices");
_Static_assert((int)WEFT_DL_ROCM == (int)kDLROCM, "devices");
_Static_assert((int)WEFT_DL_CUDA_MANAGED == (int)kDLCUDAManaged, "devices");
_Static_assert(WEFT_DL_READ_ONLY == DLPACK_FLAG_BITMASK_READ_ONLY, "flags");
#endif
#endif
_Static_assert(sizeof(weft_dl_dtype) == 4 && sizeof(weft_dl_device) == 8, "DLPack's layout");
_Static_assert(sizeof(weft_dl_tensor) == 48 && sizeof(weft_dl_versioned) == 80, "DLPack's layout");

static weft_context *context;
static weft_spec *rows;
static int deleted;

static void begin(const char *spec)
{
    deleted = 0;
    rows = spec_of("1", spec);
    ck_assert_int_eq(weft_init(NULL, &context), WEFT_OK);
}

static void end(void)
{
    weft_context_release(&context);
    weft_spec_release(&rows);
}

static void count_deletion(weft_dl_versioned *self)
{
    deleted += self->manager_ctx == &deleted;
}

static weft_dl_versioned foreign(void *data, int64_t *shape, int64_t *strides)
{
    return (weft_dl_versioned){.version = {1, 3},
                               .manager_ctx = &deleted,
                               .deleter = count_deletion,
                               .tensor = {.data = data,
                                          .device = {WEFT_DL_CPU, 0},
                                          .ndim = 2,
                                          .dtype = {2, 32, 1},
                                          .shape = shape,
                                          .strides = strides}};
}

#define REFUSED(call, text)                                                                        \
    do {                                                                                           \
        ck_assert_int_eq((call), WEFT_ERR_INVALID);                                                \
        ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());           \
    } while (0)

static const weft_dlpack_options unversioned = {.struct_size = sizeof unversioned,
                                                .unversioned = true};

TEST(a_shard_is_exported_and_imported)
{
    weft_tensor *tensor, *turned, *back;
    weft_dl_versioned *shared;
    weft_dl_unversioned *older;

    begin("f32[2,3] R");
    ck_assert_int_eq(weft_tensor_create(context, rows, NULL, &tensor), WEFT_OK);
    ck_assert_int_eq(weft_tensor_transpose(tensor, 0, 1, &turned), WEFT_OK);
    ck_assert_int_eq(weft_tensor_to_dlpack(turned, NULL, (void **)&shared), WEFT_OK);
    ck_assert(shared->version.major == 1 && shared->flags == 0 && shared->tensor.ndim == 2);
    ck_assert(shared->tensor.shape[0] == 3 && shared->tensor.strides[0] == 1);
    ck_assert(shared->tensor.device.type == WEFT_DL_CPU && shared->tensor.dtype.bits == 32);
    ck_assert_ptr_eq(shared->tensor.data, weft_tensor_memory(tensor));
    ck_assert_int_eq(
        weft_tensor_from_dlpack(context, weft_tensor_spec(turned), shared, NULL, &back), WEFT_OK);
    weft_tensor_release(&tensor); /* the imported tensor keeps all of them */
    weft_tensor_release(&turned);
    ck_assert_int_eq(weft_tensor_fill(back, 4, NULL), WEFT_OK);
    ck_assert(((float *)weft_tensor_memory(back))[5] == 4 && weft_tensor_strides(back)[1] == 3);
    ck_assert_int_eq(weft_tensor_to_dlpack(back, &unversioned, (void **)&older), WEFT_OK);
    weft_tensor_release(&back);
    ck_assert(((float *)older->tensor.data)[5] == 4);
    older->deleter(older);
    end();
}

TEST(dtypes_have_dlpack_forms)
{
    for (enum weft_dtype i = 0; i < WEFT_DTYPE_COUNT; i++) {
        weft_dl_dtype form = {0};
        enum weft_dtype back = WEFT_DTYPE_COUNT;

        ck_assert_int_eq(weft_dtype_to_dlpack(i, &form), WEFT_OK);
        ck_assert_uint_eq(form.bits, 8 * weft_dtype_bytes(i));
        ck_assert_int_eq(weft_dtype_from_dlpack(form, &back), WEFT_OK);
        ck_assert_int_eq(back, i);
        form.lanes = 2;
        ck_assert_int_eq(weft_dtype_from_dlpack(form, &back), WEFT_ERR_UNSUPPORTED);
    }
    ck_assert_int_eq(weft_dtype_to_dlpack(WEFT_DTYPE_COUNT, &(weft_dl_dtype){0}),
                     WEFT_ERR_UNSUPPORTED);
}

TEST(memory_of_another_library_is_released_once)
{
    float values[16] = {0};
    int64_t shape[] = {2, 3}, strides[] = {4, 1};
    weft_dlpack_options options = {.struct_size = sizeof options, .name = "theirs"};
    weft_dl_versioned managed = foreign(values, shape, strides);
    weft_tensor *tensor = NULL, *view;

    begin("f32[2,3] R");
    ck_assert_int_eq(weft_stream_create(context, &options.producer), WEFT_OK);
    managed.tensor.byte_offset = 8;
    ck_assert_int_eq(weft_tensor_from_dlpack(context, rows, &managed, &options, &tensor), WEFT_OK);
    ck_assert_ptr_eq(weft_tensor_memory(tensor), &values[2]);
    ck_assert_str_eq(weft_tensor_name(tensor), "theirs");
    ck_assert_int_eq(weft_tensor_narrow(tensor, 0, 1, 1, &view), WEFT_OK);
    weft_tensor_release(&tensor);
    ck_assert_int_eq(deleted, 0);
    weft_tensor_release(&view);
    ck_assert_int_eq(deleted, 1);
    weft_stream_release(&options.producer);
    end();
}

/* The context ends first: memory of the other library is given back, and an exported shard still
 * has to be deleted. */
TEST(what_is_shared_may_outlive_the_context)
{
    float values[16] = {1, 2};
    int64_t shape[] = {2, 3};
    weft_dl_versioned managed = foreign(values, shape, NULL), *shared = NULL;
    weft_tensor *tensor = NULL;

    begin("f32[2,3] R");
    ck_assert_int_eq(weft_tensor_from_dlpack(context, rows, &managed, NULL, &tensor), WEFT_OK);
    ck_assert_int_eq(weft_tensor_to_dlpack(tensor, NULL, (void **)&shared), WEFT_OK);
    end();
    ck_assert_int_eq(deleted, 1);
    REFUSED(weft_tensor_fill(tensor, 1, NULL), "the context was released");
    weft_tensor_release(&tensor);
    shared->deleter(shared);
    ck_assert_int_eq(deleted, 1);
}

TEST(read_only_memory_is_not_written)
{
    static const char what[] = " is read-only";
    float values[16] = {1, 2};
    int64_t shape[] = {2, 3}, strides[] = {0, 1};
    weft_random random = {0, 0};
    weft_dl_versioned managed = foreign(values, shape, strides), *shared = NULL;
    weft_dl_unversioned *older;
    weft_tensor *tensor = NULL, *view, *copy;

    begin("f32[2,3] R");
    REFUSED(weft_tensor_from_dlpack(context, rows, &managed, NULL, &tensor), "stride 0");
    REFUSED(weft_tensor_from_dlpack(context, rows, &managed, &unversioned, &tensor),
            "weft_dlpack_options.unversioned is set, but the tensor begins with version 1.3");
    managed.flags = WEFT_DL_READ_ONLY;
    ck_assert_int_eq(weft_tensor_from_dlpack(context, rows, &managed, NULL, &tensor), WEFT_OK);
    ck_assert_int_eq(weft_tensor_transpose(tensor, 0, 1, &view), WEFT_OK);
    REFUSED(weft_tensor_fill(tensor, 1, NULL), what);
    REFUSED(weft_tensor_fill(view, 1, NULL), what);
    REFUSED(weft_tensor_from_host(tensor, values, 24, NULL), what);
    REFUSED(weft_tensor_uniform(tensor, &random, 0, 1, NULL), what);
    REFUSED(weft_tensor_to_dlpack(tensor, &unversioned, (void **)&older), what);
    ck_assert_int_eq(weft_tensor_move(tensor, rows, NULL, NULL, &copy), WEFT_OK);
    ck_assert(((float *)weft_tensor_memory(copy))[4] == 2);
    REFUSED(move_into(copy, tensor, NULL, NULL), "target is read-only");
    REFUSED(weft_tensors_move_into(2, (weft_tensor *[]){tensor, copy},
                                   (weft_tensor *[]){copy, tensor}, NULL, NULL, NULL),
            "weft_tensors_move_into: pair 1: target is read-only");
    ck_assert_int_eq(weft_tensor_to_dlpack(view, NULL, (void **)&shared), WEFT_OK);
    ck_assert_uint_eq(shared->flags, WEFT_DL_READ_ONLY);
    shared->deleter(shared);
    weft_tensor_release(&view);
    weft_tensor_release(&copy);
    weft_tensor_release(&tensor);
    ck_assert_int_eq(deleted, 1);
    end();
}

TEST(what_does_not_fit_is_refused)
{
    float values[16] = {0};
    int64_t shape[] = {2, 3}, strides[] = {4, 1}, other[] = {3, 2};
    weft_dl_versioned good = foreign(values, shape, strides), bad = good;
    weft_dlpack_options options = {.struct_size = 4};
    weft_dl_versioned *shared;
    weft_tensor *tensor = NULL;

    begin("f32[2,3] R");
    bad.version.major = 2;
    ck_assert_int_eq(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), WEFT_ERR_VERSION);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "is of DLPack 2.3; weft knows 1.x"));
    bad = good;
    bad.tensor.device.type = WEFT_DL_CUDA;
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor),
            "device type 2, but this context works in host memory");
    bad.tensor.device.type = 99;
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "device type 99");
    bad = good;
    bad.tensor.dtype = (weft_dl_dtype){4, 16, 1};
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor),
            "the DLPack tensor has dtype bf16, but the spec has f32");
    bad.tensor.dtype = (weft_dl_dtype){4, 24, 1};
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "code 4 with 24 bits");
    bad.tensor.dtype = (weft_dl_dtype){2, 32, 4};
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "4 lanes, but f32");
    bad = good;
    bad.tensor.ndim = 3;
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "has 3 dimensions");
    bad = good;
    bad.tensor.shape = other;
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "has the shape [3,2]");
    bad.tensor.shape = NULL;
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "shape of the DLPack");
    bad = good;
    bad.tensor.byte_offset = 2;
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "is not aligned");
    bad.tensor.byte_offset = UINT64_MAX - 3;
    REFUSED(weft_tensor_from_dlpack(context, rows, &bad, NULL, &tensor), "the byte offset");
    strides[0] = -4;
    REFUSED(weft_tensor_from_dlpack(context, rows, &good, NULL, &tensor), "must not be negative");
    REFUSED(weft_tensor_from_dlpack(context, rows, &good, &options, &tensor), "struct_size is 4");
    REFUSED(weft_tensor_to_dlpack(NULL, NULL, (void **)&shared), "tensor is NULL");
    ck_assert(tensor == NULL && deleted == 0);
    end();
}

TEST(every_dtype_travels)
{
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        weft_tensor *tensor = NULL, *back = NULL;
        weft_dl_unversioned *shared = NULL;
        weft_spec *spec = NULL;

        begin("f32[5] R");
        ck_assert_int_eq(weft_spec_with_dtype(rows, (enum weft_dtype)dtype, &spec), WEFT_OK);
        ck_assert_int_eq(weft_tensor_create(context, spec, NULL, &tensor), WEFT_OK);
        ck_assert_int_eq(weft_tensor_to_dlpack(tensor, &unversioned, (void **)&shared), WEFT_OK);
        ck_assert_uint_eq(shared->tensor.dtype.bits, 8 * wf_dtype_bytes(dtype));
        ck_assert_int_eq(weft_tensor_from_dlpack(context, spec, shared, &unversioned, &back),
                         WEFT_OK);
        weft_tensor_release(&tensor);
        weft_tensor_release(&back);
        weft_spec_release(&spec);
        end();
    }
}

static weft_status share_and_take(void *tensor)
{
    weft_dl_versioned *shared = NULL;
    weft_tensor *back = NULL;
    weft_status status = weft_tensor_to_dlpack(tensor, NULL, (void **)&shared);

    if (status != WEFT_OK) return status;
    status = weft_tensor_from_dlpack(context, rows, shared, NULL, &back);
    if (status != WEFT_OK) shared->deleter(shared); /* it is still ours */
    weft_tensor_release(&back);
    return status;
}

TEST(every_allocation_may_fail)
{
    weft_tensor *tensor = NULL;

    begin("f32[2,3] R");
    ck_assert_int_eq(weft_tensor_create(context, rows, NULL, &tensor), WEFT_OK);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(share_and_take(tensor), (void)0), 2);
    weft_tensor_release(&tensor);
    end();
}
