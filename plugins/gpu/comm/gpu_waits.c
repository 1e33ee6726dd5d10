/* gpu_waits.c - pending waits for signals on streams.  The memory that they read must be kept until
 * they end. */
#include "vendor.h"
#include VENDOR_COMM

#include <string.h>

struct gpu_wait {
    vendor_stream stream;
    vendor_event last; /* recorded after the last wait on the stream */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct gpu_wait *find(struct gpu_waits *waits, vendor_stream stream)
{
    for (size_t i = 0; i < waits->count; i++)
        if (waits->list[i].stream == stream) return &waits->list[i];
    return NULL;
}

static struct gpu_wait *add(struct gpu_waits *waits, vendor_stream stream)
{
    struct gpu_wait *longer = plug_new((waits->count + 1) * sizeof *longer), *added;

    if (longer == NULL) return NULL;
    if (waits->count > 0) memcpy(longer, waits->list, waits->count * sizeof *longer);
    added = &longer[waits->count];
    added->stream = stream;
    if (gpu_check(gpu_api.event_create(&added->last, GPU_EVENT_UNTIMED), "creating an event") !=
        WEFT_OK) {
        plug_free(longer);
        return NULL;
    }
    plug_free(waits->list);
    waits->list = longer;
    waits->count++;
    return added;
}

weft_status gpu_waits_note(struct gpu_waits *waits, vendor_stream stream)
{
    struct gpu_wait *wait;
    weft_status status = WEFT_ERR_NO_MEMORY;

    if (gpu_is_capturing(stream)) return WEFT_OK; /* the owner of a graph handles its waits */
    pthread_mutex_lock(&lock);
    wait = find(waits, stream);
    if (wait == NULL) wait = add(waits, stream);
    if (wait != NULL)
        status = gpu_check(gpu_api.event_record(wait->last, stream), "recording an event");
    pthread_mutex_unlock(&lock);
    return status;
}

bool gpu_waits_are_over(const struct gpu_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++)
        if (gpu_api.event_query(waits->list[i].last) == GPU_NOT_READY) return false;
    return true;
}

weft_status gpu_waits_end(struct gpu_comm *comm, struct gpu_waits *waits)
{
    uint64_t began = plug_now();

    while (!gpu_waits_are_over(waits)) {
        PLUG_TRY(gpu_comm_cause(comm));
        if (comm->timeout_ns >= 0 && plug_now() - began >= (uint64_t)comm->timeout_ns)
            return gpu_comm_fail(comm,
                                 plug_fail(WEFT_ERR_TIMEOUT,
                                           "a wait for a signal on the released memory is pending "
                                           "and did not end within %.3f s",
                                           (double)comm->timeout_ns / 1e9),
                                 NULL);
        gpu_pause(began);
    }
    gpu_waits_drop(waits);
    return WEFT_OK;
}

void gpu_waits_drop(struct gpu_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++)
        gpu_api.event_destroy(waits->list[i].last);
    plug_free(waits->list);
    *waits = (struct gpu_waits){0};
}
