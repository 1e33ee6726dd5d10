/* bind.c - a plan bound to communicators, scratch and one rank's share of every step. */
#include "comm/carry/carry.h"
#include "exec/context/kept.h"
#include "exec/host/host.h"

#include <stddef.h>
#include <stdio.h>

/* ---- the ranks of a step ---- */

/* Write the ranks of either mesh of STEP, each once, to OUT: those of the first that are not lost,
 * then those only in the second.  Returns their number; 0: neither mesh has RANK. */
static int32_t list_union(const struct wf_step *step, int32_t rank, int32_t *out)
{
    const weft_mesh *first = step->from->layout.mesh, *second = step->to->layout.mesh;
    int32_t coord[WEFT_MAX_AXES], count = 0;

    if (!wf_mesh_coord(first, rank, coord) && !wf_mesh_coord(second, rank, coord)) return 0;
    for (int32_t i = 0; i < first->size; i++)
        if (step->living == 0 || weft_mesh_rank_at(first, i) < step->living)
            out[count++] = weft_mesh_rank_at(first, i);
    for (int32_t i = 0; i < second->size; i++)
        if (!wf_mesh_coord(first, weft_mesh_rank_at(second, i), coord))
            out[count++] = weft_mesh_rank_at(second, i);
    return count;
}

/* Set the communicator of ACTION, and whether this rank takes part in it.  BOUND is NULL if this
 * rank could not make it.  STATUS is the result of binding so far.  A rank whose binding failed
 * still goes through the other steps, so that the ranks that would create communicators with it
 * fail too. */
static weft_status set_comm(struct weft_bound *bound, const struct wf_bind_call *call,
                            struct wf_action *action, weft_status status)
{
    const struct wf_step *step = action->step;
    const weft_mesh *from = step->from->layout.mesh, *to = step->to->layout.mesh;
    int32_t rank = weft_comm_rank(call->parent);
    int32_t count = from == to ? wf_mesh_group(from, step->axes, rank, call->room)
                               : list_union(step, rank, call->room);

    action->member = count > 0;
    if (count > 0 && !wf_step_is_local(step))
        status = wf_bound_group(bound, call->parent, call->room, count, status, &action->comm);
    return status;
}

static weft_status set_comms(struct weft_bound *bound, const struct wf_bind_call *call)
{
    weft_status status = WEFT_OK, now;

    for (uint32_t i = 0; i < bound->action_count; i++) {
        now = set_comm(bound, call, &bound->actions[i], status);
        if (status == WEFT_OK) status = now;
    }
    return status;
}

/* Binding failed here before there was anything to bind to. */
static weft_status decline_binding(const weft_plan *plan, const struct wf_bind_call *call,
                                   weft_status status)
{
    for (uint32_t i = 0; i < plan->step_count && !call->sized_only; i++) {
        struct wf_action action = {.step = &plan->steps[i]};
        (void)set_comm(NULL, call, &action, status);
    }
    return status;
}

/* ---- binding ---- */

struct binding {
    const struct wf_bind_call *call;
    struct weft_bound *bound;
    struct wf_bound_steps steps;
    const int64_t *source_strides, *target_strides;
    bool copy_first, copy_last;
    bool may_alias; /* the steps may run with the same memory as source and target */
    bool of_batch, packed;
};

static weft_status set_steps(struct binding *b)
{
    struct weft_bound *bound = b->bound;
    uint32_t first = b->copy_first, count = bound->steps.count;

    for (uint32_t i = 0; i < count; i++) {
        struct wf_action *action = &bound->actions[first + i];
        const int64_t *in = i == 0 && !b->copy_first ? b->source_strides : NULL;
        const int64_t *out = i + 1 == count && !b->copy_last ? b->target_strides : NULL;
        if (action->member) WF_TRY(wf_action_set(bound, action, in, out));
    }
    if (b->copy_first) WF_TRY(wf_action_set(bound, &bound->actions[0], b->source_strides, NULL));
    if (b->copy_last)
        WF_TRY(wf_action_set(bound, &bound->actions[bound->action_count - 1], NULL,
                             b->target_strides));
    return WEFT_OK;
}

