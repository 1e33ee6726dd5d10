/* arguments.h - what the user wants. */
#ifndef EXAMPLES_GPT_ARGUMENTS_H
#define EXAMPLES_GPT_ARGUMENTS_H

#include "kernels.h"

#include <stdbool.h>
#include <stdint.h>

/*     gpt [MESH] [--steps N] [--times FILE [--for MESH]]
 *     gpt --mesh MESH [--sp] [the same]
 *     gpt --schedule NAME [--chunks V] [--microbatches M] [--steps N] [--times FILE] [MESH] */
/* With any of these: --layers N, --width N, --heads N, --length N, --vocabulary N and --batch N,
 * the sizes of the model and the sequences of a step; --bf16; --clip-value X.  Without a schedule
 * also --keep RANKS. */
struct arguments {
    const char *schedule, *mesh, *times, *target; /* NULL: not given; TARGET is that of --for */
    int32_t chunks, microbatches;                 /* 0: the default */
    int32_t steps;
    bool is_parallel, is_split; /* --mesh and --sp */
    bool is_bf16;
    int32_t keep;      /* 0: not given */
    double clip_value; /* 0: not given */
    struct sizes sizes;
};

/* Sets the sizes of the model.  Ends the process if an argument is not known. */
struct arguments arguments_of(int argc, char **argv);

#endif
