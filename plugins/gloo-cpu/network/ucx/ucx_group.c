/* ucx_group.c - makes and ends the connections of a communicator. */
#include "ucx.h"

#include "plug_host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- UCX's settings ---- */

/* What UCX takes from its variables and its file of settings, a line each; NULL: out of memory.  To
 * be freed. */
static char *print_settings(const ucp_config_t *config)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    if (stream == NULL) return NULL;
    ucx.ucp_config_print(config, stream, NULL, UCS_CONFIG_PRINT_CONFIG);
    fclose(stream);
    return text;
}

static bool host_has_rdma(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    bool has = false;

    if (folder == NULL) return false;
    for (const struct dirent *entry = readdir(folder); entry != NULL && !has;
         entry = readdir(folder))
        has = entry->d_name[0] != '.';
    closedir(folder);
    return has;
}

/* Change what the user has not set.
 *
 * UCX takes every interface for reachable, also the bridges of container engines.  The interface
 * that the hosts share is better, unless there are devices that are faster than TCP.
 *
 * Over TCP, UCX 1.13 may put large messages into the receiver's memory, and ends the process if
 * such a message is confirmed after its connection has been ended.  Messages in parts are as
 * fast. */
static ucs_status_t set_defaults(const struct net_ranks *ranks, const char *settings,
                                 ucp_config_t *config)
{
    bool has_rdma = host_has_rdma(), any_device = strstr(settings, "NET_DEVICES=all\n") != NULL;
    bool knows_interface = ranks->interface != NULL && ranks->interface[0] != '\0';
    ucs_status_t status = UCS_OK;

    if (any_device && knows_interface && (!has_rdma || plug_knob("WEFT_GLOO_INTERFACE") != NULL))
        status = ucx.ucp_config_modify(config, "NET_DEVICES", ranks->interface);
    if (status == UCS_OK && strstr(settings, "RNDV_SCHEME=auto\n") != NULL &&
        (!has_rdma || strstr(settings, "TLS=tcp\n") != NULL))
        status = ucx.ucp_config_modify(config, "RNDV_SCHEME", "am");
    return status;
}

static ucs_status_t configure(const struct net_ranks *ranks, ucp_config_t **out)
{
    ucs_status_t status = ucx.ucp_config_read(NULL, NULL, out);
    char *settings;

    if (status != UCS_OK) return status;
    settings = print_settings(*out);
    if (settings == NULL) return UCS_ERR_NO_MEMORY;
    status = set_defaults(ranks, settings, *out);
    free(settings);
    return status;
}

/* ---- listening ---- */

static weft_status fail_ucx(struct net_failure *failure, const char *doing, ucs_status_t status)
{
    return ucx_fail(failure, status == UCS_ERR_NO_MEMORY ? WEFT_ERR_NO_MEMORY : WEFT_ERR_SYSTEM, -1,
                    "%s: %s", doing, ucx.ucs_status_string(status));
}

static weft_status make_context(const struct net_ranks *ranks, struct net_group *group,
                                struct net_failure *failure)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                                 .name = "weft"};
    ucp_config_t *config = NULL;
    ucs_status_t status = configure(ranks, &config);

    if (status == UCS_OK)
        status =
            ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &group->context);
    if (config != NULL) ucx.ucp_config_release(config);
    return status == UCS_OK ? WEFT_OK : fail_ucx(failure, "no context", status);
}

static weft_status make_worker(struct net_group *group, struct net_failure *failure)
{
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = UCX_MESSAGE_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = ucx_arrived,
        .arg = group};
    ucs_status_t status = ucx.ucp_worker_create(group->context, &params, &group->worker);

    if (status != UCS_OK) return fail_ucx(failure, "no worker", status);
    status = ucx.ucp_worker_set_am_recv_handler(group->worker, &handler);
    if (status == UCS_OK) status = ucx.ucp_worker_get_efd(group->worker, &group->efd);
    if (status == UCS_OK)
        status = ucx.ucp_worker_get_address(group->worker, &group->address, &group->address_bytes);
    return status == UCS_OK ? WEFT_OK : fail_ucx(failure, "no address", status);
}

static struct net_group *allocate(const struct net_ranks *ranks)
{
    struct net_group *group =
        plug_alloc(sizeof *group + (size_t)ranks->size * sizeof group->peers[0]);
    pthread_condattr_t monotonic;

    if (group == NULL) return NULL;
    group->rank = ranks->rank;
    group->size = ranks->size;
    group->timeout_ns = ranks->timeout_ns;
    group->wake[0] = group->wake[1] = -1;
    pthread_mutex_init(&group->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&group->changed, &monotonic);
    pthread_cond_init(&group->server, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int32_t rank = 0; rank < ranks->size; rank++) {
        group->peers[rank].group = group;
        group->peers[rank].rank = rank;
        group->peers[rank].wanted = ranks->wanted[rank] != 0;
    }
    return group;
}

weft_status ucx_listen(const struct net_ranks *ranks, struct net_group **out,
                       struct net_failure *failure)
{
    struct net_group *group = allocate(ranks);
    weft_status status;