static void plan_copies(struct binding *b, const weft_plan *plan, bool in_place)
{
    uint32_t count = b->steps.count, casts = b->call->casts;
    const struct wf_step *first, *last;

    if (count == 0) { /* one copy, straight from the source's strides to the target's */
        b->copy_last = true;
        b->copy_first = in_place && (b->source_strides != NULL || b->target_strides != NULL);
        return;
    }
    first = wf_bound_step(plan, &b->steps, 0, NULL);
    last = wf_bound_step(plan, &b->steps, count - 1, NULL);
    /* An all-reduce by pull reads the source while it writes the target. */
    b->may_alias =
        count == 1 && first->kind == WEFT_STEP_ALL_REDUCE &&
        (b->packed || wf_ways_have(&b->call->ways, WEFT_COLL_ALL_REDUCE, wf_step_dtype(first)));
    b->copy_first = (b->source_strides != NULL &&
                     (!wf_step_is_local(first) || wf_cast_is_dense(casts, first))) ||
                    (in_place && !b->may_alias);
    b->copy_last = b->target_strides != NULL &&
                   (wf_step_needs_dense_output(last) || wf_cast_is_dense(casts, last));
}

static weft_status fill_in(struct binding *b)
{
    struct weft_bound *bound = b->bound;
    const weft_plan *plan = bound->plan;
    uint32_t first = b->copy_first;

    bound->before = (struct wf_step){.kind = WEFT_STEP_SLICE, .from = plan->from, .to = plan->from};
    bound->after = (struct wf_step){.kind = WEFT_STEP_SLICE, .from = plan->to, .to = plan->to};
    for (uint32_t i = 0; i < bound->action_count; i++) {
        struct wf_action *action = &bound->actions[i];
        if (i < first)
            action->step = &bound->before;
        else if (i - first < bound->steps.count)
            action->step = wf_bound_step(plan, &bound->steps, i - first, &action->number);
        else
            action->step = &bound->after;
    }
    WF_TRY(set_comms(bound, b->call));
    if (bound->steps.count == 0 && !b->copy_first)
        WF_TRY(wf_action_set(bound, &bound->actions[0], b->source_strides, b->target_strides));
    else
        WF_TRY(set_steps(b));
    return b->of_batch ? WEFT_OK : wf_bound_set_scratch(bound, b->call, wf_scratch_bytes(bound));
}

static weft_status refuse_size(const char *function, const weft_comm *comm, int32_t last)
{
    char help[64];

    wf_comm_advise_size(comm, last + 1, help, sizeof help);
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: the meshes have ranks up to %d and need %d ranks; "
                   "%s has %d: %s, or use a smaller mesh",
                   function, last, last + 1, comm->name, comm->size, help);
}

static weft_status check_living(const char *function, const weft_spec *from, const weft_spec *to,
                                int32_t living, const weft_comm *comm)
{
    const weft_mesh *meshes[] = {from->layout.mesh, to->layout.mesh};
    int32_t last = 0;

    for (size_t m = 0; m < WF_COUNT(meshes); m++)
        for (int32_t i = 0; i < meshes[m]->size; i++) {
            int32_t rank = weft_mesh_rank_at(meshes[m], i);
            if (m == 0 && living != 0 && rank >= living) continue;
            if (rank > last) last = rank;
        }
    if (last >= comm->size) return refuse_size(function, comm, last);
    return WEFT_OK;
}

weft_status wf_bind_check(const char *function, const weft_spec *from, const weft_spec *to,
                          const weft_comm *comm)
{
    return check_living(function, from, to, 0, comm);
}

static weft_status check_strides(const struct binding *b, const weft_plan *plan, int32_t rank)
{
    WF_TRY(wf_strides_check("weft_bind_options.source_strides", plan->from, rank, b->source_strides,
                            false));
    return wf_strides_check("weft_bind_options.target_strides", plan->to, rank, b->target_strides,
                            true);
}

static bool packs(const struct wf_bind_call *call)
{
    return call->given.packed || !wf_backend_pulls(call->team);
}

