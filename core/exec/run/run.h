/* run.h - one run of a bound plan; run.c runs its actions, record.c has its records. */
#ifndef WEFT_EXEC_RUN_RUN_H
#define WEFT_EXEC_RUN_RUN_H

#include "comm/recording.h"
#include "exec/bound.h"

/* Run BOUND, which has one tensor and its scratch, for FUNCTION.  ROOM: see wf_run_aliased. Inline,
 * because a short run costs little more than the calls that lead to it. */
static inline weft_status wf_run_unrecorded(const weft_bound *bound, const void *source,
                                            void *target, void *room, weft_stream *stream,
                                            const char *function)
{
    struct wf_runs *runs = &bound->team->runs;
    uint64_t last = atomic_load_explicit(&bound->runs->last, memory_order_relaxed);
    weft_status status;

    if (__builtin_expect(bound->team->group_depth > 0, 0))
        return wf_run_refuse_group(bound, function);
    wf_runs_begin(runs, bound->runs,
                  atomic_load_explicit(&bound->team->collectives, memory_order_relaxed));
    status = source != target || source == NULL
                 ? wf_run(bound, source, target, stream)
                 : wf_run_aliased(bound, source, target, room, stream);
    if (__builtin_expect(status != WEFT_OK, 0)) return wf_run_failed(bound, last, status, function);
    if (wf_comm_is_inline(bound->team, stream)) wf_runs_end(runs);
    return WEFT_OK;
}

/* The same with a record. */
weft_status wf_run_recorded(const weft_bound *bound, const void *source, void *target, void *room,
                            weft_stream *stream, const char *function);

/* The same, with a record if records are wanted, and with WORK unless that is NULL. */
static inline weft_status wf_run_one(const weft_bound *bound, const void *source, void *target,
                                     void *room, weft_stream *stream, weft_work **work,
                                     const char *function)
{
    weft_status status = wf_tracing(bound) != NULL
                             ? wf_run_recorded(bound, source, target, room, stream, function)
                             : wf_run_unrecorded(bound, source, target, room, stream, function);

    if (__builtin_expect(status != WEFT_OK, 0)) return status;
    return work != NULL ? wf_work_record(bound->context, stream, function, work) : WEFT_OK;
}

#endif
