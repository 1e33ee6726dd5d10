/* streams.c - streams are queues in order, and events tie them together.
 *
 * A plugin may do all work at once, inside the call; so no case asks for work to be late.  Slow
 * host functions on a stream show what was not waited for. */
#include "cases.h"

#include "checks/collective.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SLOW_NS (30 * KIT_MILLISECOND)
#define HELD_NS (20 * KIT_SECOND) /* a plugin may wait for a host function before it returns */

/* The log that host functions on streams write. */
struct journal {
    _Atomic uint32_t length;
    uint32_t entries[64];
};

struct entry {
    struct journal *journal;
    uint32_t value;
    int64_t delay_ns;
};

static void write_entry(void *argument)
{
    const struct entry *entry = argument;
    uint32_t at;

    if (entry->delay_ns > 0) kit_nap(entry->delay_ns);
    at = atomic_load(&entry->journal->length);
    if (at < WF_COUNT(entry->journal->entries)) entry->journal->entries[at] = entry->value;
    atomic_store(&entry->journal->length, at + 1);
}

/* An entry of the log that is written when its gate opens, or after HELD_NS.  Nobody opens the gate
 * while the plugin calls the function from OPENER, so there it is written at once. */
struct held {
    struct entry entry;
    atomic_bool gate;
    pthread_t opener;
};

static void write_when_open(void *argument)
{
    struct held *held = argument;
    uint64_t deadline = wf_now_ns() + (uint64_t)HELD_NS;

    if (pthread_equal(pthread_self(), held->opener)) deadline = 0;
    while (!atomic_load(&held->gate) && wf_now_ns() < deadline)
        kit_nap(KIT_MILLISECOND);
    write_entry(&held->entry);
}

static bool call(struct kit *kit, void *stream, struct entry *entry)
{
    return kit_ok(kit, "stream_call",
                  kit->plugin->device->stream_call(kit->device, stream, write_entry, entry));
}

/* Two streams and an event for a case; zero if their creation failed. */
struct tools {
    void *first, *second, *event;
    struct journal journal;
};

static bool take_tools(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;

    *tools = (struct tools){0};
    return kit_stream_make(kit, &tools->first) && kit_stream_make(kit, &tools->second) &&
           kit_ok(kit, "event_create", device->event_create(kit->device, &tools->event)) &&
           kit_check(kit, tools->first != NULL && tools->second != NULL && tools->event != NULL,
                     "WEFT_OK without a stream or event");
}

static void drop_tools(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;

    kit_stream_drop(kit, tools->first);
    kit_stream_drop(kit, tools->second);
    if (tools->event != NULL) device->event_destroy(kit->device, tools->event);
}

/* The one function that was posted has run; else the case fails with TEXT. */
static bool has_run(struct kit *kit, struct tools *tools, const char *text)
{
    return kit_check(kit, atomic_load(&tools->journal.length) == 1, "%s", text);
}

static bool record(struct kit *kit, struct tools *tools, void *stream)
{
    return kit_ok(kit, "event_record",
                  kit->plugin->device->event_record(kit->device, tools->event, stream));
}

static bool wait_for(struct kit *kit, void *event)
{
    return kit_ok(kit, "event_wait",
                  kit->plugin->device->event_wait(kit->device, event, 10 * KIT_SECOND));
}

/* ---- one stream ---- */

static void idle(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    void *streams[] = {NULL, tools->first, tools->second};

    kit_check(kit, tools->first != tools->second, "two streams are the same");
    for (size_t i = 0; i < WF_COUNT(streams); i++) {
        kit_stream_wait(kit, streams[i]);
        kit_ok(kit, "stream_query of an idle stream",
               device->stream_query(kit->device, streams[i]));
    }
}

static void in_order(struct kit *kit, void *stream, struct journal *journal)
{
    struct entry entries[40];

    for (uint32_t i = 0; i < WF_COUNT(entries); i++) {
        entries[i] = (struct entry){journal, i, i % 13 == 0 ? KIT_MILLISECOND : 0};
        if (!call(kit, stream, &entries[i])) break;
    }
    if (!kit_stream_wait(kit, stream)) return;
    kit_check(kit, atomic_load(&journal->length) == WF_COUNT(entries),
              "%u of %zu functions have run", atomic_load(&journal->length), WF_COUNT(entries));
    for (uint32_t i = 0; i < WF_COUNT(entries); i++)
        kit_check(kit, journal->entries[i] == i, "function %u ran; expected function %u",
                  journal->entries[i], i);
}

static void own_in_order(struct kit *kit, struct tools *tools)
{
    in_order(kit, tools->first, &tools->journal);
}

static void default_in_order(struct kit *kit, struct tools *tools)
{
    in_order(kit, NULL, &tools->journal);
}

