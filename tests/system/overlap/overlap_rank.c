/* overlap_rank.c - one rank of `weft run -n 4 overlap_rank WHAT`:
 *
 *     random  random calls, compared with the plain sequence
 *     lost    rank 2 kills itself while it computes; the others must learn of it */
#include "case.h"

#include <signal.h>
#include <unistd.h>

enum { RANKS = 4, CASES = 12 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, weft_last_error());
    return 1;
}

/* All ranks draw the same cases. */
static int run_random(weft_context *ctx)
{
    struct random r = random_begin("overlap_rank");

    for (int i = 0; i < CASES; i++) {
        draw_case(&r);
        if (run_case(ctx) != WEFT_OK) return fail(case_text());
    }
    return 0;
}

static weft_status consume_or_die(void *user, const weft_overlap_rows *rows)
{
    const int32_t *rank = user;

    (void)rows;
    if (*rank == 2) (void)kill(getpid(), SIGKILL);
    return WEFT_OK;
}

static int lose_rank(weft_context *ctx)
{
    weft_overlap_options options = {sizeof options, 4096, false};
    weft_overlap_call call = {
        .struct_size = sizeof call, .rows = 16, .width = 4, .dtype = WEFT_DTYPE_F32, .chunks = 2};
    int32_t rank = weft_rank(ctx);
    float input[16] = {0};
    weft_overlap_state *overlap;
    weft_status status;

    if (weft_overlap_create(weft_world(ctx), &options, &overlap) != WEFT_OK)
        return fail("the overlap");
    do /* the rows of the lost rank may have arrived before */
        status = weft_overlap_gather(overlap, &call, input, consume_or_die, &rank, NULL);
    while (status == WEFT_OK);
    fprintf(stderr, "rank %d: %s\n", rank, weft_last_error());
    if (status != WEFT_ERR_PEER || strstr(weft_last_error(), "rank 2") == NULL) return 1;
    weft_overlap_release(&overlap);
    return 0;
}

int main(int argc, char **argv)
{
    weft_context *ctx;
    int code;

    if (weft_init(NULL, &ctx) != WEFT_OK) return fail("weft_init");
    if (weft_size(ctx) != RANKS || argc != 2) return fail("usage: weft run -n 4 overlap_rank WHAT");
    code = strcmp(argv[1], "lost") == 0 ? lose_rank(ctx) : run_random(ctx);
    if (code == 0) printf("rank %d is done\n", weft_rank(ctx));
    weft_context_release(&ctx);
    return code;
}
