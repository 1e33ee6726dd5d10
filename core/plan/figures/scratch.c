/* scratch.c - exactly how much scratch binding a step takes.
 *
 * Scratch holds the input and the output of a step, unless they are the caller's, and messages that
 * do not lie in them.  A backend whose ranks read each other's memory has no messages.  Others send
 * messages from the tensor itself if each of them is one run of it, and receive into it likewise;
 * otherwise all messages of that side are staged (see core/exec/packing.c).  Reduce-scatters of
 * equal shards reduce on the way; with unequal shards, contributions arrive and are staged. */
#include "figures.h"

#include <string.h>

/* ---- one rank ---- */

enum { TABLE_RANKS = 64 };
/* Shards of the source's or of the target's mesh; NULL if it has many ranks. */
struct table {
    uint64_t known; /* bit per rank */
    struct wf_shard *shards;
};

/* One rank's part of a step. */
struct part {
    const struct wf_step *step;
    struct table *tables; /* of the source and of the target */
    bool is_cast[2];      /* outgoing, incoming messages change the dtype as they are packed */
    bool gathers, scatters;
    uint64_t holders;
    uint32_t made, same; /* as in sent.c */
    bool alike;          /* all ranks have equal shards, and all messages of a side are equal */
    int64_t weight;      /* of a message: those with many runs take longer */
    int64_t messages;    /* compared so far, by weight */
};

/* The shard of LAYOUT, one of the step's, at COORD: from the table, or in ROOM. */
static const struct wf_shard *find_shard(const struct part *part, const struct wf_layout *layout,
                                         const int32_t *coord, struct wf_shard *room)
{
    struct table *table = &part->tables[layout == &part->step->to->layout];
    int32_t at = 0;

    if (table->shards == NULL) {
        wf_shard_at(layout, coord, room);
        return room;
    }
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        at = at * (int32_t)layout->mesh->axis[a].size + coord[a];
    if (!(table->known >> at & 1)) wf_shard_at(layout, coord, &table->shards[at]);
    table->known |= UINT64_C(1) << at;
    return &table->shards[at];
}

/* All messages of one side. */
struct side {
    uint64_t elements;
    bool in_tensor;
    int64_t rank; /* number of the next one in the group */
};

static void add_message(struct side *side, const struct wf_shard *mine,
                        const struct wf_shard *theirs, struct wf_cuts *cuts, bool in_order)
{
    struct wf_message m;

    wf_message_lay(mine, theirs, cuts, &m);
    side->elements = wf_add_capped(side->elements, m.elements);
    if (m.elements > 0) side->in_tensor = side->in_tensor && m.in_run;
    if (in_order)
        side->in_tensor =
            side->in_tensor && (m.elements > 0 ? m.offset : 0) == side->rank * (int64_t)m.elements;
    side->rank++;
}

static uint64_t staged_of(const struct side *side)
{
    return side->in_tensor ? 0 : side->elements;
}

/* True if all members of the group of the rank at COORD have equally many elements of LAYOUT. */
static bool shares_evenly(const struct part *part, const struct wf_layout *layout,
                          const int32_t *coord)
{
    int32_t member[WEFT_MAX_AXES];
    struct wf_shard room;
    int64_t elements = -1;

    if (part->alike) return true;
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        member[a] = part->step->axes >> a & 1 ? 0 : coord[a];
    do {
        const struct wf_shard *shard = find_shard(part, layout, member, &room);
        if (elements >= 0 && shard->elements != elements) return false;
        elements = shard->elements;
    } while (wf_coord_next(layout->mesh, part->step->axes, member));
    return true;
}

/* As add_group, where all messages are equal.  Their offsets grow linearly along each axis, so the
 * second message along it shows whether they are in order.  MEMBER is the first rank. */
static void add_alike(struct part *part, const struct wf_shard *mine,
                      const struct wf_layout *layout, int32_t *member, uint32_t axes, bool in_order,
                      struct side *side)
{
    struct wf_cuts cuts = {0};
    struct wf_shard theirs;
    uint64_t each;
    int64_t ranks = 1;

