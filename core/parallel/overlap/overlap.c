/* overlap.c - preparation on a communicator. */
#include "overlap.h"

#include "base/number.h"
#include "comm/carry/carry.h"
#include "exec/host/host.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char function[] = "weft_overlap_create";

weft_status wf_overlap_check(const weft_overlap_state *overlap, const char *name)
{
    if (overlap == NULL) return wf_fail_null(name, "overlap");
    if (wf_is_usable(overlap->made, WF_KIND_OVERLAP)) return WEFT_OK;
    if (overlap->made == wf_ended(WF_KIND_OVERLAP))
        return wf_fail(WEFT_ERR_INVALID, "%s: %s; the overlap ended with it", name, overlap->ended);
    return wf_fail_unusable(name, "overlap", overlap->made, WF_KIND_OVERLAP);
}

weft_status wf_overlap_sync(const weft_overlap_state *o, weft_stream *stream)
{
    if (stream == NULL && (o->context->features & WEFT_FEATURE_INLINE) != 0) return WEFT_OK;
    return weft_stream_wait(o->context, stream, WEFT_FOREVER);
}

weft_status wf_overlap_await(const weft_overlap_state *o, weft_stream *stream, weft_work **work)
{
    weft_status status = WEFT_OK;

    if (*work != NULL)
        status = o->by_streams ? weft_stream_wait_work(stream, *work)
                               : weft_work_wait(*work, WEFT_FOREVER);
    weft_work_release(work);
    return status;
}

weft_status wf_overlap_add(const weft_overlap_state *o, uint32_t dtype, uint32_t ranks,
                           size_t count, void *target, weft_stream *stream)
{
    const weft_kernel_table *kernels = wf_kernels_of(o->context);
    struct wf_reduction sum = {dtype, WEFT_REDUCE_SUM, ranks, 0};

    if (!o->by_streams) {
        wf_elements_reduce(&sum, o->sources, target, count);
        return WEFT_OK;
    }
    if (kernels->reduce == NULL)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "the backend has no kernel that adds elements");
    return kernels->reduce(wf_kernels_device(o->context), dtype, WEFT_REDUCE_SUM, count, ranks,
                           o->sources, target, stream);
}

/* ---- life ---- */

static void free_memory(weft_overlap_state *o, char **memory)
{
    if (*memory != NULL && weft_free(o->context, *memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "memory of an overlap is not freed: %s", weft_last_error());
    *memory = NULL;
}

static void free_resources(weft_overlap_state *o)
{
    weft_stream_release(o->context, &o->side);
    if (o->symm != NULL) o->memory = NULL;
    free_memory(o, &o->memory);
    for (int i = 0; i < 2; i++)
        free_memory(o, &o->products[i]);
}

static void end_with_comm(struct wf_dependent *self, const char *cause)
{
    weft_overlap_state *o =
        (weft_overlap_state *)(void *)((char *)self - offsetof(weft_overlap_state, dependent));

    free_resources(o);
    o->context = NULL;
    o->comm = NULL;
    o->made = wf_ended(WF_KIND_OVERLAP);
    snprintf(o->ended, sizeof o->ended, "%s", cause);
}

static void free_overlap(weft_overlap_state *o)
{
    weft_symm_release(&o->symm);
    wf_free(o->works);
    wf_free(o->counts);
    wf_free((void *)o->sources);
    o->made = wf_released(WF_KIND_OVERLAP);
    wf_free(o);
}

void weft_overlap_release(weft_overlap_state **overlap)
{
    weft_overlap_state *mine;

    if (overlap == NULL || *overlap == NULL) return;
    mine = *overlap;
    *overlap = NULL;
    if (mine->made == wf_ended(WF_KIND_OVERLAP)) {
        free_overlap(mine);
        return;
    }
    if (!wf_is_usable(mine->made, WF_KIND_OVERLAP)) {
        wf_warn_unusable("weft_overlap_release", mine->made, WF_KIND_OVERLAP);
        return;
    }
    wf_dependent_remove(&mine->dependent);
    free_resources(mine);
    free_overlap(mine);
}

/* ---- creation ---- */

/* What ranks compare: options, then what this rank can do. */
struct name {
    uint64_t bytes;
    uint32_t messages, concurrent, adds, reserved;
};

static weft_status check_options(const weft_comm *comm, const weft_overlap_options *options)
{
    if (options->bytes == 0 || options->bytes > UINT64_C(1) << 60)
        return wf_fail(WEFT_ERR_INVALID, "%s: bytes is %llu; it must be within 1 .. 2^60", function,
                       (unsigned long long)options->bytes);
    return options->messages ? wf_messages_require(comm, function, "an overlap by messages")
                             : WEFT_OK;
}

static weft_status compare(weft_overlap_state *o, const struct wf_gathered *got)
{
    struct name first = {0}, theirs;

    for (int32_t i = 0; i < got->count; i++) {
        if (got->blobs[i].bytes != sizeof theirs)
            return wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d of %s sent no options", function, i,
                           o->comm->name);
        memcpy(&theirs, got->blobs[i].data, sizeof theirs);
        if (i == 0) first = theirs;
        if (theirs.bytes != first.bytes || theirs.messages != first.messages)
            return wf_fail(
                WEFT_ERR_MISMATCH, "%s: rank 0 of %s has %llu bytes%s, rank %d has %llu bytes%s",
                function, o->comm->name, (unsigned long long)first.bytes,
                first.messages != 0 ? " and messages" : "", i, (unsigned long long)theirs.bytes,
                theirs.messages != 0 ? " and messages" : "");
        o->concurrent = o->concurrent && theirs.concurrent != 0;
        o->adds = o->adds && theirs.adds != 0;
    }
    return WEFT_OK;
}

