/* symm.c - memory that all ranks of a communicator can access. */
#include "cases.h"

#include "checks/window.h"

#include "checks/collective.h"

#include <stdlib.h>

#define LIMIT_NS (5 * KIT_SECOND)

static bool barrier(struct kit_window *w)
{
    return kit_window_done(w, "barrier", w->table->barrier(w->window, NULL), NULL);
}

/* Byte I of the data that SOURCE writes for TARGET. */
static uint8_t byte_of(int32_t source, int32_t target, uint64_t i)
{
    return (uint8_t)(1 + source * 31 + target * 7 + (int32_t)(i % 97) * 5);
}

static void check_bytes(struct kit_window *w, const uint8_t *got, uint64_t bytes, int32_t source,
                        int32_t target)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (!kit_check(w->kit, got[i] == byte_of(source, target, i),
                       "from rank %d to rank %d, byte %llu of %llu: expected 0x%02x, got 0x%02x",
                       source, target, (unsigned long long)i, (unsigned long long)bytes,
                       byte_of(source, target, i), got[i]))
            return;
}

/* ---- creation ---- */

static void zero_at_first(struct kit_window *w, uint32_t signals)
{
    uint64_t probe[8] = {1};
    uint64_t bytes = w->bytes < sizeof probe ? w->bytes : sizeof probe;

    if (bytes > 0 && kit_window_read(w, w->bytes - bytes, probe, bytes))
        for (uint64_t i = 0; i < bytes; i++)
            kit_check(w->kit, ((uint8_t *)probe)[i] == 0, "fresh memory is not zero");
    if (signals > 0)
        kit_window_done(
            w, "wait_signal for the zero a fresh signal has",
            w->table->wait_signal(w->window, signals - 1, WEFT_COMPARE_EQ, 0, LIMIT_NS, NULL),
            NULL);
}

void kit_symm_create(struct kit *kit)
{
    static const struct {
        uint64_t bytes;
        uint32_t signals;
    } sizes[] = {{0, 0}, {1, 1}, {4096, 0}, {0, 3}, {12345, 64}, {1 << 20, 2}};

    for (size_t i = 0; i < WF_COUNT(sizes); i++) {
        struct kit_window w;
        if (!kit_begin(kit, "create/bytes=%llu/signals=%u", (unsigned long long)sizes[i].bytes,
                       sizes[i].signals))
            continue;
        if (kit_window_make(kit, &kit->groups[0], sizes[i].bytes, sizes[i].signals, &w)) {
            zero_at_first(&w, sizes[i].signals);
            /* Change the memory: the next window must be zero, also if it reuses it. */
            if (sizes[i].bytes > 0 && barrier(&w)) {
                uint8_t used = 0xee;
                kit_copy(kit, (uint8_t *)w.local + sizes[i].bytes - 1, &used, 1);
            }
        }
        kit_window_free(&w);
        kit_end(kit);
    }
}

static void mismatch(struct kit *kit, const char *name, uint64_t bytes, uint32_t signals)
{
    void *comm, *window = kit, *local = kit;
    bool odd = kit->rank == kit->size - 1;

    if (kit->size < 2 || !kit_begin(kit, "mismatch/%s", name)) return;
    comm = kit_comm_make(kit, &kit->groups[0], (struct kit_comm_request){0});
    if (comm != NULL) {
        kit_expect(kit, "window_create with sizes that differ",
                   kit->plugin->symm->window_create(comm, odd ? bytes : 4096, odd ? signals : 4,
                                                    &window, &local),
                   WEFT_ERR_MISMATCH);
        kit_check(kit, window == kit && local == kit,
                  "a failing window_create has written its outputs");
    }
    kit_synchronize(kit, kit->groups[0].ranks, kit->size);
    kit_comm_drop(kit, comm);
    kit_end(kit);
}

void kit_symm_mismatches(struct kit *kit)
{
    mismatch(kit, "bytes", 8192, 4);
    mismatch(kit, "signals", 4096, 5);
}