    wf_shard_at(layout, member, &theirs);
    add_message(side, mine, &theirs, &cuts, in_order);
    each = side->elements;
    for (int32_t a = layout->mesh->axes - 1; a >= 0; a--) {
        if (!(axes >> a & 1) || layout->mesh->axis[a].size == 1) continue;
        member[a] = 1;
        side->rank = ranks;
        wf_shard_at(layout, member, &theirs);
        add_message(side, mine, &theirs, &cuts, in_order);
        member[a] = 0;
        ranks *= layout->mesh->axis[a].size;
    }
    side->elements = wf_mul_capped(each, (uint64_t)ranks);
    part->messages++;
}

/* Messages between the shard MINE and those in LAYOUT of the ranks that differ from COORD in
 * AXES. */
static void add_group(struct part *part, const struct wf_shard *mine,
                      const struct wf_layout *layout, const int32_t *coord, uint32_t axes,
                      bool in_order, struct side *side)
{
    int32_t member[WEFT_MAX_AXES];
    struct wf_shard room;
    struct wf_cuts cuts;

    cuts.fixed = cuts.done = 0;
    for (int32_t d = 0; d < layout->dims; d++)
        if (!(wf_layout_axes(layout, d) & axes)) cuts.fixed |= UINT32_C(1) << d;
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        member[a] = axes >> a & 1 ? 0 : coord[a];
    if (part->alike) {
        add_alike(part, mine, layout, member, axes, in_order, side);
        return;
    }
    do {
        add_message(side, mine, find_shard(part, layout, member, &room), &cuts, in_order);
        part->messages += part->weight;
    } while (wf_coord_next(layout->mesh, axes, member));
}

static bool gets_identity(const struct part *part, const int32_t *target)
{
    for (int32_t a = 0; a < part->step->to->layout.mesh->axes; a++)
        if ((part->made >> a & 1) && target[a] != 0) return true;
    return false;
}

/* Messages to the ranks that read from the rank at COORD. */
static void add_readers(struct part *part, const struct wf_shard *has, const int32_t *coord,
                        struct side *side)
{
    const struct wf_layout *to = &part->step->to->layout;
    int32_t reader[WEFT_MAX_AXES];

    memcpy(reader, coord, sizeof reader);
    for (int32_t a = 0; a < to->mesh->axes; a++)
        if ((part->made >> a & 1) && coord[a] != 0) {
            if (part->same >> a & 1) return; /* the replica at coordinate 0 serves */
            reader[a] = 0;
        }
    /* data moves only within the groups of the step's axes */
    add_group(part, has, to, reader, part->step->axes & ~part->same & ~part->made, false, side);
}

/* As add_readers, between two meshes. */
static void add_readers_across(struct part *part, const struct wf_shard *has, const int32_t *coord,
                               struct side *side)
{
    const weft_spec *from = part->step->from, *to = part->step->to;
    int32_t target[WEFT_MAX_AXES], source[WEFT_MAX_AXES];
    struct wf_shard wants;
    struct wf_cuts cuts;

    cuts.fixed = cuts.done = 0;
    for (int32_t i = 0; i < to->layout.mesh->size; i++) {
        bool reads = true;
        wf_mesh_coord_at(to->layout.mesh, i, target);
        wf_copy_choose(from, to, weft_mesh_rank_at(to->layout.mesh, i), target, source);
        for (int32_t a = 0; a < from->layout.mesh->axes; a++)
            if (from->layout.placements[a].kind != WEFT_PLACE_REPLICATE) source[a] = coord[a];
        wf_copy_revive(&from->layout, part->step->living, source);
        for (int32_t a = 0; a < from->layout.mesh->axes; a++)
            reads = reads && source[a] == coord[a];
        part->messages += part->weight;
        if (!reads || gets_identity(part, target)) continue;
        add_message(side, has, find_shard(part, &to->layout, target, &wants), &cuts, false);
    }
}

/* Messages from the ranks that the rank at TARGET reads.  SOURCE: the replica that it reads. */
static void add_sources(struct part *part, const struct wf_shard *wants, const int32_t *source,
                        struct side *side)
{
    const struct wf_layout *from = &part->step->from->layout;
    uint32_t axes = 0;

    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind != WEFT_PLACE_REPLICATE &&
            from->placements[a].kind != WEFT_PLACE_PARTIAL)
            axes |= UINT32_C(1) << a;
    if (from->mesh == part->step->to->layout.mesh) axes &= part->step->axes;
    add_group(part, wants, from, source, axes, false, side);
    side->elements = wf_mul_capped(side->elements, part->holders);
    side->in_tensor = side->in_tensor && part->holders == 1;
}

