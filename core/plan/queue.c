/* queue.c - a binary heap. */
#include "queue.h"

#define FIRST_ROOM 128

int wf_rating_compare(const struct wf_rating *a, const struct wf_rating *b)
{
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    if (a->second != b->second) return a->second < b->second ? -1 : 1;
    return (a->steps > b->steps) - (a->steps < b->steps);
}

static bool comes_first(const struct wf_queue *queue, const struct wf_queued *a,
                        const struct wf_queued *b)
{
    int order = wf_rating_compare(&a->rating, &b->rating);

    return order != 0 ? order < 0 : queue->comes_first(queue->search, a->item, b->item);
}

weft_status wf_queue_push(struct wf_queue *queue, struct wf_queued entry)
{
    int32_t at = queue->count;

    if (at == queue->room) {
        int32_t room = queue->room == 0 ? FIRST_ROOM : 2 * queue->room;
        struct wf_queued *heap = wf_realloc(queue->heap, (size_t)room * sizeof *heap);
        if (heap == NULL) return wf_fail_memory((size_t)room * sizeof *heap);
        queue->heap = heap;
        queue->room = room;
    }
    queue->count++;
    while (at > 0 && comes_first(queue, &entry, &queue->heap[(at - 1) / 2])) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = entry;
    return WEFT_OK;
}

struct wf_queued wf_queue_pop(struct wf_queue *queue)
{
    struct wf_queued *heap = queue->heap, top = heap[0], last = heap[--queue->count];
    int32_t at = 0;

    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= queue->count) break;
        if (child + 1 < queue->count && comes_first(queue, &heap[child + 1], &heap[child])) child++;
        if (!comes_first(queue, &heap[child], &last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}
