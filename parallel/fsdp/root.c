/* root.c - the streams and communicators of gathering and of reducing, which groups share. */
#include "fsdp.h"

#include <stdio.h>
#include <string.h>

static const char type[] = "weft_fsdp";

weft_status wf_fsdp_check(const weft_fsdp *fsdp, const char *function)
{
    WF_TRY(weft_object_check(fsdp, type, function, "fsdp"));
    if (fsdp->context != NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s on fsdp: %s", function, fsdp->cause);
}

int64_t wf_fsdp_timeout(const weft_fsdp *fsdp)
{
    return weft_comm_timeout(weft_world(fsdp->context));
}

weft_status wf_fsdp_follow(weft_fsdp *fsdp, weft_stream *earlier, weft_stream *later,
                           const char *function)
{
    weft_work *work = NULL;
    weft_status status;

    if (earlier == later) return WEFT_OK;
    WF_TRY(wf_fail_named(weft_work_record(fsdp->context, earlier, &work), function));
    status = weft_stream_wait_work(later, work);
    weft_work_release(&work);
    return status;
}

weft_status wf_fsdp_work_error(weft_work *work)
{
    weft_status status = work != NULL ? weft_work_test(work) : WEFT_OK;

    return status == WEFT_IN_PROGRESS ? WEFT_OK : status;
}

/* ---- the limit of groups ---- */

/* The oldest group in the list of freed ones has been freed, or is waited for. */
static weft_status take_freed(weft_fsdp *fsdp)
{
    struct wf_fsdp_freed *freed = fsdp->freed;
    weft_status status = weft_work_wait(freed->work, wf_fsdp_timeout(fsdp));

    if (status != WEFT_OK) return status;
    fsdp->freed = freed->next;
    if (fsdp->freed == NULL) fsdp->freed_end = &fsdp->freed;
    fsdp->freed_count--;
    weft_work_release(&freed->work);
    wf_free(freed);
    return WEFT_OK;
}

bool wf_fsdp_has_room(const weft_fsdp *fsdp)
{
    return fsdp->groups_max == 0 || fsdp->groups_gathered < fsdp->groups_max;
}

weft_status wf_fsdp_enter(weft_fsdp *fsdp, const char *function)
{
    if (!wf_fsdp_has_room(fsdp))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: groups_max is %zu, and so many groups are gathered; weft_fsdp_reshard "
                       "one of them first",
                       function, fsdp->groups_max);
    while (fsdp->groups_max > 0 && fsdp->groups_gathered + fsdp->freed_count >= fsdp->groups_max)
        WF_TRY(take_freed(fsdp));
    fsdp->groups_gathered++;
    return WEFT_OK;
}

weft_status wf_fsdp_leave(weft_fsdp *fsdp, weft_stream *stream, const char *function)
{
    struct wf_fsdp_freed *freed;
    weft_status status;

    fsdp->groups_gathered--;
    if (fsdp->groups_max == 0) return WEFT_OK;
    freed = wf_calloc(1, sizeof *freed);
    if (freed == NULL) return wf_fail_memory(sizeof *freed);
    status = wf_fail_named(weft_work_record(fsdp->context, stream, &freed->work), function);
    if (status != WEFT_OK) {
        wf_free(freed);
        return status;
    }
    *fsdp->freed_end = freed;
    fsdp->freed_end = &freed->next;
    fsdp->freed_count++;
    return WEFT_OK;
}

/* ---- life ---- */

static void end_fsdp(void *user, const char *cause)
{
    weft_fsdp *fsdp = user;

    snprintf(fsdp->cause, sizeof fsdp->cause, "%s", cause);
    fsdp->context = NULL;
}

/* The newest weft_fsdp of a context is found by its address. */
static const weft_dependent_calls calls = {.struct_size = sizeof calls, .end = end_fsdp};

static bool has_param(const weft_fsdp_group *group, const weft_tensor *tensor)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (group->params[i].stored == tensor) return true;
    return false;
}

bool wf_fsdp_has(weft_context *context, const weft_tensor *tensor)
{
    const weft_fsdp *fsdp = weft_dependent_find(weft_world(context), &calls);

    for (; fsdp != NULL; fsdp = fsdp->older)
        for (const weft_fsdp_group *group = fsdp->groups; group != NULL; group = group->next)
            if (has_param(group, tensor)) return true;
    return false;
}

static void free_fsdp(weft_fsdp *fsdp)
{
    while (fsdp->freed != NULL) {
        struct wf_fsdp_freed *freed = fsdp->freed;

        fsdp->freed = freed->next;
        weft_work_release(&freed->work);
        wf_free(freed);
    }
    weft_comm_release(&fsdp->gather_comm);
    weft_comm_release(&fsdp->reduce_comm);
    if (fsdp->owns_streams) {
        weft_stream_release(&fsdp->gather);
        weft_stream_release(&fsdp->reduce);
    }
    wf_free(fsdp->shard);
    wf_free(fsdp->replicate);
    if (fsdp->older != NULL) fsdp->older->newer = fsdp->newer;
    if (fsdp->newer != NULL) fsdp->newer->older = fsdp->older;
    weft_dependent_release(&fsdp->dependent);
    wf_free(fsdp);
}

