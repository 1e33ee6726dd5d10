/* symm.c - making windows, on all ranks or on none, and what a window knows. */
#include "symm.h"

#include "comm/recording.h"
#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What one rank asks for. */
struct request {
    const char *function;
    bool registers; /* MEMORY, which there is already */
    void *memory;
    uint64_t bytes;
    uint32_t channels;
};

/* ---- what is asked for ---- */

static weft_status read_options(const weft_symm_options *options, struct request *out)
{
    weft_symm_options given = {0};

    WF_TRY(wf_options_read("weft_symm_options", options, &given, sizeof given));
    out->channels = given.channels != 0 ? given.channels : WEFT_SYMM_CHANNELS;
    return WEFT_OK;
}

/* A request may be invalid on one rank only.  Its error goes to all ranks when they agree, and is
 * not returned before. */
static weft_status check_request(const weft_comm *comm, const weft_symm_options *options,
                                 struct request *request, weft_symm **out)
{
    if (out == NULL) return wf_fail_null(request->function, "out");
    if (request->registers && request->memory == NULL)
        return wf_fail_null(request->function, "memory");
    if (request->registers && request->bytes == 0)
        return wf_fail(WEFT_ERR_INVALID, "%s on %s: bytes is 0; it must be at least 1",
                       request->function, comm->name);
    if (comm->group_depth > 0)
        return wf_fail(
            WEFT_ERR_INVALID,
            "%s on %s: the call is not allowed inside a call group; call weft_group_end first",
            request->function, comm->name);
    if (request->registers)
        WF_TRY(wf_symm_check_register(comm->context, request->memory, request->bytes));
    WF_TRY(read_options(options, request));
    if (request->bytes > INT64_MAX)
        return wf_fail(WEFT_ERR_INVALID, "%s on %s: %" PRIu64 " bytes are more than 2^63 - 1",
                       request->function, comm->name, request->bytes);
    if (request->channels > UINT32_MAX / 8 / (uint32_t)comm->size)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s on %s: channels is %" PRIu32 "; the maximum for %d ranks is %" PRIu32,
                       request->function, comm->name, request->channels, comm->size,
                       UINT32_MAX / 8 / (uint32_t)comm->size);
    return WEFT_OK;
}

/* (bytes, channels, registered) */
static void put_request(struct wf_text *out, const struct request *request)
{
    wf_put_u64(out, request->bytes);
    wf_put_u32(out, request->channels);
    wf_put_u32(out, request->registers);
}

static struct request read_request(weft_blob blob)
{
    struct wf_reader reader = {blob.data, (size_t)blob.bytes, false};
    struct request request = {0};

    request.bytes = wf_take_u64(&reader);
    request.channels = wf_take_u32(&reader);
    request.function =
        wf_take_u32(&reader) != 0 ? "calls weft_symm_register" : "calls weft_symm_create";
    return request;
}

/* Fails with the same text on every rank. */
static weft_status compare_requests(const weft_comm *comm, const struct wf_gathered *got)
{
    struct request first = read_request(got->blobs[0]);

    for (int32_t i = 1; i < comm->size; i++) {
        struct request other = read_request(got->blobs[i]);

        if (other.bytes == first.bytes && other.channels == first.channels &&
            strcmp(other.function, first.function) == 0)
            continue;
        return wf_fail(WEFT_ERR_MISMATCH,
                       "symmetric memory on %s: rank %d asks for %" PRIu64 " bytes and %" PRIu32
                       " channels and %s, but rank %d asks for %" PRIu64 " bytes and %" PRIu32
                       " channels and %s",
                       comm->name, comm->world_ranks[0], first.bytes, first.channels,
                       first.function, comm->world_ranks[i], other.bytes, other.channels,
                       other.function);
    }
    return WEFT_OK;
}

/* Compare the requests of all ranks.  *NUMBER is new, and the same on all of them. */
static weft_status agree_on_request(weft_comm *comm, const struct request *request,
                                    weft_status status, uint64_t *number)
{
    struct wf_text text = {0};
    struct wf_gathered got;
    char label[160];

    put_request(&text, request);
    if (status == WEFT_OK) status = wf_text_status(&text);
    snprintf(label, sizeof label, "symmetric memory on %s", comm->name);
    status = wf_comm_agree(comm, label, status, (weft_blob){text.data, text.length}, &got);
    wf_text_free(&text);
    if (status != WEFT_OK) return status;
    status = compare_requests(comm, &got);
    *number = got.serial;
    wf_gathered_free(&got);
    return status;
}

