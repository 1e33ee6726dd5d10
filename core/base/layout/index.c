/* index.c - the indices that a rank holds, as nested combs.
 *
 * A split of N indices over n ranks gives rank i one run (S, G), or one run out of each of f chunks
 * (SS) or parts (B): a comb.  A second split applies to the positions of the first one's result, so
 * its comb nests inside.  Every query (the index at a position, the position of an index, the end
 * of a run) walks the combs once.  Nothing is listed, so a shard of a million runs costs as much as
 * a shard of one; a B has at most 64 parts, which a query walks.
 * A gap in an inner comb remains a gap outside, because all combs ascend.  Runs found by walking
 * are therefore maximal. */
#include "layout.h"

__extension__ typedef __int128 wide;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Chunk I of SIZE split in N: the first ones are ceil(SIZE / N) long, the last may be empty. */
static int64_t chunk_length(int64_t size, int32_t n, int32_t i, int64_t *start)
{
    int64_t each = ceil_div(size, n);
    int64_t left;

    *start = each > 0 && i > size / each ? size : i * each;
    left = size - *start;
    return left < each ? wf_max_i64(left, 0) : each;
}

/* The comb that rank I of N takes of LENGTH indices cut into FACTOR chunks.  Returns the number of
 * its indices. */
static int64_t cut_comb(int64_t length, int64_t factor, int32_t n, int32_t i, struct wf_comb *out)
{
    int64_t period = ceil_div(length, factor), rest, tail;

    *out = (struct wf_comb){.period = period, .teeth = period > 0 ? length / period : 0};
    if (period == 0) return 0;
    rest = length - out->teeth * period;
    out->take = chunk_length(period, n, i, &out->first);
    out->tail_take = chunk_length(rest, n, i, &tail);
    out->tail = out->teeth * period + tail;
    if (out->take == 0) { /* only the last, shorter chunk has indices for this rank */
        *out =
            (struct wf_comb){.first = out->tail, .period = 1, .take = out->tail_take, .teeth = 1};
        return out->take;
    }
    if (out->take == period) { /* chunks of one index: no gap */
        out->take *= out->teeth;
        out->teeth = 1;
    }
    return out->teeth * out->take + out->tail_take;
}

/* The comb that rank I of N takes of the parts of SPLIT. */
static int64_t cut_parts(const struct wf_split *split, int32_t n, int32_t i, struct wf_comb *out)
{
    int64_t length = 0, start;

    *out = (struct wf_comb){
        .teeth = 0, .parts = split->sizes, .part_count = split->size_count, .ranks = n, .at = i};
    for (int32_t p = 0; p < split->size_count; p++)
        length += chunk_length(split->sizes[p], n, i, &start);
    return length;
}

/* The run of indices that coordinate I takes of the groups of SPLIT. */
static int64_t cut_group(const struct wf_split *split, int32_t i, struct wf_comb *out)
{
    int64_t start = 0;

    if (split->starts != NULL)
        start = split->starts[i];
    else
        for (int32_t k = 0; k < i; k++)
            start += split->sizes[k];
    *out = (struct wf_comb){.first = start, .period = 1, .take = split->sizes[i], .teeth = 1};
    return out->take;
}

/* The comb that coordinate I of N takes of the sizes of SPLIT.  Returns the number of its
 * indices. */
static int64_t cut_listed(const struct wf_split *split, int32_t n, int32_t i, struct wf_comb *out)
{
    return split->kind == WEFT_PLACE_PARTS ? cut_parts(split, n, i, out) : cut_group(split, i, out);
}

int64_t wf_split_share(const struct wf_split *split, int64_t length, int32_t ranks, int32_t at)
{
    int64_t chunk = ceil_div(length, split->factor), start;
    struct wf_comb comb;

    if (split->sizes != NULL) return cut_listed(split, ranks, at, &comb);
    if (chunk == 0) return 0;
    return length / chunk * chunk_length(chunk, ranks, at, &start) +
           chunk_length(length % chunk, ranks, at, &start);
}

/* The first of the largest of COUNT sizes. */
static int32_t largest_of(const int64_t *sizes, int32_t count)
{
    int32_t most = 0;

    for (int32_t i = 1; i < count; i++)
        if (sizes[i] > sizes[most]) most = i;
    return most;
}

int32_t wf_split_most(const struct wf_split *split)
{
    return split->kind == WEFT_PLACE_SIZES ? largest_of(split->sizes, split->size_count) : 0;
}

int32_t wf_split_least(const struct wf_split *split, int32_t ranks)
{
    int32_t least = ranks - 1;

    for (int32_t i = 0; split->kind == WEFT_PLACE_SIZES && i < split->size_count; i++)
        if (split->sizes[i] < split->sizes[least]) least = i;
    return least;
}

static bool is_one_run(const struct wf_comb *comb)
{
    return comb->teeth == 1 && comb->tail_take == 0;
}

