/* rank_program.h - programs of one rank that `weft run` starts: PROGRAM random, PROGRAM lost. */
#ifndef WEFT_TESTS_RANK_PROGRAM_H
#define WEFT_TESTS_RANK_PROGRAM_H

#include "weft/context.h"
#include "weft/status.h"

#include <stdio.h>
#include <string.h>

static inline int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, weft_last_error());
    return 1;
}

/* 0 if the others have learnt that rank 2 is lost. */
static inline int learnt_of_loss(weft_status status)
{
    return status == WEFT_ERR_PEER && strstr(weft_last_error(), "rank 2") != NULL ? 0 : 1;
}

/* Print that the rank is done, if it is, and leave the job. */
static inline int leave(weft_context *ctx, int code)
{
    if (code == 0) printf("rank %d is done\n", weft_rank(ctx));
    weft_context_release(&ctx);
    return code;
}

/* The whole program, on 2 or 4 ranks. */
static inline int run_program(int argc, char **argv, int (*random)(weft_context *),
                              int (*lost)(weft_context *))
{
    weft_context *ctx;

    if (weft_init(NULL, &ctx) != WEFT_OK) return fail("weft_init");
    if ((weft_size(ctx) != 2 && weft_size(ctx) != 4) || argc != 2)
        return fail("usage: weft run -n 4 PROGRAM random|lost");
    return leave(ctx, strcmp(argv[1], "lost") == 0 ? lost(ctx) : random(ctx));
}

#endif
