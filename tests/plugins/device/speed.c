/* speed.c - see speed.h. */
#include "speed.h"
#include "board.h"

enum { WARM_UP = 2 };

double speed_of(void (*run)(void *self), void *self, int rounds)
{
    uint64_t least = UINT64_MAX;

    for (int i = -WARM_UP; i < rounds; i++) {
        uint64_t begin, taken;

        rank_wait();
        board_meet();
        begin = now_ns();
        run(self);
        rank_wait();
        taken = board_maximum(now_ns() - begin);
        if (i >= 0 && taken < least) least = taken;
    }
    return (double)least;
}

void *speed_memory(uint64_t bytes)
{
    void *memory = NULL;

    must(weft_alloc(context, bytes, WEFT_MEMORY_DEVICE, &memory), "weft_alloc");
    must(weft_memory_fill(context, memory, 0, bytes, stream), "weft_memory_fill");
    rank_wait();
    return memory;
}