/* ---- a step ---- */

enum { WEIGHED_RUNS = 64 }; /* comparing so many runs takes as long as comparing a message */

static bool is_collective(const struct wf_step *step)
{
    return step->kind != WEFT_STEP_EXCHANGE && step->kind != WEFT_STEP_PERMUTE;
}

static void open_part(struct part *part, const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    *part = (struct part){.step = step,
                          .gathers = wf_step_gathers_shards(step),
                          .scatters = wf_step_scatters_shards(step),
                          .holders = wf_step_holders(step),
                          .made = wf_step_made(step),
                          .alike = is_collective(step) && wf_layout_is_regular(from) &&
                                   wf_layout_is_regular(to),
                          .weight = 1 + wf_layouts_runs(from, to, true) / WEIGHED_RUNS};
    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_REPLICATE || wf_step_keeps_partial(step, a))
            part->same |= UINT32_C(1) << a;
}

/* Elements that the rank at SOURCE and TARGET stages; NULL: it is not in that mesh. */
static void stage_rank(struct part *part, const int32_t *source, const int32_t *target,
                       struct side *out, struct side *in)
{
    const struct wf_layout *from = &part->step->from->layout, *to = &part->step->to->layout;
    const struct wf_shard *has = NULL, *wants = NULL;
    int32_t chosen[WEFT_MAX_AXES];
    struct wf_shard rooms[2];
    struct wf_cuts cuts;

    *out = (struct side){.in_tensor = !part->is_cast[0]};
    *in = (struct side){.in_tensor = !part->is_cast[1]};
    if (source != NULL) has = find_shard(part, from, source, &rooms[0]);
    if (target != NULL) wants = find_shard(part, to, target, &rooms[1]);
    if (part->gathers) {
        add_group(part, wants, from, source, part->step->axes, shares_evenly(part, from, source),
                  in);
        return;
    }
    if (part->scatters && shares_evenly(part, to, source)) {
        add_group(part, has, to, source, part->step->axes, true, out);
        cuts.fixed = cuts.done = 0;
        add_message(in, wants, has, &cuts, false);
        return;
    }
    if (source != NULL && from->mesh == to->mesh)
        add_readers(part, has, source, out);
    else if (source != NULL)
        add_readers_across(part, has, source, out);
    if (target == NULL || gets_identity(part, target)) return;
    if (from->mesh == to->mesh)
        memcpy(chosen, target, sizeof chosen);
    else
        wf_copy_choose(part->step->from, part->step->to, wf_mesh_rank(to->mesh, target), target,
                       chosen);
    add_sources(part, wants, chosen, in);
}

/* True if the step has messages that may be staged.  Other collectives work on whole shards. */
static bool has_messages(const struct wf_step *step, bool one_sided)
{
    return !one_sided && !wf_step_stays(step) && step->kind != WEFT_STEP_ALL_REDUCE &&
           step->kind != WEFT_STEP_BROADCAST && step->kind != WEFT_STEP_REDUCE;
}

static uint64_t shard_bytes(const struct part *part, const weft_spec *spec, const int32_t *coord,
                            uint32_t dtype)
{
    struct wf_shard room;

    if (coord == NULL) return 0;
    return wf_scratch_align((uint64_t)find_shard(part, &spec->layout, coord, &room)->elements *
                            wf_dtype_bytes(dtype));
}

/* How a step casts. */
struct casting {
    uint32_t place; /* enum weft_cast */
    bool split;     /* in a pass of its own */
};

static struct casting find_casting(const struct wf_step *step, bool one_sided)
{
    struct casting casting = {.place = wf_step_cast(step)};
    bool reduces;

    if (casting.place == WEFT_CAST_NONE || wf_step_stays(step)) return casting;
    reduces = wf_step_reduces(step);
    casting.split = !wf_cast_fuses(step->kind, casting.place, reduces);
    /* A broadcast works on whole shards.  Messages to several ranks would be cast and stored once
     * for each of them. */
    if (!one_sided)
        casting.split = casting.split || reduces || step->kind == WEFT_STEP_BROADCAST ||
                        (casting.place == WEFT_CAST_BEFORE && wf_step_sends_copies(step));
    return casting;
}

