/* good_plugin.c - a plugin that loads, with -DWITH_SYMM a symm table, and, by a -DWRONG_...,
 * plugins that are wrong in one way each.  The loader never calls its
 * functions. */
#ifdef WRONG_NO_ENTRY
#define weft_plugin_entry another_entry
#endif
#include "weft_plugin.h"

#include <string.h>

#ifndef NAME
#define NAME "good"
#endif
#ifndef SCORE
#define SCORE 5000 /* above every real plugin */
#endif

static const weft_host *host;

/* ---- device ---- */

static weft_status probe(weft_probe *out)
{
    (void)out;
#if defined WRONG_NO_LIBRARY
    host->set_error(WEFT_ERR_NO_LIBRARY, NULL, 0, "libvendor.so.2 not found");
    return WEFT_ERR_NO_LIBRARY;
#elif defined WRONG_OLD_LIBRARY
    host->set_error(WEFT_ERR_OLD_LIBRARY, "Vendor", 217, "libvendor 2.17 found, 2.20 wanted");
    return WEFT_ERR_OLD_LIBRARY;
#elif defined WRONG_NO_DEVICE
    host->set_error(WEFT_ERR_NO_DEVICE, NULL, 0, "no vendor device in this machine");
    return WEFT_ERR_NO_DEVICE;
#elif defined WRONG_PROBE
    return WEFT_ERR_DEVICE; /* without an error text */
#else
    out->score = SCORE;
    out->device_count = 1;
#ifdef WRONG_LIBRARY_UNENDED
    memset(out->library, 'x', sizeof out->library);
#else
    strcpy(out->library, "/opt/libvendor.so.2.20");
#endif
    return WEFT_OK;
#endif
}

static weft_status open_device(const weft_device_options *options, void **device)
{
    (void)options;
    *device = (void *)host;
    return WEFT_OK;
}

static void nothing(void *object)
{
    (void)object;
}

static void nothing_of_device(void *device, void *object)
{
    (void)device, (void)object;
}

static weft_status describe(void *device, weft_device_info *out)
{
    (void)device, (void)out;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer)
{
    (void)device, (void)kind;
    *pointer = host->allocate((size_t)bytes);
    return *pointer != NULL ? WEFT_OK : WEFT_ERR_NO_MEMORY;
}

static weft_status release(void *device, void *pointer)
{
    (void)device;
    host->release(pointer);
    return WEFT_OK;
}

