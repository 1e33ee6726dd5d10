/* batch.c - many tensors as one plan.
 *
 * A tensor that has its own steps pays the latency of each of them.  Tensors of the common exchange
 * pay the latency once, but each pays for packing and unpacking, and for an exchange where other
 * steps might move less.  A tensor joins if its bytes cost less there than its own plan costs.  The
 * common exchange is used if its tensors together save more than its latency. */
#include "plan/figures/figures.h"
#include "plan.h"

#include <string.h>

/* What the common exchange would cost one tensor. */
struct offer {
    bool possible;
    uint64_t ns;       /* cost of its bytes, without latency */
    uint64_t received; /* largest over ranks */
    uint64_t staging;  /* bytes of messages, sent and received */
    uint32_t link;
    uint32_t mesh_axes; /* axes of the exchange, if both meshes are one */
};

struct batch {
    const weft_plan_options *options;
    const weft_cost_table *costs;
    struct wf_member *members;
    struct offer *offers;
    bool *joins;
    uint32_t count;
};

static const weft_placement *placement_of(const weft_spec *spec, int32_t axis)
{
    return &spec->layout.placements[axis];
}

/* True if every element of the target is a copy of one element, its cast, or the reduction of
 * several.  Creating partials, dividing sums and casting them need a separate pass. */
static bool is_plain(const weft_spec *from, const weft_spec *to)
{
    const weft_mesh *source = from->layout.mesh, *target = to->layout.mesh;
    uint32_t reduction = WEFT_REDUCE_COUNT;

    for (int32_t a = 0; a < target->axes; a++)
        if (placement_of(to, a)->kind == WEFT_PLACE_PARTIAL &&
            (source != target || placement_of(from, a)->kind != WEFT_PLACE_PARTIAL))
            return false;
    for (int32_t a = 0; a < source->axes; a++) {
        if (placement_of(from, a)->kind != WEFT_PLACE_PARTIAL) continue;
        if (source == target && placement_of(to, a)->kind == WEFT_PLACE_PARTIAL) continue;
        if (reduction != WEFT_REDUCE_COUNT && reduction != placement_of(from, a)->reduction)
            return false;
        reduction = placement_of(from, a)->reduction;
    }
    return reduction == WEFT_REDUCE_COUNT || from->layout.dtype == to->layout.dtype;
}

/* True if PLAN has local steps only.  The common exchange could then save only their start-up,
 * which costs almost nothing where ranks read each other's memory. */
static bool is_local(const weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind != WEFT_STEP_SLICE && plan->steps[i].kind != WEFT_STEP_PARTIAL)
            return false;
    return true;
}

/* The part of WORK's cost that depends on bytes. */
static uint64_t bytes_ns(const weft_cost_table *costs, const struct wf_work *work)
{
    struct wf_work nothing = {.kind = work->kind, .link = work->link, .ranks = work->ranks};

    return wf_cost_ns(costs, work) - wf_cost_ns(costs, &nothing);
}

static weft_status offer_on_one_mesh(const struct batch *batch, const struct wf_member *member,
                                     struct offer *out, struct wf_work *work)
{
    struct wf_problem problem;
    struct wf_edge edge;

    WF_TRY(wf_problem_set(&problem, member->from, member->to, batch->options));
    if (!wf_may_exchange(&problem, &problem.source)) return WEFT_OK;
    wf_edge_exchange(&problem, &problem.source, &edge);
    wf_cast_mark(&problem, &problem.source, &edge);
    WF_TRY(wf_exchange_work(&problem, &problem.source, &edge, work));
    out->mesh_axes = wf_problem_mesh_axes(&problem, edge.axes);
    out->possible = true;
    return WEFT_OK;
}

static weft_status make_offer(const struct batch *batch, const struct wf_member *member,
                              struct offer *out)
{
    struct wf_step step = {.from = member->from, .to = member->to};
    struct wf_work work = {0};

