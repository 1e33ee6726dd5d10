/* feed.h - live weights: a training job publishes, serving jobs on the same host subscribe.
 *
 * Library: libweft_feed (CMake weft::feed, pkg-config weft-feed).
 *
 *     TRY(weft_publisher_open(ctx, "policy", token, count, tensors, NULL, &publisher));
 *     for (...) {
 *         TRY(train(tensors));
 *         TRY(weft_publisher_publish(publisher, step, NULL));
 *     }
 *     weft_publisher_close(&publisher);
 *
 * and in a job of its own, with another mesh and other layouts:
 *
 *     TRY(weft_subscriber_open(ctx, address, "policy", token, count, tensors, NULL, &subscriber));
 *     for (...) {
 *         TRY(weft_subscriber_stage(subscriber, WEFT_NEWEST, &version));
 *         TRY(weft_subscriber_commit(subscriber, NULL));
 *         TRY(serve(weft_subscriber_tensor(subscriber, 0), ...));
 *     }
 *     weft_subscriber_close(&subscriber);
 *
 * A feed is a named list of tensors that has versions.  Publisher and subscribers are separate
 * jobs: no call of one is collective with another, and the end of one does not end another.  The
 * publisher keeps copies of the last versions.  A subscriber reads them in the layouts that it has,
 * while it serves the version before.  A version becomes the one that is served on all ranks of the
 * serving job, or on none.
 *
 * Functions that are collective are so over the ranks of their own job, which call them in the same
 * order.  An error of one rank becomes the error of all ranks.  docs/feed.md has the guarantees. */
#ifndef WEFT_FEED_H
#define WEFT_FEED_H

#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the training job ---- */

typedef struct weft_publisher weft_publisher;

typedef struct weft_publisher_options {
    size_t struct_size;
    /* Where subscribers find the feed: "unix:NAME", a socket of this host that no other process
     * uses.  NULL: a name is made (weft_publisher_address). */
    const char *address;
    /* Versions that are kept at once, up to WEFT_PUBLISHER_VERSIONS_MAX; 0: 2.  Each takes the
     * memory of all shards once, in host memory. */
    size_t versions;
} weft_publisher_options;

#define WEFT_PUBLISHER_VERSIONS_MAX 64

/* Open the feed FEED of COUNT tensors of CONTEXT, which are retained.  Each has a name, and no two
 * have the same.  TOKEN is the feed's secret, at least 16 characters: a subscriber must know it,
 * and must be a process of the same user.  OPTIONS may be NULL.  A thread of rank 0 answers
 * subscribers until the publisher is closed.  Collective.  The caller closes *OUT, before or after
 * CONTEXT. WEFT_ERR_INVALID: a name is missing, too long or repeated, or a tensor has a partial
 * placement. WEFT_ERR_NO_MEMORY: the host has no memory for the copies; the text has the bytes.
 * WEFT_ERR_MISMATCH: ranks pass other arguments.  WEFT_ERR_SYSTEM: the address is in use.
 * WEFT_ERR_UNSUPPORTED: ranks run on several hosts. */
WEFT_API WEFT_NODISCARD weft_status weft_publisher_open(weft_context *context, const char *feed,
                                                        const char *token, size_t count,
                                                        weft_tensor *const *tensors,
                                                        const weft_publisher_options *options,
                                                        weft_publisher **out);
/* Leave the feed and set *PUBLISHER to NULL.  Subscribers keep the version that they serve, and
 * find a publisher that is opened at the same address later.  Accepts NULL and a pointer to NULL.
 */
WEFT_API void weft_publisher_close(weft_publisher **publisher);

/* Where subscribers find the feed, "unix:NAME"; the same on all ranks.  Borrowed.  NULL for NULL.
 */
WEFT_API const char *weft_publisher_address(const weft_publisher *publisher);

/* Publish the tensors as they are in the order of STREAM as version VERSION, which is larger than
 * all before.  The call waits for STREAM and copies; then the tensors may change.  It does not wait
 * for subscribers.  The copy takes the place of the oldest version that nobody reads or, if all are
 * read, of the one that somebody has read for the longest time: such a reader starts again with
 * another version.  Collective.  After an error the version does not exist.
 * WEFT_ERR_INVALID: VERSION is not larger, or is WEFT_NEWEST.  WEFT_ERR_MISMATCH: ranks pass
 * different versions. */
WEFT_API WEFT_NODISCARD weft_status weft_publisher_publish(weft_publisher *publisher,
                                                           uint64_t version, weft_stream *stream);

typedef struct weft_publisher_info {
    size_t struct_size;
    uint64_t version;     /* the newest one; 0: none is published */
    uint64_t published;   /* versions since the publisher was opened */
    uint64_t bytes;       /* of this rank's shards, in one version */
    uint64_t snapshot_ns; /* what the last publication took */
    size_t subscribers;   /* ranks that are connected; on rank 0, elsewhere 0 */
    size_t leases;        /* serving jobs that read a version now; on rank 0, elsewhere 0 */
    uint64_t revoked;     /* leases that a publication has ended; on rank 0, elsewhere 0 */
} weft_publisher_info;

/* Set *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_publisher_get(weft_publisher *publisher,
                                                       weft_publisher_info *out);

/* ---- a serving job ---- */

typedef struct weft_subscriber weft_subscriber;

/* How a version that is staged becomes the one that is served. */
enum weft_feed_apply {
    /* There are two sets of tensors: weft_subscriber_tensor changes to the other one. */
    WEFT_FEED_FLIP = 0,
    /* The staged elements are copied to the tensors, which stay the same.  For device graphs that
     * contain their addresses. */
    WEFT_FEED_COPY = 1
};

