/* gpu.h - a simulated device of host memory and threads, behind the simulated libcuda and
 * libamdhip64.
 *
 * Memory is the heap with a list of allocations.  A stream is a thread that runs its work in
 * order.  Kernels are host functions compiled from the same source.
 *
 * The environment can make it fail: STANDIN_DEVICES (number of devices; 8), STANDIN_VERSION,
 * STANDIN_NO_PEERS (1: memory of other processes is inaccessible), STANDIN_MEMORY (bytes of each),
 * STANDIN_FREE (maximum of the reported free bytes), STANDIN_RECORDING (1: another stream is
 * captured, so the default stream cannot be used), STANDIN_NO_POOLS (1: there is no memory in
 * stream order), STANDIN_NO_SPANS (1: kernels of spans and merges are absent),
 * STANDIN_FAIL_LAUNCH=N (the N-th launch, and any after it, fails the device), STANDIN_SLOW_CONTEXT
 * (microseconds to switch to a CUDA device). */
#ifndef WEFT_STANDIN_GPU_H
#define WEFT_STANDIN_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STANDIN_API __attribute__((visibility("default")))
/* A function that the library exports, declared and defined. */
/* clang-format off */
#define API(name, ...) STANDIN_API int name(__VA_ARGS__); STANDIN_API int name(__VA_ARGS__)
/* clang-format on */

enum {
    SG_OK = 0,
    SG_INVALID_VALUE = 1,
    SG_OUT_OF_MEMORY = 2,
    SG_NO_DEVICE = 100,
    SG_INVALID_DEVICE = 101,
    SG_INVALID_HANDLE = 400,
    SG_NOT_FOUND = 500,
    SG_NOT_READY = 600,
    SG_LAUNCH_FAILED = 719,
    SG_NOT_PERMITTED = 800,
    SG_CAPTURE_IMPLICIT = 906
};

enum { SG_MAX_DEVICES = 16 };

/* A number from the environment. */
long sg_setting(const char *name, long otherwise);
int sg_device_count(void);
/* The current device of the calling thread. */
int sg_current(void);
void sg_set_current(int device);
const char *sg_error_name(int code);
const char *sg_error_text(int code);
/* The permanent error of the device, or SG_OK. */
int sg_broken(void);
void sg_break(int code);

/* ---- gpu_memory.c ---- */

enum sg_kind { SG_UNKNOWN, SG_PINNED, SG_DEVICE };

struct sg_block {
    void *base;
    size_t bytes;
    enum sg_kind kind;
    int device;
};

int sg_alloc(size_t bytes, enum sg_kind kind, void **out);
int sg_free(void *pointer, enum sg_kind kind);
/* Make memory from elsewhere the device's, permanently. */
int sg_adopt(void *memory, size_t bytes);
void sg_disown(void *memory);
/* The block that contains POINTER.  Its kind is SG_UNKNOWN if no block does. */
struct sg_block sg_find(const void *pointer);
void sg_memory_info(size_t *available, size_t *total);

/* ---- gpu_stream.c ---- */

struct sg_stream;
struct sg_event;

int sg_stream_create(struct sg_stream **out);
int sg_stream_destroy(struct sg_stream *stream);
/* In all of these NULL is the current device's default stream. */
int sg_stream_query(struct sg_stream *stream);
int sg_stream_sync(struct sg_stream *stream);
/* Wait for all streams of the current device. */
void sg_device_sync(void);
/* RUN(self) in stream order.  SELF is a copy of BYTES at GIVEN. */
int sg_enqueue(struct sg_stream *stream, void (*run)(void *self), const void *given, size_t bytes);

int sg_event_create(struct sg_event **out);
int sg_event_destroy(struct sg_event *event);
int sg_event_record(struct sg_event *event, struct sg_stream *stream);
int sg_event_query(struct sg_event *event);
int sg_event_elapsed(float *milliseconds, struct sg_event *from, struct sg_event *to);
int sg_stream_wait_event(struct sg_stream *stream, struct sg_event *event);

int sg_copy(void *target, const void *source, size_t bytes, struct sg_stream *stream);
struct sg_box {
    void *target;
    const void *source;
    size_t target_pitch, source_pitch, width, height;
};
int sg_copy_2d(const struct sg_box *box, struct sg_stream *stream);
int sg_fill(void *target, unsigned char byte, size_t bytes, struct sg_stream *stream);
int sg_call(struct sg_stream *stream, void (*fn)(void *), void *argument);
/* True inside a function that a stream calls.  Such a function must not post work or allocate. */
bool sg_is_calling(void);

/* ---- kernels.cc ---- */

struct sg_kernel;
const struct sg_kernel *sg_kernel_find(const char *name);
int sg_launch(const struct sg_kernel *kernel, unsigned blocks, void **arguments,
              struct sg_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
