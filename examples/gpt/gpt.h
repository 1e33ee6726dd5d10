/* gpt.h - parameters of the model that are sharded among ranks (gpt.c), and training over several
 * axes of a mesh (parallel.c). */
#ifndef EXAMPLES_GPT_GPT_H
#define EXAMPLES_GPT_GPT_H

#include "kernels.h"
#include "times.h"

#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { STEPS = 50, SEQUENCES = 12 }; /* sequences of a step, on all ranks together */

/* The parameters of a block of the model, with the moments of the optimizer. */
struct block {
    int count;
    weft_tensor *stored[MOST_PARAMETERS], *first[MOST_PARAMETERS], *second[MOST_PARAMETERS];
    weft_fsdp_group *group;
};

/* ---- gpt.c ---- */

extern weft_context *ctx;
extern weft_mesh *mesh;
extern weft_fsdp *fsdp;
extern struct block blocks[BLOCKS];
extern struct times times;

/* REPLICAS names the axis along which gradients are averaged besides "dp"; NULL: none. */
void make_block(int index, const char *replicas);
void set_prefetch(void);
/* Gather the parameters of a block, unless they are on the way. */
void gather(const struct block *block, enum weft_fsdp_phase phase, const float **whole);
void update_all(int step);
void end_block(struct block *block);

/* ---- parallel.c ---- */

/* Train on the mesh TEXT, which has some of the axes dp, cp and tp; with IS_SPLIT, the ranks of tp
 * also share the rows between their matmuls. */
void train_parallel(const char *text, bool is_split, int steps);
/* The size of the axis NAME of GIVEN; 1 without it. */
int axis_size(const weft_mesh *given, const char *name);

#endif
