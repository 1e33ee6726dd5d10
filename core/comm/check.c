/* check.c - checks of the arguments of collectives. */
#include "comm.h"

#include <inttypes.h>

/* Which side of a collective a rank has data on. */
enum side { NOBODY, EVERYBODY, ROOT };

struct rule {
    bool reduces, rooted;
    enum side sends, receives;
    enum side send_arrays, recv_arrays; /* who needs counts and offsets */
};

static const struct rule rules[WEFT_COLL_COUNT] = {
    [WEFT_COLL_ALL_REDUCE] = {.reduces = true, .sends = EVERYBODY, .receives = EVERYBODY},
    [WEFT_COLL_ALL_GATHER] = {.sends = EVERYBODY, .receives = EVERYBODY},
    [WEFT_COLL_REDUCE_SCATTER] = {.reduces = true, .sends = EVERYBODY, .receives = EVERYBODY},
    [WEFT_COLL_ALL_TO_ALL] = {.sends = EVERYBODY, .receives = EVERYBODY},
    [WEFT_COLL_BROADCAST] = {.rooted = true, .sends = ROOT, .receives = EVERYBODY},
    [WEFT_COLL_REDUCE] = {.reduces = true, .rooted = true, .sends = EVERYBODY, .receives = ROOT},
    [WEFT_COLL_GATHER] = {.rooted = true, .sends = EVERYBODY, .receives = ROOT},
    [WEFT_COLL_SCATTER] = {.rooted = true, .sends = ROOT, .receives = EVERYBODY},
    [WEFT_COLL_BARRIER] = {0},
    [WEFT_COLL_ALL_GATHER_V] = {.sends = EVERYBODY,
                                .receives = EVERYBODY,
                                .recv_arrays = EVERYBODY},
    [WEFT_COLL_REDUCE_SCATTER_V] = {.reduces = true,
                                    .sends = EVERYBODY,
                                    .receives = EVERYBODY,
                                    .send_arrays = EVERYBODY},
    [WEFT_COLL_ALL_TO_ALL_V] = {.sends = EVERYBODY,
                                .receives = EVERYBODY,
                                .send_arrays = EVERYBODY,
                                .recv_arrays = EVERYBODY},
    [WEFT_COLL_GATHER_V] = {.rooted = true,
                            .sends = EVERYBODY,
                            .receives = ROOT,
                            .recv_arrays = ROOT},
    [WEFT_COLL_SCATTER_V] = {.rooted = true,
                             .sends = ROOT,
                             .receives = EVERYBODY,
                             .send_arrays = ROOT},
};

static bool is_mine(const weft_comm *comm, enum side side, int32_t root)
{
    return side == EVERYBODY || (side == ROOT && comm->rank == root);
}

static weft_status refuse(const weft_comm *comm, const weft_collective_args *args,
                          const char *format, ...) WF_PRINTF(3, 4);

static weft_status refuse(const weft_comm *comm, const weft_collective_args *args,
                          const char *format, ...)
{
    struct wf_text text = {0};
    va_list more;
    weft_status status;

    va_start(more, format);
    wf_text_addv(&text, format, more);
    va_end(more);
    status = wf_fail(WEFT_ERR_INVALID, "%s on %s: %s", wf_collective_name(args->collective),
                     comm->name, text.failed ? "not valid" : text.data);
    wf_text_free(&text);
    return status;
}

static weft_status check_vocabulary(const weft_comm *comm, const weft_collective_args *args,
                                    const struct rule *rule)
{
    if (args->dtype >= WEFT_DTYPE_COUNT)
        return refuse(comm, args, "dtype %u is unknown; the dtypes are 0 to %d", args->dtype,
                      WEFT_DTYPE_COUNT - 1);
    if (rule->rooted && (args->root < 0 || args->root >= comm->size))
        return refuse(comm, args, "root is %d; the ranks are 0 to %d", args->root, comm->size - 1);
    if (!rule->reduces) return WEFT_OK;
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

/* Elements on one side by its arrays, which must not wrap; *ANY if there is at least one. */
static weft_status check_arrays(const weft_comm *comm, const weft_collective_args *args,
                                const char *side, const uint64_t *counts, const uint64_t *offsets,
                                bool *any)
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
        if (counts[i] > 0) *any = true;
    }
    return WEFT_OK;
}

static weft_status check_arrayed(const weft_comm *comm, const weft_collective_args *args,
                                 const struct rule *rule)
{
    bool sends = args->count > 0, receives = args->count > 0;

    if (rule->send_arrays != NOBODY) sends = false;
    if (rule->recv_arrays != NOBODY) receives = false;
    if (is_mine(comm, rule->send_arrays, args->root))
        WF_TRY(check_arrays(comm, args, "send", args->send_counts, args->send_offsets, &sends));
    if (is_mine(comm, rule->recv_arrays, args->root))
        WF_TRY(check_arrays(comm, args, "recv", args->recv_counts, args->recv_offsets, &receives));
    if (args->collective == WEFT_COLL_ALL_GATHER_V) sends = args->recv_counts[comm->rank] > 0;
    if (args->collective == WEFT_COLL_REDUCE_SCATTER_V)
        receives = args->send_counts[comm->rank] > 0;
    if (sends && is_mine(comm, rule->sends, args->root) && args->send == NULL)
        return refuse(comm, args, "send is NULL");
    if (receives && is_mine(comm, rule->receives, args->root) && args->recv == NULL)
        return refuse(comm, args, "recv is NULL");
    return WEFT_OK;
}

weft_status wf_check_collective(const weft_comm *comm, const weft_collective_args *args)
{
    const struct rule *rule;
    uint64_t bytes;

    if (args->collective >= WEFT_COLL_COUNT)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_collective on %s: collective %u is unknown; the collectives are 0 to %d",
            comm->name, args->collective, WEFT_COLL_COUNT - 1);
    WF_TRY(wf_stream_check(comm->context, args->stream, wf_collective_name(args->collective)));
    if (args->collective == WEFT_COLL_BARRIER) return WEFT_OK;
    rule = &rules[args->collective];
    WF_TRY(check_vocabulary(comm, args, rule));
    if (__builtin_mul_overflow(args->count, wf_dtype_bytes(args->dtype), &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)comm->size, &bytes) || bytes > INT64_MAX)
        return refuse(comm, args,
                      "count %" PRIu64 " of %s on each of %d ranks is more than 2^63 - 1 bytes",
                      args->count, wf_dtype_name(args->dtype), comm->size);
    if (rule->send_arrays != NOBODY || rule->recv_arrays != NOBODY)
        return check_arrayed(comm, args, rule);
    if (args->count == 0) return WEFT_OK;
    if (args->send == NULL && is_mine(comm, rule->sends, args->root))
        return refuse(comm, args, "send is NULL");
    if (args->recv == NULL && is_mine(comm, rule->receives, args->root))
        return refuse(comm, args, "recv is NULL");
    return WEFT_OK;
}

/* Averages of integers that weft computes itself do not take the fast path. */
void wf_check_begin(weft_comm *comm)
{
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        comm->most[dtype] = (uint64_t)INT64_MAX / wf_dtype_bytes(dtype) / (uint64_t)comm->size;
        for (uint32_t reduction = 0; reduction < WEFT_REDUCE_PREMUL_SUM; reduction++)
            if (wf_reduction_defined(reduction, dtype) &&
                (reduction != WEFT_REDUCE_AVG || dtype >= WEFT_DTYPE_F16 ||
                 (comm->averages >> dtype & 1)))
                comm->defined[reduction] |= 1u << dtype;
    }
}
