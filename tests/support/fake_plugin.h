/* fake_plugin.h - a plugin without a device, with scripted failures.
 *
 * Ranks are threads of the test.  `fake` is the script, and fake_plugin() returns the tables.
 * Collectives move no data: a call is counted, and fails, waits or hangs as scripted. */
#ifndef WEFT_TESTS_FAKE_PLUGIN_H
#define WEFT_TESTS_FAKE_PLUGIN_H

#include "base/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NOBODY    (-1)
#define EVERYBODY (-2) /* of hangs */

/* World ranks that misbehave, or NOBODY. */
static struct {
    atomic_int open_fails, prepare_fails, commit_fails, slow_commit, collective_fails, hangs;
    weft_status collective_status;
    int exchanges;        /* made by commit */
    bool uneven_exchange; /* every rank contributes a different number of bytes */
    atomic_bool awaited;  /* the others wait within commit for the rank whose commit fails */
    bool inlined;
    atomic_int prepared, committed, destroyed, aborted, collectives, messages, devices, events;
    atomic_int group_depth;
    atomic_int window_fails, windows;
    uint32_t releases_fail;                /* of windows: one bit per rank */
    weft_status wait_status, async_status; /* of wait_signal and async_error */
    atomic_int async_rank;                 /* with async_status; NOBODY: every rank */
    atomic_int lingers;                    /* in a collective until `may_return`, or an abort */
    bool (*may_return)(void);
    _Atomic uint64_t last_bytes;  /* of the last created window */
    _Atomic uint32_t last_signal; /* of a call */
    weft_collective_args last;
    weft_message last_message;
} fake;

struct fake_comm {
    int32_t rank, size, world_rank;
    int64_t timeout_ns;
    atomic_bool is_aborted;
    char address[16 + 64];
};

static inline void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    fake.open_fails = fake.prepare_fails = fake.commit_fails = NOBODY;
    fake.slow_commit = fake.collective_fails = fake.hangs = fake.window_fails = NOBODY;
    fake.async_rank = fake.lingers = NOBODY;
    fake.collective_status = WEFT_ERR_DEVICE;
    fake.inlined = true;
}

static inline void fake_sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- device ---- */

static weft_status fake_probe(weft_probe *out)
{
    out->score = 100;
    out->device_count = 1;
    return WEFT_OK;
}

static weft_status fake_open(const weft_device_options *options, void **device)
{
    if (options->local_rank == fake.open_fails)
        return wf_fail(WEFT_ERR_NO_DEVICE, "scripted: device does not open");
    fake.devices++;
    *device = &fake;
    return WEFT_OK;
}

static void fake_close(void *device)
{
    (void)device;
    fake.devices--;
}

static weft_status fake_describe(void *device, weft_device_info *out)
{
    (void)device;
    out->features = WEFT_FEATURE_HOST_MEMORY | WEFT_FEATURE_THREADS |
                    (fake.inlined ? (uint64_t)WEFT_FEATURE_INLINE : 0);
    snprintf(out->name, sizeof out->name, "fake");
    return WEFT_OK;
}

static weft_status fake_allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer)
{
    void *made = wf_alloc((size_t)bytes);

    (void)device;
    (void)kind;
    if (made == NULL) return wf_fail_memory((size_t)bytes);
    *pointer = made;
    return WEFT_OK;
}

static weft_status fake_free(void *device, void *pointer)
{
    (void)device;
    wf_free(pointer);
    return WEFT_OK;
}

static weft_status fake_query_pointer(void *device, const void *pointer, weft_pointer_info *out)
{
    (void)device;
    (void)pointer;
    out->kind = WEFT_MEMORY_HOST;
    return WEFT_OK;
}

static weft_status fake_copy(void *device, void *target, const void *source, uint64_t bytes,
                             void *stream)
{
    (void)device;
    (void)stream;
    if (bytes > 0) memmove(target, source, (size_t)bytes);
    return WEFT_OK;
}

static weft_status fake_fill(void *device, void *target, uint8_t byte, uint64_t bytes, void *stream)
{
    (void)device;
    (void)stream;
    if (bytes > 0) memset(target, byte, (size_t)bytes);
    return WEFT_OK;
}

/* A stream is a flag that is nonzero while its work is pending. */
static weft_status fake_stream_create(void *device, void **stream)
{
    atomic_int *made = wf_calloc(1, sizeof *made);

    (void)device;
    if (made == NULL) return wf_fail_memory(sizeof *made);
    *stream = made;
    return WEFT_OK;
}