/* The answer of query about work that may not have run. */
static void honest_query(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry slow = {&tools->journal, 1, SLOW_NS};
    weft_status status;

    if (!call(kit, tools->first, &slow)) return;
    status = device->stream_query(kit->device, tools->first);
    kit_check(kit, status == WEFT_OK || status == WEFT_IN_PROGRESS,
              "stream_query of a busy stream: WEFT_%s", weft_status_name(status));
    if (status == WEFT_OK)
        has_run(kit, tools, "stream_query said that all is done while it was not");
    if (kit_stream_wait(kit, tools->first))
        has_run(kit, tools, "stream_wait returned before the work was complete");
}

static void timeout(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct held held = {{&tools->journal, 1, 0}, false, pthread_self()};
    weft_status status;

    if (!kit_ok(kit, "stream_call",
                device->stream_call(kit->device, tools->first, write_when_open, &held)))
        return;
    status = device->stream_wait(kit->device, tools->first, SLOW_NS / 3);
    if (status == WEFT_OK)
        has_run(kit, tools, "stream_wait returned before the work was complete");
    else if (kit_expect(kit, "stream_wait with a limit of 10 ms", status, WEFT_ERR_TIMEOUT))
        kit_check(kit, atomic_load(&tools->journal.length) == 0,
                  "a limit of 10 ms took until the work was done");
    atomic_store(&held.gate, true);
    if (kit_stream_wait(kit, tools->first))
        has_run(kit, tools, "after a timeout, stream_wait returned before the work was complete");
}

static void destroy_waits(struct kit *kit, struct tools *tools)
{
    struct entry slow = {&tools->journal, 1, SLOW_NS};

    if (!call(kit, tools->first, &slow)) return;
    kit_stream_drop(kit, tools->first);
    tools->first = NULL;
    has_run(kit, tools, "stream_destroy returned before the work was complete");
}

static void inline_default(struct kit *kit, struct tools *tools)
{
    struct entry slow = {&tools->journal, 1, SLOW_NS};

    if ((kit->info.features & WEFT_FEATURE_INLINE) == 0) return;
    if (!call(kit, NULL, &slow)) return;
    has_run(kit, tools, "FEATURE_INLINE, but work on stream NULL was not done on return");
}

/* A slow function, then copies through device memory, all queued before the first wait. */
static void copies_in_order(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry slow = {&tools->journal, 1, SLOW_NS};
    struct kit_image a = {0}, b = {0};
    uint8_t out[256], back[256] = {0};

    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (uint8_t)(i * 3 + 1);
    if (kit_image_make(kit, &a, sizeof out, 0, KIT_DEVICE) &&
        kit_image_make(kit, &b, sizeof out, 0, KIT_DEVICE) && call(kit, tools->first, &slow)) {
        void *x = kit_image_at(&a, 0), *y = kit_image_at(&b, 0);
        if (kit_ok(kit, "copy", device->copy(kit->device, x, out, sizeof out, tools->first)) &&
            kit_ok(kit, "copy", device->copy(kit->device, y, x, sizeof out, tools->first)) &&
            kit_ok(kit, "fill", device->fill(kit->device, x, 0, sizeof out, tools->first)) &&
            kit_ok(kit, "copy", device->copy(kit->device, back, y, sizeof out, tools->first)) &&
            kit_stream_wait(kit, tools->first))
            kit_check(kit, memcmp(out, back, sizeof out) == 0, "copies ran out of order");
    }
    kit_stream_wait(kit, tools->first);
    kit_images_free(kit, &a, &b);
}

/* ---- events ---- */

static void event_unrecorded(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;

    kit_ok(kit, "event_query, never recorded", device->event_query(kit->device, tools->event));
    kit_ok(kit, "event_wait, never recorded",
           device->event_wait(kit->device, tools->event, KIT_SECOND));
    kit_ok(kit, "stream_wait_event, never recorded",
           device->stream_wait_event(kit->device, tools->first, tools->event));
    kit_stream_wait(kit, tools->first);
}

static void event_waits(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry slow = {&tools->journal, 1, SLOW_NS};
    weft_status status;

    if (!call(kit, tools->first, &slow) || !record(kit, tools, tools->first)) return;
    status = device->event_query(kit->device, tools->event);
    kit_check(kit,
              status == WEFT_IN_PROGRESS ||
                  (status == WEFT_OK && atomic_load(&tools->journal.length) == 1),
              "event_query before the work was done: WEFT_%s", weft_status_name(status));
    if (wait_for(kit, tools->event))
        has_run(kit, tools, "event_wait returned before the work was complete");
}