static void check_peer_pointers(struct kit_window *w, const weft_symm_handle *h)
{
    for (int32_t peer = 0; peer < w->group->size; peer++) {
        uint8_t byte = 0;
        if (h->buffers[peer] == NULL) continue; /* not addressable */
        if (kit_copy(w->kit, &byte, (const uint8_t *)h->buffers[peer] + 100, 1))
            kit_check(w->kit, byte == (uint8_t)(peer + 50),
                      "buffers[%d] does not lead to the window of rank %d", peer, peer);
    }
}

void kit_symm_handle(struct kit *kit)
{
    weft_symm_handle h = {.struct_size = sizeof h};
    uint8_t mark = (uint8_t)(kit->rank + 50);
    struct kit_window w;

    if (kit_window_make(kit, &kit->groups[0], 4096, 8, &w)) {
        kit_copy(kit, (uint8_t *)w.local + 100, &mark, 1);
        if (kit_ok(kit, "handle", w.table->handle(w.window, &h)) && barrier(&w)) {
            kit_check(kit, h.rank == kit->rank && h.size == kit->size,
                      "handle has rank %d of %d; expected rank %d of %d", h.rank, h.size, kit->rank,
                      kit->size);
            kit_check(kit, h.bytes == 4096 && h.signal_count == 8,
                      "handle has %llu bytes and %u signals; expected 4096 and 8",
                      (unsigned long long)h.bytes, h.signal_count);
            if (kit_check(kit, h.buffers != NULL && h.signals != NULL, "no arrays of peers")) {
                kit_check(kit, h.buffers[kit->rank] == w.local,
                          "the own entry of buffers is not the window's memory");
                kit_check(kit, h.signals[kit->rank] != NULL, "the own entry of signals is NULL");
                check_peer_pointers(&w, &h);
            }
        }
    }
    if (w.window != NULL) barrier(&w);
    kit_window_free(&w);
}

/* ---- put and get ---- */

/* Offset of the part of PEER in a window.  A zero byte is before and after each part. */
static uint64_t share_at(uint64_t bytes, int32_t peer)
{
    return (bytes + 3) * (uint64_t)peer + 1;
}

/* Every rank writes to every peer, itself included. */
static void put_all(struct kit_window *w, uint64_t bytes, uint8_t *host, struct kit_image *image)
{
    int32_t me = w->group->mine;

    for (int32_t peer = 0; peer < w->group->size; peer++) {
        for (uint64_t i = 0; i < bytes; i++)
            host[i] = byte_of(me, peer, i);
        if (!kit_copy(w->kit, kit_image_at(image, 0), host, bytes)) return;
        kit_window_done(w, "put",
                        w->table->put(w->window, share_at(bytes, me), kit_image_at(image, 0), bytes,
                                      peer, NULL),
                        NULL);
    }
    if (!barrier(w)) return;
    for (int32_t peer = 0; peer < w->group->size; peer++) {
        uint8_t before = 1, after = 1;
        uint64_t at = share_at(bytes, peer);
        if (!kit_window_read(w, at, host, bytes) || !kit_window_read(w, at - 1, &before, 1) ||
            !kit_window_read(w, at + bytes, &after, 1))
            return;
        check_bytes(w, host, bytes, peer, me);
        kit_check(w->kit, before == 0 && after == 0, "a put of rank %d wrote beyond its bytes",
                  peer);
    }
}

