/* cpu_pull.c - checking the arguments of a pull or an exchange, and putting it on its stream. */
#include "cpu_pull.h"

#include <string.h>

struct task {
    struct cpu_comm *comm;
    struct cpu_shm_pull pull;
    uint64_t turn;
};

static weft_status run_pull(struct cpu_comm *comm, const void *argument)
{
    return comm->hosts > 1 ? cpu_hosts_exchange_regions(comm, argument)
                           : cpu_shm_pull(&comm->group, argument);
}

static void run_task(void *argument, struct cpu_error *error)
{
    struct task *task = argument;

    error->status = cpu_run_in_turn(task->comm, task->turn, run_pull, &task->pull);
    if (error->status != WEFT_OK) memcpy(error->text, plug_last_text(), sizeof error->text);
}

/* How many of the sources the regions use. */
static size_t count_sources(const struct cpu_shm_pull *pull)
{
    size_t count = 0;

    for (uint64_t i = 0; i < pull->regions->count; i++) {
        size_t end = (size_t)pull->regions->boxes[i].source + pull->holders;

        if (end > count) count = end;
    }
    return count;
}

static weft_status check(const struct cpu_comm *comm, const weft_pull_args *args,
                         struct cpu_shm_pull *pull, size_t *sources)
{
    const struct cpu_regions *regions = args->regions;

    if (regions == NULL) return plug_fail(WEFT_ERR_INVALID, "pull: regions is NULL");
    if (args->dtype >= WEFT_DTYPE_COUNT ||
        (args->holders > 1 && (args->reduction == WEFT_REDUCE_PREMUL_SUM ||
                               !kit_reduction_defined(args->reduction, args->dtype))))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull: %s is not defined on %s",
                         kit_reduction_name(args->reduction), kit_dtype_name(args->dtype));
    if (kit_dtype_bytes(args->dtype) != regions->element)
        return plug_fail(WEFT_ERR_INVALID,
                         "pull: dtype is %s, but the list has elements of %zu bytes",
                         kit_dtype_name(args->dtype), regions->element);
    *pull = (struct cpu_shm_pull){.identity = {args->plan, args->binding, args->step},
                                  .dtype = args->dtype,
                                  .reduction = args->reduction,
                                  .holders = args->holders > 0 ? args->holders : 1,
                                  .divisor = args->divisor,
                                  .to = args->dtype,
                                  .regions = regions,
                                  .sources = args->sources,
                                  .send = args->send,
                                  .recv = args->recv};
    *sources = count_sources(pull);
    if (*sources > 0 && (args->sources == NULL || args->recv == NULL))
        return plug_fail(WEFT_ERR_INVALID, "pull: %s is NULL",
                         args->recv == NULL ? "recv" : "sources");
    if (pull->holders > (uint32_t)comm->size)
        return plug_fail(WEFT_ERR_INVALID, "pull: holders is %u; the communicator has %d ranks",
                         pull->holders, (int)comm->size);
    for (size_t i = 0; i < *sources; i++)
        if (args->sources[i] < 0 || args->sources[i] >= comm->size)
            return plug_fail(WEFT_ERR_INVALID, "pull: source is %d; the communicator has %d ranks",
                             (int)args->sources[i], (int)comm->size);
    return WEFT_OK;
}

/* What an exchange has beyond a pull. */
static weft_status check_exchange(const struct cpu_comm *comm, const weft_pull_args *args,
                                  struct cpu_shm_pull *pull, size_t *readers)
{
    size_t sources, targets;

    if (args->served == NULL) return plug_fail(WEFT_ERR_INVALID, "exchange: served is NULL");
    pull->served = args->served;
    pull->readers = args->readers;
    pull->places = comm->places;
    if (pull->holders != 1)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "exchange: holders is %u; expected 1",
                         pull->holders);
    if (pull->served->element != pull->regions->element)
        return plug_fail(WEFT_ERR_INVALID,
                         "exchange: served has elements of %zu bytes, and regions of %zu",
                         pull->served->element, pull->regions->element);
    cpu_regions_count(pull->served, &sources, &targets);
    if (targets > args->reader_count || (targets > 0 && (args->readers == NULL || !args->send)))
        return plug_fail(WEFT_ERR_INVALID,
                         "exchange: served names %zu readers; there are %u, in an array at %p, and "
                         "send is %p",
                         targets, args->reader_count, (const void *)args->readers, args->send);
    for (size_t i = 0; i < targets; i++)
        if (args->readers[i] < 0 || args->readers[i] >= comm->size)
            return plug_fail(WEFT_ERR_INVALID,
                             "exchange: reader is %d; the communicator has %d ranks",
                             (int)args->readers[i], (int)comm->size);
    *readers = targets;
    return WEFT_OK;
}

/* SOURCES and READERS are how many of the arrays are used. */
static weft_status put_on_stream(struct task *task, size_t sources, size_t readers, void *stream)
{
    struct cpu_comm *comm = task->comm;
    const struct cpu_lent lent[] = {
        {offsetof(struct task, pull.sources), sources * sizeof(int32_t)},
        {offsetof(struct task, pull.readers), readers * sizeof(int32_t)}};
    weft_status status;

    if (comm->group_depth > 0)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull is not allowed inside a group");
    if (stream == NULL) return cpu_run_in_turn(comm, comm->issued++, run_pull, &task->pull);
    task->turn = comm->issued++;
    status =
        cpu_stream_run_counted(stream, &comm->under_way, run_task, task, sizeof *task, lent, 2);
    if (status != WEFT_OK) comm->issued--;
    return status;
}

/* TO: NULL if nothing is cast. */
static weft_status pull(struct cpu_comm *comm, const weft_pull_args *given, const uint32_t *to)
{
    struct task task = {.comm = comm};
    weft_pull_args args;
    size_t sources = 0;

    plug_take_struct(&args, given, sizeof args);
    PLUG_TRY(cpu_shm_fault(&comm->group));
    if (comm->hosts > 1)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull: the ranks are on %d hosts%s%s",
                         (int)comm->hosts, comm->apart[0] != '\0' ? ", as " : "", comm->apart);
    PLUG_TRY(check(comm, &args, &task.pull, &sources));
    if (to != NULL) {
        PLUG_TRY(cpu_cast_check("pull_cast", task.pull.regions->element, args.dtype, *to));
        task.pull.to = *to;
    }
    return put_on_stream(&task, sources, 0, args.stream);
}

weft_status cpu_comm_pull(void *comm, const weft_pull_args *args)
{
    return pull(comm, args, NULL);
}

weft_status cpu_comm_pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    return pull(comm, args, &to);
}

weft_status cpu_comm_exchange(void *handle, const weft_pull_args *given)
{
    struct cpu_comm *comm = handle;
    struct task task = {.comm = comm};
    weft_pull_args args;
    size_t sources = 0, readers = 0;

    plug_take_struct(&args, given, sizeof args);
    PLUG_TRY(cpu_shm_fault(&comm->group));
    PLUG_TRY(check(comm, &args, &task.pull, &sources));
    PLUG_TRY(check_exchange(comm, &args, &task.pull, &readers));
    return put_on_stream(&task, sources, readers, args.stream);
}
