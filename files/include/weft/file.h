/* file.h - checkpoints: named tensors in files, read and written in parts of any size.
 *
 * Library: libweft_file (CMake weft::file, pkg-config weft-file).
 *
 *     weft_checkpoint *in;
 *     size_t index;
 *     weft_checkpoint_open("Llama-3-8B", &in);
 *     weft_checkpoint_find(in, "model.norm.weight", &index);
 *     weft_checkpoint_read(in, index, NULL, NULL, memory);          the whole tensor
 *     weft_checkpoint_read_shard(in, index, spec, rank, memory);    a rank's shard of it
 *     weft_checkpoint_close(&in);
 *
 * Formats that are read: safetensors; Hugging Face folders; folders of PyTorch's distributed
 * checkpoint (DCP), native and as sharded safetensors; weft's folders with one file per rank; and
 * NumPy's .npy.  Formats that are written: safetensors, Hugging Face folders, weft's folders with
 * one file per rank, and .npy.  A tensor may be split over many files.  Readers of this header see
 * whole tensors.
 *
 * Files are not trusted.  Nothing in them is executed, nothing is mapped into memory, and sizes,
 * names and ranges are checked before they are used.  A file that is missing, too short, or changed
 * after it was opened is an error, never zeros.  docs/checkpoints.md describes the formats.
 *
 * Functions of one checkpoint may be called from several threads at once, except close.  Only the
 * last section, loading and saving, needs a context. */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include "weft/layout.h"
#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_checkpoint weft_checkpoint;
/* A checkpoint that is being written. */
typedef struct weft_checkpoint_writer weft_checkpoint_writer;
/* A plan that writes a checkpoint in another layout or format. */
typedef struct weft_reshard weft_reshard;
/* How tensors of one checkpoint become those of another. */
typedef struct weft_checkpoint_rules weft_checkpoint_rules;
/* A checkpoint that is written while the program continues. */
typedef struct weft_saving weft_saving;

enum weft_file_format {
    WEFT_FILE_ANY = 0,             /* for weft_checkpoint_writer_create: the path decides */
    WEFT_FILE_SAFETENSORS = 1,     /* "safetensors": one file */
    WEFT_FILE_HUGGING_FACE = 2,    /* "huggingface": a folder of safetensors files, with an index if
                                    * there are several */
    WEFT_FILE_RANKS = 3,           /* "ranks": a folder of files rank-00000-of-00008.safetensors */
    WEFT_FILE_DCP_SAFETENSORS = 4, /* "dcp-safetensors": a folder of safetensors files with DCP's
                                    * metadata */
    WEFT_FILE_DCP = 5,             /* "dcp": a folder with a file .metadata */
    WEFT_FILE_NPY = 6              /* "npy": one array */
};

/* The text of FORMAT, such as "safetensors"; NULL for WEFT_FILE_ANY and other numbers.  A constant
 * text. */
WEFT_API const char *weft_file_format_name(enum weft_file_format format);

/* ---- reading ---- */

/* Open the checkpoint at PATH, a file or a folder, and find out its format.  All headers are read
 * and checked; elements are not read.  The caller closes *OUT.  WEFT_ERR_NOT_FOUND: a file is
 * missing, or PATH is not a checkpoint.  WEFT_ERR_PARSE: a file is malformed. WEFT_ERR_UNSUPPORTED:
 * a tensor has more than 8 dimensions, or is stored in a way that weft does not read.  The error
 * text names the file and the tensor. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_open(const char *path, weft_checkpoint **out);

/* Close the files and set *CHECKPOINT to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_checkpoint_close(weft_checkpoint **checkpoint);

typedef struct weft_checkpoint_info {
    size_t struct_size;
    uint32_t format;       /* enum weft_file_format */
    size_t files;          /* files with elements */
    size_t tensors;        /* tensors are numbered from 0, in ascending order of their names */
    uint64_t bytes;        /* of the elements of all tensors, each counted once */
    size_t others;         /* items of a DCP checkpoint that are not tensors; weft does not read
                            * them */
    const weft_mesh *mesh; /* of WEFT_FILE_RANKS; otherwise NULL.  Borrowed */
    size_t metadata;       /* number of pairs of weft_checkpoint_metadata_get */
    uint64_t bytes_read;   /* from the files so far, headers included */
    size_t unlisted;       /* number of tensors of weft_checkpoint_unlisted_get */
} weft_checkpoint_info;

