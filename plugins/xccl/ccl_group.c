/* ccl_group.c - running calls: one at once, or those of a group together.
 *
 * The library matches messages by their order between two ranks, and collectives by their order
 * on the communicator; the two do not mix.  So all messages of a group, and all that is built from
 * messages, start in one batch, and collectives keep their order.  That way a rank that groups and
 * one that does not still meet. */
#include "ccl.h"

#include <string.h>

static bool starts_with_messages(const struct wf_op *op)
{
    return op->kind >= WF_OP_SEND || op->way.kind == WF_WAY_MESSAGES ||
           op->way.kind == WF_WAY_EXCHANGE;
}

static bool has_second_stage(const struct wf_op *op)
{
    return op->way.kind == WF_WAY_KEYS || op->way.kind == WF_WAY_EXCHANGE;
}

/* Does the second stage hold a collective that later ones must not overtake? */
static bool ends_with_collective(const struct wf_op *op)
{
    return op->way.kind == WF_WAY_EXCHANGE &&
           (op->kind == WEFT_COLL_ALL_REDUCE || op->kind == WEFT_COLL_REDUCE);
}

static weft_status issue(struct wf_comm *comm, struct wf_op *op, int stage, ccl_result *result)
{
    *result = CCL_SUCCESS;
    switch (op->way.kind) {
    case WF_WAY_PIECES:
        *result = wf_issue_pieces(comm, op);
        return WEFT_OK;
    case WF_WAY_MESSAGES:
        return wf_issue_messages(comm, op, result);
    case WF_WAY_KEYS:
        return wf_issue_keys(comm, op, stage, result);
    case WF_WAY_EXCHANGE:
        return wf_issue_exchange(comm, op, stage, result);
    default:
        *result = wf_issue_native(comm, op);
        return WEFT_OK;
    }
}

/* Issue one stage of the COUNT ops that WANTED marks (NULL: all) as one group of the library. */
static weft_status run_batch(struct wf_comm *comm, struct wf_op *ops, size_t count,
                             const bool *wanted, int stage)
{
    bool single = count == 1 && ops[0].way.kind == WF_WAY_NATIVE;
    ccl_result result = CCL_SUCCESS, one = CCL_SUCCESS;
    const char *what = count == 1 ? wf_collective_name(ops[0].kind) : "a group of operations";
    weft_status status = WEFT_OK;

    if (!single) result = wf_ccl.ncclGroupStart();
    for (size_t i = 0; i < count && status == WEFT_OK && result == CCL_SUCCESS; i++) {
        if (wanted != NULL && !wanted[i]) continue;
        status = issue(comm, &ops[i], stage, &one);
        if (one != CCL_SUCCESS && one != CCL_IN_PROGRESS) result = one;
    }
    if (!single) result = wf_first(result, wf_ccl.ncclGroupEnd());
    if (status != WEFT_OK) return wf_comm_stick(comm, status, NULL);
    return wf_settle(comm, comm->work, result, comm->timeout_ns, what);
}

/* What goes into the first batch; the rest follows one by one. */
static void choose_first(const struct wf_op *ops, size_t count, bool *first)
{
    bool may_overtake = false;

    for (size_t i = 0; i < count; i++) {
        first[i] = starts_with_messages(&ops[i]) || !may_overtake;
        may_overtake = may_overtake || ends_with_collective(&ops[i]);
    }
}

static weft_status run_ops(struct wf_comm *comm, struct wf_op *ops, size_t count, bool *first)
{
    weft_status status;

    for (size_t i = 0; i < count && (comm->flags & WEFT_COMM_CHECK) != 0; i++)
        if (ops[i].kind < WEFT_COLL_COUNT) WF_TRY(wf_match(comm, &ops[i]));
    choose_first(ops, count, first);
    status = run_batch(comm, ops, count, first, 0);
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        if (!first[i]) status = run_batch(comm, &ops[i], 1, NULL, 0);
        if (status == WEFT_OK && has_second_stage(&ops[i]))
            status = run_batch(comm, &ops[i], 1, NULL, 1);
    }
    for (size_t i = 0; i < count; i++)
        wf_gpu_give_back(comm->device, ops[i].scratch, ops[i].stream);
    if (status == WEFT_OK) wf_mark(comm, ops[count - 1].stream);
    return status;
}

static weft_status run(struct wf_comm *comm, struct wf_op *ops, size_t count)
{
    struct wf_scope scope;
    bool one, *first = &one;
    weft_status status;

    if (count == 0) return WEFT_OK;
    if (count > 1) {
        first = wf_new(count * sizeof *first);
        if (first == NULL) return wf_comm_stick(comm, WEFT_ERR_NO_MEMORY, NULL);
    }
    status = wf_enter(comm->device, &scope);
    if (status == WEFT_OK) {
        status = wf_inside(comm);
        if (status == WEFT_OK) {
            status = run_ops(comm, ops, count, first);
            wf_outside(comm);
        }
        wf_leave(&scope);
    }
    if (count > 1) wf_delete(first);
    return status;
}

/* ---- groups ---- */

static weft_status keep_arrays(struct wf_op *op, int32_t size)
{
    const uint64_t **given[] = {&op->send_counts, &op->send_offsets, &op->recv_counts,
                                &op->recv_offsets};
    size_t each = (size_t)size * sizeof(uint64_t);
    uint64_t *copy;

    if (op->send_counts == NULL && op->recv_counts == NULL) return WEFT_OK;
    copy = wf_new(WF_COUNT(given) * each);
    if (copy == NULL) return WEFT_ERR_NO_MEMORY;
    op->arrays = copy;
    for (size_t i = 0; i < WF_COUNT(given); i++, copy += size) {
        if (*given[i] == NULL) continue;
        memcpy(copy, *given[i], each);
        *given[i] = copy;
    }
    return WEFT_OK;
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
    WF_TRY(keep_arrays(&comm->ops[comm->op_count], comm->size));
    comm->op_count++;
    return WEFT_OK;
}

/* Run OP, or put it aside for the group's end; STATUS is what reading it gave. */
static weft_status take(struct wf_comm *comm, struct wf_op *op, weft_status status)
{
    if (comm->depth == 0) return status == WEFT_OK ? run(comm, op, 1) : status;
    if (status == WEFT_OK) status = keep(comm, op);
    if (comm->group_status == WEFT_OK) comm->group_status = status;
    return status;
}

weft_status wf_comm_collective(void *made, const weft_collective_args *args)
{
    struct wf_comm *comm = made;
    struct wf_op op;

    WF_TRY(wf_comm_usable(comm));
    return take(comm, &op, wf_op_read(comm, args, &op));
}

weft_status wf_comm_send(void *made, const weft_message *message)
{
    struct wf_comm *comm = made;
    struct wf_op op;

    WF_TRY(wf_comm_usable(comm));
    return take(comm, &op, wf_op_read_message(comm, message, WF_OP_SEND, &op));
}

weft_status wf_comm_receive(void *made, const weft_message *message)
{
    struct wf_comm *comm = made;
    struct wf_op op;

    WF_TRY(wf_comm_usable(comm));
    return take(comm, &op, wf_op_read_message(comm, message, WF_OP_RECEIVE, &op));
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
