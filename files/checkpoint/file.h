/* file.h - the internals of checkpoints.
 *
 * A reader of a format turns headers into pieces: boxes or shards of named tensors at places in
 * files (wf_checkpoint_add).  wf_checkpoint_settle groups them into tensors and checks that they
 * cover each tensor exactly.  Everything else works on pieces and does not know formats. */
#ifndef WEFT_FILE_FILE_H
#define WEFT_FILE_FILE_H

#include "base/arena.h"
#include "base/kinds.h"
#include "base/json/json_reader.h"
#include "weft/file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

/* ---- dtypes.c: dtypes of files ---- */

/* Row numbers of the table; the order is that of safetensors' enumeration, which decides the order
 * of tensors in a file. */
struct wf_file_dtype {
    const char *name;  /* of safetensors */
    uint32_t bits;     /* of an element */
    uint32_t dtype;    /* enum weft_dtype, or WEFT_DTYPE_COUNT */
    const char *numpy; /* of .npy, little endian; NULL: none */
    const char *torch; /* name in torch; NULL: none */
    bool foreign;      /* safetensors does not have it */
};

#define WF_FILE_DTYPES 64
/* NULL past the last row. */
const struct wf_file_dtype *wf_file_dtype(size_t row);
/* The row with the name of safetensors, of weft, of NumPy or of torch; -1: none. */
int wf_file_dtype_find(const char *name);
int wf_file_dtype_of_numpy(const char *name);
int wf_file_dtype_of_torch(const char *name);

/* Elements of SHAPE and their bytes.  False: a size is negative, the numbers do not fit 2^62, or
 * the bits are not a multiple of 8. */
bool wf_file_bytes(size_t dtype, int32_t dims, const int64_t *shape, int64_t *bytes);

/* ---- input.c: the files of a checkpoint, opened when they are needed ---- */

struct wf_input {
    char *name; /* in the folder */
    uint64_t size;
    dev_t device; /* these four tell whether the file changed */
    ino_t inode;
    struct timespec modified;
    int fd; /* -1: not open now */
    uint32_t users;
    uint64_t used; /* time of the last use, for closing the one not used for longest */
};

struct wf_inputs {
    pthread_mutex_t guard;
    char *path; /* of the folder */
    int folder;
    struct wf_input **list;
    size_t count, capacity;
    uint32_t open; /* descriptors */
    uint64_t clock;
    _Atomic uint64_t read; /* bytes */
};

/* A folder at PATH, whose files are opened by name. */
weft_status wf_inputs_begin(struct wf_inputs *inputs, const char *path) WF_NODISCARD;
void wf_inputs_end(struct wf_inputs *inputs);
/* Add the file NAME, which must be a regular file; *INDEX is its number.  A file that was added
 * before keeps its number. */
weft_status wf_inputs_add(struct wf_inputs *inputs, const char *name, uint32_t *index) WF_NODISCARD;
/* Read exactly BYTES at OFFSET of file INDEX. */
weft_status wf_inputs_read(struct wf_inputs *inputs, uint32_t index, uint64_t offset, void *target,
                           size_t bytes) WF_NODISCARD;
/* LEFT bytes of file INDEX from AT on, as the source of a wf_json_reader (wf_json_fill). */
struct wf_input_stream {
    struct wf_inputs *inputs;
    uint32_t index;
    uint64_t at, left;
};

weft_status wf_input_fill(void *stream, char *buffer, size_t capacity, size_t *count) WF_NODISCARD;
bool wf_ends_with(const char *text, const char *end);
/* A file name that stays in its folder: not empty, no "/", not "." or "..". */
bool wf_file_name_is_safe(const char *name);
/* Refuse NAME, which DOCUMENT lists, if it is not safe. */
weft_status wf_file_name_check(const char *name, const char *document) WF_NODISCARD;

/* ---- checkpoint.c ---- */

/* A part of a tensor at one place of one file. */
struct wf_piece {
    const char *name;
    const int64_t *shape;   /* of the piece */
    const int64_t *offset;  /* in the tensor; NULL: zeros */
    const int64_t *strides; /* in the file, in elements; NULL: row-major without gaps */
    const int64_t *whole;   /* shape of the tensor; NULL: the least one that contains its pieces */
    const weft_spec *spec;  /* RANKS: of the tensor; borrowed */
    uint64_t at;            /* offset of its first element in the file, bytes */
    uint32_t file;
    int32_t rank; /* the piece is this rank's shard of the tensor's spec; -1: it is a box */
    uint8_t dtype;
    int8_t dims;
};

