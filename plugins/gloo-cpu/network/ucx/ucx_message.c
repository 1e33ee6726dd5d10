/* ucx_message.c - messages that this rank starts and waits for. */
#include "ucx.h"

#include "plug_host.h"

#define GRACE_NS INT64_C(200000000)  /* for data that moves when a work fails */
#define BREAK_NS INT64_C(1000000000) /* for UCX to give up the memory of a broken connection */

static void sent(void *request, ucs_status_t status, void *op)
{
    ucx.ucp_request_free(request);
    ucx_op_moved(op, status);
}

static void send_op(struct ucx_op *op)
{
    const ucp_request_param_t param = {.op_attr_mask =
                                           UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb = {.send = sent},
                                       .user_data = op};
    struct ucx_peer *peer = op->peer;
    ucs_status_ptr_t request;

    if (peer->departed) {
        ucx_op_end(op, &peer->cause);
        return;
    }
    op->header.number = peer->sent++;
    request = ucx.ucp_am_send_nbx(peer->endpoint, UCX_MESSAGE_ID, &op->header, sizeof op->header,
                                  op->data, op->header.bytes, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucx_op_moved(op, UCS_PTR_STATUS(request));
        return;
    }
    op->request = request;
    ucx_op_add(op);
}

static void prepare(struct net_work *work, struct ucx_op *op, const struct net_part *part)
{
    struct net_group *group = work->group;

    op->work = work;
    op->peer = &group->peers[part->peer];
    op->data = part->data;
    op->header = (struct ucx_header){.key = group->key,
                                     .bytes = part->bytes,
                                     .from = (uint32_t)group->rank,
                                     .kind = part->kind,
                                     .tag = part->tag,
                                     .call = part->call};
}

static weft_status check_open(const struct net_group *group, struct net_failure *failure)
{
    if (atomic_load(&group->aborted))
        return ucx_fail(failure, WEFT_ERR_ABORTED, -1, "the communicator was aborted");
    if (!group->connected || group->has_failed || group->has_hung_up || group->is_dead)
        return ucx_fail(failure, WEFT_ERR_PEER, -1, "the connections have ended");
    return WEFT_OK;
}

weft_status ucx_start(struct net_group *group, uint32_t send_count, const struct net_part *sends,
                      uint32_t receive_count, const struct net_part *receives,
                      struct net_work **out, struct net_failure *failure)
{
    uint32_t count = send_count + receive_count;
    struct net_work *work;
    weft_status status;

    if (count == 0) {
        *out = NULL;
        return WEFT_OK;
    }
    work = plug_alloc(sizeof *work + count * sizeof work->ops[0]);
    if (work == NULL)
        return ucx_fail(failure, WEFT_ERR_NO_MEMORY, -1, "out of memory for %u messages", count);
    work->group = group;
    work->count = work->left = count;
    pthread_mutex_lock(&group->lock);
    status = check_open(group, failure);
    if (status == WEFT_OK) {
        for (uint32_t i = 0; i < receive_count; i++) {
            prepare(work, &work->ops[i], &receives[i]);
            ucx_expect(&work->ops[i]);
        }
        for (uint32_t i = 0; i < send_count; i++) {
            prepare(work, &work->ops[receive_count + i], &sends[i]);
            send_op(&work->ops[receive_count + i]);
        }
        if (group->sleepers > 0) ucx_wake(group);
    }
    pthread_mutex_unlock(&group->lock);
    if (status == WEFT_OK)
        *out = work;
    else
        plug_free(work);
    return status;
}

/* ---- waiting ---- */

static bool is_done(const void *argument)
{
    const struct net_work *work = argument;

    return work->left == 0 || work->failure.status != WEFT_OK ||
           atomic_load(&work->group->aborted) || work->group->has_hung_up;
}

static bool has_stopped(const void *argument)
{
    return ((const struct net_work *)argument)->left == 0;
}

/* No data moves to or from peers that are still there. */
static bool has_settled(const void *argument)
{
    const struct net_work *work = argument;

    for (uint32_t i = 0; i < work->count; i++)
        if (!work->ops[i].finished && !work->ops[i].peer->departed) return false;
    return true;
}

/* Why the work failed. */
static weft_status reason(const struct net_work *work, struct net_failure *failure)
{
    const struct net_group *group = work->group;
    int32_t peer = -1;

    if (work->failure.status != WEFT_OK) {
        *failure = work->failure;
        return failure->status;
    }
    if (work->left == 0) return WEFT_OK;
    if (atomic_load(&group->aborted) || group->has_hung_up || group->is_dead)
        return check_open(group, failure);
    for (uint32_t i = 0; i < work->count && peer < 0; i++)
        if (!work->ops[i].finished) peer = work->ops[i].peer->rank;
    return ucx_fail(failure, WEFT_ERR_TIMEOUT, peer, "Timed out after %.3f s",
                    (double)group->timeout_ns * 1e-9);
}

/* End what has not begun.  Data that moves gets a moment to arrive, so that connections last until
 * the cause of the failure has been sent over them.  Then connections that still move data of this
 * work end: UCX must not touch its memory any more. */
static void stop(struct net_work *work)
{
    struct net_group *group = work->group;

    for (uint32_t i = 0; i < work->count; i++)
        if (!work->ops[i].finished && work->ops[i].request == NULL) ucx_op_end(&work->ops[i], NULL);
    (void)ucx_wait(group, has_settled, work, ucx_deadline(GRACE_NS));
    for (uint32_t i = 0; i < work->count; i++)
        if (!work->ops[i].finished) ucx_break_off(work->ops[i].peer);
    if (!ucx_wait(group, has_stopped, work, ucx_deadline(BREAK_NS))) group->is_dead = true;
}

weft_status ucx_work_wait(struct net_group *group, struct net_work *work,
                          struct net_failure *failure)
{
    weft_status status;

    if (work == NULL) return WEFT_OK;
    pthread_mutex_lock(&group->lock);
    (void)ucx_wait(group, is_done, work, ucx_deadline(group->timeout_ns));
    status = reason(work, failure);
    if (status != WEFT_OK) group->has_failed = true;
    if (work->left > 0) stop(work);
    if (work->left > 0) {
        work->next = group->abandoned;
        group->abandoned = work;
        work = NULL;
    }
    pthread_mutex_unlock(&group->lock);
    plug_free(work);
    return status;
}
