/* symm_device.h - symmetric memory as kernels see it: plain data that is passed by value.
 *
 * Stands alone, as C99, C++ and inside CUDA and HIP sources, so that kernels compiled elsewhere
 * need nothing else of weft.  weft_symm_device_get fills it in; it is good until the memory is
 * released. Storing and loading through these addresses is the kernel's own affair: to be seen by
 * another rank data is stored, then a slot is changed with release order at system scope, and that
 * rank reads the slot with acquire order at system scope. */
#ifndef WEFT_SYMM_DEVICE_H
#define WEFT_SYMM_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define WEFT_SYMM_INLINE static __host__ __device__ inline
#else
#define WEFT_SYMM_INLINE static inline
#endif

/* Both arrays have SIZE entries and lie where the backend's kernels can read them: in device memory
 * on a GPU, in host memory on a CPU.  A peer out of reach of loads and stores has NULL. */
typedef struct weft_symm_device {
    int32_t rank, size;
    uint32_t channels, reserved;
    uint64_t bytes;           /* of each rank's buffer */
    void *const *buffers;     /* start of each rank's memory, as this rank sees it */
    uint64_t *const *signals; /* each rank's pad: CHANNELS x SIZE slots */
    void *multicast;          /* one address for all ranks' buffers, or NULL */
} weft_symm_device;

/* Where byte OFFSET of PEER's buffer is, or NULL. */
WEFT_SYMM_INLINE void *weft_symm_address(const weft_symm_device *device, int32_t peer,
                                         uint64_t offset)
{
    char *base = (char *)device->buffers[peer];

    return base != NULL ? base + offset : NULL;
}

/* The slot at rank AT that rank FROM signals CHANNEL with, or NULL. */
WEFT_SYMM_INLINE uint64_t *weft_symm_slot(const weft_symm_device *device, int32_t at,
                                          uint32_t channel, int32_t from)
{
    uint64_t *pad = device->signals[at];

    return pad != NULL ? pad + (uint64_t)channel * (uint64_t)device->size + (uint64_t)from : NULL;
}

#endif
