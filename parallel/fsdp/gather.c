/* gather.c - gathered parameters: their memory and their state.
 *
 * The parameters of a group have one block of memory, but for those that the caller has memory for.
 * It is allocated in the order of the stream that gathers and freed in that of the compute stream.
 * Nothing else has to hold it: a stream that uses it always waits for the one that used it before.
 */
#include "fsdp.h"

#include <string.h>

static weft_status refuse(const weft_fsdp_group *group, const char *function, const char *why)
{
    return wf_fsdp_fail(group, wf_fail(WEFT_ERR_INVALID, "%s", why), function);
}

/* ---- memory ---- */

enum { ALIGNMENT = 64 };

uint64_t wf_fsdp_room(const weft_tensor *tensor)
{
    uint64_t bytes = weft_tensor_bytes(tensor);

    if (bytes > INT64_MAX) return bytes;
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Place the gathered parameters, or those that are kept, in BLOCK. */
static weft_status occupy(weft_fsdp_group *group, bool kept, void *block, weft_stream *stream)
{
    char *at = block;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        if (!wf_fsdp_is_first(group, i) || (!kept && param->has_memory)) continue;
        WF_TRY(weft_tensor_occupy(kept ? param->kept : param->gathered, at, stream));
        at += kept ? param->kept_room : param->gathered_room;
    }
    return WEFT_OK;
}

static void vacate(weft_fsdp_group *group, bool kept)
{
    static const char cause[] = "it was resharded; weft_fsdp_unshard_begin gathers it again";

    for (uint32_t i = 0; i < group->count; i++)
        if (wf_fsdp_is_first(group, i) && (kept || !group->params[i].has_memory))
            weft_tensor_vacate(kept ? group->params[i].kept : group->params[i].gathered, cause);
}

/* Free the block of the gathered parameters, or of those that are kept, in the order of STREAM. */
static weft_status give_block(weft_fsdp_group *group, bool kept, weft_stream *stream)
{
    void **block = kept ? &group->kept_block : &group->gathered_block;
    void *memory = *block;

    vacate(group, kept);
    *block = NULL;
    wf_fsdp_count(group, -(int64_t)(kept ? group->kept_room : group->gathered_room));
    return weft_free_on(group->fsdp->context, memory, stream);
}

static weft_status take_block(weft_fsdp_group *group, bool kept, weft_stream *stream)
{
    void **block = kept ? &group->kept_block : &group->gathered_block;
    uint64_t room = kept ? group->kept_room : group->gathered_room;
    weft_status status;

    WF_TRY(weft_alloc_on(group->fsdp->context, room, stream, block));
    wf_fsdp_count(group, (int64_t)room);
    status = occupy(group, kept, *block, stream);
    if (status != WEFT_OK) (void)!give_block(group, kept, stream); /* its own error is reported */
    return status;
}

/* ---- exchanges ---- */

enum way { FROM_STORED, FROM_KEPT, TO_KEPT };

static weft_tensor *source_of(const struct wf_fsdp_param *param, enum way way)
{
    if (way == TO_KEPT) return param->gathered;
    return way == FROM_KEPT ? param->kept : param->stored;
}

static weft_tensor *target_of(const struct wf_fsdp_param *param, enum way way)
{
    return way == TO_KEPT ? param->kept : param->gathered;
}

static weft_status find_exchange(weft_fsdp_group *group, enum way way, const char *function,
                                 struct wf_exchange **out)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        if (!wf_fsdp_is_first(group, i)) continue;
        group->from[found] = weft_tensor_spec(source_of(&group->params[i], way));
        group->to[found++] = weft_tensor_spec(target_of(&group->params[i], way));
    }
    return wf_fsdp_exchange(group, &group->gathers, found, function, WEFT_OK, out);
}

static weft_status run_exchange(weft_fsdp_group *group, struct wf_exchange *exchange, enum way way,
                                weft_stream *stream, const char *function)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        weft_tensor *source = source_of(&group->params[i], way);

        if (!wf_fsdp_is_first(group, i)) continue;
        WF_TRY(wf_exchange_set(exchange, found++, source, target_of(&group->params[i], way)));
        WF_TRY(weft_tensor_use(source, stream));
    }
    return wf_exchange_run(exchange, stream, function);
}

