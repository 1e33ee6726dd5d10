/* cache.c - the plans and bound plans of moves.
 *
 * Binding is collective, so all ranks that make a move must have its bound plan or none of them.
 * They therefore evict by the order of binding, in which all of them bind, and not by the order of
 * use: a move that one rank refuses, because of its arguments, does not change it. */
#include "comm/recording.h"
#include "kept.h"

#include <string.h>

enum { MOST_PLANS = 1024 };

/* ---- the ranks of a move ---- */

static void mark_ranks(const weft_mesh *mesh, unsigned char *among)
{
    for (int32_t i = 0; i < mesh->size; i++)
        among[weft_mesh_rank_at(mesh, i)] = 1;
}

/* List the ranks of the meshes of ITEMS, all of which are ranks of the world, in ascending order.
 * Returns how many there are.  It cannot fail: a rank without memory must know which ranks to tell
 * about that. */
static int32_t list_ranks(const weft_context *context, uint32_t count, const weft_move_item *items)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    int32_t listed = 0;

    memset(moves->among, 0, (size_t)context->size);
    for (uint32_t i = 0; i < count; i++) {
        const weft_mesh *from = items[i].from->layout.mesh, *to = items[i].to->layout.mesh;

        if (i == 0 || from != items[i - 1].from->layout.mesh) mark_ranks(from, moves->among);
        if (to != from && (i == 0 || to != items[i - 1].to->layout.mesh))
            mark_ranks(to, moves->among);
    }
    for (int32_t rank = 0; rank < context->size; rank++)
        if (moves->among[rank]) moves->ranks[listed++] = rank;
    return listed;
}

weft_status wf_moves_agree(weft_context *context, const weft_spec *from, const weft_spec *to,
                           const char *function, weft_status status, weft_blob blob,
                           struct wf_gathered *out)
{
    const weft_move_item item = {.from = from, .to = to};
    struct wf_submitted record;
    weft_comm *team = NULL;
    int32_t count;

    *out = (struct wf_gathered){0};
    WF_TRY(wf_bind_check(function, from, to, context->world));
    count = list_ranks(context, 1, &item);
    if (!wf_exec_state(context)->moves.among[context->rank]) return status;
    status = wf_comm_group(context->world, function, wf_exec_state(context)->moves.ranks, count,
                           status, true, &team);
    if (team == NULL) return status;
    record = wf_record_agreement(team, function, NULL, 0);
    return wf_record_created(team, record, wf_comm_agree(team, function, status, blob, out));
}

/* ---- plans ---- */

weft_status wf_moves_plan(weft_context *context, const weft_spec *from, const weft_spec *to,
                          const weft_plan_options *options, weft_plan **out)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    weft_plan_options given = {0};

    WF_TRY(wf_options_read("weft_plan_options", options, &given, sizeof given));
    given.struct_size = sizeof given;
    if (given.costs == NULL) given.costs = context->costs;
    if (moves->plans == NULL) WF_TRY(wf_plan_cache_create(MOST_PLANS, &moves->plans));
    return wf_plan_cache_find(moves->plans, from, to, &given, out);
}

/* Plan every one of ITEMS alone.  An error names the tensor. */
static weft_status plan_each(weft_context *context, uint32_t count, const weft_move_item *items,
                             const weft_plan_options *options)
{
    for (uint32_t i = 0; i < count; i++) {
        weft_plan *plan = NULL;
        weft_status status = wf_moves_plan(context, items[i].from, items[i].to, options, &plan);

        weft_plan_release(&plan);
        if (status != WEFT_OK && items[i].name != NULL)
            return wf_fail_context(status, "tensor %s", items[i].name);
        if (status != WEFT_OK) return wf_fail_context(status, "items[%u]", i);
    }
    return WEFT_OK;
}

static weft_status plan_batch(weft_context *context, uint32_t count, const weft_move_item *items,
                              const weft_plan_options *given, weft_plan **out)
{
    weft_plan_options options = given != NULL ? *given : (weft_plan_options){0};
    const weft_spec **specs = wf_calloc(2 * (size_t)count, sizeof *specs);
    weft_status status;

    options.struct_size = sizeof options;
    if (options.costs == NULL) options.costs = context->costs;
    if (specs == NULL) return wf_fail_memory(2 * (size_t)count * sizeof *specs);
    for (uint32_t i = 0; i < count; i++) {
        specs[i] = items[i].from;
        specs[count + i] = items[i].to;
    }
    status = weft_plan_create_batch(count, specs, specs + count, &options, out);
    wf_free(specs);
    if (status == WEFT_OK) return WEFT_OK;
    WF_TRY(plan_each(context, count, items, given)); /* so that the error has a name */
    return status;
}

