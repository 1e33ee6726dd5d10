/* driver.c - see driver.h. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The file that VARIABLE names, as for weft, or NAME. */
static void *open_library(const char *variable, const char *name)
{
    const char *given = getenv(variable);
    void *library = dlopen(given != NULL ? given : name, RTLD_NOW | RTLD_LOCAL);

    if (library != NULL) return library;
    fprintf(stderr, "%s\n", dlerror());
    exit(EXIT_FAILURE);
}

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    *(void **)function = found;
}

void driver_open(struct driver *driver)
{
    void *cuda = open_library("WEFT_CUDA_LIB", "libcuda.so.1");
    void *nccl = open_library("WEFT_NCCL_LIB", "libnccl.so.2");

    find(cuda, "cuMemAlloc_v2", &driver->cuMemAlloc);
    find(cuda, "cuMemFree_v2", &driver->cuMemFree);
    find(cuda, "cuMemsetD8Async", &driver->cuMemsetD8Async);
    find(cuda, "cuMemcpyAsync", &driver->cuMemcpyAsync);
    find(cuda, "cuStreamCreate", &driver->cuStreamCreate);
    find(cuda, "cuStreamDestroy_v2", &driver->cuStreamDestroy);
    find(cuda, "cuStreamSynchronize", &driver->cuStreamSynchronize);
    find(cuda, "cuStreamWaitEvent", &driver->cuStreamWaitEvent);
    find(cuda, "cuEventCreate", &driver->cuEventCreate);
    find(cuda, "cuEventDestroy_v2", &driver->cuEventDestroy);
    find(cuda, "cuEventRecord", &driver->cuEventRecord);
    find(nccl, "ncclAllReduce", &driver->ncclAllReduce);
    find(nccl, "ncclCommGetAsyncError", &driver->ncclCommGetAsyncError);
}
