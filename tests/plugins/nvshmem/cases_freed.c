/* cases_freed.c - memory that is freed in the order of a stream. */
#include "arena.h"

enum { PIECE = 400 << 10 }; /* two fit into the arena, three do not */

static void *take_on(struct rank *self, weft_stream *stream)
{
    void *memory = NULL;

    OK(weft_alloc_on(self->context, PIECE, stream, &memory));
    return memory;
}

/* Pieces of the driver, which cannot be freed while a stream is held. */
struct outside {
    void *pieces[4];
    int count;
};

/* Take a piece.  Returns true if it is in the arena, and frees it then. */
static bool fits(struct rank *self, struct outside *outside)
{
    void *memory = take(self, PIECE);

    if (!is_in_arena(memory)) {
        outside->pieces[outside->count++] = memory;
        return false;
    }
    give(self, memory);
    return true;
}

static void memory_is_free_when_its_stream_has_come_so_far(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 1);
    struct outside outside = {.count = 0};
    weft_stream *held = NULL;
    void *first, *second;

    if (symm == NULL || !OK(weft_stream_create(self->context, &held))) return;
    OK(weft_symm_wait_from(symm, self->number, 0, WEFT_COMPARE_EQ, 1, WEFT_FOREVER, held));
    first = take_on(self, held);
    second = take_on(self, self->stream);
    check(self, is_in_arena(first) && is_in_arena(second), "the arena has no room");
    OK(weft_free_on(self->context, first, held));
    check(self, !fits(self, &outside), "memory that a stream still uses is taken again");
    OK(weft_free_on(self->context, second, self->stream));
    finish(self, self->stream);
    check(self, fits(self, &outside), "memory waits for a stream that does not use it");
    second = take(self, PIECE);
    check(self, !fits(self, &outside), "memory that a stream still uses is taken again");
    OK(weft_symm_signal_to(symm, self->number, 0, 1, WEFT_SIGNAL_SET, NULL));
    finish(self, held);
    check(self, fits(self, &outside), "memory is lost that a stream has freed");
    give(self, second);
    for (int i = 0; i < outside.count; i++)
        give(self, outside.pieces[i]);
    weft_stream_release(&held);
    weft_symm_release(&symm);
}

const struct symm_case freed_cases[] = {{"memory_is_free_when_its_stream_has_come_so_far",
                                         memory_is_free_when_its_stream_has_come_so_far, 1},
                                        {NULL, NULL, 0}};
