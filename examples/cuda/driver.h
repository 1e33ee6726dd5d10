/* driver.h - the functions of CUDA's driver and of NCCL that cuda.c calls.
 *
 * A program of yours includes <cuda.h> and <nccl.h> and links both libraries.  This one opens them
 * when it runs, so that it compiles without CUDA. */
#ifndef EXAMPLES_CUDA_DRIVER_H
#define EXAMPLES_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef void *stream_handle;       /* CUstream, which is cudaStream_t */
typedef void *event_handle;        /* CUevent, which is cudaEvent_t */
typedef uint64_t device_pointer;   /* CUdeviceptr */
typedef void *communicator_handle; /* ncclComm_t */

enum { NCCL_IN_PROGRESS = 7, NCCL_INT32 = 2, NCCL_SUM = 0, CU_STREAM_NON_BLOCKING = 1 };

/* The functions have the names and arguments of the vendor, and return 0 on success. */
struct driver {
    int (*cuMemAlloc)(device_pointer *memory, size_t bytes);
    int (*cuMemFree)(device_pointer memory);
    int (*cuMemsetD8Async)(device_pointer memory, unsigned char value, size_t bytes,
                           stream_handle stream);
    int (*cuMemcpyAsync)(device_pointer target, device_pointer source, size_t bytes,
                         stream_handle stream);
    int (*cuStreamCreate)(stream_handle *stream, unsigned flags);
    int (*cuStreamDestroy)(stream_handle stream);
    int (*cuStreamSynchronize)(stream_handle stream);
    int (*cuStreamWaitEvent)(stream_handle stream, event_handle event, unsigned flags);
    int (*cuEventCreate)(event_handle *event, unsigned flags);
    int (*cuEventDestroy)(event_handle event);
    int (*cuEventRecord)(event_handle event, stream_handle stream);
    int (*ncclAllReduce)(const void *send, void *recv, size_t count, int dtype, int reduction,
                         communicator_handle comm, stream_handle stream);
    int (*ncclCommGetAsyncError)(communicator_handle comm, int *result);
};

/* Fill *DRIVER.  Ends the process if a library or a function is missing. */
void driver_open(struct driver *driver);

#endif
