/* ccl_comm.c - making communicators: prepare alone, then commit together. */
#include "ccl.h"

#include <string.h>
#include <unistd.h>

/* From the pool, since giving it back may not wait for the device as freeing does. */
static weft_status take_token(struct wf_comm *comm)
{
    struct wf_gpu_device *device = comm->device;
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(device, &scope));
    status = wf_gpu_borrow(device, 256, device->setup, &comm->token);
    if (status == WEFT_OK)
        status = wf_gpu_check(wf_gpu.stream_sync(device->setup), "taking memory");
    wf_leave(&scope);
    return status;
}

weft_status wf_comm_new(struct wf_gpu_device *device, const weft_comm_options *options,
                        struct wf_comm **out)
{
    struct wf_comm *comm;
    weft_status status;

    WF_TRY(wf_comm_allocate(device, options, &comm));
    pthread_mutex_init(&comm->gate, NULL);
    comm->facts = (struct wf_facts){.bytes = sizeof comm->facts,
                                    .version = wf_ccl_version,
                                    .capability = device->capability,
                                    .kernels = device->kernels != NULL,
                                    .process = (int32_t)getpid(),
                                    .is_shared = device->is_shared};
    memcpy(comm->facts.uuid, device->uuid, sizeof comm->facts.uuid);
    status = take_token(comm);
    if (status == WEFT_OK)
        *out = comm;
    else
        wf_comm_destroy(comm);
    return status;
}

weft_status wf_comm_prepare(void *device, const weft_comm_options *given, void **out,
                            weft_blob *address)
{
    weft_comm_options options;
    struct wf_comm *comm;

    wf_read(&options, given, sizeof options);
    WF_TRY(wf_ccl_load());
    WF_TRY(wf_comm_new(device, &options, &comm));
    *out = comm;
    *address = (weft_blob){&comm->facts, sizeof comm->facts};
    return WEFT_OK;
}

/* ---- agreeing ---- */

static weft_status read_facts(const weft_blob *address, int32_t rank, struct wf_facts *out)
{
    if (address->bytes != sizeof *out)
        return wf_fail(WEFT_ERR_MISMATCH, "rank %d has another build of the %s plugin", rank,
                       VENDOR_PLUGIN);
    memcpy(out, address->data, sizeof *out);
    return WEFT_OK;
}

/* Everything a way of doing a collective depends on becomes the same on all ranks. */
static weft_status agree(struct wf_comm *comm, const weft_blob *addresses)
{
    struct wf_means means = {comm->facts.version, comm->facts.capability, comm->size,
                             comm->facts.kernels != 0};
    struct wf_facts facts;

    for (int32_t r = 0; r < comm->size; r++) {
        WF_TRY(read_facts(&addresses[r], r, &facts));
        if (facts.version != comm->facts.version)
            return wf_fail(WEFT_ERR_MISMATCH,
                           "rank %d has %s %d and rank %d has %s %d; all ranks need the same",
                           comm->rank, VENDOR_CCL, comm->facts.version, r, VENDOR_CCL,
                           facts.version);
        if (facts.capability < means.capability) means.capability = facts.capability;
        if (facts.kernels == 0) means.kernels = false;
    }
    comm->means = means;
    return WEFT_OK;
}

/* Two ranks of a host on one device, for which the library wants them to look like two hosts. */
static weft_status check_sharing(const struct wf_comm *comm, const weft_blob *addresses)
{
    struct wf_facts one, other;

    for (int32_t a = 0; a < comm->size; a++)
        for (int32_t b = a + 1; b < comm->size; b++) {
            WF_TRY(read_facts(&addresses[a], a, &one));
            WF_TRY(read_facts(&addresses[b], b, &other));
            if (comm->host_ids[a] != comm->host_ids[b] ||
                memcmp(one.uuid, other.uuid, sizeof one.uuid) != 0)
                continue;
            if (one.process == other.process)
                return wf_fail(WEFT_ERR_UNSUPPORTED,
                               "ranks %d and %d are in one process and on one device, %s, which "
                               "%s does not allow",
                               a, b, one.uuid, VENDOR_CCL);
            if (one.is_shared == 0 || other.is_shared == 0)
                return wf_fail(WEFT_ERR_INVALID,
                               "ranks %d and %d are on one device, %s, which %s does not allow; "
                               "WEFT_SHARE_GPU=1 makes it, for tests",
                               a, b, one.uuid, VENDOR_CCL);
        }
    return WEFT_OK;
}

