/* store.h - tensors of all ranks from checkpoints and to them.
 *
 *     pieces.c   shards in pieces, and threads that read or write them
 *     share.c    steps that all ranks take together
 *     load.c     tensors from a checkpoint
 *     save.c     tensors to a checkpoint: plan, copy, write, commit
 *     saving.c   the same while the caller goes on; the context's list of such savings */
#ifndef WEFT_STORE_STORE_H
#define WEFT_STORE_STORE_H

#include "comm/comm.h"
#include "file/writer.h"
#include "tensor/tensor.h"
#include "weft/file.h"

/* ---- pieces.c ---- */

enum { WF_STORE_PIECE = 8 << 20 }; /* the most bytes of a piece */

/* A shard of this rank. */
struct wf_store_shard {
    const weft_spec *spec;
    char *memory; /* without gaps */
    size_t index; /* of its tensor in the file */
    struct wf_cut cut;
};

/* A box of a shard, without gaps in memory. */
struct wf_store_piece {
    size_t shard;    /* in the list of shards */
    uint64_t number; /* in its cut */
    uint64_t bytes;
    uint64_t at; /* bytes of all pieces before it */
};

struct wf_pieces {
    weft_context *context;
    struct wf_store_shard *shards;
    size_t shard_count;
    struct wf_store_piece *list;
    size_t count, capacity;
    uint64_t bytes; /* of all pieces */
    int32_t jobs;
};

/* Room for COUNT shards.  JOBS 0: this rank's share of the processors. */
weft_status wf_pieces_begin(struct wf_pieces *pieces, weft_context *context, size_t count,
                            int32_t jobs) WF_NODISCARD;
/* Add the pieces of the next shard: of those that REPLICAS ranks have, numbered from 0, the ones of
 * number REPLICA. */
weft_status wf_pieces_add(struct wf_pieces *pieces, const weft_spec *spec, size_t index,
                          int32_t replicas, int32_t replica) WF_NODISCARD;
void wf_pieces_free(struct wf_pieces *pieces);

/* The buffers of a thread for memory that the host cannot use.  All are NULL if it can use it. */
struct wf_stage {
    weft_context *context;
    char *memory; /* WF_STORE_PIECE bytes, pinned if the device has such memory */
    bool is_pinned;
    weft_stream *stream;
};

/* A piece, as an action gets it. */
struct wf_piece_view {
    const struct wf_store_piece *piece;
    const struct wf_store_shard *shard;
    char *memory; /* in the shard */
    struct wf_part part;
};

/* Do something with a piece; several threads call it at once. */
typedef weft_status wf_piece_action(void *state, const struct wf_piece_view *view,
                                    struct wf_stage *stage);

/* Call ACTION for all pieces, from several threads.  With USES_DEVICE the threads get stages where
 * the host cannot use the device's memory.  The first failure stops all, and is returned. */
weft_status wf_pieces_run(const struct wf_pieces *pieces, bool uses_device, wf_piece_action *action,
                          void *state) WF_NODISCARD;
/* Copy BYTES on the stage's stream, and wait. */
weft_status wf_stage_copy(const struct wf_stage *stage, const void *source, void *target,
                          uint64_t bytes) WF_NODISCARD;

/* ---- share.c ---- */

/* Numbers for what must be equal on all ranks. */
struct wf_store_digest {
    uint64_t path, tensors, layouts, options;
};

/* All ranks compare DIGEST of what they want to do; STATUS is how the preparation went here.  On
 * success *NUMBER is a number for further steps.  WHAT is "load" or "save". */
weft_status wf_store_compare(weft_context *context, const char *function, const char *what,
                             weft_status status, const struct wf_store_digest *digest,
                             uint64_t *number) WF_NODISCARD;
/* As wf_context_check; WEFT_ERR_UNSUPPORTED if ranks are simulated. */
weft_status wf_store_check(const weft_context *context, const char *function) WF_NODISCARD;
/* All ranks have come here, or one has failed: then all get its error.  *SUM is that of all ranks'
 * VALUE.  Waits as long as all ranks live.  [any thread] */
weft_status wf_store_meet(weft_context *context, uint64_t number, const char *function,
                          weft_status status, uint64_t value, uint64_t *sum) WF_NODISCARD;

/* ---- save.c ---- */

struct wf_save {
    weft_context *context;
    const char *function;
    char *path;
    weft_save_options options; /* valid during the call that begins */
    weft_tensor **tensors;     /* with references; NULL once they are not needed any more */
    size_t count;
    weft_checkpoint_entry *entries; /* valid during the call that begins */
    weft_spec **specs;              /* of the tensors without partial placements */
    weft_checkpoint_writer *writer;
    struct wf_pieces pieces;
    char *copy; /* of the pieces, one after another; NULL: they are written from the tensors */
    uint64_t number, total;
    _Atomic uint64_t written;
};

/* Check, compare with the other ranks, and make the files.  With COPIES the elements are copied,
 * and the tensors are not needed any more.  The caller calls wf_save_end, after a failure too. */
weft_status wf_save_prepare(struct wf_save *save, weft_context *context, const char *function,
                            const char *path, weft_tensor *const *tensors, size_t count,
                            const weft_save_options *options, bool copies) WF_NODISCARD;
/* After a successful preparation: write, and commit together.  [any thread] */
weft_status wf_save_finish(struct wf_save *save) WF_NODISCARD;
void wf_save_end(struct wf_save *save);

/* ---- saving.c ---- */

extern const struct wf_module wf_store_module;

#endif
