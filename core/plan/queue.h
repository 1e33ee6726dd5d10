/* queue.h - what a search has reached and not yet expanded, the best first. */
#ifndef WEFT_PLAN_QUEUE_H
#define WEFT_PLAN_QUEUE_H

#include "plan.h"

/* Less is better; a later member decides if the earlier ones are equal. */
struct wf_rating {
    uint64_t first, second;
    uint32_t steps;
};

struct wf_queued {
    struct wf_rating rating;
    int32_t item; /* an index that has a meaning for the search */
};

/* True if item A of SEARCH comes before item B, whose rating is the same. */
typedef bool wf_queue_tie(const void *search, int32_t a, int32_t b);

/* A binary heap.  The search sets `comes_first` and `search`, and frees `heap`. */
struct wf_queue {
    wf_queue_tie *comes_first;
    const void *search;
    struct wf_queued *heap;
    int32_t count, room;
};

int wf_rating_compare(const struct wf_rating *a, const struct wf_rating *b);
weft_status wf_queue_push(struct wf_queue *queue, struct wf_queued entry) WF_NODISCARD;
/* Remove the best entry.  QUEUE is not empty. */
struct wf_queued wf_queue_pop(struct wf_queue *queue);

#endif
