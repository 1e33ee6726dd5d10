/* arena.c - small objects that are freed together. */
#include "arena.h"

#include <string.h>

enum { BLOCK = 65536, ALIGNMENT = 16 };

struct wf_arena_block {
    struct wf_arena_block *next;
    int64_t unused; /* keeps what follows aligned */
};

void *wf_arena_alloc(struct wf_arena *arena, size_t bytes)
{
    size_t wanted = bytes > 0 ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    char *out;

    if (wanted < bytes) return NULL;
    if (wanted > arena->left) {
        size_t room = wanted > BLOCK / 4 ? wanted : BLOCK;
        struct wf_arena_block *block = wf_alloc(sizeof *block + room);
        if (block == NULL) return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        if (room == wanted) return block + 1; /* a block of its own: the last one stays in use */
        arena->next = (char *)(block + 1);
        arena->left = room;
    }
    out = arena->next;
    arena->next += wanted;
    arena->left -= wanted;
    return out;
}

char *wf_arena_text(struct wf_arena *arena, const char *text, size_t length)
{
    char *copy = wf_arena_alloc(arena, length + 1);

    if (copy == NULL) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

int64_t *wf_arena_sizes(struct wf_arena *arena, int32_t dims, const int64_t *sizes)
{
    int64_t *copy = wf_arena_alloc(arena, (size_t)dims * sizeof *copy);

    if (copy != NULL && dims > 0) memcpy(copy, sizes, (size_t)dims * sizeof *copy);
    return copy;
}

void wf_arena_free(struct wf_arena *arena)
{
    struct wf_arena_block *next;

    for (struct wf_arena_block *block = arena->blocks; block != NULL; block = next) {
        next = block->next;
        wf_free(block);
    }
    *arena = (struct wf_arena){0};
}
