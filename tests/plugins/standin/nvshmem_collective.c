/* nvshmem_collective.c - collectives of a team on streams: all ranks synchronize, each reads its
 * data from the memory of the others, and all synchronize again. */
#include "ccl.h"
#include "nvshmem_team.h"

#include <stdlib.h>
#include <string.h>

#define job standin_job

enum kind { BARRIER, BROADCAST, FCOLLECT, ALLTOALL, REDUCE, REDUCE_SCATTER };
enum op { OP_sum, OP_prod, OP_min, OP_max, OP_and, OP_or, OP_xor };
enum type {
    TYPE_int8,
    TYPE_uint8,
    TYPE_int16,
    TYPE_uint16,
    TYPE_int32,
    TYPE_uint32,
    TYPE_int64,
    TYPE_uint64,
    TYPE_half,
    TYPE_bfloat16,
    TYPE_float,
    TYPE_double
};
static const size_t type_bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

struct task {
    enum kind kind;
    enum type type;
    enum op op;
    int team, root;
    size_t count, bytes; /* BYTES: of one element */
    char *target;
    const char *source;
};

/* ---- arithmetic ---- */

static int64_t load(enum type type, const char *element)
{
    uint64_t raw = 0;
    size_t bits = 8 * type_bytes[type];

    memcpy(&raw, element, bits / 8); /* little-endian */
    if (type % 2 == 0 && bits < 64 && raw >> (bits - 1) != 0) raw |= ~UINT64_C(0) << bits;
    return (int64_t)raw;
}

static int64_t combine(const struct task *task, int64_t a, int64_t b)
{
    bool less = task->type == TYPE_uint64 ? (uint64_t)a < (uint64_t)b : a < b;

    switch (task->op) {
    case OP_sum:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case OP_prod:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case OP_min:
        return less ? a : b;
    case OP_max:
        return less ? b : a;
    case OP_and:
        return a & b;
    case OP_or:
        return a | b;
    default:
        return a ^ b;
    }
}

static void reduce_integers(const struct task *task, const char *parts, int size)
{
    size_t bytes = type_bytes[task->type];

    for (size_t i = 0; i < task->count; i++) {
        int64_t sum = load(task->type, parts + i * bytes);
        for (int k = 1; k < size; k++)
            sum =
                combine(task, sum, load(task->type, parts + ((size_t)k * task->count + i) * bytes));
        memcpy(task->target + i * bytes, &sum, bytes);
    }
}

static void reduce(const struct task *task, const char *parts, int size)
{
    static const int dtypes[] = {[TYPE_half] = SC_F16,
                                 [TYPE_bfloat16] = SC_BF16,
                                 [TYPE_float] = SC_F32,
                                 [TYPE_double] = SC_F64};
    static const int ops[] = {
        [OP_sum] = SC_SUM, [OP_prod] = SC_PROD, [OP_min] = SC_MIN, [OP_max] = SC_MAX};

    if (task->type < TYPE_half)
        reduce_integers(task, parts, size);
    else
        sc_reduce(dtypes[task->type], ops[task->op], task->count, size,
                  (const unsigned char *)parts, task->count * task->bytes,
                  (unsigned char *)task->target);
}

/* ---- a task ---- */

static const char *of(const struct standin_team *team, const char *own, int place)
{
    return job.heap[team->pes[place]] + (own - job.heap[job.pe]);
}

static void move(const struct task *task, const struct standin_team *team)
{
    size_t bytes = task->count * task->bytes;
    char *parts = malloc(bytes * (size_t)team->size + 1);

    if (parts == NULL) abort();
    for (int i = 0; i < team->size; i++) {
        size_t part = 0;
        if (task->kind == ALLTOALL || task->kind == REDUCE_SCATTER) part = (size_t)team->place;
        memcpy(parts + (size_t)i * bytes, of(team, task->source, i) + part * bytes, bytes);
    }
    if (task->kind == BROADCAST)
        memcpy(task->target, parts + (size_t)task->root * bytes, bytes);
    else if (task->kind == FCOLLECT || task->kind == ALLTOALL)
        memcpy(task->target, parts, bytes * (size_t)team->size);
    else
        reduce(task, parts, team->size);
    free(parts);
}