/* ---- gathering ---- */

/* Post the gather.  The group has its place among the gathered ones. */
static weft_status post_gather(weft_fsdp_group *group, enum way way, struct wf_exchange *exchange,
                               const char *function)
{
    weft_fsdp *fsdp = group->fsdp;
    weft_status status = take_block(group, false, fsdp->gather);

    if (status != WEFT_OK) return wf_exchange_give_up(exchange, status, function);
    status = wf_fsdp_follow(fsdp, fsdp->compute, fsdp->gather, function);
    if (status == WEFT_OK) status = run_exchange(group, exchange, way, fsdp->gather, function);
    if (status == WEFT_OK && fsdp->gather != fsdp->compute)
        status = weft_work_record(fsdp->context, fsdp->gather, &group->gather_work);
    if (status == WEFT_OK && way == FROM_KEPT) {
        group->state = WEFT_FSDP_SHARDED;
        status = give_block(group, true, fsdp->gather);
    }
    if (status != WEFT_OK) { /* its own error is reported */
        (void)!give_block(group, false, fsdp->gather);
        weft_work_release(&group->gather_work);
    }
    return status;
}

static weft_status begin_gather(weft_fsdp_group *group, enum weft_fsdp_phase phase,
                                const char *function)
{
    struct wf_exchange *exchange = NULL;
    weft_status status;
    enum way way;

    way = group->state == WEFT_FSDP_PART_KEPT ? FROM_KEPT : FROM_STORED;
    WF_TRY(wf_fsdp_fail(group, find_exchange(group, way, function, &exchange), function));
    WF_TRY(wf_fsdp_fail(group, wf_fsdp_enter(group->fsdp, function), function));
    status = post_gather(group, way, exchange, function);
    if (status != WEFT_OK) {
        group->fsdp->groups_gathered--;
        return wf_fsdp_fail(group, status, function);
    }
    group->state = WEFT_FSDP_GATHERING;
    group->phase = phase;
    return WEFT_OK;
}

weft_status weft_fsdp_unshard_begin(weft_fsdp_group *group, enum weft_fsdp_phase phase)
{
    static const char function[] = "weft_fsdp_unshard_begin";

    WF_TRY(wf_fsdp_group_check(group, function));
    if (phase != WEFT_FSDP_FORWARD && phase != WEFT_FSDP_BACKWARD)
        return refuse(group, function, "phase is neither WEFT_FSDP_FORWARD nor WEFT_FSDP_BACKWARD");
    if (group->state == WEFT_FSDP_GATHERED)
        return refuse(group, function, "the parameters are gathered; weft_fsdp_reshard is missing");
    if (group->state != WEFT_FSDP_GATHERING) return begin_gather(group, phase, function);
    if (!group->was_prefetched)
        return refuse(group, function,
                      "the parameters are being gathered; weft_fsdp_unshard_end is missing");
    group->was_prefetched = false;
    group->phase = phase;
    return WEFT_OK;
}

/* The compute stream waits for the gather. */
static weft_status join_gather(weft_fsdp_group *group)
{
    weft_status status = WEFT_OK;

    if (group->gather_work != NULL)
        status = weft_stream_wait_work(group->fsdp->compute, group->gather_work);
    for (uint32_t i = 0; i < group->count && status == WEFT_OK; i++)
        if (wf_fsdp_is_first(group, i))
            status = weft_tensor_use(group->params[i].gathered, group->fsdp->compute);
    group->state = WEFT_FSDP_GATHERED;
    group->was_prefetched = false;
    return status;
}

/* Free the gathered parameters in the order of STREAM.  The group is no longer among the gathered
 * ones, also after an error. */
static weft_status end_gathered(weft_fsdp_group *group, weft_stream *stream, const char *function)
{
    weft_status given = give_block(group, false, stream);
    weft_status left = wf_fsdp_leave(group->fsdp, stream, function);

    weft_work_release(&group->gather_work);
    return given != WEFT_OK ? given : left;
}

