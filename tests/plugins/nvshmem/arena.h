/* arena.h - an arena of 1 MiB, and how to fill it. */
#ifndef WEFT_TESTS_NVSHMEM_ARENA_H
#define WEFT_TESTS_NVSHMEM_ARENA_H

#include "system/symm/rank.h"

enum { ARENA = 1 << 20, MAX_PIECES = 64 };

struct filling {
    void *pieces[MAX_PIECES];
    int count;
};

bool is_in_arena(const void *memory);
/* Allocate all of the arena, and free it. */
void fill(struct rank *self, struct filling *filling);
void empty(struct rank *self, struct filling *filling);
/* Memory of the driver, which is used when the arena is full. */
void *take_outside(struct rank *self, uint64_t bytes);

double seconds(void);
/* A barrier of all ranks.  Waits for its end. */
void meet_all(struct rank *self);

extern const struct symm_case window_cases[], staging_cases[], freed_cases[],
    message_cases[]; /* each ends with a NULL name */

#endif