/* Slow work on the first stream and an event behind it, for which the second stream waits. */
static void event_orders_streams(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry slow = {&tools->journal, 1, SLOW_NS}, after = {&tools->journal, 2, 0};

    if (call(kit, tools->first, &slow) && record(kit, tools, tools->first) &&
        kit_ok(kit, "stream_wait_event",
               device->stream_wait_event(kit->device, tools->second, tools->event)) &&
        call(kit, tools->second, &after) && kit_stream_wait(kit, tools->second))
        kit_check(kit, tools->journal.entries[0] == 1 && tools->journal.entries[1] == 2,
                  "work behind stream_wait_event did not wait for the event");
    kit_stream_wait(kit, tools->first);
}

/* The last record counts, also if the event was recorded on another stream before. */
static void event_last_record(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry slow = {&tools->journal, 1, SLOW_NS};

    if (record(kit, tools, tools->second) && call(kit, tools->first, &slow) &&
        kit_ok(kit, "event_record again",
               device->event_record(kit->device, tools->event, tools->first)) &&
        wait_for(kit, tools->event))
        has_run(kit, tools, "event_wait waited for an earlier record; expected the last one");
    kit_stream_wait(kit, tools->first);
}

static void elapsed(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry slow = {&tools->journal, 1, SLOW_NS};
    void *later = NULL;
    int64_t nanoseconds = -1;

    if (device->event_elapsed == NULL) return;
    if (!kit_ok(kit, "event_create", device->event_create(kit->device, &later))) return;
    if (record(kit, tools, tools->first) && call(kit, tools->first, &slow) &&
        kit_ok(kit, "event_record", device->event_record(kit->device, later, tools->first)) &&
        kit_stream_wait(kit, tools->first) &&
        kit_ok(kit, "event_elapsed",
               device->event_elapsed(kit->device, tools->event, later, &nanoseconds)))
        kit_check(kit, nanoseconds >= SLOW_NS / 2 && nanoseconds < 60 * KIT_SECOND,
                  "30 ms of work took %lld ns by event_elapsed", (long long)nanoseconds);
    device->event_destroy(kit->device, later);
}

/* ---- other entrances ---- */

static void wrapped(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry entry = {&tools->journal, 1, 0};
    void *native, *stream = NULL;

    if (device->stream_wrap == NULL || device->stream_native == NULL) return;
    native = device->stream_native(kit->device, tools->first);
    if (native == NULL) return;
    if (!kit_ok(kit, "stream_wrap", device->stream_wrap(kit->device, native, &stream))) return;
    if (call(kit, stream, &entry) && kit_stream_wait(kit, stream))
        has_run(kit, tools, "work on a wrapped stream was not done");
    kit_check(kit, device->stream_native(kit->device, stream) == native,
              "stream_native of a wrapped stream returns another stream");
    kit_stream_drop(kit, stream);
}

static void wrapped_event(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    struct entry entry = {&tools->journal, 1, SLOW_NS};
    void *native, *event = NULL;

    if (device->event_wrap == NULL || device->event_native == NULL) return;
    native = device->event_native(kit->device, tools->event);
    if (!kit_check(kit, native != NULL, "event_native of an event is NULL") ||
        !kit_ok(kit, "event_wrap", device->event_wrap(kit->device, native, &event)))
        return;
    kit_check(kit, device->event_native(kit->device, event) == native,
              "event_native of a wrapped event returns another event");
    if (call(kit, tools->first, &entry) && record(kit, tools, tools->first) && wait_for(kit, event))
        has_run(kit, tools, "waiting for a wrapped event did not wait for what it stands for");
    device->event_destroy(kit->device,
                          event); /* the native stream still belongs to the first one */
    kit_ok(kit, "event_query", device->event_query(kit->device, tools->event));
    kit_stream_wait(kit, tools->first);
}

struct worker {
    struct kit *kit;
    weft_status status;
    uint8_t byte;
    bool intact;
};

/* Other threads may not fail the case, so this thread only records the failure. */
static void *work_alone(void *argument)
{
    struct worker *worker = argument;
    struct kit *kit = worker->kit;
    const weft_device_table *device = kit->plugin->device;
    uint8_t back[4096];
    void *stream = NULL, *memory = NULL;

    if (device->bind_thread != NULL) worker->status = device->bind_thread(kit->device);
    if (worker->status == WEFT_OK) worker->status = device->stream_create(kit->device, &stream);
    if (worker->status == WEFT_OK)
        worker->status = device->allocate(kit->device, sizeof back, WEFT_MEMORY_DEVICE, &memory);
    for (int i = 0; i < 50 && worker->status == WEFT_OK; i++)
        worker->status =
            device->fill(kit->device, memory, (uint8_t)(worker->byte + i), sizeof back, stream);
    if (worker->status == WEFT_OK)
        worker->status = device->copy(kit->device, back, memory, sizeof back, stream);
    if (worker->status == WEFT_OK)
        worker->status = device->stream_wait(kit->device, stream, 10 * KIT_SECOND);
    worker->intact = worker->status == WEFT_OK;
    for (size_t i = 0; i < sizeof back && worker->intact; i++)
        worker->intact = back[i] == (uint8_t)(worker->byte + 49);
    kit_stream_drop(kit, stream);
    if (memory != NULL && device->free(kit->device, memory) != WEFT_OK) worker->intact = false;
    return NULL;
}

