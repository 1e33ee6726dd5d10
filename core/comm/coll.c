/* coll.c - collectives: check, record, and straight into the plugin's table. */
#include "comm.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static weft_status compare(weft_comm *comm, uint32_t kind, const char *name,
                           const struct wf_call_identity *identity)
{
    weft_status status = wf_comm_compare(comm, kind, identity);

    return status == WEFT_OK ? status : wf_comm_note(comm, wf_comm_fault(comm, status, name));
}

/* COMM cannot be used: the error names the public function. */
static __attribute__((noinline, cold)) weft_status refuse(const weft_comm *comm,
                                                          uint32_t collective)
{
    char function[48];

    snprintf(function, sizeof function, "weft_%s", wf_collective_name(collective));
    return wf_comm_refuse(comm, function);
}

/* Inlined into every function below, where the collective is a constant. */
static inline __attribute__((always_inline)) weft_status post(weft_comm *comm,
                                                              const weft_collective_args *args)
{
    weft_status status;

    if (UNLIKELY(comm == NULL || !wf_is_usable(comm->made, WF_KIND_COMM)))
        return refuse(comm, args->collective);
    if (UNLIKELY(!wf_check_fast(comm, args))) {
        status = wf_check_collective(comm, args);
        if (status != WEFT_OK) return wf_comm_note(comm, status);
        if (wf_average_is_ours(comm, args))
            return wf_comm_note(comm, wf_average_collective(comm, args));
    }
    if (UNLIKELY(!wf_comm_may_begin(comm))) return wf_comm_note(comm, wf_comm_fail_departed(comm));
    if (UNLIKELY(comm->compares)) {
        status = compare(
            comm, args->collective, wf_collective_name(args->collective),
            &(struct wf_call_identity){args->plan, args->binding, args->step, args->divisor});
        if (status != WEFT_OK) return status;
    }
    wf_ring_add(&comm->ring, args->collective, args->dtype, args->reduction, args->root,
                args->count);
    status = comm->table->collective(comm->handle, args);
    if (UNLIKELY(status != WEFT_OK))
        return wf_comm_note(comm,
                            wf_comm_fault(comm, status, wf_collective_name(args->collective)));
    wf_posts_add(comm, args->stream);
    if (wf_comm_is_inline(comm, args->stream)) wf_ring_finish(&comm->ring);
    return WEFT_OK;
}

weft_status wf_comm_pull(weft_comm *comm, const weft_pull_args *args, uint64_t elements)
{
    weft_status status;

    if (UNLIKELY(!wf_comm_may_begin(comm))) return wf_comm_note(comm, wf_comm_fail_departed(comm));
    if (UNLIKELY(comm->compares))
        WF_TRY(compare(
            comm, WF_RING_PULL, "pull",
            &(struct wf_call_identity){args->plan, args->binding, args->step, args->divisor}));
    wf_ring_add(&comm->ring, WF_RING_PULL, args->dtype, args->reduction, -1, elements);
    status = comm->table->pull(comm->handle, args);
    if (UNLIKELY(status != WEFT_OK)) return wf_comm_note(comm, wf_comm_fault(comm, status, "pull"));
    wf_posts_add(comm, args->stream);
    if (wf_comm_is_inline(comm, args->stream)) wf_ring_finish(&comm->ring);
    return WEFT_OK;
}

/* From a caller who was compiled with the header of ABI 1.0. */
static weft_status post_old(weft_comm *comm, const weft_collective_args *given)
{
    weft_collective_args args = {0};

    if (given->struct_size < offsetof(weft_collective_args, plan))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_collective_args.struct_size is %u; set it to %zu, the struct's size",
                       given->struct_size, sizeof args);
    memcpy(&args, given, offsetof(weft_collective_args, plan));
    args.struct_size = sizeof args;
    return post(comm, &args);
}

WF_HOT weft_status weft_collective(weft_comm *comm, const weft_collective_args *args)
{
    if (args == NULL) return wf_fail_null("weft_collective", "args");
    if (UNLIKELY(args->struct_size < sizeof *args)) return post_old(comm, args);
    return post(comm, args);
}

