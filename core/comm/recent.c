/* recent.c - the recent operations of a communicator, in words. */
#include "comm.h"

static const char *kind_name(uint32_t kind)
{
    if (kind == WF_RECENT_SEND) return "send";
    if (kind == WF_RECENT_RECEIVE) return "receive";
    if (kind == WF_RECENT_PULL) return "pull";
    if (kind == WF_RECENT_SYMM_BARRIER) return "barrier of symmetric memory";
    return wf_collective_name(kind);
}

static void print_entry(uint64_t what, uint64_t count, struct wf_text *out)
{
    uint32_t kind = (uint32_t)(what >> 48) & 255, dtype = (uint32_t)(what >> 40) & 255;
    uint32_t reduction = (uint32_t)(what >> 32) & 255;
    int32_t root = (int32_t)(uint32_t)what;
    const char *name = kind_name(kind);

    wf_text_add(out, "%s", name != NULL ? name : "unknown operation");
    if (kind == WEFT_COLL_BARRIER || kind == WF_RECENT_SYMM_BARRIER) return;
    if (wf_collective_reduces(kind) && wf_reduction_name(reduction) != NULL)
        wf_text_add(out, " %s", wf_reduction_name(reduction));
    wf_text_add(out, " of %llu %s", (unsigned long long)count,
                wf_dtype_name(dtype) != NULL ? wf_dtype_name(dtype) : "elements");
    if (kind == WF_RECENT_SEND) wf_text_add(out, " to rank %d", root);
    if (kind == WF_RECENT_RECEIVE) wf_text_add(out, " from rank %d", root);
    if (kind < WF_RECENT_SEND && root >= 0) wf_text_add(out, " with root %d", root);
}

void wf_recent_print(struct wf_recent *recent, uint64_t n, struct wf_text *out)
{
    struct wf_recent_entry *entry = &recent->entries[n % WF_RECENT_ENTRIES];
    uint64_t posted = atomic_load_explicit(&recent->posted, memory_order_acquire), what, count;

    if (n == 0 || n > posted || posted - n >= WF_RECENT_ENTRIES) return;
    what = atomic_load_explicit(&entry->what, memory_order_relaxed);
    count = atomic_load_explicit(&entry->count, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    posted = atomic_load_explicit(&recent->posted, memory_order_relaxed);
    /* The writer fills the next entry before it counts it. */
    if (posted - n + 1 < WF_RECENT_ENTRIES) print_entry(what, count, out);
}
