/* verify.c - checksums of all ranks of the serving job.
 *
 * The ranks that hold one replica of a tensor add up their sums.  Each replica must have the
 * publisher's. */
#include "subscribe.h"

#include <string.h>

bool wf_feed_any_revoked(const weft_subscriber *subscriber, const weft_answers *answers)
{
    size_t bytes = wf_feed_outcome_bytes(subscriber);

    for (int32_t rank = 0; rank < wf_feed_answer_count(&subscriber->job, answers); rank++) {
        const uint64_t *theirs = wf_feed_answer(answers, rank, subscriber->outcome, bytes);
        if (theirs == NULL || theirs[0] != WF_FEED_PULLED) return true;
    }
    return false;
}

/* What RANK has added up of tensor INDEX. */
static uint64_t sum_of(const weft_subscriber *subscriber, const weft_answers *answers, size_t index,
                       int32_t rank)
{
    size_t ranks = (size_t)weft_size(subscriber->job.context);
    const uint64_t *theirs;

    if (answers == NULL) return subscriber->outcome[1 + index * ranks + (size_t)rank];
    theirs = wf_feed_answer(answers, rank, NULL, wf_feed_outcome_bytes(subscriber));
    return theirs != NULL ? theirs[1 + index] : 0;
}

/* Set TOTALS to the sums of the replicas of tensor INDEX. */
static void add_up(const weft_subscriber *subscriber, const weft_answers *answers, size_t index,
                   uint64_t *totals)
{
    const weft_spec *spec = subscriber->mine.entries[index].spec;
    int32_t replica;

    memset(totals, 0, (size_t)wf_feed_replicas(spec) * sizeof *totals);
    for (int32_t rank = 0; rank < weft_size(subscriber->job.context); rank++)
        if (wf_feed_replica(spec, rank, &replica))
            totals[replica] += sum_of(subscriber, answers, index, rank);
}

/* Tensor INDEX differs in REPLICA: name the ranks that hold it. */
static weft_status fail_mismatch(weft_subscriber *subscriber, size_t index, int32_t replica,
                                 uint64_t version)
{
    const struct wf_feed_entry *entry = &subscriber->mine.entries[index];
    int32_t count = 0, found;
    struct wf_text text = {0};

    for (int32_t rank = 0; rank < weft_size(subscriber->job.context); rank++)
        if (wf_feed_replica(entry->spec, rank, &found) && found == replica)
            subscriber->ranks[count++] = rank;
    wf_ranks_print(&text, subscriber->ranks, count);
    return wf_fail_text(WEFT_ERR_MISMATCH, &text,
                        "tensor \"%.200s\" of version %llu has another checksum on %.200s than at "
                        "the publisher",
                        entry->name, (unsigned long long)version,
                        text.data != NULL ? text.data : "");
}

weft_status wf_feed_verify(weft_subscriber *subscriber, const weft_answers *answers,
                           const uint64_t *sums, uint64_t version)
{
    uint64_t *totals = subscriber->totals;
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < subscriber->mine.count; i++) {
        int32_t replicas = wf_feed_replicas(subscriber->mine.entries[i].spec);

        add_up(subscriber, answers, i, totals);
        subscriber->wrong[i] = false;
        for (int32_t replica = 0; replica < replicas && !subscriber->wrong[i]; replica++) {
            if (totals[replica] == sums[i]) continue;
            subscriber->wrong[i] = true;
            if (status == WEFT_OK) status = fail_mismatch(subscriber, i, replica, version);
        }
    }
    return status;
}
