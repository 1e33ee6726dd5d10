/* memory.c - allocation, copies, fills and pointer queries. */

#include "cases.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t kind;
} kinds[] = {{"device", WEFT_MEMORY_DEVICE}, {"pinned", WEFT_MEMORY_PINNED}};

/* True if POINTER, which an allocation of BYTES has returned, may be used. */
static bool is_given(struct kit *kit, const char *function, uint64_t bytes, const void *pointer)
{
    return kit_check(kit, pointer != NULL, "%s: WEFT_OK without a pointer", function) &&
           kit_check(kit, (uintptr_t)pointer % kit->info.alignment == 0,
                     "%llu bytes at %p, which is not aligned to %llu", (unsigned long long)bytes,
                     pointer, (unsigned long long)kit->info.alignment);
}

/* POINTERS are different, except those that are NULL. */
static void check_apart(struct kit *kit, void *const *pointers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            kit_check(kit, pointers[i] == NULL || pointers[i] != pointers[j],
                      "two live allocations share %p", pointers[i]);
}

/* A device may not be able to pin memory. */
static bool allocate(struct kit *kit, uint32_t kind, uint64_t bytes, void **out)
{
    weft_status status = kit->plugin->device->allocate(kit->device, bytes, kind, out);

    if (kind == WEFT_MEMORY_PINNED && status == WEFT_ERR_UNSUPPORTED) return false;
    if (!kit_ok(kit, "allocate", status)) return false;
    return is_given(kit, "allocate", bytes, *out);
}

static void release(struct kit *kit, void *pointer)
{
    kit_ok(kit, "free", kit->plugin->device->free(kit->device, pointer));
}

static void sizes(struct kit *kit, const char *name, uint32_t kind)
{
    static const uint64_t wanted[] = {0, 1, 7, 64, 4096, 65537, 1 << 20};
    void *pointers[WF_COUNT(wanted)] = {0};

    if (!kit_begin(kit, "allocate/%s", name)) return;
    for (size_t i = 0; i < WF_COUNT(wanted); i++)
        if (!allocate(kit, kind, wanted[i], &pointers[i])) break;
    check_apart(kit, pointers + 1, WF_COUNT(wanted) - 1);
    for (size_t i = 0; i < WF_COUNT(wanted); i++)
        if (pointers[i] != NULL) release(kit, pointers[i]);
    release(kit, NULL);
    kit_end(kit);
}

void kit_memory_too_much(struct kit *kit)
{
    void *pointer = kit;
    weft_status status =
        kit->plugin->device->allocate(kit->device, UINT64_C(1) << 60, WEFT_MEMORY_DEVICE, &pointer);

    kit_expect(kit, "allocate of 2^60 bytes", status, WEFT_ERR_NO_MEMORY);
    kit_check(kit, pointer == kit, "a failing allocate has written its output");
    if (status == WEFT_OK) release(kit, pointer);
}

void kit_memory_unknown_kind(struct kit *kit)
{
    void *pointer = kit;

    kit_expect(kit, "allocate of kind 99",
               kit->plugin->device->allocate(kit->device, 64, 99, &pointer), WEFT_ERR_UNSUPPORTED);
    kit_check(kit, pointer == kit, "a failing allocate has written its output");
}

/* Query pointers to the start, the middle and the last byte of an allocation. */
static void query(struct kit *kit, const char *name, uint32_t kind)
{
    uint64_t bytes = 3000;
    void *pointer = NULL;

    if (!kit_begin(kit, "query/%s", name)) return;
    if (allocate(kit, kind, bytes, &pointer)) {
        for (uint64_t at = 0; at < bytes; at += bytes / 2 - 1) {
            weft_pointer_info info = {.struct_size = sizeof info};
            const uint8_t *inside = (const uint8_t *)pointer + at;
            if (!kit_ok(kit, "query_pointer",
                        kit->plugin->device->query_pointer(kit->device, inside, &info)))
                break;
            kit_check(kit, info.kind == kind, "byte %llu of %s memory is called kind %u",
                      (unsigned long long)at, name, info.kind);
            if (info.base == NULL) continue; /* not memory of the plugin */
            kit_check(kit, info.base <= pointer && info.bytes >= bytes,
                      "an allocation of %llu bytes at %p is called %llu bytes at %p",
                      (unsigned long long)bytes, pointer, (unsigned long long)info.bytes,
                      info.base);
        }
        release(kit, pointer);
    }
    kit_end(kit);
}

void kit_memory_query_foreign(struct kit *kit)
{
    static const char constant[] = "not the plugin's";
    weft_pointer_info info = {.struct_size = sizeof info, .kind = 77};

    if (kit_ok(kit, "query_pointer of the kit's own memory",
               kit->plugin->device->query_pointer(kit->device, constant, &info))) {
        kit_check(kit, info.kind == WEFT_MEMORY_HOST, "the kit's own memory is called kind %u",
                  info.kind);
        kit_check(kit, info.device == -1, "the kit's own memory is said to be on device %d",
                  info.device);
    }
}

