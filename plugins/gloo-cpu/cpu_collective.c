/* cpu_collective.c - checking a collective's arguments and putting it on its stream. */
#include "cpu_comm.h"
#include "kit/collective.h"

#include <string.h>

struct task {
    struct cpu_comm *comm;
    struct cpu_call call;
};

weft_status cpu_comm_support(void *device, const weft_support_query *given, uint32_t *level)
{
    weft_support_query query;
    bool ok;

    (void)device;
    plug_take_struct(&query, given, sizeof query);
    ok = query.collective < WEFT_COLL_COUNT && query.dtype < WEFT_DTYPE_COUNT;
    if (ok && kit_collective_reduces(query.collective))
        ok = kit_reduction_defined(query.reduction, query.dtype);
    *level = ok ? WEFT_SUPPORT_NATIVE : WEFT_SUPPORT_NO;
    return WEFT_OK;
}

static weft_status refuse_null(const weft_collective_args *args, const char *what)
{
    return plug_fail(WEFT_ERR_INVALID, "%s: %s", cpu_call_name(args->collective), what);
}

/* The buffers and arrays of this rank, which *USE describes. */
static weft_status check_memory(const struct cpu_comm *comm, const weft_collective_args *args,
                                struct kit_use *use)
{
    *use = kit_collective_arrays(args->collective, args->root, comm->rank);
    if ((use->send_arrays && (args->send_counts == NULL || args->send_offsets == NULL)) ||
        (use->recv_arrays && (args->recv_counts == NULL || args->recv_offsets == NULL)))
        return refuse_null(args, "counts or offsets are NULL");
    if (args->send != NULL && args->recv != NULL) return WEFT_OK;
    *use = kit_collective_use(args, comm->rank, comm->size);
    if (use->send > 0 && args->send == NULL) return refuse_null(args, "send is NULL");
    if (use->recv > 0 && args->recv == NULL) return refuse_null(args, "recv is NULL");
    return WEFT_OK;
}

static weft_status refuse_reduction(const weft_collective_args *args)
{
    return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: %s is not defined on %s",
                     cpu_call_name(args->collective), kit_reduction_name(args->reduction),
                     kit_dtype_name(args->dtype));
}

static weft_status check_args(const struct cpu_comm *comm, const weft_collective_args *args,
                              struct kit_use *use)
{
    uint32_t needs = kit_collective_needs(args->collective);

    if (args->collective >= WEFT_COLL_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "collective %u is unknown", args->collective);
    if (args->collective == WEFT_COLL_BARRIER) return WEFT_OK;
    if (args->dtype >= WEFT_DTYPE_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: dtype %u is unknown",
                         cpu_call_name(args->collective), args->dtype);
    if ((needs & KIT_REDUCES) != 0) {
        if (!kit_reduction_defined(args->reduction, args->dtype)) return refuse_reduction(args);
        if (args->reduction == WEFT_REDUCE_PREMUL_SUM && args->scale == NULL)
            return refuse_null(args, "premul_sum needs a scale, but scale is NULL");
    }
    if ((needs & KIT_ROOTED) != 0 && (args->root < 0 || args->root >= comm->size))
        return plug_fail(WEFT_ERR_INVALID, "%s: root is %d; the communicator has %d ranks",
                         cpu_call_name(args->collective), (int)args->root, (int)comm->size);
    return check_memory(comm, args, use);
}

/* Stands for a NULL buffer, which has no elements, so that offsets may be taken from it. */
static unsigned char no_elements[16];

static void fill_op(const struct cpu_comm *comm, const weft_collective_args *args,
                    struct kit_use use, struct cpu_shm_op *op)
{
    bool scaled = args->reduction == WEFT_REDUCE_PREMUL_SUM &&
                  (kit_collective_needs(args->collective) & KIT_REDUCES) != 0;

    /* With all fields, so that the compiler clears nothing first. */
    *op = (struct cpu_shm_op){.as = NULL,
                              .identity = {args->plan, args->binding, args->step},
                              .collective = args->collective,
                              .dtype = args->dtype,
                              .reduction = args->reduction,
                              .root = args->root,
                              .element = kit_dtype_bytes(args->dtype),
                              .send = args->send != NULL ? args->send : no_elements,
                              .recv = args->recv != NULL ? args->recv : no_elements,
                              .count = args->count,
                              .send_counts = use.send_arrays ? args->send_counts : NULL,
                              .send_offsets = use.send_arrays ? args->send_offsets : NULL,
                              .recv_counts = use.recv_arrays ? args->recv_counts : NULL,
                              .recv_offsets = use.recv_arrays ? args->recv_offsets : NULL,
                              .scale = scaled ? args->scale : NULL,
                              .parts = args->divisor != 0 ? args->divisor : (uint32_t)comm->size,
                              .wide = false};
    if (args->collective == WEFT_COLL_BARRIER) op->count = 0;
    if (args->divisor != 0 && args->divisor != (uint32_t)comm->size && args->binding == 0)
        op->identity = (struct cpu_shm_identity){.plan = args->divisor, .binding = SHM_AVERAGE};
}

struct turn {
    const struct cpu_comm *comm;
    uint64_t number;
};

static bool has_come(const void *argument)
{
    const struct turn *turn = argument;

    return atomic_load(&turn->comm->finished) == turn->number ||
           cpu_shm_has_failed(&turn->comm->group);
}