/* Write the properties of CHECKPOINT to *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_get(const weft_checkpoint *checkpoint,
                                                        weft_checkpoint_info *out);

typedef struct weft_checkpoint_tensor_info {
    size_t struct_size;
    const char *name;       /* borrowed */
    const char *dtype_name; /* as in safetensors: "BF16", "F8_E4M3", "F4"; also "C128".  Constant */
    uint32_t dtype;         /* enum weft_dtype; WEFT_DTYPE_COUNT if weft does not have it */
    uint32_t bits;          /* of one element */
    int32_t dims;
    int32_t reserved;
    const int64_t *shape;  /* of the whole tensor; borrowed */
    uint64_t bytes;        /* of the whole tensor */
    size_t pieces;         /* parts of it that lie in different files or places */
    const weft_spec *spec; /* WEFT_FILE_RANKS: its layout in the files; otherwise NULL.  Borrowed.
                            * Its dtype is u8 where weft does not have the dtype */
} weft_checkpoint_tensor_info;

/* Write the properties of tensor INDEX to *OUT.  WEFT_ERR_NOT_FOUND: there is no such tensor. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_tensor_get(const weft_checkpoint *checkpoint,
                                                               size_t index,
                                                               weft_checkpoint_tensor_info *out);

/* A tensor that is in a safetensors file of the folder, but that the index
 * (model.safetensors.index.json) does not list, whether or not it names the file for others. */
typedef struct weft_checkpoint_unlisted_info {
    size_t struct_size;
    const char *name; /* borrowed, as the other texts */
    const char *file; /* name in the folder */
    const char *dtype_name;
    int32_t dims;
    int32_t reserved;
    const int64_t *shape;
    uint64_t bytes;
} weft_checkpoint_unlisted_info;

/* Write the properties of unlisted tensor INDEX to *OUT.  Such a tensor is not a tensor of the
 * checkpoint: no other function finds, reads or counts it.  weft_reshard_create and weft_load of
 * all tensors log a warning.  A checkpoint that was opened by the path of its index has none.
 * WEFT_ERR_NOT_FOUND: there is no such tensor. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_unlisted_get(
    const weft_checkpoint *checkpoint, size_t index, weft_checkpoint_unlisted_info *out);

/* Create the spec of tensor INDEX: its layout by LAYOUT, in which names of numbers, such as
 * $num_attention_heads, are replaced by the numbers of the config.json in the folder of the
 * checkpoint or, without it, by the parts of the tensor's own layout.  LAYOUT may be NULL: the
 * tensor's own layout (WEFT_FILE_RANKS).  The dtype is u8 where weft does not have it.  The caller
 * releases *OUT.  WEFT_ERR_NOT_FOUND: there is no such tensor, no pattern of LAYOUT matches it, or
 * the model has no such number.  WEFT_ERR_INVALID: the placements do not fit the tensor, or LAYOUT
 * is NULL and the checkpoint has no layout of the tensor. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_spec(const weft_checkpoint *checkpoint,
                                                         size_t index,
                                                         const weft_layout_file *layout,
                                                         weft_spec **out);

/* Set *INDEX to the number of the tensor NAME.  WEFT_ERR_NOT_FOUND: there is no such tensor; the
 * text names the nearest one, or says that the index does not list it. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_find(const weft_checkpoint *checkpoint,
                                                         const char *name, size_t *index);

/* Pair INDEX of the metadata of the first file ("format" -> "pt"), in ascending order of keys;
 * without those of weft and DCP that describe layouts.  The texts are borrowed.
 * WEFT_ERR_NOT_FOUND: there is no such pair. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_metadata_get(const weft_checkpoint *checkpoint,
                                                                 size_t index, const char **key,
                                                                 const char **value);

/* The number of dimensions of tensor INDEX; 0 if CHECKPOINT has no tensor INDEX. */
WEFT_API int32_t weft_checkpoint_dims(const weft_checkpoint *checkpoint, size_t index);
/* The bytes of the box of tensor INDEX that weft_checkpoint_read reads with the same OFFSET and
 * SIZES; 0 if CHECKPOINT has no tensor INDEX.  OFFSET may be NULL: zeros.  SIZES may be NULL: from
 * OFFSET to the end.
 * [OFFSET, SIZES: weft_checkpoint_dims(CHECKPOINT, INDEX) entries] */
WEFT_API uint64_t weft_checkpoint_box_bytes(const weft_checkpoint *checkpoint, size_t index,
                                            const int64_t *offset, const int64_t *sizes);