typedef struct weft_subscriber_options {
    size_t struct_size;
    int32_t apply; /* enum weft_feed_apply */
    int32_t reserved;
    /* Bytes that this rank may use for elements that are staged; 0: no limit. */
    uint64_t staging_bytes_max;
    /* How long a call waits for the publisher, and for a version that it can read to the end; 0: 60
     * seconds. */
    int64_t timeout_ns;
} weft_subscriber_options;

/* As a version: the newest one. */
#define WEFT_NEWEST UINT64_MAX

/* Subscribe to the feed FEED at ADDRESS, which weft_publisher_address has given: COUNT tensors of
 * CONTEXT, which are retained, are to be those of the same names.  They may be some of the feed's,
 * and have layouts of their own, without partial placements; shape and dtype are the feed's.  TOKEN
 * as in weft_publisher_open.  OPTIONS may be NULL.  No tensor is changed before a commit.
 * Collective.  The caller closes *OUT, before or after CONTEXT.
 * WEFT_ERR_NOT_FOUND: the feed has no tensor of a name.  WEFT_ERR_MISMATCH: shape or dtype differ,
 * or ranks pass other arguments.  WEFT_ERR_INVALID: the token is wrong, or an argument is.
 * WEFT_ERR_TIMEOUT: no publisher answers.  WEFT_ERR_NO_MEMORY: there is no memory for a second set
 * of the elements, or it exceeds staging_bytes_max; the text has the bytes that are needed. */
WEFT_API WEFT_NODISCARD weft_status weft_subscriber_open(weft_context *context, const char *address,
                                                         const char *feed, const char *token,
                                                         size_t count, weft_tensor *const *tensors,
                                                         const weft_subscriber_options *options,
                                                         weft_subscriber **out);
/* Set *SUBSCRIBER to NULL.  The tensors that were passed keep their elements.  Accepts NULL and a
 * pointer to NULL. */
WEFT_API void weft_subscriber_close(weft_subscriber **subscriber);

/* Pull version VERSION (UINT64_MAX: the newest one) beside the version that is served, which stays
 * as it is: another thread may use these tensors meanwhile, and communicate, but not use
 * SUBSCRIBER.  With WEFT_FEED_FLIP it writes the tensors that are not served, so no work may use
 * them any more.  All ranks compare the checksums of all tensors with the publisher's; a tensor
 * that differs is pulled again.  *OUT is the version.  Nothing is pulled if it is the one that is
 * served or staged.  A version that was staged before is dropped when the pull begins.  Collective.
 * After an error of the pull nothing is staged, and what is served is as before.
 * WEFT_ERR_NOT_FOUND: VERSION is not kept, or no version is published yet.  WEFT_ERR_TIMEOUT: the
 * publisher does not answer, or publishes faster than this job reads.  WEFT_ERR_MISMATCH: the
 * publisher's copy has wrong elements; the text names tensor and rank. */
WEFT_API WEFT_NODISCARD weft_status weft_subscriber_stage(weft_subscriber *subscriber,
                                                          uint64_t version, uint64_t *out);
/* Serve the version that is staged: on all ranks, or on none.  With WEFT_FEED_COPY the elements are
 * copied in the order of STREAM, and the call waits for them.  Without a staged version nothing
 * changes.  Collective.  After an error all ranks serve what they served before, unless the copy
 * had begun: then no version is served, until another one is staged and committed. */
WEFT_API WEFT_NODISCARD weft_status weft_subscriber_commit(weft_subscriber *subscriber,
                                                           weft_stream *stream);
/* Compare the checksums of the tensors that are served, after the work on STREAM, with those of
 * their version.  Collective.  WEFT_ERR_MISMATCH: a tensor was changed; the text names it and the
 * rank.  Then no version is served, until one is staged and committed.  WEFT_ERR_INVALID: no
 * version is served. */
WEFT_API WEFT_NODISCARD weft_status weft_subscriber_audit(weft_subscriber *subscriber,
                                                          weft_stream *stream);

/* Tensor INDEX of those that are served; NULL if SUBSCRIBER has no such tensor.  Borrowed.  Until
 * the first commit these are the tensors that were passed; with WEFT_FEED_FLIP, each commit changes
 * between them and a second set. */
WEFT_API weft_tensor *weft_subscriber_tensor(const weft_subscriber *subscriber, size_t index);

/* Write the version that is served to TEXT, as a key for caches of what was computed with it:
 * "policy@1042", or "policy@none".  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_subscriber_print(const weft_subscriber *subscriber,
                                                          char *text, size_t size, size_t *needed);

typedef struct weft_subscriber_info {
    size_t struct_size;
    bool is_serving, is_staged; /* whether the versions below are ones */
    bool is_torn; /* a commit or an audit has failed: some elements may be of no version */
    uint64_t served, staged; /* versions */
    uint64_t commits;        /* of versions */
    uint64_t bytes;          /* that this rank pulls for a version */
    uint64_t staging_bytes;  /* memory of this rank for elements that are staged */
    uint64_t restarts;       /* pulls that started again, because the publisher needed the memory */
    uint64_t repairs;        /* tensors that were pulled again, because a checksum differed */
    uint64_t connections;    /* to publishers: 1, and one more for each that was opened later */
    uint64_t pull_ns, check_ns; /* of the last stage: reading, and computing checksums */
    uint64_t commit_ns;         /* of the last commit */
} weft_subscriber_info;

/* Set *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_subscriber_get(weft_subscriber *subscriber,
                                                        weft_subscriber_info *out);

#ifdef __cplusplus
}
#endif
#endif
