/* ccl_split.c - communicators cut out of others, in the order of ranks that the user gave.
 *
 * The library splits where it can, called from a thread of its own: on a communicator that blocks
 * such a call waits for every rank, and could not be ended after the time limit.  Where it cannot
 * split, the first rank of each part makes an id, which travels to the others over the parent. */
#include "ccl.h"

#include <string.h>

#define NO_COLOUR (-1)

/* Parts have no rank in common, so their first ones tell them apart. */
static int colour_of(const weft_comm_options *options)
{
    return options != NULL ? options->world_ranks[0] : NO_COLOUR;
}

/* ---- by the library ---- */

enum stage { RUNNING, RETURNED, ABANDONED };

struct errand {
    const struct wf_gpu_device *device;
    ccl_comm parent, made;
    ccl_config config;
    int colour, key;
    ccl_result result;
    atomic_int stage; /* whoever comes second frees the errand */
};

static void *run_errand(void *given)
{
    struct errand *errand = given;
    struct wf_scope scope;

    errand->result = CCL_UNHANDLED_GPU_ERROR;
    if (wf_enter(errand->device, &scope) == WEFT_OK) {
        errand->result = wf_ccl.ncclCommSplit(errand->parent, errand->colour, errand->key,
                                              &errand->made, &errand->config);
        wf_leave(&scope);
    }
    if (atomic_exchange(&errand->stage, RETURNED) != ABANDONED) return NULL;
    if (errand->made != NULL) wf_ccl.ncclCommAbort(errand->made);
    wf_delete(errand);
    return NULL;
}

static weft_status start(struct errand *errand)
{
    pthread_attr_t detached;
    pthread_t thread;
    bool started;

    if (pthread_attr_init(&detached) != 0) return wf_fail(WEFT_ERR_SYSTEM, "no thread to split in");
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    started = pthread_create(&thread, &detached, run_errand, errand) == 0;
    pthread_attr_destroy(&detached);
    return started ? WEFT_OK : wf_fail(WEFT_ERR_SYSTEM, "no thread to split in");
}

/* True if the call has come back; if not, within the time limit, the errand is the thread's. */
static bool await(struct wf_comm *parent, struct errand *errand)
{
    uint64_t began = wf_now_ns();
    int64_t limit = wf_making_limit(parent);

    while (atomic_load(&errand->stage) == RUNNING) {
        bool late = limit >= 0 && wf_now_ns() - began >= (uint64_t)limit;
        if (late || atomic_load(&parent->error) != WEFT_OK)
            return atomic_exchange(&errand->stage, ABANDONED) == RETURNED;
        wf_pause(began);
    }
    return true;
}

static weft_status give_up(struct wf_comm *parent)
{
    parent->is_lost = true;
    wf_comm_stick(parent, WEFT_ERR_TIMEOUT, "splitting it was not done within the time limit");
    wf_comm_kill(parent);
    return wf_comm_stuck(parent);
}

/* CHILD is NULL on a rank of no part. */
static weft_status split_off(struct wf_comm *parent, struct wf_comm *child, int colour)
{
    bool alone = child != NULL && child->size == 1;
    struct errand *errand = wf_new(sizeof *errand);
    ccl_comm made;
    ccl_result result;

    if (errand == NULL) return WEFT_ERR_NO_MEMORY;
    *errand = (struct errand){.device = parent->device,
                              .parent = parent->work,
                              .config = wf_comm_config(alone, !alone),
                              .colour = colour,
                              .key = child != NULL ? child->rank : 0};
    if (start(errand) != WEFT_OK) {
        wf_delete(errand);
        return WEFT_ERR_SYSTEM;
    }
    if (!await(parent, errand)) return give_up(parent);
    made = errand->made;
    result = errand->result;
    wf_delete(errand);
    WF_TRY(wf_settle(parent, parent->work, result, wf_making_limit(parent), "a split"));
    if (child == NULL) return WEFT_OK;
    *(alone ? &child->work : &child->control) = made;
    if (alone) return WEFT_OK;
    WF_TRY(wf_settle(child, made, CCL_SUCCESS, wf_making_limit(child), "a split"));
    return wf_comm_make_work(child);
}

