/* fused.c - the common exchange of a batch: one message per peer for all its tensors.
 *
 * The parts of a message are ordered by element size, largest first, so that every part is aligned,
 * and then by tensor.  Within a tensor both sides cut the overlap of the same two shards into the
 * same regions, so the layout need not be communicated. */
#include "exec/context/kept.h"

#include <string.h>

enum { ALIGNMENT = 16 }; /* the largest element */

/* ---- members ---- */

/* Write the ranks of all meshes of the common exchange to OUT, in ascending order.  Returns their
 * number. */
static int32_t list_all(const struct weft_bound *bound, int32_t *out)
{
    const weft_plan *plan = bound->plan;
    const weft_mesh *before = NULL;
    int32_t size = bound->parent->size, count = 0;

    memset(out, 0, (size_t)size * sizeof *out); /* flags, by rank */
    for (uint32_t i = 0; i < 2 * plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i / 2];
        const weft_mesh *mesh = (i % 2 == 0 ? member->from : member->to)->layout.mesh;

        if (mesh == before || wf_member_plan(member, bound->casts) != NULL) continue;
        for (int32_t k = 0; k < mesh->size; k++)
            out[weft_mesh_rank_at(mesh, k)] = 1;
        before = mesh;
    }
    for (int32_t rank = 0; rank < size; rank++)
        if (out[rank] != 0) out[count++] = rank;
    return count;
}

/* Write the ranks of the exchange to OUT.  Returns their number; 0: this rank has no part. */
static int32_t list_ranks(const struct weft_bound *bound, const weft_mesh *mesh, uint32_t axes,
                          int32_t *out)
{
    int32_t rank = weft_comm_rank(bound->parent), count;

    if (mesh != NULL) return wf_mesh_group(mesh, axes, rank, out);
    count = list_all(bound, out);
    for (int32_t i = 0; i < count; i++)
        if (out[i] == rank) return count;
    return 0;
}

static weft_status set_comm(struct weft_bound *bound, int32_t *room, weft_status status,
                            struct wf_fused *out)
{
    const weft_mesh *mesh;
    uint32_t axes;
    int32_t count;

    WF_TRY(wf_batch_group(bound->plan, &mesh, &axes));
    count = list_ranks(bound, mesh, axes, room);
    out->member = count > 0;
    if (count > 0) status = wf_bound_group(bound, bound->parent, room, count, status, &out->comm);
    return status;
}

/* ---- groups of regions ---- */

/* The group for regions like WANTED; appended if it does not exist yet. */
static struct wf_region_group *find_group(struct wf_region_groups *groups,
                                          const struct wf_region_group *wanted)
{
    struct wf_region_group *list;

    for (uint32_t i = 0; i < groups->count; i++) {
        struct wf_region_group *known = &groups->list[i];
        if (known->element == wanted->element && known->from == wanted->from &&
            known->to == wanted->to && known->kind.holders == wanted->kind.holders &&
            (wanted->kind.holders == 1 || (known->kind.dtype == wanted->kind.dtype &&
                                           known->kind.reduction == wanted->kind.reduction &&
                                           known->kind.divisor == wanted->kind.divisor)))
            return known;
    }
    list = wf_realloc(groups->list, (groups->count + 1) * sizeof *list);
    if (list == NULL) return NULL;
    groups->list = list;
    list[groups->count] = *wanted;
    return &list[groups->count++];
}

static weft_status add_region(struct wf_region_list *list, const weft_region *region)
{
    if (list->count == list->room) {
        uint64_t room = list->room == 0 ? 16 : 2 * list->room;
        weft_region *regions = wf_realloc(list->regions, room * sizeof *regions);
        if (regions == NULL) return wf_fail_memory(room * sizeof *regions);
        list->regions = regions;
        list->room = room;
    }
    list->regions[list->count++] = *region;
    return WEFT_OK;
}

static weft_status make_lists(struct weft_bound *bound, struct wf_region_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        struct wf_region_group *group = &groups->list[i];
        uint32_t element =
            group->from != group->to ? (uint32_t)wf_dtype_bytes(group->from) : group->element;
        weft_status status =
            bound->kernel->regions_create(bound->kernel_device, element, group->regions.count,
                                          group->regions.regions, &group->list);
        if (status == WEFT_OK)
            status = wf_average_make(bound, &group->kind, group->regions.count,
                                     group->regions.regions, &group->average);
        wf_free(group->regions.regions);
        group->regions = (struct wf_region_list){0};
        if (status != WEFT_OK) return wf_fail_context(status, "listing a batch's regions");
    }
    return WEFT_OK;
}

