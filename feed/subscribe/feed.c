/* feed.c - this rank's connection to the publisher, and what follows from its description. */
#include "subscribe.h"

#include "outside/texts.h"

#include <stdlib.h>
#include <string.h>

void wf_feed_leave(weft_subscriber *subscriber)
{
    struct wf_feed_link *link = &subscriber->link;

    for (int32_t i = 0; link->memories != NULL && i < link->plan.holders; i++)
        wf_feed_memory_free(&link->memories[i]);
    wf_free(link->memories);
    wf_free(link->entries);
    wf_feed_plan_free(&link->plan);
    wf_feed_description_free(&link->description);
    wf_feed_client_close(&link->client);
    *link = (struct wf_feed_link){.client = {.fd = -1, .fd_in = -1}};
}

/* ---- names ---- */

static int compare_entries(const void *a, const void *b)
{
    const struct wf_feed_entry *const *first = a, *const *second = b;

    return strcmp((*first)->name, (*second)->name);
}

/* MINE is to be read from THEIRS. */
static weft_status check_alike(const struct wf_feed_entry *mine, const struct wf_feed_entry *theirs)
{
    int32_t dims = weft_spec_dims(mine->spec);
    struct wf_text texts[2] = {{0}, {0}};
    weft_status status;

    if (weft_spec_dtype(mine->spec) == weft_spec_dtype(theirs->spec) &&
        dims == weft_spec_dims(theirs->spec) &&
        (dims == 0 || memcmp(weft_spec_shape(mine->spec), weft_spec_shape(theirs->spec),
                             (size_t)dims * sizeof(int64_t)) == 0))
        return WEFT_OK;
    wf_text_spec(&texts[0], mine->spec);
    wf_text_spec(&texts[1], theirs->spec);
    status =
        wf_fail(WEFT_ERR_MISMATCH,
                "tensor \"%.200s\" is %.300s, but the feed has %.300s; shape and dtype must be "
                "equal",
                mine->name, texts[0].failed ? "another" : texts[0].data,
                texts[1].failed ? "another" : texts[1].data);
    wf_text_free(&texts[0]);
    wf_text_free(&texts[1]);
    return status;
}

static weft_status match(const weft_subscriber *subscriber, struct wf_feed_link *link)
{
    size_t count = link->description.count;
    const struct wf_feed_entry **sorted = wf_alloc((count + 1) * sizeof(struct wf_feed_entry *));
    weft_status status = WEFT_OK;

    link->entries = wf_alloc((subscriber->mine.count + 1) * sizeof *link->entries);
    if (sorted == NULL || link->entries == NULL) status = wf_fail_memory((count + 1) * 8);
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        sorted[i] = &link->description.entries[i];
    if (status == WEFT_OK) qsort(sorted, count, sizeof *sorted, compare_entries);
    for (size_t i = 0; i < subscriber->mine.count && status == WEFT_OK; i++) {
        const struct wf_feed_entry *mine = &subscriber->mine.entries[i];
        const struct wf_feed_entry **found =
            bsearch(&mine, sorted, count, sizeof *sorted, compare_entries);
        status = found != NULL ? check_alike(mine, *found)
                               : wf_fail(WEFT_ERR_NOT_FOUND,
                                         "the feed \"%.200s\" has %zu tensors, but not \"%.200s\"",
                                         subscriber->feed, count, mine->name);
        if (status == WEFT_OK) link->entries[i] = (size_t)(*found - link->description.entries);
    }
    wf_free(sorted);
    return status;
}

/* ---- the plan ---- */

static weft_status plan(const weft_subscriber *subscriber, struct wf_feed_link *link)
{
    size_t count = subscriber->mine.count;
    const weft_spec **specs = wf_alloc((count + 1) * sizeof *specs);
    weft_status status;

    if (specs == NULL) return wf_fail_memory((count + 1) * sizeof *specs);
    for (size_t i = 0; i < count; i++)
        specs[i] = subscriber->mine.entries[i].spec;
    status = wf_feed_plan_make(&link->description, count, specs, link->entries,
                               subscriber->job.first, subscriber->job.end, &link->plan);
    wf_free(specs);
    return status;
}

/* Map the memory of the holders that the plan reads. */
static weft_status map(struct wf_feed_link *link, const struct wf_feed_wait *wait)
{
    size_t holders = (size_t)link->plan.holders;

    link->memories = wf_alloc(holders * sizeof *link->memories);
    if (link->memories == NULL) return wf_fail_memory(holders * sizeof *link->memories);
    for (size_t i = 0; i < holders; i++)
        link->memories[i] = (struct wf_feed_memory){.fd = -1};
    for (size_t i = 0; i < link->plan.source_count; i++) {
        int32_t holder = link->plan.sources[i].holder;
        struct wf_feed_request request = {.type = WF_FEED_MAP, .holder = holder};
        int fd;

        if (link->memories[holder].data != NULL) continue;
        WF_TRY(wf_feed_client_call(&link->client, &request, -1, WF_FEED_MEMORY, wait, NULL));
        fd = wf_feed_client_take_fd(&link->client);
        if (fd < 0)
            return wf_fail(WEFT_ERR_INVALID, "no descriptor has come with memory %d", holder);
        WF_TRY(wf_feed_memory_map(fd, link->description.slots, link->plan.slot_bytes[holder],
                                  &link->memories[holder]));
    }
    return WEFT_OK;
}

static weft_status join(weft_subscriber *subscriber, const struct wf_feed_wait *wait)
{
    struct wf_feed_link *link = &subscriber->link;
    struct wf_feed_request request = {.type = WF_FEED_DESCRIBE};
    struct wf_text bytes = {0};
    weft_status status;

    WF_TRY(wf_feed_client_open(&link->client, subscriber->address, subscriber->feed,
                               subscriber->token, wait));
    status = wf_feed_client_call(&link->client, &request, -1, WF_FEED_DESCRIPTION, wait, &bytes);
    if (status == WEFT_OK)
        status =
            wf_feed_description_take((weft_blob){bytes.data, bytes.length}, &link->description);
    wf_text_free(&bytes);
    if (status != WEFT_OK) return status;
    WF_TRY(match(subscriber, link));
    WF_TRY(plan(subscriber, link));
    return map(link, wait);
}

weft_status wf_feed_join(weft_subscriber *subscriber, const struct wf_feed_wait *wait)
{
    weft_status status;

    wf_feed_leave(subscriber);
    status = join(subscriber, wait);
    if (status != WEFT_OK) {
        wf_feed_leave(subscriber);
        return status;
    }
    subscriber->info.connections++;
    subscriber->info.bytes = subscriber->link.plan.bytes;
    return WEFT_OK;
}
