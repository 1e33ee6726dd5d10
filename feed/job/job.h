/* job.h - the ranks of one job, publisher or subscriber: what they check and agree on. */
#ifndef WEFT_FEED_JOB_JOB_H
#define WEFT_FEED_JOB_JOB_H

#include "protocol/protocol.h"

#include "weft/extend.h"

/* The job of an open publisher or subscriber. */
struct wf_feed_job {
    weft_context *context;
    int32_t first, end;      /* the ranks whose shards are in this process */
    weft_answers *opened;    /* of the first agreement; NULL: ranks are simulated */
    weft_open_record record; /* of the call that opened it */
    char cause[256];         /* why it cannot be used any more, or "" */
};

void wf_feed_job_begin(struct wf_feed_job *job, weft_context *context, const char *function);
void wf_feed_job_free(struct wf_feed_job *job);
/* Take a step together with all ranks of the job, as weft_agree.  *OUT may become NULL, if ranks
 * are simulated.  FUNCTION is put in front of errors. */
weft_status wf_feed_agree(struct wf_feed_job *job, const char *function, weft_status status,
                          const void *data, size_t bytes, weft_answers **out) WF_NODISCARD;
/* The BYTES bytes that RANK has passed; NULL: it has passed another number.  Without ANSWERS these
 * are OWN. */
const void *wf_feed_answer(const weft_answers *answers, int32_t rank, const void *own,
                           size_t bytes);
/* The number of ranks that have passed data: those of the job or, without ANSWERS, 1. */
int32_t wf_feed_answer_count(const struct wf_feed_job *job, const weft_answers *answers);

/* Check COUNT tensors of CONTEXT, and set *OUT to their names and layouts.  Names are there, not
 * too long, and differ; no layout is partial.  The caller frees *OUT. */
weft_status wf_feed_tensors_check(weft_context *context, size_t count, weft_tensor *const *tensors,
                                  const char *function,
                                  struct wf_feed_description *out) WF_NODISCARD;
/* Check the name of a feed and its token. */
weft_status wf_feed_names_check(const char *feed, const char *token) WF_NODISCARD;
/* A digest of the names and layouts of DESCRIPTION. */
uint64_t wf_feed_digest(const struct wf_feed_description *description);

#endif
