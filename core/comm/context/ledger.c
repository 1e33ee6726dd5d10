/* ledger.c - memory that a context has allocated and not yet freed. */
#include "comm/comm.h"

void wf_ledger_begin(struct wf_ledger *ledger)
{
    pthread_mutex_init(&ledger->lock, NULL);
}

void wf_ledger_end(struct wf_ledger *ledger)
{
    pthread_mutex_destroy(&ledger->lock);
    wf_free(ledger->entries);
    ledger->entries = NULL;
    ledger->room = 0;
}

/* The entry of POINTER, or the free one in which it belongs.  Some entry is free. */
static uint64_t find(const struct wf_ledger *ledger, const void *pointer)
{
    uint64_t at = wf_hash_mix(0, (uint64_t)(uintptr_t)pointer) & (ledger->room - 1);

    while (ledger->entries[at].pointer != NULL && ledger->entries[at].pointer != pointer)
        at = (at + 1) & (ledger->room - 1);
    return at;
}

static weft_status grow(struct wf_ledger *ledger)
{
    struct wf_ledger larger = {.room = ledger->room > 0 ? 2 * ledger->room : 64};

    larger.entries = wf_calloc((size_t)larger.room, sizeof *larger.entries);
    if (larger.entries == NULL) return wf_fail_memory((size_t)larger.room * sizeof *larger.entries);
    for (uint64_t i = 0; i < ledger->room; i++)
        if (ledger->entries[i].pointer != NULL)
            larger.entries[find(&larger, ledger->entries[i].pointer)] = ledger->entries[i];
    wf_free(ledger->entries);
    ledger->entries = larger.entries;
    ledger->room = larger.room;
    return WEFT_OK;
}

weft_status wf_ledger_add(struct wf_ledger *ledger, const struct wf_ledger_entry *entry)
{
    weft_status status = WEFT_OK;

    pthread_mutex_lock(&ledger->lock);
    if (2 * (ledger->count + 1) > ledger->room) status = grow(ledger);
    if (status == WEFT_OK) {
        ledger->entries[find(ledger, entry->pointer)] = *entry;
        ledger->count++;
        ledger->bytes += entry->bytes;
        if (ledger->bytes > ledger->bytes_peak) ledger->bytes_peak = ledger->bytes;
    }
    pthread_mutex_unlock(&ledger->lock);
    return status;
}

/* Entry AT is free now: move the entries behind it that belong before it. */
static void close_gap(struct wf_ledger *ledger, uint64_t at)
{
    uint64_t mask = ledger->room - 1;

    for (uint64_t i = (at + 1) & mask; ledger->entries[i].pointer != NULL; i = (i + 1) & mask) {
        struct wf_ledger_entry entry = ledger->entries[i];

        ledger->entries[i].pointer = NULL;
        ledger->entries[find(ledger, entry.pointer)] = entry;
    }
}

bool wf_ledger_take(struct wf_ledger *ledger, const void *pointer, struct wf_ledger_entry *out)
{
    bool found = false;
    uint64_t at;

    pthread_mutex_lock(&ledger->lock);
    if (ledger->room > 0 && pointer != NULL) {
        at = find(ledger, pointer);
        found = ledger->entries[at].pointer != NULL;
        if (found) {
            *out = ledger->entries[at];
            ledger->entries[at].pointer = NULL;
            close_gap(ledger, at);
            ledger->count--;
            ledger->bytes -= out->bytes;
            ledger->frees++;
        }
    }
    pthread_mutex_unlock(&ledger->lock);
    return found;
}

uint64_t wf_ledger_count(const struct wf_ledger *ledger)
{
    return atomic_load_explicit(&ledger->count, memory_order_relaxed);
}

weft_status weft_memory_get(weft_context *context, weft_memory_info *out)
{
    weft_memory_info info = {0};

    WF_TRY(wf_context_check(context, "weft_memory_get"));
    if (out == NULL) return wf_fail_null("weft_memory_get", "out");
    pthread_mutex_lock(&context->ledger.lock);
    info.pieces = context->ledger.count;
    info.bytes = context->ledger.bytes;
    info.bytes_peak = context->ledger.bytes_peak;
    pthread_mutex_unlock(&context->ledger.lock);
    return wf_fail_named(wf_info_write("weft_memory_info", &info, sizeof info, out),
                         "weft_memory_get");
}
