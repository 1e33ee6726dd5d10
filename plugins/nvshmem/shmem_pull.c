/* shmem_pull.c - redistribution in one pass: a kernel reads this rank's elements from the memory of
 * its peers, writes them to their final positions, reduces them if there are several holders, and
 * converts them if the target has another dtype. */
#include "shmem.h"

#include <string.h>

/* Blocks per two multiprocessors.  These are enough to saturate a copy or a reduction, and each
 * block takes tiles from a common counter.  Ten or twelve would fit.  The rest stays free, because
 * the shares of several ranks under MPS overlap, and a rank whose blocks start last would wait for
 * the other ranks' blocks to end. */
enum { COPYING = 7, TURNING = 16 };
_Static_assert((uint32_t)GPU_REGION_SETS <= WK_PULLS, "every kernel needs a tile counter");

/* A checked pull. */
struct pull {
    weft_pull_args args;
    uint32_t holders, source_count;
    uint32_t to; /* dtype of the target */
    struct gpu_region_set sets[GPU_REGION_SETS];
    uint32_t set_count;
};

static bool casts(const struct pull *pull)
{
    return pull->to != pull->args.dtype;
}

static weft_status check_kinds(const struct gpu_comm *comm, const struct pull *pull)
{
    const weft_pull_args *args = &pull->args;
    uint32_t element = gpu_regions_element(args->regions);

    if (kit_dtype_bytes(args->dtype) == 0)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull: dtype %u is unknown", args->dtype);
    if (pull->holders > 1 && (args->reduction == WEFT_REDUCE_PREMUL_SUM ||
                              !kit_reduction_defined(args->reduction, args->dtype)))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull: %s is not defined on %s",
                         kit_reduction_name(args->reduction), kit_dtype_name(args->dtype));
    if (casts(pull) && !gpu_cast_is_offered(args->dtype, pull->to))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull: a cast from %s to %s is not supported",
                         kit_dtype_name(args->dtype), kit_dtype_name(pull->to));
    if (kit_dtype_bytes(args->dtype) != element)
        return plug_fail(WEFT_ERR_INVALID,
                         "pull: dtype is %s, but the list has elements of %u bytes",
                         kit_dtype_name(args->dtype), element);
    if (pull->holders > (uint32_t)comm->size)
        return plug_fail(WEFT_ERR_INVALID, "pull: holders is %u; the communicator has %d ranks",
                         pull->holders, comm->size);
    if (comm->group.depth > 0)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull is not allowed inside a group");
    return WEFT_OK;
}

static weft_status check_ranks(const struct gpu_comm *comm, const char *what, uint32_t count,
                               const int32_t *ranks)
{
    if (count > 0 && ranks == NULL) return plug_fail(WEFT_ERR_INVALID, "pull: %ss is NULL", what);
    for (uint32_t i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= comm->size)
            return plug_fail(WEFT_ERR_INVALID, "pull: %s is %d; the communicator has %d ranks",
                             what, ranks[i], comm->size);
    return WEFT_OK;
}

static weft_status check(const struct gpu_comm *comm, const weft_pull_args *given,
                         struct pull *pull)
{
    weft_pull_args *args = &pull->args;
    uint64_t offset;

    plug_take_struct(args, given, sizeof *args);
    if (args->regions == NULL) return plug_fail(WEFT_ERR_INVALID, "pull: regions is NULL");
    if (args->send_bytes > 0 && !shmem_arena_holds(args->send, args->send_bytes, &offset))
        PLUG_TRY(gpu_usable(args->send, "the source of a pull"));
    pull->holders = args->holders > 0 ? args->holders : 1;
    PLUG_TRY(check_kinds(comm, pull));
    PLUG_TRY(check_ranks(comm, "reader", args->reader_count, args->readers));
    pull->source_count = gpu_regions_sources(args->regions);
    if (pull->source_count == 0) return WEFT_OK;
    pull->source_count += pull->holders - 1;
    if (args->recv == NULL) return plug_fail(WEFT_ERR_INVALID, "pull: recv is NULL");
    PLUG_TRY(check_ranks(comm, "source", pull->source_count, args->sources));
    if (shmem_arena_holds(args->recv, 1, &offset)) return WEFT_OK;
    return gpu_usable(args->recv, "the target of a pull");
}

static uint64_t blocks_of(const struct gpu_comm *comm, const struct gpu_region_set *set)
{
    uint64_t most = (uint64_t)comm->multiprocessors * (set->is_turned ? TURNING : COPYING) / 2;

    return set->tile_count < most ? set->tile_count : most;
}