/* A rank that had no memory for its part is missing from it. */
static weft_status check_size(const struct wf_comm *child)
{
    int size = 0;

    WF_TRY(wf_ccl_check(wf_ccl.ncclCommCount(child->work, &size), "asking for the size of a part"));
    if (size == child->size) return WEFT_OK;
    return wf_fail(WEFT_ERR_PEER, "%d ranks of %s came, not %d", size, child->name, child->size);
}

/* ---- by an id ---- */

struct letter {
    ccl_id id;
    int32_t colour, result; /* the colour of a part's first rank, else NO_COLOUR */
};
_Static_assert(sizeof(struct letter) <= WF_TALK_BYTES, "a letter fits");

static weft_status exchange_letters(struct wf_comm *parent, const struct letter *mine,
                                    const struct letter **all)
{
    gpu_stream stream = NULL;
    const void *letters = NULL;
    weft_status status;

    WF_TRY(wf_inside(parent));
    status =
        wf_gpu_check(wf_gpu.stream_create(&stream, GPU_STREAM_NON_BLOCKING), "creating a stream");
    if (status == WEFT_OK) {
        status = wf_talk(parent, stream, mine, sizeof *mine, &letters);
        wf_gpu.stream_destroy(stream);
    }
    wf_outside(parent);
    *all = letters;
    return status;
}

static weft_status join_by_id(struct wf_comm *parent, struct wf_comm *child, int colour)
{
    struct letter mine = {.colour = NO_COLOUR};
    const struct letter *all;

    if (child != NULL && child->rank == 0) {
        mine.colour = colour;
        mine.result = wf_ccl.ncclGetUniqueId(&mine.id);
    }
    WF_TRY(exchange_letters(parent, &mine, &all));
    if (child == NULL) return WEFT_OK;
    for (int32_t r = 0; r < parent->size; r++) {
        if (all[r].colour != colour) continue;
        WF_TRY(wf_ccl_check(all[r].result, "making an id for a part, on its first rank"));
        return wf_comm_join(child, all[r].id);
    }
    return wf_fail(WEFT_ERR_PEER, "the first rank of %s did not come", child->name);
}

/* ---- both ---- */

static weft_status make_child(const struct wf_comm *parent, const weft_comm_options *given,
                              struct wf_comm **out)
{
    weft_comm_options options;

    wf_read(&options, given, sizeof options);
    WF_TRY(wf_comm_new(parent->device, &options, out));
    (*out)->means = parent->means;
    (*out)->means.size = options.size;
    return WEFT_OK;
}

weft_status wf_comm_split(void *made, const weft_comm_options *options, void **out)
{
    struct wf_comm *parent = made, *child = NULL;
    weft_status status, prepared = WEFT_OK;
    struct wf_scope scope;
    int colour;

    if (!parent->is_ready)
        return wf_fail(WEFT_ERR_INVALID, "the communicator %s is not committed", parent->name);
    WF_TRY(wf_comm_stuck(parent));
    if (options != NULL) prepared = make_child(parent, options, &child);
    colour = child != NULL ? colour_of(options) : NO_COLOUR;
    status = wf_enter(parent->device, &scope);
    if (status == WEFT_OK) {
        status = wf_ccl.ncclCommSplit != NULL ? split_off(parent, child, colour)
                                              : join_by_id(parent, child, colour);
        if (status == WEFT_OK && child != NULL) status = check_size(child);
        if (status == WEFT_OK && child != NULL) status = wf_comm_ready(child);
        wf_leave(&scope);
    }
    if (status == WEFT_OK) status = prepared;
    if (status == WEFT_OK)
        *out = child;
    else
        wf_comm_destroy(child);
    return status;
}