static void fake_stream_destroy(void *device, void *stream)
{
    (void)device;
    wf_free(stream);
}

static weft_status fake_stream_query(void *device, void *stream)
{
    (void)device;
    return stream != NULL && *(atomic_int *)stream != 0 ? WEFT_IN_PROGRESS : WEFT_OK;
}

static weft_status fake_stream_wait(void *device, void *stream, int64_t timeout_ns)
{
    if (fake_stream_query(device, stream) == WEFT_OK) return WEFT_OK;
    if (timeout_ns > 0)
        fake_sleep_ms((long)(timeout_ns / 1000000 < 50 ? timeout_ns / 1000000 : 50));
    return wf_fail(WEFT_ERR_TIMEOUT, "scripted: the stream never ends");
}

static weft_status fake_stream_call(void *device, void *stream, void (*fn)(void *), void *argument)
{
    (void)device;
    (void)stream;
    fn(argument);
    return WEFT_OK;
}

/* An event refers to its stream. */
struct fake_event {
    void *stream;
};

static weft_status fake_event_create(void *device, void **event)
{
    struct fake_event *made = wf_calloc(1, sizeof *made);

    (void)device;
    if (made == NULL) return wf_fail_memory(sizeof *made);
    fake.events++;
    *event = made;
    return WEFT_OK;
}

static void fake_event_destroy(void *device, void *event)
{
    (void)device;
    fake.events--;
    wf_free(event);
}

static weft_status fake_event_record(void *device, void *event, void *stream)
{
    (void)device;
    ((struct fake_event *)event)->stream = stream;
    return WEFT_OK;
}

static weft_status fake_event_query(void *device, void *event)
{
    return fake_stream_query(device, ((struct fake_event *)event)->stream);
}

static weft_status fake_event_wait(void *device, void *event, int64_t timeout_ns)
{
    return fake_stream_wait(device, ((struct fake_event *)event)->stream, timeout_ns);
}

static weft_status fake_stream_wait_event(void *device, void *stream, void *event)
{
    (void)device;
    (void)stream;
    (void)event;
    return WEFT_OK;
}

static const weft_device_table fake_device = {
    .struct_size = sizeof(weft_device_table),
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = fake_probe,
    .open = fake_open,
    .close = fake_close,
    .describe = fake_describe,
    .allocate = fake_allocate,
    .free = fake_free,
    .query_pointer = fake_query_pointer,
    .copy = fake_copy,
    .fill = fake_fill,
    .stream_create = fake_stream_create,
    .stream_destroy = fake_stream_destroy,
    .stream_query = fake_stream_query,
    .stream_wait = fake_stream_wait,
    .stream_call = fake_stream_call,
    .event_create = fake_event_create,
    .event_destroy = fake_event_destroy,
    .event_record = fake_event_record,
    .event_query = fake_event_query,
    .event_wait = fake_event_wait,
    .stream_wait_event = fake_stream_wait_event,
};

/* ---- comm ---- */

static weft_status fake_prepare(void *device, const weft_comm_options *options, void **comm,
                                weft_blob *address)
{
    int32_t world_rank = options->world_ranks[options->rank];
    struct fake_comm *made;

    (void)device;
    if (world_rank == fake.prepare_fails)
        return wf_fail(WEFT_ERR_SYSTEM, "scripted: prepare fails for %s", options->name);
    made = wf_calloc(1, sizeof *made);
    if (made == NULL) return wf_fail_memory(sizeof *made);
    made->rank = options->rank;
    made->size = options->size;
    made->world_rank = world_rank;
    made->timeout_ns = options->timeout_ns;
    snprintf(made->address, sizeof made->address, "address of %d", world_rank);
    *comm = made;
    *address = (weft_blob){made->address, 16 + (uint64_t)options->rank};
    fake.prepared++;
    return WEFT_OK;
}