static void pattern(uint8_t *bytes, size_t count, uint8_t start)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(start + i * 7);
}

/* Copy through A and B and back, with odd offsets and lengths; then fill a part in the middle. */
static void round_trip(struct kit *kit, uint8_t *a, uint8_t *b, bool on_own_stream)
{
    const weft_device_table *device = kit->plugin->device;
    uint8_t out[1000], back[1000], want[1000];
    void *stream = NULL;

    pattern(out, sizeof out, 3);
    memset(back, 0, sizeof back);
    memcpy(want, out, sizeof want);
    memset(want + 101, 0xc3, 333);
    if (on_own_stream && !kit_stream_make(kit, &stream)) return;
    if (kit_ok(kit, "copy in", device->copy(kit->device, a + 1, out, sizeof out, stream)) &&
        kit_ok(kit, "copy across", device->copy(kit->device, b + 3, a + 1, sizeof out, stream)) &&
        kit_ok(kit, "fill", device->fill(kit->device, b + 3 + 101, 0xc3, 333, stream)) &&
        kit_ok(kit, "fill of nothing", device->fill(kit->device, b, 1, 0, stream)) &&
        kit_ok(kit, "copy of nothing", device->copy(kit->device, b, a, 0, stream)) &&
        kit_ok(kit, "copy out", device->copy(kit->device, back, b + 3, sizeof back, stream)) &&
        kit_stream_wait(kit, stream))
        for (size_t i = 0; i < sizeof back; i++)
            if (!kit_check(kit, back[i] == want[i], "byte %zu: expected 0x%02x, got 0x%02x", i,
                           want[i], back[i]))
                break;
    kit_stream_drop(kit, stream);
}

static void copies(struct kit *kit, size_t from, size_t to)
{
    void *a = NULL, *b = NULL;

    for (int own = 0; own < 2; own++) {
        if (!kit_begin(kit, "copy/%s_to_%s/stream=%s", kinds[from].name, kinds[to].name,
                       own ? "own" : "default"))
            continue;
        if (allocate(kit, kinds[from].kind, 2000, &a) && allocate(kit, kinds[to].kind, 2000, &b))
            round_trip(kit, a, b, own);
        if (a != NULL) release(kit, a);
        if (b != NULL) release(kit, b);
        a = b = NULL;
        kit_end(kit);
    }
}

void kit_memory_kinds(struct kit *kit)
{
    for (size_t i = 0; i < WF_COUNT(kinds); i++) {
        sizes(kit, kinds[i].name, kinds[i].kind);
        query(kit, kinds[i].name, kinds[i].kind);
        for (size_t j = 0; j < WF_COUNT(kinds); j++)
            copies(kit, i, j);
    }
}

/* If the features say so, the host can access the memory. */
void kit_memory_host_access(struct kit *kit)
{
    uint8_t *memory = NULL;
    uint8_t back[64];

    if (allocate(kit, WEFT_MEMORY_DEVICE, sizeof back, (void **)&memory)) {
        pattern(memory, sizeof back, 9);
        if (kit_ok(kit, "copy",
                   kit->plugin->device->copy(kit->device, back, memory, sizeof back, NULL)) &&
            kit_stream_wait(kit, NULL))
            kit_check(kit, memcmp(back, memory, sizeof back) == 0,
                      "what the host wrote is not what copy reads");
        release(kit, memory);
    }
}

/* ---- in stream order ---- */

/* Both entries exist, or none does. */
static bool entries_on_stream(struct kit *kit)
{
    bool allocates = WF_HAS(kit->plugin->device, allocate_on);
    bool frees = WF_HAS(kit->plugin->device, free_on);

    if (kit_begin(kit, "on_stream/entries")) {
        kit_check(kit, allocates == frees, "the device table has %s and %s; expected both or none",
                  allocates ? "allocate_on" : "no allocate_on", frees ? "free_on" : "no free_on");
        kit_end(kit);
    }
    return allocates && frees;
}

static bool allocate_on(struct kit *kit, uint64_t bytes, void *stream, void **out)
{
    weft_status status = kit->plugin->device->allocate_on(kit->device, bytes, stream, out);

    if (!kit_ok(kit, "allocate_on", status)) return false;
    return is_given(kit, "allocate_on", bytes, *out);
}

