/* count_ranks.c - exactly how many bytes ranks receive, rank by rank: in a plan between two meshes,
 * and in a batch.
 *
 * A rank may be in both meshes.  It then reads what it already holds from its own memory, and
 * receives in the steps of both meshes.  Ranks are therefore matched one by one, unless all ranks
 * of one mesh lie before those of the other.
 *
 * In the common exchange of a batch, each rank sends one message to each other rank, and to itself,
 * with the parts of all tensors (see core/exec/fused.c).  Messages are staged on both sides and
 * begin at multiples of 16 bytes. */
#include "figures.h"

/* The first and the last rank of a regular mesh; false: MESH is a list. */
static bool find_reach(const weft_mesh *mesh, int64_t *first, int64_t *last)
{
    *first = *last = mesh->origin;
    for (int32_t i = 0; i < mesh->mode_count; i++)
        *last += (int64_t)(mesh->modes[i].size - 1) * mesh->modes[i].stride;
    return mesh->ranks == NULL;
}

bool wf_meshes_are_apart(const weft_mesh *a, const weft_mesh *b)
{
    int64_t first[2], last[2];

    if (!find_reach(a, &first[0], &last[0]) || !find_reach(b, &first[1], &last[1])) return false;
    return last[0] < first[1] || last[1] < first[0];
}

/* Elements that the rank at TARGET of the target's mesh, and at SOURCE of the source's, receives in
 * STEP.  SOURCE is NULL for a non-member of the source's mesh. */
static uint64_t received_at(const struct wf_step *step, const int32_t *source,
                            const int32_t *target, uint64_t holders)
{
    struct wf_shard has, wants;
    uint32_t made = wf_step_made(step);
    uint64_t own = 0;

    for (int32_t a = 0; a < step->to->layout.mesh->axes; a++)
        if ((made >> a & 1) && target[a] != 0) return 0;
    wf_shard_at(&step->to->layout, target, &wants);
    if (source != NULL) {
        wf_shard_at(&step->from->layout, source, &has);
        own = wf_shards_common_elements(&has, &wants);
    }
    return wf_bytes_from((uint64_t)wants.elements, holders, own, 1);
}

static bool is_regular(const struct wf_step *step)
{
    return wf_layout_is_regular(&step->from->layout) && wf_layout_is_regular(&step->to->layout);
}

/* Add what the rank at SOURCE and TARGET receives to OUT. */
static void add_receiver(const struct wf_step *step, const int32_t *source, const int32_t *target,
                         uint64_t holders, struct wf_cross_count *out)
{
    uint64_t elements = received_at(step, source, target, holders);

    if (elements > out->most) out->most = elements;
    out->total = wf_add_capped(out->total, elements);
}

void wf_cross_count(const struct wf_step *step, int32_t ranks_max, struct wf_cross_count *out)
{
    const weft_mesh *from = step->from->layout.mesh, *to = step->to->layout.mesh;
    uint64_t holders = wf_step_holders(step);
    int32_t source[WEFT_MAX_AXES], target[WEFT_MAX_AXES], visited;
    bool alike = wf_meshes_are_apart(from, to) && is_regular(step), member;
    struct wf_visit visit;

    *out = (struct wf_cross_count){
        .exact = alike || (to->size <= ranks_max && wf_steps_walk(step, 1, to->size))};
    visited = alike ? 1 : out->exact ? to->size : WF_PRICE_SAMPLES;
    wf_visit_readers(&visit, step, visited);
    while (wf_visit_next(&visit))
        add_receiver(step, visit.source, visit.target, holders, out);
    if (visited < to->size)
        out->total = wf_mul_capped(out->total / (uint64_t)visited, (uint64_t)to->size);
    if (out->exact) return;
    wf_layout_largest(&step->to->layout, target);
    member = wf_mesh_coord(from, wf_mesh_rank(to, target), source);
    add_receiver(step, member ? source : NULL, target, holders, out);
}

/* ---- a plan between two meshes ---- */

/* The steps on the source's mesh, the exchange, and the steps on the target's. */
struct parts {
    const struct wf_step *exchange;
    struct wf_counter source, target;
    uint64_t holders, element;
    uint64_t most, exchanged; /* by one rank: in all, and in the exchange */
};