/* Read the box of tensor INDEX that begins at OFFSET[dims] and has SIZES[dims] elements, row-major
 * and without gaps, to TARGET in host memory.  OFFSET may be NULL: zeros.  SIZES may be NULL: from
 * OFFSET to the end.  Elements keep their bits.  WEFT_ERR_INVALID: the box is not within the
 * tensor. WEFT_ERR_UNSUPPORTED: the box cuts through a byte of a dtype with 4 or 6 bits.
 * WEFT_ERR_SYSTEM: the file could not be read, or changed since it was opened.  If reading fails,
 * the contents of TARGET are undefined.
 * [OFFSET, SIZES: weft_checkpoint_dims(CHECKPOINT, INDEX) entries]
 * [TARGET: weft_checkpoint_box_bytes(CHECKPOINT, INDEX, OFFSET, SIZES) bytes] */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_read(const weft_checkpoint *checkpoint,
                                                         size_t index, const int64_t *offset,
                                                         const int64_t *sizes, void *target);

/* Read the shard that RANK holds of tensor INDEX under SPEC, row-major and without gaps
 * (weft_spec_shard).  Only these elements and short gaps between them are read.  The shape of SPEC
 * must be the tensor's; so must the dtype, or at least its size.  TARGET may be NULL if the shard
 * is empty, as on a rank outside the mesh.  WEFT_ERR_INVALID: SPEC does not fit, or has a
 * partial placement; or RANK is negative.  [TARGET: weft_spec_shard_bytes(SPEC, RANK) bytes] */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_read_shard(const weft_checkpoint *checkpoint,
                                                               size_t index, const weft_spec *spec,
                                                               int32_t rank, void *target);

/* Read tensor INDEX and set *OUT to a checksum of its elements that does not depend on the layout
 * or the format: the sum, modulo 2^64, of a hash of the index and the bits of each element
 * (docs/checkpoints.md has the hash).  Memory is bounded by a few rows of dimension 0. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_checksum(const weft_checkpoint *checkpoint,
                                                             size_t index, uint64_t *out);

/* Compare the replicas of tensor INDEX in the files of several ranks (WEFT_FILE_RANKS); reading
 * uses one of them.  WEFT_OK if there are none.  WEFT_ERR_MISMATCH: two differ; the text names the
 * files and the byte. */
WEFT_API WEFT_NODISCARD weft_status
weft_checkpoint_check_replicas(const weft_checkpoint *checkpoint, size_t index);

/* ---- writing ---- */

/* A tensor of a new checkpoint. */
typedef struct weft_checkpoint_entry {
    const char *name;
    const char *dtype; /* of safetensors ("BF16") or of weft ("bf16") */
    int32_t dims;
    const int64_t *shape;
    const char *placements; /* WEFT_FILE_RANKS: "S(0)", one per axis of the mesh */
} weft_checkpoint_entry;

/* A pair of the metadata of safetensors files. */
typedef struct weft_checkpoint_pair {
    const char *key, *value;
} weft_checkpoint_pair;

typedef struct weft_checkpoint_writer_options {
    size_t struct_size;
    uint32_t format;       /* enum weft_file_format.  WEFT_FILE_ANY: RANKS if `mesh` is set; else
                            * SAFETENSORS or NPY if the path ends in .safetensors or .npy; else
                            * HUGGING_FACE */
    bool replace;          /* replace a checkpoint at the path; otherwise that is an error */
    const weft_mesh *mesh; /* RANKS: required */
    uint64_t file_bytes;   /* HUGGING_FACE: most bytes of elements in a file; 0 is
                            * 5,000,000,000.  A larger tensor has its own file */
    size_t metadata_count;
    const weft_checkpoint_pair *metadata; /* [metadata_count entries]  NULL: "format" -> "pt".  With
                                           * 0 entries there are none */
} weft_checkpoint_writer_options;

