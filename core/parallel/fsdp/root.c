/* root.c - the streams and communicators of gathering and of reducing, which groups share. */
#include "fsdp.h"

#include <stdio.h>

weft_status wf_fsdp_check(const weft_fsdp *fsdp, const char *function)
{
    if (fsdp == NULL) return wf_fail_null(function, "fsdp");
    if (wf_is_usable(fsdp->made, WF_KIND_FSDP)) return WEFT_OK;
    if (fsdp->made == wf_ended(WF_KIND_FSDP))
        return wf_fail(WEFT_ERR_INVALID, "%s: the context of fsdp was released", function);
    return wf_fail_unusable(function, "fsdp", fsdp->made, WF_KIND_FSDP);
}

weft_status wf_fsdp_follow(weft_fsdp *fsdp, weft_stream *earlier, weft_stream *later,
                           const char *function)
{
    weft_work *work = NULL;
    weft_status status;

    if (earlier == later) return WEFT_OK;
    WF_TRY(wf_work_record(fsdp->context, earlier, function, &work));
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
    weft_status status = weft_work_wait(freed->work, fsdp->context->timeout_ns);

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
                       "%s: groups_max is %u, and so many groups are gathered; weft_fsdp_reshard "
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
    status = wf_work_record(fsdp->context, stream, function, &freed->work);
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

static void end_fsdp(struct wf_dependent *dependent, const char *cause)
{
    weft_fsdp *fsdp = (void *)((char *)dependent - offsetof(weft_fsdp, dependent));

    (void)cause;
    fsdp->made = wf_ended(WF_KIND_FSDP);
    fsdp->context = NULL;
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
        weft_stream_release(fsdp->context, &fsdp->gather);
        weft_stream_release(fsdp->context, &fsdp->reduce);
    }
    fsdp->made = wf_released(WF_KIND_FSDP);
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

    return weft_comm_split(context->world, 0, context->rank, &options, out);
}

static weft_status make_comms(weft_fsdp *fsdp)
{
    if (fsdp->context->is_simulated) return WEFT_OK;
    WF_TRY(make_channel(fsdp->context, "fsdp-gather", &fsdp->gather_comm));
    return make_channel(fsdp->context, "fsdp-reduce", &fsdp->reduce_comm);
}

weft_status weft_fsdp_create(weft_context *context, const weft_fsdp_options *options,
                             weft_fsdp **out)
{
    static const char what[] = "weft_fsdp_create";
    weft_fsdp_options wanted = {0};
    weft_fsdp *fsdp;
    weft_status status;

    WF_TRY(wf_context_check(context, what));
    WF_TRY(
        wf_fail_named(wf_options_read("weft_fsdp_options", options, &wanted, sizeof wanted), what));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_stream_check(context, wanted.compute, what));
    fsdp = wf_calloc(1, sizeof *fsdp);
    if (fsdp == NULL) return wf_fail_named(wf_fail_memory(sizeof *fsdp), what);
    fsdp->context = context;
    fsdp->compute = wanted.compute;
    fsdp->groups_max = wanted.groups_max;
    fsdp->freed_end = &fsdp->freed;
    status = make_streams(fsdp, wanted.one_stream);
    if (status == WEFT_OK) status = make_comms(fsdp);
    if (status != WEFT_OK) {
        free_fsdp(fsdp);
        return wf_fail_named(status, what);
    }
    fsdp->made = wf_made_now(WF_KIND_FSDP);
    fsdp->dependent.end = end_fsdp;
    wf_dependent_add(&fsdp->dependent, context->world);
    *out = fsdp;
    return WEFT_OK;
}

void weft_fsdp_release(weft_fsdp **fsdp)
{
    weft_fsdp *mine = fsdp != NULL ? *fsdp : NULL;

    if (mine == NULL) return;
    if (mine->made != wf_ended(WF_KIND_FSDP) && !wf_is_usable(mine->made, WF_KIND_FSDP)) {
        wf_warn_unusable("weft_fsdp_release", mine->made, WF_KIND_FSDP);
        return;
    }
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
    uint32_t left = 0;

    for (uint32_t i = 0; i < list->count; i++)
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
    if (!fsdp->is_released || fsdp->groups != NULL) return;
    wf_dependent_remove(&fsdp->dependent);
    free_fsdp(fsdp);
}
