/* subscriber.c - the life of a subscriber, and its properties. */
#include "subscribe.h"

#include "outside/texts.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_NS (60 * WF_SECOND_NS)

weft_status wf_feed_subscriber_check(const weft_subscriber *subscriber, const char *function)
{
    WF_TRY(weft_object_check(subscriber, "weft_subscriber", function, "subscriber"));
    if (subscriber->job.cause[0] == '\0') return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %s", function, subscriber->job.cause);
}

/* ---- the end ---- */

static void end(void *user, const char *cause)
{
    weft_subscriber *subscriber = user;

    snprintf(subscriber->job.cause, sizeof subscriber->job.cause, "%s", cause);
    wf_feed_leave(subscriber);
}

static const weft_dependent_calls calls = {.struct_size = sizeof calls, .end = end};

static void free_set(weft_subscriber *subscriber, int set)
{
    for (size_t i = 0; subscriber->sets[set] != NULL && i < subscriber->mine.count; i++)
        weft_tensor_release(&subscriber->sets[set][i]);
    wf_free(subscriber->sets[set]);
}

static void free_all(weft_subscriber *subscriber)
{
    weft_dependent_release(&subscriber->dependent);
    wf_feed_leave(subscriber);
    free_set(subscriber, 0);
    free_set(subscriber, 1);
    wf_free(subscriber->address);
    wf_free(subscriber->feed);
    if (subscriber->token != NULL) explicit_bzero(subscriber->token, strlen(subscriber->token));
    wf_free(subscriber->token);
    wf_free(subscriber->offsets);
    wf_free(subscriber->shadow);
    wf_free(subscriber->bounce);
    wf_free(subscriber->served_sums);
    wf_free(subscriber->staged_sums);
    wf_free(subscriber->leased_sums);
    wf_free(subscriber->shared);
    wf_free(subscriber->outcome);
    wf_free(subscriber->wrong);
    wf_free(subscriber->totals);
    wf_free(subscriber->ranks);
    wf_feed_runs_free(&subscriber->runs);
    wf_feed_description_free(&subscriber->mine);
    wf_feed_job_free(&subscriber->job);
    wf_free(subscriber);
}

void weft_subscriber_close(weft_subscriber **subscriber)
{
    weft_subscriber *object = subscriber != NULL ? *subscriber : NULL;

    if (object == NULL ||
        !weft_object_end(&object->object, "weft_subscriber", "weft_subscriber_close"))
        return;
    *subscriber = NULL;
    free_all(object);
}

/* ---- opening: what a rank does alone ---- */

static weft_status read_options(weft_subscriber *subscriber, const weft_subscriber_options *given,
                                uint64_t *staging_max)
{
    weft_subscriber_options known = {.struct_size = sizeof known};

    WF_TRY(wf_options_read("weft_subscriber_options", given, &known, sizeof known));
    if (known.apply != WEFT_FEED_FLIP && known.apply != WEFT_FEED_COPY)
        return wf_fail(WEFT_ERR_INVALID, "apply is %d; expected WEFT_FEED_FLIP or WEFT_FEED_COPY",
                       known.apply);
    if (known.timeout_ns < 0 && known.timeout_ns != WEFT_FOREVER)
        return wf_fail(WEFT_ERR_INVALID, "timeout_ns is %lld; expected a time limit",
                       (long long)known.timeout_ns);
    subscriber->apply = known.apply;
    subscriber->timeout_ns = known.timeout_ns != 0 ? known.timeout_ns : TIMEOUT_NS;
    *staging_max = known.staging_bytes_max;
    return WEFT_OK;
}

static weft_status copy_texts(weft_subscriber *subscriber, const char *address, const char *feed,
                              const char *token)
{
    WF_TRY(wf_feed_names_check(feed, token));
    WF_TRY(wf_require(address, "address"));
    WF_TRY(wf_feed_address_check(address));
    subscriber->address = wf_strdup(address);
    subscriber->feed = wf_strdup(feed);
    subscriber->token = wf_strdup(token);
    if (subscriber->address != NULL && subscriber->feed != NULL && subscriber->token != NULL)
        return WEFT_OK;
    return wf_fail_memory(strlen(address) + strlen(feed) + strlen(token));
}

