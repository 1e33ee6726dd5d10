/* owners.c - deals tensors to owners so that their loads are about equal.
 *
 * The largest tensor first, each to the owner with the least load (longest processing time first).
 * Tensors are a heap by bytes, owners one by load; the numbers break ties, so the result is the
 * same on all ranks. */
#include "shard.h"

struct tensor {
    uint64_t bytes;
    size_t index;
};

struct owner {
    uint64_t load;
    int32_t number;
};

static bool is_larger(const struct tensor *a, const struct tensor *b)
{
    return a->bytes > b->bytes || (a->bytes == b->bytes && a->index < b->index);
}

/* Move the tensor at AT of the heap down to its place; the largest is first. */
static void sink_tensor(struct tensor *heap, size_t count, uint64_t at)
{
    struct tensor moved = heap[at];
    uint64_t child;

    while ((child = 2 * at + 1) < count) {
        if (child + 1 < count && is_larger(&heap[child + 1], &heap[child])) child++;
        if (!is_larger(&heap[child], &moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static bool has_less(const struct owner *a, const struct owner *b)
{
    return a->load < b->load || (a->load == b->load && a->number < b->number);
}

/* Move the first owner of the heap, whose load has grown, down to its place; the least loaded one
 * is first. */
static void sink_first_owner(struct owner *heap, int32_t count)
{
    struct owner moved = heap[0];
    int64_t at = 0, child;

    while ((child = 2 * at + 1) < count) {
        if (child + 1 < count && has_less(&heap[child + 1], &heap[child])) child++;
        if (!has_less(&heap[child], &moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static weft_status check_sum(size_t count, const uint64_t *bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (bytes[i] > UINT64_MAX - sum)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_owners_balance: the bytes add up beyond 2^64 - 1");
        sum += bytes[i];
    }
    return WEFT_OK;
}

weft_status weft_owners_balance(size_t count, const uint64_t *bytes, int32_t owners, int32_t *out)
{
    struct tensor *tensors;
    struct owner *heap;

    if (owners < 1)
        return wf_fail(WEFT_ERR_INVALID, "weft_owners_balance: owners is %d; it must be at least 1",
                       owners);
    if (count == 0) return WEFT_OK;
    WF_TRY(wf_require(bytes, "weft_owners_balance: bytes"));
    WF_TRY(wf_require(out, "weft_owners_balance: out"));
    WF_TRY(check_sum(count, bytes));
    if ((size_t)owners > count) owners = (int32_t)count; /* the others get nothing */
    tensors = wf_alloc(count * sizeof *tensors);
    heap = wf_alloc((size_t)owners * sizeof *heap);
    if (tensors == NULL || heap == NULL) {
        wf_free(tensors);
        wf_free(heap);
        return wf_fail_memory(count * sizeof *tensors + (size_t)owners * sizeof *heap);
    }
    for (size_t i = 0; i < count; i++)
        tensors[i] = (struct tensor){bytes[i], i};
    for (uint64_t i = count / 2; i-- > 0;)
        sink_tensor(tensors, count, i);
    for (int32_t i = 0; i < owners; i++)
        heap[i] = (struct owner){0, i};
    for (size_t left = count; left > 0;) {
        out[tensors[0].index] = heap[0].number;
        heap[0].load += tensors[0].bytes;
        sink_first_owner(heap, owners);
        tensors[0] = tensors[--left];
        if (left > 0) sink_tensor(tensors, left, 0);
    }
    wf_free(tensors);
    wf_free(heap);
    return WEFT_OK;
}