/* Every rank reads from every peer, itself included. */
static void get_all(struct kit_window *w, uint64_t bytes, uint8_t *host, struct kit_image *image)
{
    int32_t me = w->group->mine;

    for (int32_t peer = 0; peer < w->group->size; peer++) {
        for (uint64_t i = 0; i < bytes; i++)
            host[i] = byte_of(me, peer, i);
        if (!kit_copy(w->kit, (uint8_t *)w->local + share_at(bytes, peer), host, bytes)) return;
    }
    if (!barrier(w) || !kit_image_upload(w->kit, image)) return;
    for (int32_t peer = 0; peer < w->group->size; peer++) {
        if (!kit_window_done(w, "get",
                             w->table->get(w->window, kit_image_at(image, 0), share_at(bytes, me),
                                           bytes, peer, NULL),
                             NULL))
            return;
        for (uint64_t i = 0; i < bytes; i++)
            image->want[image->start + i] = byte_of(peer, me, i);
        kit_image_check(w->kit, image, "what get read",
                        &(struct kit_compare){.dtype = WEFT_DTYPE_U8});
    }
    barrier(w);
}

static void moves(struct kit *kit, struct kit_group *group, bool puts, uint64_t bytes)
{
    struct kit_image image = {0};
    uint8_t *host = malloc(bytes + 1);
    struct kit_window w = {0};

    if (kit_begin(kit, "%s/bytes=%llu/ranks=%s", puts ? "put" : "get", (unsigned long long)bytes,
                  group->name)) {
        if (host != NULL &&
            kit_window_make(kit, group, (bytes + 3) * (uint64_t)group->size + 1, 1, &w) &&
            kit_image_make(kit, &image, bytes, 1, KIT_DEVICE))
            (puts ? put_all : get_all)(&w, bytes, host, &image);
        kit_image_free(kit, &image);
        kit_window_free(&w);
        kit_end(kit);
    }
    free(host);
}

void kit_symm_moves(struct kit *kit)
{
    static const uint64_t sizes[] = {1, 7, 1021, 100003};

    for (int g = 0; g < kit->group_count; g++)
        for (size_t i = 0; i < WF_COUNT(sizes); i++) {
            if (g > 0 && i != 1) continue;
            moves(kit, &kit->groups[g], true, sizes[i]);
            moves(kit, &kit->groups[g], false, sizes[i]);
        }
}

/* Memory of the user as a window: its content is kept, and peers can read it. */
void kit_symm_register(struct kit *kit)
{
    const weft_symm_table *table = kit->plugin->symm;
    struct kit_window w = {.kit = kit, .table = table, .group = &kit->groups[0], .bytes = 4096};
    struct kit_image memory = {0}, target = {0};
    int32_t right = (kit->rank + 1) % kit->size;
    weft_symm_handle h = {.struct_size = sizeof h};

    w.comm = kit_comm(kit, &kit->groups[0]);
    if (w.comm != NULL && kit_image_make(kit, &memory, w.bytes, 0, KIT_DEVICE) &&
        kit_image_make(kit, &target, w.bytes, 0, KIT_DEVICE)) {
        w.local = kit_image_at(&memory, 0);
        for (uint64_t i = 0; i < w.bytes; i++)
            memory.before[memory.start + i] = byte_of(kit->rank, 0, i);
        if (kit_image_upload(kit, &memory) && kit_image_upload(kit, &target) &&
            kit_ok(kit, "window_register",
                   table->window_register(w.comm, w.local, w.bytes, 4, &w.window)) &&
            kit_ok(kit, "handle", table->handle(w.window, &h)) && barrier(&w)) {
            kit_check(kit, h.buffers[kit->rank] == w.local,
                      "the own entry of buffers is not the memory that was registered");
            for (uint64_t i = 0; i < w.bytes; i++)
                target.want[target.start + i] = byte_of(right, 0, i);
            if (kit_window_done(
                    &w, "get",
                    table->get(w.window, kit_image_at(&target, 0), 0, w.bytes, right, NULL), NULL))
                kit_image_check(kit, &target, "what get read",
                                &(struct kit_compare){.dtype = WEFT_DTYPE_U8});
        }
        kit_window_free(&w);
        kit_image_check(kit, &memory, "registered memory",
                        &(struct kit_compare){.dtype = WEFT_DTYPE_U8});
    }
    kit_images_free(kit, &memory, &target);
}