static void run(void *given)
{
    struct task *task = given;
    const struct standin_team *team = standin_team(task->team);

    standin_team_meet(task->team);
    if (task->kind != BARRIER) move(task, team);
    standin_team_meet(task->team);
    free(task);
}

static bool is_symmetric(const char *pointer)
{
    return pointer >= job.heap[job.pe] && pointer < job.heap[job.pe] + job.bytes;
}

static void check_call(const struct task *task, void *stream)
{
    const char *nvls = getenv("NVSHMEM_DISABLE_NVLS");

    standin_need_stream(stream);
    if (task->kind == FCOLLECT && nvls != NULL && nvls[0] == '0')
        standin_end("fcollect has too few teams");
}

static int start(struct task task, void *target, const void *source, void *stream)
{
    int (*enqueue)(void *, void (*)(void *), void *) = NULL;
    struct task *copy = malloc(sizeof *copy);

    task.target = target;
    task.source = source;
    *(void **)(void *)&enqueue = standin_driver("standin_enqueue");
    if (copy == NULL || standin_team(task.team) == NULL) abort();
    check_call(&task, stream);
    if (task.kind != BARRIER && (!is_symmetric(target) || !is_symmetric(source))) abort();
    *copy = task;
    return enqueue(stream, run, copy);
}

/* ---- exported functions ---- */

API(int, nvshmemx_barrier_on_stream, int team, void *stream)
{
    return start((struct task){.kind = BARRIER, .team = team}, NULL, NULL, stream);
}

API(int, nvshmemx_broadcastmem_on_stream, int team, void *target, const void *source, size_t count,
    int root, void *stream)
{
    struct task task = {.kind = BROADCAST, .team = team, .root = root, .count = count, .bytes = 1};

    return start(task, target, source, stream);
}

API(int, nvshmemx_fcollectmem_on_stream, int team, void *target, const void *source, size_t count,
    void *stream)
{
    struct task task = {.kind = FCOLLECT, .team = team, .count = count, .bytes = 1};

    return start(task, target, source, stream);
}

API(int, nvshmemx_alltoallmem_on_stream, int team, void *target, const void *source, size_t count,
    void *stream)
{
    struct task task = {.kind = ALLTOALL, .team = team, .count = count, .bytes = 1};

    return start(task, target, source, stream);
}

#define REDUCTION(type_, op_, name, kind_)                                                         \
    API(int, nvshmemx_##type_##_##op_##_##name##_on_stream, int team, void *target,                \
        const void *source, size_t count, void *stream)                                            \
    {                                                                                              \
        struct task task = {.kind = kind_,                                                         \
                            .type = TYPE_##type_,                                                  \
                            .op = OP_##op_,                                                        \
                            .team = team,                                                          \
                            .count = count,                                                        \
                            .bytes = type_bytes[TYPE_##type_]};                                    \
        return start(task, target, source, stream);                                                \
    }
#define BOTH(type, op)                                                                             \
    REDUCTION(type, op, reduce, REDUCE) REDUCTION(type, op, reducescatter, REDUCE_SCATTER)
#define ARITHMETIC(type) BOTH(type, sum) BOTH(type, prod) BOTH(type, min) BOTH(type, max)
#define INTEGER(type)    ARITHMETIC(type) BOTH(type, and) BOTH(type, or) BOTH(type, xor)
INTEGER(int8)
INTEGER(uint8)
INTEGER(int16)
INTEGER(uint16)
INTEGER(int32)
INTEGER(uint32)
INTEGER(int64)
INTEGER(uint64)
ARITHMETIC(half)
ARITHMETIC(bfloat16)
ARITHMETIC(float)
ARITHMETIC(double)
