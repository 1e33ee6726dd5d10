/* gpu.h - one device: its library, memory, streams and events.  Its kernels are in gpu_kernel.h.
 *
 * The same source serves CUDA's driver library and HIP.  gpu_api.def lists the functions that both
 * have.  gpu_vendor.def and *_device.c of each plugin contain the differences.  Functions that are
 * entries of the ABI's tables are documented there. */
#ifndef WEFT_GPU_H
#define WEFT_GPU_H

#include "plug_host.h"
#include "kit/names.h"
#include "vendor.h"
#include "weft_plugin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Constants that CUDA and HIP share. */
enum {
    GPU_SUCCESS = 0,
    GPU_INVALID_VALUE = 1,
    GPU_OUT_OF_MEMORY = 2,
    GPU_OLD_DRIVER = 35,
    GPU_NO_DEVICE = 100,
    GPU_INVALID_DEVICE = 101,
    GPU_INVALID_HANDLE = 400,
    GPU_NOT_FOUND = 500,
    GPU_NOT_READY = 600,
    GPU_CAPTURE_IMPLICIT = 906
};
enum { GPU_STREAM_NON_BLOCKING = 1, GPU_PINNED_PORTABLE = 1, GPU_EVENT_UNTIMED = 2 };
enum { GPU_CAPTURE_RELAXED = 2 };
enum { GPU_POOL_PINNED = 1, GPU_POOL_ON_DEVICE = 1, GPU_POOL_RELEASE_THRESHOLD = 4 };
enum { GPU_POOL_READ_WRITE = 3 };

struct vendor_pool_options {
    int allocation_type, handle_types;
    int location_type, location_id;
    void *security;
    size_t most_bytes;
    unsigned char reserved[56];
};

struct vendor_pool_access {
    int location_type, location_id;
    int flags;
};

struct vendor_uuid {
    char bytes[16];
};

struct gpu_api {
#define GPU(need, field, cuda, hip, arguments) vendor_result(*field) arguments;
#include "gpu_api.def"
#include "gpu_vendor.def"
#undef GPU
};

extern struct gpu_api gpu_api; /* filled by gpu_load */

/* A pointer as the library's address type. */
#define GPU_ADDRESS(pointer) ((vendor_address)(uintptr_t)(pointer))

/* ---- gpu_fail.c: errors ---- */

/* Status for RESULT of the device library.  A failure is described; WHAT names the call.  "Not
 * ready" is WEFT_IN_PROGRESS. */
weft_status gpu_check(vendor_result result, const char *what) PLUG_HOT;
weft_status gpu_status(vendor_result result) PLUG_HOT;

/* ---- gpu_load.c: the shared libraries ---- */

struct gpu_symbol {
    const char *name;
    void **address;
    bool required;
};

struct gpu_library {
    void *handle;
    char path[4096]; /* the kernel opens no longer path */
};

/* The last 160 characters or fewer of LIBRARY's path, for one line of text. */
#define GPU_SHOWN 164
void gpu_library_show(const struct gpu_library *library, char out[GPU_SHOWN]);

/* Open the library that KNOB names (a file, or a folder that contains one of NAMES, or a Python
 * site-packages folder that contains it under WHEEL), else the first of NAMES that can be opened.
 * WEFT_ERR_NO_LIBRARY names the files tried, or the reason why a file is not trusted.  Opens
 * nothing in a privileged program. */
weft_status gpu_library_open(struct gpu_library *library, const char *knob,
                             const char *const *names, size_t count, const char *wheel);
/* Open FILE if its code is trusted (trust.h).  The caller closes OUT->fd.  On failure OUT->why is
 * the reason, and *MISSING, unless NULL, is true if FILE does not exist. */
struct wf_trusted;
bool gpu_library_trust(const char *file, struct wf_trusted *out, bool *missing);
/* Resolve all symbols.  Returns the name of the first required one that is missing, or NULL. */
const char *gpu_library_resolve(const struct gpu_library *library, const struct gpu_symbol *symbols,
                                size_t count);

/* Open and start the device library, once.  WEFT_ERR_NO_LIBRARY, _OLD_LIBRARY, _NO_DEVICE. */
weft_status gpu_load(int *device_count);
extern struct gpu_library gpu_library;
extern int gpu_version;

/* ---- gpu_scope.c ---- */

struct gpu_module;

struct gpu_device {
    int32_t ordinal;
    int32_t count;      /* visible devices */
    int32_t capability; /* 90 for compute capability 9.0; 0 if the vendor has none */
    vendor_device handle;
    void *context;
    vendor_pool pool;    /* stream-ordered memory; NULL if the library has no pools */
    vendor_stream setup; /* for synchronous copies */
    pthread_mutex_t setup_lock;
    bool is_shared;             /* with other ranks, under WEFT_SHARE_GPU */
    atomic_bool is_lost;        /* its work never completes, so freeing memory would block */
    struct gpu_module *kernels; /* NULL: no kernels for this device */
    void *plugin_data;          /* of a plugin that extends the device */
    char name[128], uuid[64];
};

/* The device that is current for the calling thread between begin and end. */
struct gpu_scope {
    void *before;
    int before_ordinal;
    bool changed;
};
weft_status gpu_enter(const struct gpu_device *device, struct gpu_scope *scope) PLUG_HOT;
void gpu_leave(const struct gpu_scope *scope) PLUG_HOT;

weft_status gpu_bind_thread(void *device);

/* ---- gpu_device.c, above the kernels ---- */

weft_status gpu_open(const weft_device_options *options, void **device);
void gpu_close(void *device);
weft_status gpu_describe(void *device, weft_device_info *out);

