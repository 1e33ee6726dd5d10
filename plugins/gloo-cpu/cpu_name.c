/* cpu_name.c - names of the collectives, and of the other calls of ranks. */
#include "cpu.h"

const char *cpu_call_name(uint32_t collective)
{
    if (collective == WEFT_COLL_COUNT) return "pull";
    if (collective == WEFT_COLL_COUNT + 1) return "check";
    return kit_collective_name(collective);
}
