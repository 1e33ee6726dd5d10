/* writer.h - the internals of a checkpoint that is being written. */
#ifndef WEFT_FILE_WRITER_H
#define WEFT_FILE_WRITER_H

#include "file.h"
#include "checkpoint/io/output.h"

#include <stdatomic.h>

/* A tensor, and where its parts go. */
struct wf_out_tensor {
    const char *name;
    const int64_t *shape;
    weft_spec *spec; /* RANKS */
    uint64_t *at;    /* offset of its elements by position in the mesh; UINT64_MAX: not there.  A
                      * format without ranks has one */
    int64_t bytes;
    _Atomic int64_t written;
    uint32_t file; /* unless RANKS: its file */
    uint8_t dtype;
    int8_t dims;
};

struct weft_checkpoint_writer {
    uint64_t made;
    uint32_t format;
    struct wf_arena arena;
    struct wf_outputs output;
    struct wf_out_tensor *tensors; /* as the caller gave them */
    size_t count;
    const struct wf_out_tensor **sorted; /* by name */
    struct wf_pair *pairs;               /* sorted by key */
    size_t pair_count;
    weft_mesh *mesh;
    uint64_t file_bytes;
    struct wf_text *headers; /* per file: all bytes before the elements */
    struct wf_text index;    /* of a Hugging Face folder with several files */
};

/* ---- writer.c ---- */

/* weft_checkpoint_writer_create, with files that are new or exist. */
weft_status wf_writer_create(const char *path, size_t count, const weft_checkpoint_entry *entries,
                             const weft_checkpoint_writer_options *options,
                             enum wf_outputs_mode mode, weft_checkpoint_writer **out) WF_NODISCARD;

/* The format of a checkpoint at PATH if the caller has GIVEN this one, or WEFT_FILE_ANY. */
weft_status wf_writer_choose_format(const char *path, uint32_t given, bool has_mesh,
                                    uint32_t *out) WF_NODISCARD;

/* Write PART of tensor INDEX from SOURCE to all files that have a part of it. */
weft_status wf_writer_write(weft_checkpoint_writer *writer, size_t index,
                            const struct wf_part *part, const void *source) WF_NODISCARD;

/* ---- write_header.c ---- */

/* An entry of a safetensors header. */
struct wf_out_entry {
    const char *name;
    const int64_t *shape;
    uint64_t at; /* set by wf_header_layout: offset of the elements, from the first element on */
    size_t tensor;
    int64_t bytes;
    uint8_t dtype;
    int8_t dims;
};

/* Sort ENTRIES as the reference writer does, set their offsets, and append the length and the text
 * of the header to OUT.  *BYTES is the size of all elements. */
weft_status wf_header_layout(struct wf_out_entry *entries, size_t count,
                             const struct wf_pair *pairs, size_t pair_count, struct wf_text *out,
                             uint64_t *bytes) WF_NODISCARD;
/* Append TEXT in quotes, escaped as the reference writer does. */
void wf_header_quote(struct wf_text *out, const char *text);

/* ---- plan_files.c: which tensors go to which file, and what is in the headers ---- */

weft_status wf_writer_plan_single(weft_checkpoint_writer *writer) WF_NODISCARD; /* SAFETENSORS */
weft_status wf_writer_plan_folder(weft_checkpoint_writer *writer) WF_NODISCARD; /* HUGGING_FACE */
weft_status wf_writer_plan_npy(weft_checkpoint_writer *writer) WF_NODISCARD;
/* Files of a Hugging Face folder, with the index if there are several. */
size_t wf_writer_count_files(const weft_checkpoint_writer *writer);

/* ---- plan_ranks.c ---- */

weft_status wf_writer_plan_ranks(weft_checkpoint_writer *writer) WF_NODISCARD;

#endif
