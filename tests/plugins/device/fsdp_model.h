/* fsdp_model.h - parameters with the shapes of a GPT-2 of 124 million, sharded along the mesh of
 * rank.h: a group for each block, and one for the rest. */
#ifndef WEFT_TESTS_GPU_FSDP_MODEL_H
#define WEFT_TESTS_GPU_FSDP_MODEL_H

#include "rank.h"
#include "weft/parallel.h"

enum {
    MODEL_BLOCKS = 12,
    MODEL_COMPUTES = 3 * MODEL_BLOCKS /* in a step */,
    MODEL_GROUPS = MODEL_BLOCKS + 1,
    MODEL_MOST = 12
};

/* The group with index MODEL_BLOCKS has the embeddings and the last norm. */
struct model {
    weft_fsdp *fsdp;
    weft_fsdp_group *groups[MODEL_GROUPS];
    weft_tensor *stored[MODEL_GROUPS][MODEL_MOST];
    weft_tensor *gradients[MODEL_GROUPS][MODEL_MOST]; /* of zeros; NULL: made in each step */
    uint32_t counts[MODEL_GROUPS];
    uint64_t bytes[MODEL_GROUPS]; /* of the gathered parameters, in f32 */
};

/* Make the model; sizes of vocabulary and channels are divided by DIVISOR, which is 1 or more. */
void model_begin(struct model *model, int divisor);
void model_end(struct model *model);

/* Make the gradients before a step.  The time of a step is then that of communication alone. */
void model_make_gradients(struct model *model);

/* A training step without compute: gather each block for the forward pass and for the backward
 * pass, reduce gradients of zeros.  COMPUTE, which may be NULL, posts the compute of a block in the
 * forward pass, and half of that in the backward pass. */
void model_step_blocks(struct model *model, void (*compute)(void));
/* The same, with the group of embeddings, which stays gathered in between. */
void model_step(struct model *model, void (*compute)(void));

/* Halves of the exchange of one group, with the wait for them. */
void model_gather(struct model *model, int group);
void model_reduce(struct model *model, int group, weft_tensor *const *gradients);

#endif
