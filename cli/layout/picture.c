/* picture.c - finds the cells of a layout and names their holders. */
#include "layout/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY_COPIES = 256 }; /* the most copies that are examined one by one */

/* ---- bands ---- */

static bool splits_any(const weft_spec *spec, int32_t axis)
{
    uint32_t kind = weft_spec_placements(spec)[axis].kind;

    return kind == WEFT_PLACE_SHARD || kind == WEFT_PLACE_STRIDED || kind == WEFT_PLACE_PARTS ||
           kind == WEFT_PLACE_SIZES;
}

/* Set COORD to the owner's on the axes that have one. */
static void enter_owners(const weft_spec *spec, int32_t *coord)
{
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_OWNER)
            coord[i] = weft_spec_placements(spec)[i].owner;
}

/* Ranks along the axes that have an owner. */
static int32_t ranks_per_owner(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t ranks = 1;

    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_OWNER)
            ranks *= weft_mesh_axis_size(mesh, i);
    return ranks;
}

static bool splits(const weft_spec *spec, int32_t axis, int32_t dim)
{
    return splits_any(spec, axis) && weft_spec_placements(spec)[axis].dim == dim;
}

/* Next coordinate on the axes that split DIM; false after the last. */
static bool next_owner(const weft_spec *spec, int32_t dim, int32_t *coord)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t i = weft_mesh_axes(mesh) - 1; i >= 0; i--) {
        if (!splits(spec, i, dim)) continue;
        if (++coord[i] < weft_mesh_axis_size(mesh, i)) return true;
        coord[i] = 0;
    }
    return false;
}

static int by_start(const void *a, const void *b)
{
    const struct band *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static weft_status add_bands(const weft_spec *spec, const int32_t *coord, struct bands *bands,
                             int64_t *owned)
{
    weft_shard shard;
    weft_index_run run;
    int32_t rank, at_owner[WEFT_MAX_AXES];

    memcpy(at_owner, coord, sizeof at_owner);
    enter_owners(spec, at_owner);
    WF_TRY(weft_mesh_rank(weft_spec_mesh(spec), at_owner, &rank));
    weft_spec_shard(spec, rank, &shard);
    bands->owners += shard.shape[bands->dim] > 0;
    *owned += shard.shape[bands->dim];
    for (int64_t at = 0; weft_spec_run(spec, rank, bands->dim, at, &run); at += run.length) {
        if (bands->count == PICTURE_BANDS)
            return wf_fail(WEFT_ERR_UNSUPPORTED,
                           "cannot draw the layout: dimension %d has more than %d pieces",
                           bands->dim, PICTURE_BANDS);
        bands->at[bands->count] = (struct band){.start = run.start, .length = run.length};
        memcpy(bands->at[bands->count++].coord, coord, sizeof bands->at[0].coord);
    }
    return WEFT_OK;
}

static weft_status find_bands(const weft_spec *spec, int32_t dim, struct bands *out)
{
    int32_t coord[WEFT_MAX_AXES] = {0};
    int64_t owned = 0;

    *out = (struct bands){.dim = dim, .size = dim >= 0 ? weft_spec_shape(spec)[dim] : 1};
    out->at = wf_alloc(PICTURE_BANDS * sizeof *out->at);
    if (out->at == NULL) return wf_fail_memory(PICTURE_BANDS * sizeof *out->at);
    if (dim < 0) {
        out->at[out->count++] = (struct band){.start = 0, .length = 1};
        out->owners = 1;
        return WEFT_OK;
    }
    do { /* until all indices have an owner; the other coordinates hold nothing */
        weft_status status = add_bands(spec, coord, out, &owned);
        if (status != WEFT_OK) {
            wf_free(out->at);
            return status;
        }
    } while (owned < out->size && next_owner(spec, dim, coord));
    qsort(out->at, (size_t)out->count, sizeof *out->at, by_start);
    return WEFT_OK;
}

weft_status picture_cut(struct bands *bands)
{
    struct band *cut = wf_alloc((size_t)bands->size * sizeof *cut);
    int32_t count = 0;

    if (cut == NULL) return wf_fail_memory((size_t)bands->size * sizeof *cut);
    for (int32_t i = 0; i < bands->count; i++)
        for (int64_t j = 0; j < bands->at[i].length; j++) {
            cut[count] = bands->at[i];
            cut[count].start += j;
            cut[count++].length = 1;
        }
    wf_free(bands->at);
    bands->at = cut;
    bands->count = count;
    return WEFT_OK;
}

/* ---- pictures ---- */

/* Choose the dimensions to draw. */
static weft_status choose_dims(const weft_spec *spec, int32_t *row, int32_t *column)
{
    int32_t chosen[2] = {-1, -1}, count = 0, dims = weft_spec_dims(spec);

    if (dims <= 2) {
        *row = dims == 2 ? 0 : -1;
        *column = dims - 1;
        return WEFT_OK;
    }
    for (int32_t d = 0; d < dims; d++)
        for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++) {
            if (!splits(spec, i, d)) continue;
            if (count == 2)
                return wf_fail(WEFT_ERR_UNSUPPORTED,
                               "cannot draw the layout: more than two dimensions are split");
            chosen[count++] = d;
            break;
        }
    *row = count == 2 ? chosen[0] : -1;
    *column = count == 2 ? chosen[1] : count == 1 ? chosen[0] : dims - 1;
    return WEFT_OK;
}

