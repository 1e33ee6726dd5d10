/* ccl_batch.c - execution of single and grouped calls.
 *
 * The library matches messages by their order between two ranks, and collectives by their order on
 * the communicator, independently.  All messages of a group, and all operations made of messages,
 * therefore start in one batch, and collectives keep their order.  A rank that groups calls then
 * matches a rank that does not. */
#include "ccl.h"

static bool starts_with_messages(const struct ccl_task *task)
{
    return task->op.kind >= GPU_OP_SEND || task->way.kind == CCL_METHOD_MESSAGES ||
           task->way.kind == CCL_METHOD_EXCHANGE;
}

static bool has_second_stage(const struct ccl_task *task)
{
    return task->way.kind == CCL_METHOD_KEYS || task->way.kind == CCL_METHOD_EXCHANGE;
}

/* True if the second stage has a collective that later collectives must not overtake. */
static bool ends_with_collective(const struct ccl_task *task)
{
    return task->way.kind == CCL_METHOD_EXCHANGE &&
           (task->op.kind == WEFT_COLL_ALL_REDUCE || task->op.kind == WEFT_COLL_REDUCE);
}

static weft_status issue(struct gpu_comm *comm, struct ccl_task *task, int stage,
                         ccl_result *result)
{
    *result = CCL_SUCCESS;
    switch (task->way.kind) {
    case CCL_METHOD_PIECES:
        *result = ccl_issue_pieces(comm, task);
        return WEFT_OK;
    case CCL_METHOD_MESSAGES:
        return ccl_issue_messages(comm, task, result);
    case CCL_METHOD_KEYS:
        return ccl_issue_keys(comm, task, stage, result);
    case CCL_METHOD_EXCHANGE:
        return ccl_issue_exchange(comm, task, stage, result);
    default:
        *result = ccl_issue_native(comm, task);
        return WEFT_OK;
    }
}

/* Post one stage of COUNT tasks as one group of the library.  FIRST_ONLY: only the tasks of the
 * first batch. */
static weft_status run_batch(struct gpu_comm *comm, struct ccl_task *tasks, size_t count,
                             bool first_only, int stage)
{
    bool single = count == 1 && tasks[0].way.kind == CCL_METHOD_NATIVE;
    ccl_result result = CCL_SUCCESS, one = CCL_SUCCESS;
    const char *what = count == 1 ? gpu_op_name(tasks[0].op.kind) : "a group of operations";
    weft_status status = WEFT_OK;

    if (!single) result = ccl_api.ncclGroupStart();
    for (size_t i = 0; i < count && status == WEFT_OK && result == CCL_SUCCESS; i++) {
        if (first_only && !tasks[i].is_first) continue;
        status = issue(comm, &tasks[i], stage, &one);
        if (one != CCL_SUCCESS && one != CCL_IN_PROGRESS) result = one;
    }
    if (!single) result = ccl_first(result, ccl_api.ncclGroupEnd());
    if (status != WEFT_OK) return gpu_comm_fail(comm, status, NULL);
    return ccl_settle(comm, comm->work, result, comm->timeout_ns, what);
}

/* Choose the method of each call and the tasks of the first batch.  The other tasks follow one by
 * one. */
static void plan(const struct gpu_comm *comm, const struct gpu_op *ops, struct ccl_task *tasks,
                 size_t count)
{
    bool may_overtake = false;

    for (size_t i = 0; i < count; i++) {
        tasks[i] = (struct ccl_task){.op = ops[i], .way = ccl_method_of(comm, &ops[i])};
        if (tasks[i].way.premultiplied && !gpu_op_scales(&ops[i]))
            ccl_set_reciprocal(&tasks[i].way, &tasks[i].op);
        tasks[i].is_first = starts_with_messages(&tasks[i]) || !may_overtake;
        may_overtake = may_overtake || ends_with_collective(&tasks[i]);
    }
}

static weft_status run_tasks(struct gpu_comm *comm, struct ccl_task *tasks, size_t count)
{
    weft_status status;

    for (size_t i = 0; i < count && (comm->flags & WEFT_COMM_CHECK) != 0; i++)
        if (tasks[i].op.kind < WEFT_COLL_COUNT) PLUG_TRY(ccl_match(comm, &tasks[i].op));
    status = run_batch(comm, tasks, count, true, 0);
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        if (!tasks[i].is_first) status = run_batch(comm, &tasks[i], 1, false, 0);
        if (status == WEFT_OK && has_second_stage(&tasks[i]))
            status = run_batch(comm, &tasks[i], 1, false, 1);
    }
    for (size_t i = 0; i < count; i++)
        gpu_give_back(comm->device, tasks[i].scratch, tasks[i].op.stream);
    if (status == WEFT_OK) ccl_mark(comm, tasks[count - 1].op.stream);
    return status;
}

weft_status gpu_ops_run(struct gpu_comm *comm, const struct gpu_op *ops, size_t count)
{
    struct ccl_task one, *tasks = &one;
    weft_status status;

    if (count == 0) return WEFT_OK;
    if (count > 1) {
        tasks = plug_new(count * sizeof *tasks);
        if (tasks == NULL) return gpu_comm_fail(comm, WEFT_ERR_NO_MEMORY, NULL);
    }
    plan(comm, ops, tasks, count);
    status = ccl_inside(comm);
    if (status == WEFT_OK) {
        status = run_tasks(comm, tasks, count);
        ccl_outside(comm);
    }
    if (count > 1) plug_free(tasks);
    return status;
}
