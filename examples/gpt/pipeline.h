/* pipeline.h - the GPT as a pipeline of stages, with sharded parameters within each stage. */
#ifndef EXAMPLES_GPT_PIPELINE_H
#define EXAMPLES_GPT_PIPELINE_H

#include "arguments.h"

/* Train as GIVEN says, and return the exit code. */
int pipeline_main(const struct arguments *given);

#endif