static weft_status make_plan(weft_context *context, uint32_t count, const weft_move_item *items,
                             const weft_plan_options *options, weft_plan **out)
{
    if (count > 1) return plan_batch(context, count, items, options, out);
    return wf_moves_plan(context, items[0].from, items[0].to, options, out);
}

/* ---- bound plans ---- */

static void free_kept(struct wf_kept_move *kept)
{
    weft_cost_table *costs;

    if (kept == NULL) return;
    wf_bound_free(kept->bound);
    weft_plan_release(&kept->plan);
    costs = (weft_cost_table *)(uintptr_t)kept->choice.costs;
    weft_cost_table_release(&costs);
    for (uint32_t i = 0; i < 2 * kept->count; i++) {
        weft_spec *spec = (weft_spec *)(uintptr_t)kept->pairs[i];
        weft_spec_release(&spec);
    }
    wf_free(kept->sources);
    wf_free(kept->targets);
    wf_free(kept);
}

static weft_status make_kept(uint32_t count, const weft_move_item *items,
                             const struct wf_moving *how, uint64_t hash, struct wf_kept_move **out)
{
    size_t bytes = sizeof(struct wf_kept_move) + 2 * (size_t)count * sizeof(weft_spec *);
    struct wf_kept_move *kept = wf_calloc(1, bytes);

    if (kept == NULL) return wf_fail_memory(bytes);
    kept->hash = hash;
    kept->sources = wf_calloc(count, sizeof *kept->sources);
    kept->targets = wf_calloc(count, sizeof *kept->targets);
    if (kept->sources == NULL || kept->targets == NULL) {
        free_kept(kept);
        return wf_fail_memory(count * sizeof *kept->sources);
    }
    kept->count = count;
    kept->key = wf_move_key(count, how);
    if (how != NULL && how->is_chosen) {
        kept->choice = how->plan;
        kept->choice.costs = weft_cost_table_retain(how->plan.costs);
    }
    for (uint32_t i = 0; i < count; i++) {
        kept->pairs[2 * i] = weft_spec_retain(items[i].from);
        kept->pairs[2 * i + 1] = weft_spec_retain(items[i].to);
    }
    *out = kept;
    return WEFT_OK;
}

static weft_status make_buckets(struct wf_moves *moves)
{
    uint32_t count = 16;

    if (moves->buckets != NULL) return WEFT_OK;
    while (count < 2 * moves->most)
        count *= 2;
    moves->buckets = wf_calloc(count, sizeof *moves->buckets);
    if (moves->buckets == NULL) return wf_fail_memory(count * sizeof *moves->buckets);
    moves->mask = count - 1;
    return WEFT_OK;
}

static weft_status find_mover(struct wf_moves *moves, weft_comm *comm, struct wf_mover **out)
{
    struct wf_mover *mover = moves->movers;

    while (mover != NULL && mover->comm != comm)
        mover = mover->next;
    if (mover == NULL) {
        mover = wf_calloc(1, sizeof *mover);
        if (mover == NULL) return wf_fail_memory(sizeof *mover);
        *mover = (struct wf_mover){.next = moves->movers, .comm = comm};
        moves->movers = mover;
    }
    *out = mover;
    return WEFT_OK;
}

static void keep(struct wf_moves *moves, struct wf_mover *mover, struct wf_kept_move *kept)
{
    struct wf_kept_move **bucket = &moves->buckets[kept->hash & moves->mask];

    kept->mover = mover;
    kept->next = *bucket;
    *bucket = kept;
    if (mover->newest != NULL)
        mover->newest->newer = kept;
    else
        mover->oldest = kept;
    mover->newest = kept;
    mover->count++;
    moves->kept++;
    moves->bound++;
}

/* Take the oldest move of MOVER out of the cache. */
static struct wf_kept_move *take_oldest(struct wf_moves *moves, struct wf_mover *mover)
{
    struct wf_kept_move *kept = mover->oldest;
    struct wf_kept_move **at = &moves->buckets[kept->hash & moves->mask];

    while (*at != kept)
        at = &(*at)->next;
    *at = kept->next;
    mover->oldest = kept->newer;
    if (mover->oldest == NULL) mover->newest = NULL;
    mover->count--;
    moves->kept--;
    return kept;
}

/* Wait for the moves of KEPT.  A stream that was released has no work. */
static weft_status wait_for(weft_context *context, const struct wf_kept_move *kept)
{
    weft_work *work = NULL;
    weft_status status;

    if (kept->streams_ended == 0) return WEFT_OK;
    WF_TRY(wf_stream_record(context, kept->stream, "weft_move", &work));
    status = work != NULL ? weft_work_wait(work, context->timeout_ns) : WEFT_OK;
    weft_work_release(&work);
    return status;
}

