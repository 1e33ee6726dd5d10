/* stage.c - versions of a serving job: stage, commit and audit.
 *
 * Rank 0 leases a version; all ranks read their parts of it, and exchange checksums.  Each of these
 * steps ends with an agreement of all ranks, so all take the same way. */
#include "subscribe.h"

#include <poll.h>
#include <string.h>

enum { REPAIRS_MAX = 2 }; /* of one version */

/* ---- waiting ---- */

static void go_on(void *user)
{
    const weft_subscriber *subscriber = user;

    if (subscriber->job.opened != NULL)
        weft_agree_progress(subscriber->job.opened, subscriber->step);
}

struct wf_feed_wait wf_feed_wait_of(weft_subscriber *subscriber, const char *function)
{
    subscriber->step = function;
    return (struct wf_feed_wait){
        .deadline_ns = wf_deadline(subscriber->timeout_ns), .progress = go_on, .user = subscriber};
}

/* ---- the lease of rank 0 ---- */

/* Set *OUT and `staged_sums` to the version that REPLY has. */
static weft_status take_lease(weft_subscriber *subscriber, const struct wf_text *reply,
                              struct wf_feed_grant *out)
{
    const struct wf_feed_link *link = &subscriber->link;
    struct wf_feed_leased leased;
    bool same = true;

    WF_TRY(wf_feed_leased_take((weft_blob){reply->data, reply->length}, link->description.slots,
                               link->description.count, &leased));
    for (size_t i = 0; i < subscriber->mine.count; i++) {
        uint64_t sum, *staged = &subscriber->staged_sums[i];
        memcpy(&sum, (const char *)leased.sums.data + link->entries[i] * 8, sizeof sum);
        same =
            same && sum == (subscriber->state.phase == WF_FEED_STAGED ? *staged
                                                                      : subscriber->served_sums[i]);
        subscriber->leased_sums[i] = sum;
    }
    *out =
        (struct wf_feed_grant){.has = same && wf_feed_state_has(&subscriber->state, leased.version),
                               .version = leased.version,
                               .serial = leased.serial,
                               .slot = leased.slot,
                               .life = link->description.life};
    return WEFT_OK;
}

static weft_status ask_for_lease(weft_subscriber *subscriber, uint64_t version,
                                 const struct wf_feed_wait *wait, struct wf_feed_grant *out)
{
    struct wf_feed_request request = {.type = WF_FEED_LEASE, .version = version};
    struct wf_text reply = {0};
    weft_status status =
        wf_feed_client_call(&subscriber->link.client, &request, -1, WF_FEED_LEASED, wait, &reply);

    if (status == WEFT_OK) status = take_lease(subscriber, &reply, out);
    wf_text_free(&reply);
    return status;
}

/* Lease VERSION, over a new connection if the one that is there has ended. */
static weft_status lease(weft_subscriber *subscriber, uint64_t version,
                         const struct wf_feed_wait *wait, struct wf_feed_grant *out)
{
    weft_status status = WEFT_ERR_PEER;

    if (subscriber->link.client.fd >= 0) status = ask_for_lease(subscriber, version, wait, out);
    if (status == WEFT_ERR_PEER) {
        WF_TRY(wf_feed_join(subscriber, wait));
        status = ask_for_lease(subscriber, version, wait, out);
    }
    while (status == WEFT_ERR_ABORTED && wf_now_ns() < wait->deadline_ns) {
        poll(NULL, 0, 2); /* the next version is being written over the newest one */
        wait->progress(wait->user);
        status = ask_for_lease(subscriber, version, wait, out);
    }
    if (status == WEFT_ERR_NOT_FOUND && wf_feed_state_has(&subscriber->state, version)) {
        *out = (struct wf_feed_grant){.has = 1, .version = version};
        return WEFT_OK;
    }
    if (status != WEFT_OK && status != WEFT_ERR_NOT_FOUND && status != WEFT_ERR_ABORTED)
        wf_feed_leave(subscriber); /* a late reply must not be taken for another one */
    return status;
}

static void release(weft_subscriber *subscriber, const struct wf_feed_wait *wait)
{
    struct wf_feed_request request = {.type = WF_FEED_RELEASE};

    if (subscriber->job.first > 0 || subscriber->link.client.fd < 0) return;
    if (wf_feed_client_call(&subscriber->link.client, &request, -1, 0, wait, NULL) != WEFT_OK)
        wf_feed_leave(subscriber);
}

/* Rank 0 has leased GRANT, or has failed with STATUS: all ranks get it, and the checksums. */
static weft_status share(weft_subscriber *subscriber, const char *function, weft_status status,
                         struct wf_feed_grant *grant)
{
    size_t sums = subscriber->mine.count * sizeof *subscriber->leased_sums;
    size_t bytes = sizeof *grant + sums;
    bool root = subscriber->job.first == 0;
    weft_answers *answers;
    const char *data;

