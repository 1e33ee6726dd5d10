/* overlap.c - what a kernel writes overlaps nothing else that it reads or writes. */
#include "apply.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 16 }; /* tensors without an allocation; a range has room for their marks */

/* The bytes of a shard; of a shard with gaps, those of its first element, because such shards may
 * interleave. */
struct range {
    uintptr_t begin, end;
    uint32_t tensor;
    bool is_written;
};

/* Of ranges that begin together, those that are written come first. */
static int compare(const void *left, const void *right)
{
    const struct range *a = left, *b = right;

    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->is_written != b->is_written) return a->is_written ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* False for the form `NAME.out`, whose last inputs are the memory of the outputs. */
static bool is_in_place(const struct wf_written *w)
{
    for (uint32_t i = 0; i < w->outputs; i++)
        if (w->memories[i] != w->inputs - w->outputs + i + 1) return true;
    return false;
}

/* The ranges of the shards.  An output stands for the input that it is in place of, which has a 1
 * in IS_MEMORY. */
static uint32_t list_ranges(const struct wf_written *w, const unsigned char *is_memory,
                            struct range *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < w->inputs + w->outputs; i++) {
        const weft_tensor_local *one = &w->locals[i];
        uintptr_t begin = (uintptr_t)one->memory;
        uint64_t elements;

        if (one->spec == NULL || one->shard->elements == 0) continue;
        if (i < w->inputs && is_memory[i]) continue;
        elements = wf_shard_is_dense(one->shard, one->strides) ? (uint64_t)one->shard->elements : 1;
        out[count++] =
            (struct range){begin, begin + elements * wf_dtype_bytes(weft_spec_dtype(one->spec)), i,
                           i >= w->inputs};
    }
    return count;
}

static weft_status refuse(const struct wf_written *w, const struct range *a, const struct range *b)
{
    const struct range *ranges[] = {a->tensor < b->tensor ? a : b, a->tensor < b->tensor ? b : a};
    struct wf_text text = {0};
    weft_status status;

    wf_text_add(&text, "on rank %d, ", w->rank);
    for (int i = 0; i < 2; i++) {
        uint32_t tensor = ranges[i]->tensor;
        bool output = tensor >= w->inputs;

        wf_text_add(&text, "%s %u (%llu bytes at %p)%s", output ? "output" : "input",
                    output ? tensor - w->inputs : tensor,
                    (unsigned long long)(ranges[i]->end - ranges[i]->begin),
                    (void *)ranges[i]->begin, i == 0 ? " and " : " overlap");
    }
    wf_text_add(&text, is_in_place(w)
                           ? "; an output in place may be the memory of another input, but "
                             "must not overlap it otherwise"
                           : "; only an operator in place, NAME_, writes to an input");
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_INVALID, "%s", text.data);
    wf_text_free(&text);
    return status;
}

/* RANGES are in order. */
static weft_status find_overlap(const struct wf_written *w, uint32_t count,
                                const struct range *ranges)
{
    const struct range *read = NULL, *written = NULL; /* those that end last */
    bool in_place = is_in_place(w);

    for (uint32_t i = 0; i < count; i++) {
        const struct range *r = &ranges[i], **last = r->is_written ? &written : &read;

        if (r->is_written && read != NULL && read->end > r->begin) return refuse(w, read, r);
        if (written != NULL && written->end > r->begin) {
            bool same = written->begin == r->begin && written->end == r->end;

            if (!same || r->is_written || !in_place) return refuse(w, written, r);
        }
        if (*last == NULL || (*last)->end < r->end) *last = r;
    }
    return WEFT_OK;
}

weft_status wf_written_check(struct wf_written *w)
{
    uint32_t tensors = w->inputs + w->outputs;
    size_t bytes = tensors * (sizeof(struct range) + 1);
    struct range few[FEW + 1], *ranges = few;
    unsigned char *is_memory;
    uint32_t count;

    if (tensors > FEW) {
        if (w->room == NULL) w->room = wf_alloc(bytes);
        if (w->room == NULL) return wf_fail_memory(bytes);
        ranges = w->room;
    }
    is_memory = (unsigned char *)(ranges + tensors);
    memset(is_memory, 0, tensors);
    for (uint32_t i = 0; i < w->outputs; i++)
        if (w->memories[i] > 0) is_memory[w->memories[i] - 1] = 1;
    count = list_ranges(w, is_memory, ranges);
    qsort(ranges, count, sizeof *ranges, compare);
    return find_overlap(w, count, ranges);
}
