/* ccl_comm.c - creation of communicators: prepare is local, commit is collective. */
#include "ccl.h"

#include <string.h>
#include <unistd.h>

/* Allocated from the pool, because a free that waits for the device could block. */
static weft_status take_token(struct gpu_comm *comm)
{
    struct gpu_device *device = comm->device;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(device, &scope));
    status = gpu_borrow(device, 256, device->setup, &comm->token);
    if (status == WEFT_OK)
        status = gpu_check(gpu_api.stream_sync(device->setup), "allocating memory");
    gpu_leave(&scope);
    return status;
}

weft_status ccl_comm_new(struct gpu_device *device, const weft_comm_options *options,
                         struct gpu_comm **out)
{
    struct gpu_comm *comm;
    weft_status status;

    PLUG_TRY(gpu_comm_allocate(device, options, &comm));
    pthread_mutex_init(&comm->gate, NULL);
    comm->facts = (struct ccl_facts){.bytes = sizeof comm->facts,
                                     .version = ccl_version,
                                     .capability = device->capability,
                                     .kernels = device->kernels != NULL,
                                     .process = (int32_t)getpid(),
                                     .is_shared = device->is_shared};
    memcpy(comm->facts.uuid, device->uuid, sizeof comm->facts.uuid);
    status = take_token(comm);
    if (status == WEFT_OK)
        *out = comm;
    else
        gpu_comm_destroy(comm);
    return status;
}

weft_status gpu_comm_prepare(void *device, const weft_comm_options *given, void **out,
                             weft_blob *address)
{
    weft_comm_options options;
    struct gpu_comm *comm;

    plug_take_struct(&options, given, sizeof options);
    PLUG_TRY(ccl_load());
    PLUG_TRY(ccl_comm_new(device, &options, &comm));
    *out = comm;
    *address = (weft_blob){&comm->facts, sizeof comm->facts};
    return WEFT_OK;
}

/* ---- agreement of the ranks ---- */

static weft_status read_facts(const weft_blob *address, int32_t rank, struct ccl_facts *out)
{
    if (address->bytes != sizeof *out)
        return plug_fail(WEFT_ERR_MISMATCH, "rank %d has another build of the %s plugin", rank,
                         VENDOR_PLUGIN);
    memcpy(out, address->data, sizeof *out);
    return WEFT_OK;
}

/* Make all properties that the choice of a method depends on equal on all ranks. */
static weft_status agree(struct gpu_comm *comm, const weft_blob *addresses)
{
    struct ccl_means means = {comm->facts.version, comm->facts.capability, comm->size,
                              comm->facts.kernels != 0};
    struct ccl_facts facts;

    for (int32_t r = 0; r < comm->size; r++) {
        PLUG_TRY(read_facts(&addresses[r], r, &facts));
        if (facts.version != comm->facts.version)
            return plug_fail(
                WEFT_ERR_MISMATCH,
                "rank %d has %s %d and rank %d has %s %d; all ranks must have the same version",
                comm->rank, VENDOR_CCL, comm->facts.version, r, VENDOR_CCL, facts.version);
        if (facts.capability < means.capability) means.capability = facts.capability;
        if (facts.kernels == 0) means.kernels = false;
    }
    comm->means = means;
    return WEFT_OK;
}

/* Detect two ranks of a host on one device.  The library requires that they look like two hosts. */
static weft_status check_sharing(const struct gpu_comm *comm, const weft_blob *addresses)
{
    struct ccl_facts one, other;

    for (int32_t a = 0; a < comm->size; a++)
        for (int32_t b = a + 1; b < comm->size; b++) {
            PLUG_TRY(read_facts(&addresses[a], a, &one));
            PLUG_TRY(read_facts(&addresses[b], b, &other));
            if (comm->host_ids[a] != comm->host_ids[b] ||
                memcmp(one.uuid, other.uuid, sizeof one.uuid) != 0)
                continue;
            if (one.process == other.process)
                return plug_fail(WEFT_ERR_UNSUPPORTED,
                                 "ranks %d and %d are in one process and on one device, %s, which "
                                 "%s does not allow",
                                 a, b, one.uuid, VENDOR_CCL);
            if (one.is_shared == 0 || other.is_shared == 0)
                return plug_fail(WEFT_ERR_INVALID,
                                 "ranks %d and %d are on one device, %s, which %s does not allow; "
                                 "WEFT_SHARE_GPU=1 allows it, for tests",
                                 a, b, one.uuid, VENDOR_CCL);
        }
    return WEFT_OK;
}

/* Send the first rank's id, or its failure, to all ranks. */
static weft_status share_id(const struct gpu_comm *comm, const weft_exchange *exchange, ccl_id *id)
{
    struct message {
        ccl_id id;
        int32_t result;
    } mine = {.result = CCL_SUCCESS}, *all;
    ccl_result result;
    weft_status status;

    if (comm->rank == 0) mine.result = ccl_api.ncclGetUniqueId(&mine.id);
    all = plug_new((size_t)comm->size * sizeof *all);
    if (all == NULL) return WEFT_ERR_NO_MEMORY;
    status = exchange->all_gather(exchange->user, &mine, all, sizeof mine);
    *id = all[0].id;
    result = all[0].result;
    plug_free(all);
    if (status != WEFT_OK) return status;
    return ccl_check(result, "creating the id of a communicator, on its first rank");
}

/* The library, and profilers that it loads, keep the pointer to a name for as long as they use the
 * communicator, which may be after its release.  Names are therefore kept until the process ends,
 * once each.  NULL: out of memory. */
