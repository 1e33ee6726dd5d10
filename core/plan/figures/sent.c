/* sent.c - exactly how many bytes a rank sends in a step.
 *
 * A rank sends the elements of its shard that others read from it.  On one mesh, a reader has the
 * sender's coordinate on axes where the source is replicated, or stays partial, and any coordinate
 * on the other axes.  Readers that differ only in axes that split the target, inside of all axes
 * with the sender's coordinate, read disjoint parts of one larger shard, which is counted at
 * once. */
#include "figures.h"

#include <string.h>

/* One dimension of a step of one mesh. */
struct given {
    struct wf_table table;   /* by coordinate of the sender */
    struct wf_layout merged; /* the target without the splits of readers that are counted at once */
    uint32_t listed;         /* axes whose readers are counted one by one */
    int64_t *counts;
};

struct sender {
    const struct wf_step *step;
    uint32_t same; /* axes on which a reader has the sender's coordinate */
    uint32_t made;
    uint64_t copies; /* readers of the same elements */
    struct given dim[WEFT_MAX_DIMS];
    int64_t entries;  /* of all tables */
    int64_t compared; /* shards of senders and readers */
    int64_t *room;
};

static void set_relations(struct sender *s)
{
    const struct wf_layout *from = &s->step->from->layout, *to = &s->step->to->layout;

    s->copies = 1;
    s->made = wf_step_made(s->step);
    for (int32_t a = 0; a < to->mesh->axes; a++) {
        uint32_t kind = to->placements[a].kind;
        if (from->placements[a].kind == WEFT_PLACE_REPLICATE || wf_step_keeps_partial(s->step, a))
            s->same |= UINT32_C(1) << a;
        else if (kind == WEFT_PLACE_REPLICATE ||
                 (kind == WEFT_PLACE_PARTIAL && !(s->made >> a & 1)))
            s->copies *= (uint64_t)to->mesh->axis[a].size;
    }
}

/* Drop the innermost splits of dimension DIM whose axes are not in SAME. */
static uint32_t drop_splits(struct wf_layout *layout, int32_t dim, uint32_t same)
{
    uint32_t dropped = 0;
    int32_t last = layout->split_count - 1;

    while (last >= 0 && layout->splits[last].dim != dim)
        last--;
    for (; last >= 0 && layout->splits[last].dim == dim; last--) {
        uint32_t axis = UINT32_C(1) << layout->splits[last].axis;
        if (same & axis) break;
        dropped |= axis;
        for (int32_t i = last; i + 1 < layout->split_count; i++)
            layout->splits[i] = layout->splits[i + 1];
        layout->split_count--;
    }
    return dropped;
}

static void set_dim(const struct sender *s, int32_t dim, struct given *out)
{
    const struct wf_layout *from = &s->step->from->layout, *to = &s->step->to->layout;
    uint32_t readers = wf_layout_axes(to, dim);

    out->merged = *to;
    readers &= ~drop_splits(&out->merged, dim, s->same);
    out->listed = readers & ~s->same;
    wf_table_set(&out->table, to->mesh, wf_layout_axes(from, dim) | (readers & s->same));
}

static void fill_dim(const struct sender *s, int32_t dim, struct given *given)
{
    const struct wf_layout *from = &s->step->from->layout;
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard has, read;
    int64_t i = 0;

    do {
        int32_t reader[WEFT_MAX_AXES];
        wf_shard_at(from, coord, &has);
        for (int32_t a = 0; a < from->mesh->axes; a++)
            reader[a] = given->listed >> a & 1 ? 0 : coord[a];
        given->counts[i] = 0;
        do {
            wf_shard_at(&given->merged, reader, &read);
            given->counts[i] += wf_shards_common(&has, &read, dim);
        } while (wf_coord_next(from->mesh, given->listed, reader));
        i++;
    } while (wf_coord_next(from->mesh, given->table.axes, coord));
}

static void set_sender(struct sender *s)
{
    const weft_mesh *mesh = s->step->to->layout.mesh;

    set_relations(s);
    for (int32_t d = 0; d < wf_table_dims(&s->step->to->layout); d++) {
        int64_t readers = 1;
        set_dim(s, d, &s->dim[d]);
        for (int32_t a = 0; a < mesh->axes; a++)
            if (s->dim[d].listed >> a & 1) readers *= mesh->axis[a].size;
        s->entries += s->dim[d].table.count;
        s->compared += s->dim[d].table.count * readers;
    }
}

static weft_status fill_sender(struct sender *s)
{
    int32_t dims = wf_table_dims(&s->step->to->layout);
    int64_t *room = wf_alloc((size_t)s->entries * sizeof *room);

    s->room = room;
    if (room == NULL) return wf_fail_memory((size_t)s->entries * sizeof *room);
    for (int32_t d = 0; d < dims; d++) {
        s->dim[d].counts = room;
        room += s->dim[d].table.count;
        fill_dim(s, d, &s->dim[d]);
    }
    return WEFT_OK;
}