struct wf_tensor {
    const char *name;
    const int64_t *shape;
    weft_spec *spec; /* RANKS */
    size_t first, count;
    int64_t bytes;
    int64_t longest; /* of its pieces in dimension 0: pieces that begin further away from an index
                      * do not contain it */
    const struct wf_view *view; /* of tensors of the base; NULL: it has pieces */
    uint8_t dtype;
    int8_t dims;
};

struct wf_pair {
    const char *key, *value;
};

/* A tensor of a file of the folder that the index does not list.  The texts belong to the
 * checkpoint. */
struct wf_unlisted {
    const char *name, *file;
    const int64_t *shape;
    int64_t bytes;
    uint8_t dtype;
    int8_t dims;
};

struct weft_checkpoint {
    uint64_t made;
    uint32_t format;
    struct wf_arena arena;
    struct wf_inputs inputs;
    struct wf_piece *pieces;
    size_t piece_count, piece_capacity;
    struct wf_piece *replicas; /* RANKS: shards that pieces have already; sorted by name */
    size_t replica_count, replica_capacity;
    struct wf_tensor *tensors;
    size_t tensor_count;
    struct wf_pair *pairs; /* sorted by key */
    size_t pair_count, pair_capacity;
    uint64_t others;
    const char *index;            /* the name of the index; NULL: there is none */
    struct wf_unlisted *unlisted; /* sorted by file, then by name */
    size_t unlisted_count, unlisted_capacity;
    weft_mesh *mesh;
    const weft_checkpoint *base; /* the tensors are views of tensors of this one; NULL: they have
                                  * pieces */
};

/* Copy PIECE with its texts and sizes into CHECKPOINT. */
weft_status wf_checkpoint_add(weft_checkpoint *checkpoint,
                              const struct wf_piece *piece) WF_NODISCARD;
/* Keep PIECE, whose texts CHECKPOINT has already, as a replica. */
weft_status wf_checkpoint_add_replica(weft_checkpoint *checkpoint,
                                      const struct wf_piece *piece) WF_NODISCARD;
weft_status wf_checkpoint_add_pair(weft_checkpoint *checkpoint, const char *key,
                                   const char *value) WF_NODISCARD;
/* All pieces are there: sort them, make the tensors, and check that the pieces of each cover it. */
weft_status wf_checkpoint_settle(weft_checkpoint *checkpoint) WF_NODISCARD;

/* ---- cover.c ---- */

enum wf_cover_kind { WF_COVER_EXACT, WF_COVER_GAP, WF_COVER_OVERLAP };

struct wf_cover_flaw {
    int64_t point[WEFT_MAX_DIMS]; /* the first element that is missing or stands twice */
    size_t first, second;         /* OVERLAP: the boxes */
    uint8_t kind;                 /* enum wf_cover_kind */
};

/* Find the first element of TENSOR that none of its boxes has, or two have.  With GAPS, an element
 * that none has is not a flaw. */
weft_status wf_cover_find(const struct wf_tensor *tensor, const struct wf_piece *boxes, bool gaps,
                          struct wf_cover_flaw *flaw) WF_NODISCARD;

/* Check that the boxes of TENSOR cover it with no gap and no overlap.  INPUTS has the names of
 * their files. */
weft_status wf_cover_check(const struct wf_tensor *tensor, const struct wf_piece *boxes,
                           const struct wf_inputs *inputs) WF_NODISCARD;

/* ---- safetensors.c ---- */

#define WF_SAFETENSORS_HEADER UINT64_C(100000000)

/* Receives the contents of a header.  PIECE has name, shape, at, dtype and dims; all are borrowed.
 */
struct wf_header_sink {
    void *state;
    weft_status (*tensor)(void *state, const struct wf_piece *piece);
    weft_status (*pair)(void *state, const char *key, const char *value);
};

/* Read the header of file INDEX and check all rules of the format. */
weft_status wf_safetensors_read(struct wf_inputs *inputs, uint32_t index,
                                const struct wf_header_sink *sink) WF_NODISCARD;

/* ---- header.c: pieces of a safetensors file, and the metadata that describe its layout ---- */

/* What the metadata of one file say about its tensors; each is NULL if it is absent.  Owned. */
struct wf_header {
    uint32_t file;
    size_t first, count; /* its pieces in the checkpoint, sorted by name */
    char *sharding;      /* DCP_SHARDING_INFO */
    char *mesh, *rank, *specs;
};

/* Add the pieces of the file NAME to CHECKPOINT, and other metadata too if it is the first one.
 * The caller frees *OUT, after a failure too. */
