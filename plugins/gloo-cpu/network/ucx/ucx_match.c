/* ucx_match.c - messages that come, and whom they are for. */
#include "ucx.h"

#include "plug_host.h"

#include <stdarg.h>
#include <string.h>

weft_status ucx_fail(struct net_failure *failure, weft_status status, int32_t peer,
                     const char *format, ...)
{
    va_list values;

    failure->status = status;
    failure->peer = peer;
    failure->other_call = false;
    va_start(values, format);
    kit_printv(failure->text, sizeof failure->text, format, values);
    va_end(values);
    return status;
}

/* ---- ops ---- */

static void work_fail(struct net_work *work, const struct net_failure *failure)
{
    if (work->failure.status == WEFT_OK) work->failure = *failure;
    if (work->group->followers > 0) pthread_cond_broadcast(&work->group->changed);
}

void ucx_op_add(struct ucx_op *op)
{
    struct ucx_op **link = &op->peer->ops;

    while (*link != NULL)
        link = &(*link)->next;
    *link = op;
}

void ucx_op_end(struct ucx_op *op, const struct net_failure *failure)
{
    struct ucx_op **link = &op->peer->ops;

    while (*link != NULL && *link != op)
        link = &(*link)->next;
    if (*link == op) *link = op->next;
    op->finished = true;
    op->work->left--;
    if (failure != NULL) work_fail(op->work, failure);
    if (op->work->left == 0 && op->work->group->followers > 0)
        pthread_cond_broadcast(&op->work->group->changed);
}

void ucx_op_moved(struct ucx_op *op, ucs_status_t status)
{
    struct net_failure failure;

    op->request = NULL;
    if (status == UCS_OK) {
        ucx_op_end(op, NULL);
        return;
    }
    if (op->peer->departed)
        failure = op->peer->cause;
    else
        ucx_fail(&failure, WEFT_ERR_PEER, op->peer->rank, "%s", ucx.ucs_status_string(status));
    ucx_op_end(op, &failure);
}

static void data_moved(void *request, ucs_status_t status, size_t bytes, void *op)
{
    (void)bytes;
    ucx.ucp_request_free(request);
    ucx_op_moved(op, status);
}

/* ---- departure ---- */

void ucx_depart(struct ucx_peer *peer, weft_status status, const char *format, ...)
{
    char text[256];
    va_list values;

    if (peer->departed) return;
    va_start(values, format);
    kit_printv(text, sizeof text, format, values);
    va_end(values);
    peer->departed = true;
    ucx_fail(&peer->cause, status, peer->rank, "%s", text);
    for (struct ucx_op *op = peer->ops, *next; op != NULL; op = next) {
        next = op->next;
        if (op->request == NULL)
            ucx_op_end(op, &peer->cause);
        else
            work_fail(op->work, &peer->cause);
    }
    if (peer->group->followers > 0) pthread_cond_broadcast(&peer->group->changed);
}

/* ---- arrivals ---- */

/* The content of a message that has come.  DESCRIPTOR is UCX's, of data that it has not yet
 * transferred; otherwise DATA has it. */
struct content {
    const struct ucx_header *header;
    void *descriptor;
    const void *data;
};

/* The op takes the message.  True if the descriptor is in use from now on. */
static bool take(struct ucx_op *op, const struct content *content)
{
    struct net_group *group = op->peer->group;
    size_t bytes = op->header.bytes;
    /* With the flag there is one way in which a receive ends: its callback. */
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                       UCP_OP_ATTR_FIELD_USER_DATA |
                                                       UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                       .cb = {.recv_am = data_moved},
                                       .user_data = op};
    struct net_failure failure;
    ucs_status_ptr_t request;

    if (memcmp(&content->header->call, &op->header.call, sizeof op->header.call) != 0) {
        ucx_fail(&failure, WEFT_ERR_MISMATCH, op->peer->rank, "it makes another call");
        failure.other_call = true;
        failure.theirs = content->header->call;
        ucx_op_end(op, &failure);
        return false;
    }
    if (content->header->bytes != bytes) {
        ucx_fail(&failure, WEFT_ERR_MISMATCH, op->peer->rank,
                 "it sent a message of %llu bytes; expected %zu",
                 (unsigned long long)content->header->bytes, bytes);
        ucx_op_end(op, &failure);
        return false;
    }
    if (content->descriptor == NULL) {
        if (bytes > 0) memcpy(op->data, content->data, bytes);
        ucx_op_end(op, NULL);
        return false;
    }
    request = ucx.ucp_am_recv_data_nbx(group->worker, content->descriptor, op->data, bytes, &param);
    if (op->finished) return true; /* its callback has run */
    if (UCS_PTR_IS_PTR(request))
        op->request = request;
    else
        ucx_op_moved(op, UCS_PTR_STATUS(request));
    return true;
}

static bool matches(const struct ucx_header *a, const struct ucx_header *b)
{
    return a->kind == b->kind && a->tag == b->tag;
}