/* ---- making ---- */

static void enlist(weft_symm *symm)
{
    weft_context *context = symm->comm->context;
    struct wf_symm_state *state = wf_symm_state(context);

    pthread_mutex_lock(&context->lock);
    symm->next = state->windows;
    state->windows = symm;
    pthread_mutex_unlock(&context->lock);
}

/* The plugin's part.  Requests at least 8 bytes, so backends need not support empty windows. */
static weft_status make_window(weft_symm *symm, const struct request *request)
{
    uint32_t signals = request->channels * (uint32_t)symm->comm->size;
    uint64_t bytes = request->bytes > 0 ? request->bytes : sizeof(uint64_t);
    weft_comm *symm_comm = symm->symm_comm;
    weft_status status;

    if (!wf_comm_may_begin(symm_comm)) return wf_comm_fail_limited(symm_comm);
    if (!request->registers) {
        status = symm->table->window_create(symm_comm->handle, bytes, signals, &symm->window,
                                            &symm->local);
    } else {
        symm->local = request->memory;
        status = symm->table->window_register(symm_comm->handle, request->memory, bytes, signals,
                                              &symm->window);
    }
    if (status != WEFT_OK)
        return wf_fail_context(status, "%s on %s", request->function, symm_comm->name);
    return symm->table->handle(symm->window, &symm->handle);
}

/* Exchange the outcome, STATUS here.  A window that not all ranks have cannot be used, nor ended by
 * all ranks together. */
static weft_status agree_on_window(weft_symm *symm, weft_status status)
{
    weft_comm *comm = symm->comm;
    struct wf_gathered got;
    char label[160], text[1024];

    snprintf(label, sizeof label, "symmetric memory #%" PRIu64 " on %s", symm->number, comm->name);
    status = wf_comm_agree(comm, label, status, (weft_blob){"", 0}, &got);
    if (status == WEFT_OK) {
        wf_gathered_free(&got);
        return WEFT_OK;
    }
    if (symm->window == NULL) return status;
    snprintf(text, sizeof text, "%s", weft_last_error());
    wf_comm_fail(symm->symm_comm, status, text);
    (void)symm->table->window_destroy(symm->window);
    return wf_fail(status, "%s", text);
}

/* Fails on all ranks alike: they compared their choices of plugins in weft_init. */
static weft_status check_backend(const weft_comm *comm, const struct request *request)
{
    const weft_context *context = comm->context;
    const weft_plugin *plugin = wf_symm_state(context)->plugin;

    if (plugin == NULL)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s on %s: %s", request->function, comm->name,
                       wf_symm_state(context)->reason);
    if (request->registers && !WF_HAS(plugin->symm, window_register))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%s on %s: backend %s cannot register memory; call weft_symm_create",
                       request->function, comm->name, plugin->name);
    return WEFT_OK;
}

static weft_status allocate(weft_comm *comm, const struct request *request, weft_symm **out)
{
    weft_context *context = comm->context;
    weft_symm *symm = wf_calloc(1, sizeof *symm);

    if (symm == NULL) return wf_fail_memory(sizeof *symm);
    symm->plugin = wf_symm_state(context)->plugin;
    symm->table = symm->plugin->symm;
    symm->device = wf_symm_state(context)->device;
    symm->comm = comm;
    symm->made = wf_made_now(WF_KIND_SYMM);
    symm->bytes = request->bytes;
    symm->channels = request->channels;
    symm->registered = request->registers;
    symm->host_memory = (context->features & WEFT_FEATURE_HOST_MEMORY) != 0;
    symm->handle.struct_size = sizeof symm->handle;
    *out = symm;
    return WEFT_OK;
}

static weft_status create_together(weft_comm *comm, struct request *request,
                                   const weft_symm_options *options, weft_symm **out)
{
    weft_symm *symm = NULL;
    uint64_t number = 0;
    weft_status status;

    status = check_request(comm, options, request, out);
    if (status == WEFT_OK) status = allocate(comm, request, &symm);
    status = agree_on_request(comm, request, status, &number);
    if (symm != NULL) symm->number = number;
    if (status == WEFT_OK) status = wf_symm_find_comm(comm, symm->number, &symm->symm_comm);
    if (status == WEFT_OK) status = agree_on_window(symm, make_window(symm, request));
    if (status != WEFT_OK) {
        wf_free(symm);
        return status;
    }
    enlist(symm);
    *out = symm;
    return WEFT_OK;
}

