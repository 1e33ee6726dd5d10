/* dlpack.h - tensors shared with other libraries through DLPack 1.x.
 *
 *     void *shared;
 *     TRY(weft_tensor_to_dlpack(tensor, NULL, &shared));
 *     array = some_library_from_dlpack((DLManagedTensorVersioned *)shared);
 *
 * The structs have the layout of dlpack.h, under names of weft, so that a program may include both
 * headers and cast pointers.  A shard is shared, not the whole tensor: the other library sees the
 * memory of this rank. */
#ifndef WEFT_DLPACK_H
#define WEFT_DLPACK_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values of DLDeviceType that weft names.  A backend that works in host memory imports memory
 * of the CPU type and of the two HOST types.  A backend that works in device memory imports every
 * other type, also one without a name here, if the device reports the memory as its own.  An export
 * has the type that the caller states. */
enum weft_dl_device_type {
    WEFT_DL_CPU = 1,
    WEFT_DL_CUDA = 2,
    WEFT_DL_CUDA_HOST = 3,
    WEFT_DL_ROCM = 10,
    WEFT_DL_ROCM_HOST = 11,
    WEFT_DL_CUDA_MANAGED = 13
};

enum weft_dl_flag {
    WEFT_DL_READ_ONLY = 1,
    WEFT_DL_COPIED = 2 /* the producer has made a copy */
};

typedef struct weft_dl_device {
    int32_t type; /* enum weft_dl_device_type */
    int32_t id;
} weft_dl_device;

typedef struct weft_dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} weft_dl_dtype;

typedef struct weft_dl_tensor { /* DLTensor */
    void *data;
    weft_dl_device device;
    int32_t ndim;
    weft_dl_dtype dtype;
    int64_t *shape, *strides; /* in elements; strides may be NULL: row-major without gaps */
    uint64_t byte_offset;
} weft_dl_tensor;

typedef struct weft_dl_version {
    uint32_t major, minor;
} weft_dl_version;

typedef struct weft_dl_versioned { /* DLManagedTensorVersioned */
    weft_dl_version version;
    void *manager_ctx;
    void (*deleter)(struct weft_dl_versioned *self);
    uint64_t flags; /* enum weft_dl_flag */
    weft_dl_tensor tensor;
} weft_dl_versioned;

typedef struct weft_dl_unversioned { /* DLManagedTensor, of DLPack before 1.0 */
    weft_dl_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct weft_dl_unversioned *self);
} weft_dl_unversioned;

/* Set *OUT to the dtype of weft that is DTYPE of DLPack.  WEFT_ERR_UNSUPPORTED: weft has no such
 * dtype. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_dtype_from_dlpack(weft_dl_dtype dtype,
                                                           enum weft_dtype *out);
/* Set *OUT to the dtype of DLPack that is DTYPE of weft.  WEFT_ERR_UNSUPPORTED: DTYPE is not a
 * dtype. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_dtype_to_dlpack(enum weft_dtype dtype, weft_dl_dtype *out);

typedef struct weft_dlpack_options {
    size_t struct_size;
    /* For export: the device type of the memory.  0: WEFT_DL_CPU, if the host may read the device's
     * memory; otherwise the caller states it, because weft knows no vendors. */
    int32_t device_type;
    /* PRODUCER has the work that writes the memory, and the consumer will post its work to
     * CONSUMER.  The call makes CONSUMER wait for the work that is on PRODUCER now.  Nothing is to
     * be done if the two are equal, such as two that are NULL. */
    weft_stream *producer, *consumer;
    const char *name; /* for import: as in weft_tensor_options */
    /* With simulated ranks (context.h): the rank whose shard is shared.  For import, the shards of
     * all other ranks must be empty, as with the placement O.  Real ranks ignore it. */
    int32_t rank;
    /* The shared struct is a weft_dl_unversioned, for libraries that know only DLPack before 1.0.
     * False: it is a weft_dl_versioned. */
    bool unversioned;
} weft_dlpack_options;

/* Share this rank's shard of TENSOR.  OPTIONS may be NULL.  Set *OUT to a weft_dl_versioned or, if
 * OPTIONS ask for it, to a weft_dl_unversioned.  It keeps a reference to TENSOR.  The consumer
 * calls its `deleter` once, when it no longer uses the memory.  If the context is released before
 * that, it frees the memory: the consumer must not use it any more, but must still call `deleter`.
 * If the tensor is read-only, the struct has the flag WEFT_DL_READ_ONLY.  The unversioned form has
 * no flags, so it refuses a read-only tensor. WEFT_ERR_INVALID: the device type is 0, and the host
 * cannot read the device's memory. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_to_dlpack(weft_tensor *tensor,
                                                          const weft_dlpack_options *options,
                                                          void **out);

/* Create a tensor of layout SPEC whose shard on this rank is the memory of MANAGED, a
 * weft_dl_versioned or, if OPTIONS say so, a weft_dl_unversioned.  OPTIONS may be NULL.  After
 * success the tensor owns MANAGED and calls its `deleter`, unless that is NULL, when no tensor uses
 * the memory any more; after a failure MANAGED is the caller's.  A tensor of read-only memory
 * refuses calls that write it.  WEFT_ERR_VERSION: MANAGED has another major version than 1.
 * WEFT_ERR_INVALID: the mesh has a rank that the job does not have, the shape or the dtype differs
 * from the shard's, the memory is on another device, or a stride is invalid (weft_bind_options;
 * strides of 0 are allowed if the memory is read-only).  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_from_dlpack(weft_context *context,
                                                            const weft_spec *spec, void *managed,
                                                            const weft_dlpack_options *options,
                                                            weft_tensor **out);

#ifdef __cplusplus
}
#endif
#endif
