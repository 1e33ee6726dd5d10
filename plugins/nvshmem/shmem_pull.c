/* shmem_pull.c - a redistribution in one pass: a kernel reads what this rank wants out of its
 * peers' memory, straight to its place, reduced on the way where there are several holders. */
#include "shmem.h"

#include <string.h>

/* Blocks for every two multiprocessors.  Those of a copy or a reduction have enough under way with
 * these, and take tiles as they get to them, so that more would do nothing but end.  Ten or twelve
 * would fit, and that room is left matters: the parts of a device that several ranks have under MPS
 * overlap, and a rank whose blocks came last would wait for the others' to end. */
enum { COPYING = 7, TURNING = 16 };
_Static_assert((uint32_t)WF_REGION_SETS <= WK_PULLS, "a count of tiles for each kernel");

/* A pull, checked. */
struct pull {
    weft_pull_args args;
    uint32_t holders, source_count;
    struct wf_region_set sets[WF_REGION_SETS];
    uint32_t set_count;
};

static weft_status check_kinds(const struct wf_comm *comm, const struct pull *pull)
{
    const weft_pull_args *args = &pull->args;
    uint32_t element = wf_regions_element(args->regions);

    if (wf_abi_dtype_bytes(args->dtype) == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "pull: dtype %u is unknown", args->dtype);
    if (pull->holders > 1 && (args->reduction == WEFT_REDUCE_PREMUL_SUM ||
                              !wf_abi_reduction_defined(args->reduction, args->dtype)))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "pull: %s is not defined on %s",
                       wf_abi_reduction_name(args->reduction), wf_abi_dtype_name(args->dtype));
    if (wf_abi_dtype_bytes(args->dtype) != element)
        return wf_fail(WEFT_ERR_INVALID, "pull: %s in a list of %u-byte elements",
                       wf_abi_dtype_name(args->dtype), element);
    if (pull->holders > (uint32_t)comm->size)
        return wf_fail(WEFT_ERR_INVALID, "pull: %u holders of %d ranks", pull->holders, comm->size);
    if (comm->group.depth > 0) return wf_fail(WEFT_ERR_UNSUPPORTED, "pull: not inside a group");
    return WEFT_OK;
}

static weft_status check_ranks(const struct wf_comm *comm, const char *what, uint32_t count,
                               const int32_t *ranks)
{
    if (count > 0 && ranks == NULL) return wf_fail(WEFT_ERR_INVALID, "pull: %ss is NULL", what);
    for (uint32_t i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= comm->size)
            return wf_fail(WEFT_ERR_INVALID, "pull: %s %d of %d ranks", what, ranks[i], comm->size);
    return WEFT_OK;
}

static weft_status check(const struct wf_comm *comm, const weft_pull_args *given, struct pull *pull)
{
    weft_pull_args *args = &pull->args;
    uint64_t offset;

    wf_read(args, given, sizeof *args);
    if (args->regions == NULL) return wf_fail(WEFT_ERR_INVALID, "pull: regions is NULL");
    if (args->send_bytes > 0 && !wf_arena_holds(args->send, args->send_bytes, &offset))
        WF_TRY(wf_gpu_usable(args->send, "the source of a pull"));
    pull->holders = args->holders > 0 ? args->holders : 1;
    WF_TRY(check_kinds(comm, pull));
    WF_TRY(check_ranks(comm, "reader", args->reader_count, args->readers));
    pull->source_count = wf_regions_sources(args->regions);
    if (pull->source_count == 0) return WEFT_OK;
    pull->source_count += pull->holders - 1;
    if (args->recv == NULL) return wf_fail(WEFT_ERR_INVALID, "pull: recv is NULL");
    WF_TRY(check_ranks(comm, "source", pull->source_count, args->sources));
    if (wf_arena_holds(args->recv, 1, &offset)) return WEFT_OK;
    return wf_gpu_usable(args->recv, "the target of a pull");
}

static uint64_t blocks_of(const struct wf_comm *comm, const struct wf_region_set *set)
{
    uint64_t most = (uint64_t)comm->multiprocessors * (set->is_turned ? TURNING : COPYING) / 2;

    return set->tile_count < most ? set->tile_count : most;
}

