/* block.c - boxes of bytes between a file and memory.
 *
 * A box is visited in the order of the file.  Long runs go straight between file and memory.  Short
 * runs pass through a stage, so that one read serves many of them; the bytes between them are read
 * too if they are few. */
#include "checkpoint/file.h"
#include "checkpoint/io/at.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { GAP = 65536, DIRECT = 131072 };

/* ---- elements to bytes ---- */

static void swap_dims(struct wf_byte_block *b, int32_t i, int32_t j)
{
    int64_t shape = b->shape[i], file = b->file_strides[i], memory = b->memory_strides[i];

    b->shape[i] = b->shape[j];
    b->file_strides[i] = b->file_strides[j];
    b->memory_strides[i] = b->memory_strides[j];
    b->shape[j] = shape;
    b->file_strides[j] = file;
    b->memory_strides[j] = memory;
}

/* Order dimensions by descending strides in the file; those of one element are dropped. */
static void order_dims(const struct wf_block *block, struct wf_byte_block *out)
{
    out->dims = 0;
    for (int32_t d = 0; d < block->dims; d++) {
        int32_t at = out->dims;
        if (block->shape[d] == 1) continue;
        out->shape[at] = block->shape[d];
        out->file_strides[at] = block->file_strides[d];
        out->memory_strides[at] = block->memory_strides[d];
        out->dims++;
        for (; at > 0 && out->file_strides[at] > out->file_strides[at - 1]; at--)
            swap_dims(out, at, at - 1);
    }
}

/* Join dimensions that follow each other without a gap on both sides. */
static void join_dims(struct wf_byte_block *b)
{
    int32_t kept = 0;

    for (int32_t d = 1; d < b->dims; d++) {
        if (b->file_strides[kept] == b->file_strides[d] * b->shape[d] &&
            b->memory_strides[kept] == b->memory_strides[d] * b->shape[d]) {
            b->shape[d] *= b->shape[kept];
        } else {
            kept++;
        }
        b->shape[kept] = b->shape[d];
        b->file_strides[kept] = b->file_strides[d];
        b->memory_strides[kept] = b->memory_strides[d];
    }
    if (b->dims > 0) b->dims = kept + 1;
}

static void append_run(struct wf_byte_block *b, int64_t length)
{
    b->shape[b->dims] = length;
    b->file_strides[b->dims] = b->memory_strides[b->dims] = 1;
    b->dims++;
}

/* Elements of less than a byte: every run must begin and end with a byte. */
static weft_status pack_bits(struct wf_byte_block *b, int64_t bits)
{
    int64_t odd = b->file * bits % 8 | b->memory * bits % 8, run = 1;

    join_dims(b);
    if (b->dims > 0 && b->file_strides[b->dims - 1] == 1 && b->memory_strides[b->dims - 1] == 1)
        run = b->shape[--b->dims];
    odd |= run * bits % 8;
    for (int32_t d = 0; d < b->dims; d++) {
        odd |= b->file_strides[d] * bits % 8 | b->memory_strides[d] * bits % 8;
        b->file_strides[d] = b->file_strides[d] * bits / 8;
        b->memory_strides[d] = b->memory_strides[d] * bits / 8;
    }
    if (odd != 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "elements have %" PRId64 " bits, and the part begins or ends inside a byte",
                       bits);
    b->file = b->file * bits / 8;
    b->memory = b->memory * bits / 8;
    append_run(b, run * bits / 8);
    return WEFT_OK;
}

weft_status wf_block_to_bytes(const struct wf_block *block, uint32_t bits,
                              struct wf_byte_block *out)
{
    int64_t unit = bits / 8;

    out->file = block->file;
    out->memory = block->memory;
    order_dims(block, out);
    if (bits % 8 != 0) return pack_bits(out, bits);
    for (int32_t d = 0; d < out->dims; d++) {
        out->file_strides[d] *= unit;
        out->memory_strides[d] *= unit;
    }
    out->file *= unit;
    out->memory *= unit;
    append_run(out, unit);
    join_dims(out);
    return WEFT_OK;
}