weft_status wf_header_read(weft_checkpoint *checkpoint, const char *name,
                           struct wf_header *out) WF_NODISCARD;
void wf_header_free(struct wf_header *header);
/* The piece of HEADER with NAME, or NULL. */
struct wf_piece *wf_header_find(weft_checkpoint *checkpoint, const struct wf_header *header,
                                const char *name);
/* Set the offsets of the pieces that `sharding` of HEADER lists. */
weft_status wf_header_read_offsets(weft_checkpoint *checkpoint,
                                   const struct wf_header *header) WF_NODISCARD;

/* ---- formats: each adds its pieces and settles CHECKPOINT ---- */

weft_status wf_open_safetensors(weft_checkpoint *checkpoint, const char *name) WF_NODISCARD;
/* The index INDEX.  IS_FOLDER: of a folder that was opened, which has COUNT safetensors files
 * NAMES; then tensors that the index does not list are kept as such. */
weft_status wf_open_indexed(weft_checkpoint *checkpoint, const char *index, bool is_folder,
                            char **names, size_t count) WF_NODISCARD;
/* A folder of safetensors files without an index: all of NAMES are read. */
weft_status wf_open_folder(weft_checkpoint *checkpoint, char **names, size_t count) WF_NODISCARD;
weft_status wf_open_ranks(weft_checkpoint *checkpoint, char **names, size_t count) WF_NODISCARD;
bool wf_is_rank_file(const char *name);
weft_status wf_open_npy(weft_checkpoint *checkpoint, const char *name) WF_NODISCARD;
weft_status wf_open_dcp(weft_checkpoint *checkpoint) WF_NODISCARD;

/* ---- unlisted.c: tensors that an index does not list ---- */

/* Keep the tensors of NAMES, COUNT files of the folder, that are not of CHECKPOINT and for which
 * IS_LISTED(STATE, name) is false. */
weft_status wf_unlisted_find(weft_checkpoint *checkpoint, char **names, size_t count,
                             bool (*is_listed)(const void *state, const char *name),
                             const void *state) WF_NODISCARD;
/* PIECE of FILE is such a tensor.  FILE belongs to CHECKPOINT. */
weft_status wf_unlisted_add(weft_checkpoint *checkpoint, const struct wf_piece *piece,
                            const char *file) WF_NODISCARD;
/* The unlisted tensor NAME; NULL: there is none. */
const struct wf_unlisted *wf_unlisted_named(const weft_checkpoint *checkpoint, const char *name);

/* ---- block.c: boxes of bytes between a file and memory ---- */

/* A box of elements that has strides on both sides, in elements. */
struct wf_block {
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS];
    int64_t file_strides[WEFT_MAX_DIMS], memory_strides[WEFT_MAX_DIMS];
    int64_t file, memory; /* the first element */
};

/* A box of bytes, in the order of the file: whole runs, of which the last dimension is one.  Both
 * sides have stride 1 in it. */
struct wf_byte_block {
    int32_t dims; /* at least 1 */
    int64_t shape[WEFT_MAX_DIMS + 1];
    int64_t file_strides[WEFT_MAX_DIMS + 1], memory_strides[WEFT_MAX_DIMS + 1];
    int64_t file, memory;
};

/* WEFT_ERR_UNSUPPORTED: the box cuts through a byte. */
weft_status wf_block_to_bytes(const struct wf_block *block, uint32_t bits,
                              struct wf_byte_block *out) WF_NODISCARD;
/* Read BLOCK from file INDEX, whose elements begin at byte AT.  STAGE has WF_STAGE bytes. */
#define WF_STAGE ((size_t)1 << 20)
weft_status wf_block_read(struct wf_inputs *inputs, uint32_t index, uint64_t at,
                          const struct wf_byte_block *block, char *memory,
                          char *stage) WF_NODISCARD;
/* Write BLOCK to the descriptor FD, whose elements begin at byte AT.  NAME is for errors. */
weft_status wf_block_write(int fd, const char *name, uint64_t at, const struct wf_byte_block *block,
                           const char *memory, char *stage) WF_NODISCARD;

/* ---- reshard/cut.c: a box in pieces of bounded size ---- */

/* A piece has one index of the dimensions before DIM, LENGTH indices of DIM or what is left, and
 * all indices of the dimensions behind it.  A tile has LENGTH indices of DIM, WIDTH indices of the
 * last dimension, and one index of each other dimension. */
struct wf_cut {
    int32_t dim;
    int64_t length;
    int64_t width;   /* 0: pieces are not tiles */
    uint64_t pieces; /* 0: the box is empty */
};

/* Cut SHAPE, whose elements have BITS, into pieces of at most MOST bytes.  False: the rows of a
 * piece would end inside a byte. */
