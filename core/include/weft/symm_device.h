/* symm_device.h - symmetric memory for kernels: plain data that is passed by value.
 *
 * This header needs no other header of weft.  It compiles as C99, as C++, and inside CUDA and HIP
 * sources.  weft_symm_device_get fills in weft_symm_device.  The addresses are valid until the
 * symmetric memory is released.
 *
 * A kernel orders its own loads and stores.  To pass data to another rank, a kernel stores the data
 * and then changes a slot with release order at system scope.  The other rank reads the slot with
 * acquire order at system scope and then loads the data. */
#ifndef WEFT_SYMM_DEVICE_H
#define WEFT_SYMM_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define WEFT_SYMM_INLINE static __host__ __device__ inline
#else
#define WEFT_SYMM_INLINE static inline
#endif

/* Both arrays have SIZE entries.  They are in device memory on a GPU, in host memory on a CPU.  The
 * entry of a peer whose memory loads and stores cannot reach is NULL. */
typedef struct weft_symm_device {
    int32_t rank, size;
    uint32_t channels, reserved;
    uint64_t bytes;           /* size of each rank's buffer */
    void *const *buffers;     /* start of each rank's buffer, in this rank's address space */
    uint64_t *const *signals; /* each rank's signal pad: CHANNELS x SIZE slots */
} weft_symm_device;

/* Returns the address of byte OFFSET of PEER's buffer, or NULL if this rank cannot address it.
 * PEER and OFFSET are not checked. */
WEFT_SYMM_INLINE void *weft_symm_address(const weft_symm_device *device, int32_t peer,
                                         uint64_t offset)
{
    char *base = (char *)device->buffers[peer];

    return base != NULL ? base + offset : NULL;
}

/* Returns the address of the slot of CHANNEL in the signal pad of rank AT that has rank FROM as its
 * sender, or NULL if this rank cannot address it.  The arguments are not checked. */
WEFT_SYMM_INLINE uint64_t *weft_symm_slot(const weft_symm_device *device, int32_t at,
                                          uint32_t channel, int32_t from)
{
    uint64_t *pad = device->signals[at];

    return pad != NULL ? pad + (uint64_t)channel * (uint64_t)device->size + (uint64_t)from : NULL;
}

#endif