static void free_groups(struct weft_bound *bound, struct wf_region_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        wf_free(groups->list[i].regions.regions);
        if (groups->list[i].list != NULL) bound->kernel->regions_destroy(groups->list[i].list);
        wf_average_free(bound, groups->list[i].average);
    }
    wf_free(groups->list);
    *groups = (struct wf_region_groups){0};
}

/* ---- one tensor ---- */

struct building {
    struct weft_bound *bound;
    struct wf_fused *all;
    uint32_t index;           /* index of the tensor in the exchange */
    uint32_t from, dtype, to; /* dtypes of the source, the messages and the target */
    /* For each arrival: its sender, and its offset in that rank's message. */
    int32_t *senders;
    uint64_t *starts;
};

static weft_status find_rank(const struct building *b, int32_t rank, int32_t *out)
{
    int32_t world = weft_comm_world_rank(b->bound->parent, rank);

    *out = weft_comm_find_rank(b->all->comm, world);
    if (*out < 0)
        return wf_fail(WEFT_ERR_INTERNAL, "rank %d does not take part in the exchange", rank);
    return WEFT_OK;
}

/* PARTS: those that this rank reads; NULL: it packs. */
static struct wf_region_group *find_group_for(const struct building *b,
                                              struct wf_region_groups *groups,
                                              const struct wf_parts *parts)
{
    struct wf_region_group wanted = {.element = (uint32_t)wf_dtype_bytes(b->dtype),
                                     .kind = {.dtype = b->dtype, .holders = 1}};
    uint32_t from = parts == NULL ? b->from : b->dtype, to = parts == NULL ? b->dtype : b->to;

    if (from != to) {
        wanted.from = from;
        wanted.to = to;
    }
    if (parts != NULL) {
        wanted.kind.reduction = parts->reduction;
        wanted.kind.holders = parts->holders;
        wanted.kind.divisor = parts->divisor;
    }

    return find_group(groups, &wanted);
}

/* Append the regions that others read of this rank.  A region's target is its reader for now, and
 * its offset is relative to the beginning of the reader's message. */
static weft_status add_sent(const struct building *b, const struct wf_parts *serve)
{
    struct wf_region_group *group = find_group_for(b, &b->all->packed, NULL);
    uint64_t *counts = b->all->send_counts;

    if (group == NULL) return wf_fail_memory(sizeof *group);
    for (uint64_t i = 0; i < serve->region_count; i++) {
        weft_region r = serve->regions[i];
        int32_t reader;
        WF_TRY(find_rank(b, serve->ranks[r.target], &reader));
        r.source = b->index;
        r.target = (uint32_t)reader;
        r.target_offset = (int64_t)(counts[reader] / group->element);
        wf_region_pack(&r, r.target_stride);
        counts[reader] += wf_region_elements(&r) * group->element;
        WF_TRY(add_region(&group->regions, &r));
    }
    return WEFT_OK;
}

/* Record where the parts from RANKS will begin. */
static weft_status add_arrivals(struct building *b, const struct wf_parts *parts)
{
    uint32_t count = b->all->arrival_count, all = count + parts->rank_count;
    int32_t *senders = wf_realloc(b->senders, all * sizeof *senders);
    uint64_t *starts;

    if (senders == NULL) return wf_fail_memory(all * sizeof *senders);
    b->senders = senders;
    starts = wf_realloc(b->starts, all * sizeof *starts);
    if (starts == NULL) return wf_fail_memory(all * sizeof *starts);
    b->starts = starts;
    for (uint32_t i = 0; i < parts->rank_count; i++) {
        WF_TRY(find_rank(b, parts->ranks[i], &senders[count + i]));
        starts[count + i] = b->all->receive_counts[senders[count + i]];
    }
    b->all->arrival_count = all;
    return WEFT_OK;
}

/* Append the regions that this rank reads.  Holders of contributions to one value send the same
 * regions, so one offset, relative to each holder's message, serves all of them. */
static weft_status add_received(struct building *b, const struct wf_parts *parts)
{
    struct wf_region_group *group = find_group_for(b, &b->all->unpacked, parts);
    uint64_t *counts = b->all->receive_counts;
    uint32_t first = b->all->arrival_count;

    if (group == NULL) return wf_fail_memory(sizeof *group);
    if (parts->rank_count == 0) return WEFT_OK;
    WF_TRY(add_arrivals(b, parts));
    for (uint64_t i = 0; i < parts->region_count; i++) {
        weft_region r = parts->regions[i];
        uint32_t block = first + r.source;
        uint64_t offset = counts[b->senders[block]] - b->starts[block];
        r.source = block;
        r.source_offset = (int64_t)(offset / group->element);
        r.target = b->index;
        wf_region_pack(&r, r.source_stride);
        for (uint32_t h = 0; h < parts->holders; h++)
            counts[b->senders[block + h]] += wf_region_elements(&r) * group->element;
        WF_TRY(add_region(&group->regions, &r));
    }
    return WEFT_OK;
}