/* Elements that the rank at COORD gives to all readers, itself included. */
static uint64_t given_at(const struct sender *s, const int32_t *coord)
{
    const weft_mesh *mesh = s->step->to->layout.mesh;
    uint64_t given = s->copies;

    for (int32_t a = 0; a < mesh->axes; a++)
        if ((s->made & s->same) >> a & 1 && coord[a] != 0) return 0;
    for (int32_t d = 0; d < wf_table_dims(&s->step->to->layout); d++) {
        const struct wf_table *table = &s->dim[d].table;
        int64_t at = 0;
        for (int32_t a = 0; a < mesh->axes; a++)
            at += (int64_t)table->stride[a] * coord[a];
        given = wf_mul_capped(given, (uint64_t)s->dim[d].counts[at]);
    }
    return given;
}

/* Elements that the rank at COORD reads from itself. */
static uint64_t kept_at(const struct sender *s, const int32_t *coord)
{
    const struct wf_layout *to = &s->step->to->layout;
    struct wf_shard has, wants;
    uint64_t kept = 1;

    for (int32_t a = 0; a < to->mesh->axes; a++)
        if ((s->made >> a & 1) && coord[a] != 0) return 0;
    wf_shard_at(&s->step->from->layout, coord, &has);
    wf_shard_at(to, coord, &wants);
    for (int32_t d = 0; d < wf_table_dims(to); d++)
        kept *= (uint64_t)wf_shards_common(&has, &wants, d);
    return kept;
}

/* *EXACT is false, and *ELEMENTS unchanged, if too many shards differ. */
static weft_status send_on_one_mesh(const struct wf_step *step, uint64_t *elements, bool *exact)
{
    struct sender s = {.step = step};
    struct wf_visit visit;

    *exact = wf_visit_distinct(&visit, step, 1) <= WF_DISTINCT_MAX;
    if (!*exact) return WEFT_OK;
    set_sender(&s);
    *exact = wf_steps_walk(step, 1, s.compared);
    if (!*exact) return WEFT_OK;
    WF_TRY(fill_sender(&s));
    *elements = 0;
    while (wf_visit_next(&visit)) {
        uint64_t given = given_at(&s, visit.target);
        if (given <= *elements) continue;
        given = wf_sub_capped(given, kept_at(&s, visit.target));
        if (given > *elements) *elements = given;
    }
    wf_free(s.room);
    return WEFT_OK;
}

/* ---- between meshes ---- */

static bool source_splits(const struct wf_layout *from, int32_t dim)
{
    for (int32_t i = 0; i < from->split_count; i++)
        if (from->splits[i].dim == dim) return true;
    return false;
}

/* Rank of the reader at COORD of the target's mesh, such that readers of the same source shard are
 * consecutive where possible; replicas are then assigned round-robin.  Axes that split a dimension
 * which the source splits too come first, in the order of their splits. */
static uint64_t turn_of(const struct wf_layout *from, const struct wf_layout *to,
                        const int32_t *coord)
{
    uint32_t counted = 0;
    uint64_t turn = 0;

    for (int32_t i = 0; i < to->split_count; i++) {
        int32_t axis = to->splits[i].axis;
        if (!source_splits(from, to->splits[i].dim)) continue;
        turn = turn * (uint64_t)to->mesh->axis[axis].size + (uint64_t)coord[axis];
        counted |= UINT32_C(1) << axis;
    }
    for (int32_t a = 0; a < to->mesh->axes; a++)
        if (!(counted >> a & 1))
            turn = turn * (uint64_t)to->mesh->axis[a].size + (uint64_t)coord[a];
    return turn;
}

void wf_copy_choose(const weft_spec *from, const weft_spec *to, int32_t rank,
                    const int32_t *target_coord, int32_t *coord)
{
    const weft_mesh *mesh = from->layout.mesh;
    uint64_t turn;

    if (wf_mesh_coord(mesh, rank, coord)) return;
    turn = turn_of(&from->layout, &to->layout, target_coord);
    for (int32_t a = mesh->axes - 1; a >= 0; a--) {
        uint64_t size = (uint64_t)mesh->axis[a].size;
        coord[a] = 0;
        if (from->layout.placements[a].kind != WEFT_PLACE_REPLICATE) continue;
        coord[a] = (int32_t)(turn % size);
        turn /= size;
    }
}

void wf_copy_revive(const struct wf_layout *from, int32_t living, int32_t *coord)
{
    const weft_mesh *mesh = from->mesh;
    uint32_t axes = 0;
    int64_t replicas = 1;

    if (living == 0 || wf_mesh_rank(mesh, coord) < living) return;
    for (int32_t a = 0; a < mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_REPLICATE) {
            axes |= UINT32_C(1) << a;
            replicas *= mesh->axis[a].size;
        }
    /* wf_coord_next begins again behind the last one */
    for (int64_t i = 0; i < replicas && wf_mesh_rank(mesh, coord) >= living; i++)
        (void)wf_coord_next(mesh, axes, coord);
}

static int32_t position_at(const weft_mesh *mesh, const int32_t *coord)
{
    int32_t position = 0;

    for (int32_t a = 0; a < mesh->axes; a++)
        position = position * mesh->axis[a].size + coord[a];
    return position;
}

