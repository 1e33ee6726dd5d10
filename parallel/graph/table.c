/* table.c - the tensors of a graph by name, and the memory of a graph. */
#include "graph/graph.h"

#include <string.h>

enum { BLOCK = 1 << 14 };

struct wf_graph_block {
    struct wf_graph_block *next;
    size_t used, bytes;
    max_align_t data[];
};

void *wf_graph_alloc(weft_graph *g, size_t bytes)
{
    struct wf_graph_block *b = g->blocks;
    size_t most = bytes > BLOCK ? bytes : BLOCK;
    void *found;

    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (b == NULL || b->bytes - b->used < bytes) {
        most += sizeof(max_align_t);
        b = wf_alloc(sizeof *b + most);
        if (b == NULL) return NULL;
        b->next = g->blocks;
        b->used = 0;
        b->bytes = most;
        g->blocks = b;
    }
    found = (char *)b->data + b->used;
    b->used += bytes;
    memset(found, 0, bytes);
    return found;
}

/* Make room for one more entry of an array of *ROOM entries of BYTES. */
static weft_status grow(void *array, uint32_t count, uint32_t *room, size_t bytes)
{
    void **list = array, *grown;
    uint32_t more = *room != 0 ? 2 * *room : 64;

    if (count < *room) return WEFT_OK;
    grown = wf_realloc(*list, more * bytes);
    if (grown == NULL) return wf_fail_memory(more * bytes);
    *list = grown;
    *room = more;
    return WEFT_OK;
}

weft_status wf_graph_add_line(weft_graph *g, struct wf_graph_line **out)
{
    void *lines = g->lines;
    weft_status status = grow(&lines, g->line_count, &g->line_room, sizeof *g->lines);

    g->lines = lines;
    WF_TRY(status);
    *out = &g->lines[g->line_count++];
    **out = (struct wf_graph_line){.phase = g->phase,
                                   .repeat = 1,
                                   .time_ns = WF_GRAPH_UNKNOWN,
                                   .alloc = WF_GRAPH_UNKNOWN,
                                   .flops = -1};
    return WEFT_OK;
}

/* ---- names ---- */

/* The slot of NAME, or the free one where it belongs. */
static uint32_t *slot_of(const weft_graph *g, const char *name, size_t length)
{
    uint32_t at = (uint32_t)(wf_hash(0, name, length) >> 32) & (g->slot_count - 1);

    for (;; at = (at + 1) & (g->slot_count - 1)) {
        const char *other = g->slots[at] != 0 ? g->tensors[g->slots[at] - 1].name : NULL;
        if (other == NULL || (strncmp(other, name, length) == 0 && other[length] == '\0'))
            return &g->slots[at];
    }
}

int32_t wf_graph_find(const weft_graph *g, const char *name, size_t length)
{
    return g->slot_count == 0 ? -1 : (int32_t)*slot_of(g, name, length) - 1;
}

/* At least half of the slots are free. */
static weft_status grow_slots(weft_graph *g)
{
    uint32_t count = g->slot_count != 0 ? 2 * g->slot_count : 256, *before = g->slots;

    if (2 * (g->tensor_count + 1) <= g->slot_count) return WEFT_OK;
    g->slots = wf_calloc(count, sizeof *g->slots);
    if (g->slots == NULL) {
        g->slots = before;
        return wf_fail_memory(count * sizeof *g->slots);
    }
    wf_free(before);
    g->slot_count = count;
    for (uint32_t i = 0; i < g->tensor_count; i++)
        if (!g->tensors[i].hidden)
            *slot_of(g, g->tensors[i].name, strlen(g->tensors[i].name)) = i + 1;
    return WEFT_OK;
}

weft_status wf_graph_define(weft_graph *g, const char *name, size_t length, uint32_t line,
                            bool hidden, int32_t *out)
{
    void *tensors = g->tensors;
    char *copy = wf_graph_alloc(g, length + 1);
    weft_status status;

    if (copy == NULL) return wf_fail_memory(length + 1);
    memcpy(copy, name, length);
    status = grow(&tensors, g->tensor_count, &g->tensor_room, sizeof *g->tensors);
    g->tensors = tensors;
    if (status == WEFT_OK) status = grow_slots(g);
    WF_TRY(status);
    if (!hidden) *slot_of(g, name, length) = g->tensor_count + 1;
    g->tensors[g->tensor_count] =
        (struct wf_graph_tensor){.name = copy, .line = line, .hidden = hidden};
    *out = (int32_t)g->tensor_count++;
    return WEFT_OK;
}

void weft_graph_release(weft_graph **graph)
{
    weft_graph *g;

    if (graph == NULL || *graph == NULL) return;
    g = *graph;
    *graph = NULL;
    for (uint32_t i = 0; i < g->tensor_count; i++)
        weft_spec_release(&g->tensors[i].spec);
    for (uint32_t i = 0; i < g->line_count; i++) {
        struct wf_graph_line *line = &g->lines[i];
        weft_op_choice_release(&line->choice);
        for (uint32_t j = 0; line->after != NULL && j < line->output_count; j++)
            weft_plan_release(&line->after[j]);
        wf_free(line->error);
    }
    while (g->blocks != NULL) {
        struct wf_graph_block *next = g->blocks->next;
        wf_free(g->blocks);
        g->blocks = next;
    }
    wf_program_free(g->program);
    weft_styles_release(&g->styles);
    weft_cost_table_release(&g->costs);
    weft_mesh_release(&g->mesh);
    weft_mesh_release(&g->whole);
    wf_text_free(&g->rules);
    wf_free(g->lines);
    wf_free(g->tensors);
    wf_free(g->slots);
    wf_free(g);
}
