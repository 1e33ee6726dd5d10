/* layers.h - layers that the ranks of the axes "tp" and "cp" compute together.
 *
 * A rank of tp has some heads and some hidden elements.  A rank of cp has some places of every
 * sequence.  Between matmuls a rank has all rows, or with sequence parallel its share of them. */
#ifndef EXAMPLES_GPT_LAYERS_H
#define EXAMPLES_GPT_LAYERS_H

#include "gpt.h"

/* What this rank computes. */
struct part {
    weft_comm *tp;
    weft_overlap *overlap; /* NULL: every rank of tp has all rows between matmuls */
    weft_cp *cp;
    weft_spec *shared;             /* rows between matmuls, of all ranks of tp */
    weft_spec *heads, *logarithms; /* what this rank's attention computes */
    int count, places;             /* sequences, and places of each */
    int rows;                      /* COUNT x PLACES */
    int first, own;                /* rows between matmuls */
    int width, hidden;             /* elements of the heads, and of the hidden layer */
};

/* What the backward pass of a layer needs. */
struct activations {
    float *x;                 /* own rows: the input */
    float *middle;            /* own rows: after the attention */
    float *normal1, *normal2; /* all rows: inputs of matmuls */
    float *qkv, *mixed;       /* all rows: the attention; queries, keys and values are packed */
    float *lse, *up, *bent;   /* all rows */
};

struct activations activations_create(const struct part *part);
void activations_free(struct activations *a);

/* Compute Y, own rows, from a->x. */
void layer_forward_part(const struct part *part, const float *const *p, struct activations *a,
                        float *y);
/* Add to the gradients G, and replace SLOPE, own rows.  With sequence parallel, gradients of
 * replicated parameters are those of the own rows. */
void layer_backward_part(const struct part *part, const float *const *p, float *const *g,
                         const struct activations *a, float *slope);

/* ---- attention.c ---- */

/* The kernel of weft_cp_forward and weft_cp_backward. */
weft_status attend_problem(void *user, const weft_cp_call *call);

#endif
