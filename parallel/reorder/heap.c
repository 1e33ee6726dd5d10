/* heap.c - a binary heap of keys; the caller has made room for all of them. */
#include "flow.h"

void wf_ready_push(struct wf_ready *ready, uint64_t key)
{
    size_t at = ready->count++;

    for (; at > 0 && ready->keys[(at - 1) / 2] > key; at = (at - 1) / 2)
        ready->keys[at] = ready->keys[(at - 1) / 2];
    ready->keys[at] = key;
}

uint64_t wf_ready_pop(struct wf_ready *ready)
{
    uint64_t least = ready->keys[0], last = ready->keys[--ready->count];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < ready->count) {
        if (child + 1 < ready->count && ready->keys[child + 1] < ready->keys[child]) child++;
        if (ready->keys[child] >= last) break;
        ready->keys[at] = ready->keys[child];
        at = child;
    }
    ready->keys[at] = last;
    return least;
}