weft_status weft_all_reduce(weft_comm *comm, const void *send, void *recv, uint64_t count,
                            enum weft_dtype dtype, enum weft_reduction reduction,
                            weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_ALL_REDUCE,
                                              .dtype = dtype,
                                              .reduction = reduction,
                                              .root = -1,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_all_gather(weft_comm *comm, const void *send, void *recv, uint64_t count,
                            enum weft_dtype dtype, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_ALL_GATHER,
                                              .dtype = dtype,
                                              .root = -1,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_reduce_scatter(weft_comm *comm, const void *send, void *recv, uint64_t count,
                                enum weft_dtype dtype, enum weft_reduction reduction,
                                weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_REDUCE_SCATTER,
                                              .dtype = dtype,
                                              .reduction = reduction,
                                              .root = -1,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_all_to_all(weft_comm *comm, const void *send, void *recv, uint64_t count,
                            enum weft_dtype dtype, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_ALL_TO_ALL,
                                              .dtype = dtype,
                                              .root = -1,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_broadcast(weft_comm *comm, const void *send, void *recv, uint64_t count,
                           enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_BROADCAST,
                                              .dtype = dtype,
                                              .root = root,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_reduce(weft_comm *comm, const void *send, void *recv, uint64_t count,
                        enum weft_dtype dtype, enum weft_reduction reduction, int32_t root,
                        weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_REDUCE,
                                              .dtype = dtype,
                                              .reduction = reduction,
                                              .root = root,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_gather(weft_comm *comm, const void *send, void *recv, uint64_t count,
                        enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_GATHER,
                                              .dtype = dtype,
                                              .root = root,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_scatter(weft_comm *comm, const void *send, void *recv, uint64_t count,
                         enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_SCATTER,
                                              .dtype = dtype,
                                              .root = root,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .stream = stream});
}

weft_status weft_barrier(weft_comm *comm, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_BARRIER,
                                              .root = -1,
                                              .stream = stream});
}

/* ---- with counts per rank ---- */

weft_status weft_all_gather_v(weft_comm *comm, const void *send, void *recv,
                              const uint64_t *recv_counts, const uint64_t *recv_offsets,
                              enum weft_dtype dtype, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_ALL_GATHER_V,
                                              .dtype = dtype,
                                              .root = -1,
                                              .send = send,
                                              .recv = recv,
                                              .recv_counts = recv_counts,
                                              .recv_offsets = recv_offsets,
                                              .stream = stream});
}

weft_status weft_reduce_scatter_v(weft_comm *comm, const void *send, void *recv,
                                  const uint64_t *send_counts, const uint64_t *send_offsets,
                                  enum weft_dtype dtype, enum weft_reduction reduction,
                                  weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_REDUCE_SCATTER_V,
                                              .dtype = dtype,
                                              .reduction = reduction,
                                              .root = -1,
                                              .send = send,
                                              .recv = recv,
                                              .send_counts = send_counts,
                                              .send_offsets = send_offsets,
                                              .stream = stream});
}

weft_status weft_all_to_all_v(weft_comm *comm, const void *send, const uint64_t *send_counts,
                              const uint64_t *send_offsets, void *recv, const uint64_t *recv_counts,
                              const uint64_t *recv_offsets, enum weft_dtype dtype,
                              weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_ALL_TO_ALL_V,
                                              .dtype = dtype,
                                              .root = -1,
                                              .send = send,
                                              .recv = recv,
                                              .send_counts = send_counts,
                                              .send_offsets = send_offsets,
                                              .recv_counts = recv_counts,
                                              .recv_offsets = recv_offsets,
                                              .stream = stream});
}

weft_status weft_gather_v(weft_comm *comm, const void *send, uint64_t count, void *recv,
                          const uint64_t *recv_counts, const uint64_t *recv_offsets,
                          enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_GATHER_V,
                                              .dtype = dtype,
                                              .root = root,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .recv_counts = recv_counts,
                                              .recv_offsets = recv_offsets,
                                              .stream = stream});
}

weft_status weft_scatter_v(weft_comm *comm, const void *send, const uint64_t *send_counts,
                           const uint64_t *send_offsets, void *recv, uint64_t count,
                           enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return post(comm, &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                              .collective = WEFT_COLL_SCATTER_V,
                                              .dtype = dtype,
                                              .root = root,
                                              .send = send,
                                              .recv = recv,
                                              .count = count,
                                              .send_counts = send_counts,
                                              .send_offsets = send_offsets,
                                              .stream = stream});
}
