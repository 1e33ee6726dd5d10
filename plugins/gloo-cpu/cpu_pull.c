/* cpu_pull.c - checking a pull's arguments and putting it on its stream. */
#include "cpu_pull.h"

#include <string.h>

struct task {
    struct cpu_comm *comm;
    struct cpu_shm_pull pull;
    uint64_t turn;
};

static weft_status run_pull(struct cpu_comm *comm, const void *argument)
{
    return cpu_shm_pull(&comm->group, argument);
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

    if (comm->hosts > 1)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull: the ranks are on %d hosts%s%s",
                         (int)comm->hosts, comm->apart[0] != '\0' ? ", as " : "", comm->apart);
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

/* TO: NULL if nothing is cast. */
static weft_status post(struct cpu_comm *comm, const weft_pull_args *given, const uint32_t *to)
{
    struct task task = {.comm = comm};
    weft_pull_args args;
    size_t sources = 0;
    weft_status status;

    plug_take_struct(&args, given, sizeof args);
    PLUG_TRY(cpu_shm_fault(&comm->group));
    PLUG_TRY(check(comm, &args, &task.pull, &sources));
    if (to != NULL) {
        PLUG_TRY(cpu_cast_check("pull_cast", task.pull.regions->element, args.dtype, *to));
        task.pull.to = *to;
    }
    if (comm->group_depth > 0)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "pull is not allowed inside a group");
    if (args.stream == NULL) return cpu_run_in_turn(comm, comm->issued++, run_pull, &task.pull);
    task.turn = comm->issued++;
    status = cpu_stream_run_counted(
        args.stream, &comm->under_way, run_task, &task, sizeof task,
        &(struct cpu_lent){offsetof(struct task, pull.sources), sources * sizeof *args.sources}, 1);
    if (status != WEFT_OK) comm->issued--;
    return status;
}

weft_status cpu_comm_pull(void *comm, const weft_pull_args *args)
{
    return post(comm, args, NULL);
}

weft_status cpu_comm_pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    return post(comm, args, &to);
}