    *out = (struct offer){0};
    if (member->alone->step_count == 0 || !is_plain(member->from, member->to)) return WEFT_OK;
    if (batch->costs->one_sided && is_local(member->alone)) return WEFT_OK;
    if (batch->options->without >> WEFT_STEP_EXCHANGE & 1) return WEFT_OK;
    if (member->from->layout.mesh == member->to->layout.mesh) {
        WF_TRY(offer_on_one_mesh(batch, member, out, &work));
    } else {
        wf_cross_work(batch->costs, &step, &work);
        out->possible = true;
    }
    if (!out->possible) return WEFT_OK;
    work.kind = WEFT_STEP_EXCHANGE;
    out->ns = bytes_ns(batch->costs, &work);
    out->received = work.received;
    out->staging = work.packed;
    out->link = work.link;
    return WEFT_OK;
}

/* ---- the ranks of the exchange ---- */

weft_status wf_batch_group(const weft_plan *plan, const weft_mesh **mesh, uint32_t *axes)
{
    *mesh = NULL;
    *axes = 0;
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        struct wf_problem problem;
        struct wf_edge edge;
        weft_plan_options none = {0};
        if (member->alone != NULL) continue;
        if (member->from->layout.mesh != member->to->layout.mesh ||
            (*mesh != NULL && *mesh != member->from->layout.mesh)) {
            *mesh = NULL;
            return WEFT_OK;
        }
        *mesh = member->from->layout.mesh;
        WF_TRY(wf_problem_set(&problem, member->from, member->to, &none));
        wf_edge_exchange(&problem, &problem.source, &edge);
        *axes |= wf_problem_mesh_axes(&problem, edge.axes);
    }
    return WEFT_OK;
}

/* Upper bound on the ranks of the common exchange. */
static int64_t ranks_together(const struct batch *batch)
{
    const weft_mesh *known[16];
    int64_t ranks = 0, group = 1;
    uint32_t axes = 0;
    int count = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        const weft_mesh *meshes[] = {batch->members[i].from->layout.mesh,
                                     batch->members[i].to->layout.mesh};
        if (!batch->joins[i]) continue;
        axes |= batch->offers[i].mesh_axes;
        for (size_t m = 0; m < WF_COUNT(meshes); m++) {
            int k = 0;
            while (k < count && known[k] != meshes[m])
                k++;
            if (k < count) continue;
            if (count < (int)WF_COUNT(known)) known[count++] = meshes[m];
            ranks += meshes[m]->size;
        }
    }
    if (count != 1) return ranks;
    for (int32_t a = 0; a < known[0]->axes; a++)
        if (axes >> a & 1) group *= known[0]->axis[a].size;
    return group;
}

static struct wf_work exchange_latency(const struct batch *batch)
{
    struct wf_work work = {.kind = WEFT_STEP_EXCHANGE, .link = WF_WITHIN_HOST};

    work.ranks = ranks_together(batch);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->joins[i] && batch->offers[i].link > work.link) work.link = batch->offers[i].link;
    return work;
}

/* ---- choosing ---- */

static bool tensor_gains(const struct batch *batch, uint32_t i)
{
    const struct offer *offer = &batch->offers[i];
    const weft_plan *alone = batch->members[i].alone;

    if (!offer->possible || offer->ns >= alone->cost_ns) return false;
    return batch->options->minimize != WEFT_MINIMIZE_BYTES || offer->received <= alone->received;
}

/* Let tensors join while their messages, which are scratch, fit into ROOM; smallest first. */
static void join_within(struct batch *batch, uint64_t room)
{
    for (;;) {
        uint32_t least = batch->count;
        for (uint32_t i = 0; i < batch->count; i++)
            if (!batch->joins[i] && tensor_gains(batch, i) &&
                (least == batch->count || batch->offers[i].staging < batch->offers[least].staging))
                least = i;
        if (least == batch->count || batch->offers[least].staging > room) return;
        batch->joins[least] = true;
        room -= batch->offers[least].staging;
    }
}

/* The offers do not count that messages are aligned.  Let tensors leave, largest first, until the
 * exchange fits into ROOM. */