/* The first rank's id, or its failure, to all. */
static weft_status share_id(const struct wf_comm *comm, const weft_exchange *exchange, ccl_id *id)
{
    struct message {
        ccl_id id;
        int32_t result;
    } mine = {.result = CCL_SUCCESS}, *all;
    ccl_result result;
    weft_status status;

    if (comm->rank == 0) mine.result = wf_ccl.ncclGetUniqueId(&mine.id);
    all = wf_new((size_t)comm->size * sizeof *all);
    if (all == NULL) return WEFT_ERR_NO_MEMORY;
    status = exchange->all_gather(exchange->self, &mine, all, sizeof mine);
    *id = all[0].id;
    result = all[0].result;
    wf_delete(all);
    if (status != WEFT_OK) return status;
    return wf_ccl_check(result, "making an id for a communicator, on its first rank");
}

ccl_config wf_comm_config(bool blocking, bool split_share)
{
    return (ccl_config){.bytes = sizeof(ccl_config),
                        .magic = CCL_CONFIG_MAGIC,
                        .version = CCL_CONFIG_VERSION,
                        .blocking = blocking,
                        .cga_cluster = CCL_UNSET,
                        .least_blocks = CCL_UNSET,
                        .most_blocks = CCL_UNSET,
                        .split_share = split_share,
                        .traffic_class = CCL_UNSET};
}

int64_t wf_making_limit(const struct wf_comm *comm)
{
    bool is_short = comm->timeout_ns >= 0 && comm->timeout_ns < WF_LEAST_MAKING_NS;

    return is_short ? WF_LEAST_MAKING_NS : comm->timeout_ns;
}

/* What is split off `work` later must not share its abort flag, so `work` does not offer it. */
weft_status wf_comm_make_work(struct wf_comm *comm)
{
    ccl_config blocking = wf_comm_config(true, false);
    ccl_result result;

    if (wf_ccl.ncclCommSplit == NULL) {
        comm->work = comm->control;
        return WEFT_OK;
    }
    result = wf_ccl.ncclCommSplit(comm->control, 0, comm->rank, &comm->work, &blocking);
    return wf_settle(comm, comm->control, result, wf_making_limit(comm),
                     "making a communicator to work on");
}

/* A rank alone waits for nobody: one communicator that blocks will do. */
weft_status wf_comm_join(struct wf_comm *comm, ccl_id id)
{
    ccl_config polled = wf_comm_config(false, true), blocking = wf_comm_config(true, false);
    ccl_result result;

    if (comm->size == 1) {
        result = wf_ccl.ncclCommInitRankConfig(&comm->work, 1, id, 0, &blocking);
        return wf_ccl_check(result, "making a communicator");
    }
    result = wf_ccl.ncclCommInitRankConfig(&comm->control, comm->size, id, comm->rank, &polled);
    WF_TRY(wf_settle(comm, comm->control, result, wf_making_limit(comm), "making a communicator"));
    return wf_comm_make_work(comm);
}

weft_status wf_comm_ready(struct wf_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->is_ready = true;
    pthread_mutex_unlock(&comm->lock);
    return wf_watch(comm);
}

weft_status wf_comm_commit(void *made, const weft_blob *addresses, const weft_exchange *exchange)
{
    struct wf_comm *comm = made;
    struct wf_scope scope;
    weft_status status;
    ccl_id id;

    WF_TRY(wf_comm_stuck(comm));
    WF_TRY(agree(comm, addresses));
    WF_TRY(check_sharing(comm, addresses));
    WF_TRY(share_id(comm, exchange, &id));
    WF_TRY(wf_enter(comm->device, &scope));
    status = wf_comm_join(comm, id);
    if (status == WEFT_OK) status = wf_comm_ready(comm);
    wf_leave(&scope);
    return status == WEFT_OK ? wf_comm_stuck(comm) : status;
}

/* ---- the caller's own communicators ---- */

weft_status wf_comm_wrap(void *device, void *native, const weft_comm_options *given, void **out)
{
    weft_comm_options options;
    struct wf_comm *comm;
    int rank = -1, size = -1;

    wf_read(&options, given, sizeof options);
    if (native == NULL) return wf_fail(WEFT_ERR_INVALID, "the communicator to wrap is NULL");
    WF_TRY(wf_ccl_load());
    WF_TRY(wf_ccl_check(wf_ccl.ncclCommUserRank(native, &rank), "asking a communicator's rank"));
    WF_TRY(wf_ccl_check(wf_ccl.ncclCommCount(native, &size), "asking a communicator's size"));
    if (rank != options.rank || size != options.size)
        return wf_fail(WEFT_ERR_INVALID,
                       "the communicator is rank %d of %d, the options say rank %d of %d", rank,
                       size, options.rank, options.size);
    WF_TRY(wf_comm_new(device, &options, &comm));
    comm->is_wrapped = true;
    comm->work = native;
    /* Other ranks cannot be asked what they have: only what every device has is relied on. */
    comm->means = (struct wf_means){wf_ccl_version, 0, size, comm->facts.kernels != 0};
    comm->is_ready = true;
    *out = comm;
    return WEFT_OK;
}

void *wf_comm_native(void *made)
{
    struct wf_comm *comm = made;

    comm->is_handed_out = true;
    return comm->work;
}
