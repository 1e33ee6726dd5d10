/* posts.h - work that communicators have posted to streams, and its outcome.
 *
 * After an abort or a timeout the device's stream drains, so a drained stream does not prove that a
 * collective ran.  Each communicator therefore records, per stream, the range of its posts that are
 * not yet confirmed, on a logical clock that every wait advances.  A successful wait asks the
 * communicators with posts in its range; posts that they confirm are settled.
 *
 * The posting thread writes `first` and `last`.  A waiting thread writes the rest, under the
 * context's lock.  Another thread than the communicator's may post one-sided operations, so these
 * have a list of their own. */
#ifndef WEFT_COMM_POSTS_H
#define WEFT_COMM_POSTS_H

#include "weft/context.h"

#include <stdatomic.h>
#include <stdbool.h>

#define WF_POST_STREAMS 16
#define WF_REMAINS      8

/* The posts of one communicator on one stream. */
struct wf_posts {
    const void *stream;
    _Atomic uint64_t first, last;       /* posts since `settled`; none if `last` is before it */
    _Atomic uint64_t settled;           /* earlier posts are complete, or failed and acknowledged */
    uint64_t reported_at;               /* when a wait first returned the error; 0: not yet */
    uint64_t failed_from, failed_until; /* works recorded in this range have failed */
    bool in_group;                      /* the posts start when the open group ends */
    bool is_overflow;                   /* the posts are on any stream */
};

struct wf_posts_list {
    struct wf_posts *recent; /* where the last post is recorded; NULL: none yet */
    uint32_t count;
    struct wf_posts kept[WF_POST_STREAMS];
    struct wf_posts overflow; /* posts on streams for which `kept` has no room */
};

/* The part of a communicator that outlives it.  The communicator failed and was released before a
 * wait returned its error, and the program may still wait for its streams. */
struct wf_remains {
    struct wf_remains *next;
    weft_status status;
    char text[1024];
    struct wf_posts_list posts, onesided_posts;
};

/* The posts that a wait covers: those on STREAM before UNTIL.  UNTIL 0: none. */
struct wf_span {
    const void *stream;
    uint64_t number; /* of STREAM in records, if NEWEST is set */
    uint64_t until;
    bool any;        /* STREAM is not known */
    uint64_t newest; /* record of the trace; 0: none */
};

/* The span of a wait, or of the recording of a work, that begins now. */
struct wf_span wf_span_begin(weft_context *context, const void *stream);
/* STATUS is the device's result for SPAN, not IN_PROGRESS.  Returns it, or the error of a failed
 * communicator with work in SPAN. */
weft_status wf_span_judge(weft_context *context, const struct wf_span *span, weft_status status);
/* SPAN's stream was released. */
void wf_span_drop(weft_context *context, const struct wf_span *span);

void wf_posts_begin(struct wf_posts_list *list);
/* Make COMM's `recent` the record for STREAM. */
void wf_posts_find(weft_comm *comm, const void *stream);
/* A one-sided operation on COMM was posted to STREAM. [any thread] */
void wf_posts_add_onesided(weft_comm *comm, const void *stream);
/* Resources that work of COMM and its groups uses are about to be freed.  If one of them has
 * failed, wait for the streams with such work, for a limited time.  Returns false if the work is
 * still in progress. */
bool wf_posts_drain(weft_comm *comm);
/* COMM's group has ended and started its operations. */
void wf_posts_start_group(weft_comm *comm);
/* COMM ends.  If it failed and no wait reported it, its posts are kept with the context, for the
 * last WF_REMAINS communicators.  The context's lock is held. */
void wf_posts_end(weft_comm *comm);
/* Free the records of ended communicators. */
void wf_remains_free(weft_context *context);
/* The caller has received the failure on STREAM and posts new work to it: stop reporting it. */
void wf_posts_acknowledge(weft_context *context, const void *stream);

#endif
