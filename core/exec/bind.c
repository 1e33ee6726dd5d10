/* bind.c - a plan bound to communicators, scratch and one rank's share of every step. */
#include "bound.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the ranks of a step ---- */

/* The ranks of either mesh, each once: those of the first, then those only in the second. */
static weft_status list_union(const weft_mesh *first, const weft_mesh *second, int32_t rank,
                              int32_t **out, int32_t *count)
{
    int32_t coord[WEFT_MAX_AXES];
    int32_t *ranks;

    *count = 0;
    *out = NULL;
    if (!wf_mesh_coord(first, rank, coord) && !wf_mesh_coord(second, rank, coord)) return WEFT_OK;
    ranks = wf_alloc(((size_t)first->size + (size_t)second->size) * sizeof *ranks);
    if (ranks == NULL)
        return wf_fail_memory(((size_t)first->size + (size_t)second->size) * sizeof *ranks);
    for (int32_t i = 0; i < first->size; i++)
        ranks[(*count)++] = weft_mesh_rank_at(first, i);
    for (int32_t i = 0; i < second->size; i++)
        if (!wf_mesh_coord(first, weft_mesh_rank_at(second, i), coord))
            ranks[(*count)++] = weft_mesh_rank_at(second, i);
    *out = ranks;
    return WEFT_OK;
}

/* Set the communicator of ACTION, and whether this rank takes part in it.  STATUS is the result of
 * binding so far.  A rank whose binding failed still goes through the other steps, so that the
 * ranks that would create communicators with it fail too. */
static weft_status set_comm(weft_comm *parent, struct wf_action *action, weft_status status)
{
    const struct wf_step *step = action->step;
    const weft_mesh *from = step->from->layout.mesh, *to = step->to->layout.mesh;
    int32_t rank = weft_comm_rank(parent), count, *ranks;

    if (from == to)
        WF_TRY(wf_mesh_group(from, step->axes, rank, &ranks, &count));
    else
        WF_TRY(list_union(from, to, rank, &ranks, &count));
    action->member = count > 0;
    if (count > 0 && !wf_step_is_local(step))
        status = wf_comm_group(parent, ranks, count, status, &action->comm);
    wf_free(ranks);
    return status;
}

static weft_status set_comms(struct weft_bound *bound)
{
    weft_status status = WEFT_OK, now;

    for (uint32_t i = 0; i < bound->action_count; i++) {
        now = set_comm(bound->parent, &bound->actions[i], status);
        if (status == WEFT_OK) status = now;
    }
    return status;
}

/* Binding failed here before there was anything to bind to. */
static weft_status decline_binding(const weft_plan *plan, weft_comm *comm, weft_status status)
{
    for (uint32_t i = 0; i < plan->step_count; i++) {
        struct wf_action action = {.step = &plan->steps[i]};
        (void)set_comm(comm, &action, status);
    }
    return status;
}

/* ---- binding ---- */

struct binding {
    struct weft_bound *bound;
    const int64_t *source_strides, *target_strides;
    bool copy_first, copy_last;
    bool of_batch;
};

static weft_status set_steps(struct binding *b)
{
    struct weft_bound *bound = b->bound;
    uint32_t first = b->copy_first, count = bound->plan->step_count;

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
    uint32_t count = plan->step_count;
    bool may_alias = count == 1 && plan->steps[0].kind == WEFT_STEP_ALL_REDUCE;

    if (count == 0) { /* one copy, straight from the source's strides to the target's */
        b->copy_last = true;
        b->copy_first = in_place && (b->source_strides != NULL || b->target_strides != NULL);
        return;
    }
    b->copy_first = (b->source_strides != NULL && !wf_step_is_local(&plan->steps[0])) ||
                    (in_place && !may_alias);
    b->copy_last = b->target_strides != NULL && wf_step_needs_dense_output(&plan->steps[count - 1]);
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
        if (i >= first && i < first + plan->step_count) action->number = i - first + 1;
        if (i < first)
            action->step = &bound->before;
        else if (i - first < plan->step_count)
            action->step = &plan->steps[i - first];
        else
            action->step = &bound->after;
    }
    WF_TRY(set_comms(bound));
    if (plan->step_count == 0 && !b->copy_first)
        WF_TRY(wf_action_set(bound, &bound->actions[0], b->source_strides, b->target_strides));
    else
        WF_TRY(set_steps(b));
    if (b->of_batch) return WEFT_OK;
    WF_TRY(wf_scratch_make(bound, wf_scratch_bytes(bound)));
    wf_scratch_assign(bound, bound->scratch);
    return WEFT_OK;
}

static weft_status refuse_size(const weft_comm *comm, int32_t last)
{
    char help[64];

    wf_comm_advise_size(comm, last + 1, help, sizeof help);
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_plan_bind: the meshes of the plan have ranks up to %d and need %d ranks; "
                   "%s has %d: %s, or use a smaller mesh",
                   last, last + 1, comm->name, comm->size, help);
}