/* STATUS is how creation went here. */
static weft_status agree(weft_overlap_state *o, bool messages, const char *step, weft_status status)
{
    struct name mine = {o->bytes, messages, o->concurrent, o->adds, 0};
    struct wf_gathered got;
    char label[200];

    snprintf(label, sizeof label, "%s on %s (%s)", function, o->comm->name, step);
    status = wf_comm_agree(o->comm, label, status, (weft_blob){&mine, sizeof mine}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    status = compare(o, &got);
    wf_gathered_free(&got);
    return status;
}

static void look_around(weft_overlap_state *o)
{
    const weft_comm *comm = o->comm;

    o->by_streams = (o->context->features & WEFT_FEATURE_HOST_MEMORY) == 0;
    o->concurrent =
        o->by_streams || sysconf(_SC_NPROCESSORS_ONLN) >= 2 * (long)o->context->local_size;
    o->link = WF_WITHIN_HOST;
    for (int32_t i = 1; i < comm->size; i++)
        if (!weft_comm_same_host(comm, 0, i)) o->link = WF_BETWEEN_HOSTS;
}

/* Symmetric memory, unless no rank has it. */
static weft_status make_window(weft_overlap_state *o)
{
    weft_status status = weft_symm_create(o->comm, 2 * o->bytes, NULL, &o->symm);

    if (status == WEFT_ERR_UNSUPPORTED) return WEFT_OK;
    WF_TRY(wf_fail_named(status, function));
    o->memory = weft_symm_local(o->symm);
    return WEFT_OK;
}

static weft_status allocate(weft_overlap_state *o, uint64_t bytes, char **out)
{
    void *memory;

    WF_TRY(weft_alloc(o->context, bytes, WEFT_MEMORY_DEVICE, &memory));
    *out = memory;
    return WEFT_OK;
}

/* Whether pieces can be added up: not by a device whose kernels were not found. */
static bool can_add(weft_overlap_state *o)
{
    const uint64_t least = sizeof(float);
    weft_status status;

    if (!o->by_streams || o->bytes < least) return !o->by_streams;
    o->sources[0] = o->memory;
    status = wf_overlap_add(o, WEFT_DTYPE_F32, 1, 1, o->memory, o->side);
    if (status == WEFT_OK) status = wf_overlap_sync(o, o->side);
    if (status != WEFT_OK) wf_log(WF_LOG_DEBUG, "reduce-scatters are plain: %s", weft_last_error());
    return status == WEFT_OK;
}

static weft_status make_memory(weft_overlap_state *o)
{
    size_t ranks = (size_t)o->comm->size, works = ranks * WEFT_OVERLAP_MAX_CHUNKS;

    o->counts = wf_alloc(2 * ranks * sizeof *o->counts);
    o->sources = wf_alloc(ranks * sizeof *o->sources);
    if (o->counts == NULL || o->sources == NULL) return wf_fail_memory(ranks * sizeof *o->counts);
    o->offsets = o->counts + ranks;
    if (o->symm == NULL) WF_TRY(allocate(o, o->bytes, &o->memory));
    for (int i = 0; i < 2; i++)
        WF_TRY(allocate(o, o->bytes / ranks + 1, &o->products[i]));
    o->works = wf_calloc(works, sizeof(weft_work *));
    if (o->works == NULL) return wf_fail_memory(works * sizeof(weft_work *));
    WF_TRY(weft_stream_create(o->context, &o->side));
    o->adds = can_add(o);
    return WEFT_OK;
}

static weft_status make(weft_overlap_state *o, const weft_overlap_options *options)
{
    look_around(o);
    WF_TRY(agree(o, options->messages, "options", check_options(o->comm, options)));
    if (!options->messages && o->comm->size > 1) WF_TRY(make_window(o));
    return agree(o, options->messages, "memory", make_memory(o));
}

weft_status weft_overlap_create(weft_comm *comm, const weft_overlap_options *options,
                                weft_overlap_state **out)
{
    weft_overlap_options wanted = {0};
    weft_status status;
    weft_overlap_state *o;

    WF_TRY(wf_comm_check(comm, function));
    if (options == NULL) return wf_fail_null(function, "options");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_overlap_options", options, &wanted, sizeof wanted),
                         function));
    o = wf_calloc(1, sizeof *o);
    if (o == NULL) {
        struct wf_gathered got;
        return wf_fail_named(
            wf_comm_agree(comm, function, wf_fail_memory(sizeof *o), (weft_blob){"", 0}, &got),
            function);
    }
    o->made = wf_made_now(WF_KIND_OVERLAP);
    o->context = comm->context;
    o->comm = comm;
    o->bytes = wanted.bytes;
    status = make(o, &wanted);
    if (status != WEFT_OK) {
        char text[1024];

        snprintf(text, sizeof text, "%s", weft_last_error());
        free_resources(o);
        free_overlap(o);
        return wf_fail(status, "%s", text);
    }
    o->dependent.end = end_with_comm;
    wf_dependent_add(&o->dependent, comm);
    *out = o;
    return WEFT_OK;
}