static weft_status launch(struct gpu_comm *comm, const struct pull *pull,
                          const struct shmem_sync *sync, uint32_t index)
{
    const struct gpu_region_set *set = &pull->sets[index];
    struct wk_pull_args args = {
        .sync = sync->wk,
        .regions = set->regions,
        .tiles = set->tiles,
        .reduction = pull->args.reduction,
        .size = pull->holders,
        .word = set->word,
        .first = (uint32_t)(set->tile_count * comm->device_number / comm->device_count),
        .count = (uint32_t)set->tile_count,
        .blocks = (uint32_t)blocks_of(comm, set),
        .pull = index,
        .divisor = pull->args.divisor != 0 ? pull->args.divisor : pull->holders,
        .to = pull->to};
    enum shmem_onesided family = set->is_turned ? SHMEM_PULL_TURNED : SHMEM_PULL;

    if (casts(pull))
        return shmem_onesided_launch(comm, SHMEM_PULL_CAST, pull->args.dtype, args.blocks, &args,
                                     sync->stream);
    if (pull->holders > 1)
        return shmem_onesided_launch(comm, SHMEM_PULL_REDUCE, pull->args.dtype, args.blocks, &args,
                                     sync->stream);
    return shmem_onesided_launch(comm, family, set->word, args.blocks, &args, sync->stream);
}

static weft_status run(struct gpu_comm *comm, struct pull *pull, struct shmem_sync *sync)
{
    uint64_t tiles = pull->set_count == 1 ? pull->sets[0].tile_count : 1;

    if (pull->set_count <= 1 && shmem_sync_is_small(comm, sync, tiles)) {
        shmem_sync_fuse(sync, pull->set_count == 1 ? blocks_of(comm, &pull->sets[0]) : 1);
        if (pull->set_count == 1) return launch(comm, pull, sync, 0);
        return shmem_onesided_launch(comm, SHMEM_SYNC, 1, 1, &sync->wk, sync->stream);
    }
    PLUG_TRY(shmem_sync_open(comm, sync));
    for (uint32_t i = 0; i < pull->set_count; i++) {
        if (i + 1 == pull->set_count) shmem_sync_close(sync, blocks_of(comm, &pull->sets[i]));
        PLUG_TRY(launch(comm, pull, sync, i));
    }
    return pull->set_count > 0 ? WEFT_OK : shmem_sync_close_alone(comm, sync);
}

/* Ranks that exchange no data do not wait for each other.  If the communicator has more ranks than
 * bits, every rank counts as a reader and a source of every rank. */
static void set_peers(const struct gpu_comm *comm, const struct pull *pull, struct wk_sync *wk)
{
    const weft_pull_args *args = &pull->args;
    uint32_t sources = gpu_regions_sources(args->regions);

    wk->by_few = comm->size <= 64;
    if (!wk->by_few) return;
    for (uint32_t i = 0; i < args->reader_count; i++)
        wk->readers |= UINT64_C(1) << args->readers[i];
    for (uint32_t i = 0; i < sources; i++)
        for (uint32_t k = 0; k < pull->holders && gpu_regions_reads(args->regions, i); k++)
            wk->sources |= UINT64_C(1) << args->sources[i + k];
}

/* Sources are aligned to 16 bytes, so the target's alignment determines the word size. */
static void choose_sets(struct pull *pull)
{
    uintptr_t bits = (uintptr_t)pull->args.recv | 16;
    uint32_t alignment = (uint32_t)(bits & (UINT64_C(0) - bits));

    pull->set_count = gpu_regions_sets(pull->args.regions, alignment,
                                       pull->holders > 1 || casts(pull), pull->sets);
}

static weft_status start(struct gpu_comm *comm, struct pull *pull)
{
    vendor_stream stream = gpu_native(pull->args.stream);
    struct shmem_sync sync = shmem_sync_make(comm, stream);
    weft_status status;

    sync.wk.local = (uintptr_t)pull->args.recv;
    sync.wk.listed = pull->source_count;
    sync.list = pull->args.sources;
    set_peers(comm, pull, &sync.wk);
    choose_sets(pull);
    PLUG_TRY(shmem_turn_begin(comm, stream));
    status = shmem_stage_send(comm, pull->args.send, pull->args.send_bytes, false, stream,
                              &sync.wk.send);
    if (status == WEFT_OK) status = run(comm, pull, &sync);
    shmem_turn_end(comm, stream);
    return status == WEFT_OK ? status : shmem_decline(comm, status, stream);
}

static weft_status pull_to(struct gpu_comm *comm, const weft_pull_args *args, uint32_t to)
{
    struct gpu_scope scope;
    struct pull pull = {.to = to};
    weft_status status;

    PLUG_TRY(gpu_comm_usable(comm));
    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = check(comm, args, &pull);
    if (status == WEFT_OK && (comm->flags & WEFT_COMM_CHECK) != 0)
        status = shmem_match(comm, &(struct gpu_op){.kind = GPU_OP_PULL,
                                                    .dtype = pull.args.dtype,
                                                    .stream = gpu_native(pull.args.stream),
                                                    .plan = pull.args.plan,
                                                    .binding = pull.args.binding,
                                                    .step = pull.args.step});
    if (status == WEFT_OK) status = start(comm, &pull);
    gpu_leave(&scope);
    return status;
}

weft_status shmem_comm_pull(void *made, const weft_pull_args *args)
{
    return pull_to(made, args, args->dtype);
}

weft_status shmem_comm_pull_cast(void *made, const weft_pull_args *args, uint32_t to)
{
    return pull_to(made, args, to);
}