/* Append the message to LIST.  True if its descriptor is in use from now on. */
static bool keep(struct ucx_peer *peer, struct ucx_arrival **list, const struct content *content)
{
    size_t bytes = content->descriptor == NULL ? content->header->bytes : 0;
    struct ucx_arrival *arrival = plug_alloc(sizeof *arrival + bytes);

    if (arrival == NULL) {
        ucx_depart(peer, WEFT_ERR_NO_MEMORY, "out of memory for a message of %zu bytes", bytes);
        return false;
    }
    arrival->header = *content->header;
    arrival->descriptor = content->descriptor;
    if (bytes > 0) memcpy(arrival->data, content->data, bytes);
    while (*list != NULL)
        list = &(*list)->next;
    *list = arrival;
    if (peer->group->serves) pthread_cond_signal(&peer->group->server);
    return content->descriptor != NULL;
}

/* The next message of PEER, in its order.  True if its descriptor is in use from now on. */
static bool deliver(struct ucx_peer *peer, const struct content *content)
{
    const struct ucx_header *header = content->header;

    peer->received++;
    if (header->kind == UCX_NOTICE && content->data != NULL && header->bytes == NET_NOTICE_BYTES) {
        memcpy(peer->notice, content->data, NET_NOTICE_BYTES);
        peer->has_notice = true;
    }
    if (header->kind == UCX_NOTICE || header->kind == UCX_GOODBYE) {
        if (peer->endpoint != NULL) ucx_control(peer, &peer->answer, UCX_HEARD, NULL, 0);
        ucx_depart(peer, WEFT_ERR_PEER, "it has closed the connection");
        return false;
    }
    if (header->kind == UCX_HEARD) {
        peer->has_heard = true;
        return false;
    }
    for (struct ucx_op *op = peer->ops; op != NULL; op = op->next)
        if (op->request == NULL && matches(&op->header, header)) return take(op, content);
    return keep(peer, &peer->arrivals, content);
}

static void release(struct ucx_peer *peer, struct ucx_arrival *arrival, bool descriptor_too)
{
    if (descriptor_too && arrival->descriptor != NULL)
        ucx.ucp_am_data_release(peer->group->worker, arrival->descriptor);
    plug_free(arrival);
}

static struct content content_of(const struct ucx_arrival *arrival)
{
    return (struct content){&arrival->header, arrival->descriptor,
                            arrival->descriptor == NULL ? arrival->data : NULL};
}

/* Deliver what came too early and whose turn it is now. */
static void deliver_early(struct ucx_peer *peer)
{
    struct ucx_arrival **link = &peer->early;

    while (*link != NULL) {
        struct ucx_arrival *arrival = *link;
        struct content content = content_of(arrival);

        if (arrival->header.number != peer->received) {
            link = &arrival->next;
            continue;
        }
        *link = arrival->next;
        release(peer, arrival, !deliver(peer, &content));
        link = &peer->early;
    }
}

/* It came too early, and comes again. */
static bool is_waiting(const struct ucx_peer *peer, uint32_t number)
{
    for (const struct ucx_arrival *arrival = peer->early; arrival != NULL; arrival = arrival->next)
        if (arrival->header.number == number) return true;
    return false;
}

/* The peer that sent this; NULL: nobody of this group did. */
static struct ucx_peer *sender(struct net_group *group, const struct ucx_header *header)
{
    struct ucx_peer *peer;

    if (header->from >= (uint32_t)group->size) return NULL;
    peer = &group->peers[header->from];
    if (!peer->wanted || peer->departed) return NULL;
    if (header->key == group->key) return peer;
    if (header->kind == UCX_HELLO) peer->is_strange = true;
    return NULL;
}

ucs_status_t ucx_arrived(void *argument, const void *given, size_t header_bytes, void *data,
                         size_t bytes, const ucp_am_recv_param_t *param)
{
    bool waits = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0, used;
    struct ucx_header header;
    struct content content = {&header, waits ? data : NULL, waits ? NULL : data};
    struct ucx_peer *peer;

    if (header_bytes != sizeof header) return UCS_OK;
    memcpy(&header, given, sizeof header);
    peer = sender(argument, &header);
    if (peer == NULL || header.bytes != bytes) return UCS_OK;
    if (header.kind == UCX_HELLO) {
        peer->said_hello = true;
        return UCS_OK;
    }
    if (!peer->said_hello || (int32_t)(header.number - peer->received) < 0) return UCS_OK;
    if (header.number != peer->received) {
        if (is_waiting(peer, header.number)) return UCS_OK;
        used = keep(peer, &peer->early, &content);
    } else {
        used = deliver(peer, &content);
        deliver_early(peer);
    }
    return used ? UCS_INPROGRESS : UCS_OK;
}

void ucx_expect(struct ucx_op *op)
{
    struct ucx_peer *peer = op->peer;
    struct ucx_arrival **link = &peer->arrivals;

    ucx_op_add(op);
    while (*link != NULL) {
        struct ucx_arrival *arrival = *link;
        struct content content = content_of(arrival);

        if (!matches(&arrival->header, &op->header)) {
            link = &arrival->next;
            continue;
        }
        *link = arrival->next;
        release(peer, arrival, !take(op, &content));
        return;
    }
    if (peer->departed) ucx_op_end(op, &peer->cause);
}

void ucx_drop_arrivals(struct ucx_peer *peer)
{
    struct ucx_arrival **lists[2] = {&peer->arrivals, &peer->early};

    for (int i = 0; i < 2; i++)
        while (*lists[i] != NULL) {
            struct ucx_arrival *arrival = *lists[i];

            *lists[i] = arrival->next;
            release(peer, arrival, true);
        }
}