static weft_status leave_beyond(struct batch *batch, uint64_t room)
{
    for (;;) {
        uint32_t most = batch->count;
        uint64_t bytes = 0;
        bool exact;
        WF_TRY(wf_batch_scratch(batch->members, batch->count, batch->joins, &bytes, &exact));
        if (bytes <= room) return WEFT_OK;
        for (uint32_t i = 0; i < batch->count; i++)
            if (batch->joins[i] &&
                (most == batch->count || batch->offers[i].staging > batch->offers[most].staging))
                most = i;
        batch->joins[most] = false;
    }
}

static weft_status most_alone(const struct batch *batch, uint64_t *most)
{
    *most = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint64_t bytes;
        bool exact;
        WF_TRY(wf_plan_scratch(batch->members[i].alone, &bytes, &exact));
        if (bytes > *most) *most = bytes;
    }
    return WEFT_OK;
}

static weft_status choose_members(struct batch *batch)
{
    uint64_t room = batch->options->memory_limit, saved = 0;
    struct wf_work work;

    if (room == 0) room = UINT64_MAX;
    if (batch->options->minimize == WEFT_MINIMIZE_MEMORY) WF_TRY(most_alone(batch, &room));
    if (room == UINT64_MAX)
        for (uint32_t i = 0; i < batch->count; i++)
            batch->joins[i] = tensor_gains(batch, i);
    else
        join_within(batch, room);
    if (room != UINT64_MAX) WF_TRY(leave_beyond(batch, room));
    work = exchange_latency(batch);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->joins[i]) saved += batch->members[i].alone->cost_ns - batch->offers[i].ns;
    if (saved <= wf_cost_ns(batch->costs, &work))
        memset(batch->joins, 0, batch->count * sizeof *batch->joins);
    return WEFT_OK;
}

/* ---- the plan ---- */

static void set_exchange(const struct batch *batch, struct wf_step *step)
{
    struct wf_work work = exchange_latency(batch);

    *step =
        (struct wf_step){.kind = WEFT_STEP_EXCHANGE, .cost_ns = wf_cost_ns(batch->costs, &work)};
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!batch->joins[i]) continue;
        step->cost_ns += batch->offers[i].ns;
        step->received += batch->offers[i].received;
        step->scratch += batch->offers[i].staging;
    }
    step->sent = step->received;
}

static void put_steps(weft_plan *plan, uint32_t tensor)
{
    const weft_plan *alone = plan->members[tensor].alone;

    for (uint32_t i = 0; i < alone->step_count; i++) {
        struct wf_step *step = &plan->steps[plan->step_count++];
        *step = alone->steps[i];
        step->from = weft_spec_retain(step->from);
        step->to = weft_spec_retain(step->to);
        step->tensor = tensor;
    }
}

static void join_exchange(struct wf_member *member)
{
    if (member->from->layout.dtype != member->to->layout.dtype)
        member->spare = member->alone;
    else
        weft_plan_release(&member->alone);
    member->alone = NULL;
}

static void add_up(weft_plan *plan)
{
    uint64_t h = plan->member_count;

    for (uint32_t i = 0; i < plan->step_count; i++) {
        plan->cost_ns = wf_add_capped(plan->cost_ns, plan->steps[i].cost_ns);
        plan->received = wf_add_capped(plan->received, plan->steps[i].received);
    }
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        h = wf_hash_mix(h, member->alone != NULL ? member->alone->digest : 0);
        h = wf_hash_mix(wf_hash_mix(h, weft_spec_hash(member->from)), weft_spec_hash(member->to));
    }
    plan->digest = h;
}

