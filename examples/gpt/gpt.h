/* gpt.h - parameters of the model that are sharded among ranks (gpt.c), and training over several
 * axes of a mesh (parallel.c). */
#ifndef EXAMPLES_GPT_GPT_H
#define EXAMPLES_GPT_GPT_H

#include "kernels.h"
#include "times.h"

#include <weft/parallel.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { STEPS = 50 };

/* The parameters of a block of the model, with the moments of the optimizer. */
struct block {
    int count;
    weft_tensor *stored[MOST_PARAMETERS], *first[MOST_PARAMETERS], *second[MOST_PARAMETERS];
    weft_fsdp_group *group;
    float *wide[MOST_PARAMETERS]; /* with --bf16: the gathered parameters as f32 */
};

/* ---- gpt.c ---- */

extern weft_context *ctx;
extern weft_mesh *mesh;
extern weft_fsdp *fsdp;
extern struct block blocks[MOST_BLOCKS];
extern struct times times;
extern bool is_bf16; /* parameters and gradients are sent as bf16, and kernels compute in f32 */
extern int32_t keep; /* ranks from which the backward pass gathers; 0: from all shards */
extern double clip_value; /* limit of each element of a gradient; 0: the norm is limited */

/* Make the parameters of block INDEX, and a group of them. */
void make_block(int index);
void set_prefetch(void);
/* Set WHOLE to the gathered parameters of a block, as f32. */
void take_whole(struct block *block, const float **whole);
/* A new gradient of f32, all zeros, of parameter I. */
weft_tensor *new_gradient(const struct block *block, int i);
/* Gather the parameters of a block, unless they are on the way. */
void gather(struct block *block, enum weft_fsdp_phase phase, const float **whole);
/* End the forward pass of block B: free its gathered parameters, or all but what `keep` says. */
void end_forward(int b);
/* Begin the backward pass of block B: gather its parameters, and make gradients with MEMORY. */
void begin_backward(int b, const float **whole, weft_tensor **gradients, float **memory);
/* End it: reduce the gradients, which are released. */
void end_backward(int b, weft_tensor **gradients);
/* One step of the optimizer for the blocks that have a group. */
void update_all(int step, const weft_clip_options *options);
void end_block(struct block *block);

/* ---- parallel.c ---- */

/* Train on the mesh TEXT, which has some of the axes dp, cp and tp; with IS_SPLIT, the ranks of tp
 * also share the rows between their matmuls. */
void train_parallel(const char *text, bool is_split, int steps);
/* The size of the axis NAME of GIVEN; 1 without it. */
int axis_size(const weft_mesh *given, const char *name);

#endif
