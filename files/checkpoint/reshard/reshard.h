/* reshard.h - the internals of resharding.
 *
 * The tensors are cut into steps: boxes of whole rows that fit a buffer.  A step is read from all
 * files that have a part of it, and written to all files that need a part of it.  So every byte is
 * read once, however many files it goes to, and the order of steps is the order of the files. */
#ifndef WEFT_FILE_RESHARD_H
#define WEFT_FILE_RESHARD_H

#include "checkpoint/file.h"
#include "checkpoint/io/output.h"

#include <stdatomic.h>

struct wf_reshard_tensor {
    size_t index;         /* in the source */
    struct wf_cut cut;    /* a piece is a step */
    uint64_t first;       /* number of its first step */
    uint64_t copies;      /* of each element in the target: replicas */
    _Atomic uint64_t sum; /* checksum of the steps that are done */
};

/* A file of the source or of the target. */
struct wf_reshard_file {
    char *path;
    uint64_t read, written;
};

struct weft_reshard {
    uint64_t made;
    const weft_checkpoint *from;
    weft_reshard_options options; /* with all defaults filled in */
    char *path;
    weft_checkpoint_entry *entries; /* their texts belong to the source and the arena */
    struct wf_arena arena;
    struct wf_placer placer; /* while the plan is made */
    struct wf_reshard_tensor *tensors;
    size_t count;
    uint64_t steps;
    uint64_t read;    /* bytes of elements in the files of the source */
    uint64_t bytes;   /* of the tensors of the target, each element once */
    uint64_t written; /* the same with replicas */
    size_t buffer;    /* bytes of a step at most */
    size_t stage;     /* bytes that a job needs besides */
    uint64_t digest;
    bool resume; /* there is a run to resume */
    uint64_t resumed, kept;
    struct wf_reshard_file *files; /* NULL: not listed yet */
    size_t file_count;
};

/* The tensor that step NUMBER belongs to. */
struct wf_reshard_tensor *wf_reshard_find(const struct weft_reshard *reshard, uint64_t number);

/* ---- files.c ---- */

/* Add to *BITS those that reading all of TENSOR of FROM takes from files. */
weft_status wf_reshard_count_read(const weft_checkpoint *from, const struct wf_tensor *tensor,
                                  uint64_t *bits) WF_NODISCARD;
void wf_reshard_drop_files(struct weft_reshard *reshard);

/* ---- run.c ---- */

/* The writer of the new checkpoint. */
weft_status wf_reshard_writer(const struct weft_reshard *reshard, enum wf_outputs_mode mode,
                              weft_checkpoint_writer **out) WF_NODISCARD;

#endif