    memcpy(subscriber->shared, grant, sizeof *grant);
    memcpy(subscriber->shared + sizeof *grant, subscriber->leased_sums, sums);
    WF_TRY(wf_feed_agree(&subscriber->job, function, status, root ? subscriber->shared : NULL,
                         root ? bytes : 0, &answers));
    data = wf_feed_answer(answers, 0, subscriber->shared, bytes);
    if (data != NULL) {
        memcpy(grant, data, sizeof *grant);
        memcpy(subscriber->leased_sums, data + sizeof *grant, sums);
    }
    weft_answers_release(&answers);
    return data != NULL ? WEFT_OK : wf_fail(WEFT_ERR_INTERNAL, "%s: no answer", function);
}

/* ---- stage ---- */

/* A publisher that was opened later has other memory. */
static weft_status follow(weft_subscriber *subscriber, const struct wf_feed_grant *grant,
                          const struct wf_feed_wait *wait)
{
    if (subscriber->link.description.life == grant->life && subscriber->link.client.fd >= 0)
        return WEFT_OK;
    WF_TRY(wf_feed_join(subscriber, wait));
    if (subscriber->link.description.life == grant->life) return WEFT_OK;
    return wf_fail(WEFT_ERR_PEER, "another publisher has opened the feed meanwhile");
}

/* Read GRANT once, or the tensors that are wrong.  *REVOKED: it was overwritten on a rank.  An
 * error is one of all ranks. */
static weft_status pull(weft_subscriber *subscriber, const char *function,
                        const struct wf_feed_grant *grant, const bool *only, bool *revoked)
{
    struct wf_feed_wait wait = wf_feed_wait_of(subscriber, function);
    weft_status status = follow(subscriber, grant, &wait);
    weft_answers *answers;

    if (status == WEFT_OK) status = wf_feed_pull(subscriber, grant, only, &wait);
    WF_TRY(wf_feed_agree(&subscriber->job, function, status, subscriber->outcome,
                         wf_feed_outcome_bytes(subscriber), &answers));
    *revoked = wf_feed_any_revoked(subscriber, answers);
    if (!*revoked)
        status = wf_feed_verify(subscriber, answers, subscriber->leased_sums, grant->version);
    weft_answers_release(&answers);
    return status;
}

static weft_status pull_and_repair(weft_subscriber *subscriber, const char *function,
                                   const struct wf_feed_grant *grant, bool *revoked)
{
    weft_status status;

    subscriber->info.pull_ns = subscriber->info.check_ns = 0;
    memset(subscriber->wrong, 0, subscriber->mine.count * sizeof *subscriber->wrong);
    status = pull(subscriber, function, grant, NULL, revoked);
    for (int i = 0; i < REPAIRS_MAX && status == WEFT_ERR_MISMATCH && !*revoked; i++) {
        for (size_t k = 0; k < subscriber->mine.count; k++)
            subscriber->info.repairs += subscriber->wrong[k];
        wf_log(WF_LOG_WARNING, "%s: %s; it is pulled again", function, weft_last_error());
        status = pull(subscriber, function, grant, subscriber->wrong, revoked);
    }
    return status;
}

/* Lease and pull, again and again until it is done. */
static weft_status stage(weft_subscriber *subscriber, const char *function, uint64_t version,
                         uint64_t *out)
{
    struct wf_feed_wait wait = wf_feed_wait_of(subscriber, function);
    bool root = subscriber->job.first == 0, revoked = true;
    weft_status status;

    while (revoked) {
        struct wf_feed_grant grant = {0};

        status = root ? lease(subscriber, version, &wait, &grant) : WEFT_OK;
        if (root && status == WEFT_OK && wf_now_ns() > wait.deadline_ns)
            status = wf_fail(WEFT_ERR_TIMEOUT,
                             "a version was overwritten %llu times before it was read to the end; "
                             "keep more versions, or publish less often",
                             (unsigned long long)subscriber->info.restarts);
        status = share(subscriber, function, status, &grant);
        if (status == WEFT_OK && grant.has == 0) {
            wf_feed_state_stage(&subscriber->state, grant.version);
            status = pull_and_repair(subscriber, function, &grant, &revoked);
            wf_feed_state_staged(&subscriber->state, status == WEFT_OK && !revoked);
        } else {
            revoked = false;
        }
        if (root) release(subscriber, &wait);
        if (status != WEFT_OK) return status;
        if (revoked) subscriber->info.restarts++;
        *out = grant.version;
        if (!revoked && grant.has == 0)
            memcpy(subscriber->staged_sums, subscriber->leased_sums,
                   subscriber->mine.count * sizeof *subscriber->staged_sums);
    }
    return WEFT_OK;
}

