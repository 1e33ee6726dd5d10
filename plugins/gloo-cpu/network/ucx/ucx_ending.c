/* ucx_ending.c - the end of connections, and notices of failure. */
#include "ucx.h"

#include "plug_host.h"

#include <string.h>

#define FAREWELL_NS INT64_C(200000000)

static void control_sent(void *request, ucs_status_t status, void *group)
{
    (void)status; /* the endpoint reports its own failure */
    ucx.ucp_request_free(request);
    ((struct net_group *)group)->controls--;
}

void ucx_control(struct ucx_peer *peer, struct ucx_header *header, uint32_t kind, const void *data,
                 size_t bytes)
{
    struct net_group *group = peer->group;
    const ucp_request_param_t param = {.op_attr_mask =
                                           UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb = {.send = control_sent},
                                       .user_data = group};
    ucs_status_ptr_t request;

    *header = (struct ucx_header){
        .key = group->key, .bytes = bytes, .from = (uint32_t)group->rank, .kind = kind};
    if (kind != UCX_HELLO) header->number = peer->sent++;
    request = ucx.ucp_am_send_nbx(peer->endpoint, UCX_MESSAGE_ID, header, sizeof *header, data,
                                  bytes, &param);
    if (UCS_PTR_IS_PTR(request)) group->controls++;
}

void ucx_break_off(struct ucx_peer *peer)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t request;

    if (peer->endpoint == NULL) return;
    ucx_depart(peer, WEFT_ERR_PEER, "the connection was broken off");
    request = ucx.ucp_ep_close_nbx(peer->endpoint, &param);
    peer->endpoint = NULL;
    if (UCS_PTR_IS_PTR(request)) peer->close = request;
}

static bool has_ended(void **request)
{
    if (*request == NULL) return true;
    if (ucx.ucp_request_check_status(*request) == UCS_INPROGRESS) return false;
    ucx.ucp_request_free(*request);
    *request = NULL;
    return true;
}

static bool all_have_heard(const void *argument)
{
    const struct net_group *group = argument;
    bool all = true;

    for (int32_t rank = 0; rank < group->size; rank++) {
        const struct ucx_peer *peer = &group->peers[rank];

        if (peer->endpoint != NULL && !peer->departed && !peer->has_heard) all = false;
    }
    return all;
}

static bool all_closed(const void *argument)
{
    struct net_group *group = *(struct net_group *const *)argument;
    bool all = true;

    for (int32_t rank = 0; rank < group->size; rank++)
        all = has_ended(&group->peers[rank].close) && all;
    return all && group->controls == 0;
}

void ucx_say_farewell(struct net_group *group, uint32_t kind, size_t bytes)
{
    for (int32_t rank = 0; rank < group->size && !group->is_dead; rank++) {
        struct ucx_peer *peer = &group->peers[rank];

        if (peer->endpoint == NULL || peer->departed) continue;
        ucx_control(peer, &peer->farewell, kind, group->farewell, bytes);
    }
    (void)ucx_wait(group, all_have_heard, group, ucx_deadline(FAREWELL_NS));
}

void ucx_end_connections(struct net_group *group)
{
    if (group->is_dead) return;
    for (int32_t rank = 0; rank < group->size; rank++)
        ucx_break_off(&group->peers[rank]);
    (void)ucx_wait(group, all_closed, &group, ucx_deadline(FAREWELL_NS));
}

void ucx_hang_up(struct net_group *group, const void *notice)
{
    pthread_mutex_lock(&group->lock);
    if (group->connected && !group->has_hung_up) {
        group->has_hung_up = true;
        pthread_cond_broadcast(&group->changed);
        memcpy(group->farewell, notice, NET_NOTICE_BYTES);
        ucx_say_farewell(group, UCX_NOTICE, NET_NOTICE_BYTES);
    }
    pthread_mutex_unlock(&group->lock);
}

static bool has_departed(const void *argument)
{
    return ((const struct ucx_peer *)argument)->departed;
}

void ucx_read_notice(struct net_group *group, int32_t rank, void *notice)
{
    memset(notice, 0, NET_NOTICE_BYTES);
    if (rank < 0 || rank >= group->size || !group->peers[rank].wanted) return;
    pthread_mutex_lock(&group->lock);
    (void)ucx_wait(group, has_departed, &group->peers[rank], ucx_deadline(FAREWELL_NS));
    if (group->peers[rank].has_notice) memcpy(notice, group->peers[rank].notice, NET_NOTICE_BYTES);
    pthread_mutex_unlock(&group->lock);
}
