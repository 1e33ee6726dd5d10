/* shmem_group.c - running calls: one at once, or those of a group at its end, messages first. */
#include "shmem.h"

#include <string.h>

static weft_status run(struct wf_comm *comm, const struct wf_op *ops, size_t count)
{
    bool messages = false;
    struct wf_scope scope;
    weft_status status;

    for (size_t i = 0; i < count && (comm->flags & WEFT_COMM_CHECK) != 0; i++)
        if (ops[i].kind < WF_OP_SEND) WF_TRY(wf_match(comm, &ops[i]));
    WF_TRY(wf_enter(comm->device, &scope));
    for (size_t i = 0; i < count; i++)
        messages = messages || ops[i].kind >= WF_OP_SEND;
    status = messages ? wf_mail_run(comm, ops, count) : WEFT_OK;
    if (status != WEFT_OK) wf_comm_stick(comm, status, NULL);
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        if (ops[i].kind < WF_OP_SEND) status = wf_collective_run(comm, &ops[i]);
    wf_leave(&scope);
    return status;
}

/* The caller's arrays are gone by the time the group ends. */
static weft_status keep_arrays(struct wf_op *op, int32_t size)
{
    const uint64_t **given[] = {&op->send_counts, &op->send_offsets, &op->recv_counts,
                                &op->recv_offsets};
    size_t each = (size_t)size * sizeof(uint64_t), wanted = 0;
    uint64_t *copy;

    op->arrays = NULL;
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

/* Arrays that a collective does not use may be anything. */
static void forget_unused(struct wf_op *op)
{
    bool sends = op->kind == WEFT_COLL_REDUCE_SCATTER_V || op->kind == WEFT_COLL_ALL_TO_ALL_V ||
                 op->kind == WEFT_COLL_SCATTER_V;
    bool receives = op->kind == WEFT_COLL_ALL_GATHER_V || op->kind == WEFT_COLL_ALL_TO_ALL_V ||
                    op->kind == WEFT_COLL_GATHER_V;

    if (!sends) op->send_counts = op->send_offsets = NULL;
    if (!receives) op->recv_counts = op->recv_offsets = NULL;
}

static weft_status keep(struct wf_comm *comm, const struct wf_op *op)
{
    size_t room = comm->op_room > 0 ? 2 * comm->op_room : 16;
    struct wf_op *larger;

    if (comm->op_count == comm->op_room) {
        larger = wf_new(room * sizeof *larger);
        if (larger == NULL) return WEFT_ERR_NO_MEMORY;
        if (comm->op_count > 0) memcpy(larger, comm->ops, comm->op_count * sizeof *larger);
        wf_delete(comm->ops);
        comm->ops = larger;
        comm->op_room = room;
    }
    comm->ops[comm->op_count] = *op;
    forget_unused(&comm->ops[comm->op_count]);
    WF_TRY(keep_arrays(&comm->ops[comm->op_count], comm->size));
    comm->op_count++;
    return WEFT_OK;
}

/* Run OP, or put it aside for the group's end; STATUS is what reading it gave. */
static weft_status take(struct wf_comm *comm, const struct wf_op *op, weft_status status)
{
    if (comm->depth == 0) return status == WEFT_OK ? run(comm, op, 1) : status;
    if (status == WEFT_OK) status = keep(comm, op);
    if (comm->group_status == WEFT_OK) comm->group_status = status;
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
    struct wf_comm *comm = made;

    if (comm->depth++ == 0) comm->group_status = WEFT_OK;
    return WEFT_OK;
}

weft_status wf_comm_group_end(void *made)
{
    struct wf_comm *comm = made;
    weft_status status;

    if (comm->depth == 0) return wf_fail(WEFT_ERR_INVALID, "there is no group to end");
    if (--comm->depth > 0) return WEFT_OK;
    status = wf_comm_stuck(comm);
    if (status == WEFT_OK && comm->group_status != WEFT_OK)
        status =
            wf_fail(comm->group_status,
                    "a call of the group on %s failed, so nothing of it was started", comm->name);
    if (status == WEFT_OK) status = run(comm, comm->ops, comm->op_count);
    for (size_t i = 0; i < comm->op_count; i++)
        wf_delete(comm->ops[i].arrays);
    comm->op_count = 0;
    return status;
}