weft_status weft_subscriber_stage(weft_subscriber *subscriber, uint64_t version, uint64_t *out)
{
    static const char what[] = "weft_subscriber_stage";
    weft_open_record record;
    uint64_t staged = 0;
    weft_status status;

    WF_TRY(wf_feed_subscriber_check(subscriber, what));
    WF_TRY(wf_require(out, "weft_subscriber_stage: out"));
    weft_record_continue(&subscriber->job.record, what, &record);
    weft_record_set_bytes(&record, subscriber->info.bytes);
    status = weft_record_end(&record, stage(subscriber, what, version, &staged));
    if (status == WEFT_OK) *out = staged;
    return status;
}

/* ---- commit ---- */

/* Copy what is staged to the tensors. */
static weft_status copy_all(weft_subscriber *subscriber, weft_stream *stream)
{
    for (size_t i = 0; i < subscriber->mine.count; i++) {
        uint64_t bytes = wf_feed_bytes_here(subscriber, i);
        if (bytes > 0)
            WF_TRY(weft_tensor_from_host(subscriber->sets[0][i],
                                         subscriber->shadow + subscriber->offsets[i], bytes,
                                         stream));
    }
    return WEFT_OK;
}

/* All ranks have STAGED; STATUS is that of this rank. */
static weft_status agree_commit(weft_subscriber *subscriber, const char *function,
                                weft_status status)
{
    uint64_t staged = subscriber->state.phase == WF_FEED_STAGED ? subscriber->state.staged : 0;
    weft_answers *answers;

    WF_TRY(wf_feed_agree(&subscriber->job, function, status, &staged, sizeof staged, &answers));
    for (int32_t rank = 0; rank < wf_feed_answer_count(&subscriber->job, answers); rank++) {
        const void *data = wf_feed_answer(answers, rank, &staged, sizeof staged);
        uint64_t theirs = 0;

        if (data != NULL) memcpy(&theirs, data, sizeof theirs);
        if (theirs != staged && status == WEFT_OK)
            status =
                wf_fail(WEFT_ERR_MISMATCH,
                        "%s: this rank has staged version %llu, and rank %d version %llu; 0 is "
                        "none",
                        function, (unsigned long long)staged, rank, (unsigned long long)theirs);
    }
    weft_answers_release(&answers);
    return status;
}

static weft_status commit(weft_subscriber *subscriber, const char *function, weft_stream *stream)
{
    weft_status status = weft_stream_check(subscriber->job.context, stream, function);
    weft_answers *answers;
    uint64_t *sums;

    WF_TRY(agree_commit(subscriber, function, status));
    if (!wf_feed_state_apply(&subscriber->state)) return WEFT_OK;
    if (subscriber->apply == WEFT_FEED_COPY) {
        status = wf_feed_agree(&subscriber->job, function, copy_all(subscriber, stream), NULL, 0,
                               &answers);
        if (status == WEFT_OK) weft_answers_release(&answers);
    } else {
        subscriber->serving = 1 - subscriber->serving;
    }
    wf_feed_state_applied(&subscriber->state, status == WEFT_OK);
    if (status != WEFT_OK) return status;
    sums = subscriber->served_sums;
    subscriber->served_sums = subscriber->staged_sums;
    subscriber->staged_sums = sums;
    subscriber->info.commits++;
    return WEFT_OK;
}

weft_status weft_subscriber_commit(weft_subscriber *subscriber, weft_stream *stream)
{
    static const char what[] = "weft_subscriber_commit";
    uint64_t begun_ns = wf_now_ns();
    weft_open_record record;
    weft_status status;

    WF_TRY(wf_feed_subscriber_check(subscriber, what));
    weft_record_continue(&subscriber->job.record, what, &record);
    status = commit(subscriber, what, stream);
    if (status == WEFT_OK) subscriber->info.commit_ns = wf_now_ns() - begun_ns;
    return weft_record_end(&record, status);
}

/* ---- audit ---- */

static weft_status audit(weft_subscriber *subscriber, const char *function, weft_stream *stream)
{
    weft_status status = weft_stream_check(subscriber->job.context, stream, function);
    weft_answers *answers;

    if (status == WEFT_OK && !subscriber->state.has_served)
        status = wf_fail(WEFT_ERR_INVALID, "no version is served");
    if (status == WEFT_OK) status = wf_feed_sum_served(subscriber, stream);
    WF_TRY(wf_feed_agree(&subscriber->job, function, status, subscriber->outcome,
                         wf_feed_outcome_bytes(subscriber), &answers));
    status = wf_feed_verify(subscriber, answers, subscriber->served_sums, subscriber->state.served);
    weft_answers_release(&answers);
    if (status != WEFT_OK) wf_feed_state_tear(&subscriber->state);
    return wf_fail_named(status, function);
}

weft_status weft_subscriber_audit(weft_subscriber *subscriber, weft_stream *stream)
{
    static const char what[] = "weft_subscriber_audit";
    weft_open_record record;

    WF_TRY(wf_feed_subscriber_check(subscriber, what));
    weft_record_continue(&subscriber->job.record, what, &record);
    return weft_record_end(&record, audit(subscriber, what, stream));
}