/* The arrays with an item per tensor, or per rank. */
static weft_status make_arrays(weft_subscriber *subscriber)
{
    size_t count = subscriber->mine.count, ranks = (size_t)weft_size(subscriber->job.context);

    subscriber->offsets = wf_calloc(count + 1, sizeof *subscriber->offsets);
    subscriber->served_sums = wf_calloc(count, sizeof *subscriber->served_sums);
    subscriber->staged_sums = wf_calloc(count, sizeof *subscriber->staged_sums);
    subscriber->leased_sums = wf_calloc(count, sizeof *subscriber->leased_sums);
    subscriber->shared = wf_alloc(sizeof(struct wf_feed_grant) + count * sizeof(uint64_t));
    subscriber->outcome = wf_alloc(wf_feed_outcome_bytes(subscriber));
    subscriber->wrong = wf_calloc(count, sizeof *subscriber->wrong);
    subscriber->totals = wf_calloc(ranks, sizeof *subscriber->totals);
    subscriber->ranks = wf_calloc(ranks, sizeof *subscriber->ranks);
    if (subscriber->offsets == NULL || subscriber->served_sums == NULL ||
        subscriber->staged_sums == NULL || subscriber->leased_sums == NULL ||
        subscriber->shared == NULL || subscriber->outcome == NULL || subscriber->wrong == NULL ||
        subscriber->totals == NULL || subscriber->ranks == NULL)
        return wf_fail_memory(count * 32 + ranks * 16);
    for (size_t i = 0; i < count; i++)
        subscriber->offsets[i + 1] =
            wf_feed_align(subscriber->offsets[i] + wf_feed_bytes_here(subscriber, i));
    subscriber->info.staging_bytes = subscriber->offsets[count];
    return WEFT_OK;
}

static weft_status retain_all(weft_subscriber *subscriber, weft_tensor *const *tensors)
{
    size_t count = subscriber->mine.count;

    for (size_t i = 0; i < count; i++)
        if (weft_tensor_is_read_only(tensors[i]))
            return wf_fail(WEFT_ERR_INVALID, "tensor \"%.200s\" is read-only",
                           weft_tensor_name(tensors[i]));
    for (int set = 0; set < 2; set++) {
        subscriber->sets[set] = wf_calloc(count, sizeof(weft_tensor *));
        if (subscriber->sets[set] == NULL) return wf_fail_memory(count * sizeof(weft_tensor *));
    }
    for (size_t i = 0; i < count; i++)
        subscriber->sets[0][i] = weft_tensor_retain(tensors[i]);
    return WEFT_OK;
}

/* Make the memory for elements that are staged. */
static weft_status make_staging(weft_subscriber *subscriber, uint64_t most)
{
    uint64_t bytes = subscriber->info.staging_bytes;
    weft_status status = WEFT_OK;

    if (most != 0 && bytes > most)
        return wf_fail(
            WEFT_ERR_NO_MEMORY,
            "staging needs %llu bytes on this rank, but staging_bytes_max is %llu; raise "
            "it, or use more ranks",
            (unsigned long long)bytes, (unsigned long long)most);
    if (subscriber->apply == WEFT_FEED_COPY) {
        subscriber->shadow = wf_alloc((size_t)bytes);
        if (subscriber->shadow == NULL) status = WEFT_ERR_NO_MEMORY;
    }
    for (size_t i = 0;
         subscriber->apply == WEFT_FEED_FLIP && status == WEFT_OK && i < subscriber->mine.count;
         i++) {
        const struct wf_feed_entry *entry = &subscriber->mine.entries[i];
        weft_tensor_options options = {.struct_size = sizeof options, .name = entry->name};
        status = weft_tensor_create(subscriber->job.context, entry->spec, &options,
                                    &subscriber->sets[1][i]);
    }
    if (status != WEFT_ERR_NO_MEMORY) return status;
    return wf_fail(WEFT_ERR_NO_MEMORY,
                   "there is no memory for staging, which needs %llu bytes on this rank; use more "
                   "ranks, or free memory first",
                   (unsigned long long)bytes);
}

static weft_status make(weft_subscriber *subscriber, const char *address, const char *feed,
                        const char *token, size_t count, weft_tensor *const *tensors,
                        const weft_subscriber_options *options)
{
    weft_context *context = subscriber->job.context;
    uint64_t staging_max = 0;

    WF_TRY(read_options(subscriber, options, &staging_max));
    WF_TRY(copy_texts(subscriber, address, feed, token));
    WF_TRY(
        wf_feed_tensors_check(context, count, tensors, "weft_subscriber_open", &subscriber->mine));
    WF_TRY(make_arrays(subscriber));
    WF_TRY(retain_all(subscriber, tensors));
    WF_TRY(make_staging(subscriber, staging_max));
    return weft_dependent_create(weft_world(context), &calls, subscriber, &subscriber->dependent);
}

/* ---- opening: what the ranks agree on ---- */

struct opening {
    uint64_t tensors, feed, apply;
};

