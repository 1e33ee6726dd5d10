/* subscribe.h - the subscriber.
 *
 *     subscriber.c  its life and its properties
 *     feed.c        this rank's connection to the publisher, and what follows from its description
 *     pull.c        reading a version
 *     verify.c      checksums of all ranks
 *     stage.c       versions: stage, commit, audit */
#ifndef WEFT_FEED_SUBSCRIBE_SUBSCRIBE_H
#define WEFT_FEED_SUBSCRIBE_SUBSCRIBE_H

#include "job/job.h"
#include "link/link.h"

/* What this rank knows of the publisher that it is connected to. */
struct wf_feed_link {
    struct wf_feed_client client; /* fd -1: not connected */
    struct wf_feed_description description;
    struct wf_feed_plan plan;
    size_t *entries;                 /* [mine.count] of the description, by tensor */
    struct wf_feed_memory *memories; /* [plan.holders]; fd -1: not needed */
};

struct weft_subscriber {
    weft_object object;
    weft_dependent *dependent;
    struct wf_feed_job job;
    char *address, *feed, *token;
    int64_t timeout_ns;
    int32_t apply; /* enum weft_feed_apply */
    struct wf_feed_description mine;
    weft_tensor **sets[2]; /* [mine.count]; the tensors that were passed, and others (FLIP) */
    int serving;           /* the set that is served */
    uint64_t *offsets;     /* [mine.count + 1] of the tensors in `shadow`, and its end */
    char *shadow;          /* COPY: elements that are staged */
    char *bounce;          /* for a tensor that the host cannot write in place; or NULL */
    struct wf_feed_link link;
    struct wf_feed_runs runs;
    struct wf_feed_state state;
    /* [mine.count] the publisher's, of the versions that are served, staged and pulled */
    uint64_t *served_sums, *staged_sums, *leased_sums;
    char *shared;      /* room for a grant and leased_sums */
    const char *step;  /* the function that runs */
    uint64_t *outcome; /* [1 + mine.count * ranks here] an enum wf_feed_outcome, then own sums */
    bool *wrong;       /* [mine.count] whose checksums differ */
    uint64_t *totals;  /* [ranks of the job] for verify.c, as RANKS */
    int32_t *ranks;
    weft_subscriber_info info;
};

/* How reading went on a rank. */
enum wf_feed_outcome { WF_FEED_PULLED, WF_FEED_REVOKED };

/* A version that rank 0 has leased. */
struct wf_feed_grant {
    uint64_t has; /* 1: it is served or staged already */
    uint64_t version, serial, slot, life;
};

/* ---- subscriber.c ---- */

weft_status wf_feed_subscriber_check(const weft_subscriber *subscriber,
                                     const char *function) WF_NODISCARD;

/* ---- stage.c ---- */

/* FUNCTION begins to wait; the other ranks learn that this one makes progress. */
struct wf_feed_wait wf_feed_wait_of(weft_subscriber *subscriber, const char *function);

/* ---- feed.c ---- */

/* Connect, and plan.  Without communication among ranks. */
weft_status wf_feed_join(weft_subscriber *subscriber, const struct wf_feed_wait *wait) WF_NODISCARD;
void wf_feed_leave(weft_subscriber *subscriber);

/* ---- pull.c ---- */

/* Read the tensors that ONLY marks (NULL: all) of the version GRANT, and set `outcome`. */
weft_status wf_feed_pull(weft_subscriber *subscriber, const struct wf_feed_grant *grant,
                         const bool *only, const struct wf_feed_wait *wait) WF_NODISCARD;
/* Set the sums in `outcome` to those of the tensors that are served, after the work on STREAM. */
weft_status wf_feed_sum_served(weft_subscriber *subscriber, weft_stream *stream) WF_NODISCARD;
/* Bytes of tensor INDEX on the ranks that this process holds. */
uint64_t wf_feed_bytes_here(const weft_subscriber *subscriber, size_t index);
size_t wf_feed_outcome_bytes(const weft_subscriber *subscriber);

/* ---- verify.c ---- */

/* Whether a rank says in ANSWERS that its version was overwritten. */
bool wf_feed_any_revoked(const weft_subscriber *subscriber, const weft_answers *answers);
/* Compare the sums of all ranks with SUMS; `wrong` marks those that differ.  WEFT_ERR_MISMATCH
 * names the first one, of VERSION, and its ranks.  Fails on all ranks or on none. */
weft_status wf_feed_verify(weft_subscriber *subscriber, const weft_answers *answers,
                           const uint64_t *sums, uint64_t version) WF_NODISCARD;

#endif
