/* check.c - checks of the arguments of collectives. */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>

static weft_status refuse(const weft_comm *comm, const weft_collective_args *args,
                          const char *format, ...) WF_PRINTF(3, 4);

static weft_status refuse(const weft_comm *comm, const weft_collective_args *args,
                          const char *format, ...)
{
    char reason[WF_ERROR_BYTES];

    KIT_PRINT_REST(reason, format);
    return wf_fail(WEFT_ERR_INVALID, "weft_%s on %s: %s", wf_collective_name(args->collective),
                   comm->name, reason);
}

static weft_status check_vocabulary(const weft_comm *comm, const weft_collective_args *args)
{
    uint32_t needs = kit_collective_needs(args->collective);

    if (args->dtype >= WEFT_DTYPE_COUNT)
        return refuse(comm, args, "dtype %u is unknown; the dtypes are 0 to %d", args->dtype,
                      WEFT_DTYPE_COUNT - 1);
    if ((needs & KIT_ROOTED) != 0 && (args->root < 0 || args->root >= comm->size))
        return refuse(comm, args, "root is %d; the ranks are 0 to %d", args->root, comm->size - 1);
    if ((needs & KIT_REDUCES) == 0) return WEFT_OK;
    if (args->reduction >= WEFT_REDUCE_COUNT)
        return refuse(comm, args, "reduction %u is unknown; the reductions are 0 to %d",
                      args->reduction, WEFT_REDUCE_COUNT - 1);
    if (!wf_reduction_defined(args->reduction, args->dtype))
        return refuse(comm, args, "%s is not defined on %s", wf_reduction_name(args->reduction),
                      wf_dtype_name(args->dtype));
    if (args->divisor != 0 && args->reduction != WEFT_REDUCE_AVG)
        return refuse(comm, args,
                      "divisor is %u, but the reduction is %s; only avg takes a divisor",
                      args->divisor, wf_reduction_name(args->reduction));
    if (args->reduction == WEFT_REDUCE_PREMUL_SUM && args->scale == NULL)
        return refuse(comm, args, "scale is NULL, but premul_sum needs a scale");
    return WEFT_OK;
}

/* The counts and offsets of one side must not wrap. */
static weft_status check_arrays(const weft_comm *comm, const weft_collective_args *args,
                                const char *side, const uint64_t *counts, const uint64_t *offsets)
{
    uint64_t most = (uint64_t)INT64_MAX / wf_dtype_bytes(args->dtype);

    if (counts == NULL || offsets == NULL)
        return refuse(comm, args, "%s_%s is NULL", side, counts == NULL ? "counts" : "offsets");
    for (int32_t i = 0; i < comm->size; i++) {
        if (counts[i] > most || offsets[i] > most - counts[i])
            return refuse(comm, args,
                          "%s_counts[%d] is %" PRIu64 " and %s_offsets[%d] is %" PRIu64
                          ": more than 2^63 - 1 bytes",
                          side, i, counts[i], side, i, offsets[i]);
    }
    return WEFT_OK;
}

/* The memory of this rank, unless it has no elements. */
static weft_status check_memory(weft_comm *comm, const weft_collective_args *args)
{
    struct kit_use use = kit_collective_use(args, comm->rank, comm->size);

    if (use.send > 0 && args->send == NULL) return refuse(comm, args, "send is NULL");
    if (use.recv > 0 && args->recv == NULL) return refuse(comm, args, "recv is NULL");
    /* The memory of a step is the bound plan's, and was checked. */
    return args->plan == 0 ? wf_buffers_check_collective(comm, args) : WEFT_OK;
}

static weft_status check_stream(const weft_comm *comm, const weft_collective_args *args)
{
    char function[48];

    if (wf_stream_is_known(comm->context, args->stream)) return WEFT_OK;
    snprintf(function, sizeof function, "weft_%s", wf_collective_name(args->collective));
    return wf_stream_find(comm->context, args->stream, function);
}

weft_status wf_check_numbers(const weft_comm *comm, const weft_collective_args *args)
{
    struct kit_use use = kit_collective_arrays(args->collective, args->root, comm->rank);
    uint64_t bytes;

    if (args->collective >= WEFT_COLL_COUNT)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_collective on %s: collective %u is unknown; the collectives are 0 to %d",
            comm->name, args->collective, WEFT_COLL_COUNT - 1);
    if (args->collective == WEFT_COLL_BARRIER) return WEFT_OK;
    WF_TRY(check_vocabulary(comm, args));
    if (__builtin_mul_overflow(args->count, wf_dtype_bytes(args->dtype), &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)comm->size, &bytes) || bytes > INT64_MAX)
        return refuse(comm, args,
                      "count %" PRIu64 " of %s on each of %d ranks is more than 2^63 - 1 bytes",
                      args->count, wf_dtype_name(args->dtype), comm->size);
    if (use.send_arrays)
        WF_TRY(check_arrays(comm, args, "send", args->send_counts, args->send_offsets));
    return use.recv_arrays ? check_arrays(comm, args, "recv", args->recv_counts, args->recv_offsets)
                           : WEFT_OK;
}

weft_status wf_check_collective(weft_comm *comm, const weft_collective_args *args)
{
    if (args->collective < WEFT_COLL_COUNT) WF_TRY(check_stream(comm, args));
    WF_TRY(wf_check_numbers(comm, args));
    return args->collective == WEFT_COLL_BARRIER ? WEFT_OK : check_memory(comm, args);
}

weft_status wf_check_call(weft_comm *comm, const weft_collective_args *args)
{
    uint64_t frees = atomic_load_explicit(&comm->context->ledger.frees, memory_order_relaxed);

    if (!wf_check_fast(comm, args)) return wf_check_collective(comm, args);
    if (args->collective == WEFT_COLL_BARRIER || args->plan != 0) return WEFT_OK;
    WF_TRY(wf_buffers_check_collective(comm, args));
    comm->last_call = (struct wf_last_call){.send = args->send,
                                            .recv = args->recv,
                                            .count = args->count,
                                            .type = args->dtype | (uint64_t)args->reduction << 32,
                                            .frees = frees,
                                            .collective = args->collective,
                                            .root = args->root};
    return WEFT_OK;
}

/* Averages of integers that weft computes itself do not take the fast path, nor does any call with
 * WEFT_CHECK that moves elements. */
void wf_check_begin(weft_comm *comm)
{
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        comm->most[dtype] =
            comm->checked ? 0 : (uint64_t)INT64_MAX / wf_dtype_bytes(dtype) / (uint64_t)comm->size;
        for (uint32_t reduction = 0; reduction < WEFT_REDUCE_PREMUL_SUM; reduction++)
            if (wf_reduction_defined(reduction, dtype) &&
                (reduction != WEFT_REDUCE_AVG || dtype >= WEFT_DTYPE_F16 ||
                 (comm->averages >> dtype & 1)))
                comm->defined[reduction] |= 1u << dtype;
    }
}