/* Nest INNER into the last of COUNT combs; returns the new count. */
static int32_t nest_comb(struct wf_comb *combs, int32_t count, const struct wf_comb *inner)
{
    if (count > 0 && is_one_run(&combs[count - 1])) {
        int64_t shift = combs[count - 1].first;
        combs[count - 1] = *inner;
        combs[count - 1].first += shift;
        if (inner->teeth > 0) combs[count - 1].tail += shift;
        return count;
    }
    combs[count] = *inner;
    return count + 1;
}

/* False if an axis has an owner, and it is not the rank at COORD. */
static bool owns(const struct wf_layout *layout, const int32_t *coord)
{
    for (int32_t a = 0; a < layout->axes; a++)
        if (layout->placements[a].kind == WEFT_PLACE_OWNER &&
            layout->placements[a].owner != coord[a])
            return false;
    return true;
}

void wf_placements_largest(const weft_placement *placements, int32_t axes, int32_t *coord)
{
    for (int32_t a = 0; a < axes; a++) {
        const weft_placement *p = &placements[a];
        coord[a] = p->kind == WEFT_PLACE_OWNER   ? p->owner
                   : p->kind == WEFT_PLACE_SIZES ? largest_of(p->sizes, (int32_t)p->size_count)
                                                 : 0;
    }
}

void wf_shard_at(const struct wf_layout *layout, const int32_t *coord, struct wf_shard *out)
{
    int32_t count = 0, next = 0;
    bool empty = coord == NULL || (layout->owned && !owns(layout, coord));

    out->dims = layout->dims;
    out->member = coord != NULL;
    out->elements = !empty;
    for (int32_t dim = 0; dim < layout->dims; dim++) {
        int64_t length = coord != NULL ? layout->shape[dim] : 0;
        int32_t first = count;
        if (dim == 0 && empty) length = 0;
        for (; next < layout->split_count && layout->splits[next].dim == dim; next++) {
            const struct wf_split *s = &layout->splits[next];
            int32_t n = layout->ranks[s->axis];
            struct wf_comb comb;
            if (length == 0 || n == 1) continue;
            if (s->sizes == NULL)
                length = cut_comb(length, s->factor, n, coord[s->axis], &comb);
            else
                length = cut_listed(s, n, coord[s->axis], &comb);
            count = first + nest_comb(&out->combs[first], count - first, &comb);
        }
        if (length == 0) count = first;
        out->first_comb[dim] = first;
        out->shape[dim] = length;
        out->elements *= length;
        out->offset[dim] = layout->shape[dim];
        out->first_comb[dim + 1] = count;
        if (length > 0) {
            struct wf_index index = {length, count - first, &out->combs[first]};
            out->offset[dim] = wf_index_at(&index, 0);
        }
    }
}

/* The piece of part P; *START is its first index in the part. */
static int64_t piece_length(const struct wf_comb *comb, int64_t p, int64_t *start)
{
    return chunk_length(comb->parts[p], (int32_t)comb->ranks, (int32_t)comb->at, start);
}

/* comb_at for parts.  Pieces are adjacent where a part has one index. */
static int64_t parts_at(const struct wf_comb *comb, int64_t position, int64_t *length)
{
    int64_t begin = comb->first, left = position, value = 0, end = -1, start;

    for (int64_t p = 0; p < comb->part_count; begin += comb->parts[p++]) {
        int64_t take = piece_length(comb, p, &start);
        if (take == 0) continue;
        if (end >= 0 && begin + start != end) break;
        if (end < 0 && left >= take) {
            left -= take;
            continue;
        }
        if (end < 0) value = begin + start + left;
        end = begin + start + take;
    }
    *length = wf_min_i64(*length, end - value);
    return value;
}

/* comb_seek for parts. */
static int64_t parts_seek(const struct wf_comb *comb, int64_t value)
{
    int64_t begin = comb->first, position = 0, start;

    for (int64_t p = 0; p < comb->part_count && begin < value; begin += comb->parts[p++]) {
        int64_t take = piece_length(comb, p, &start);
        position += wf_max_i64(0, wf_min_i64(take, value - begin - start));
    }
    return position;
}

/* The value of COMB at POSITION; *LENGTH is reduced to the rest of the run there. */
static int64_t comb_at(const struct wf_comb *comb, int64_t position, int64_t *length)
{
    int64_t in_teeth = comb->teeth * comb->take, tooth, within;

    if (comb->teeth == 0) return parts_at(comb, position, length);
    if (position >= in_teeth) return comb->tail + (position - in_teeth);
    tooth = comb->teeth == 1 ? 0 : position / comb->take;
    within = position - tooth * comb->take;
    *length = wf_min_i64(*length, comb->take - within);
    return comb->first + tooth * comb->period + within;
}

