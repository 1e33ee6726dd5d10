/* segment.c - a shard as pieces of memory that are contiguous both in the whole tensor and in the
 * rank's buffer. */
#include "shard.h"

/* Dimensions from *OUTER + 1 on are held whole and have no gaps on either side: together they are
 * one block of *BLOCK elements. */
static void inner_block(const struct wf_shard *shard, const int64_t *shape, const int64_t *strides,
                        int32_t *outer, int64_t *block)
{
    *outer = shard->dims - 1;
    *block = 1;
    while (*outer >= 0 && shard->shape[*outer] == shape[*outer] &&
           (strides[*outer] == *block || shape[*outer] == 1)) {
        *block *= shape[*outer];
        --*outer;
    }
}

/* The piece from POSITION on, by the runs of dimension OUTER; it ends with the row at the
 * latest. */
static void piece_at(const struct wf_shard *shard, const int64_t *shape, const int64_t *strides,
                     int64_t position, weft_segment *out)
{
    int64_t global_strides[WEFT_MAX_DIMS], block, within, rest;
    int32_t outer;

    wf_row_major(shard->dims, shape, global_strides);
    inner_block(shard, shape, strides, &outer, &block);
    within = position % block;
    rest = position / block;
    *out = (weft_segment){within, within, block - within};
    for (int32_t d = outer; d >= 0; d--) {
        struct wf_index index = wf_shard_index(shard, d);
        int64_t at = rest % shard->shape[d];
        weft_index_run run;
        rest /= shard->shape[d];
        if (!wf_index_run(&index, at, &run)) return; /* cannot happen: AT is below the length */
        out->global += run.start * global_strides[d];
        out->local += at * strides[d];
        if (d == outer && strides[d] == block) out->length += (run.length - 1) * block;
    }
}

bool wf_shard_segment(const struct wf_shard *shard, const int64_t *shape, const int64_t *strides,
                      int64_t position, weft_segment *out)
{
    int64_t dense[WEFT_MAX_DIMS];
    weft_segment more;

    if (position < 0 || position >= shard->elements) return false;
    if (strides == NULL) {
        wf_row_major(shard->dims, shard->shape, dense);
        strides = dense;
    }
    piece_at(shard, shape, strides, position, out);
    /* The end of one row may be contiguous with the beginning of the next. */
    while (position + out->length < shard->elements) {
        piece_at(shard, shape, strides, position + out->length, &more);
        if (more.global != out->global + out->length || more.local != out->local + out->length)
            break;
        out->length += more.length;
    }
    return true;
}
