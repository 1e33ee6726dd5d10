/* arena.c - the effects of a full arena on one rank or on all:
 *
 *     WEFT_NVSHMEM_HEAP=1M weft run -n 3 arena_rank [CASE]
 *
 * Prints a line for each case that fails, and one at the end. */
#include "arena.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void meet_all(struct rank *self)
{
    if (OK(weft_barrier(self->world, NULL))) finish(self, NULL);
}

static char *start;

bool is_in_arena(const void *memory)
{
    return (const char *)memory >= start && (const char *)memory < start + ARENA;
}

void fill(struct rank *self, struct filling *filling)
{
    filling->count = 0;
    for (uint64_t bytes = ARENA; bytes >= 256; bytes /= 2) {
        void *memory = take(self, bytes);

        while (memory != NULL && is_in_arena(memory)) {
            if (!check(self, filling->count < MAX_PIECES, "the arena has no end")) return;
            filling->pieces[filling->count++] = memory;
            memory = take(self, bytes);
        }
        give(self, memory);
    }
}

void empty(struct rank *self, struct filling *filling)
{
    while (filling->count > 0)
        give(self, filling->pieces[--filling->count]);
}

void *take_outside(struct rank *self, uint64_t bytes)
{
    struct filling filling;
    void *memory;

    fill(self, &filling);
    memory = take(self, bytes);
    check(self, !is_in_arena(memory), "memory of an arena that is full");
    empty(self, &filling);
    return memory;
}

int main(int argc, char **argv)
{
    /* The last groups leave memory of the arena allocated. */
    static const struct symm_case *const groups[] = {message_cases, freed_cases, window_cases,
                                                     staging_cases, end_cases};
    struct rank self = {0};

    if (weft_init(NULL, &self.context) != WEFT_OK) {
        fprintf(stderr, "weft_init: %s\n", weft_last_error());
        return 2;
    }
    self.world = weft_world(self.context);
    self.number = weft_rank(self.context);
    self.size = weft_size(self.context);
    self.name = "beginning";
    ok(&self, weft_stream_create(self.context, &self.stream), "weft_stream_create");
    start = take(&self, 256); /* before any allocation */
    give(&self, start);
    run_cases(&self, groups, COUNT(groups), argc > 1 ? argv[1] : NULL);
    weft_stream_release(&self.stream);
    weft_context_release(&self.context);
    if (self.failures == 0) printf("rank %d: all as it should be\n", self.number);
    return self.failures > 0;
}