void wf_bound_begin(struct weft_bound *bound, const weft_plan *plan,
                    const struct wf_bind_call *call)
{
    weft_comm *comm = call->parent;

    bound->plan = weft_plan_retain(plan);
    bound->parent = comm;
    bound->team = call->team;
    bound->sized_only = call->sized_only;
    bound->context = comm->context;
    bound->made = wf_made_now(WF_KIND_BOUND);
    bound->is_cached = call->is_cached;
    if (!bound->is_cached) atomic_fetch_add(&bound->context->live_bound, 1);
    bound->device = comm->context->device;
    bound->device_table = comm->context->plugin->device;
    bound->kernel = call->kernel != NULL ? call->kernel : wf_kernels_of(comm->context);
    bound->kernel_device = wf_kernels_device(comm->context);
    if (wf_host_is_needed(comm->context) && !call->sized_only) wf_host_log_notice(comm->context);
    bound->in_place = call->given.in_place;
    bound->packed = packs(call);
    bound->exchanges = bound->packed && !call->given.packed && call->ways.no_exchange == 0;
    bound->casts = call->casts;
    bound->ways = call->ways;
    bound->checked = comm->context->config->check;
    bound->examined = bound->checked || (!call->is_cached &&
                                         (comm->context->features & WEFT_FEATURE_HOST_MEMORY) == 0);
    bound->runs = &bound->own_runs;
}

/* Begin to bind PLAN: set the steps, check CALL's strides, and decide which copies are needed.  The
 * caller clears the steps. */
static weft_status begin(struct binding *b, const weft_plan *plan, const struct wf_bind_call *call)
{
    b->call = call;
    b->source_strides = call->given.source_strides;
    b->target_strides = call->given.target_strides;
    b->packed = packs(call);
    WF_TRY(wf_bound_steps_set(plan, call->parent, b->packed, call->casts, &b->steps));
    plan_copies(b, plan, call->given.in_place);
    return check_strides(b, plan, call->parent->rank);
}

static weft_status make_bound(struct binding *b, const weft_plan *plan)
{
    weft_comm *comm = b->call->parent;
    uint32_t actions = b->steps.count + b->copy_first + b->copy_last;
    struct weft_bound *bound = wf_calloc(1, sizeof *bound + actions * sizeof bound->actions[0]);

    if (bound == NULL) return decline_binding(plan, b->call, wf_fail_memory(sizeof *bound));
    wf_bound_begin(bound, plan, b->call);
    bound->steps = b->steps;
    b->steps = (struct wf_bound_steps){0};
    wf_buffers_measure(plan->from, comm->rank, b->source_strides, &bound->memory.source);
    wf_buffers_measure(plan->to, comm->rank, b->target_strides, &bound->memory.target);
    bound->may_alias = b->may_alias;
    bound->action_count = actions;
    b->bound = bound;
    return fill_in(b);
}

weft_status wf_bind(const weft_plan *plan, const struct wf_bind_call *call, bool of_batch,
                    weft_bound **out)
{
    struct binding b = {.of_batch = of_batch};
    struct wf_bind_outcome outcome;
    weft_status status = begin(&b, plan, call);

    status = status == WEFT_OK ? make_bound(&b, plan) : decline_binding(plan, call, status);
    wf_bound_steps_clear(&b.steps);
    status = wf_bind_agree(call, "binding", status, plan, &outcome);
    if (status != WEFT_OK) {
        wf_bound_free(b.bound);
        return status;
    }
    b.bound->binding = call->team->bindings = outcome.binding;
    *out = b.bound;
    return WEFT_OK;
}

weft_status wf_bind_size(const weft_plan *plan, const struct wf_bind_call *call, uint64_t *bytes)
{
    struct binding b = {.of_batch = true};
    weft_status status = begin(&b, plan, call);

    if (status == WEFT_OK) status = make_bound(&b, plan);
    wf_bound_steps_clear(&b.steps);
    if (status == WEFT_OK) *bytes = wf_scratch_bytes(b.bound);
    wf_bound_free(b.bound);
    return status;
}

/* ---- ending ---- */

static void free_resources(struct weft_bound *bound)
{
    for (uint32_t i = 0; i < bound->action_count; i++)
        wf_action_clear(bound, &bound->actions[i]);
    wf_bound_steps_clear(&bound->steps);
    wf_batch_clear(bound);
    wf_scratch_drop(bound);
    wf_sketches_free(bound);
}

