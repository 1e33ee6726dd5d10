/* protocol.h - what publishers and subscribers agree on; no clock, no sockets.
 *
 *     ring.c     which versions a publisher keeps, and who reads them
 *     state.c    which version a serving job serves, stages and applies
 *     message.c  requests and replies as bytes
 *     shards.c   replicas and checksums of shards
 *     plan.c     which elements a rank reads, and from where
 *     copy.c     copying them */
#ifndef WEFT_FEED_PROTOCOL_PROTOCOL_H
#define WEFT_FEED_PROTOCOL_PROTOCOL_H

#include "base/frame/frame.h"

#include "weft/feed.h"

#define WF_FEED_NAME_MAX  1024      /* bytes of a feed's or a tensor's name */
#define WF_FEED_RANKS_MAX (1 << 20) /* of a publisher */

/* ---- ring.c ---- */

/* A reader of a version: a serving job. */
struct wf_feed_lease {
    uint64_t reader; /* a number that the caller gives */
    size_t slot;
};

/* Memory for one version. */
struct wf_feed_slot {
    bool whole;       /* it has a version; else nothing, or a part of one */
    uint64_t version; /* if WHOLE */
    uint64_t serial;  /* of the publication that wrote it last; 0: none has */
};

/* Zero-initialise with `slots` and `count` set.  Slots are borrowed. */
struct wf_feed_ring {
    struct wf_feed_slot *slots;
    size_t count;
    struct wf_feed_lease *leases; /* [lease_count] the oldest first */
    size_t lease_count, lease_room;
    uint64_t serial;  /* of the last publication */
    uint64_t newest;  /* the largest version that was ever whole */
    uint64_t revoked; /* leases that ended by a publication */
};

/* The slot for the next publication: one without a version; else the one with the oldest version
 * that nobody reads; else the one with the oldest lease. */
size_t wf_feed_ring_choose(const struct wf_feed_ring *ring);
/* A publication begins to write SLOT: its version, and the leases on it, end. */
void wf_feed_ring_begin(struct wf_feed_ring *ring, size_t slot);
/* The publication has written SLOT, if VERSION is not 0: that version exists from now on. */
void wf_feed_ring_end(struct wf_feed_ring *ring, size_t slot, uint64_t version);
/* READER reads VERSION, or the newest one, and nothing else from now on: set *SLOT to where it is.
 * WEFT_ERR_NOT_FOUND: it is not kept.  WEFT_ERR_ABORTED: the next version is being written over the
 * newest one; ask again.  WEFT_ERR_NO_MEMORY. */
weft_status wf_feed_ring_lease(struct wf_feed_ring *ring, uint64_t reader, uint64_t version,
                               size_t *slot) WF_NODISCARD;
/* READER reads nothing from now on. */
void wf_feed_ring_release(struct wf_feed_ring *ring, uint64_t reader);
void wf_feed_ring_free(struct wf_feed_ring *ring);

/* ---- state.c ---- */

enum wf_feed_phase { WF_FEED_IDLE, WF_FEED_STAGING, WF_FEED_STAGED, WF_FEED_APPLYING };

/* The versions of a serving job.  Zero-initialise.  All its ranks have the same. */
struct wf_feed_state {
    enum wf_feed_phase phase;
    bool has_served; /* SERVED is a version, and every element that is served is of it */
    bool torn;       /* elements that are served may be of no version */
    uint64_t served, staged;
};

/* True if VERSION need not be pulled: it is served, or staged. */
bool wf_feed_state_has(const struct wf_feed_state *state, uint64_t version);
/* VERSION is being pulled; what was staged is dropped.  It was pulled to the end, or was not. */
void wf_feed_state_stage(struct wf_feed_state *state, uint64_t version);
void wf_feed_state_staged(struct wf_feed_state *state, bool succeeded);
/* The staged version is being applied.  False: there is none.  It is applied, or only in part. */
bool wf_feed_state_apply(struct wf_feed_state *state);
void wf_feed_state_applied(struct wf_feed_state *state, bool succeeded);
/* Elements that are served are not those of their version. */
void wf_feed_state_tear(struct wf_feed_state *state);

/* ---- message.c ---- */

enum wf_feed_frame {
    WF_FEED_REFUSED = 1, /* server: a status and a text, without a seal before the handshake ends */
    WF_FEED_ADMITTED,    /* server: its proof; without a seal */
    WF_FEED_DESCRIBE,    /* client: asks for the DESCRIPTION */
    WF_FEED_DESCRIPTION,
    WF_FEED_MAP,    /* client: asks for the MEMORY of a holder, whose number follows */
    WF_FEED_MEMORY, /* server: a descriptor comes with it */
    WF_FEED_LEASE,  /* client: will read the version that follows; a LEASE before ends */
    WF_FEED_LEASED,
    WF_FEED_RELEASE, /* client: its lease ends; no reply */
    WF_FEED_OFFER,   /* a rank of the publisher: its memory, with its number and a descriptor */
    WF_FEED_TAKEN    /* server: it has the memory */
};

struct wf_feed_request {
    enum wf_feed_frame type;
    uint64_t version; /* LEASE */
    int32_t holder;   /* MAP, OFFER */
};