static weft_status compare(weft_subscriber *subscriber, const weft_answers *answers,
                           const struct opening *mine)
{
    struct opening root = *mine;

    for (int32_t rank = 0; rank < wf_feed_answer_count(&subscriber->job, answers); rank++) {
        const void *data = wf_feed_answer(answers, rank, mine, sizeof *mine);
        struct opening theirs = {0};

        if (data != NULL) memcpy(&theirs, data, sizeof theirs);
        if (rank == 0) root = theirs;
        if (theirs.tensors != root.tensors || theirs.feed != root.feed ||
            theirs.apply != root.apply)
            return wf_fail(WEFT_ERR_MISMATCH,
                           "weft_subscriber_open: rank 0 and rank %d pass different %s", rank,
                           theirs.feed != root.feed     ? "feeds, addresses or tokens"
                           : theirs.apply != root.apply ? "values of apply"
                                                        : "tensors, layouts or orders");
    }
    return WEFT_OK;
}

static weft_status open_all(weft_subscriber *subscriber, weft_status status)
{
    static const char what[] = "weft_subscriber_open";
    struct opening mine = {0};
    struct wf_feed_wait wait;
    weft_answers *answers;

    if (status == WEFT_OK) {
        mine.tensors = wf_feed_digest(&subscriber->mine);
        mine.feed = wf_hash(0, subscriber->feed, strlen(subscriber->feed));
        mine.feed = wf_hash(mine.feed, subscriber->token, strlen(subscriber->token));
        mine.feed = wf_hash(mine.feed, subscriber->address, strlen(subscriber->address));
        mine.apply = (uint64_t)subscriber->apply;
    }
    WF_TRY(wf_feed_agree(&subscriber->job, what, status, &mine, sizeof mine, &answers));
    subscriber->job.opened = answers;
    WF_TRY(compare(subscriber, answers, &mine));
    wait = wf_feed_wait_of(subscriber, what);
    status = wf_feed_join(subscriber, &wait);
    WF_TRY(wf_feed_agree(&subscriber->job, what, status, NULL, 0, &answers));
    weft_answers_release(&answers);
    return WEFT_OK;
}

weft_status weft_subscriber_open(weft_context *context, const char *address, const char *feed,
                                 const char *token, size_t count, weft_tensor *const *tensors,
                                 const weft_subscriber_options *options, weft_subscriber **out)
{
    static const char what[] = "weft_subscriber_open";
    weft_subscriber *made;
    struct wf_feed_job job;
    weft_status status;

    WF_TRY(weft_object_check(context, "weft_context", what, "context"));
    wf_feed_job_begin(&job, context, what);
    made = wf_calloc(1, sizeof *made);
    if (made == NULL) { /* the other ranks learn of it */
        weft_answers *answers;
        status = wf_feed_agree(&job, what, wf_fail_memory(sizeof *made), NULL, 0, &answers);
        return weft_record_end(&job.record, status);
    }
    made->job = job;
    made->link.client = (struct wf_feed_client){.fd = -1, .fd_in = -1};
    status = out != NULL ? make(made, address, feed, token, count, tensors, options)
                         : wf_fail_null(what, "out");
    status = weft_record_end(&made->job.record, open_all(made, status));
    if (status != WEFT_OK) {
        free_all(made);
        return status;
    }
    weft_object_begin(&made->object, "weft_subscriber");
    *out = made;
    return WEFT_OK;
}

/* ---- properties ---- */

weft_tensor *weft_subscriber_tensor(const weft_subscriber *subscriber, size_t index)
{
    if (subscriber == NULL || index >= subscriber->mine.count) return NULL;
    return subscriber->sets[subscriber->serving][index];
}

weft_status weft_subscriber_print(const weft_subscriber *subscriber, char *text, size_t size,
                                  size_t *needed)
{
    struct wf_text made = {0};

    WF_TRY(wf_feed_subscriber_check(subscriber, "weft_subscriber_print"));
    if (text == NULL && size > 0) return wf_fail_null("weft_subscriber_print", "text");
    wf_text_add(&made, "%s@", subscriber->feed);
    if (subscriber->state.has_served)
        wf_text_add(&made, "%llu", (unsigned long long)subscriber->state.served);
    else
        wf_text_add(&made, "none");
    return wf_text_copy_out(&made, text, size, needed);
}

weft_status weft_subscriber_get(weft_subscriber *subscriber, weft_subscriber_info *out)
{
    weft_subscriber_info info;

    WF_TRY(wf_feed_subscriber_check(subscriber, "weft_subscriber_get"));
    WF_TRY(wf_require(out, "weft_subscriber_get: out"));
    info = subscriber->info;
    info.struct_size = sizeof info;
    info.is_serving = subscriber->state.has_served;
    info.is_staged = subscriber->state.phase == WF_FEED_STAGED;
    info.is_torn = subscriber->state.torn;
    info.served = subscriber->state.served;
    info.staged = subscriber->state.staged;
    return wf_info_write("weft_subscriber_info", &info, sizeof info, out);
}