/* Scratch of the rank at SOURCE and TARGET. */
static uint64_t rank_scratch(struct part *part, const struct casting *casting, bool one_sided,
                             const int32_t *source, const int32_t *target, const bool *own)
{
    const struct wf_step *step = part->step;
    uint32_t dtype = wf_step_dtype(step);
    bool before = casting->place == WEFT_CAST_BEFORE;
    uint64_t in = own[0] ? shard_bytes(part, step->from, source, step->from->layout.dtype) : 0;
    uint64_t out = own[1] ? shard_bytes(part, step->to, target, step->to->layout.dtype) : 0;
    uint64_t staging = 0, between, first, second;
    struct side sides[2];

    if (has_messages(step, one_sided)) {
        stage_rank(part, source, target, &sides[0], &sides[1]);
        for (int i = 0; i < 2; i++)
            staging = wf_add_capped(staging, wf_scratch_align(wf_mul_capped(
                                                 staged_of(&sides[i]), wf_dtype_bytes(dtype))));
    }
    if (!casting->split) return wf_add_capped(wf_add_capped(in, out), staging);
    between = before ? shard_bytes(part, step->from, source, dtype)
                     : shard_bytes(part, step->to, target, dtype);
    first = wf_add_capped(wf_add_capped(in, between), before ? 0 : staging);
    second = wf_add_capped(wf_add_capped(out, between), before ? staging : 0);
    return first > second ? first : second;
}

/* True if the shards at coordinate 0 are the largest ones, and with PLAIN also runs. */
static bool is_largest_first(const struct wf_layout *layout, bool plain)
{
    for (int32_t a = 0; a < layout->mesh->axes; a++) {
        uint32_t kind = layout->placements[a].kind;
        if (kind != WEFT_PLACE_REPLICATE && kind != WEFT_PLACE_PARTIAL &&
            kind != WEFT_PLACE_SHARD && (plain || kind != WEFT_PLACE_STRIDED))
            return false;
    }
    return true;
}

/* True if the rank at coordinate 0 takes most.  It has the largest shards.  Along one axis, its
 * messages are in runs only if those of all ranks are, unless equal and unequal shards are moved in
 * different ways. */
static bool takes_most(const struct wf_step *step, bool one_sided)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    bool along_one = step->axes != 0 && (step->axes & (step->axes - 1)) == 0;

    if (!has_messages(step, one_sided))
        return is_largest_first(from, false) && is_largest_first(to, false);
    if (!is_collective(step)) return false;
    if (wf_layout_is_regular(from) && wf_layout_is_regular(to)) return true;
    return along_one && step->kind != WEFT_STEP_REDUCE_SCATTER && is_largest_first(from, true) &&
           is_largest_first(to, true);
}

enum { SEEN_MAX = 64 };

/* True if every shard has one run of each dimension. */
static bool has_runs(const struct wf_layout *layout)
{
    for (int32_t i = 0; i < layout->split_count; i++)
        if (layout->mesh->axis[layout->splits[i].axis].size > 1 &&
            (layout->splits[i].kind == WEFT_PLACE_STRIDED ||
             layout->splits[i].kind == WEFT_PLACE_PARTS))
            return false;
    return true;
}

/* Shapes and elements of a rank's shards before and after a collective.  If the shards are runs,
 * these decide what it takes, because the shards of its group are parts of them.  A scalar has
 * elements on its owner only. */
struct seen {
    int64_t shapes[SEEN_MAX][2][WEFT_MAX_DIMS + 1];
    int32_t count;
};

/* True if a rank with the shapes of the one at COORD was seen.  Adds them otherwise. */
static bool was_seen(struct seen *seen, const struct part *part, const int32_t *coord)
{
    const weft_spec *specs[] = {part->step->from, part->step->to};
    int64_t shapes[2][WEFT_MAX_DIMS + 1] = {{0}};
    struct wf_shard room;

    for (int i = 0; i < 2; i++) {
        const struct wf_shard *shard = find_shard(part, &specs[i]->layout, coord, &room);
        memcpy(shapes[i], shard->shape, (size_t)shard->dims * sizeof shapes[i][0]);
        shapes[i][WEFT_MAX_DIMS] = shard->elements;
    }
    for (int32_t i = 0; i < seen->count; i++)
        if (memcmp(seen->shapes[i], shapes, sizeof shapes) == 0) return true;
    if (seen->count < SEEN_MAX) memcpy(seen->shapes[seen->count++], shapes, sizeof shapes);
    return false;
}