static weft_status open_parts(struct parts *parts, const weft_plan *plan)
{
    uint32_t before = (uint32_t)(parts->exchange - plan->steps);

    parts->holders = wf_step_holders(parts->exchange);
    parts->element = wf_dtype_bytes(wf_step_dtype(parts->exchange));
    WF_TRY(wf_counter_open(&parts->source, plan->steps, before));
    return wf_counter_open(&parts->target, parts->exchange + 1, plan->step_count - before - 1);
}

static void add_rank(struct parts *parts, const int32_t *source, const int32_t *target)
{
    uint64_t sum = source != NULL ? wf_counter_at(&parts->source, source) : 0, bytes;

    if (target != NULL) {
        bytes = wf_mul_capped(received_at(parts->exchange, source, target, parts->holders),
                              parts->element);
        if (bytes > parts->exchanged) parts->exchanged = bytes;
        sum = wf_add_capped(sum, wf_add_capped(bytes, wf_counter_at(&parts->target, target)));
    }
    if (sum > parts->most) parts->most = sum;
}

void wf_exchange_add_received(const struct wf_step *step, uint64_t *received)
{
    uint64_t holders = wf_step_holders(step), element = wf_dtype_bytes(wf_step_dtype(step));
    struct wf_visit visit;

    wf_visit_readers(&visit, step, INT32_MAX);
    while (wf_visit_next(&visit)) {
        uint64_t elements = received_at(step, visit.source, visit.target, holders);
        received[visit.rank] =
            wf_add_capped(received[visit.rank], wf_mul_capped(elements, element));
    }
}

/* Take over the counts of the plan's steps. */
static void write_counts(const struct parts *parts, weft_plan *plan)
{
    uint32_t before = (uint32_t)(parts->exchange - plan->steps);

    for (uint32_t i = 0; i < parts->source.count; i++)
        plan->steps[i].received = parts->source.steps[i].most;
    plan->steps[before].received = parts->exchanged;
    for (uint32_t i = 0; i < parts->target.count; i++)
        plan->steps[before + 1 + i].received = parts->target.steps[i].most;
    plan->received = parts->most;
}

/* The ranks of both meshes differ, and all shards of a step have one size. */
static bool count_apart(weft_plan *plan, const struct wf_step *exchange)
{
    uint64_t before = 0, after = 0;

    if (!wf_meshes_are_apart(exchange->from->layout.mesh, exchange->to->layout.mesh)) return false;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct wf_step *step = &plan->steps[i];
        if (!is_regular(step)) return false;
        if (step < exchange)
            before = wf_add_capped(before, step->received);
        else
            after = wf_add_capped(after, step->received);
    }
    plan->received = before > after ? before : after;
    return true;
}

weft_status wf_plan_count_cross(weft_plan *plan, const struct wf_step *exchange)
{
    struct parts parts = {.exchange = exchange};
    int64_t ranks = wf_max_i64(exchange->from->layout.mesh->size, exchange->to->layout.mesh->size);
    struct wf_visit visit;
    weft_status status;

    if (count_apart(plan, exchange)) return WEFT_OK;
    plan->exact = ranks <= WF_DISTINCT_MAX && wf_steps_walk(plan->steps, plan->step_count, ranks);
    if (!plan->exact) return WEFT_OK;
    status = open_parts(&parts, plan);
    if (status == WEFT_OK) {
        wf_visit_ranks(&visit, exchange);
        while (wf_visit_next(&visit))
            add_rank(&parts, visit.source, visit.target);
        write_counts(&parts, plan);
    }
    wf_counter_close(&parts.source);
    wf_counter_close(&parts.target);
    return status;
}

/* ---- a batch ---- */

static int64_t greatest_rank(const weft_mesh *mesh)
{
    int64_t most = mesh->origin;

    if (mesh->ranks == NULL)
        for (int32_t i = 0; i < mesh->mode_count; i++)
            most += (int64_t)(mesh->modes[i].size - 1) * mesh->modes[i].stride;
    for (int32_t i = 0; mesh->ranks != NULL && i < mesh->size; i++)
        if (i == 0 || mesh->ranks[i] > most) most = mesh->ranks[i];
    return most;
}

