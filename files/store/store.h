/* store.h - tensors of all ranks from checkpoints and to them.
 *
 *     pieces.c   shards in pieces, and threads that read or write them
 *     share.c    steps that all ranks take together
 *     load.c     tensors from a checkpoint
 *     save.c     tensors to a checkpoint: plan, copy, write, commit
 *     saving.c   the same while the caller goes on */
#ifndef WEFT_STORE_STORE_H
#define WEFT_STORE_STORE_H

#include "checkpoint/writer.h"
#include "weft/extend.h"
#include "weft/file.h"

/* ---- share.c ---- */

/* A call in which all ranks load or save. */
struct wf_store_call {
    weft_context *context;
    const char *function;
    weft_open_record record;
    weft_answers *compared; /* the steps that all ranks take follow them; NULL: not compared yet */
};

/* Numbers for what must be equal on all ranks. */
struct wf_store_digest {
    uint64_t path, tensors, layouts, options;
};

/* The texts behind a digest, for the ranks that differ. */
struct wf_store_words {
    const char *path; /* NULL: it is not compared */
    size_t count;     /* of names */
    const char *(*name)(const void *state, size_t index);
    const void *state;
};

/* WEFT_ERR_INVALID: CONTEXT cannot be used.  WEFT_ERR_UNSUPPORTED: its ranks are simulated. */
weft_status wf_store_check(weft_context *context, const char *function) WF_NODISCARD;
/* STREAM is one of the context, and its work has not failed. */
weft_status wf_store_check_stream(const struct wf_store_call *call,
                                  weft_stream *stream) WF_NODISCARD;
/* FUNCTION begins OPERATION, WEFT_RECORD_LOAD or WEFT_RECORD_SAVE: it gets a record. */
void wf_store_begin(struct wf_store_call *call, weft_context *context,
                    enum weft_record_operation operation, const char *function);
/* This rank moves BYTES in the call. */
void wf_store_set_bytes(const struct wf_store_call *call, uint64_t bytes);
/* The record ends with STATUS, which is returned. */
weft_status wf_store_end(const struct wf_store_call *call, weft_status status);
/* No further step follows. */
void wf_store_free(struct wf_store_call *call);
/* All ranks compare DIGEST of what they want to do; STATUS is how the preparation went here.
 * WHAT is "load" or "save".  WORDS may be NULL if STATUS is not WEFT_OK. */
weft_status wf_store_compare(struct wf_store_call *call, const char *what, weft_status status,
                             const struct wf_store_digest *digest,
                             const struct wf_store_words *words) WF_NODISCARD;
/* All ranks have come here, or one has failed: then all get its error.  *SUM is that of all ranks'
 * VALUE.  Waits as long as all ranks make progress (wf_store_goes_on) within the time limit.
 * [any thread] */
weft_status wf_store_meet(const struct wf_store_call *call, weft_status status, uint64_t value,
                          uint64_t *sum) WF_NODISCARD;
/* This rank has made progress since it was last called.  [any thread] */
void wf_store_goes_on(const struct wf_store_call *call);

/* ---- pieces.c ---- */

enum { WF_STORE_PIECE = 8 << 20 }; /* the most bytes of a piece */

/* A shard of this rank. */
struct wf_store_shard {
    const weft_spec *spec;
    char *memory; /* without gaps */
    char *packed; /* MEMORY for a tensor with gaps, which this holds; NULL: the tensor's own */
    uint64_t packed_bytes;
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
    struct wf_store_call *call;
    struct wf_store_shard *shards;
    size_t shard_count;
    struct wf_store_piece *list;
    size_t count, capacity;
    uint64_t bytes; /* of all pieces */
    int32_t jobs;
};

/* Room for COUNT shards.  JOBS 0: this rank's share of the processors.  OPTION is the name of JOBS
 * in errors. */
weft_status wf_pieces_begin(struct wf_pieces *pieces, struct wf_store_call *call, size_t count,
                            int32_t jobs, const char *option) WF_NODISCARD;
/* Add the pieces of the next shard: of those that REPLICAS ranks have, numbered from 0, the ones of
 * number REPLICA. */
weft_status wf_pieces_add(struct wf_pieces *pieces, const weft_spec *spec, size_t index,
                          int32_t replicas, int32_t replica) WF_NODISCARD;
/* The memory of SHARD is that of this rank's shard of TENSOR or, if it has gaps, host memory of its
 * size. */
weft_status wf_shard_take_memory(struct wf_store_shard *shard,
                                 const weft_tensor *tensor) WF_NODISCARD;
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

/* ---- save.c ---- */

struct wf_save {
    struct wf_store_call call;
    char *path;
    weft_save_options options; /* valid during the call that begins */
    weft_tensor **tensors;     /* with references; NULL once they are not needed any more */
    size_t count;
    weft_checkpoint_entry *entries; /* valid during the call that begins */
    struct wf_arena arena;          /* placements of entries */
    weft_spec **specs;              /* of the tensors without partial placements */
    weft_checkpoint_writer *writer;
    struct wf_pieces pieces;
    char *copy; /* of the pieces, one after another; NULL: they are written from the tensors */
    uint64_t total;
    _Atomic uint64_t written;
};

/* Check, compare with the other ranks, and make the files: the caller has begun the call of SAVE,
 * whose other fields are 0.  With COPIES the elements are copied,
 * and the tensors are not needed any more.  The caller calls wf_save_end, after a failure too. */
weft_status wf_save_prepare(struct wf_save *save, const char *path, weft_tensor *const *tensors,
                            size_t count, const weft_save_options *options,
                            bool copies) WF_NODISCARD;
/* After a successful preparation: write, and commit together.  [any thread] */
weft_status wf_save_finish(struct wf_save *save) WF_NODISCARD;
void wf_save_end(struct wf_save *save);

#endif
