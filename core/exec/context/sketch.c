/* sketch.c - communicators that only know their ranks and the backend, for size.c. */
#include "kept.h"

static void free_sketch(weft_comm *sketch)
{
    wf_free(sketch->world_ranks);
    wf_free(sketch);
}

static weft_status make_sketch(const weft_comm *parent, const int32_t *ranks, int32_t count,
                               weft_comm **out)
{
    weft_comm *sketch = wf_calloc(1, sizeof *sketch);

    if (sketch == NULL) return wf_fail_memory(sizeof *sketch);
    sketch->world_ranks = wf_alloc((size_t)count * sizeof *sketch->world_ranks);
    if (sketch->world_ranks == NULL) {
        wf_free(sketch);
        return wf_fail_memory((size_t)count * sizeof *sketch->world_ranks);
    }
    sketch->made = parent->made;
    sketch->table = parent->table;
    sketch->device = parent->device;
    sketch->context = parent->context;
    sketch->averages = parent->averages;
    sketch->size = count;
    for (int32_t i = 0; i < count; i++) {
        sketch->world_ranks[i] = weft_comm_world_rank(parent, ranks[i]);
        if (ranks[i] == parent->rank) sketch->rank = i;
    }
    *out = sketch;
    return WEFT_OK;
}

weft_status wf_bound_group(struct weft_bound *bound, weft_comm *parent, const int32_t *ranks,
                           int32_t count, weft_status status, weft_comm **out)
{
    weft_comm *sketch = NULL;

    if (bound == NULL || !bound->sized_only)
        return wf_comm_group(parent, "binding a step", ranks, count, status, false, out);
    WF_TRY(make_sketch(parent, ranks, count, &sketch));
    sketch->next_group = bound->sketches;
    bound->sketches = sketch;
    *out = sketch;
    return status;
}

void wf_sketches_free(struct weft_bound *bound)
{
    while (bound->sketches != NULL) {
        weft_comm *sketch = bound->sketches;

        bound->sketches = sketch->next_group;
        free_sketch(sketch);
    }
}