/* Begin a checkpoint of COUNT tensors at PATH.  ENTRY_SIZE is sizeof(weft_checkpoint_entry).
 * Nothing appears at PATH before
 * weft_checkpoint_writer_commit.  Until then the files lie in a folder, or are a file, with the
 * name PATH.weft-partial.  OPTIONS may be NULL.  All arguments are copied.  The caller releases
 * *OUT. WEFT_ERR_INVALID: two tensors have one name; a tensor or its placements are not valid;
 * DTYPE is not one of the format; PATH exists and `replace` is not set; with `replace`, PATH has
 * files that do not belong to a checkpoint; PATH.weft-partial is being written by another process.
 * WEFT_ERR_SYSTEM: the disk is full, or files cannot be made. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_writer_create(
    const char *path, size_t count, const weft_checkpoint_entry *entries, size_t entry_size,
    const weft_checkpoint_writer_options *options, weft_checkpoint_writer **out);

/* As weft_checkpoint_dims and weft_checkpoint_box_bytes, of tensor INDEX of the new checkpoint.
 * OFFSET and SIZES may be NULL.
 * [OFFSET, SIZES: weft_checkpoint_writer_dims(WRITER, INDEX) entries] */
WEFT_API int32_t weft_checkpoint_writer_dims(const weft_checkpoint_writer *writer, size_t index);
WEFT_API uint64_t weft_checkpoint_writer_box_bytes(const weft_checkpoint_writer *writer,
                                                   size_t index, const int64_t *offset,
                                                   const int64_t *sizes);

/* Write the box of tensor INDEX (its number in the entries of weft_checkpoint_writer_create) that
 * begins at OFFSET[dims] and has SIZES[dims] elements from SOURCE, row-major and without gaps.
 * OFFSET and SIZES as in weft_checkpoint_read.  With WEFT_FILE_RANKS the elements go to the files
 * of all ranks that hold them.  Several threads may write at once, different boxes.  OFFSET and
 * SIZES may be NULL.  [OFFSET, SIZES: weft_checkpoint_writer_dims(WRITER, INDEX) entries] [SOURCE:
 * weft_checkpoint_writer_box_bytes(WRITER, INDEX, OFFSET, SIZES) bytes] */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_writer_write(weft_checkpoint_writer *writer,
                                                                 size_t index,
                                                                 const int64_t *offset,
                                                                 const int64_t *sizes,
                                                                 const void *source);

/* Flush all files to the disk and give them their names.  Afterwards the checkpoint is complete,
 * also after a power failure.  WEFT_ERR_INVALID: not all bytes of a tensor were written; the text
 * names it.  After a failure there is nothing new at the path, and the call may be repeated.  If
 * files cannot be flushed, what was written may be lost, and all later calls fail.  An old
 * checkpoint that is replaced but cannot be removed is a warning in the log. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_writer_commit(weft_checkpoint_writer *writer);

/* Drop the writer and set *WRITER to NULL.  Without a commit, all that was written is removed.
 * Accepts NULL and a pointer to NULL. */
WEFT_API void weft_checkpoint_writer_release(weft_checkpoint_writer **writer);

/* ---- rules: other names, and tensors that are joined or split ----
 *
 *     *.qkv_proj.weight           = cat0(*.{q,k,v}_proj.weight)
 *     *.experts.{w}.weight        = stack0(*.experts.{e}.{w}.weight)
 *     * = *                                                     what is left
 *
 * docs/checkpoints.md has all functions.  A rule that can never apply, because an earlier rule
 * takes all that it matches, is refused.  Rules are immutable; any thread may use them. */

/* Create the rules that TEXT describes, or the file at PATH.  If there is no such file, PATH may be
 * the name of rules that come with weft, such as "fuse-qkv".  VALUES may be NULL; otherwise it
 * replaces values that lines `let` give, such as "heads=32,kv_heads=8".  The caller releases *OUT.
 * WEFT_ERR_PARSE: the text is malformed; the error gives the line.  WEFT_ERR_INVALID: no line gives
 * a value of that name.  WEFT_ERR_NOT_FOUND: there is no such file and no such name. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_rules_parse(const char *text,
                                                                const char *values,
                                                                weft_checkpoint_rules **out);
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_rules_open(const char *path, const char *values,
                                                               weft_checkpoint_rules **out);

/* Drop the rules and set *RULES to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_checkpoint_rules_release(weft_checkpoint_rules **rules);

/* Make a checkpoint whose tensors are those that RULES make of the tensors of FROM.  Nothing is
 * read: reading a part of a tensor of *OUT reads the parts of FROM that it consists of.  FROM is
 * borrowed until *OUT is closed; the caller closes *OUT.  Lines such as `let heads =
 * $num_attention_heads` take numbers from the config.json in the folder of FROM.
 * WEFT_ERR_NOT_FOUND: a rule matches nothing, a line `cast` matches no tensor of floating point, no
 * rule uses a tensor, or the model has no such number.
 * WEFT_ERR_INVALID: an element goes to two tensors or to none, or shapes do not fit.  The text
 * names the file of RULES, if weft_checkpoint_rules_open made them, the line of the rule, and the
 * tensor. */
