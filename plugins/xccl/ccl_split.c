/* ccl_split.c - communicators split from others, with ranks in the user's order.
 *
 * If the library can split, a separate thread calls it: on a blocking communicator such a call
 * waits for every rank and cannot be ended at the time limit.  Otherwise the first rank of each
 * part creates an id and sends it to the other ranks over the parent. */
#include "ccl.h"

#include <string.h>

#define NO_COLOUR (-1)

/* Parts have no rank in common, so the first rank identifies a part. */
static int colour_of(const weft_comm_options *options)
{
    return options != NULL ? options->world_ranks[0] : NO_COLOUR;
}

/* ---- by the library ---- */

enum stage { RUNNING, RETURNED, ABANDONED };

struct split_call {
    const struct gpu_device *device;
    ccl_comm parent, made;
    ccl_config config;
    int colour, key;
    ccl_result result;
    atomic_int stage; /* the second of the two threads to finish frees the struct */
};

static void *run_split(void *given)
{
    struct split_call *call = given;
    struct gpu_scope scope;

    call->result = CCL_UNHANDLED_GPU_ERROR;
    if (gpu_enter(call->device, &scope) == WEFT_OK) {
        call->result = ccl_api.ncclCommSplit(call->parent, call->colour, call->key, &call->made,
                                             &call->config);
        gpu_leave(&scope);
    }
    if (atomic_exchange(&call->stage, RETURNED) != ABANDONED) return NULL;
    if (call->made != NULL) ccl_api.ncclCommAbort(call->made);
    plug_free(call);
    return NULL;
}

static weft_status start(struct split_call *call)
{
    pthread_attr_t detached;
    pthread_t thread;
    bool started;

    if (pthread_attr_init(&detached) != 0)
        return plug_fail(WEFT_ERR_SYSTEM, "cannot start a thread for the split");
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    started = pthread_create(&thread, &detached, run_split, call) == 0;
    pthread_attr_destroy(&detached);
    return started ? WEFT_OK : plug_fail(WEFT_ERR_SYSTEM, "cannot start a thread for the split");
}

/* True if the call has returned.  After the time limit the thread owns CALL. */
static bool await(struct gpu_comm *parent, struct split_call *call)
{
    uint64_t began = plug_now();
    int64_t limit = ccl_making_limit(parent);

    while (atomic_load(&call->stage) == RUNNING) {
        bool late = limit >= 0 && plug_now() - began >= (uint64_t)limit;
        if (late || atomic_load(&parent->error) != WEFT_OK)
            return atomic_exchange(&call->stage, ABANDONED) == RETURNED;
        gpu_pause(began);
    }
    return true;
}

static weft_status give_up(struct gpu_comm *parent)
{
    parent->is_lost = true;
    gpu_comm_fail(parent, WEFT_ERR_TIMEOUT, "splitting it was not complete within the time limit");
    ccl_comm_kill(parent);
    return gpu_comm_cause(parent);
}

/* CHILD is NULL on a rank that is in no part. */
static weft_status split_off(struct gpu_comm *parent, struct gpu_comm *child, int colour)
{
    bool alone = child != NULL && child->size == 1;
    struct split_call *call = plug_new(sizeof *call);
    ccl_comm made;
    ccl_result result;

    if (call == NULL) return WEFT_ERR_NO_MEMORY;
    *call = (struct split_call){
        .device = parent->device,
        .parent = parent->work,
        .config = ccl_comm_config(child != NULL ? child->name : "", alone, !alone),
        .colour = colour,
        .key = child != NULL ? child->rank : 0};
    if (start(call) != WEFT_OK) {
        plug_free(call);
        return WEFT_ERR_SYSTEM;
    }
    if (!await(parent, call)) return give_up(parent);
    made = call->made;
    result = call->result;
    plug_free(call);
    PLUG_TRY(ccl_settle(parent, parent->work, result, ccl_making_limit(parent), "a split"));
    if (child == NULL) return WEFT_OK;
    *(alone ? &child->work : &child->control) = made;
    if (alone) return WEFT_OK;
    PLUG_TRY(ccl_settle(child, made, CCL_SUCCESS, ccl_making_limit(child), "a split"));
    return ccl_comm_make_work(child);
}