bool wf_cut_make(struct wf_cut *cut, uint32_t bits, int32_t dims, const int64_t *shape,
                 uint64_t most) WF_NODISCARD;
/* The same for a tensor whose elements follow each other in the source along dimension FAST, which
 * may be any, or -1 if none is known.  A tile is long in both FAST and the last dimension, so that
 * neither side is read or written in many short runs. */
bool wf_cut_make_from(struct wf_cut *cut, uint32_t bits, int32_t dims, const int64_t *shape,
                      uint64_t most, int32_t fast) WF_NODISCARD;
/* The box of piece NUMBER. */
void wf_cut_box(const struct wf_cut *cut, int32_t dims, const int64_t *shape, uint64_t number,
                int64_t *offset, int64_t *sizes);

/* ---- warn.c ---- */

/* All tensors of CHECKPOINT are about to be read in LAYOUT, which may be NULL.  Log a warning for
 * tensors that its index does not list, and for each line of LAYOUT that decides nothing. */
void wf_checkpoint_warn(const weft_checkpoint *checkpoint, const weft_layout_file *layout);

/* ---- reshard/jobs.c ---- */

/* Call JOB(STATE) on JOBS threads, of which the calling one is the first, and wait for all. Without
 * memory for more, fewer threads do it. */
void wf_jobs_run(int32_t jobs, void *(*job)(void *), void *state);

/* ---- part.c: what two parts of one tensor share ---- */

/* Create the spec of a tensor of dtype DTYPE, a row of dtypes.c, from the text PLACEMENTS, which
 * has no P.  A dtype that weft does not compute with is u8 in the spec.  The caller releases *OUT.
 */
weft_status wf_file_spec(const weft_mesh *mesh, size_t dtype, int32_t dims, const int64_t *shape,
                         const char *placements, weft_spec **out) WF_NODISCARD;

bool wf_spec_is_partial(const weft_spec *spec);

/* ---- model.c ---- */

struct wf_model_number {
    const char *name;
    int64_t value;
};

/* The whole numbers of the config.json in the folder of a checkpoint. */
struct wf_model {
    const char *folder; /* borrowed */
    bool is_absent;     /* it has no config.json */
    struct wf_arena arena;
    struct wf_model_number *numbers;
    size_t count, capacity;
};

/* Read the config.json of checkpoint OF.  It is not an error if there is none.  The caller frees
 * *OUT, after a failure too. */
weft_status wf_model_read(const weft_checkpoint *of, struct wf_model *out) WF_NODISCARD;
void wf_model_free(struct wf_model *model);
/* Set *OUT to the number with NAME, of LENGTH bytes.  WEFT_ERR_NOT_FOUND: MODEL does not have it.
 */
weft_status wf_model_find(const struct wf_model *model, const char *name, size_t length,
                          int64_t *out) WF_NODISCARD;

/* ---- place.c ---- */

/* Layouts of tensors of the checkpoint OF by LAYOUT, whose sizes may be numbers of the model. */
struct wf_placer {
    const weft_checkpoint *of;      /* both borrowed */
    const weft_layout_file *layout; /* NULL: the tensors' own */
    struct wf_model model;
    bool has_model;
};

void wf_placer_begin(struct wf_placer *placer, const weft_checkpoint *of,
                     const weft_layout_file *layout);
void wf_placer_end(struct wf_placer *placer);
/* Append TEXT to OUT, with numbers of the model instead of their names.  WEFT_ERR_NOT_FOUND: the
 * model does not have one. */
weft_status wf_placer_fill(struct wf_placer *placer, const char *text,
                           struct wf_text *out) WF_NODISCARD;
/* Set OUT to the placements of TENSOR by the layout, with numbers only. */
weft_status wf_placer_text(struct wf_placer *placer, const struct wf_tensor *tensor,
                           struct wf_text *out) WF_NODISCARD;
/* Append the placements TEXT to OUT; sizes of parts are those of OWN, a layout with as many parts
 * of the same dimension.  False: OWN, which may be NULL, has no such parts. */
bool wf_placements_fill(const char *text, const weft_spec *own, struct wf_text *out);
/* Create the spec of TENSOR, whose heads are whole.  The caller releases *OUT. */
weft_status wf_placer_spec(struct wf_placer *placer, const struct wf_tensor *tensor,
                           weft_spec **out) WF_NODISCARD;

/* ---- heads.c ---- */

/* WEFT_ERR_INVALID: SPEC cuts one of the heads of SIZE indices of which dimension DIM consists.  A
 * dimension that does not consist of such heads is not checked, nor is SIZE 0. */