/* ---- signals ---- */

void kit_symm_put_signal(struct kit *kit)
{
    struct kit_image image = {0};
    uint8_t out[1000], in[1000];
    int32_t right = (kit->rank + 1) % kit->size, left = (kit->rank + kit->size - 1) % kit->size;
    struct kit_window w;

    for (uint64_t i = 0; i < sizeof out; i++)
        out[i] = byte_of(kit->rank, right, i);
    if (kit_window_make(kit, &kit->groups[0], 2048, 4, &w) &&
        kit_image_make(kit, &image, sizeof out, 0, KIT_DEVICE) &&
        kit_copy(kit, kit_image_at(&image, 0), out, sizeof out) &&
        kit_window_done(&w, "put_signal",
                        w.table->put_signal(w.window, 17, kit_image_at(&image, 0), sizeof out, 3,
                                            77, WEFT_SIGNAL_SET, right, NULL),
                        NULL) &&
        kit_window_done(&w, "wait_signal",
                        w.table->wait_signal(w.window, 3, WEFT_COMPARE_EQ, 77, LIMIT_NS, NULL),
                        NULL) &&
        kit_window_read(&w, 17, in, sizeof in))
        check_bytes(&w, in, sizeof in, left, kit->rank);
    kit_image_free(kit, &image);
    kit_window_free(&w);
}

/* All ranks add to one signal at the same time.  No addition may be lost. */
void kit_symm_signal_add(struct kit *kit)
{
    struct kit_window w;
    uint64_t rounds = 300;

    if (kit_window_make(kit, &kit->groups[0], 64, 2, &w)) {
        for (uint64_t i = 0; i < rounds; i++)
            for (int32_t peer = 0; peer < kit->size; peer++)
                if (!kit_ok(kit, "signal",
                            w.table->signal(w.window, 1, 2, WEFT_SIGNAL_ADD, peer, NULL)))
                    i = rounds;
        kit_window_done(&w, "quiet", w.table->quiet(w.window, NULL), NULL);
        kit_window_done(&w, "wait_signal for the sum of all ranks' adds",
                        w.table->wait_signal(w.window, 1, WEFT_COMPARE_EQ,
                                             2 * rounds * (uint64_t)kit->size, LIMIT_NS, NULL),
                        NULL);
    }
    kit_window_free(&w);
}

/* The signal of this rank is 5: check which comparisons end a wait. */
void kit_symm_compare(struct kit *kit)
{
    static const struct {
        uint32_t compare;
        uint64_t value;
        bool holds;
    } table[] = {
        {WEFT_COMPARE_EQ, 5, true},  {WEFT_COMPARE_EQ, 4, false}, {WEFT_COMPARE_NE, 4, true},
        {WEFT_COMPARE_NE, 5, false}, {WEFT_COMPARE_GE, 5, true},  {WEFT_COMPARE_GE, 6, false},
        {WEFT_COMPARE_GT, 4, true},  {WEFT_COMPARE_GT, 5, false}, {WEFT_COMPARE_LE, 5, true},
        {WEFT_COMPARE_LE, 4, false}, {WEFT_COMPARE_LT, 6, true},  {WEFT_COMPARE_LT, 5, false},
    };
    struct kit_window w;

    for (size_t i = 0; i < WF_COUNT(table); i++) {
        weft_status status;
        if (!kit_begin(kit, "compare/%u/value=%llu", table[i].compare,
                       (unsigned long long)table[i].value))
            continue;
        if (kit_window_make(kit, &kit->groups[0], 64, 1, &w) &&
            kit_window_done(&w, "signal",
                            w.table->signal(w.window, 0, 5, WEFT_SIGNAL_SET, kit->rank, NULL),
                            NULL) &&
            kit_window_done(&w, "quiet", w.table->quiet(w.window, NULL), NULL)) {
            int64_t limit = table[i].holds ? LIMIT_NS : 20 * KIT_MILLISECOND;
            status =
                w.table->wait_signal(w.window, 0, table[i].compare, table[i].value, limit, NULL);
            if (status == WEFT_OK) status = kit_finish(kit, w.comm, NULL, LIMIT_NS);
            kit_expect(kit, "wait_signal while the signal is 5", status,
                       table[i].holds ? WEFT_OK : WEFT_ERR_TIMEOUT);
            if (!table[i].holds) {
                /* A plugin may, but need not, break the communicator of a wait that timed out. */
                (void)w.table->window_destroy(w.window);
                w.window = NULL;
                kit_synchronize(kit, kit->groups[0].ranks, kit->size);
                kit_comms_drop(kit);
            }
        }
        kit_window_free(&w);
        kit_end(kit);
    }
}

