/* copy.c - copying the elements that two shards share. */
#include "protocol.h"

#include <string.h>

/* The runs of one dimension, and how far its indices are apart in both shards, in bytes. */
struct axis {
    size_t first, count;
    uint64_t from_stride, to_stride;
};

/* A place in the runs of the outer dimensions. */
struct cursor {
    size_t run;
    int64_t index; /* in the run */
};

/* Add the runs of dimension DIM.  With COUNT 0, the shards share nothing. */
static weft_status add_runs(struct wf_feed_runs *runs, size_t used, const weft_spec *source,
                            int32_t source_rank, const weft_spec *target, int32_t target_rank,
                            int32_t dim, size_t *count)
{
    weft_intersection found;

    *count = 0;
    for (int64_t at = 0;
         weft_spec_intersection(source, source_rank, target, target_rank, dim, at, &found);
         at = found.start + found.length) {
        WF_TRY(wf_grow(&runs->runs, sizeof *runs->runs, used + *count, &runs->room));
        runs->runs[used + (*count)++] = found;
    }
    return WEFT_OK;
}

/* The last dimensions in which the shards share all indices are one piece of memory: merge them
 * with the one before.  Returns how many dimensions are left; the last one's runs are copied
 * whole. */
static int32_t merge(const struct wf_feed_runs *runs, const struct axis *axes, int32_t dims,
                     const weft_shard *from, const weft_shard *to)
{
    while (dims > 1 && axes[dims - 1].count == 1 &&
           runs->runs[axes[dims - 1].first].length == from->shape[dims - 1] &&
           from->shape[dims - 1] == to->shape[dims - 1])
        dims--;
    return dims;
}

/* Step to the next place of the DIMS outer dimensions.  False: there is none. */
static bool step(const struct wf_feed_runs *runs, const struct axis *axes, int32_t dims,
                 struct cursor *at)
{
    for (int32_t d = dims - 1; d >= 0; d--) {
        if (++at[d].index < runs->runs[axes[d].first + at[d].run].length) return true;
        at[d].index = 0;
        if (++at[d].run < axes[d].count) return true;
        at[d].run = 0;
    }
    return false;
}

static void copy_runs(const struct wf_feed_runs *runs, const struct axis *axes, int32_t dims,
                      const char *from, char *to)
{
    const struct axis *last = &axes[dims - 1];
    struct cursor at[WEFT_MAX_DIMS] = {{0}};

    do {
        const char *source = from;
        char *target = to;

        for (int32_t d = 0; d < dims - 1; d++) {
            const weft_intersection *run = &runs->runs[axes[d].first + at[d].run];
            source += (uint64_t)(run->first + at[d].index) * axes[d].from_stride;
            target += (uint64_t)(run->second + at[d].index) * axes[d].to_stride;
        }
        for (size_t i = 0; i < last->count; i++) {
            const weft_intersection *run = &runs->runs[last->first + i];
            memcpy(target + (uint64_t)run->second * last->to_stride,
                   source + (uint64_t)run->first * last->from_stride,
                   (uint64_t)run->length * last->to_stride);
        }
    } while (step(runs, axes, dims - 1, at));
}

weft_status wf_feed_copy(struct wf_feed_runs *runs, const weft_spec *source, int32_t source_rank,
                         const void *from, const weft_spec *target, int32_t target_rank, void *to)
{
    uint64_t from_bytes = weft_dtype_bytes(weft_spec_dtype(source)), to_bytes = from_bytes;
    int32_t dims = weft_spec_dims(source);
    struct axis axes[WEFT_MAX_DIMS] = {{0}};
    weft_shard mine, theirs;
    size_t used = 0;

    weft_spec_shard(source, source_rank, &theirs);
    weft_spec_shard(target, target_rank, &mine);
    if (theirs.elements == 0 || mine.elements == 0) return WEFT_OK;
    for (int32_t d = 0; d < dims; d++) {
        axes[d].first = used;
        WF_TRY(add_runs(runs, used, source, source_rank, target, target_rank, d, &axes[d].count));
        if (axes[d].count == 0) return WEFT_OK;
        used += axes[d].count;
    }
    for (int32_t d = dims - 1; d >= 0; d--) {
        axes[d].from_stride = from_bytes;
        axes[d].to_stride = to_bytes;
        from_bytes *= (uint64_t)theirs.shape[d];
        to_bytes *= (uint64_t)mine.shape[d];
    }
    if (dims == 0)
        memcpy(to, from, (size_t)to_bytes);
    else
        copy_runs(runs, axes, merge(runs, axes, dims, &theirs, &mine), from, to);
    return WEFT_OK;
}

void wf_feed_runs_free(struct wf_feed_runs *runs)
{
    wf_free(runs->runs);
    *runs = (struct wf_feed_runs){0};
}
