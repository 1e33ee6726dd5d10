/* fake.c - see fake.h. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;
struct gpu_api gpu_api;

static char memory[4096];

void *fake_memory(size_t offset)
{
    return memory + offset;
}

/* ---- the host ---- */

static void set_error(weft_status status, const char *vendor, int64_t code, const char *text)
{
    (void)status, (void)vendor, (void)code;
    snprintf(fake.said, sizeof fake.said, "%s", text);
}

static void log_nothing(int32_t level, const char *text)
{
    (void)level, (void)text;
}

static void *allocate(size_t bytes)
{
    if (fake.allocations_left == 0) return NULL;
    if (fake.allocations_left > 0) fake.allocations_left--;
    return malloc(bytes);
}

static const weft_host host = {.struct_size = sizeof host,
                               .log = log_nothing,
                               .set_error = set_error,
                               .allocate = allocate,
                               .release = free};

vendor_result gpu_vendor_host_call(vendor_stream stream, void (*fn)(void *), void *argument)
{
    (void)stream;
    fn(argument);
    return GPU_SUCCESS;
}

static void look(struct gpu_comm *comm)
{
    (void)comm;
    fake.looks++;
}

struct gpu_comm *fake_begin(void)
{
    static const int32_t world_ranks[FAKE_RANKS] = {10, 11, 12, 13};
    static struct gpu_device device;
    weft_comm_options options = {.struct_size = sizeof options,
                                 .rank = 1,
                                 .size = FAKE_RANKS,
                                 .world_ranks = world_ranks,
                                 .name = "four"};
    struct gpu_comm *comm = NULL;

    plug_host_set(&host);
    fake = (struct fake){.allocations_left = -1};
    if (gpu_comm_allocate(&device, &options, &comm) != WEFT_OK) abort();
    comm->is_ready = true;
    comm->look = look;
    return comm;
}

/* ---- the device ---- */

weft_status gpu_enter(const struct gpu_device *device, struct gpu_scope *scope)
{
    (void)device, (void)scope;
    fake.scopes++;
    return WEFT_OK;
}

void gpu_leave(const struct gpu_scope *scope)
{
    (void)scope;
    fake.scopes--;
}

vendor_result gpu_vendor_pointer_kind(const void *pointer, uint32_t *kind, int32_t *device)
{
    const char *at = pointer;

    *kind = at >= memory && at < memory + sizeof memory ? WEFT_MEMORY_DEVICE : WEFT_MEMORY_HOST;
    *device = 0;
    return GPU_SUCCESS;
}

vendor_result gpu_vendor_copy(void *target, const void *source, uint64_t bytes,
                              vendor_stream stream)
{
    (void)stream;
    fake.copied_to = target;
    fake.copied_from = source;
    fake.copied_bytes = bytes;
    return GPU_SUCCESS;
}

const char *gpu_vendor_error_name(vendor_result result)
{
    (void)result;
    return "";
}

const char *gpu_vendor_error_text(vendor_result result)
{
    (void)result;
    return "";
}

weft_status gpu_kernel_launch(struct gpu_device *device, enum gpu_kernel family, uint32_t variant,
                              uint64_t blocks, const void *args, vendor_stream stream)
{
    (void)device, (void)variant, (void)blocks, (void)stream;
    fake.kernel = family;
    memcpy(&fake.signal, args, sizeof fake.signal);
    return WEFT_OK;
}

/* ---- the plugin's own ---- */

weft_status gpu_op_supported(const struct gpu_comm *comm, const struct gpu_op *op)
{
    (void)comm, (void)op;
    return fake.supports_nothing ? plug_fail(WEFT_ERR_UNSUPPORTED, "nothing works") : WEFT_OK;
}

weft_status gpu_ops_run(struct gpu_comm *comm, const struct gpu_op *ops, size_t count)
{
    fake.runs++;
    if (fake.scopes != 1) abort(); /* it is called within a scope */
    for (size_t i = 0; i < count && fake.ran_count < FAKE_MAX; i++, fake.ran_count++) {
        const uint64_t *counts =
            ops[i].send_counts != NULL ? ops[i].send_counts : ops[i].recv_counts;

        fake.ran[fake.ran_count] = ops[i];
        if (counts != NULL)
            memcpy(fake.ran_counts[fake.ran_count], counts, (size_t)comm->size * sizeof *counts);
    }
    return fake.run_gives;
}

weft_status gpu_window_create(void *comm, uint64_t bytes, uint32_t signals, void **window,
                              void **local)
{
    (void)comm, (void)bytes, (void)signals, (void)window, (void)local;
    return WEFT_ERR_UNSUPPORTED;
}

weft_status gpu_window_destroy(void *window)
{
    (void)window;
    return WEFT_ERR_UNSUPPORTED;
}

struct wk_channel gpu_window_channel(const struct gpu_window *window)
{
    return (struct wk_channel){.rank = (uint32_t)window->comm->rank,
                               .size = (uint32_t)window->comm->size};
}

weft_status gpu_waits_note(struct gpu_waits *waits, vendor_stream stream)
{
    (void)waits, (void)stream;
    if (fake.scopes != 1) abort();
    fake.waits++;
    return WEFT_OK;
}
