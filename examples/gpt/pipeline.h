/* pipeline.h - the GPT as a pipeline of stages, with sharded parameters within each stage. */
#ifndef EXAMPLES_GPT_PIPELINE_H
#define EXAMPLES_GPT_PIPELINE_H

/* gpt --schedule NAME [--chunks V] [--microbatches M] [--steps N] [--times FILE] [MESH]; the exit
 * code. */
int pipeline_main(int argc, char **argv);

#endif