WEFT_API WEFT_NODISCARD weft_status weft_checkpoint_map(const weft_checkpoint *from,
                                                        const weft_checkpoint_rules *rules,
                                                        weft_checkpoint **out);

/* ---- resharding: a checkpoint from any layout to any layout ---- */

typedef struct weft_reshard_options {
    size_t struct_size;
    const weft_layout_file *layout; /* files per rank in this layout; NULL: whole tensors */
    uint32_t format;                /* enum weft_file_format; without a layout: as in
                                     * weft_checkpoint_writer_options */
    bool replace;                   /* as in weft_checkpoint_writer_options */
    uint64_t file_bytes;            /* as in weft_checkpoint_writer_options */
    bool checksums; /* write weft.json, with a checksum of every tensor, to the folder */
    bool keep;   /* after a failure, leave PATH.weft-partial and PATH.weft-journal for `resume` */
    bool resume; /* continue a run with `keep` that failed or was killed.  Without such a run,
                  * begin */
    uint64_t memory; /* most bytes of buffers; 0: 256 MiB.  At least 8 MiB */
    int32_t jobs;    /* threads; 0: one per processor, at most 16 */
    /* Called by the thread that runs, several times a second, and once when all is written, before
     * the commit.  This process has written DONE bytes, counted as in weft_reshard_info; all
     * `parts` together write TOTAL.  With several parts, the progress is the sum of DONE over all
     * processes.  Resharding stops if it returns false.  NULL: none. */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user; /* of `progress` and `combine` */
    /* Several processes share the work: this is number `part` of `parts`, on one file system, with
     * the same source and options.  0 or 1: this one does all.  A run may be resumed with another
     * number of processes. */
    int32_t part, parts;
    /* With several parts: replace each of COUNT values by its sum over all processes.  All call it
     * equally often. */
    weft_status (*combine)(void *user, size_t count, uint64_t *values);
} weft_reshard_options;

/* Plan to write the tensors of FROM to PATH.  Nothing is read or written yet.  FROM and the layout
 * of OPTIONS are borrowed until the plan is released; the caller releases *OUT.  OPTIONS may be
 * NULL. WEFT_ERR_NOT_FOUND: no pattern of the layout matches a tensor; the text names it.
 * WEFT_ERR_INVALID: with `resume`, the earlier run had another source or other options, or buffers
 * for which `memory` is too small. */
WEFT_API WEFT_NODISCARD weft_status weft_reshard_create(const weft_checkpoint *from,
                                                        const char *path,
                                                        const weft_reshard_options *options,
                                                        weft_reshard **out);

typedef struct weft_reshard_info {
    size_t struct_size;
    size_t tensors;
    uint64_t read;    /* bytes of elements in the files, in the source's dtypes; without padding,
                       * and without short gaps between elements */
    uint64_t written; /* bytes of elements, in the target's dtypes; replicas count each time */
    uint64_t memory;  /* most bytes of buffers */
    size_t steps;     /* boxes of tensors that are read and written at once */
    int32_t jobs;     /* threads that read and write at once */
    int32_t reserved;
    uint64_t resumed; /* after a run: those bytes of `written` that an earlier run had written */
    /* After a failure: steps that `resume` need not do again, as far as this process knows: its own
     * and, if it resumed an earlier run, all of that run. */
    uint64_t kept;
} weft_reshard_info;

/* Write the properties of the plan to *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_reshard_get(const weft_reshard *reshard,
                                                     weft_reshard_info *out);

typedef struct weft_reshard_file_info {
    size_t struct_size;
    const char *path; /* valid until the plan is released */
    uint64_t read;    /* bytes of elements that are read from it; without short gaps between them */
    uint64_t written; /* its size, if it is written; otherwise 0 */
} weft_reshard_file_info;

/* Write the properties of file INDEX to *OUT: first the files that are read, then those that are
 * written.  Nothing is read.  Not from two threads at once.  WEFT_ERR_NOT_FOUND: there is no such
 * file. */
WEFT_API WEFT_NODISCARD weft_status weft_reshard_file_get(weft_reshard *reshard, size_t index,
                                                          weft_reshard_file_info *out);

