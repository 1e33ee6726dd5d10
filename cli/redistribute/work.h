/* work.h - the line of progress of commands that fill, move and check tensors. */
#ifndef WEFT_CLI_REDISTRIBUTE_WORK_H
#define WEFT_CLI_REDISTRIBUTE_WORK_H

#include "redistribute/values.h"

/* Work is counted in elements that are filled; checking one takes as long as WORK_CHECK of them. */
enum { WORK_CHECK = 2 };

struct work {
    uint64_t done, total;
    uint64_t weight;   /* of an element of the part that runs */
    const char *doing; /* such as "filling the source of", before the number of ranks */
    int32_t ranks;
};

/* Elements of the shards of all ranks of SPEC. */
uint64_t work_elements(const weft_spec *spec);
/* The part DOING of WORK begins. */
void work_begin(struct work *work, const char *doing, int32_t ranks, uint64_t weight);
/* ELEMENTS more of the part are done.  SELF is a struct work. */
void work_add(void *self, uint64_t elements);

#endif
