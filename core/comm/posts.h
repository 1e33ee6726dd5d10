/* posts.h - what communicators have put on streams, and what became of it.
 *
 * A device goes on after work that was aborted or ran out of time: its stream is through, and only
 * the communicator knows that nothing happened.  So each communicator keeps, per stream, from when
 * to when it has put work there, by a clock that every wait moves on; a wait that ends well asks
 * those whose work it covers, and what they vouch for is settled for good.
 *
 * The poster writes `first` and `last`, whoever waits the rest, under the context's lock. One-sided
 * operations may be another thread's than the communicator's, and have a list of their own. */
#ifndef WEFT_COMM_POSTS_H
#define WEFT_COMM_POSTS_H

#include "weft/context.h"

#include <stdatomic.h>
#include <stdbool.h>

#define WF_POST_STREAMS 16
#define WF_REMAINS      8

/* Of one communicator on one stream. */
struct wf_posts {
    const void *stream;
    _Atomic uint64_t first, last;   /* posts since `settled`; none if `last` is before it */
    _Atomic uint64_t settled;       /* what was posted before is done, or told and past */
    uint64_t told;                  /* when a wait first got the error; 0: not yet */
    uint64_t lost_from, lost_until; /* works recorded in between have failed for ever */
    bool in_group;                  /* of the poster: it starts when the group ends */
    bool is_crowd;                  /* on any stream */
};

struct wf_posts_list {
    struct wf_posts *recent; /* of the last post; NULL: none yet */
    uint32_t count;
    struct wf_posts kept[WF_POST_STREAMS];
    struct wf_posts crowd; /* those for whose streams there was no room */
};

/* The part of a communicator that outlives it.  The communicator failed and was released before a
 * wait returned its error, and the program may still wait for its streams. */
struct wf_remains {
    struct wf_remains *next;
    weft_status status;
    char text[1024];
    struct wf_posts_list posts, onesided_posts;
};

/* What a wait covers: all that was put on STREAM before UNTIL.  UNTIL 0 is nothing. */
struct wf_span {
    const void *stream;
    uint64_t until;
    bool any; /* STREAM is not known */
};

/* The span of a wait, or of a record, that begins now. */
struct wf_span wf_span_begin(weft_context *context, const void *stream);
/* The device said STATUS, not IN_PROGRESS, of SPAN: it, or the error of a communicator that has
 * failed with work in it. */
weft_status wf_span_judge(weft_context *context, const struct wf_span *span, weft_status status);
/* SPAN's stream is gone. */
void wf_span_drop(weft_context *context, const struct wf_span *span);

void wf_posts_begin(struct wf_posts_list *list);
/* Let COMM's `recent` be for STREAM. */
void wf_posts_find(weft_comm *comm, const void *stream);
/* A one-sided operation on COMM was put on STREAM. [any thread] */
void wf_posts_add_onesided(weft_comm *comm, const void *stream);
/* COMM's group has started what was in it. */
void wf_posts_start_group(weft_comm *comm);
/* COMM ends.  If it failed and nobody was told, what it has on streams is kept with the context, of
 * the last WF_REMAINS communicators.  The context's lock is held. */
void wf_posts_end(weft_comm *comm);
/* Free what is kept of communicators. */
void wf_remains_free(weft_context *context);
/* Something new was put on STREAM by who has been told of what failed there. */
void wf_posts_forgive(weft_context *context, const void *stream);

#endif
