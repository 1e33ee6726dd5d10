/* whole.c - does every rank of a layout have whole heads?  By arithmetic: a shard may have millions
 * of runs.
 *
 * A split cuts the positions that the splits before it left to a rank.  As long as those are whole
 * heads, the split keeps heads whole exactly where its pieces begin at multiples of a head and
 * consist of whole heads. */
#include "file.h"

/* The piece of rank I of N of LENGTH indices, as S gives it: *START and its length. */
static int64_t take_chunk(int64_t length, int64_t n, int64_t i, int64_t *start)
{
    int64_t each = length / n + (length % n != 0), left;

    *start = each > 0 && i > length / each ? length : i * each;
    left = length - *start;
    return left < each ? left : each;
}

static bool is_whole(int64_t start, int64_t length, int64_t size)
{
    return length == 0 || (start % size == 0 && length % size == 0);
}

/* What rank I of N has of LENGTH indices in FACTOR chunks, of which each is split: *SHARE indices.
 * False if it has a part of a head. */
static bool take_strided(int64_t length, int64_t factor, int64_t n, int64_t i, int64_t size,
                         int64_t *share)
{
    int64_t period = length / factor + (length % factor != 0), chunks = length / period;
    int64_t start, tail, take = take_chunk(period, n, i, &start);
    int64_t rest = take_chunk(length % period, n, i, &tail);

    *share = chunks * take + rest;
    if (period == 1) return true; /* one rank has all */
    return is_whole(start, take, size) && is_whole(chunks * period + tail, rest, size) &&
           (chunks == 1 || take == 0 || period % size == 0);
}

/* The same of the parts of P, of which each is split.  Pieces may be adjacent. */
static bool take_parts(const weft_placement *p, int64_t n, int64_t i, int64_t size, int64_t *share)
{
    int64_t begin = 0, end = 0, part = 0; /* of the run that ends where the last piece does */
    bool whole = true;

    *share = 0;
    for (size_t k = 0; k < p->size_count; part += p->sizes[k++]) {
        int64_t start, take = take_chunk(p->sizes[k], n, i, &start);

        if (take == 0) continue;
        if (part + start != end) {
            whole = whole && is_whole(begin, end - begin, size);
            begin = part + start;
        }
        end = part + start + take;
        *share += take;
    }
    return whole && is_whole(begin, end - begin, size);
}

static bool are_multiples(const weft_placement *p, int64_t size)
{
    for (size_t k = 0; k < p->size_count; k++)
        if (p->sizes[k] % size != 0) return false;
    return true;
}

int32_t wf_splits_of(const weft_spec *spec, int32_t dim, int32_t axes[WEFT_MAX_AXES])
{
    const weft_placement *placements = weft_spec_placements(spec);
    int32_t count = 0;

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++) {
        const weft_placement *p = &placements[a];
        int32_t at = count;

        if (p->dim != dim || (p->kind != WEFT_PLACE_SHARD && p->kind != WEFT_PLACE_STRIDED &&
                              p->kind != WEFT_PLACE_PARTS && p->kind != WEFT_PLACE_SIZES))
            continue;
        for (; at > 0 && placements[axes[at - 1]].turn > p->turn; at--)
            axes[at] = axes[at - 1];
        axes[at] = a;
        count++;
    }
    return count;
}

/* Has the rank at COORD whole heads of SIZE indices?  AXES are the COUNT splits. */
static bool has_whole(const weft_spec *spec, int64_t length, int64_t size, const int32_t *coord,
                      const int32_t *axes, int32_t count)
{
    const weft_placement *placements = weft_spec_placements(spec);
    bool whole = true;

    for (int32_t k = 0; k < count && whole && length > 0; k++) {
        const weft_placement *p = &placements[axes[k]];
        int64_t n = weft_mesh_axis_size(weft_spec_mesh(spec), axes[k]), i = coord[axes[k]];

        if (n == 1) continue;
        if (p->kind == WEFT_PLACE_SIZES)
            length = p->sizes[i];
        else if (p->kind == WEFT_PLACE_PARTS)
            whole = take_parts(p, n, i, size, &length);
        else
            whole = take_strided(length, p->kind == WEFT_PLACE_STRIDED ? p->factor : 1, n, i, size,
                                 &length);
    }
    return whole;
}

bool wf_heads_are_whole(const weft_spec *spec, int32_t dim, int64_t size)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t axes[WEFT_MAX_AXES] = {0}, coord[WEFT_MAX_AXES];
    int32_t count = wf_splits_of(spec, dim, axes);
    int64_t length = weft_spec_shape(spec)[dim];

    for (int32_t k = 0; k < count; k++)
        if (placements[axes[k]].kind == WEFT_PLACE_SIZES &&
            weft_mesh_axis_size(mesh, axes[k]) > 1 && !are_multiples(&placements[axes[k]], size))
            return false;
    for (int32_t p = 0; count > 0 && p < weft_mesh_size(mesh); p++)
        if (weft_mesh_coord_of(mesh, weft_mesh_rank_at(mesh, p), coord) == WEFT_OK &&
            !has_whole(spec, length, size, coord, axes, count))
            return false;
    return true;
}