    if (group == NULL) return ucx_fail(failure, WEFT_ERR_NO_MEMORY, -1, "out of memory");
    ucx_library_is_used();
    if (pipe2(group->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        status = ucx_fail(failure, WEFT_ERR_SYSTEM, -1, "no pipe: errno %d", errno);
    else
        status = make_context(ranks, group, failure);
    if (status == WEFT_OK) status = make_worker(group, failure);
    if (status == WEFT_OK)
        *out = group;
    else
        ucx_close(group);
    return status;
}

/* A published address is its length, in 8 bytes, and UCX's address. */
size_t ucx_address_bytes(const struct net_group *group)
{
    return sizeof(uint64_t) + group->address_bytes;
}

void ucx_address(const struct net_group *group, void *out)
{
    uint64_t bytes = group->address_bytes;

    memcpy(out, &bytes, sizeof bytes);
    memcpy((unsigned char *)out + sizeof bytes, group->address, group->address_bytes);
}

/* ---- connecting ---- */

static void endpoint_failed(void *peer, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint;
    ucx_depart(peer, WEFT_ERR_PEER, "the connection broke: %s", ucx.ucs_status_string(status));
}

struct meeting {
    struct net_group *group;
    const unsigned char *addresses;
    size_t stride;
};

/* Connect to PEER, and prove that this rank is of the group. */
static void approach(const struct meeting *meeting, struct ucx_peer *peer)
{
    const unsigned char *address = meeting->addresses + meeting->stride * (size_t)peer->rank;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = endpoint_failed, .arg = peer}};
    ucs_status_t status;
    uint64_t bytes;

    memcpy(&bytes, address, sizeof bytes);
    if (meeting->stride < sizeof bytes || bytes == 0 || bytes > meeting->stride - sizeof bytes) {
        ucx_depart(peer, WEFT_ERR_PEER, "its address is not valid");
        return;
    }
    params.address = (const ucp_address_t *)(address + sizeof bytes);
    status = ucx.ucp_ep_create(meeting->group->worker, &params, &peer->endpoint);
    if (status == UCS_OK) {
        ucx_control(peer, &peer->hello, UCX_HELLO, NULL, 0);
        return;
    }
    peer->endpoint = NULL;
    ucx_depart(peer, WEFT_ERR_PEER, "%s", ucx.ucs_status_string(status));
}

/* The peer may have left since. */
static bool has_met(const struct ucx_peer *peer)
{
    return peer->said_hello && peer->endpoint != NULL;
}

/* The lower rank of two connects first: if both do at once, UCX 1.13 loses messages. */
static bool all_met(const void *argument)
{
    const struct meeting *meeting = argument;
    struct net_group *group = meeting->group;
    bool all = true;

    if (atomic_load(&group->aborted)) return true;
    for (int32_t rank = 0; rank < group->size; rank++) {
        struct ucx_peer *peer = &group->peers[rank];

        if (!peer->wanted) continue;
        if (peer->endpoint == NULL && !peer->departed && (rank > group->rank || peer->said_hello))
            approach(meeting, peer);
        if (has_met(peer)) continue;
        if (peer->departed) return true;
        all = false;
    }
    return all && group->controls == 0;
}

static weft_status result_of_meeting(const struct net_group *group, struct net_failure *failure)
{
    if (atomic_load(&group->aborted))
        return ucx_fail(failure, WEFT_ERR_ABORTED, -1, "the communicator was aborted");
    for (int32_t rank = 0; rank < group->size; rank++) {
        const struct ucx_peer *peer = &group->peers[rank];

        if (!peer->wanted || has_met(peer)) continue;
        if (peer->is_strange)
            return ucx_fail(failure, WEFT_ERR_PEER, rank,
                            "the other end of the connection does not belong to this job");
        if (peer->departed) {
            *failure = peer->cause;
            return failure->status;
        }
        return ucx_fail(failure, WEFT_ERR_TIMEOUT, rank, "Timed out after %.3f s",
                        (double)group->timeout_ns * 1e-9);
    }
    if (group->controls > 0)
        return ucx_fail(failure, WEFT_ERR_TIMEOUT, -1, "Timed out after %.3f s",
                        (double)group->timeout_ns * 1e-9);
    return WEFT_OK;
}

weft_status ucx_connect(struct net_group *group, const void *addresses, size_t stride, uint64_t key,
                        struct net_failure *failure)
{
    const struct meeting meeting = {group, addresses, stride};
    weft_status status;

    pthread_mutex_lock(&group->lock);
    group->key = key;
    (void)ucx_wait(group, all_met, &meeting, ucx_deadline(group->timeout_ns));
    status = result_of_meeting(group, failure);
    group->connected = status == WEFT_OK;
    pthread_mutex_unlock(&group->lock);
    return status;
}

/* ---- ending ---- */

void ucx_abort(struct net_group *group)
{
    atomic_store(&group->aborted, true);
    ucx_wake(group);
}

static void free_group(struct net_group *group)
{
    for (int32_t rank = 0; rank < group->size; rank++)
        ucx_drop_arrivals(&group->peers[rank]);
    if (group->address != NULL) ucx.ucp_worker_release_address(group->worker, group->address);
    if (group->worker != NULL) ucx.ucp_worker_destroy(group->worker);
    if (group->context != NULL) ucx.ucp_cleanup(group->context);
    while (group->abandoned != NULL) {
        struct net_work *work = group->abandoned;

        group->abandoned = work->next;
        plug_free(work);
    }
    for (int i = 0; i < 2; i++)
        if (group->wake[i] >= 0) close(group->wake[i]);
    pthread_cond_destroy(&group->changed);
    pthread_cond_destroy(&group->server);
    pthread_mutex_destroy(&group->lock);
    plug_free(group);
}

void ucx_close(struct net_group *group)
{
    if (group == NULL) return;
    if (group->worker != NULL) {
        pthread_mutex_lock(&group->lock);
        if (group->connected && !group->has_hung_up) ucx_say_farewell(group, UCX_GOODBYE, 0);
        ucx_end_connections(group);
        pthread_mutex_unlock(&group->lock);
    }
    free_group(group);
}