weft_status picture_create(const weft_spec *spec, struct picture *out)
{
    struct picture made = {.spec = spec, .colours = 1};
    int32_t row = 0, column = 0;
    weft_status status;

    WF_TRY(choose_dims(spec, &row, &column));
    if (weft_spec_elements(spec) == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "cannot draw the layout: the tensor has no elements");
    WF_TRY(find_bands(spec, row, &made.rows));
    status = find_bands(spec, column, &made.columns);
    if (status != WEFT_OK) {
        wf_free(made.rows.at);
        return status;
    }
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++)
        if (splits_any(spec, i)) made.colours *= weft_mesh_axis_size(weft_spec_mesh(spec), i);
    *out = made;
    return WEFT_OK;
}

void picture_free(struct picture *picture)
{
    wf_free(picture->rows.at);
    wf_free(picture->columns.at);
}

/* ---- cells ---- */

static void cell_coord(const struct picture *picture, int32_t row, int32_t column, int32_t *coord)
{
    for (int32_t i = 0; i < WEFT_MAX_AXES; i++)
        coord[i] = picture->rows.at[row].coord[i] + picture->columns.at[column].coord[i];
    enter_owners(picture->spec, coord);
}

int32_t picture_colour(const struct picture *picture, int32_t row, int32_t column)
{
    const weft_mesh *mesh = weft_spec_mesh(picture->spec);
    int32_t coord[WEFT_MAX_AXES], colour = 0;

    cell_coord(picture, row, column, coord);
    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        if (splits_any(picture->spec, i)) colour = colour * weft_mesh_axis_size(mesh, i) + coord[i];
    return colour;
}

/* Next coordinate on the axes that neither split nor have an owner; false after the last. */
static bool next_copy(const weft_spec *spec, int32_t *coord)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t i = weft_mesh_axes(mesh) - 1; i >= 0; i--) {
        if (splits_any(spec, i) || weft_spec_placements(spec)[i].kind == WEFT_PLACE_OWNER) continue;
        if (++coord[i] < weft_mesh_axis_size(mesh, i)) return true;
        coord[i] = 0;
    }
    return false;
}

int32_t picture_contributions(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t count = 1;

    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_PARTIAL)
            count *= weft_mesh_axis_size(mesh, i);
    return count;
}

const char *picture_reduction(const weft_spec *spec)
{
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_PARTIAL)
            return wf_reduction_name(weft_spec_placements(spec)[i].reduction);
    return "";
}

