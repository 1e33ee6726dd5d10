/* fake_symm.h - symmetric memory for the fake plugin. */
#ifndef WEFT_TESTS_FAKE_SYMM_H
#define WEFT_TESTS_FAKE_SYMM_H

#include "support/fake_plugin.h"

/* Each rank's window is local: every peer is this rank. */

struct fake_window {
    struct fake_comm *comm;
    void *buffers[64];
    uint64_t *signals[64];
    uint64_t bytes, pad[256];
    int32_t world_rank;
    bool registered;
};

static weft_status fake_window_register(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                                        void **window)
{
    struct fake_comm *self = comm;
    struct fake_window *made;

    fake.last_bytes = bytes;
    if (self->world_rank == fake.window_fails)
        return wf_fail(WEFT_ERR_NO_MEMORY, "scripted: no window");
    if (signals > 256) return wf_fail(WEFT_ERR_UNSUPPORTED, "fake: %u signals", signals);
    made = wf_calloc(1, sizeof *made);
    if (made == NULL) return wf_fail_memory(sizeof *made);
    made->comm = self;
    made->bytes = bytes;
    made->registered = true;
    made->world_rank = self->world_rank;
    for (int32_t i = 0; i < self->size; i++) {
        made->buffers[i] = memory;
        made->signals[i] = made->pad;
    }
    fake.windows++;
    *window = made;
    return WEFT_OK;
}

static weft_status fake_window_create(void *comm, uint64_t bytes, uint32_t signals, void **window,
                                      void **local)
{
    void *memory = wf_calloc(1, bytes < 4096 ? (size_t)bytes : 4096);
    weft_status status;

    if (memory == NULL) return wf_fail_memory((size_t)bytes);
    status = fake_window_register(comm, memory, bytes, signals, window);
    if (status != WEFT_OK) {
        wf_free(memory);
        return status;
    }
    ((struct fake_window *)*window)->registered = false;
    *local = memory;
    return WEFT_OK;
}

static weft_status fake_window_destroy(void *window)
{
    struct fake_window *self = window;
    bool fails = (fake.releases_fail >> self->world_rank & 1) != 0;

    if (!self->registered) wf_free(self->buffers[0]);
    wf_free(self);
    fake.windows--;
    return fails ? wf_fail(WEFT_ERR_TIMEOUT, "scripted: no release") : WEFT_OK;
}

static weft_status fake_window_handle(void *window, weft_symm_handle *out)
{
    struct fake_window *self = window;

    out->rank = self->comm->rank;
    out->size = self->comm->size;
    out->bytes = self->bytes;
    out->buffers = self->buffers;
    out->signals = self->signals;
    return WEFT_OK;
}

static weft_status fake_put(void *window, uint64_t offset, const void *source, uint64_t bytes,
                            int32_t peer, void *stream)
{
    (void)stream;
    if (bytes > 0)
        memcpy((char *)((struct fake_window *)window)->buffers[peer] + offset, source,
               (size_t)bytes);
    return WEFT_OK;
}

static weft_status fake_get(void *window, void *target, uint64_t offset, uint64_t bytes,
                            int32_t peer, void *stream)
{
    (void)stream;
    if (bytes > 0)
        memcpy(target, (char *)((struct fake_window *)window)->buffers[peer] + offset,
               (size_t)bytes);
    return WEFT_OK;
}

static weft_status fake_signal(void *window, uint32_t signal, uint64_t value, uint32_t op,
                               int32_t peer, void *stream)
{
    uint64_t *slot = &((struct fake_window *)window)->pad[signal];

    (void)peer;
    (void)stream;
    fake.last_signal = signal;
    *slot = op == WEFT_SIGNAL_ADD ? *slot + value : value;
    return WEFT_OK;
}

static weft_status fake_put_signal(void *window, uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                                   int32_t peer, void *stream)
{
    WF_TRY(fake_put(window, offset, source, bytes, peer, stream));
    return fake_signal(window, signal, value, op, peer, stream);
}

static weft_status fake_wait_signal(void *window, uint32_t signal, uint32_t compare, uint64_t value,
                                    int64_t timeout_ns, void *stream)
{
    (void)window;
    (void)compare;
    (void)value;
    (void)timeout_ns;
    (void)stream;
    fake.last_signal = signal;
    return fake.wait_status == WEFT_OK ? WEFT_OK : wf_fail(fake.wait_status, "scripted: wait");
}

static weft_status fake_order(void *window, void *stream)
{
    (void)window;
    (void)stream;
    return WEFT_OK;
}

static const weft_symm_table fake_symm = {
    .struct_size = sizeof(weft_symm_table),
    .signature = WEFT_SYMM_SIGNATURE,
    .window_create = fake_window_create,
    .window_destroy = fake_window_destroy,
    .window_register = fake_window_register,
    .handle = fake_window_handle,
    .put = fake_put,
    .get = fake_get,
    .put_signal = fake_put_signal,
    .signal = fake_signal,
    .wait_signal = fake_wait_signal,
    .fence = fake_order,
    .quiet = fake_order,
    .barrier = fake_order,
};

/* The fake plugin with symmetric memory. */
static inline const weft_plugin *fake_symm_plugin(void)
{
    static weft_plugin plugin;

    plugin = *fake_plugin();
    plugin.symm = &fake_symm;
    return &plugin;
}

#endif
