/* cuda.c - an engine shares its streams, events, memory and NCCL calls with weft.
 *
 *     WEFT_BACKEND=nccl weft run -n 2 ./cuda
 *
 * The engine's kernels run on its own CUDA stream.  Its sums are weft's: on the same stream, or on
 * a stream of weft beside it, ordered by events of either side and never by the host.  One of its
 * libraries takes an ncclComm_t and gets weft's.  The engine's kernels here only set memory.  When
 * a call fails, the exit code tells whether the device or its library has failed: then the job is
 * better started elsewhere. */
#include "driver.h"

#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 16, BYTES = COUNT * 4, EXIT_ELSEWHERE = 75 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) fail(#call);                                                        \
    } while (0)

#define VENDOR(call)                                                                               \
    do {                                                                                           \
        int vendor_result = (call);                                                                \
        if (vendor_result != 0) {                                                                  \
            fprintf(stderr, "%s: %d\n", #call, vendor_result);                                     \
            exit(EXIT_ELSEWHERE);                                                                  \
        }                                                                                          \
    } while (0)

static _Noreturn void fail(const char *call)
{
    int64_t code;
    const char *vendor = weft_last_error_vendor(&code);

    fprintf(stderr, "%s: %s\n", call, weft_last_error());
    if (vendor == NULL) exit(EXIT_FAILURE);
    fprintf(stderr, "%s gave the error %lld\n", vendor, (long long)code);
    exit(EXIT_ELSEWHERE);
}

/* The engine: one stream on which it computes, and its gradient. */
struct engine {
    struct driver driver;
    weft_context *ctx;
    stream_handle compute;
    weft_stream *wrapped; /* the same stream, for weft */
    weft_stream *beside;  /* weft's own stream, for sums while the engine computes */
    device_pointer gradient;
    int32_t *host; /* BYTES bytes, as the gradient */
};

/* A kernel: every byte of the gradient becomes BYTE. */
static void compute(struct engine *e, stream_handle stream, int byte)
{
    VENDOR(e->driver.cuMemsetD8Async(e->gradient, (unsigned char)byte, BYTES, stream));
}

static void add_up(struct engine *e, weft_stream *stream)
{
    void *memory = (void *)e->gradient;

    MUST(weft_all_reduce(weft_world(e->ctx), memory, memory, COUNT, WEFT_DTYPE_I32, WEFT_REDUCE_SUM,
                         stream));
}

/* The gradient, behind the work on the compute stream, is the sum of the ranks' bytes R + FIRST. */
static void check(struct engine *e, int first, const char *what)
{
    int32_t ranks = weft_size(e->ctx), sum = 0;

    for (int32_t r = 0; r < ranks; r++)
        sum += (r + first) * 0x01010101;
    VENDOR(e->driver.cuMemcpyAsync((device_pointer)e->host, e->gradient, BYTES, e->compute));
    VENDOR(e->driver.cuStreamSynchronize(e->compute));
    for (int i = 0; i < COUNT; i++)
        if (e->host[i] != sum) {
            fprintf(stderr, "%s: element %d is %d, not %d\n", what, i, e->host[i], sum);
            exit(EXIT_FAILURE);
        }
    if (weft_rank(e->ctx) == 0) printf("%s: right\n", what);
}

/* ---- four ways to share the device with weft ---- */

static void sum_on_own_stream(struct engine *e)
{
    compute(e, e->compute, weft_rank(e->ctx) + 1);
    add_up(e, e->wrapped);
    check(e, 1, "a sum on the engine's stream");
}

/* weft waits for an event of the engine, and the engine for one of weft. */
static void sum_beside(struct engine *e)
{
    weft_work *computed, *summed;
    event_handle ready;

    VENDOR(e->driver.cuEventCreate(&ready, 0));
    compute(e, e->compute, weft_rank(e->ctx) + 2);
    VENDOR(e->driver.cuEventRecord(ready, e->compute));
    MUST(weft_work_wrap(e->ctx, ready, &computed));
    MUST(weft_stream_wait_work(e->beside, computed));
    add_up(e, e->beside);
    MUST(weft_work_record(e->ctx, e->beside, &summed));
    /* here the engine would post kernels that do not need the sum */
    VENDOR(e->driver.cuStreamWaitEvent(e->compute, weft_work_native(summed), 0));
    check(e, 2, "a sum beside the engine's stream");
    weft_work_release(&computed);
    weft_work_release(&summed);
    VENDOR(e->driver.cuEventDestroy(ready));
}

/* A kernel that prepares a sum runs on weft's stream, so no event is needed. */
static void compute_on_weft(struct engine *e)
{
    compute(e, weft_stream_native(e->beside), weft_rank(e->ctx) + 3);
    add_up(e, e->beside);
    MUST(weft_stream_wait(e->beside, WEFT_FOREVER));
    check(e, 3, "a kernel on weft's stream");
}

/* A library that wants an ncclComm_t, here NCCL itself.  A call of weft's communicator may
 * continue after its return. */
static void sum_by_nccl(struct engine *e)
{
    communicator_handle comm = weft_comm_native(weft_world(e->ctx));
    void *memory = (void *)e->gradient;
    int result;

    compute(e, e->compute, weft_rank(e->ctx) + 4);
    result = e->driver.ncclAllReduce(memory, memory, COUNT, NCCL_INT32, NCCL_SUM, comm, e->compute);
    while (result == NCCL_IN_PROGRESS)
        VENDOR(e->driver.ncclCommGetAsyncError(comm, &result));
    VENDOR(result);
    check(e, 4, "a sum by NCCL");
}

/* ---- the program ---- */

/* Whether weft's device can use MEMORY directly: another device's, or the host's, is to be copied
 * first. */
static bool is_on_device(weft_context *ctx, device_pointer memory)
{
    weft_pointer_info found = {.struct_size = sizeof found};
    weft_device_info own = {.struct_size = sizeof own};

    MUST(weft_device_get(ctx, &own));
    MUST(weft_pointer_get(ctx, (void *)memory, &found));
    return found.kind == WEFT_MEMORY_DEVICE && found.device == own.device;
}

int main(void)
{
    struct engine e = {.ctx = NULL};
    void *host;

    MUST(weft_init(NULL, &e.ctx)); /* makes the device's context current */
    if (strcmp(weft_context_plugin(e.ctx)->name, "nccl") != 0) {
        fprintf(stderr, "set WEFT_BACKEND=nccl\n");
        return EXIT_FAILURE;
    }
    driver_open(&e.driver);
    VENDOR(e.driver.cuStreamCreate(&e.compute, CU_STREAM_NON_BLOCKING));
    VENDOR(e.driver.cuMemAlloc(&e.gradient, BYTES));
    if (!is_on_device(e.ctx, e.gradient)) {
        fprintf(stderr, "the engine's memory is not on the device of weft\n");
        return EXIT_FAILURE;
    }
    MUST(weft_stream_wrap(e.ctx, e.compute, &e.wrapped));
    MUST(weft_stream_create(e.ctx, &e.beside));
    MUST(weft_alloc(e.ctx, BYTES, WEFT_MEMORY_PINNED, &host));
    e.host = host;

    sum_on_own_stream(&e);
    sum_beside(&e);
    compute_on_weft(&e);
    sum_by_nccl(&e);

    MUST(weft_free(e.ctx, host));
    weft_stream_release(&e.wrapped); /* the engine's stream stays */
    weft_stream_release(&e.beside);
    VENDOR(e.driver.cuMemFree(e.gradient));
    VENDOR(e.driver.cuStreamDestroy(e.compute));
    weft_context_release(&e.ctx);
    return EXIT_SUCCESS;
}