int64_t wf_members_ranks(const struct wf_member *members, uint32_t count)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < count; i++) {
        most = wf_max_i64(most, greatest_rank(members[i].from->layout.mesh));
        most = wf_max_i64(most, greatest_rank(members[i].to->layout.mesh));
    }
    return most + 1;
}

/* Add the bytes of COUNT steps of one mesh to RECEIVED, by rank. */
static weft_status add_steps(const struct wf_step *steps, uint32_t count, uint64_t *received)
{
    struct wf_counter counter;
    struct wf_visit visit;

    if (count == 0) return WEFT_OK;
    WF_TRY(wf_counter_open(&counter, steps, count));
    wf_visit_ranks(&visit, steps);
    while (wf_visit_next(&visit))
        received[visit.rank] =
            wf_add_capped(received[visit.rank], wf_counter_at(&counter, visit.target));
    wf_counter_close(&counter);
    return WEFT_OK;
}

static weft_status add_alone(const weft_plan *plan, uint64_t *received)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct wf_step *step = &plan->steps[i];
        if (step->from->layout.mesh == step->to->layout.mesh) continue;
        WF_TRY(add_steps(&plan->steps[first], i - first, received));
        wf_exchange_add_received(step, received);
        first = i + 1;
    }
    return add_steps(&plan->steps[first], plan->step_count - first, received);
}

static weft_status add_members(const weft_plan *plan, uint64_t *together, uint64_t *alone)
{
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        struct wf_step step = {.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};
        if (member->alone != NULL)
            WF_TRY(add_alone(member->alone, alone));
        else
            wf_exchange_add_received(&step, together);
    }
    return WEFT_OK;
}

/* True if all shards of all members may be compared run by run. */
static bool members_walk(const weft_plan *plan, int64_t ranks)
{
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        struct wf_step step = {.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};
        if (!wf_steps_walk(&step, 1, ranks * plan->member_count) ||
            (member->alone != NULL &&
             !wf_steps_walk(member->alone->steps, member->alone->step_count,
                            ranks * plan->member_count)))
            return false;
    }
    return true;
}

weft_status wf_batch_count(weft_plan *plan)
{
    int64_t ranks = wf_members_ranks(plan->members, plan->member_count);
    uint64_t *together, *alone, most = 0;
    weft_status status;

    plan->exact = ranks <= WF_DISTINCT_MAX && ranks * plan->member_count <= WF_BATCH_COUNTS &&
                  members_walk(plan, ranks);
    if (!plan->exact) return WEFT_OK;
    together = wf_calloc(2 * (size_t)ranks, sizeof *together);
    if (together == NULL) return wf_fail_memory(2 * (size_t)ranks * sizeof *together);
    alone = together + ranks;
    status = add_members(plan, together, alone);
    plan->received = 0;
    for (int64_t i = 0; i < ranks; i++) {
        uint64_t sum = wf_add_capped(together[i], alone[i]);
        if (together[i] > most) most = together[i];
        if (sum > plan->received) plan->received = sum;
    }
    if (plan->together > 0) plan->steps[0].received = most;
    plan->exact = plan->received != UINT64_MAX; /* as many bytes, or more */
    wf_free(together);
    return status;
}

static weft_status add_sent(const weft_plan *plan, uint64_t *sent)
{
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        struct wf_step step = {.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};
        if (member->alone == NULL) WF_TRY(wf_exchange_add_sent(&step, sent));
    }
    return WEFT_OK;
}

/* True if what the readers of the common exchange read may be compared, sender by sender. */
static bool senders_walk(const weft_plan *plan)
{
    int64_t compared = 0;

    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_layout *from = &plan->members[i].from->layout;
        const struct wf_layout *to = &plan->members[i].to->layout;
        int64_t pairs =
            from->mesh == to->mesh ? to->mesh->size : (int64_t)from->mesh->size * to->mesh->size;
        if (plan->members[i].alone != NULL) continue;
        compared += pairs * wf_min_i64(wf_layouts_runs(from, to, false), WF_RUNS_MAX);
    }
    return compared <= WF_RUNS_WALKED;
}

