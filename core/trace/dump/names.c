/* names.c - a record in the words of PyTorch's flight-recorder analyser.
 *
 * The analyser compares the entries of an operation on all its ranks.  It expects equal sizes
 * except where noted, and it stops at a name that it does not know.  So sizes that differ between
 * ranks of a correct program are not stated, and an operation with a root states the same sizes on
 * all ranks, as PyTorch's does, which works in place. */
#include "dump.h"

#include "weft/cost.h"

#include <string.h>

const char *wf_dump_transport(const char *backend)
{
    static const char *const known[][2] = {{"nccl", "nccl"}, {"rccl", "rccl"}, {"nvshmem", "nccl"}};

    for (size_t i = 0; i < WF_COUNT(known); i++)
        if (strcmp(backend, known[i][0]) == 0) return known[i][1];
    return "gloo";
}

const char *wf_dump_dtype(uint32_t dtype)
{
    static const char *const names[WEFT_DTYPE_COUNT] = {
        [WEFT_DTYPE_BOOL] = "Bool",
        [WEFT_DTYPE_I8] = "Char",
        [WEFT_DTYPE_U8] = "Byte",
        [WEFT_DTYPE_I16] = "Short",
        [WEFT_DTYPE_U16] = "UInt16",
        [WEFT_DTYPE_I32] = "Int",
        [WEFT_DTYPE_U32] = "UInt32",
        [WEFT_DTYPE_I64] = "Long",
        [WEFT_DTYPE_U64] = "UInt64",
        [WEFT_DTYPE_F16] = "Half",
        [WEFT_DTYPE_BF16] = "BFloat16",
        [WEFT_DTYPE_F32] = "Float",
        [WEFT_DTYPE_F64] = "Double",
        [WEFT_DTYPE_F8E4M3] = "Float8_e4m3fn",
        [WEFT_DTYPE_F8E5M2] = "Float8_e5m2",
        [WEFT_DTYPE_C64] = "ComplexFloat",
        [WEFT_DTYPE_C128] = "ComplexDouble",
    };

    return dtype < WEFT_DTYPE_COUNT && names[dtype] != NULL ? names[dtype] : "Undefined";
}

/* ---- operations ---- */

static const char *name_operation(uint32_t operation)
{
    static const char *const names[WEFT_RECORD_OPERATION_COUNT] = {
        [WEFT_RECORD_ALL_REDUCE] = "all_reduce",
        [WEFT_RECORD_ALL_GATHER] = "all_gather",
        [WEFT_RECORD_REDUCE_SCATTER] = "reduce_scatter",
        [WEFT_RECORD_ALL_TO_ALL] = "all_to_all",
        [WEFT_RECORD_BROADCAST] = "broadcast",
        [WEFT_RECORD_REDUCE] = "reduce",
        [WEFT_RECORD_GATHER] = "gather",
        [WEFT_RECORD_SCATTER] = "scatter",
        [WEFT_RECORD_BARRIER] = "all_reduce_barrier",
        [WEFT_RECORD_ALL_GATHER_V] = "all_gather_v",
        [WEFT_RECORD_REDUCE_SCATTER_V] = "reduce_scatter_v",
        [WEFT_RECORD_ALL_TO_ALL_V] = "all_to_all",
        [WEFT_RECORD_GATHER_V] = "gather",
        [WEFT_RECORD_SCATTER_V] = "scatter",
        [WEFT_RECORD_SEND] = "send",
        [WEFT_RECORD_RECEIVE] = "recv",
    };

    return operation < WEFT_RECORD_OPERATION_COUNT ? names[operation] : NULL;
}

/* The collective that a step is for the analyser.  The backend may run it another way: ranks that
 * can read each other's memory do so. */
