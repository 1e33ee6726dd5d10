/* gpu_group.c - calls made one by one, or put aside and done together at the end of a group. */
#include "vendor.h"
#include VENDOR_COMM

#include <string.h>

/* The caller's arrays are gone by the time the group ends. */
static weft_status keep_arrays(struct wf_op *op, int32_t size)
{
    const uint64_t **given[] = {&op->send_counts, &op->send_offsets, &op->recv_counts,
                                &op->recv_offsets};
    size_t each = (size_t)size * sizeof(uint64_t), wanted = 0;
    uint64_t *copy;

    for (size_t i = 0; i < WF_COUNT(given); i++)
        if (*given[i] != NULL) wanted += each;
    if (wanted == 0) return WEFT_OK;
    copy = wf_new(wanted);
    if (copy == NULL) return WEFT_ERR_NO_MEMORY;
    op->arrays = copy;
    for (size_t i = 0; i < WF_COUNT(given); i++) {
        if (*given[i] == NULL) continue;
        memcpy(copy, *given[i], each);
        *given[i] = copy;
        copy += size;
    }
    return WEFT_OK;
}

static weft_status keep(struct wf_group *group, const struct wf_op *op, int32_t size)
{
    size_t room = group->room > 0 ? 2 * group->room : 16;
    struct wf_op *larger;

    if (group->count == group->room) {
        larger = wf_new(room * sizeof *larger);
        if (larger == NULL) return WEFT_ERR_NO_MEMORY;
        if (group->count > 0) memcpy(larger, group->ops, group->count * sizeof *larger);
        wf_delete(group->ops);
        group->ops = larger;
        group->room = room;
    }
    group->ops[group->count] = *op;
    WF_TRY(keep_arrays(&group->ops[group->count], size));
    group->count++;
    return WEFT_OK;
}

static void forget(struct wf_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        wf_delete(group->ops[i].arrays);
    group->count = 0;
}

void wf_group_free(struct wf_group *group)
{
    forget(group);
    wf_delete(group->ops);
}

/* Do OP, or put it aside for the group's end; STATUS is what reading it gave. */
static WF_HOT weft_status take(struct wf_comm *comm, const struct wf_op *op, weft_status status)
{
    struct wf_group *group = &comm->group;

    if (group->depth == 0) return status == WEFT_OK ? wf_ops_run(comm, op, 1) : status;
    if (status == WEFT_OK) status = keep(group, op, comm->size);
    if (group->status == WEFT_OK) group->status = status;
    return status;
}

weft_status wf_comm_collective(void *made, const weft_collective_args *args)
{
    struct wf_comm *comm = made;
    struct wf_scope scope;
    struct wf_op op;
    weft_status status;

    WF_TRY(wf_comm_usable(comm));
    WF_TRY(wf_enter(comm->device, &scope));
    status = take(comm, &op, wf_op_read(comm, args, &op));
    wf_leave(&scope);
    return status;
}

static weft_status take_message(struct wf_comm *comm, const weft_message *message, uint32_t kind)
{
    struct wf_scope scope;
    struct wf_op op;
    weft_status status;

    WF_TRY(wf_comm_usable(comm));
    WF_TRY(wf_enter(comm->device, &scope));
    status = take(comm, &op, wf_op_read_message(comm, message, kind, &op));
    wf_leave(&scope);
    return status;
}

weft_status wf_comm_send(void *comm, const weft_message *message)
{
    return take_message(comm, message, WF_OP_SEND);
}

weft_status wf_comm_receive(void *comm, const weft_message *message)
{
    return take_message(comm, message, WF_OP_RECEIVE);
}

weft_status wf_comm_group_begin(void *made)
{
    struct wf_group *group = &((struct wf_comm *)made)->group;

    if (group->depth++ == 0) group->status = WEFT_OK;
    return WEFT_OK;
}

/* All that was put aside, if every call of the group was in order. */
static weft_status run(struct wf_comm *comm)
{
    const struct wf_group *group = &comm->group;
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_comm_stuck(comm));
    if (group->status != WEFT_OK)
        return wf_fail(group->status,
                       "a call of the group on %s failed, so nothing of it was started",
                       comm->name);
    if (group->count == 0) return WEFT_OK;
    WF_TRY(wf_enter(comm->device, &scope));
    status = wf_ops_run(comm, group->ops, group->count);
    wf_leave(&scope);
    return status;
}

weft_status wf_comm_group_end(void *made)
{
    struct wf_comm *comm = made;
    weft_status status;

    if (comm->group.depth == 0) return wf_fail(WEFT_ERR_INVALID, "there is no group to end");
    if (--comm->group.depth > 0) return WEFT_OK;
    status = run(comm);
    forget(&comm->group);
    return status;
}