static void evict_oldest(weft_context *context, struct wf_mover *mover)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    struct wf_kept_move *kept = take_oldest(moves, mover);

    moves->evicted++;
    moves->ended++;
    if (wait_for(context, kept) == WEFT_OK) {
        free_kept(kept);
        return;
    }
    kept->next = moves->left; /* its work may still use it */
    moves->left = kept;
}

/* Bind PLAN, of ITEMS, on the communicator of the COUNT listed ranks, and keep it as KEPT.  STATUS
 * is this rank's result so far. */
static weft_status bind_and_keep(weft_context *context, const weft_plan *plan,
                                 const weft_move_item *items, int32_t count, const char *function,
                                 weft_status status, struct wf_kept_move *kept)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    struct wf_bind_call call = {
        .function = function, .parent = context->world, .is_cached = true, .named = items};
    struct wf_mover *mover = NULL;
    weft_bound *bound = NULL;

    status = wf_comm_group(context->world, function, moves->ranks, count, status, true, &call.team);
    if (call.team == NULL) return wf_fail_named(status, function);
    if (status == WEFT_OK) status = find_mover(moves, call.team, &mover);
    WF_TRY(wf_plan_bind(plan, &call, status, &bound));
    kept->bound = bound;
    keep(moves, mover, kept);
    if (mover->count > moves->most) evict_oldest(context, mover);
    return WEFT_OK;
}

/* The ranks are simulated: keep PLAN itself. */
static weft_status keep_plan(weft_context *context, const weft_plan *plan, weft_status status,
                             struct wf_kept_move *kept)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    struct wf_mover *mover = NULL;

    WF_TRY(status);
    WF_TRY(find_mover(moves, context->world, &mover));
    kept->plan = weft_plan_retain(plan);
    keep(moves, mover, kept);
    if (mover->count > moves->most) evict_oldest(context, mover);
    return WEFT_OK;
}

weft_status wf_moves_add(weft_context *context, uint32_t count, const weft_move_item *items,
                         const struct wf_moving *how, uint64_t hash, const char *function,
                         struct wf_kept_move **out)
{
    const weft_plan_options *options = how != NULL && how->is_chosen ? &how->plan : NULL;
    struct wf_kept_move *kept = NULL;
    weft_plan *plan = NULL;
    int32_t rank_count;
    weft_status status;

    for (uint32_t i = 0; i < count; i++)
        WF_TRY(wf_bind_check(function, items[i].from, items[i].to, context->world));
    rank_count = list_ranks(context, count, items);
    if (!wf_exec_state(context)->moves.among[context->rank] && !context->is_simulated) {
        *out = NULL;
        status = plan_each(context, count, items, options);
        return status == WEFT_OK ? status : wf_fail_named(status, function);
    }
    status = make_plan(context, count, items, options, &plan);
    if (status == WEFT_OK && !context->is_simulated)
        status = wf_items_check_place(context, function, count, items);
    if (status == WEFT_OK) status = make_buckets(&wf_exec_state(context)->moves);
    if (status == WEFT_OK) status = make_kept(count, items, how, hash, &kept);
    if (status != WEFT_OK) status = wf_fail_named(status, function);
    status = context->is_simulated
                 ? keep_plan(context, plan, status, kept)
                 : bind_and_keep(context, plan, items, rank_count, function, status, kept);
    weft_plan_release(&plan);
    if (status != WEFT_OK) {
        free_kept(kept);
        return status;
    }
    *out = kept;
    return WEFT_OK;
}

/* ---- the end ---- */

weft_status wf_moves_wait(weft_context *context)
{
    const struct wf_moves *moves = &wf_exec_state(context)->moves;

    for (const struct wf_mover *mover = moves->movers; mover != NULL; mover = mover->next)
        for (const struct wf_kept_move *kept = mover->oldest; kept != NULL; kept = kept->newer)
            WF_TRY(wait_for(context, kept));
    for (const struct wf_kept_move *kept = moves->left; kept != NULL; kept = kept->next)
        WF_TRY(wait_for(context, kept));
    return WEFT_OK;
}

void wf_moves_drop(weft_context *context)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;

    moves->ended++;
    while (moves->movers != NULL) {
        struct wf_mover *mover = moves->movers;

        while (mover->oldest != NULL)
            free_kept(take_oldest(moves, mover));
        moves->movers = mover->next;
        wf_free(mover);
    }
    while (moves->left != NULL) {
        struct wf_kept_move *kept = moves->left;

        moves->left = kept->next;
        free_kept(kept);
    }
    wf_free(moves->buckets);
    moves->buckets = NULL;
    wf_plan_cache_release(&moves->plans);
}