/* Add the elements that the reader at TARGET reads from each rank to SENT, by position. */
static void add_reader(const struct wf_step *step, int32_t rank, const int32_t *target,
                       uint64_t *sent)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    int32_t source[WEFT_MAX_AXES], holder[WEFT_MAX_AXES];
    uint32_t axes = 0, made = wf_step_made(step);
    struct wf_shard has, wants;

    for (int32_t a = 0; a < to->mesh->axes; a++)
        if ((made >> a & 1) && target[a] != 0) return;
    wf_copy_choose(step->from, step->to, rank, target, source);
    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind != WEFT_PLACE_REPLICATE) {
            axes |= UINT32_C(1) << a;
            source[a] = 0;
        }
    wf_shard_at(to, target, &wants);
    do {
        uint64_t common = 1;
        memcpy(holder, source, sizeof holder);
        wf_copy_revive(from, step->living, holder);
        if (wf_mesh_rank(from->mesh, holder) == rank) continue;
        wf_shard_at(from, holder, &has);
        for (int32_t d = 0; d < wf_table_dims(to) && common > 0; d++)
            common *= (uint64_t)wf_shards_common(&has, &wants, d);
        sent[position_at(from->mesh, holder)] += common;
    } while (wf_coord_next(from->mesh, axes, source));
}

/* The elements that each rank of the source's mesh sends, by position.  The caller frees *OUT. */
static weft_status list_senders(const struct wf_step *step, uint64_t **out)
{
    size_t ranks = (size_t)step->from->layout.mesh->size;
    uint64_t *sent = wf_calloc(ranks, sizeof *sent);
    struct wf_visit visit;

    if (sent == NULL) return wf_fail_memory(ranks * sizeof *sent);
    wf_visit_readers(&visit, step, INT32_MAX);
    while (wf_visit_next(&visit))
        add_reader(step, visit.rank, visit.target, sent);
    *out = sent;
    return WEFT_OK;
}

/* As send_on_one_mesh. */
static weft_status send_between_meshes(const struct wf_step *step, uint64_t *elements, bool *exact)
{
    int64_t from = step->from->layout.mesh->size, to = step->to->layout.mesh->size;
    uint64_t *sent = NULL;

    *exact = from <= WF_LISTED_RANKS && to <= WF_LISTED_RANKS && wf_steps_walk(step, 1, from * to);
    if (!*exact) return WEFT_OK;
    WF_TRY(list_senders(step, &sent));
    *elements = 0;
    for (int64_t i = 0; i < from; i++)
        if (sent[i] > *elements) *elements = sent[i];
    wf_free(sent);
    return WEFT_OK;
}

/* ---- each rank ---- */

/* STEP is on one mesh. */
static weft_status add_senders(const struct wf_step *step, uint64_t *sent)
{
    uint64_t element = wf_dtype_bytes(wf_step_dtype(step));
    struct sender s = {.step = step};
    struct wf_visit visit;

    set_sender(&s);
    WF_TRY(fill_sender(&s));
    wf_visit_ranks(&visit, step);
    while (wf_visit_next(&visit)) {
        uint64_t *mine = &sent[visit.rank];
        uint64_t given = wf_sub_capped(given_at(&s, visit.target), kept_at(&s, visit.target));
        *mine = wf_add_capped(*mine, wf_mul_capped(given, element));
    }
    wf_free(s.room);
    return WEFT_OK;
}

weft_status wf_exchange_add_sent(const struct wf_step *step, uint64_t *sent)
{
    const weft_mesh *from = step->from->layout.mesh;
    uint64_t element = wf_dtype_bytes(wf_step_dtype(step)), *elements = NULL;

    if (from == step->to->layout.mesh) return add_senders(step, sent);
    WF_TRY(list_senders(step, &elements));
    for (int32_t i = 0; i < from->size; i++) {
        uint64_t *mine = &sent[weft_mesh_rank_at(from, i)];
        *mine = wf_add_capped(*mine, wf_mul_capped(elements[i], element));
    }
    wf_free(elements);
    return WEFT_OK;
}

/* True if the price of STEP has the exact number. */
static bool is_priced(const struct wf_step *step)
{
    return wf_step_stays(step) ||
           (step->kind != WEFT_STEP_EXCHANGE && step->kind != WEFT_STEP_PERMUTE &&
            wf_layout_is_regular(&step->from->layout) && wf_layout_is_regular(&step->to->layout));
}

weft_status wf_step_sent(const struct wf_step *step, uint64_t *bytes, bool *exact)
{
    const weft_mesh *from = step->from->layout.mesh, *to = step->to->layout.mesh;
    uint64_t elements;

    *exact = true;
    *bytes = step->sent;
    if (step->kind == WEFT_STEP_ALL_REDUCE) {
        *bytes = step->received; /* each rank sends as much as it receives */
        return WEFT_OK;
    }
    if (is_priced(step)) return WEFT_OK;
    WF_TRY(from == to ? send_on_one_mesh(step, &elements, exact)
                      : send_between_meshes(step, &elements, exact));
    if (!*exact) return WEFT_OK;
    *bytes = wf_mul_capped(elements, wf_dtype_bytes(wf_step_dtype(step)));
    return WEFT_OK;
}
