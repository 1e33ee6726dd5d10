/* gpu_group.c - calls outside and inside of call groups. */
#include "vendor.h"
#include VENDOR_COMM

#include <string.h>

/* Copy the caller's arrays, which are not valid any more when the group ends. */
static weft_status keep_arrays(struct gpu_op *op, int32_t size)
{
    const uint64_t **given[] = {&op->send_counts, &op->send_offsets, &op->recv_counts,
                                &op->recv_offsets};
    size_t each = (size_t)size * sizeof(uint64_t), wanted = 0;
    uint64_t *copy;

    for (size_t i = 0; i < PLUG_LENGTH(given); i++)
        if (*given[i] != NULL) wanted += each;
    if (wanted == 0) return WEFT_OK;
    copy = plug_new(wanted);
    if (copy == NULL) return WEFT_ERR_NO_MEMORY;
    op->arrays = copy;
    for (size_t i = 0; i < PLUG_LENGTH(given); i++) {
        if (*given[i] == NULL) continue;
        memcpy(copy, *given[i], each);
        *given[i] = copy;
        copy += size;
    }
    return WEFT_OK;
}

static weft_status keep(struct gpu_group *group, const struct gpu_op *op, int32_t size)
{
    size_t room = group->room > 0 ? 2 * group->room : 16;
    struct gpu_op *larger;

    if (group->count == group->room) {
        larger = plug_new(room * sizeof *larger);
        if (larger == NULL) return WEFT_ERR_NO_MEMORY;
        if (group->count > 0) memcpy(larger, group->ops, group->count * sizeof *larger);
        plug_free(group->ops);
        group->ops = larger;
        group->room = room;
    }
    group->ops[group->count] = *op;
    PLUG_TRY(keep_arrays(&group->ops[group->count], size));
    group->count++;
    return WEFT_OK;
}

static void forget(struct gpu_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        plug_free(group->ops[i].arrays);
    group->count = 0;
}

void gpu_group_free(struct gpu_group *group)
{
    forget(group);
    plug_free(group->ops);
}

/* Run OP at once, or queue it until the group ends.  STATUS is the result of gpu_op_read. */
static PLUG_HOT weft_status take(struct gpu_comm *comm, const struct gpu_op *op, weft_status status)
{
    struct gpu_group *group = &comm->group;

    if (group->depth == 0) return status == WEFT_OK ? gpu_ops_run(comm, op, 1) : status;
    if (status == WEFT_OK) status = keep(group, op, comm->size);
    if (group->status == WEFT_OK) group->status = status;
    return status;
}

weft_status gpu_comm_collective(void *made, const weft_collective_args *args)
{
    struct gpu_comm *comm = made;
    struct gpu_scope scope;
    struct gpu_op op;
    weft_status status;

    PLUG_TRY(gpu_comm_usable(comm));
    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = take(comm, &op, gpu_op_read(comm, args, &op));
    gpu_leave(&scope);
    return status;
}

static weft_status take_message(struct gpu_comm *comm, const weft_message *message, uint32_t kind)
{
    struct gpu_scope scope;
    struct gpu_op op;
    weft_status status;

    PLUG_TRY(gpu_comm_usable(comm));
    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = take(comm, &op, gpu_op_read_message(comm, message, kind, &op));
    gpu_leave(&scope);
    return status;
}

weft_status gpu_comm_send(void *comm, const weft_message *message)
{
    return take_message(comm, message, GPU_OP_SEND);
}

weft_status gpu_comm_receive(void *comm, const weft_message *message)
{
    return take_message(comm, message, GPU_OP_RECEIVE);
}

weft_status gpu_comm_group_begin(void *made)
{
    struct gpu_group *group = &((struct gpu_comm *)made)->group;

    if (group->depth++ == 0) group->status = WEFT_OK;
    return WEFT_OK;
}

/* Run the queued calls if every call of the group was accepted. */
static weft_status run(struct gpu_comm *comm)
{
    const struct gpu_group *group = &comm->group;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_comm_cause(comm));
    if (group->status != WEFT_OK)
        return plug_fail(
            group->status,
            "a call of the group on %s failed, so no operation of the group was started",
            comm->name);
    if (group->count == 0) return WEFT_OK;
    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = gpu_ops_run(comm, group->ops, group->count);
    gpu_leave(&scope);
    return status;
}

weft_status gpu_comm_group_end(void *made)
{
    struct gpu_comm *comm = made;
    weft_status status;

    if (comm->group.depth == 0) return plug_fail(WEFT_ERR_INVALID, "group_end without group_begin");
    if (--comm->group.depth > 0) return WEFT_OK;
    status = run(comm);
    forget(&comm->group);
    return status;
}