/* ---- what is refused ---- */

void kit_symm_refusals(struct kit *kit)
{
    struct kit_window w;
    uint8_t bytes[64] = {0};

    if (kit_window_make(kit, &kit->groups[0], 64, 2, &w)) {
        const weft_symm_table *t = w.table;
        kit_expect(kit, "put to rank -1", t->put(w.window, 0, bytes, 8, -1, NULL),
                   WEFT_ERR_INVALID);
        kit_expect(kit, "get from rank SIZE", t->get(w.window, bytes, 0, 8, kit->size, NULL),
                   WEFT_ERR_INVALID);
        kit_expect(kit, "put past the end", t->put(w.window, 60, bytes, 8, 0, NULL),
                   WEFT_ERR_INVALID);
        kit_expect(kit, "put far past the end", t->put(w.window, UINT64_MAX - 3, bytes, 8, 0, NULL),
                   WEFT_ERR_INVALID);
        kit_expect(kit, "get of NULL", t->get(w.window, NULL, 0, 8, 0, NULL), WEFT_ERR_INVALID);
        kit_expect(kit, "signal 2 of 2", t->signal(w.window, 2, 1, WEFT_SIGNAL_SET, 0, NULL),
                   WEFT_ERR_INVALID);
        kit_expect(kit, "signal with an unknown operation", t->signal(w.window, 0, 1, 9, 0, NULL),
                   WEFT_ERR_UNSUPPORTED);
        kit_expect(kit, "wait_signal with an unknown comparison",
                   t->wait_signal(w.window, 0, 9, 0, LIMIT_NS, NULL), WEFT_ERR_UNSUPPORTED);
        kit_ok(kit, "put of nothing", t->put(w.window, 64, NULL, 0, 0, NULL));
    }
    kit_window_free(&w);
}

/* A plugin that cannot create windows on this machine reports it on every rank. */
static bool offered(struct kit *kit)
{
    const weft_symm_table *table = kit->plugin->symm;
    void *comm, *window = NULL, *local = NULL;
    uint8_t refused = 0, all[KIT_MAX_RANKS];
    int32_t count = 0;

    if (kit_aside(kit, "symm/offered")) {
        weft_status status = WEFT_OK;
        comm = kit_comm(kit, &kit->groups[0]);
        if (comm != NULL) status = table->window_create(comm, 64, 1, &window, &local);
        if (comm != NULL && status == WEFT_OK) status = table->window_destroy(window);
        refused = status == WEFT_ERR_UNSUPPORTED;
    }
    kit_gather(kit, &kit->groups[0], &refused, all, sizeof refused);
    for (int32_t rank = 0; rank < kit->size; rank++)
        count += all[rank];
    kit_aside_over(kit);
    if (count == kit->size) kit_skip(kit, "no windows here: %s", weft_last_error());
    return count < kit->size;
}

bool kit_when_windows(struct kit *kit)
{
    if (kit->plugin->symm == NULL || kit->plugin->comm == NULL)
        kit_skip(kit, "the plugin has no symm table");
    else
        return offered(kit);
    return false;
}

bool kit_when_registration(struct kit *kit)
{
    return kit->plugin->symm->window_register != NULL;
}