/* Predict the nanoseconds of weft_reshard_run from a sample: steps with about 64 MiB that are
 * spread over the plan are read, and written and flushed to a file without a name in the folder of
 * the target, with `jobs` threads.  The prediction assumes that all other steps are like these,
 * that what was or was not in the memory of the system stays so, and that nothing else uses the
 * disks. */
WEFT_API WEFT_NODISCARD weft_status weft_reshard_predict(weft_reshard *reshard,
                                                         uint64_t *nanoseconds);

/* Read and write all tensors, then commit.  WEFT_ERR_ABORTED: `progress` returned false.
 * WEFT_ERR_SYSTEM: a file cannot be read or written, or a file of the source has changed.  After a
 * failure there is nothing new at the path. */
WEFT_API WEFT_NODISCARD weft_status weft_reshard_run(weft_reshard *reshard);

/* Drop the plan and set *RESHARD to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_reshard_release(weft_reshard **reshard);

/* ---- loading and saving: tensors of all ranks ----
 *
 *     weft_layout_file_open("llama.layout", NULL, &layout);
 *     weft_checkpoint_open("Llama-3-8B", &from);
 *     weft_load(context, from, layout, NULL, tensors);
 *     ...
 *     weft_save_begin(context, "step-1000", count, tensors, NULL, &saving);
 *     ...                                                 training continues
 *     weft_saving_wait(saving, WEFT_FOREVER);
 *     weft_saving_release(&saving);
 *
 * These calls are collective: every rank of the job makes them, in the same order and with equal
 * arguments, also ranks outside the meshes.  An error of one rank is the same error on all ranks:
 * its text names the rank.  A rank that passes NULL where an object is required, because it could
 * not open a file, makes the call fail on all ranks with WEFT_ERR_INVALID.  All ranks see the same
 * files.
 *
 * A load or save may take any time as long as every rank makes progress.  Each rank reads, writes
 * and flushes its elements in parts: a part is at most 64 MiB of them.  A rank makes progress each
 * time it completes a part.  If a rank completes no part within the time limit of the world
 * (WEFT_TIMEOUT), or does not make the call, all ranks return WEFT_ERR_TIMEOUT, whose text names
 * it, and the world communicator fails. */

typedef struct weft_load_options {
    size_t struct_size;
    size_t name_count;        /* at least 1, if `names` is set; else 0 */
    const char *const *names; /* load these tensors, in this order [name_count entries]; NULL: all,
                               * or those with the names of the tensors that they are loaded into */
    int32_t jobs; /* threads of this rank; 0: its share of the host's processors, at most 16 */
    weft_stream *stream; /* weft_load_into waits for the work on this stream first */
} weft_load_options;

/* How many tensors weft_load makes.  OPTIONS may be NULL. */
WEFT_API size_t weft_load_count(const weft_checkpoint *from, const weft_load_options *options);

/* Create the tensors of FROM in LAYOUT and set OUT[0], OUT[1] and so on to them: one for each of
 * `names`, or for each tensor of FROM in the order of their numbers.  LAYOUT may be NULL if FROM is
 * WEFT_FILE_RANKS: then the tensors have the layouts of the files.  Each tensor has its name and is
 * in device memory.  Each rank reads the elements of its shards, and short gaps between them.
 * Memory of a device that the host cannot write is filled through
 * pinned memory, 8 MiB for each job.  FROM may be of weft_checkpoint_map.  OPTIONS may be NULL. The
 * caller releases the tensors; after a failure there are none.
 * WEFT_ERR_NOT_FOUND: FROM does not have a name, or no pattern of LAYOUT matches it.
 * WEFT_ERR_UNSUPPORTED: weft does not have the dtype of a tensor.  WEFT_ERR_MISMATCH: ranks load
 * different tensors or layouts.  WEFT_ERR_NO_MEMORY, WEFT_ERR_SYSTEM: as weft_tensor_create and
 * weft_checkpoint_read.  [OUT: weft_load_count(FROM, OPTIONS) entries] */
WEFT_API WEFT_NODISCARD weft_status weft_load(weft_context *context, const weft_checkpoint *from,
                                              const weft_layout_file *layout,
                                              const weft_load_options *options, weft_tensor **out);