static weft_status prefetch(const weft_fsdp_group *group, const char *function)
{
    const struct wf_fsdp_list *list = &group->prefetch[group->phase];

    for (uint32_t i = 0; i < list->count && wf_fsdp_has_room(group->fsdp); i++)
        if (list->groups[i]->state < WEFT_FSDP_GATHERING) {
            WF_TRY(begin_gather(list->groups[i], group->phase, function));
            list->groups[i]->was_prefetched = true;
        }
    return WEFT_OK;
}

weft_status weft_fsdp_unshard_end(weft_fsdp_group *group)
{
    static const char function[] = "weft_fsdp_unshard_end";
    weft_status status;

    WF_TRY(wf_fsdp_group_check(group, function));
    if (group->state == WEFT_FSDP_GATHERED)
        return refuse(group, function, "the parameters are gathered: the call was made before");
    if (group->state != WEFT_FSDP_GATHERING)
        return refuse(group, function, "no gather has begun; weft_fsdp_unshard_begin is missing");
    status = join_gather(group);
    if (status == WEFT_OK) status = wf_fsdp_work_error(group->gather_work);
    if (status != WEFT_OK) { /* nothing has used what is not there */
        group->state = WEFT_FSDP_SHARDED;
        (void)!end_gathered(group, group->fsdp->gather, function);
        return wf_fsdp_fail(group, status, function);
    }
    return prefetch(group, function);
}

weft_tensor *weft_fsdp_parameter(const weft_fsdp_group *group, size_t index)
{
    if (wf_fsdp_group_check(group, "weft_fsdp_parameter") != WEFT_OK) return NULL;
    if (index >= group->count || group->state != WEFT_FSDP_GATHERED) return NULL;
    return group->params[index].gathered;
}

weft_status weft_fsdp_prefetch_set(weft_fsdp_group *group, enum weft_fsdp_phase phase, size_t count,
                                   weft_fsdp_group *const *targets)
{
    static const char function[] = "weft_fsdp_prefetch_set";
    weft_fsdp_group **groups = NULL;

    WF_TRY(wf_fsdp_group_check(group, function));
    if (phase != WEFT_FSDP_FORWARD && phase != WEFT_FSDP_BACKWARD)
        return refuse(group, function, "phase is neither WEFT_FSDP_FORWARD nor WEFT_FSDP_BACKWARD");
    if (count > 0 && targets == NULL) return wf_fail_null(function, "targets");
    for (size_t i = 0; i < count; i++) {
        WF_TRY(wf_fsdp_group_check(targets[i], function));
        if (targets[i]->fsdp != group->fsdp)
            return refuse(group, function, "a target belongs to another weft_fsdp");
    }
    if (count > 0) {
        groups = wf_calloc(count, sizeof(*groups));
        if (groups == NULL) return wf_fail_named(wf_fail_memory(count * sizeof(*groups)), function);
        memcpy(groups, targets, count * sizeof(*groups));
    }
    wf_free(group->prefetch[phase].groups);
    group->prefetch[phase] = (struct wf_fsdp_list){count, groups};
    return WEFT_OK;
}

/* ---- resharding ---- */

weft_status wf_fsdp_drop(weft_fsdp_group *group, const char *function)
{
    weft_fsdp *fsdp = group->fsdp;
    weft_status joined = WEFT_OK, failed, ended;

    if (group->state == WEFT_FSDP_GATHERING) joined = join_gather(group);
    if (group->state == WEFT_FSDP_PART_KEPT) {
        group->state = WEFT_FSDP_SHARDED;
        return give_block(group, true, fsdp->compute);
    }
    if (group->state != WEFT_FSDP_GATHERED) return WEFT_OK;
    group->state = WEFT_FSDP_SHARDED;
    failed = joined == WEFT_OK ? wf_fsdp_work_error(group->gather_work) : joined;
    /* The compute stream has not used what it could not wait for. */
    ended = end_gathered(group, joined == WEFT_OK ? fsdp->compute : fsdp->gather, function);
    return failed != WEFT_OK ? failed : ended;
}

static void log_failure(weft_status status)
{
    if (status != WEFT_OK) wf_log(WF_LOG_WARNING, "%s", weft_last_error());
}

