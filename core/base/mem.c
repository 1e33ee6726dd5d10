/* mem.c - memory that is counted, and that fails where a test requests it. */
#include "base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_llong live;
static _Thread_local uint64_t made, fail_at;

void wf_mem_fail_at(uint64_t n)
{
    made = 0;
    fail_at = n;
}

uint64_t wf_mem_made(void)
{
    return made;
}

int64_t wf_mem_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

static bool may_allocate(void)
{
    return ++made != fail_at;
}

static void *count_block(void *pointer)
{
    if (pointer != NULL) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return pointer;
}

void *wf_alloc(size_t bytes)
{
    return may_allocate() ? count_block(malloc(bytes != 0 ? bytes : 1)) : NULL;
}

void *wf_calloc(size_t count, size_t bytes)
{
    if (!may_allocate()) return NULL;
    return count_block(count != 0 && bytes != 0 ? calloc(count, bytes) : calloc(1, 1));
}

void *wf_realloc(void *pointer, size_t bytes)
{
    if (pointer == NULL) return wf_alloc(bytes);
    return may_allocate() ? realloc(pointer, bytes != 0 ? bytes : 1) : NULL;
}

weft_status wf_grow(void *list, size_t bytes, size_t count, size_t *room)
{
    size_t wanted = *room != 0 ? 2 * *room : 16;
    void *items;

    if (count < *room) return WEFT_OK;
    memcpy(&items, list, sizeof items);
    items = wf_realloc(items, wanted * bytes);
    if (items == NULL) return wf_fail_memory(wanted * bytes);
    memcpy(list, &items, sizeof items);
    *room = wanted;
    return WEFT_OK;
}

void wf_free(void *pointer)
{
    if (pointer == NULL) return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(pointer);
}

char *wf_strndup(const char *text, size_t length)
{
    size_t kept = strnlen(text, length);
    char *copy = wf_alloc(kept + 1);

    if (copy == NULL) return NULL;
    memcpy(copy, text, kept);
    copy[kept] = '\0';
    return copy;
}

char *wf_strdup(const char *text)
{
    return wf_strndup(text, strlen(text));
}