static uint32_t operation_of(const weft_record *record)
{
    switch (record->step_kind) {
    case WEFT_STEP_ALL_GATHER:
        return record->operation == WEFT_RECORD_ALL_GATHER ? WEFT_RECORD_ALL_GATHER
                                                           : WEFT_RECORD_ALL_GATHER_V;
    case WEFT_STEP_REDUCE_SCATTER:
        return record->operation == WEFT_RECORD_REDUCE_SCATTER ? WEFT_RECORD_REDUCE_SCATTER
                                                               : WEFT_RECORD_REDUCE_SCATTER_V;
    case WEFT_STEP_ALL_REDUCE:
        return WEFT_RECORD_ALL_REDUCE;
    case WEFT_STEP_ALL_TO_ALL:
    case WEFT_STEP_PERMUTE:
    case WEFT_STEP_EXCHANGE:
        return WEFT_RECORD_ALL_TO_ALL_V;
    case WEFT_NO_STEP_KIND:
        return record->operation;
    default:
        return WEFT_RECORD_OPERATION_COUNT;
    }
}

const char *wf_dump_operation(const weft_record *record)
{
    return name_operation(operation_of(record));
}

/* ---- sizes ---- */

static uint64_t lesser(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t greater(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/* A step may cast, and RECORD does not have the dtypes of its input and output.  Data travels in
 * the narrower dtype if shards are gathered, and in the wider one if they are reduced. */
static struct wf_dump_sizes sizes_of_step(uint32_t operation, struct wf_dump_sizes own,
                                          uint64_t ranks)
{
    switch (operation) {
    case WEFT_RECORD_ALL_GATHER:
        own.in = lesser(own.in, own.out / ranks);
        return (struct wf_dump_sizes){own.in, own.in * ranks};
    case WEFT_RECORD_REDUCE_SCATTER:
        own.out = greater(own.out, own.in / ranks);
        return (struct wf_dump_sizes){own.out * ranks, own.out};
    case WEFT_RECORD_ALL_REDUCE:
        own.in = greater(own.in, own.out);
        return (struct wf_dump_sizes){own.in, own.in};
    case WEFT_RECORD_ALL_GATHER_V:
        return (struct wf_dump_sizes){WF_UNSTATED, own.out};
    case WEFT_RECORD_REDUCE_SCATTER_V:
        return (struct wf_dump_sizes){own.in, WF_UNSTATED};
    default:
        return (struct wf_dump_sizes){WF_UNSTATED, WF_UNSTATED};
    }
}

struct wf_dump_sizes wf_dump_sizes_of(const weft_record *record, int32_t size)
{
    uint64_t bytes = record->dtype < WEFT_DTYPE_COUNT ? wf_dtype_bytes(record->dtype) : 1;
    struct wf_dump_sizes own = {record->sent / bytes, record->received / bytes};

    if (record->step_kind != WEFT_NO_STEP_KIND)
        return sizes_of_step(operation_of(record), own, size > 0 ? (uint64_t)size : 1);
    switch (record->operation) {
    case WEFT_RECORD_BROADCAST:
    case WEFT_RECORD_RECEIVE:
        return (struct wf_dump_sizes){own.out, own.out};
    case WEFT_RECORD_REDUCE:
    case WEFT_RECORD_SEND:
        return (struct wf_dump_sizes){own.in, own.in};
    case WEFT_RECORD_ALL_GATHER_V:
    case WEFT_RECORD_GATHER_V:
        return (struct wf_dump_sizes){WF_UNSTATED, own.out};
    case WEFT_RECORD_REDUCE_SCATTER_V:
    case WEFT_RECORD_SCATTER_V:
        return (struct wf_dump_sizes){own.in, WF_UNSTATED};
    default:
        return own;
    }
}

/* ---- lists of ranks ---- */

bool wf_ranks_are_complete(const char *list)
{
    size_t length = strlen(list);

    return length > 0 && list[length - 1] != '.';
}

static int64_t read_decimal(const char **at)
{
    int64_t number = 0;

    for (; **at >= '0' && **at <= '9'; ++*at)
        number = number * 10 + (**at - '0');
    return number;
}

bool wf_ranks_next(const char **at, int64_t *rank, int64_t *left)
{
    if (*left > 0) {
        --*left;
        ++*rank;
        return true;
    }
    if (**at == ',') ++*at;
    if (**at < '0' || **at > '9') return false;
    *rank = read_decimal(at);
    if (**at == '-') {
        ++*at;
        *left = read_decimal(at) - *rank;
    }
    return true;
}