/* Read the elements of COUNT tensors, which exist, from FROM: each from the tensor of the same
 * name, or of `names`, in any layouts without partial placements.  The call waits for the work on
 * `stream` of OPTIONS, and returns when the elements are there.  OPTIONS may be NULL.  After a
 * failure the elements are undefined.  WEFT_ERR_INVALID: a tensor is of another context, is
 * read-only, has no name, or has another shape or dtype than FROM has; the number of names is not
 * that of tensors.  Other errors: as weft_load.  [TENSORS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_load_into(weft_context *context,
                                                   const weft_checkpoint *from, size_t count,
                                                   weft_tensor *const *tensors,
                                                   const weft_load_options *options);

typedef struct weft_save_options {
    size_t struct_size;
    size_t name_count;        /* COUNT of the call; 0 if `names` is NULL */
    const char *const *names; /* of the tensors in the checkpoint [name_count entries]; NULL: the
                               * tensors' own names */
    const weft_layout_file *layout; /* files per rank in this layout; NULL: whole tensors */
    uint32_t format;                /* enum weft_file_format; without a layout: as in
                                     * weft_checkpoint_writer_options */
    bool replace;                   /* as in weft_checkpoint_writer_options */
    uint64_t file_bytes;            /* as in weft_checkpoint_writer_options */
    size_t metadata_count;
    const weft_checkpoint_pair *metadata; /* as in weft_checkpoint_writer_options
                                           * [metadata_count entries] */
    weft_stream *stream;                  /* the elements are read in the order of this stream */
    int32_t jobs;                         /* as in weft_load_options */
} weft_save_options;

/* Write COUNT tensors, at least 1, of any layouts to the checkpoint PATH.  Each rank writes a part
 * of the elements that it holds to their places in the final files; of replicas, each element is
 * written by one rank.  Partial tensors are reduced first.  Rank 0 makes the files, under the name
 * PATH.weft-partial, and gives them their names after all ranks have flushed what they wrote.
 * OPTIONS may be NULL.  After a failure there is nothing new at PATH on any rank's disk; only the
 * error WEFT_ERR_PEER, after rank 0 was lost, leaves it open whether the checkpoint is there.
 * WEFT_ERR_INVALID: a tensor is of another context or has no name, two have one name, the number
 * of names is not that of tensors, PATH exists and `replace` is not set, or another process writes
 * to it.  WEFT_ERR_MISMATCH: ranks save different tensors, or to different paths.
 * WEFT_ERR_SYSTEM: a disk is full, or a file cannot be written. */
WEFT_API WEFT_NODISCARD weft_status weft_save(weft_context *context, const char *path, size_t count,
                                              weft_tensor *const *tensors,
                                              const weft_save_options *options);

/* The same, while the caller continues: the call copies the elements that this rank writes to host
 * memory and returns; threads of this rank write the copy.  The tensors may change or be released
 * at once.  The call itself returns errors of its arguments, of making the files and of the copy,
 * the same on all ranks; writing and the commit can fail later (weft_saving_wait).  The context may
 * be used meanwhile, by one thread as always.  The caller releases *OUT.  OPTIONS may be NULL. */
WEFT_API WEFT_NODISCARD weft_status weft_save_begin(weft_context *context, const char *path,
                                                    size_t count, weft_tensor *const *tensors,
                                                    const weft_save_options *options,
                                                    weft_saving **out);

typedef struct weft_saving_info {
    size_t struct_size;
    bool ended;       /* weft_saving_wait does not wait any more */
    uint64_t bytes;   /* of elements that this rank writes */
    uint64_t written; /* bytes of elements that it has written */
    int64_t copy_ns;  /* time that weft_save_begin took to copy the elements */
} weft_saving_info;

/* Write the state of SAVING on this rank to *OUT.  Not collective.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_saving_get(weft_saving *saving, weft_saving_info *out);

/* Wait until the checkpoint is complete on all ranks, or has failed.  WEFT_OK: it is at its path.
 * After WEFT_ERR_TIMEOUT, `ended` of weft_saving_get tells two cases apart.  False: TIMEOUT_NS has
 * passed, and the caller may wait again.  True: the saving has failed with this error.  Other
 * errors: as weft_save.  An error of the saving is the
 * same on all ranks and in every call.  Not collective.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_saving_wait(weft_saving *saving, int64_t timeout_ns);

/* Wait for the end, drop the object and set *SAVING to NULL.  A failure that no weft_saving_wait
 * has returned is logged.  The caller releases it before the context; weft_context_release waits
 * for the end too.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_saving_release(weft_saving **saving);

#ifdef __cplusplus
}
#endif
#endif