/* Wait for the collectives called earlier.  Fails only with the communicator. */
static weft_status take_turn(struct cpu_comm *comm, uint64_t number)
{
    struct turn turn = {comm, number};

    if (!has_come(&turn)) cpu_bell_wait(&comm->turn_came, has_come, &turn, UINT64_MAX);
    return cpu_shm_fault(&comm->group);
}

void cpu_turns_end(struct cpu_comm *comm)
{
    cpu_bell_ring(&comm->turn_came);
}

static inline weft_status run_in_turn(struct cpu_comm *comm, uint64_t turn,
                                      weft_status (*work)(struct cpu_comm *, const void *),
                                      const void *argument)
{
    weft_status status = take_turn(comm, turn);

    if (status == WEFT_OK) {
        comm->group.called = turn + 1;
        status = work(comm, argument);
    }
    if (status != WEFT_OK) cpu_shm_access_wait(&comm->group);
    atomic_fetch_add(&comm->finished, 1);
    cpu_turns_end(comm);
    return status;
}

weft_status cpu_run_in_turn(struct cpu_comm *comm, uint64_t turn,
                            weft_status (*work)(struct cpu_comm *, const void *),
                            const void *argument)
{
    return run_in_turn(comm, turn, work, argument);
}

static weft_status run_op(struct cpu_comm *comm, const void *op)
{
    return comm->hosts > 1 ? cpu_hosts_run(comm, op) : cpu_shm_run(&comm->group, op);
}

weft_status cpu_call_run(struct cpu_comm *comm, uint64_t turn, const struct cpu_shm_op *op)
{
    return run_in_turn(comm, turn, run_op, op);
}

static void run_task(void *argument, struct cpu_error *error)
{
    struct task *task = argument;

    if (task->call.op.scale != NULL) task->call.op.scale = task->call.scale;
    error->status = cpu_call_run(task->comm, task->call.turn, &task->call.op);
    if (error->status != WEFT_OK) memcpy(error->text, plug_last_text(), sizeof error->text);
}

static const uint64_t *keep_array(uint64_t **room, const uint64_t *array, int32_t size)
{
    uint64_t *copy = *room;

    if (array == NULL) return NULL;
    memcpy(copy, array, (size_t)size * sizeof *copy);
    *room += size;
    return copy;
}

/* The caller's arrays are only lent for the call, and a group takes longer. */
static weft_status keep_arrays(const struct cpu_comm *comm, struct cpu_call *call)
{
    struct cpu_shm_op *op = &call->op;
    size_t bytes = 4 * (size_t)comm->size * sizeof *call->counts;
    uint64_t *room;

    if (op->send_counts == NULL && op->recv_counts == NULL) return WEFT_OK;
    call->counts = plug_alloc(bytes);
    if (call->counts == NULL) return plug_fail_memory(bytes);
    room = call->counts;
    op->send_counts = keep_array(&room, op->send_counts, comm->size);
    op->send_offsets = keep_array(&room, op->send_offsets, comm->size);
    op->recv_counts = keep_array(&room, op->recv_counts, comm->size);
    op->recv_offsets = keep_array(&room, op->recv_offsets, comm->size);
    return WEFT_OK;
}

static weft_status put_on_stream(struct cpu_comm *comm, struct task *task, void *stream)
{
    const struct cpu_shm_op *op = &task->call.op;
    size_t bytes = (size_t)comm->size * sizeof(uint64_t);
    size_t send = op->send_counts != NULL ? bytes : 0, recv = op->recv_counts != NULL ? bytes : 0;
    struct cpu_lent lent[] = {{offsetof(struct task, call.op.send_counts), send},
                              {offsetof(struct task, call.op.send_offsets), send},
                              {offsetof(struct task, call.op.recv_counts), recv},
                              {offsetof(struct task, call.op.recv_offsets), recv}};

    return cpu_stream_run_counted(stream, &comm->under_way, run_task, task, sizeof *task, lent, 4);
}

/* On its stream, or into the open group. */
static weft_status enqueue(struct cpu_comm *comm, const struct cpu_shm_op *op, void *stream)
{
    struct task task = {.comm = comm, .call.op = *op};
    weft_status status;

    if (op->scale != NULL) memcpy(task.call.scale, op->scale, op->element);
    if (comm->group_depth > 0) {
        PLUG_TRY(keep_arrays(comm, &task.call));
        return cpu_group_add_call(comm, &task.call, stream);
    }
    task.call.turn = comm->issued++;
    status = put_on_stream(comm, &task, stream);
    if (status != WEFT_OK) comm->issued--;
    return status;
}

weft_status cpu_comm_collective(void *handle, const weft_collective_args *args)
{
    struct cpu_comm *comm = handle;
    struct cpu_shm_op op;
    struct kit_use use = {0};
    weft_status status;

    PLUG_TRY(cpu_shm_fault(&comm->group));
    status = check_args(comm, args, &use);
    if (status == WEFT_OK) {
        fill_op(comm, args, use, &op);
        if (args->stream == NULL && comm->group_depth == 0)
            return cpu_call_run(comm, comm->issued++, &op);
        status = enqueue(comm, &op, args->stream);
    }
    if (status != WEFT_OK) cpu_group_fail(comm, status);
    return status;
}