static const int64_t *strides_of(const int64_t *const *list, uint32_t tensor)
{
    return list != NULL ? list[tensor] : NULL;
}

/* A cast to fewer bytes comes before the exchange, another one after it. */
static uint32_t message_dtype(const struct wf_member *member)
{
    struct wf_step step = {.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};

    return wf_step_dtype(&step);
}

static weft_status add_tensor(struct building *b, const weft_bind_options *given)
{
    uint32_t tensor = b->all->tensors[b->index];
    const struct wf_member *member = &b->bound->plan->members[tensor];
    int32_t rank = weft_comm_rank(b->bound->parent);
    struct wf_parts parts;
    weft_status status;

    b->from = member->from->layout.dtype;
    b->dtype = message_dtype(member);
    b->to = member->to->layout.dtype;
    WF_TRY(wf_parts_serve(member->from, member->to, 0, rank,
                          strides_of(given->batch_source_strides, tensor), &parts));
    status = add_sent(b, &parts);
    wf_parts_free(&parts);
    if (status != WEFT_OK) return status;
    WF_TRY(wf_parts_read(member->from, member->to, 0, rank,
                         strides_of(given->batch_target_strides, tensor), &parts));
    status = add_received(b, &parts);
    wf_parts_free(&parts);
    return status;
}

/* ---- the whole exchange ---- */