static void threads(struct kit *kit, struct tools *tools)
{
    struct worker workers[4];
    pthread_t running[WF_COUNT(workers)];
    size_t started = 0;

    (void)tools;
    for (; started < WF_COUNT(workers); started++) {
        workers[started] = (struct worker){.kit = kit, .byte = (uint8_t)(started * 60)};
        if (pthread_create(&running[started], NULL, work_alone, &workers[started]) != 0) break;
    }
    for (size_t i = 0; i < started; i++) {
        pthread_join(running[i], NULL);
        kit_ok(kit, "work on one stream per thread", workers[i].status);
        kit_check(kit, workers[i].intact, "streams of different threads disturb each other");
    }
}

/* ---- collectives in stream order ---- */

/* Dtypes that hold small sums exactly. */
static const uint32_t sum_dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_I32, WEFT_DTYPE_F64,
                                      WEFT_DTYPE_I64};

static void store_small(uint32_t dtype, double value, void *element)
{
    wf_number_store(dtype, (struct wf_number){.integer = (uint64_t)(int64_t)value, .re = value},
                    element);
}

/* A slow function, a copy in, two reductions and a copy out, without a wait in between. */
static void collectives_in_order(struct kit *kit, struct tools *tools)
{
    const weft_device_table *device = kit->plugin->device;
    int dtype = kit_first_claimed(kit, WEFT_COLL_ALL_REDUCE, WEFT_REDUCE_SUM, sum_dtypes,
                                  WF_COUNT(sum_dtypes));
    void *comm = dtype >= 0 ? kit_comm(kit, &kit->groups[0]) : NULL;
    struct entry slow = {&tools->journal, 1, kit->rank == 0 ? SLOW_NS : 0};
    struct kit_image image = {0};
    uint8_t in[16], out[16] = {0}, want[16];
    uint64_t bytes;

    if (comm == NULL) return;
    bytes = wf_dtype_bytes((uint32_t)dtype);
    store_small((uint32_t)dtype, kit->rank + 1, in);
    store_small((uint32_t)dtype, (double)kit->size * kit->size * (kit->size + 1) / 2, want);
    if (kit_image_make(kit, &image, bytes, 0, KIT_DEVICE) && kit_image_upload(kit, &image) &&
        call(kit, tools->first, &slow)) {
        void *x = kit_image_at(&image, 0);
        weft_collective_args args = {.struct_size = sizeof args,
                                     .collective = WEFT_COLL_ALL_REDUCE,
                                     .dtype = (uint32_t)dtype,
                                     .send = x,
                                     .recv = x,
                                     .count = 1,
                                     .stream = tools->first};
        if (kit_ok(kit, "copy", device->copy(kit->device, x, in, bytes, tools->first)) &&
            kit_ok(kit, "collective", kit->plugin->comm->collective(comm, &args)) &&
            kit_ok(kit, "collective", kit->plugin->comm->collective(comm, &args)) &&
            kit_ok(kit, "copy", device->copy(kit->device, out, x, bytes, tools->first)) &&
            kit_ok(kit, "the stream's work",
                   kit_finish(kit, comm, tools->first, kit->options->timeout_ns)))
            kit_check(kit, memcmp(out, want, bytes) == 0,
                      "copies and collectives of one stream ran out of order");
    }
    kit_stream_wait(kit, tools->first);
    kit_image_free(kit, &image);
}

void kit_streams(struct kit *kit)
{
    static const struct {
        const char *name;
        void (*run)(struct kit *kit, struct tools *tools);
    } cases[] = {
        {"idle", idle},
        {"in_order/own", own_in_order},
        {"in_order/default", default_in_order},
        {"query_is_honest", honest_query},
        {"wait_timeout", timeout},
        {"destroy_waits", destroy_waits},
        {"inline_default", inline_default},
        {"copies_in_order", copies_in_order},
        {"event/never_recorded", event_unrecorded},
        {"event/wait", event_waits},
        {"event/orders_streams", event_orders_streams},
        {"event/last_record", event_last_record},
        {"event/elapsed", elapsed},
        {"wrapped", wrapped},
        {"event/wrapped", wrapped_event},
        {"threads", threads},
        {"collectives_in_order", collectives_in_order},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct tools tools;
        if (!kit_begin(kit, "%s", cases[i].name)) continue;
        if (take_tools(kit, &tools)) cases[i].run(kit, &tools);
        drop_tools(kit, &tools);
        kit_end(kit);
    }
}