/* Takes ownership of the members. */
static weft_status assemble_plan(struct batch *batch, weft_plan **out)
{
    uint32_t steps = 0, together = 0;
    weft_status status;
    weft_plan *plan;
    size_t bytes;

    for (uint32_t i = 0; i < batch->count; i++) {
        together += batch->joins[i];
        steps += batch->joins[i] ? 0 : batch->members[i].alone->step_count;
    }
    bytes = sizeof *plan + (steps + 1) * sizeof plan->steps[0];
    plan = wf_calloc(1, bytes);
    if (plan == NULL) return wf_fail_memory(bytes);
    plan->made = WF_OF_KIND(WF_KIND_PLAN);
    atomic_init(&plan->references, 1);
    atomic_init(&plan->scratch, UINT64_MAX);
    atomic_init(&plan->scratch_exact, false);
    plan->members = batch->members;
    plan->member_count = batch->count;
    plan->together = together;
    if (together > 0) set_exchange(batch, &plan->steps[plan->step_count++]);
    batch->members = NULL;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->joins[i])
            join_exchange(&plan->members[i]);
        else
            put_steps(plan, i);
    }
    add_up(plan);
    status = wf_batch_count(plan);
    if (status == WEFT_OK)
        *out = plan;
    else
        weft_plan_release(&plan);
    return status;
}

static void free_batch(struct batch *batch)
{
    for (uint32_t i = 0; batch->members != NULL && i < batch->count; i++) {
        weft_spec_release(&batch->members[i].from);
        weft_spec_release(&batch->members[i].to);
        weft_plan_release(&batch->members[i].alone);
    }
    wf_free(batch->members);
    wf_free(batch->offers);
    wf_free(batch->joins);
}

static weft_status fill_batch(struct batch *batch, const weft_spec *const *from,
                              const weft_spec *const *to)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct wf_member *member = &batch->members[i];
        weft_status status;

        if (from[i] == NULL || to[i] == NULL)
            return wf_fail(WEFT_ERR_INVALID, "weft_plan_create_batch: %s[%u] is NULL",
                           from[i] == NULL ? "from" : "to", i);
        status = wf_require_kind(from[i], WF_KIND_SPEC, "weft_plan_create_batch: from");
        if (status == WEFT_OK)
            status = wf_require_kind(to[i], WF_KIND_SPEC, "weft_plan_create_batch: to");
        if (status == WEFT_OK)
            status = wf_plan_create(from[i], to[i], batch->options, &member->alone);
        if (status != WEFT_OK) return wf_fail_context(status, "tensor %u of the batch", i);
        member->from = weft_spec_retain(from[i]);
        member->to = weft_spec_retain(to[i]);
        WF_TRY(make_offer(batch, member, &batch->offers[i]));
    }
    return WEFT_OK;
}

weft_status weft_plan_create_batch(size_t count, const weft_spec *const *from,
                                   const weft_spec *const *to, const weft_plan_options *options,
                                   weft_plan **out)
{
    weft_plan_options given = {0};
    struct batch batch = {.options = &given, .count = (uint32_t)count};
    weft_status status;

    WF_TRY(wf_require(from, "weft_plan_create_batch: from"));
    WF_TRY(wf_require(to, "weft_plan_create_batch: to"));
    WF_TRY(wf_require(out, "weft_plan_create_batch: out"));
    if (count == 0 || count > INT32_MAX)
        return wf_fail(WEFT_ERR_INVALID, "weft_plan_create_batch: count is %zu; expected 1 to %d",
                       count, INT32_MAX);
    WF_TRY(wf_options_read("weft_plan_options", options, &given, sizeof given));
    WF_TRY(wf_plan_refuse_holders("weft_plan_create_batch", &given));
    given.struct_size = sizeof given;
    batch.costs = given.costs != NULL ? given.costs : wf_cost_default();
    batch.members = wf_calloc(count, sizeof *batch.members);
    batch.offers = wf_calloc(count, sizeof *batch.offers);
    batch.joins = wf_calloc(count, sizeof *batch.joins);
    if (batch.members == NULL || batch.offers == NULL || batch.joins == NULL)
        status = wf_fail_memory(count * sizeof *batch.members);
    else
        status = fill_batch(&batch, from, to);
    if (status == WEFT_OK && given.planner == WEFT_PLANNER_SEARCH) status = choose_members(&batch);
    if (status == WEFT_OK) status = assemble_plan(&batch, out);
    if (status == WEFT_OK) wf_plan_set_costs(*out, batch.costs);
    free_batch(&batch);
    return status;
}