static weft_status launch(struct wf_comm *comm, const struct pull *pull, const struct wf_meet *meet,
                          uint32_t index)
{
    const struct wf_region_set *set = &pull->sets[index];
    struct wk_pull_args args = {
        .meeting = meet->meeting,
        .regions = set->regions,
        .tiles = set->tiles,
        .reduction = pull->args.reduction,
        .size = pull->holders,
        .word = set->word,
        .first = (uint32_t)(set->tile_count * comm->device_number / comm->device_count),
        .count = (uint32_t)set->tile_count,
        .blocks = (uint32_t)blocks_of(comm, set),
        .pull = index,
        .divisor = pull->args.divisor != 0 ? pull->args.divisor : pull->holders};
    enum wf_onesided family = set->is_turned ? WF_PULL_TURNED : WF_PULL;

    if (pull->holders > 1)
        return wf_onesided_launch(comm, WF_PULL_REDUCE, pull->args.dtype, args.blocks, &args,
                                  meet->stream);
    return wf_onesided_launch(comm, family, set->word, args.blocks, &args, meet->stream);
}

static weft_status run(struct wf_comm *comm, struct pull *pull, struct wf_meet *meet)
{
    uint64_t tiles = pull->set_count == 1 ? pull->sets[0].tile_count : 1;

    if (pull->set_count <= 1 && wf_meet_is_small(comm, meet, tiles)) {
        wf_meet_fuse(meet, pull->set_count == 1 ? blocks_of(comm, &pull->sets[0]) : 1);
        if (pull->set_count == 1) return launch(comm, pull, meet, 0);
        return wf_onesided_launch(comm, WF_MEET, 1, 1, &meet->meeting, meet->stream);
    }
    WF_TRY(wf_meet_open(comm, meet));
    for (uint32_t i = 0; i < pull->set_count; i++) {
        if (i + 1 == pull->set_count) wf_meet_close(meet, blocks_of(comm, &pull->sets[i]));
        WF_TRY(launch(comm, pull, meet, i));
    }
    return pull->set_count > 0 ? WEFT_OK : wf_meet_close_alone(comm, meet);
}

/* Ranks that have nothing to do with each other do not wait for each other.  In a communicator that
 * has more ranks than bits all are taken for readers and sources of all. */
static void set_peers(const struct wf_comm *comm, const struct pull *pull,
                      struct wk_meeting *meeting)
{
    const weft_pull_args *args = &pull->args;
    uint32_t sources = wf_regions_sources(args->regions);

    meeting->by_few = comm->size <= 64;
    if (!meeting->by_few) return;
    for (uint32_t i = 0; i < args->reader_count; i++)
        meeting->readers |= UINT64_C(1) << args->readers[i];
    for (uint32_t i = 0; i < sources; i++)
        for (uint32_t k = 0; k < pull->holders && wf_regions_reads(args->regions, i); k++)
            meeting->sources |= UINT64_C(1) << args->sources[i + k];
}

/* Sources are offered 16-byte aligned, so the target decides how wide words are. */
static void choose_sets(struct pull *pull)
{
    uintptr_t bits = (uintptr_t)pull->args.recv | 16;
    uint32_t alignment = (uint32_t)(bits & (UINT64_C(0) - bits));

    pull->set_count = wf_regions_sets(pull->args.regions, alignment, pull->holders > 1, pull->sets);
}

static weft_status start(struct wf_comm *comm, struct pull *pull)
{
    gpu_stream stream = wf_native(pull->args.stream);
    struct wf_meet meet = wf_meet_make(comm, stream);
    weft_status status;

    meet.meeting.local = (uintptr_t)pull->args.recv;
    meet.meeting.listed = pull->source_count;
    meet.list = pull->args.sources;
    set_peers(comm, pull, &meet.meeting);
    choose_sets(pull);
    WF_TRY(wf_turn_begin(comm, stream));
    status = wf_stage_send(comm, pull->args.send, pull->args.send_bytes, false, stream,
                           &meet.meeting.send);
    if (status == WEFT_OK) status = run(comm, pull, &meet);
    wf_turn_end(comm, stream);
    return status == WEFT_OK ? status : wf_decline(comm, status, stream);
}

weft_status wf_comm_pull(void *made, const weft_pull_args *args)
{
    struct wf_comm *comm = made;
    struct wf_scope scope;
    struct pull pull = {0};
    weft_status status;

    WF_TRY(wf_comm_usable(comm));
    WF_TRY(wf_enter(comm->device, &scope));
    status = check(comm, args, &pull);
    if (status == WEFT_OK && (comm->flags & WEFT_COMM_CHECK) != 0)
        status = wf_match(comm, &(struct wf_op){.kind = WF_OP_PULL,
                                                .dtype = pull.args.dtype,
                                                .stream = wf_native(pull.args.stream),
                                                .plan = pull.args.plan,
                                                .binding = pull.args.binding,
                                                .step = pull.args.step});
    if (status == WEFT_OK) status = start(comm, &pull);
    wf_leave(&scope);
    return status;
}