/* Free all resources of the context and its plugin. */
static void clear_bound(struct weft_bound *bound)
{
    if (bound->own_runs.binding != 0) wf_runs_remove(bound->team, &bound->own_runs);
    /* Steps run on groups of PARENT.  If only the size is wanted, nothing has run. */
    if (bound->sized_only || wf_posts_drain(bound->parent))
        free_resources(bound);
    else
        wf_log(WF_LOG_WARNING,
               "the scratch of a plan bound to %s is not freed: its work is still in progress",
               bound->parent->name);
    if (!bound->is_cached) atomic_fetch_sub(&bound->context->live_bound, 1);
    bound->action_count = 0;
    bound->scratch_bytes = 0;
    bound->context = NULL;
    bound->parent = bound->team = NULL;
}

static void end_with_comm(struct wf_dependent *self, const char *cause)
{
    struct weft_bound *bound =
        (struct weft_bound *)(void *)((char *)self - offsetof(struct weft_bound, dependent));

    clear_bound(bound);
    bound->made = wf_ended(WF_KIND_BOUND);
    snprintf(bound->ended, sizeof bound->ended, "%s", cause);
}

weft_status wf_bound_refuse(const weft_bound *bound, const char *function)
{
    if (bound == NULL) return wf_fail_null(function, "bound");
    if (bound->made == wf_ended(WF_KIND_BOUND))
        return wf_fail(WEFT_ERR_INVALID, "%s: %s; its bound plans ended with it", function,
                       bound->ended);
    return wf_fail_unusable(function, "bound", bound->made, WF_KIND_BOUND);
}

/* ---- the order of runs ---- */

static bool has_part(const weft_spec *from, const weft_spec *to, int32_t rank)
{
    int32_t coord[WEFT_MAX_AXES];

    return wf_mesh_coord(from->layout.mesh, rank, coord) ||
           wf_mesh_coord(to->layout.mesh, rank, coord);
}

/* The function that runs BOUND. */
static const char *name_runner(const struct weft_bound *bound)
{
    if (bound->is_cached) return "weft_move";
    return bound->batch != NULL ? "weft_redistribute_batch" : "weft_redistribute";
}

/* Let runs of BOUND be compared with other ranks'.  A rank in none of the plan's meshes need not
 * run it. */
static void list_runs(struct weft_bound *bound)
{
    const weft_plan *plan = bound->plan;
    bool part = false;

    for (uint32_t i = 0; i < (plan->members != NULL ? plan->member_count : 1); i++) {
        const weft_spec *from = plan->members != NULL ? plan->members[i].from : plan->from;
        const weft_spec *to = plan->members != NULL ? plan->members[i].to : plan->to;

        part = part || has_part(from, to, bound->parent->rank);
    }
    if (!part) return;
    bound->own_runs.binding = bound->binding;
    bound->own_runs.digest = plan->digest;
    bound->own_runs.is_for_all = bound->is_cached; /* a move's communicator has its ranks only */
    bound->own_runs.function = name_runner(bound);
    bound->own_runs.name = wf_bound_name(bound);
    wf_plan_name(plan, false, bound->own_runs.text, sizeof bound->own_runs.text);
    wf_runs_add(bound->team, &bound->own_runs);
}

/* ---- the calls ---- */

weft_status wf_bind_read(const weft_plan *plan, const weft_bind_options *options, const void *out,
                         struct wf_bind_call *call)
{
    char what[64];

    snprintf(what, sizeof what, "%s: plan", call->function);
    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, what));
    if (out == NULL) return wf_fail_null(call->function, "out");
    WF_TRY(wf_options_read("weft_bind_options", options, &call->given, sizeof call->given));
    if (plan->members == NULL)
        return check_living(call->function, plan->from, plan->to, plan->living, call->parent);
    for (uint32_t i = 0; i < plan->member_count; i++)
        WF_TRY(wf_bind_check(call->function, plan->members[i].from, plan->members[i].to,
                             call->parent));
    return WEFT_OK;
}

/* Bind PLAN by CALL, which has room.  STATUS: see wf_plan_bind. */
static weft_status bind_agreed(const weft_plan *plan, struct wf_bind_call *call, weft_status status,
                               weft_bound **out)
{
    struct wf_bind_outcome outcome;

    if (status == WEFT_OK) status = wf_casts_find(plan, call->team, &call->casts);
    if (status == WEFT_OK) wf_ways_find(plan, call->team, &call->ways);
    WF_TRY(wf_bind_agree(call, "comparing plans", status, plan, &outcome));
    call->casts = outcome.casts;
    call->ways = outcome.ways;
    return plan->members != NULL ? wf_batch_bind(plan, call, out) : wf_bind(plan, call, false, out);
}

