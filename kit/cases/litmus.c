/* litmus.c - forbidden orders of memory operations between ranks, tried many times.
 *
 * The ranks communicate through the window only, because other synchronization would order
 * memory. */
#include "cases.h"

#include "checks/window.h"

#include "checks/collective.h"

#define ROUNDS   1000
#define LIMIT_NS (10 * KIT_SECOND)

static bool wait_for(struct kit_window *w, uint32_t signal, uint64_t value)
{
    return kit_window_done(
        w, "wait_signal",
        w->table->wait_signal(w->window, signal, WEFT_COMPARE_GE, value, LIMIT_NS, NULL), NULL);
}

static bool tell(struct kit_window *w, uint32_t signal, uint64_t value, int32_t peer)
{
    return kit_ok(w->kit, "signal",
                  w->table->signal(w->window, signal, value, WEFT_SIGNAL_SET, peer, NULL));
}

/* Rank 0 writes a message for rank 1, then signals; rank 1 must see the whole message.  The
 * variants are put_signal, and put, fence, signal. */
static void pass_messages(struct kit_window *w, bool fenced, struct kit_image *source)
{
    const weft_symm_table *t = w->table;
    uint64_t words[32];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (size_t i = 0; i < WF_COUNT(words); i++)
            words[i] = round * 1000 + i;
        if (w->kit->rank == 0) {
            void *from = kit_image_at(source, 0);
            weft_status status;
            if (!kit_copy(w->kit, from, words, sizeof words)) return;
            if (fenced) {
                status = t->put(w->window, 0, from, sizeof words, 1, NULL);
                if (status == WEFT_OK) status = t->fence(w->window, NULL);
                if (status == WEFT_OK)
                    status = t->signal(w->window, 0, round, WEFT_SIGNAL_SET, 1, NULL);
            } else {
                status = t->put_signal(w->window, 0, from, sizeof words, 0, round, WEFT_SIGNAL_SET,
                                       1, NULL);
            }
            if (!kit_window_done(w, "put and signal", status, NULL) || !wait_for(w, 1, round))
                return;
        } else {
            uint64_t seen[WF_COUNT(words)];
            if (!wait_for(w, 0, round) || !kit_window_read(w, 0, seen, sizeof seen)) return;
            for (size_t i = 0; i < WF_COUNT(words); i++)
                if (!kit_check(w->kit, seen[i] == words[i],
                               "round %llu: the signal came, but word %zu was still %llu",
                               (unsigned long long)round, i, (unsigned long long)seen[i]))
                    return;
            if (!tell(w, 1, round, 0)) return;
        }
    }
}

static void message_passing(struct kit *kit, bool fenced)
{
    struct kit_image source = {0};
    struct kit_window w;

    if (!kit_begin(kit, "litmus/message_passing/%s", fenced ? "fence" : "put_signal")) return;
    if (kit_window_make(kit, &kit->groups[0], 4096, 2, &w) && kit->rank < 2 &&
        kit_image_make(kit, &source, 512, 0, KIT_DEVICE))
        pass_messages(&w, fenced, &source);
    kit_image_free(kit, &source);
    kit_window_free(&w);
    kit_end(kit);
}

/* Exchange what both ranks have SEEN in ROUND. */
static bool compare_notes(struct kit_window *w, struct kit_image *memory, uint64_t round,
                          uint64_t seen, uint64_t *theirs)
{
    uint64_t slot = 8192 + 8 * (round % 2);
    void *from = kit_image_at(memory, 128);

    return kit_copy(w->kit, from, &seen, sizeof seen) &&
           kit_ok(w->kit, "put_signal",
                  w->table->put_signal(w->window, slot, from, sizeof seen, 1, round + 1,
                                       WEFT_SIGNAL_SET, 1 - w->kit->rank, NULL)) &&
           wait_for(w, 1, round + 1) && kit_window_read(w, slot, theirs, sizeof *theirs);
}

/* Both ranks write to the other and, after quiet, read what the other wrote.  The second writer
 * must see the write of the first, so at least one of them reads a new value. */
static void buffer_stores(struct kit_window *w, struct kit_image *memory)
{
    const weft_symm_table *t = w->table;
    void *source = kit_image_at(memory, 0), *target = kit_image_at(memory, 64);
    uint64_t one = 1, seen, theirs;

    if (!kit_copy(w->kit, source, &one, sizeof one)) return;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (!kit_ok(w->kit, "put",
                    t->put(w->window, round * 8, source, 8, 1 - w->kit->rank, NULL)) ||
            !kit_window_done(w, "quiet", t->quiet(w->window, NULL), NULL) ||
            !kit_window_done(w, "get", t->get(w->window, target, round * 8, 8, w->kit->rank, NULL),
                             NULL) ||
            !kit_copy(w->kit, &seen, target, sizeof seen) ||
            !compare_notes(w, memory, round, seen, &theirs))
            return;
        if (!kit_check(w->kit, seen == 1 || theirs == 1,
                       "round %llu: both ranks wrote, called quiet and then read nothing",
                       (unsigned long long)round))
            return;
    }
}

void kit_symm_store_buffering(struct kit *kit)
{
    struct kit_image memory = {0};
    struct kit_window w;

    if (kit_window_make(kit, &kit->groups[0], 16384, 2, &w) && kit->rank < 2 &&
        kit_image_make(kit, &memory, 256, 0, KIT_DEVICE))
        buffer_stores(&w, &memory);
    kit_image_free(kit, &memory);
    kit_window_free(&w);
}

void kit_symm_message_passing(struct kit *kit)
{
    message_passing(kit, false);
    message_passing(kit, true);
}