static uint64_t set_offsets(const uint64_t *counts, uint64_t *offsets, int32_t size)
{
    uint64_t at = 0;

    for (int32_t i = 0; i < size; i++) {
        offsets[i] = at;
        at += (counts[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return at;
}

/* Set the offsets of messages, and of the regions and arrivals in them. */
static weft_status place_messages(struct building *b)
{
    struct wf_fused *all = b->all;
    int32_t size = all->comm->size;

    all->send_bytes = set_offsets(all->send_counts, all->send_offsets, size);
    all->receive_bytes = set_offsets(all->receive_counts, all->receive_offsets, size);
    for (uint32_t p = 0; p < all->packed.count; p++) {
        struct wf_region_group *group = &all->packed.list[p];
        for (uint64_t i = 0; i < group->regions.count; i++) {
            weft_region *r = &group->regions.regions[i];
            r->target_offset += (int64_t)(all->send_offsets[r->target] / group->element);
            r->target = 0;
        }
    }
    all->arrivals = wf_calloc(all->arrival_count, sizeof *all->arrivals);
    all->arrival_offsets = wf_calloc(all->arrival_count, sizeof *all->arrival_offsets);
    if (all->arrivals == NULL || all->arrival_offsets == NULL)
        return wf_fail_memory(all->arrival_count * sizeof *all->arrivals);
    for (uint32_t i = 0; i < all->arrival_count; i++)
        all->arrival_offsets[i] = all->receive_offsets[b->senders[i]] + b->starts[i];
    return WEFT_OK;
}

static weft_status allocate_fused(const struct weft_bound *bound, struct wf_fused *all)
{
    const weft_plan *plan = bound->plan;
    size_t size = (size_t)all->comm->size, count = plan->together;

    all->send_counts = wf_calloc(4 * size, sizeof *all->send_counts);
    all->inputs = wf_calloc(count, sizeof *all->inputs);
    all->outputs = wf_calloc(count, sizeof *all->outputs);
    all->tensors = wf_calloc(count, sizeof *all->tensors);
    if (all->send_counts == NULL || all->inputs == NULL || all->outputs == NULL ||
        all->tensors == NULL)
        return wf_fail_memory(4 * size * sizeof *all->send_counts);
    all->send_offsets = all->send_counts + size;
    all->receive_counts = all->send_offsets + size;
    all->receive_offsets = all->receive_counts + size;
    for (uint32_t i = 0; i < plan->member_count; i++)
        if (wf_member_plan(&plan->members[i], bound->casts) == NULL) all->tensors[all->count++] = i;
    return WEFT_OK;
}

static weft_status build_fused(struct building *b, const weft_bind_options *given)
{
    const weft_plan *plan = b->bound->plan;

    WF_TRY(allocate_fused(b->bound, b->all));
    for (uint32_t element = ALIGNMENT; element > 0; element /= 2)
        for (b->index = 0; b->index < b->all->count; b->index++) {
            const struct wf_member *member = &plan->members[b->all->tensors[b->index]];
            if (wf_dtype_bytes(message_dtype(member)) == element) WF_TRY(add_tensor(b, given));
        }
    WF_TRY(place_messages(b));
    WF_TRY(make_lists(b->bound, &b->all->packed));
    WF_TRY(make_lists(b->bound, &b->all->unpacked));
    for (uint32_t i = 0; i < b->all->unpacked.count; i++)
        WF_TRY(wf_average_give_room(b->bound, b->all->unpacked.list[i].average,
                                    b->all->receive_bytes));
    return WEFT_OK;
}

weft_status wf_fused_set(struct weft_bound *bound, const weft_bind_options *given, int32_t *room,
                         weft_status status, struct wf_fused *out)
{
    struct building b = {.bound = bound, .all = out};

    status = set_comm(bound, room, status, out);
    if (status == WEFT_OK && out->member)
        status = wf_ways_require_exchange(&bound->ways, bound->team, WEFT_DTYPE_U8);
    if (status == WEFT_OK && out->member) status = build_fused(&b, given);
    wf_free(b.senders);
    wf_free(b.starts);
    return status;
}

uint64_t wf_fused_bytes(const struct wf_fused *fused)
{
    return fused->send_bytes + fused->receive_bytes;
}

void wf_fused_assign(struct wf_fused *fused, void *scratch)
{
    if (!fused->member || scratch == NULL) return;
    fused->send = scratch;
    fused->receive = (char *)scratch + fused->send_bytes;
    for (uint32_t i = 0; i < fused->arrival_count; i++)
        fused->arrivals[i] = (const char *)fused->receive + fused->arrival_offsets[i];
}

void wf_fused_clear(struct weft_bound *bound, struct wf_fused *fused)
{
    free_groups(bound, &fused->packed);
    free_groups(bound, &fused->unpacked);
    wf_free(fused->send_counts);
    wf_free(fused->inputs);
    wf_free(fused->outputs);
    wf_free(fused->tensors);
    wf_free(fused->arrivals);
    wf_free(fused->arrival_offsets);
    *fused = (struct wf_fused){0};
}

static weft_status run_exchange(const struct weft_bound *bound, const struct wf_fused *fused,
                                weft_stream *stream)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_TO_ALL_V,
                                 .dtype = WEFT_DTYPE_U8,
                                 .root = -1,
                                 .send = fused->send,
                                 .recv = fused->receive,
                                 .send_counts = fused->send_counts,
                                 .send_offsets = fused->send_offsets,
                                 .recv_counts = fused->receive_counts,
                                 .recv_offsets = fused->receive_offsets,
                                 .stream = stream,
                                 .plan = bound->plan->digest,
                                 .binding = bound->binding,
                                 .step = 1};

    return wf_comm_collective_step(fused->comm, &args);
}

static weft_status pack(const weft_kernel_table *kernel, const struct wf_region_group *group,
                        const struct wf_fused *fused, weft_stream *stream)
{
    if (group->from != group->to)
        return kernel->regions_cast(group->list, group->from, group->to, fused->inputs,
                                    &fused->send, stream);
    return kernel->regions_copy(group->list, fused->inputs, &fused->send, stream);
}

static uint32_t type_unpacked(const struct wf_region_group *group)
{
    return group->from != group->to ? group->to : group->kind.dtype;
}

weft_status wf_fused_run(const struct weft_bound *bound, struct wf_fused *fused,
                         const void *const *sources, void *const *targets, weft_stream *stream)
{
    if (!fused->member) return WEFT_OK;
    for (uint32_t i = 0; i < fused->count; i++) {
        fused->inputs[i] = sources[fused->tensors[i]];
        fused->outputs[i] = targets[fused->tensors[i]];
    }
    for (uint32_t i = 0; i < fused->packed.count; i++)
        WF_TRY(pack(bound->kernel, &fused->packed.list[i], fused, stream));
    WF_TRY(run_exchange(bound, fused, stream));
    for (uint32_t i = 0; i < fused->unpacked.count; i++) {
        const struct wf_region_group *group = &fused->unpacked.list[i];
        WF_TRY(
            wf_arrivals_unpack(bound,
                               &(struct wf_arrivals){group->list, fused->arrivals, fused->receive,
                                                     group->average, type_unpacked(group)},
                               &group->kind, fused->outputs, stream));
    }
    return WEFT_OK;
}
