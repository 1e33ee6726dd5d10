/* publish.h - the publisher. */
#ifndef WEFT_FEED_PUBLISH_PUBLISH_H
#define WEFT_FEED_PUBLISH_PUBLISH_H

#include "job/job.h"
#include "link/link.h"

struct weft_publisher {
    weft_object object;
    weft_dependent *dependent;
    struct wf_feed_job job;
    struct wf_feed_description description;
    weft_tensor **tensors; /* [description.count] */
    struct wf_feed_memory memory;
    struct wf_feed_server *server; /* on rank 0; NULL elsewhere */
    struct wf_feed_slot *slots;    /* of the server's ring */
    uint64_t *sums; /* [description.count] of this process, in the last publication */
    char address[WF_FEED_ADDRESS_TEXT];
    uint64_t bytes, version, published, snapshot_ns;
};

#endif