weft_status wf_heads_check(const weft_spec *spec, int32_t dim, int64_t size) WF_NODISCARD;
/* Warn if LAYOUT has heads that cannot be checked, because CHECKPOINT has no config.json. */
void wf_heads_warn(const weft_checkpoint *checkpoint, const weft_layout_file *layout);
/* WEFT_ERR_INVALID: SPEC, the layout of TENSOR, cuts heads that the layout file wants whole.
 * WEFT_ERR_NOT_FOUND: the config.json does not have their size. */
weft_status wf_placer_check(struct wf_placer *placer, const struct wf_tensor *tensor,
                            const weft_spec *spec) WF_NODISCARD;

/* ---- joined.c ---- */

/* Log a warning if LAYOUT splits a tensor that rules join of several as if it were one. */
void wf_joined_warn(const weft_checkpoint *checkpoint, const weft_layout_file *layout);

/* ---- whole.c ---- */

/* Set AXES to the axes that split dimension DIM of SPEC, in order.  Returns how many. */
int32_t wf_splits_of(const weft_spec *spec, int32_t dim, int32_t axes[WEFT_MAX_AXES]);
/* True if no rank of SPEC has a part of one of the heads of SIZE indices of which dimension DIM
 * consists. */
bool wf_heads_are_whole(const weft_spec *spec, int32_t dim, int64_t size);

/* The indices of a tensor that something holds: a box, or a box of a rank's shard.  MEMORY strides
 * are of its row-major memory. */
struct wf_part {
    int32_t dims;
    bool is_box;
    int64_t start[WEFT_MAX_DIMS], shape[WEFT_MAX_DIMS];
    int64_t end;                    /* one past the last index of dimension 0 */
    int64_t first[WEFT_MAX_DIMS];   /* unless is_box: the first position in the shard */
    int64_t strides[WEFT_MAX_DIMS]; /* in elements, of the memory or the file that holds it */
    const weft_spec *spec;          /* unless is_box: the shard of RANK; borrowed */
    int32_t rank;
    int64_t elements; /* unless is_box: of the shard */
};

void wf_part_of_box(struct wf_part *part, int32_t dims, const int64_t *start, const int64_t *shape);
void wf_part_of_shard(struct wf_part *part, const weft_spec *spec, int32_t rank);
/* The box of PART, a shard, that begins at position FIRST and has SIZES elements. */
void wf_part_narrow(struct wf_part *part, const int64_t *first, const int64_t *sizes);

/* Call VISIT for every box that FILE, which is not narrowed, and MEMORY share. */
typedef weft_status wf_part_visit(void *state, const struct wf_block *block);
weft_status wf_part_overlaps(const struct wf_part *file, const struct wf_part *memory,
                             wf_part_visit *visit, void *state) WF_NODISCARD;

/* ---- checksum.c ---- */

/* The checksum of a box of TENSOR whose elements are at ELEMENTS, row-major without gaps. */
uint64_t wf_checksum_box(const struct wf_tensor *tensor, const int64_t *offset,
                         const int64_t *sizes, const void *elements);

/* ---- read.c ---- */

/* The part of TENSOR that PIECE has. */
void wf_part_of_piece(const struct wf_tensor *tensor, const struct wf_piece *piece,
                      struct wf_part *part);

/* The dimension of TENSOR along which elements follow each other in its files; -1: none. */
int32_t wf_tensor_fast_dim(const weft_checkpoint *checkpoint, const struct wf_tensor *tensor);

/* SPEC has the shape of TENSOR, elements of its size, and no partial placement. */
weft_status wf_spec_check(const struct wf_tensor *tensor, const weft_spec *spec,
                          const char *what) WF_NODISCARD;

/* Read PART of TENSOR to TARGET. */
weft_status wf_checkpoint_read_tensor(const weft_checkpoint *checkpoint,
                                      const struct wf_tensor *tensor, const struct wf_part *part,
                                      void *target) WF_NODISCARD;
/* Check a box of a tensor that the caller of FUNCTION gives, and fill in what is NULL. */
weft_status wf_box_check(const char *function, const char *name, int32_t dims, const int64_t *shape,
                         const int64_t *offset, const int64_t *sizes, int64_t *start,
                         int64_t *extent) WF_NODISCARD;
/* The bytes of such a box of elements of BITS bits; 0 if it is not within the tensor. */
uint64_t wf_box_bytes(const char *function, const char *name, uint32_t bits, int32_t dims,
                      const int64_t *shape, const int64_t *offset, const int64_t *sizes);

#endif