void picture_explain(const weft_spec *spec, struct wf_text *out)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t copies = 1, contributions = picture_contributions(spec);

    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_REPLICATE)
            copies *= weft_mesh_axis_size(mesh, i);
    if (contributions > 1)
        wf_text_add(out, "the %s of %d ranks' contributions is the tensor", picture_reduction(spec),
                    contributions);
    if (contributions > 1 && copies > 1) wf_text_add(out, "; ");
    if (copies > 1)
        wf_text_add(out, "%d ranks hold %s", copies,
                    contributions > 1 ? "a copy of each" : "copies of each cell");
}

static int32_t rank_of(const weft_mesh *mesh, const int32_t *coord)
{
    int32_t rank = -1;

    return weft_mesh_rank(mesh, coord, &rank) == WEFT_OK ? rank : -1;
}

/* Add the ranks from COORD on, as "0-3" or "1,5". */
static void label_ranks(const struct picture *picture, int32_t *coord, char *label)
{
    const weft_mesh *mesh = weft_spec_mesh(picture->spec);
    int32_t copies = weft_mesh_size(mesh) / picture->colours / ranks_per_owner(picture->spec);
    int32_t first = rank_of(mesh, coord), last = 0, begin = 0;
    int used = 0;

    if (copies > MANY_COPIES) {
        snprintf(label, PICTURE_LABEL, "%d +%d", first, copies - 1);
        return;
    }
    do {
        int32_t rank = rank_of(mesh, coord);
        if (used > 0 && rank == last + 1) {
            last = rank;
            continue;
        }
        if (used > 0 && last > begin)
            used += snprintf(label + used, (size_t)(PICTURE_LABEL - used), "-%d", last);
        if (used <= PICTURE_LABEL_WIDTH)
            used += snprintf(label + used, (size_t)(PICTURE_LABEL - used), "%s%d",
                             used > 0 ? "," : "", rank);
        begin = last = rank;
    } while (used <= PICTURE_LABEL_WIDTH && next_copy(picture->spec, coord));
    if (used <= PICTURE_LABEL_WIDTH && last > begin)
        used += snprintf(label + used, (size_t)(PICTURE_LABEL - used), "-%d", last);
    if (used > PICTURE_LABEL_WIDTH) snprintf(label, PICTURE_LABEL, "%d +%d", first, copies - 1);
}

void picture_label(const struct picture *picture, int32_t row, int32_t column, char *label)
{
    int32_t coord[WEFT_MAX_AXES];
    char ranks[PICTURE_LABEL];

    cell_coord(picture, row, column, coord);
    label_ranks(picture, coord, ranks);
    if (picture_contributions(picture->spec) > 1)
        snprintf(label, PICTURE_LABEL, "%s %s", picture_reduction(picture->spec), ranks);
    else
        snprintf(label, PICTURE_LABEL, "%s", ranks);
}

int32_t picture_idle_ranks(const struct picture *picture)
{
    int32_t ranks = weft_mesh_size(weft_spec_mesh(picture->spec));

    return ranks - ranks / picture->colours / ranks_per_owner(picture->spec) *
                       picture->rows.owners * picture->columns.owners;
}

/* ---- colours ---- */

static const struct rgb palette[] = {
    {0x8e, 0xc5, 0xf4}, {0xff, 0xc0, 0x86}, {0x9b, 0xdd, 0xa6}, {0xf5, 0xa3, 0xb0},
    {0xc6, 0xb4, 0xf0}, {0xf6, 0xe0, 0x7f}, {0x8f, 0xdd, 0xd8}, {0xf0, 0xb4, 0xdf},
    {0xc9, 0xd8, 0x86}, {0xd9, 0xbf, 0xa5}, {0xb3, 0xc3, 0xd6}, {0xe3, 0xa9, 0x8e},
};

static uint8_t dimmed(uint8_t value, int32_t round)
{
    int32_t darker = value - 22 * (round % 4);

    return (uint8_t)(darker > 0 ? darker : 0);
}

struct rgb picture_rgb(int32_t index)
{
    int32_t count = (int32_t)WF_COUNT(palette);
    struct rgb c = palette[index % count];
    int32_t round = index / count;

    return (struct rgb){dimmed(c.red, round), dimmed(c.green, round), dimmed(c.blue, round)};
}