/* Least position at which COMB is at least VALUE; the number of its positions if it never is. */
static int64_t comb_seek(const struct wf_comb *comb, int64_t value)
{
    int64_t in_teeth = comb->teeth * comb->take, past, tooth;

    if (comb->teeth == 0) return parts_seek(comb, value);
    if (value <= comb->first) return 0;
    /* the tail may begin less than PERIOD behind the last tooth */
    if (comb->tail_take > 0 && value > comb->tail)
        return in_teeth + wf_min_i64(value - comb->tail, comb->tail_take);
    past = value - comb->first;
    tooth = comb->teeth == 1 ? 0 : past / comb->period;
    if (tooth >= comb->teeth) return in_teeth;
    return tooth * comb->take + wf_min_i64(past - tooth * comb->period, comb->take);
}

int64_t wf_index_at(const struct wf_index *index, int64_t position)
{
    int64_t unlimited = INT64_MAX;

    for (int32_t i = index->depth - 1; i >= 0; i--)
        position = comb_at(&index->combs[i], position, &unlimited);
    return position;
}

int64_t wf_index_seek(const struct wf_index *index, int64_t global)
{
    int64_t at = wf_max_i64(global, 0);

    for (int32_t i = 0; i < index->depth; i++)
        at = comb_seek(&index->combs[i], at);
    return wf_min_i64(at, index->length);
}

bool wf_index_run(const struct wf_index *index, int64_t position, weft_index_run *out)
{
    int64_t length = index->length - position, at = position;

    if (position < 0 || length <= 0) return false;
    for (int32_t i = index->depth - 1; i >= 0; i--)
        at = comb_at(&index->combs[i], at, &length);
    *out = (weft_index_run){at, length};
    return true;
}

bool wf_index_overlap(const struct wf_index *a, const struct wf_index *b, int64_t from,
                      weft_intersection *out)
{
    int64_t at_a = wf_index_seek(a, from), at_b;
    weft_index_run run_a, run_b;

    while (wf_index_run(a, at_a, &run_a)) {
        at_b = wf_index_seek(b, run_a.start);
        if (!wf_index_run(b, at_b, &run_b)) return false;
        if (run_b.start < run_a.start + run_a.length) {
            int64_t skipped = run_b.start - run_a.start;
            *out =
                (weft_intersection){run_b.start, wf_min_i64(run_a.length - skipped, run_b.length),
                                    at_a + skipped, at_b};
            return true;
        }
        at_a = wf_index_seek(a, run_b.start);
    }
    return false;
}

int64_t wf_index_runs(const struct wf_index *index)
{
    int64_t runs = 1;

    /* a comb cuts the runs of the combs outside at its own gaps, so gaps add up */
    for (int32_t i = 0; i < index->depth; i++) {
        const struct wf_comb *comb = &index->combs[i];
        runs += comb->teeth == 0 ? comb->part_count - 1 : comb->teeth - 1 + (comb->tail_take > 0);
    }
    return index->length == 0 ? 0 : runs;
}

static int64_t count_in_run(const struct wf_index *index, const weft_index_run *run)
{
    return wf_index_seek(index, run->start + run->length) - wf_index_seek(index, run->start);
}

/* WALKED has no more runs than OTHER, or not many more. */
static int64_t count_by_runs(const struct wf_index *walked, const struct wf_index *other)
{
    int64_t last = wf_index_at(other, other->length - 1), sum = 0;
    weft_index_run run;

    for (int64_t at = wf_index_seek(walked, wf_index_at(other, 0));
         wf_index_run(walked, at, &run) && run.start <= last; at += run.length)
        sum += count_in_run(other, &run);
    return sum;
}

int64_t wf_index_common(const struct wf_index *a, const struct wf_index *b)
{
    weft_index_run run;

    if (!wf_index_run(a, 0, &run)) return 0;
    if (run.length == a->length) return count_in_run(b, &run);
    if (!wf_index_run(b, 0, &run)) return 0;
    if (run.length == b->length) return count_in_run(a, &run);
    return wf_index_runs(a) <= wf_index_runs(b) ? count_by_runs(a, b) : count_by_runs(b, a);
}

int64_t wf_index_common_about(const struct wf_index *a, const struct wf_index *b, int64_t runs_max)
{
    const struct wf_index *few = wf_index_runs(a) <= wf_index_runs(b) ? a : b;
    const struct wf_index *many = few == a ? b : a;
    int64_t spacing = few->length / runs_max, sum = 0, walked = 0;
    weft_index_run run;

    if (wf_index_runs(few) <= runs_max || spacing == 0) return wf_index_common(a, b);
    for (int64_t i = 0; i < runs_max && wf_index_run(few, i * spacing, &run); i++) {
        run.length = wf_min_i64(run.length, spacing);
        sum += count_in_run(many, &run);
        walked += run.length;
    }
    return wf_min_i64((int64_t)((wide)sum * few->length / walked), many->length);
}
