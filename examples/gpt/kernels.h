/* kernels.h - a GPT of letters in plain C: its blocks, their kernels, AdamW, and its data.
 *
 * A block gets pointers to its whole parameters and adds to whole gradients.  It knows nothing of
 * ranks. */
#ifndef EXAMPLES_GPT_KERNELS_H
#define EXAMPLES_GPT_KERNELS_H

#include <stdint.h>

/* The sizes of fixed arrays. */
enum { MOST_LAYERS = 96, MOST_BLOCKS = MOST_LAYERS + 2, MOST_LENGTH = 8192, MOST_PARAMETERS = 12 };

struct sizes {
    int layers, width, heads, length, letters;
    int sequences;            /* of a step, on all ranks together */
    int blocks, head, hidden; /* sizes_set computes them */
};

extern struct sizes sizes;

/* Set the sizes and what follows from them.  The text is NULL, or says why they cannot be. */
const char *sizes_set(struct sizes given);

struct parameter {
    const char *name;
    int rows, columns; /* COLUMNS 0: a vector */
    float deviation;   /* of its first elements; 0: they are all START */
    float start;
    const char *tp; /* its placement on an axis "tp"; NULL: replicated */
};

/* The parameters of a layer. */
enum { NORM1, SHIFT1, QKV, QKV_BIAS, OUT, OUT_BIAS, NORM2, SHIFT2, UP, UP_BIAS, DOWN, DOWN_BIAS };

/* The COUNT parameters of block BLOCK. */
const struct parameter *parameters_of(int block, int *count);

/* The activations of COUNT sequences. */
struct batch {
    int count;
    int *letters, *next;        /* COUNT x LENGTH, and the letters after them */
    float *inputs[MOST_BLOCKS]; /* of each block, COUNT x LENGTH x WIDTH; the head's is the last */
    float *slope;     /* of the loss by the output of the block, which backward replaces */
    float *room;      /* for the inside of a block */
    float loss_scale; /* the head multiplies the slope of the loss by it; 1 at first */
};

struct batch *batch_create(int count);
void batch_free(struct batch *batch);

/* Set the letters of COUNT sequences, from number FIRST on. */
void batch_fill(struct batch *batch, int64_t first);

/* Compute the input of the next block; of the head: nothing. */
void forward(int block, const float *const *parameters, struct batch *batch);
/* Add to GRADIENTS, and replace the slope.  The head begins it and returns the mean loss. */
float backward(int block, const float *const *parameters, float *const *gradients,
               struct batch *batch);

/* One step of AdamW for COUNT elements; STEP counts from 1.  FIRST and SECOND are its moments. */
void adamw(int64_t count, float *elements, const float *gradient, float *first, float *second,
           int step);

/* ---- parts of blocks, for layers.c; backward ones add to the slopes of what they have read ----
 */

/* Y = X W' + B, of ROWS x INPUTS and OUTPUTS x INPUTS elements; B may be NULL. */
void linear(const float *x, const float *w, const float *b, float *y, int rows, int inputs,
            int outputs);
void linear_backward(const float *x, const float *w, const float *dy, float *dx, float *dw,
                     float *db, int rows, int inputs, int outputs);
void norm(const float *x, const float *w, const float *b, float *y, int rows);
void norm_backward(const float *x, const float *w, const float *dy, float *dx, float *dw, float *db,
                   int rows);
float gelu(float x);
float gelu_slope(float x);
/* Replace LOGITS of the letter NEXT by the slopes of its loss over ROWS, and return the loss. */
float cross_entropy(float *logits, int next, float rows);

#endif