static weft_status create(weft_comm *comm, struct request *request,
                          const weft_symm_options *options, weft_symm **out)
{
    struct wf_submitted record;

    WF_TRY(check_backend(comm, request));
    if (wf_comm_has_failed(comm)) return wf_comm_cause(comm);
    record = wf_record_creation(comm, WEFT_RECORD_CREATE, request->function, NULL, 0);
    return wf_record_created(comm, record, create_together(comm, request, options, out));
}

weft_status weft_symm_create(weft_comm *comm, uint64_t bytes, const weft_symm_options *options,
                             weft_symm **out)
{
    struct request request = {.function = "weft_symm_create", .bytes = bytes};

    WF_TRY(wf_comm_check(comm, request.function));
    return create(comm, &request, options, out);
}

weft_status weft_symm_register(weft_comm *comm, void *memory, uint64_t bytes,
                               const weft_symm_options *options, weft_symm **out)
{
    struct request request = {
        .function = "weft_symm_register", .registers = true, .memory = memory, .bytes = bytes};

    WF_TRY(wf_comm_check(comm, request.function));
    return create(comm, &request, options, out);
}

/* ---- asking ---- */

weft_status wf_symm_check(const weft_symm *symm, const char *function)
{
    if (symm == NULL) return wf_fail_null(function, "symm");
    if (!wf_is_usable(symm->made, WF_KIND_SYMM))
        return wf_fail_unusable(function, "symm", symm->made, WF_KIND_SYMM);
    if (symm->window != NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %s; its symmetric memory ended with it", function,
                   symm->ended);
}

weft_comm *weft_symm_comm(const weft_symm *symm)
{
    return symm != NULL && symm->window != NULL ? symm->comm : NULL;
}

uint64_t weft_symm_bytes(const weft_symm *symm)
{
    return symm != NULL ? symm->bytes : 0;
}

uint32_t weft_symm_channels(const weft_symm *symm)
{
    return symm != NULL ? symm->channels : 0;
}

const char *weft_symm_backend(const weft_symm *symm)
{
    return symm != NULL ? symm->plugin->name : NULL;
}

void *weft_symm_local(const weft_symm *symm)
{
    return symm != NULL && symm->window != NULL ? symm->local : NULL;
}

void *weft_symm_peer(const weft_symm *symm, int32_t peer)
{
    if (symm == NULL || symm->window == NULL || peer < 0 || peer >= symm->comm->size) return NULL;
    return symm->handle.buffers[peer];
}

weft_status weft_symm_offset(const weft_symm *symm, const void *pointer, uint64_t bytes,
                             uint64_t *out)
{
    uintptr_t at = (uintptr_t)pointer, start;

    WF_TRY(wf_symm_check(symm, "weft_symm_offset"));
    if (pointer == NULL || out == NULL)
        return wf_fail_null("weft_symm_offset", pointer == NULL ? "pointer" : "out");
    start = (uintptr_t)symm->local;
    if (at < start || at - start > symm->bytes || bytes > symm->bytes - (at - start))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_symm_offset: %" PRIu64
                       " bytes at %p do not lie in this rank's memory, %" PRIu64 " bytes at %p",
                       bytes, pointer, symm->bytes, symm->local);
    *out = at - start;
    return WEFT_OK;
}

weft_status weft_symm_device_get(const weft_symm *symm, weft_symm_device *out)
{
    const weft_symm_handle *handle;
    void *const *buffers;
    uint64_t *const *signals;

    WF_TRY(wf_symm_check(symm, "weft_symm_device_get"));
    if (out == NULL) return wf_fail_null("weft_symm_device_get", "out");
    handle = &symm->handle;
    buffers = handle->buffers;
    signals = handle->signals;
    if (handle->device_copy != NULL) {
        char *copy = handle->device_copy;

        buffers = (void *const *)(void *)copy;
        signals = (uint64_t *const *)(void *)(copy + (size_t)handle->size * sizeof(void *));
    } else if (!symm->host_memory) {
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_symm_device_get on %s: backend %s has no arrays of addresses that "
                       "kernels can read",
                       symm->comm->name, symm->plugin->name);
    }
    *out = (weft_symm_device){.rank = symm->comm->rank,
                              .size = symm->comm->size,
                              .channels = symm->channels,
                              .bytes = symm->bytes,
                              .buffers = buffers,
                              .signals = signals};
    return WEFT_OK;
}
