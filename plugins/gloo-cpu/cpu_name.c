/* cpu_name.c - what ranks call beside the collectives has a name too. */
#include "cpu.h"

const char *cpu_call_name(uint32_t collective)
{
    if (collective == WEFT_COLL_COUNT) return "pull";
    if (collective == WEFT_COLL_COUNT + 1) return "check";
    return plug_collective_name(collective);
}