/* True if the messages of one rank are not too many to be compared. */
static bool is_counted(const struct part *part)
{
    const weft_mesh *mesh = part->step->to->layout.mesh;
    int64_t messages = part->weight;

    for (int32_t a = 0; a < mesh->axes && messages <= WF_SCRATCH_MESSAGES; a++)
        if ((part->step->axes & ~part->same) >> a & 1) messages *= mesh->axis[a].size;
    return part->alike || messages <= WF_SCRATCH_MESSAGES;
}

static bool scratch_on_one_mesh(struct part *part, const struct casting *casting, bool one_sided,
                                const bool *own, uint64_t *bytes)
{
    const struct wf_step *step = part->step;
    bool first = takes_most(step, one_sided);
    bool alike = !first && is_collective(step) && has_runs(&step->from->layout) &&
                 has_runs(&step->to->layout);
    struct wf_visit visit;
    uint64_t most = 0;
    struct seen seen;

    seen.count = 0;
    if (has_messages(step, one_sided) && !is_counted(part)) return false;
    wf_visit_readers(&visit, step, 1);
    if (!first && wf_visit_distinct(&visit, step, 1) > WF_DISTINCT_MAX) return false;
    while (wf_visit_next(&visit)) {
        uint64_t mine;
        if (alike && was_seen(&seen, part, visit.target)) continue;
        mine = rank_scratch(part, casting, one_sided, visit.source, visit.target, own);
        if (mine > most) most = mine;
        if (part->messages > WF_SCRATCH_MESSAGES) return false;
    }
    *bytes = most;
    return true;
}

static bool scratch_between_meshes(struct part *part, const struct casting *casting, bool one_sided,
                                   const bool *own, uint64_t *bytes)
{
    const weft_mesh *meshes[] = {part->step->from->layout.mesh, part->step->to->layout.mesh};
    struct wf_visit visit;
    uint64_t most = 0;

    if (meshes[0]->size > WF_LISTED_RANKS || meshes[1]->size > WF_LISTED_RANKS ||
        part->weight > WF_SCRATCH_MESSAGES / WF_LISTED_RANKS)
        return false;
    wf_visit_ranks(&visit, part->step);
    while (wf_visit_next(&visit)) {
        uint64_t mine = rank_scratch(part, casting, one_sided, visit.source, visit.target, own);
        if (mine > most) most = mine;
        if (part->messages > WF_SCRATCH_MESSAGES) return false;
    }
    *bytes = most;
    return true;
}

static size_t kept_ranks(const weft_mesh *mesh)
{
    return mesh->size <= TABLE_RANKS ? (size_t)mesh->size : 0;
}

weft_status wf_step_scratch(const struct wf_step *step, bool one_sided, bool first, bool last,
                            uint64_t *bytes, int64_t *messages, bool *counted)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    size_t sources = kept_ranks(from->mesh), targets = kept_ranks(to->mesh);
    struct wf_shard *shards = wf_alloc((sources + targets) * sizeof *shards);
    struct table tables[] = {{0, sources > 0 ? shards : NULL}, {0, NULL}};
    struct casting casting = find_casting(step, one_sided);
    bool own[2] = {!first, !last};
    struct part part;

    if (shards == NULL) return wf_fail_memory((sources + targets) * sizeof *shards);
    if (targets > 0) tables[1].shards = shards + sources;
    open_part(&part, step);
    part.tables = tables;
    if (!casting.split && casting.place != WEFT_CAST_NONE)
        part.is_cast[casting.place == WEFT_CAST_AFTER] = true;
    *counted = from->mesh == to->mesh
                   ? scratch_on_one_mesh(&part, &casting, one_sided, own, bytes)
                   : scratch_between_meshes(&part, &casting, one_sided, own, bytes);
    *counted = *counted && *bytes != UINT64_MAX;
    *messages = part.messages;
    wf_free(shards);
    return WEFT_OK;
}
