/* gpu_waits.c - waits for signals that are under way on streams, so that what they look at does not
 * go away under them. */
#include "vendor.h"
#include VENDOR_COMM

#include <string.h>

struct wf_wait {
    gpu_stream stream;
    gpu_event last; /* behind the last one on the stream */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct wf_wait *find(struct wf_waits *waits, gpu_stream stream)
{
    for (size_t i = 0; i < waits->count; i++)
        if (waits->list[i].stream == stream) return &waits->list[i];
    return NULL;
}

static struct wf_wait *add(struct wf_waits *waits, gpu_stream stream)
{
    struct wf_wait *longer = wf_new((waits->count + 1) * sizeof *longer), *added;

    if (longer == NULL) return NULL;
    if (waits->count > 0) memcpy(longer, waits->list, waits->count * sizeof *longer);
    added = &longer[waits->count];
    added->stream = stream;
    if (wf_gpu_check(wf_gpu.event_create(&added->last, GPU_EVENT_UNTIMED), "creating an event") !=
        WEFT_OK) {
        wf_delete(longer);
        return NULL;
    }
    wf_delete(waits->list);
    waits->list = longer;
    waits->count++;
    return added;
}

weft_status wf_waits_note(struct wf_waits *waits, gpu_stream stream)
{
    struct wf_wait *wait;
    weft_status status = WEFT_ERR_NO_MEMORY;

    if (wf_is_capturing(stream)) return WEFT_OK; /* a graph's waits are its owner's concern */
    pthread_mutex_lock(&lock);
    wait = find(waits, stream);
    if (wait == NULL) wait = add(waits, stream);
    if (wait != NULL)
        status = wf_gpu_check(wf_gpu.event_record(wait->last, stream), "recording an event");
    pthread_mutex_unlock(&lock);
    return status;
}

bool wf_waits_are_over(const struct wf_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++)
        if (wf_gpu.event_query(waits->list[i].last) == GPU_NOT_READY) return false;
    return true;
}

weft_status wf_waits_end(struct wf_comm *comm, struct wf_waits *waits)
{
    uint64_t began = wf_now_ns();

    while (!wf_waits_are_over(waits)) {
        WF_TRY(wf_comm_stuck(comm));
        if (comm->timeout_ns >= 0 && wf_now_ns() - began >= (uint64_t)comm->timeout_ns)
            return wf_comm_stick(comm,
                                 wf_fail(WEFT_ERR_TIMEOUT,
                                         "a wait for a signal is under way on memory that is "
                                         "released, and did not end within %.3f s",
                                         (double)comm->timeout_ns / 1e9),
                                 NULL);
        wf_pause(began);
    }
    wf_waits_drop(waits);
    return WEFT_OK;
}

void wf_waits_drop(struct wf_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++)
        wf_gpu.event_destroy(waits->list[i].last);
    wf_delete(waits->list);
    *waits = (struct wf_waits){0};
}