/* ---- functions that differ by vendor: cuda_device.c, hip_device.c ---- */

const char *gpu_vendor_error_name(vendor_result result);
const char *gpu_vendor_error_text(vendor_result result);
/* Set variables that the library reads when it starts, unless the user has set them. */
void gpu_vendor_prepare(void);
/* WEFT_ERR_OLD_LIBRARY, with both version numbers, if the loaded library is too old. */
weft_status gpu_vendor_check_version(void);
void gpu_vendor_version_text(char *out, size_t size); /* "CUDA driver 13.0" */
/* Retain the device's context; read its uuid and capability. */
weft_status gpu_vendor_open(struct gpu_device *device);
void gpu_vendor_close(struct gpu_device *device);
vendor_result gpu_vendor_enter(const struct gpu_device *device, struct gpu_scope *scope) PLUG_HOT;
void gpu_vendor_leave(const struct gpu_scope *scope) PLUG_HOT;
vendor_result gpu_vendor_bind(const struct gpu_device *device);
vendor_result gpu_vendor_pointer_kind(const void *pointer, uint32_t *kind, int32_t *device);
vendor_result gpu_vendor_copy(void *target, const void *source, uint64_t bytes,
                              vendor_stream stream);
struct gpu_box_2d {
    void *target;
    const void *source;
    uint64_t target_pitch, source_pitch, width, height;
};
vendor_result gpu_vendor_copy_2d(const struct gpu_box_2d *box, vendor_stream stream);
vendor_result gpu_vendor_host_call(vendor_stream stream, void (*fn)(void *), void *argument);
/* The kernels' code built into the plugin, one entry per device kind; NULL past the end. */
const void *gpu_vendor_image(size_t index);

/* ---- gpu_memory.c ---- */

weft_status gpu_allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer);
weft_status gpu_free(void *device, void *pointer);
weft_status gpu_allocate_on(void *device, uint64_t bytes, void *stream, void **pointer);
weft_status gpu_free_on(void *device, void *pointer, void *stream);
weft_status gpu_query_pointer(void *device, const void *pointer, weft_pointer_info *out);
weft_status gpu_copy(void *device, void *target, const void *source, uint64_t bytes, void *stream);
weft_status gpu_fill_bytes(void *device, void *target, uint8_t byte, uint64_t bytes, void *stream);
/* WEFT_ERR_INVALID if kernels of the device cannot use POINTER.  WHAT names it. */
weft_status gpu_usable(const void *pointer, const char *what);
/* True if gpu_usable has accepted POINTER before.  False if unknown. */
bool gpu_is_known(const void *pointer) PLUG_HOT;
/* Stream-ordered memory.  Within a scope. */
weft_status gpu_borrow(struct gpu_device *device, uint64_t bytes, vendor_stream stream,
                       void **pointer);
void gpu_give_back(struct gpu_device *device, void *pointer, vendor_stream stream) PLUG_HOT;
/* Copy host memory to device memory and wait for the copy. */
weft_status gpu_upload(struct gpu_device *device, void *target, const void *source, uint64_t bytes);

/* ---- gpu_stream.c, gpu_event.c ---- */

/* The ABI's streams are pointers to these; NULL is the library's default stream. */
struct gpu_stream {
    vendor_stream native;
    bool owned;
};
static inline vendor_stream gpu_native(const void *stream)
{
    return stream == NULL ? (vendor_stream)0 : ((const struct gpu_stream *)stream)->native;
}

weft_status gpu_stream_create(void *device, void **stream);
void gpu_stream_destroy(void *device, void *stream);
weft_status gpu_stream_query(void *device, void *stream);
weft_status gpu_stream_wait(void *device, void *stream, int64_t timeout_ns);
weft_status gpu_stream_call(void *device, void *stream, void (*fn)(void *), void *argument);
weft_status gpu_stream_wrap(void *device, void *native, void **stream);
void *gpu_stream_native(void *device, void *stream);
weft_status gpu_stream_wait_event(void *device, void *stream, void *event);

weft_status gpu_event_create(void *device, void **event);
void gpu_event_destroy(void *device, void *event);
weft_status gpu_event_wrap(void *device, void *native, void **event);
void *gpu_event_native(void *device, void *event);
weft_status gpu_event_record(void *device, void *event, void *stream);
weft_status gpu_event_query(void *device, void *event);
weft_status gpu_event_wait(void *device, void *event, int64_t timeout_ns);
weft_status gpu_event_elapsed(void *device, void *from, void *to, int64_t *nanoseconds);

/* True if work posted to STREAM now is captured into a graph. */
bool gpu_is_capturing(vendor_stream stream) PLUG_HOT;

/* ---- cuda_ranges.c, hip_ranges.c ---- */

uint32_t gpu_ranges_wanted(void);
void gpu_range_begin(const weft_range *range);
void gpu_range_end(void);

/* ---- gpu_wait.c ---- */

/* One step of waiting since BEGAN: spin at first, then yield, then sleep a little. */
void gpu_pause(uint64_t began_ns);
/* Query once: WEFT_OK, WEFT_IN_PROGRESS or the error of ASK(OF), a query of the library.  WORK
 * names the work in messages. */
weft_status gpu_ask(const struct gpu_device *device, vendor_result (*ask)(void *), void *of,
                    const char *work);
/* Wait until the query does not return "not ready". */
weft_status gpu_await(const struct gpu_device *device, vendor_result (*ask)(void *), void *of,
                      int64_t timeout_ns, const char *work);

#endif