void wf_feed_request_put(struct wf_text *out, const struct wf_feed_request *request);
/* WEFT_ERR_PARSE: FRAME is not a request. */
weft_status wf_feed_request_take(const struct wf_frame *frame,
                                 struct wf_feed_request *out) WF_NODISCARD;

struct wf_feed_entry {
    char *name;
    weft_spec *spec; /* at the publisher */
};

/* The tensors of a feed, and where they are.  A holder has the shards of one rank of the publisher
 * or, if its ranks are simulated, of all.  In each of its slots, the tensors follow each other;
 * each begins at a multiple of WF_FEED_ALIGN, and its shards follow without gaps. */
struct wf_feed_description {
    uint64_t life; /* differs between any two publishers */
    int32_t ranks;
    bool simulated; /* one holder has all ranks */
    size_t slots, count;
    struct wf_feed_entry *entries; /* owned */
};

#define WF_FEED_ALIGN 64
/* What is before the slots of a holder: the serials of the publications that have written them,
 * 0 while one does. */
#define WF_FEED_HEADER 4096

_Static_assert(WEFT_PUBLISHER_VERSIONS_MAX * 8 <= WF_FEED_HEADER, "a header has all serials");

void wf_feed_description_put(struct wf_text *out, const struct wf_feed_description *description);
/* PAYLOAD is not trusted.  The caller frees *OUT. */
weft_status wf_feed_description_take(weft_blob payload,
                                     struct wf_feed_description *out) WF_NODISCARD;
void wf_feed_description_free(struct wf_feed_description *description);

/* A version that is leased. */
struct wf_feed_leased {
    uint64_t version, serial;
    uint64_t slot;
    weft_blob sums; /* the checksums of all tensors of the feed, 8 bytes each; borrowed */
};

void wf_feed_leased_put(struct wf_text *out, const struct wf_feed_leased *leased);
/* WEFT_ERR_PARSE: PAYLOAD is not of a feed with SLOTS and COUNT tensors. */
weft_status wf_feed_leased_take(weft_blob payload, size_t slots, size_t count,
                                struct wf_feed_leased *out) WF_NODISCARD;

/* ---- shards.c ---- */

/* False: RANK is not in the mesh of SPEC.  *REPLICA numbers the replicas of the tensor that its
 * ranks hold together, from 0 to wf_feed_replicas - 1: RANK holds a part of this one. */
bool wf_feed_replica(const weft_spec *spec, int32_t rank, int32_t *replica);
int32_t wf_feed_replicas(const weft_spec *spec);
/* WEFT_ERR_INVALID: SPEC has a partial placement. */
weft_status wf_feed_check_spec(const weft_spec *spec, const char *name) WF_NODISCARD;
/* What RANK's shard, without gaps at ELEMENTS, adds to the checksum of the tensor. */
uint64_t wf_feed_sum(const weft_spec *spec, int32_t rank, const void *elements);

/* ---- plan.c ---- */

/* A rank of the publisher from which a shard is read. */
struct wf_feed_source {
    int32_t rank, holder;
    uint64_t offset; /* of its shard, in a slot of the holder */
};

/* The shard of one rank of a tensor. */
struct wf_feed_target {
    size_t tensor; /* of the subscriber */
    size_t entry;  /* of the feed */
    int32_t rank;
    uint64_t offset;     /* of the shard, if those of the ranks here follow each other */
    size_t first, count; /* its sources */
};

struct wf_feed_plan {
    struct wf_feed_target *targets;
    struct wf_feed_source *sources;
    size_t target_count, target_room, source_count, source_room;
    uint64_t bytes;       /* that are read */
    uint64_t *slot_bytes; /* [holders] of a slot of each holder */
    int32_t holders;
};

/* How the ranks from FIRST to END - 1 get COUNT tensors of layouts SPECS, which are those of
 * ENTRIES[i] of the feed.  Each element is read once per rank that holds it.  The caller frees
 * *OUT. */
weft_status wf_feed_plan_make(const struct wf_feed_description *description, size_t count,
                              const weft_spec *const *specs, const size_t *entries, int32_t first,
                              int32_t end, struct wf_feed_plan *out) WF_NODISCARD;
void wf_feed_plan_free(struct wf_feed_plan *plan);
/* BYTES rounded up to WF_FEED_ALIGN; UINT64_MAX if they do not fit. */
uint64_t wf_feed_align(uint64_t bytes);
/* Bytes of the shards of SPEC of the ranks from FIRST to END - 1, one after the other. */
uint64_t wf_feed_shard_bytes(const weft_spec *spec, int32_t first, int32_t end);

/* ---- copy.c ---- */

/* The indices that two shards share, by dimension.  Zero-initialise; used again by each copy. */
struct wf_feed_runs {
    weft_intersection *runs;
    size_t room;
};

/* Copy the elements that SOURCE_RANK's shard of SOURCE has in common with TARGET_RANK's shard of
 * TARGET, without gaps at FROM and TO. */
weft_status wf_feed_copy(struct wf_feed_runs *runs, const weft_spec *source, int32_t source_rank,
                         const void *from, const weft_spec *target, int32_t target_rank,
                         void *to) WF_NODISCARD;
void wf_feed_runs_free(struct wf_feed_runs *runs);

#endif