static void sizes_on_stream(struct kit *kit, void *stream)
{
    static const uint64_t wanted[] = {0, 1, 7, 4096, 65537, 1 << 20};
    const weft_device_table *device = kit->plugin->device;
    void *pointers[WF_COUNT(wanted)] = {0}, *none = kit;

    for (size_t i = 0; i < WF_COUNT(wanted); i++)
        if (!allocate_on(kit, wanted[i], stream, &pointers[i])) break;
    check_apart(kit, pointers, WF_COUNT(wanted));
    kit_ok(kit, "free_on of NULL", device->free_on(kit->device, NULL, stream));
    for (size_t i = 1; i < WF_COUNT(wanted); i++)
        kit_ok(kit, "free_on", device->free_on(kit->device, pointers[i], stream));
    kit_stream_wait(kit, stream);
    release(kit, pointers[0]); /* free takes it too */
    kit_expect(kit, "allocate_on of 2^60 bytes",
               device->allocate_on(kit->device, UINT64_C(1) << 60, stream, &none),
               WEFT_ERR_NO_MEMORY);
    kit_check(kit, none == kit, "a failing allocate_on has written its output");
}

/* Hold the stream until the other one has written its memory.  A plugin may wait for the stream in
 * free_on, so this ends by itself. */
static void hold_stream(void *written)
{
    for (int i = 0; i < 500 && !atomic_load((atomic_bool *)written); i++)
        kit_nap(KIT_SECOND / 1000);
}

/* Memory is freed on a stream that is busy, while the stream still has to write it.  Memory that is
 * allocated on another stream meanwhile is not the same. */
static void free_later(struct kit *kit, void *busy)
{
    const weft_device_table *device = kit->plugin->device;
    uint8_t back[4096], other_back[4096];
    void *first = NULL, *second = NULL, *other = NULL;
    atomic_bool written = false;

    if (!kit_stream_make(kit, &other)) return;
    if (allocate_on(kit, sizeof back, busy, &first) &&
        kit_ok(kit, "stream_call", device->stream_call(kit->device, busy, hold_stream, &written)) &&
        kit_ok(kit, "fill", device->fill(kit->device, first, 0x11, sizeof back, busy)) &&
        kit_ok(kit, "copy", device->copy(kit->device, back, first, sizeof back, busy)) &&
        kit_ok(kit, "free_on", device->free_on(kit->device, first, busy)) &&
        allocate_on(kit, sizeof back, other, &second) &&
        kit_ok(kit, "fill", device->fill(kit->device, second, 0x22, sizeof back, other)) &&
        kit_stream_wait(kit, other) && (atomic_store(&written, true), true) &&
        kit_stream_wait(kit, busy) &&
        kit_ok(kit, "copy", device->copy(kit->device, other_back, second, sizeof back, other)) &&
        kit_stream_wait(kit, other))
        for (size_t i = 0; i < sizeof back; i++)
            if (!kit_check(kit, back[i] == 0x11 && other_back[i] == 0x22,
                           "byte %zu of memory of two streams: expected 0x11 and 0x22, got 0x%02x "
                           "and 0x%02x",
                           i, back[i], other_back[i]))
                break;
    atomic_store(&written, true);
    kit_stream_wait(kit, busy);
    if (second != NULL) kit_ok(kit, "free_on", device->free_on(kit->device, second, other));
    kit_stream_drop(kit, other);
}

/* Each piece is written and read on its stream, and freed at once. */
static void reuse_on_stream(struct kit *kit, void *stream)
{
    const weft_device_table *device = kit->plugin->device;
    uint8_t back[64];
    bool intact = true;

    for (int i = 0; i < 200 && intact; i++) {
        void *memory = NULL;

        intact = allocate_on(kit, 1 + 97 * (uint64_t)i, stream, &memory) &&
                 kit_ok(kit, "fill", device->fill(kit->device, memory, (uint8_t)i, 1, stream)) &&
                 kit_ok(kit, "copy", device->copy(kit->device, &back[i % 64], memory, 1, stream)) &&
                 kit_ok(kit, "free_on", device->free_on(kit->device, memory, stream));
    }
    if (!intact || !kit_stream_wait(kit, stream)) return;
    for (int i = 136; i < 200; i++)
        kit_check(kit, back[i % 64] == (uint8_t)i, "piece %d: expected 0x%02x, got 0x%02x", i,
                  (unsigned)i & 255, back[i % 64]);
}

void kit_memory_on_stream(struct kit *kit)
{
    static const struct {
        const char *name;
        void (*run)(struct kit *kit, void *stream);
    } cases[] = {{"sizes", sizes_on_stream}, {"reuse", reuse_on_stream}, {"later", free_later}};

    if (!entries_on_stream(kit)) return;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        void *stream = NULL;

        if (!kit_begin(kit, "on_stream/%s", cases[i].name)) continue;
        if (kit_stream_make(kit, &stream)) {
            cases[i].run(kit, stream);
            kit_stream_drop(kit, stream);
        }
        kit_end(kit);
    }
}