weft_status wf_bind_check(const weft_spec *from, const weft_spec *to, const weft_comm *comm)
{
    const weft_kernel_table *kernel = comm->context->plugin->kernel;
    const weft_mesh *meshes[] = {from->layout.mesh, to->layout.mesh};
    int32_t last = 0;

    for (size_t m = 0; m < WF_COUNT(meshes); m++)
        for (int32_t i = 0; i < meshes[m]->size; i++)
            if (weft_mesh_rank_at(meshes[m], i) > last) last = weft_mesh_rank_at(meshes[m], i);
    if (last >= comm->size) return refuse_size(comm, last);
    if (kernel == NULL || !WF_HAS(kernel, regions_create) || !WF_HAS(kernel, regions_reduce))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_plan_bind: backend %s cannot run plans: its kernel table lacks "
                       "regions_create or regions_reduce; choose another backend with WEFT_BACKEND",
                       comm->context->plugin->name);
    return WEFT_OK;
}

/* A rank's description of its plan, which the ranks compare. */
struct plan_name {
    uint64_t digest;
    uint32_t packed, in_place;
    uint32_t bindings, unused; /* number of plans bound to the communicator so far */
    char text[240];            /* truncated if longer */
};

static void name_plan(const weft_comm *comm, const weft_plan *plan, const weft_bind_options *given,
                      struct plan_name *out)
{
    memset(out, 0, sizeof *out);
    out->bindings = comm->bindings;
    out->digest = plan->digest;
    out->packed = given->packed;
    out->in_place = given->in_place;
    wf_plan_name(plan, true, out->text, sizeof out->text);
}

/* MINE of rank COMM->rank, THEIRS of rank I. */
static weft_status compare_plans(const weft_comm *comm, const struct plan_name *mine, int32_t i,
                                 const struct plan_name *theirs)
{
    if (theirs->digest != mine->digest)
        return wf_fail(WEFT_ERR_MISMATCH,
                       "rank %d and rank %d bind different plans: %s (digest %016llx) on "
                       "rank %d, %s (digest %016llx) on rank %d",
                       i, comm->rank, theirs->text, (unsigned long long)theirs->digest, i,
                       mine->text, (unsigned long long)mine->digest, comm->rank);
    if (theirs->packed != mine->packed)
        return wf_fail(WEFT_ERR_MISMATCH, "rank %d binds %s packed, rank %d does not",
                       theirs->packed ? i : comm->rank, mine->text,
                       theirs->packed ? comm->rank : i);
    if (theirs->in_place != mine->in_place)
        return wf_fail(WEFT_ERR_MISMATCH, "rank %d binds %s in place, rank %d does not",
                       theirs->in_place ? i : comm->rank, mine->text,
                       theirs->in_place ? comm->rank : i);
    return WEFT_OK;
}

weft_status wf_bind_agree(weft_comm *comm, const char *step, weft_status status,
                          const weft_plan *plan, const weft_bind_options *given, uint32_t *binding)
{
    struct plan_name mine = {0}, theirs;
    uint32_t bindings = comm->bindings;
    struct wf_gathered got;
    char label[192];

    if (status == WEFT_OK) name_plan(comm, plan, given, &mine);
    snprintf(label, sizeof label, "weft_plan_bind on %s (%s)", comm->name, step);
    WF_TRY(wf_comm_agree(comm, label, status, (weft_blob){&mine, sizeof mine}, &got));
    for (int32_t i = 0; i < got.count && status == WEFT_OK; i++) {
        if (got.blobs[i].bytes != sizeof theirs) {
            status = wf_fail(WEFT_ERR_MISMATCH,
                             "rank %d sent data that is not a plan: it called another function, or "
                             "it has another version of weft",
                             i);
            break;
        }
        memcpy(&theirs, got.blobs[i].data, sizeof theirs);
        theirs.text[sizeof theirs.text - 1] = '\0';
        status = compare_plans(comm, &mine, i, &theirs);
        if (theirs.bindings > bindings) bindings = theirs.bindings;
    }
    wf_gathered_free(&got);
    if (status == WEFT_OK && binding != NULL) *binding = comm->bindings = bindings + 1;
    return status;
}

/* True if the backend can pull.  It cannot read memory of other hosts, nor of processes that do not
 * permit it. */
static bool can_pull(const weft_comm *comm)
{
    weft_pull_args question = {.struct_size = sizeof question};

    return WF_HAS(comm->table, pull) &&
           comm->table->pull(comm->handle, &question) != WEFT_ERR_UNSUPPORTED;
}

static weft_status check_strides(const struct binding *b, const weft_plan *plan, int32_t rank)
{
    WF_TRY(wf_strides_check("weft_bind_options.source_strides", plan->from, rank, b->source_strides,
                            false));
    return wf_strides_check("weft_bind_options.target_strides", plan->to, rank, b->target_strides,
                            true);
}

