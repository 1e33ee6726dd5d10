/* arena.h - memory that is freed at once. */
#ifndef WEFT_BASE_ARENA_H
#define WEFT_BASE_ARENA_H

#include "base.h"

struct wf_arena {
    struct wf_arena_block *blocks;
    char *next;
    size_t left;
};

void *wf_arena_alloc(struct wf_arena *arena, size_t bytes) WF_NODISCARD; /* aligned for int64_t */
char *wf_arena_text(struct wf_arena *arena, const char *text, size_t length) WF_NODISCARD;
int64_t *wf_arena_sizes(struct wf_arena *arena, int32_t dims, const int64_t *sizes) WF_NODISCARD;
void wf_arena_free(struct wf_arena *arena);

#endif