static weft_status query_pointer(void *device, const void *pointer, weft_pointer_info *out)
{
    (void)device, (void)pointer, (void)out;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status copy(void *device, void *target, const void *source, uint64_t bytes,
                        void *stream)
{
    (void)device, (void)stream;
    memmove(target, source, (size_t)bytes);
    return WEFT_OK;
}

static weft_status fill(void *device, void *target, uint8_t byte, uint64_t bytes, void *stream)
{
    (void)device, (void)stream;
    memset(target, byte, (size_t)bytes);
    return WEFT_OK;
}

static weft_status make(void *device, void **object)
{
    *object = device;
    return WEFT_OK;
}

static weft_status two(void *device, void *object)
{
    (void)device, (void)object;
    return WEFT_OK;
}

static weft_status three(void *device, void *a, void *b)
{
    (void)device, (void)a, (void)b;
    return WEFT_OK;
}

static weft_status wait_for(void *device, void *object, int64_t timeout_ns)
{
    (void)device, (void)object, (void)timeout_ns;
    return WEFT_OK;
}

static weft_status stream_call(void *device, void *stream, void (*fn)(void *), void *argument)
{
    (void)device, (void)stream;
    fn(argument);
    return WEFT_OK;
}

#ifdef WRONG_DEVICE_SIZE
#define DEVICE_SIZE (sizeof(weft_device_table) - 8)
#else
#define DEVICE_SIZE sizeof(weft_device_table)
#endif
#ifdef WRONG_NULL_FUNCTION
#define STREAM_WAIT NULL
#else
#define STREAM_WAIT wait_for
#endif

__attribute__((unused)) static const weft_device_table device_table = {
    .struct_size = DEVICE_SIZE,
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = probe,
    .open = open_device,
    .close = nothing,
    .describe = describe,
    .allocate = allocate,
    .free = release,
    .query_pointer = query_pointer,
    .copy = copy,
    .fill = fill,
    .stream_create = make,
    .stream_destroy = nothing_of_device,
    .stream_query = two,
    .stream_wait = STREAM_WAIT,
    .stream_call = stream_call,
    .event_create = make,
    .event_destroy = nothing_of_device,
    .event_record = three,
    .event_query = two,
    .event_wait = wait_for,
    .stream_wait_event = three,
};

/* ---- comm ---- */

static weft_status prepare(void *device, const weft_comm_options *options, void **comm,
                           weft_blob *address)
{
    (void)device, (void)options, (void)comm, (void)address;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status commit(void *comm, const weft_blob *addresses, const weft_exchange *exchange)
{
    (void)comm, (void)addresses, (void)exchange;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status one(void *object)
{
    (void)object;
    return WEFT_OK;
}

/* Sums of f32 natively, other sums by emulation; collectives without arithmetic natively. */
static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    (void)device;
    if (query->reduction != WEFT_REDUCE_SUM)
        *level = WEFT_SUPPORT_NO;
    else
        *level = query->collective == WEFT_COLL_ALL_REDUCE && query->dtype != WEFT_DTYPE_F32
                     ? WEFT_SUPPORT_EMULATED
                     : WEFT_SUPPORT_NATIVE;
    return WEFT_OK;
}

static weft_status collective(void *comm, const weft_collective_args *args)
{
    (void)comm, (void)args;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status message(void *comm, const weft_message *args)
{
    (void)comm, (void)args;
    return WEFT_ERR_UNSUPPORTED;
}

#ifdef WRONG_FINGERPRINT
#define COMM_SIGNATURE (WEFT_COMM_SIGNATURE ^ 1)
#else
#define COMM_SIGNATURE WEFT_COMM_SIGNATURE
#endif
#ifdef WRONG_COMM_SIZE
#define COMM_SIZE 0x7fffffff
#else
#define COMM_SIZE sizeof(weft_comm_table)
#endif

__attribute__((unused)) static const weft_comm_table comm_table = {
    .struct_size = COMM_SIZE,
    .signature = COMM_SIGNATURE,
    .prepare = prepare,
    .commit = commit,
    .destroy = nothing,
    .abort = nothing,
    .async_error = one,
    .support = support,
    .collective = collective,
    .send = message,
    .receive = message,
    .group_begin = one,
    .group_end = one,
};

/* ---- symm ---- */

#ifdef WITH_SYMM
static weft_status window_create(void *comm, uint64_t bytes, uint32_t signals, void **window,
                                 void **local)
{
    (void)comm, (void)bytes, (void)signals, (void)window, (void)local;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status handle(void *window, weft_symm_handle *out)
{
    (void)window, (void)out;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status put(void *window, uint64_t target_offset, const void *source, uint64_t bytes,
                       int32_t peer, void *stream)
{
    (void)window, (void)target_offset, (void)source, (void)bytes, (void)peer, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status get(void *window, void *target, uint64_t source_offset, uint64_t bytes,
                       int32_t peer, void *stream)
{
    (void)window, (void)target, (void)source_offset, (void)bytes, (void)peer, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status put_signal(void *window, uint64_t target_offset, const void *source,
                              uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                              int32_t peer, void *stream)
{
    (void)signal, (void)value, (void)op;
    return put(window, target_offset, source, bytes, peer, stream);
}

static weft_status send_signal(void *window, uint32_t signal, uint64_t value, uint32_t op,
                               int32_t peer, void *stream)
{
    (void)window, (void)signal, (void)value, (void)op, (void)peer, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status wait_signal(void *window, uint32_t signal, uint32_t compare, uint64_t value,
                               int64_t timeout_ns, void *stream)
{
    (void)window, (void)signal, (void)compare, (void)value, (void)timeout_ns, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static const weft_symm_table symm_table = {
    .struct_size = sizeof(weft_symm_table),
    .signature = WEFT_SYMM_SIGNATURE,
    .window_create = window_create,
    .window_destroy = one,
    .handle = handle,
    .put = put,
    .get = get,
    .put_signal = put_signal,
    .signal = send_signal,
    .wait_signal = wait_signal,
    .fence = two,
    .quiet = two,
    .barrier = two,
};
#define SYMM_TABLE &symm_table
#else
#define SYMM_TABLE NULL
#endif

/* ---- the plugin ---- */

#ifdef WRONG_MAJOR
#define MAJOR (WEFT_ABI_MAJOR + 7)
#else
#define MAJOR WEFT_ABI_MAJOR
#endif
#ifdef WRONG_NEEDS_NEWER
#define NEEDED (WEFT_ABI_MINOR + 5)
#else
#define NEEDED WEFT_ABI_MINOR
#endif
#if defined WRONG_DESCRIPTOR_SMALL
#define PLUGIN_SIZE 16
#elif defined WRONG_DESCRIPTOR_LARGE
#define PLUGIN_SIZE 0xffffffff
#else
#define PLUGIN_SIZE sizeof(weft_plugin)
#endif
#ifdef WRONG_WILD_STRING
#define VERSION ((const char *)1)
#else
#define VERSION "1.2"
#endif
#if defined WRONG_WILD_TABLE
#define COMM_TABLE ((const weft_comm_table *)8)
#elif defined WRONG_MEMORY_ONLY
#define COMM_TABLE NULL
#else
#define COMM_TABLE &comm_table
#endif
#ifdef WRONG_NO_DEVICE_TABLE
#define DEVICE_TABLE NULL
#else
#define DEVICE_TABLE &device_table
#endif

static weft_plugin plugin = {
    .struct_size = PLUGIN_SIZE,
    .abi_major = MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .host_minor_needed = NEEDED,
    .name = NAME,
    .version = VERSION,
    .build = "test",
    .description = "a plugin for the loader's tests",
    .device = DEVICE_TABLE,
    .comm = COMM_TABLE,
    .symm = SYMM_TABLE,
};

#ifdef WRONG_UNDEFINED
int nobody_defines_this(void);
#endif

const weft_plugin *weft_plugin_entry(const weft_host *given)
{
    static int entered;

    host = given;
#if defined WRONG_REFUSES
    host->set_error(WEFT_ERR_VERSION, NULL, 0, "this host is not to my taste");
    return NULL;
#elif defined WRONG_NULL
    return NULL;
#elif defined WRONG_HEAP_DESCRIPTOR
    static weft_plugin *moved;
    moved = host->allocate(sizeof plugin);
    if (moved != NULL) memcpy(moved, &plugin, sizeof plugin);
    return moved;
#elif defined WRONG_UNALIGNED
    return (const weft_plugin *)(const void *)((const char *)&plugin + 1);
#elif defined WRONG_UNDEFINED
    if (nobody_defines_this()) return NULL;
#elif defined WRONG_HEAP_TABLE
    weft_comm_table *moved = host->allocate(sizeof comm_table);
    if (moved != NULL) memcpy(moved, &comm_table, sizeof comm_table);
    plugin.comm = moved;
#endif
    if (entered++ > 0) plugin.version = "entered again";
    return &plugin;
}
