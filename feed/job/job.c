/* job.c - the ranks of one job, publisher or subscriber: what they check and agree on. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN_MIN 16 /* characters */

void wf_feed_job_begin(struct wf_feed_job *job, weft_context *context, const char *function)
{
    bool simulated = weft_is_simulated(context);

    *job = (struct wf_feed_job){.context = context};
    job->first = simulated ? 0 : weft_rank(context);
    job->end = simulated ? weft_size(context) : job->first + 1;
    weft_record_begin(weft_world(context), WEFT_RECORD_CREATE, function, &job->record);
}

void wf_feed_job_free(struct wf_feed_job *job)
{
    weft_answers_release(&job->opened);
}

/* ---- agreement ---- */

weft_status wf_feed_agree(struct wf_feed_job *job, const char *function, weft_status status,
                          const void *data, size_t bytes, weft_answers **out)
{
    weft_agree_options options = {.struct_size = sizeof options, .after = job->opened};

    *out = NULL;
    status = wf_fail_named(status, function);
    if (weft_is_simulated(job->context)) return status;
    return weft_agree(weft_world(job->context), function, status, data, bytes,
                      job->opened != NULL ? &options : NULL, out);
}

const void *wf_feed_answer(const weft_answers *answers, int32_t rank, const void *own, size_t bytes)
{
    if (answers == NULL) return own;
    return weft_answers_bytes(answers, rank) == bytes ? weft_answers_data(answers, rank) : NULL;
}

int32_t wf_feed_answer_count(const struct wf_feed_job *job, const weft_answers *answers)
{
    return answers != NULL ? weft_size(job->context) : 1;
}

/* ---- arguments ---- */

weft_status wf_feed_names_check(const char *feed, const char *token)
{
    WF_TRY(wf_require(feed, "feed"));
    WF_TRY(wf_require(token, "token"));
    if (feed[0] == '\0' || strlen(feed) > WF_FEED_NAME_MAX)
        return wf_fail(WEFT_ERR_INVALID, "the name of the feed has %zu bytes; expected 1 to %d",
                       strlen(feed), WF_FEED_NAME_MAX);
    if (strlen(token) < TOKEN_MIN)
        return wf_fail(WEFT_ERR_INVALID, "the token has %zu characters; expected at least %d",
                       strlen(token), TOKEN_MIN);
    return WEFT_OK;
}

static weft_status add_entry(const weft_tensor *tensor, size_t index, struct wf_feed_entry *out)
{
    const char *name = weft_tensor_name(tensor);

    if (name[0] == '\0' || strlen(name) > WF_FEED_NAME_MAX)
        return wf_fail(WEFT_ERR_INVALID, "tensors[%zu]: its name has %zu bytes; expected 1 to %d",
                       index, strlen(name), WF_FEED_NAME_MAX);
    WF_TRY(wf_feed_check_spec(weft_tensor_spec(tensor), name));
    out->name = wf_strdup(name);
    if (out->name == NULL) return wf_fail_memory(strlen(name) + 1);
    out->spec = weft_spec_retain(weft_tensor_spec(tensor));
    return WEFT_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static weft_status check_distinct(const struct wf_feed_description *description)
{
    const char **names = wf_alloc((description->count + 1) * sizeof *names);
    weft_status status = WEFT_OK;

    if (names == NULL) return wf_fail_memory((description->count + 1) * sizeof *names);
    for (size_t i = 0; i < description->count; i++)
        names[i] = description->entries[i].name;
    qsort(names, description->count, sizeof *names, compare_names);
    for (size_t i = 1; i < description->count && status == WEFT_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = wf_fail(WEFT_ERR_INVALID, "two tensors have the name \"%.200s\"", names[i]);
    wf_free(names);
    return status;
}

weft_status wf_feed_tensors_check(weft_context *context, size_t count, weft_tensor *const *tensors,
                                  const char *function, struct wf_feed_description *out)
{
    struct wf_feed_description made = {.entries = wf_calloc(count + 1, sizeof *made.entries)};
    const weft_spec **specs = wf_alloc((count + 1) * sizeof *specs);
    weft_status status = WEFT_OK;

    if (made.entries == NULL || specs == NULL)
        status = wf_fail_memory((count + 1) * sizeof *made.entries);
    else if (count == 0 || tensors == NULL)
        status =
            wf_fail(WEFT_ERR_INVALID, tensors == NULL ? "tensors is NULL" : "there are no tensors");
    else
        status = weft_tensors_check(context, count, tensors, function, "tensors", specs);
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        if (tensors[i] == NULL) {
            status = wf_fail(WEFT_ERR_INVALID, "tensors[%zu] is NULL", i);
        } else {
            status = add_entry(tensors[i], i, &made.entries[i]);
            made.count = i + 1;
        }
    }
    wf_free(specs);
    if (status == WEFT_OK) status = check_distinct(&made);
    if (status != WEFT_OK)
        wf_feed_description_free(&made);
    else
        *out = made;
    return status;
}

uint64_t wf_feed_digest(const struct wf_feed_description *description)
{
    uint64_t digest = wf_hash_mix(1, description->count);

    for (size_t i = 0; i < description->count; i++) {
        const struct wf_feed_entry *entry = &description->entries[i];
        digest = wf_hash(digest, entry->name, strlen(entry->name));
        digest = wf_hash_mix(digest, weft_spec_hash(entry->spec));
    }
    return digest;
}