/* ---- runs in the order of the file ---- */

struct run {
    int64_t file, memory;
    int64_t at[WEFT_MAX_DIMS + 1];
    bool done;
};

static struct run first_run(const struct wf_byte_block *b)
{
    return (struct run){.file = b->file, .memory = b->memory};
}

static void next_run(const struct wf_byte_block *b, struct run *run)
{
    for (int32_t d = b->dims - 2; d >= 0; d--) {
        run->file += b->file_strides[d];
        run->memory += b->memory_strides[d];
        if (++run->at[d] < b->shape[d]) return;
        run->file -= b->shape[d] * b->file_strides[d];
        run->memory -= b->shape[d] * b->memory_strides[d];
        run->at[d] = 0;
    }
    run->done = true;
}

static int64_t run_length(const struct wf_byte_block *b)
{
    return b->shape[b->dims - 1];
}

/* Read the runs from *RUN on that fit the stage, with one read. */
static weft_status read_staged(struct wf_inputs *inputs, uint32_t index, uint64_t at,
                               const struct wf_byte_block *b, struct run *run, char *memory,
                               char *stage)
{
    int64_t begin = run->file, length = run_length(b), end = begin + length;
    struct run ahead = *run;

    for (next_run(b, &ahead); !ahead.done; next_run(b, &ahead)) {
        if (ahead.file < end || ahead.file - end > GAP ||
            ahead.file + length - begin > (int64_t)WF_STAGE)
            break;
        end = ahead.file + length;
    }
    WF_TRY(wf_inputs_read(inputs, index, at + (uint64_t)begin, stage, (size_t)(end - begin)));
    for (; !run->done && run->file >= begin && run->file + length <= end; next_run(b, run))
        memcpy(memory + run->memory, stage + (run->file - begin), (size_t)length);
    return WEFT_OK;
}

weft_status wf_block_read(struct wf_inputs *inputs, uint32_t index, uint64_t at,
                          const struct wf_byte_block *b, char *memory, char *stage)
{
    struct run run = first_run(b);

    if (run_length(b) >= DIRECT) {
        for (; !run.done; next_run(b, &run))
            WF_TRY(wf_inputs_read(inputs, index, at + (uint64_t)run.file, memory + run.memory,
                                  (size_t)run_length(b)));
        return WEFT_OK;
    }
    while (!run.done)
        WF_TRY(read_staged(inputs, index, at, b, &run, memory, stage));
    return WEFT_OK;
}

/* ---- writing ---- */

static weft_status write_all(int fd, const char *name, uint64_t offset, const char *source,
                             size_t bytes)
{
    return wf_write_at(fd, source, bytes, offset)
               ? WEFT_OK
               : wf_fail(WEFT_ERR_SYSTEM, "%s: %s", name, kit_error_text(errno));
}

/* Gather the runs from *RUN on that follow each other in the file, and write them at once. */
static weft_status write_staged(int fd, const char *name, uint64_t at,
                                const struct wf_byte_block *b, struct run *run, const char *memory,
                                char *stage)
{
    int64_t begin = run->file, length = run_length(b), end = begin;

    for (; !run->done && run->file == end && end + length - begin <= (int64_t)WF_STAGE;
         next_run(b, run)) {
        memcpy(stage + (end - begin), memory + run->memory, (size_t)length);
        end += length;
    }
    return write_all(fd, name, at + (uint64_t)begin, stage, (size_t)(end - begin));
}

weft_status wf_block_write(int fd, const char *name, uint64_t at, const struct wf_byte_block *b,
                           const char *memory, char *stage)
{
    struct run run = first_run(b);

    if (run_length(b) >= DIRECT) {
        for (; !run.done; next_run(b, &run))
            WF_TRY(write_all(fd, name, at + (uint64_t)run.file, memory + run.memory,
                             (size_t)run_length(b)));
        return WEFT_OK;
    }
    while (!run.done)
        WF_TRY(write_staged(fd, name, at, b, &run, memory, stage));
    return WEFT_OK;
}