void wf_fsdp_wait(weft_fsdp_group *group)
{
    weft_fsdp *fsdp = group->fsdp;
    weft_stream *const streams[] = {fsdp->gather, fsdp->reduce, fsdp->compute};

    log_failure(wf_fsdp_drop(group, "weft_fsdp_group_release"));
    for (size_t i = 0; i < WF_COUNT(streams); i++)
        log_failure(weft_context_wait(fsdp->context, streams[i], wf_fsdp_timeout(fsdp)));
}

weft_status weft_fsdp_reshard(weft_fsdp_group *group)
{
    WF_TRY(wf_fsdp_group_check(group, "weft_fsdp_reshard"));
    return wf_fsdp_fail(group, wf_fsdp_drop(group, "weft_fsdp_reshard"), "weft_fsdp_reshard");
}

void wf_fsdp_drop_kept(struct wf_fsdp_param *param, const char *reason)
{
    weft_tensor_vacate(param->kept, reason);
    weft_tensor_release(&param->kept);
}

static weft_status make_kept(struct wf_fsdp_param *param, int32_t ranks)
{
    const weft_spec *stored = weft_tensor_spec(param->stored);
    int32_t axis = __builtin_ctz(param->shard | 1U << 31);
    int32_t along = weft_mesh_axis_size(weft_spec_mesh(stored), axis);
    weft_spec *spec = NULL;
    weft_status status;

    if (param->shard == 0 || (param->shard & (param->shard - 1)) != 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "a part can be kept with one shard axis only");
    if (along % ranks != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "ranks is %d, which does not divide the %d ranks of the "
                       "shard axis",
                       ranks, along);
    WF_TRY(wf_fsdp_kept_spec(weft_tensor_spec(param->gathered), &weft_spec_placements(stored)[axis],
                             axis, ranks, &spec));
    wf_fsdp_drop_kept(param, "another part is kept now");
    status =
        weft_tensor_create_vacant(weft_tensor_context(param->stored), spec,
                                  weft_tensor_name(param->stored), "nothing is kept", &param->kept);
    if (status == WEFT_OK) param->kept_room = wf_fsdp_room(param->kept);
    weft_spec_release(&spec);
    return status;
}

static weft_status make_all_kept(weft_fsdp_group *group, int32_t ranks)
{
    if (group->kept_ranks == ranks) return WEFT_OK;
    group->kept_ranks = 0;
    group->kept_room = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        if (!wf_fsdp_is_first(group, i)) continue;
        WF_TRY(make_kept(&group->params[i], ranks));
        group->kept_room += group->params[i].kept_room;
    }
    group->kept_ranks = ranks;
    return WEFT_OK;
}

static weft_status keep_part(weft_fsdp_group *group, int32_t ranks, const char *function)
{
    weft_fsdp *fsdp = group->fsdp;
    struct wf_exchange *exchange = NULL;
    weft_status status;

    WF_TRY(wf_fsdp_work_error(group->gather_work));
    WF_TRY(make_all_kept(group, ranks));
    WF_TRY(find_exchange(group, TO_KEPT, function, &exchange));
    WF_TRY(take_block(group, true, fsdp->compute));
    status = run_exchange(group, exchange, TO_KEPT, fsdp->compute, function);
    if (status != WEFT_OK) {
        (void)!give_block(group, true, fsdp->compute);
        return status;
    }
    group->state = WEFT_FSDP_PART_KEPT;
    return end_gathered(group, fsdp->compute, function);
}

weft_status weft_fsdp_reshard_to(weft_fsdp_group *group, int32_t ranks)
{
    static const char function[] = "weft_fsdp_reshard_to";

    WF_TRY(wf_fsdp_group_check(group, function));
    if (ranks < 1)
        return wf_fsdp_fail(
            group, wf_fail(WEFT_ERR_INVALID, "ranks is %d; expected 1 or more", ranks), function);
    if (group->state != WEFT_FSDP_GATHERED)
        return refuse(group, function,
                      "the parameters are not gathered; weft_fsdp_unshard_end is missing");
    if (ranks == 1) return WEFT_OK;
    return wf_fsdp_fail(group, keep_part(group, ranks, function), function);
}