/* A rank that could not allocate its part is missing from it. */
static weft_status check_size(const struct gpu_comm *child)
{
    int size = 0;

    PLUG_TRY(ccl_check(ccl_api.ncclCommCount(child->work, &size),
                       "reading the size of a split communicator"));
    if (size == child->size) return WEFT_OK;
    return plug_fail(WEFT_ERR_PEER, "%d ranks of %s took part in the split; expected %d", size,
                     child->name, child->size);
}

/* ---- by an id ---- */

struct id_entry {
    ccl_id id;
    int32_t colour, result; /* COLOUR: that of the first rank of a part, else NO_COLOUR */
};
_Static_assert(sizeof(struct id_entry) <= CCL_TALK_BYTES, "an entry fits");

static weft_status exchange_ids(struct gpu_comm *parent, const struct id_entry *mine,
                                const struct id_entry **all)
{
    vendor_stream stream = NULL;
    const void *entries = NULL;
    weft_status status;

    PLUG_TRY(ccl_inside(parent));
    status =
        gpu_check(gpu_api.stream_create(&stream, GPU_STREAM_NON_BLOCKING), "creating a stream");
    if (status == WEFT_OK) {
        status = ccl_talk(parent, stream, mine, sizeof *mine, &entries);
        gpu_api.stream_destroy(stream);
    }
    ccl_outside(parent);
    *all = entries;
    return status;
}

static weft_status join_by_id(struct gpu_comm *parent, struct gpu_comm *child, int colour)
{
    struct id_entry mine = {.colour = NO_COLOUR};
    const struct id_entry *all;

    if (child != NULL && child->rank == 0) {
        mine.colour = colour;
        mine.result = ccl_api.ncclGetUniqueId(&mine.id);
    }
    PLUG_TRY(exchange_ids(parent, &mine, &all));
    if (child == NULL) return WEFT_OK;
    for (int32_t r = 0; r < parent->size; r++) {
        if (all[r].colour != colour) continue;
        PLUG_TRY(
            ccl_check(all[r].result, "creating the id of a split communicator, on its first rank"));
        return ccl_comm_join(child, all[r].id);
    }
    return plug_fail(WEFT_ERR_PEER, "the first rank of %s did not take part in the split",
                     child->name);
}

/* ---- both methods ---- */

static weft_status make_child(const struct gpu_comm *parent, const weft_comm_options *given,
                              struct gpu_comm **out)
{
    weft_comm_options options;

    plug_take_struct(&options, given, sizeof options);
    PLUG_TRY(ccl_comm_new(parent->device, &options, out));
    (*out)->means = parent->means;
    (*out)->means.size = options.size;
    return WEFT_OK;
}

weft_status ccl_comm_split(void *made, const weft_comm_options *options, void **out)
{
    struct gpu_comm *parent = made, *child = NULL;
    weft_status status, prepared = WEFT_OK;
    struct gpu_scope scope;
    int colour;

    if (!parent->is_ready)
        return plug_fail(WEFT_ERR_INVALID, "communicator %s is not committed", parent->name);
    PLUG_TRY(gpu_comm_cause(parent));
    if (options != NULL) prepared = make_child(parent, options, &child);
    colour = child != NULL ? colour_of(options) : NO_COLOUR;
    status = gpu_enter(parent->device, &scope);
    if (status == WEFT_OK) {
        status = ccl_api.ncclCommSplit != NULL ? split_off(parent, child, colour)
                                               : join_by_id(parent, child, colour);
        if (status == WEFT_OK && child != NULL) status = check_size(child);
        if (status == WEFT_OK && child != NULL) status = ccl_comm_ready(child);
        gpu_leave(&scope);
    }
    if (status == WEFT_OK) status = prepared;
    if (status == WEFT_OK)
        *out = child;
    else
        gpu_comm_destroy(child);
    return status;
}
