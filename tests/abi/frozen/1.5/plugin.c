/* plugin.c - a plugin of ABI 1.5, built with the header beside it.  Like the header it never
 * changes: later versions of weft must load it.  What its functions do is of no interest here. */
#include "weft_plugin.h"

#include <string.h>

static const weft_host *host;

/* ---- device ---- */

static weft_status probe(weft_probe *out)
{
    (void)out;
    out->score = 5000;
    out->device_count = 1;
    strcpy(out->library, "/opt/libvendor.so.2.20");
    return WEFT_OK;
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

static uint32_t ranges_wanted(void)
{
    return 0;
}

static void range_begin(const weft_range *range)
{
    (void)range;
}

static void range_end(void)
{
}

static weft_status allocate_on(void *device, uint64_t bytes, void *stream, void **pointer)
{
    (void)stream;
    return allocate(device, bytes, WEFT_MEMORY_DEVICE, pointer);
}

static weft_status free_on(void *device, void *pointer, void *stream)
{
    (void)stream;
    return release(device, pointer);
}

__attribute__((unused)) static const weft_device_table device_table = {
    .struct_size = sizeof(weft_device_table),
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
    .stream_wait = wait_for,
    .stream_call = stream_call,
    .event_create = make,
    .event_destroy = nothing_of_device,
    .event_record = three,
    .event_query = two,
    .event_wait = wait_for,
    .stream_wait_event = three,
    .ranges_wanted = ranges_wanted,
    .range_begin = range_begin,
    .range_end = range_end,
    .allocate_on = allocate_on,
    .free_on = free_on,
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

__attribute__((unused)) static const weft_comm_table comm_table = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
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

/* ---- kernel ---- */

static weft_status regions_create(void *device, uint32_t element_bytes, uint64_t count,
                                  const weft_region *regions, void **list)
{
    (void)device, (void)element_bytes, (void)count, (void)regions, (void)list;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status regions_copy(void *list, const void *const *sources, void *const *targets,
                                void *stream)
{
    (void)list, (void)sources, (void)targets, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status reduce(void *device, uint32_t dtype, uint32_t reduction, uint64_t count,
                          uint32_t size, const void *const *sources, void *target, void *stream)
{
    (void)device, (void)dtype, (void)reduction, (void)count, (void)size, (void)sources;
    (void)target, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                        const void *source, void *target, void *stream)
{
    (void)device, (void)from, (void)to, (void)count, (void)source, (void)target, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status scale_or_fill(void *device, uint32_t dtype, uint64_t count, const void *value,
                                 void *target, void *stream)
{
    (void)device, (void)dtype, (void)count, (void)value, (void)target, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status regions_average(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                   const void *const *sources, void *const *targets, void *stream)
{
    (void)dtype, (void)size, (void)divisor;
    return regions_copy(list, sources, targets, stream);
}

static weft_status regions_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                                void *const *targets, void *stream)
{
    (void)from, (void)to;
    return regions_copy(list, sources, targets, stream);
}

static weft_status regions_draw(void *list, const weft_draw *draw, void *const *targets,
                                void *stream)
{
    (void)list, (void)draw, (void)targets, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status spans_create(void *device, uint64_t count, const weft_span *spans, uint32_t sums,
                                void **list)
{
    (void)device, (void)count, (void)spans, (void)sums, (void)list;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status spans_powers(void *list, void *const *memory, double p, double *sums,
                                void *stream)
{
    (void)list, (void)memory, (void)p, (void)sums, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status spans_limit(void *list, void *const *memory, const weft_norm_limit *limit,
                               const double *sum, double *norm, void *stream)
{
    (void)list, (void)memory, (void)limit, (void)sum, (void)norm, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status spans_clamp(void *list, void *const *memory, double most, void *stream)
{
    (void)list, (void)memory, (void)most, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status merge_rows(void *device, const weft_merge *merge, void *stream)
{
    (void)device, (void)merge, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static const weft_kernel_table kernel_table = {
    .struct_size = sizeof(weft_kernel_table),
    .signature = WEFT_KERNEL_SIGNATURE,
    .regions_create = regions_create,
    .regions_destroy = nothing,
    .regions_copy = regions_copy,
    .reduce = reduce,
    .cast = cast,
    .scale = scale_or_fill,
    .fill = scale_or_fill,
    .regions_average = regions_average,
    .regions_cast = regions_cast,
    .regions_draw = regions_draw,
    .spans_create = spans_create,
    .spans_destroy = nothing,
    .spans_powers = spans_powers,
    .spans_limit = spans_limit,
    .spans_clamp = spans_clamp,
    .merge_rows = merge_rows,
};

/* ---- the plugin ---- */

static const weft_plugin plugin = {
    .struct_size = sizeof(weft_plugin),
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .host_minor_needed = WEFT_ABI_MINOR,
    .name = "frozen",
    .version = "1.5",
    .build = "test",
    .description = "a plugin of ABI 1.5",
    .device = &device_table,
    .comm = &comm_table,
    .symm = &symm_table,
    .kernel = &kernel_table,
};

const weft_plugin *weft_plugin_entry(const weft_host *given)
{
    host = given;
    return &plugin;
}