static const char *keep_name(const char *name)
{
    struct kept {
        struct kept *next;
        char name[];
    };
    static struct kept *first;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t bytes = strlen(name) + 1;
    struct kept *kept;

    pthread_mutex_lock(&lock);
    for (kept = first; kept != NULL && strcmp(kept->name, name) != 0;)
        kept = kept->next;
    if (kept == NULL) {
        kept = plug_alloc(sizeof *kept + bytes);
        if (kept != NULL) {
            memcpy(kept->name, name, bytes);
            kept->next = first;
            first = kept;
        }
    }
    pthread_mutex_unlock(&lock);
    return kept != NULL ? kept->name : NULL;
}

ccl_config ccl_comm_config(const char *name, bool blocking, bool split_share)
{
    bool has_name = ccl_version >= VENDOR_CCL_NAMES && name[0] != '\0';

    return (ccl_config){.bytes = has_name ? sizeof(ccl_config) : offsetof(ccl_config, name),
                        .name = has_name ? keep_name(name) : NULL,
                        .magic = CCL_CONFIG_MAGIC,
                        .version = CCL_CONFIG_VERSION,
                        .blocking = blocking,
                        .cga_cluster = CCL_UNSET,
                        .least_blocks = CCL_UNSET,
                        .most_blocks = CCL_UNSET,
                        .split_share = split_share,
                        .traffic_class = CCL_UNSET};
}

int64_t ccl_making_limit(const struct gpu_comm *comm)
{
    bool is_short = comm->timeout_ns >= 0 && comm->timeout_ns < CCL_MIN_MAKING_NS;

    return is_short ? CCL_MIN_MAKING_NS : comm->timeout_ns;
}

/* Communicators that are later split from `work` must not share its abort flag.  `work` is
 * therefore created without sharing. */
weft_status ccl_comm_make_work(struct gpu_comm *comm)
{
    ccl_config blocking = ccl_comm_config(comm->name, true, false);
    ccl_result result;

    if (ccl_api.ncclCommSplit == NULL) {
        comm->work = comm->control;
        return WEFT_OK;
    }
    result = ccl_api.ncclCommSplit(comm->control, 0, comm->rank, &comm->work, &blocking);
    return ccl_settle(comm, comm->control, result, ccl_making_limit(comm),
                      "creating the second communicator");
}

/* A single rank waits for no peer, so one blocking communicator is enough. */
weft_status ccl_comm_join(struct gpu_comm *comm, ccl_id id)
{
    ccl_config polled = ccl_comm_config(comm->name, false, true),
               blocking = ccl_comm_config(comm->name, true, false);
    ccl_result result;

    if (comm->size == 1) {
        result = ccl_api.ncclCommInitRankConfig(&comm->work, 1, id, 0, &blocking);
        return ccl_check(result, "creating a communicator");
    }
    result = ccl_api.ncclCommInitRankConfig(&comm->control, comm->size, id, comm->rank, &polled);
    PLUG_TRY(
        ccl_settle(comm, comm->control, result, ccl_making_limit(comm), "creating a communicator"));
    return ccl_comm_make_work(comm);
}

weft_status ccl_comm_ready(struct gpu_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->is_ready = true;
    pthread_mutex_unlock(&comm->lock);
    return ccl_watch(comm);
}

weft_status gpu_comm_commit(void *made, const weft_blob *addresses, const weft_exchange *exchange)
{
    struct gpu_comm *comm = made;
    struct gpu_scope scope;
    weft_status status;
    ccl_id id;

    PLUG_TRY(gpu_comm_cause(comm));
    PLUG_TRY(agree(comm, addresses));
    PLUG_TRY(check_sharing(comm, addresses));
    PLUG_TRY(share_id(comm, exchange, &id));
    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = ccl_comm_join(comm, id);
    if (status == WEFT_OK) status = ccl_comm_ready(comm);
    gpu_leave(&scope);
    return status == WEFT_OK ? gpu_comm_cause(comm) : status;
}

/* ---- wrapped communicators ---- */

weft_status ccl_comm_wrap(void *device, void *native, const weft_comm_options *given, void **out)
{
    weft_comm_options options;
    struct gpu_comm *comm;
    int rank = -1, size = -1;

    plug_take_struct(&options, given, sizeof options);
    if (native == NULL) return plug_fail(WEFT_ERR_INVALID, "the communicator to wrap is NULL");
    PLUG_TRY(ccl_load());
    PLUG_TRY(ccl_check(ccl_api.ncclCommUserRank(native, &rank), "reading a communicator's rank"));
    PLUG_TRY(ccl_check(ccl_api.ncclCommCount(native, &size), "reading a communicator's size"));
    if (rank != options.rank || size != options.size)
        return plug_fail(
            WEFT_ERR_INVALID,
            "the vendor communicator has rank %d of %d; expected rank %d of %d, as in the options",
            rank, size, options.rank, options.size);
    PLUG_TRY(ccl_comm_new(device, &options, &comm));
    comm->is_wrapped = true;
    comm->work = native;
    /* The capabilities of other ranks are unknown, so only those that every device has are used. */
    comm->means = (struct ccl_means){ccl_version, 0, size, comm->facts.kernels != 0};
    comm->is_ready = true;
    *out = comm;
    return WEFT_OK;
}

void *ccl_comm_native(void *made)
{
    struct gpu_comm *comm = made;

    pthread_mutex_lock(&comm->gate); /* a query by the watch may be under way */
    comm->is_handed_out = true;
    pthread_mutex_unlock(&comm->gate);
    return comm->work;
}