static weft_status make_streams(weft_fsdp *fsdp, bool one_stream)
{
    fsdp->gather = fsdp->reduce = fsdp->compute;
    if (one_stream) return WEFT_OK;
    fsdp->gather = fsdp->reduce = NULL;
    fsdp->owns_streams = true;
    WF_TRY(weft_stream_create(fsdp->context, &fsdp->gather));
    return weft_stream_create(fsdp->context, &fsdp->reduce);
}

/* A communicator of all ranks, in their order. */
static weft_status make_channel(weft_context *context, const char *name, weft_comm **out)
{
    const weft_subcomm_options options = {.struct_size = sizeof options, .name = name};

    return weft_comm_split(weft_world(context), 0, weft_rank(context), &options, out);
}

static weft_status make_comms(weft_fsdp *fsdp)
{
    if (weft_is_simulated(fsdp->context)) return WEFT_OK;
    WF_TRY(make_channel(fsdp->context, "fsdp-gather", &fsdp->gather_comm));
    return make_channel(fsdp->context, "fsdp-reduce", &fsdp->reduce_comm);
}

/* MESH has the axes of both lists, and none is in both. */
static weft_status check_axes(const weft_mesh *mesh, const char *shard, const char *replicate)
{
    uint32_t shards, replicates;

    WF_TRY(wf_fsdp_axes(mesh, shard, &shards));
    WF_TRY(wf_fsdp_axes(mesh, replicate, &replicates));
    return wf_fsdp_apart(mesh, shards, replicates, shard, replicate);
}

static weft_status keep_axes(weft_fsdp *fsdp, const char *shard, const char *replicate)
{
    fsdp->shard = wf_strdup(shard);
    fsdp->replicate = wf_strdup(replicate != NULL ? replicate : "");
    return fsdp->shard != NULL && fsdp->replicate != NULL ? WEFT_OK
                                                          : wf_fail_memory(strlen(shard) + 1);
}

/* FSDP is the newest one of its context. */
static weft_status enlist(weft_fsdp *fsdp)
{
    weft_comm *world = weft_world(fsdp->context);
    weft_fsdp *older = weft_dependent_find(world, &calls);

    WF_TRY(weft_dependent_create(world, &calls, fsdp, &fsdp->dependent));
    fsdp->older = older;
    if (older != NULL) older->newer = fsdp;
    weft_object_begin(&fsdp->object, type);
    return WEFT_OK;
}

weft_status weft_fsdp_create(weft_context *context, const weft_mesh *mesh, const char *axes,
                             const weft_fsdp_options *options, weft_fsdp **out)
{
    static const char what[] = "weft_fsdp_create";
    weft_fsdp_options wanted = {0};
    weft_fsdp *fsdp;
    weft_status status;

    WF_TRY(weft_object_check(context, "weft_context", what, "context"));
    WF_TRY(weft_object_check(mesh, "weft_mesh", what, "mesh"));
    if (axes == NULL) return wf_fail_null(what, "axes");
    WF_TRY(
        wf_fail_named(wf_options_read("weft_fsdp_options", options, &wanted, sizeof wanted), what));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(weft_stream_check(context, wanted.compute, what));
    WF_TRY(wf_fail_named(check_axes(mesh, axes, wanted.replicate), what));
    fsdp = wf_calloc(1, sizeof *fsdp);
    if (fsdp == NULL) return wf_fail_named(wf_fail_memory(sizeof *fsdp), what);
    fsdp->context = context;
    fsdp->compute = wanted.compute;
    fsdp->groups_max = wanted.groups_max;
    fsdp->freed_end = &fsdp->freed;
    status = keep_axes(fsdp, axes, wanted.replicate);
    if (status == WEFT_OK) status = make_streams(fsdp, wanted.one_stream);
    if (status == WEFT_OK) status = make_comms(fsdp);
    if (status == WEFT_OK) status = enlist(fsdp);
    if (status != WEFT_OK) {
        free_fsdp(fsdp);
        return wf_fail_named(status, what);
    }
    *out = fsdp;
    return WEFT_OK;
}

void weft_fsdp_release(weft_fsdp **fsdp)
{
    weft_fsdp *mine = fsdp != NULL ? *fsdp : NULL;

    if (mine == NULL || !weft_object_end(&mine->object, type, "weft_fsdp_release")) return;
    *fsdp = NULL;
    mine->is_released = true;
    wf_fsdp_end_if_unused(mine);
}

void wf_fsdp_join(weft_fsdp *fsdp, weft_fsdp_group *group)
{
    group->next = fsdp->groups;
    fsdp->groups = group;
}

static void remove_from_list(struct wf_fsdp_list *list, const weft_fsdp_group *group)
{
    size_t left = 0;

    for (size_t i = 0; i < list->count; i++)
        if (list->groups[i] != group) list->groups[left++] = list->groups[i];
    list->count = left;
}

void wf_fsdp_part(weft_fsdp *fsdp, const weft_fsdp_group *group)
{
    weft_fsdp_group **at = &fsdp->groups;

    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    for (weft_fsdp_group *other = fsdp->groups; other != NULL; other = other->next)
        for (int phase = 0; phase < 2; phase++)
            remove_from_list(&other->prefetch[phase], group);
}

void wf_fsdp_end_if_unused(weft_fsdp *fsdp)
{
    if (fsdp->is_released && fsdp->groups == NULL) free_fsdp(fsdp);
}