weft_status wf_batch_sent(const weft_plan *plan, uint64_t *bytes, bool *exact)
{
    int64_t ranks = wf_members_ranks(plan->members, plan->member_count);
    uint64_t *sent, most = 0;
    weft_status status;

    *exact = ranks <= WF_LISTED_RANKS && plan->exact && senders_walk(plan);
    if (!*exact) return WEFT_OK;
    sent = wf_calloc((size_t)ranks, sizeof *sent);
    if (sent == NULL) return wf_fail_memory((size_t)ranks * sizeof *sent);
    status = add_sent(plan, sent);
    for (int64_t i = 0; i < ranks; i++)
        if (sent[i] > most) most = sent[i];
    if (status == WEFT_OK) *bytes = most;
    wf_free(sent);
    return status;
}

/* ---- messages of a batch ---- */

enum { MESSAGE_UNIT = 16 }; /* bytes */

/* The bytes from each rank to each rank. */
struct messages {
    uint64_t *bytes; /* [sender * ranks + reader] */
    int64_t ranks, pairs;
};

/* Add what RANK, at TARGET of the target's mesh, reads in STEP. */
static void add_reader(struct messages *m, const struct wf_step *step, int32_t rank,
                       const int32_t *target)
{
    const struct wf_layout *from = &step->from->layout;
    uint64_t element = wf_dtype_bytes(wf_step_dtype(step));
    int32_t source[WEFT_MAX_AXES];
    struct wf_shard has, wants;
    uint32_t axes = 0;

    wf_shard_at(&step->to->layout, target, &wants);
    wf_copy_choose(step->from, step->to, rank, target, source);
    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind != WEFT_PLACE_REPLICATE && !wf_step_keeps_partial(step, a)) {
            axes |= UINT32_C(1) << a;
            source[a] = 0;
        }
    do {
        uint64_t *bytes = &m->bytes[wf_mesh_rank(from->mesh, source) * m->ranks + rank];
        wf_shard_at(from, source, &has);
        *bytes = wf_add_capped(*bytes, wf_shards_common_elements(&has, &wants) * element);
        m->pairs++;
    } while (wf_coord_next(from->mesh, axes, source));
}

/* False: too many pairs. */
static bool add_messages(struct messages *m, const struct wf_member *member)
{
    struct wf_step step = {.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};
    struct wf_visit visit;

    wf_visit_readers(&visit, &step, INT32_MAX);
    while (wf_visit_next(&visit)) {
        add_reader(m, &step, visit.rank, visit.target);
        if (m->pairs > WF_BATCH_PAIRS) return false;
    }
    return true;
}

static uint64_t message_room(uint64_t bytes)
{
    uint64_t sum = wf_add_capped(bytes, MESSAGE_UNIT - 1);

    return sum == UINT64_MAX ? sum : sum / MESSAGE_UNIT * MESSAGE_UNIT;
}

/* Bytes that a rank stages, at most. */
static uint64_t most_staged(const struct messages *m)
{
    uint64_t most = 0;

    for (int64_t rank = 0; rank < m->ranks; rank++) {
        uint64_t mine = 0;
        for (int64_t other = 0; other < m->ranks; other++) {
            mine = wf_add_capped(mine, message_room(m->bytes[rank * m->ranks + other]));
            mine = wf_add_capped(mine, message_room(m->bytes[other * m->ranks + rank]));
        }
        if (mine > most) most = mine;
    }
    return most;
}

weft_status wf_batch_scratch(const struct wf_member *members, uint32_t count, const bool *joins,
                             uint64_t *bytes, bool *exact)
{
    struct messages m = {.ranks = wf_members_ranks(members, count)};

    *exact = m.ranks <= WF_LISTED_RANKS;
    if (!*exact) return WEFT_OK;
    m.bytes = wf_calloc((size_t)(m.ranks * m.ranks), sizeof *m.bytes);
    if (m.bytes == NULL) return wf_fail_memory((size_t)(m.ranks * m.ranks) * sizeof *m.bytes);
    for (uint32_t i = 0; i < count && *exact; i++)
        if (joins != NULL ? joins[i] : members[i].alone == NULL)
            *exact = add_messages(&m, &members[i]);
    if (*exact) {
        *bytes = most_staged(&m);
        *exact = *bytes != UINT64_MAX;
    }
    wf_free(m.bytes);
    return WEFT_OK;
}