weft_status wf_bind_give_room(struct wf_bind_call *call)
{
    size_t bytes = (size_t)call->parent->size * sizeof *call->room;

    call->room = wf_alloc(bytes);
    return call->room != NULL ? WEFT_OK : wf_fail_memory(bytes);
}

static weft_status bind(const weft_plan *plan, const struct wf_bind_call *call, weft_status status,
                        weft_bound **out)
{
    struct wf_bind_call mine = *call;

    if (status == WEFT_OK) status = wf_bind_give_room(&mine);
    status = bind_agreed(plan, &mine, status, out);
    wf_free(mine.room);
    if (status != WEFT_OK) return status;
    (*out)->dependent.end = end_with_comm;
    wf_dependent_add(&(*out)->dependent, call->team);
    wf_drafts_set(*out, call->given.name);
    list_runs(*out); /* after it has its name */
    return WEFT_OK;
}

weft_status wf_plan_bind(const weft_plan *plan, const struct wf_bind_call *call, weft_status status,
                         weft_bound **out)
{
    weft_context *context = call->team->context;
    struct wf_trace *trace = atomic_load_explicit(&context->tracing, memory_order_relaxed);
    struct wf_submitted record = {NULL, 0};

    if (trace != NULL) record = wf_record_bind(trace, plan, call);
    status = bind(plan, call, status, out);
    if (trace == NULL) return status;
    wf_trace_return(trace);
    if (status != WEFT_OK) return wf_trace_fail(trace, record, status);
    wf_trace_finish(trace, record);
    return WEFT_OK;
}

weft_status weft_plan_bind(const weft_plan *plan, weft_comm *comm, const weft_bind_options *options,
                           weft_bound **out)
{
    struct wf_bind_call call = {.function = "weft_plan_bind", .parent = comm, .team = comm};
    weft_status status;

    if (comm == NULL) return wf_fail_null("weft_plan_bind", "comm");
    WF_TRY(wf_comm_check(comm, "weft_plan_bind"));
    /* A refused call takes part in the agreement: otherwise the other ranks' call pairs with this
     * rank's next one. */
    status = wf_bind_read(plan, options, out, &call);
    if (call.given.mesh != NULL)
        status = wf_comm_mesh_group(comm, call.given.mesh, call.function, status, &call.team);
    if (call.team == NULL) {
        if (status == WEFT_OK) *out = NULL;
        return wf_fail_named(status, call.function);
    }
    status = wf_plan_bind(plan, &call, status, out);
    if (status == WEFT_OK) return WEFT_OK;
    if (!wf_is_kind(plan, WF_KIND_PLAN)) return status;
    return wf_fail_tensor(status, call.function, plan->members != NULL ? "batch" : "tensor",
                          call.given.name);
}

void wf_bound_free(weft_bound *bound)
{
    if (bound == NULL) return;
    if (bound->made != wf_ended(WF_KIND_BOUND)) {
        wf_dependent_remove(&bound->dependent);
        clear_bound(bound);
    }
    weft_plan_release(&bound->plan);
    wf_free(bound);
}

void weft_bound_release(weft_bound **bound)
{
    weft_context *context;
    weft_bound *mine;
    bool ended;

    if (bound == NULL || *bound == NULL) return;
    mine = *bound;
    *bound = NULL;
    ended = mine->made == wf_ended(WF_KIND_BOUND);
    if (!ended && !wf_is_usable(mine->made, WF_KIND_BOUND)) {
        wf_warn_unusable("weft_bound_release", mine->made, WF_KIND_BOUND);
        return;
    }
    context = mine->context;
    if (!ended) {
        wf_dependent_remove(&mine->dependent);
        clear_bound(mine);
    }
    weft_plan_release(&mine->plan);
    mine->made = wf_released(WF_KIND_BOUND);
    if (ended)
        wf_free(mine); /* its context may have ended too */
    else
        wf_remnant_keep(context, mine);
}

bool weft_bound_is_packed(const weft_bound *bound)
{
    return bound != NULL && bound->packed;
}