void wf_bound_begin(struct weft_bound *bound, const weft_plan *plan, weft_comm *comm,
                    const weft_bind_options *given)
{
    bound->plan = weft_plan_retain(plan);
    bound->parent = comm;
    bound->context = comm->context;
    bound->made = wf_made_now(WF_KIND_BOUND);
    atomic_fetch_add(&bound->context->live_bound, 1);
    bound->device = comm->context->device;
    bound->device_table = comm->context->plugin->device;
    bound->kernel = comm->context->plugin->kernel;
    bound->in_place = given->in_place;
    bound->checked = comm->context->config->check;
    bound->runs = &bound->own_runs;
}

static weft_status make_bound(struct binding *b, const weft_plan *plan, weft_comm *comm,
                              const weft_bind_options *given)
{
    uint32_t actions = plan->step_count + b->copy_first + b->copy_last;
    struct weft_bound *bound = wf_calloc(1, sizeof *bound + actions * sizeof bound->actions[0]);

    if (bound == NULL) return decline_binding(plan, comm, wf_fail_memory(sizeof *bound));
    wf_bound_begin(bound, plan, comm, given);
    wf_buffers_measure(plan->from, comm->rank, b->source_strides, &bound->memory.source);
    wf_buffers_measure(plan->to, comm->rank, b->target_strides, &bound->memory.target);
    bound->packed = given->packed || !can_pull(comm);
    bound->action_count = actions;
    b->bound = bound;
    return fill_in(b);
}

weft_status wf_bind(const weft_plan *plan, weft_comm *comm, const weft_bind_options *given,
                    bool of_batch, weft_bound **out)
{
    struct binding b = {.of_batch = of_batch,
                        .source_strides = given->source_strides,
                        .target_strides = given->target_strides};
    uint32_t binding = 0;
    weft_status status;

    plan_copies(&b, plan, given->in_place);
    status = check_strides(&b, plan, comm->rank);
    status =
        status == WEFT_OK ? make_bound(&b, plan, comm, given) : decline_binding(plan, comm, status);
    status = wf_bind_agree(comm, "binding", status, plan, given, &binding);
    if (status != WEFT_OK) {
        wf_bound_free(b.bound);
        return status;
    }
    b.bound->binding = binding;
    *out = b.bound;
    return WEFT_OK;
}

/* ---- ending ---- */

static void free_resources(struct weft_bound *bound)
{
    for (uint32_t i = 0; i < bound->action_count; i++)
        wf_action_clear(bound, &bound->actions[i]);
    wf_batch_clear(bound);
    wf_scratch_free(bound);
}

/* Free all resources of the context and its plugin. */
static void clear_bound(struct weft_bound *bound)
{
    if (bound->own_runs.binding != 0) wf_runs_remove(bound->parent, &bound->own_runs);
    if (wf_posts_drain(bound->parent))
        free_resources(bound);
    else
        wf_log(WF_LOG_WARNING,
               "the scratch of a plan bound to %s is not freed: its work is still in progress",
               bound->parent->name);
    atomic_fetch_sub(&bound->context->live_bound, 1);
    bound->action_count = 0;
    bound->scratch_bytes = 0;
    bound->context = NULL;
    bound->parent = NULL;
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
    wf_plan_name(plan, false, bound->own_runs.text, sizeof bound->own_runs.text);
    wf_runs_add(bound->parent, &bound->own_runs);
}

/* ---- the calls ---- */

/* Check the arguments of weft_plan_bind but COMM, and read OPTIONS into GIVEN. */
static weft_status check_call(const weft_plan *plan, const weft_comm *comm,
                              const weft_bind_options *options, weft_bound **out,
                              weft_bind_options *given)
{
    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_bind: plan"));
    if (out == NULL) return wf_fail_null("weft_plan_bind", "out");
    WF_TRY(wf_options_read("weft_bind_options", options, given, sizeof *given));
    if (plan->members == NULL) return wf_bind_check(plan->from, plan->to, comm);
    for (uint32_t i = 0; i < plan->member_count; i++)
        WF_TRY(wf_bind_check(plan->members[i].from, plan->members[i].to, comm));
    return WEFT_OK;
}

weft_status weft_plan_bind(const weft_plan *plan, weft_comm *comm, const weft_bind_options *options,
                           weft_bound **out)
{
    weft_bind_options given = {0};
    weft_status status;

    if (comm == NULL) return wf_fail_null("weft_plan_bind", "comm");
    WF_TRY(wf_comm_check(comm, "weft_plan_bind"));
    /* A refused call takes part in the agreement: otherwise the other ranks' call pairs with this
     * rank's next one. */
    status = check_call(plan, comm, options, out, &given);
    WF_TRY(wf_bind_agree(comm, "comparing plans", status, plan, &given, NULL));
    if (plan->members != NULL)
        WF_TRY(wf_batch_bind(plan, comm, &given, out));
    else
        WF_TRY(wf_bind(plan, comm, &given, false, out));
    (*out)->dependent.end = end_with_comm;
    wf_dependent_add(&(*out)->dependent, comm);
    list_runs(*out);
    return WEFT_OK;
}

void wf_bound_free(weft_bound *bound)
{
    if (bound == NULL) return;
    clear_bound(bound);
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

uint64_t weft_bound_scratch(const weft_bound *bound)
{
    return bound != NULL ? bound->scratch_bytes : 0;
}
