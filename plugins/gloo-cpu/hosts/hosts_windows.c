/* hosts_windows.c - one-sided operations on windows of ranks on other hosts.
 *
 * A rank sends a request, and a thread of the rank that owns the memory serves it: it stores the
 * data of a put, or sends that of a get, changes a signal and confirms.  The thread exists from the
 * first window on.  These are messages like all others, so what non-members send is dropped.  An
 * operation returns when it is confirmed, so that all of them are in order. */
#include "hosts.h"

#include "memory/cpu_symm.h"

#include <string.h>

struct request {
    uint64_t offset, bytes, value;
    uint32_t window, tag; /* TAG: of the data and the reply */
    uint32_t access, signal, op;
    uint32_t signals; /* 0: none is changed */
};

static weft_status move(struct cpu_comm *comm, const char *doing, uint32_t send_count,
                        const struct net_part *sends, uint32_t receive_count,
                        const struct net_part *receives)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    struct net_failure failure = {0};
    struct net_work *work = NULL;
    weft_status status = hosts->carrier->start(hosts->network, send_count, sends, receive_count,
                                               receives, &work, &failure);

    if (status == WEFT_OK) status = hosts->carrier->wait(hosts->network, work, &failure);
    return status == WEFT_OK ? status : cpu_hosts_fail(comm, doing, &failure);
}

/* ---- the rank that accesses ---- */

weft_status cpu_hosts_access(struct cpu_comm *comm, const struct cpu_hosts_access *access)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct request request = {.offset = access->offset,
                              .bytes = access->bytes,
                              .value = access->value,
                              .window = access->window,
                              .tag = atomic_fetch_add(&hosts->requests, 1),
                              .access = access->kind,
                              .signal = access->signal,
                              .op = access->op,
                              .signals = access->signals};
    uint64_t confirmed;
    bool puts = access->kind == HOSTS_PUT && access->bytes > 0;
    bool gets = access->kind == HOSTS_GET;
    const struct net_part sends[2] = {
        {.peer = access->peer, .kind = NET_REQUEST, .data = &request, .bytes = sizeof request},
        {.peer = access->peer,
         .kind = NET_REQUEST_DATA,
         .tag = request.tag,
         .data = access->memory,
         .bytes = access->bytes}};
    const struct net_part reply = {.peer = access->peer,
                                   .kind = NET_REPLY,
                                   .tag = request.tag,
                                   .data = gets ? access->memory : &confirmed,
                                   .bytes = gets ? access->bytes : sizeof confirmed};
    weft_status status;

    if (gets && access->bytes == 0) return WEFT_OK;
    status = move(comm, gets ? "get" : "put", puts ? 2 : 1, sends, 1, &reply);
    if (status != WEFT_OK) cpu_hosts_disconnect(comm);
    return status;
}

/* ---- the rank that owns the memory ---- */

/* The window of a request, which may be wrong. */
static weft_status find_window(struct cpu_comm *comm, int32_t peer, const struct request *request,
                               struct cpu_window **out)
{
    struct cpu_window *window;

    pthread_mutex_lock(&comm->windows_lock);
    for (window = comm->windows; window != NULL && window->number != request->window;)
        window = window->next;
    pthread_mutex_unlock(&comm->windows_lock);
    if (window != NULL && request->bytes <= window->bytes &&
        request->offset <= window->bytes - request->bytes &&
        (request->signals == 0 || request->signal < window->signals)) {
        *out = window;
        return WEFT_OK;
    }
    return cpu_shm_fail(&comm->group, WEFT_ERR_MISMATCH,
                        "rank %d accesses %llu bytes at %llu of symmetric memory #%u of rank %d, "
                        "which has %llu bytes there",
                        (int)comm->names[peer], (unsigned long long)request->bytes,
                        (unsigned long long)request->offset, request->window, (int)comm->world_rank,
                        window != NULL ? (unsigned long long)window->bytes : 0);
}

/* Words go through WORD, so that they change at once. */
static bool is_word(uint64_t bytes)
{
    return bytes <= sizeof(uint64_t);
}

static weft_status take_data(struct cpu_comm *comm, int32_t peer, const struct request *request,
                             unsigned char *target)
{
    uint64_t word = 0;
    const struct net_part data = {.peer = peer,
                                  .kind = NET_REQUEST_DATA,
                                  .tag = request->tag,
                                  .data = is_word(request->bytes) ? (void *)&word : target,
                                  .bytes = request->bytes};

    PLUG_TRY(move(comm, "put", 0, NULL, 1, &data));
    if (is_word(request->bytes)) cpu_window_copy(target, &word, request->bytes);
    return WEFT_OK;
}

static weft_status send_data(struct cpu_comm *comm, int32_t peer, const struct request *request,
                             unsigned char *source)
{
    uint64_t word = 0;
    const struct net_part data = {.peer = peer,
                                  .kind = NET_REPLY,
                                  .tag = request->tag,
                                  .data = is_word(request->bytes) ? (void *)&word : source,
                                  .bytes = request->bytes};

    if (is_word(request->bytes)) cpu_window_copy(&word, source, request->bytes);
    return move(comm, "get", 1, &data, 0, NULL);
}

static weft_status serve_request(struct cpu_comm *comm, int32_t peer)
{
    struct request request;
    uint64_t confirmed = 1;
    const struct net_part part = {
        .peer = peer, .kind = NET_REQUEST, .data = &request, .bytes = sizeof request};
    struct net_part reply = {
        .peer = peer, .kind = NET_REPLY, .data = &confirmed, .bytes = sizeof confirmed};
    struct cpu_window *window = NULL;
    unsigned char *memory;

    PLUG_TRY(move(comm, "a one-sided operation", 0, NULL, 1, &part));
    PLUG_TRY(find_window(comm, peer, &request, &window));
    memory = (unsigned char *)window->memory + request.offset;
    if (request.access == HOSTS_GET) return send_data(comm, peer, &request, memory);
    if (request.access == HOSTS_PUT && request.bytes > 0)
        PLUG_TRY(take_data(comm, peer, &request, memory));
    if (request.signals != 0)
        cpu_window_signal(window, window->pad, comm->group.rank, request.signal, request.op,
                          request.value);
    reply.tag = request.tag;
    return move(comm, "put", 1, &reply, 0, NULL);
}

static void *serve(void *argument)
{
    struct cpu_comm *comm = argument;
    const struct cpu_hosts *hosts = comm->other_hosts;
    int32_t peer = 0;

    while (hosts->carrier->await(hosts->network, NET_REQUEST, &peer))
        if (serve_request(comm, peer) != WEFT_OK) {
            cpu_hosts_disconnect(comm);
            break;
        }
    return NULL;
}

bool cpu_hosts_can_serve(const struct cpu_comm *comm)
{
    return comm->other_hosts->carrier->await != NULL;
}

weft_status cpu_hosts_serve(struct cpu_comm *comm)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    int error;

    if (hosts->serves) return WEFT_OK;
    error = pthread_create(&hosts->server, NULL, serve, comm);
    if (error != 0)
        return plug_fail_errno(WEFT_ERR_SYSTEM, error,
                               "window: cannot start the thread that serves other hosts");
    pthread_setname_np(hosts->server, "weft-windows");
    hosts->serves = true;
    return WEFT_OK;
}

void cpu_hosts_serve_end(struct cpu_comm *comm)
{
    struct cpu_hosts *hosts = comm->other_hosts;

    if (hosts == NULL || !hosts->serves) return;
    hosts->carrier->end_await(hosts->network);
    pthread_join(hosts->server, NULL);
    hosts->serves = false;
}