static weft_status fake_commit(void *comm, const weft_blob *addresses,
                               const weft_exchange *exchange)
{
    struct fake_comm *self = comm;
    int32_t all[64 * 4], mine[64] = {self->world_rank};

    for (int32_t i = 0; i < self->size; i++) /* lengths differ by rank, to make the order visible */
        if (addresses[i].bytes != 16 + (uint64_t)i)
            return wf_fail(WEFT_ERR_INTERNAL, "address %d came out of order", i);
    if (self->world_rank == fake.commit_fails && fake.awaited) {
        if (exchange->all_gather(exchange->user, mine, all, 4) == WEFT_OK)
            return wf_fail(WEFT_ERR_INTERNAL, "the others came");
        fake.awaited = false;
    }
    while (fake.awaited)
        fake_sleep_ms(5);
    for (int n = 0; n < fake.exchanges; n++) {
        uint64_t bytes = fake.uneven_exchange ? 1 + (uint64_t)self->rank : sizeof mine[0];
        if (self->world_rank == fake.commit_fails && n == fake.exchanges - 1) break;
        WF_TRY(exchange->all_gather(exchange->user, mine, all, bytes));
    }
    if (self->world_rank == fake.slow_commit) fake_sleep_ms(200);
    if (self->world_rank == fake.commit_fails)
        return wf_fail(WEFT_ERR_SYSTEM, "scripted: commit fails");
    fake.committed++;
    return WEFT_OK;
}

static void fake_destroy(void *comm)
{
    if (comm != NULL) fake.destroyed++;
    wf_free(comm);
}

static void fake_abort(void *comm)
{
    ((struct fake_comm *)comm)->is_aborted = true;
    fake.aborted++;
}

static weft_status fake_async_error(void *comm)
{
    const struct fake_comm *self = comm;

    if (self->is_aborted) return wf_fail(WEFT_ERR_ABORTED, "fake: aborted");
    if (fake.async_rank != NOBODY && fake.async_rank != self->world_rank) return WEFT_OK;
    return fake.async_status == WEFT_OK ? WEFT_OK : wf_fail(fake.async_status, "scripted: async");
}

static weft_status fake_support(void *device, const weft_support_query *query, uint32_t *level)
{
    (void)device;
    *level = query->collective == WEFT_COLL_BARRIER ? WEFT_SUPPORT_NATIVE : WEFT_SUPPORT_EMULATED;
    return WEFT_OK;
}

/* Wait for an abort, at most the communicator's time limit. */
static weft_status fake_hang(struct fake_comm *self)
{
    for (int64_t waited = 0; !self->is_aborted; waited += 1000000) {
        if (waited >= self->timeout_ns) return wf_fail(WEFT_ERR_TIMEOUT, "fake: nobody came");
        fake_sleep_ms(1);
    }
    return wf_fail(WEFT_ERR_ABORTED, "fake: aborted");
}

/* Wait as the script says. */
static weft_status fake_linger(const struct fake_comm *self)
{
    while (!self->is_aborted && !fake.may_return())
        fake_sleep_ms(1);
    return self->is_aborted ? wf_fail(WEFT_ERR_ABORTED, "fake: aborted") : WEFT_OK;
}

static weft_status fake_collective(void *comm, const weft_collective_args *args)
{
    struct fake_comm *self = comm;

    fake.collectives++;
    if (self->size == 1) fake.last = *args;
    if (self->world_rank == fake.hangs || fake.hangs == EVERYBODY) return fake_hang(self);
    if (self->world_rank == fake.lingers) return fake_linger(self);
    if (self->world_rank == fake.collective_fails)
        return wf_fail(fake.collective_status, "scripted: collective fails");
    return WEFT_OK;
}

static weft_status fake_message(void *comm, const weft_message *message)
{
    (void)comm;
    fake.messages++;
    fake.last_message = *message;
    return WEFT_OK;
}

static weft_status fake_group_begin(void *comm)
{
    (void)comm;
    fake.group_depth++;
    return WEFT_OK;
}

static weft_status fake_group_end(void *comm)
{
    (void)comm;
    fake.group_depth--;
    return WEFT_OK;
}

static const weft_comm_table fake_comm = {
    .struct_size = sizeof(weft_comm_table),
    .signature = WEFT_COMM_SIGNATURE,
    .prepare = fake_prepare,
    .commit = fake_commit,
    .destroy = fake_destroy,
    .abort = fake_abort,
    .async_error = fake_async_error,
    .support = fake_support,
    .collective = fake_collective,
    .send = fake_message,
    .receive = fake_message,
    .group_begin = fake_group_begin,
    .group_end = fake_group_end,
};

static inline const weft_plugin *fake_plugin(void)
{
    static const weft_plugin plugin = {.struct_size = sizeof(weft_plugin),
                                       .abi_major = WEFT_ABI_MAJOR,
                                       .abi_minor = WEFT_ABI_MINOR,
                                       .name = "fake",
                                       .version = "1",
                                       .build = "test",
                                       .description = "does what the test says",
                                       .device = &fake_device,
                                       .comm = &fake_comm};

    return &plugin;
}

#endif
