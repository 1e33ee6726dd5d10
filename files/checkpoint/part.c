/* part.c - parts of a tensor: specs from text, and the indices that two parts share, as boxes with
 * strides. */
#include "file.h"

weft_status wf_file_spec(const weft_mesh *mesh, size_t dtype, int32_t dims, const int64_t *shape,
                         const char *placements, weft_spec **out)
{
    uint32_t known = wf_file_dtype(dtype)->dtype;
    weft_spec *spec = NULL;

    WF_TRY(weft_spec_parse_placements(
        mesh, known < WEFT_DTYPE_COUNT ? (enum weft_dtype)known : WEFT_DTYPE_U8, dims, shape,
        placements, &spec));
    if (wf_spec_is_partial(spec)) {
        weft_spec_release(&spec);
        return wf_fail(WEFT_ERR_INVALID,
                       "the placements are %s; a checkpoint has no partial placement", placements);
    }
    *out = spec;
    return WEFT_OK;
}

bool wf_spec_is_partial(const weft_spec *spec)
{
    const weft_placement *placements = weft_spec_placements(spec);

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (placements[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

void wf_part_of_box(struct wf_part *part, int32_t dims, const int64_t *start, const int64_t *shape)
{
    part->dims = dims;
    part->is_box = true;
    part->start[0] = 0;
    for (int32_t d = 0; d < dims; d++) {
        part->start[d] = start != NULL ? start[d] : 0;
        part->shape[d] = shape[d];
        part->first[d] = 0;
    }
    part->end = dims > 0 ? part->start[0] + part->shape[0] : 1;
    wf_row_major(dims, shape, part->strides);
}

/* The index of dimension DIM at POSITION of a shard; past the last one, one more than that. */
static int64_t index_at(const struct wf_part *part, int32_t dim, int64_t position)
{
    weft_index_run run;

    if (weft_spec_run(part->spec, part->rank, dim, position, &run)) return run.start;
    return position > 0 && weft_spec_run(part->spec, part->rank, dim, position - 1, &run)
               ? run.start + 1
               : 0;
}

void wf_part_narrow(struct wf_part *part, const int64_t *first, const int64_t *sizes)
{
    for (int32_t d = 0; d < part->dims; d++) {
        part->first[d] = first != NULL ? first[d] : 0;
        part->shape[d] = sizes[d];
        part->start[d] = index_at(part, d, part->first[d]);
    }
    part->end = 1;
    if (part->dims > 0)
        part->end =
            part->shape[0] > 0 ? index_at(part, 0, part->first[0] + part->shape[0] - 1) + 1 : 0;
    wf_row_major(part->dims, part->shape, part->strides);
}

void wf_part_of_shard(struct wf_part *part, const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    part->start[0] = 0;
    part->dims = shard.dims;
    part->is_box = false;
    part->spec = spec;
    part->rank = rank;
    part->elements = shard.elements;
    wf_part_narrow(part, NULL, shard.shape);
}

/* The first indices of dimension DIM at or after FROM that both parts hold. */
static bool first_overlap(const struct wf_part *a, const struct wf_part *b, int32_t dim,
                          int64_t from, weft_intersection *out)
{
    const struct wf_part *box = a->is_box ? a : b, *other = a->is_box ? b : a;
    int64_t end, position;
    weft_intersection held;
    weft_index_run run;

    if (!a->is_box && !b->is_box)
        return weft_spec_intersection(a->spec, a->rank, b->spec, b->rank, dim, from, out);
    from = wf_max_i64(from, box->start[dim]);
    end = box->start[dim] + box->shape[dim];
    if (other->is_box) {
        from = wf_max_i64(from, other->start[dim]);
        end = wf_min_i64(end, other->start[dim] + other->shape[dim]);
        position = from - other->start[dim];
        run = (weft_index_run){from, end - from};
    } else {
        if (!weft_spec_intersection(other->spec, other->rank, other->spec, other->rank, dim, from,
                                    &held))
            return false;
        position = held.first;
        run = (weft_index_run){held.start, wf_min_i64(held.length, end - held.start)};
    }
    if (run.length <= 0) return false;
    *out = (weft_intersection){run.start, run.length, run.start - box->start[dim], position};
    if (box == b && !a->is_box)
        *out = (weft_intersection){run.start, run.length, out->second, out->first};
    return true;
}

/* Keep what of O, which begins at or after the first index of MEMORY, MEMORY has; false: nothing.
 */
static bool clip(const struct wf_part *memory, int32_t dim, weft_intersection *o)
{
    o->length = wf_min_i64(o->length, memory->first[dim] + memory->shape[dim] - o->second);
    return o->length > 0;
}

/* Boxes of the dimensions from DIM on, inside the box of the dimensions before it. */
static weft_status visit_from(const struct wf_part *file, const struct wf_part *memory, int32_t dim,
                              struct wf_block *block, wf_part_visit *visit, void *state)
{
    struct wf_block outer = *block;
    weft_intersection o;

    if (dim == file->dims) return visit(state, block);
    for (int64_t at = memory->start[dim]; first_overlap(file, memory, dim, at, &o);
         at = o.start + o.length) {
        if (!clip(memory, dim, &o)) break;
        *block = outer;
        block->shape[dim] = o.length;
        block->file_strides[dim] = file->strides[dim];
        block->memory_strides[dim] = memory->strides[dim];
        block->file += o.first * file->strides[dim];
        block->memory += (o.second - memory->first[dim]) * memory->strides[dim];
        WF_TRY(visit_from(file, memory, dim + 1, block, visit, state));
    }
    return WEFT_OK;
}

static bool is_empty(const struct wf_part *part)
{
    for (int32_t d = 0; d < part->dims; d++)
        if (part->shape[d] == 0) return true;
    return !part->is_box && part->elements == 0;
}

weft_status wf_part_overlaps(const struct wf_part *file, const struct wf_part *memory,
                             wf_part_visit *visit, void *state)
{
    struct wf_block block = {.dims = file->dims};

    if (is_empty(file) || is_empty(memory)) return WEFT_OK;
    return visit_from(file, memory, 0, &block, visit, state);
}
