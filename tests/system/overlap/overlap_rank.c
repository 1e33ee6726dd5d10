/* overlap_rank.c - one rank of `weft run -n 4 overlap_rank WHAT`:
 *
 *     random  random calls, compared with the plain sequence; on any backend, with 2 to 4 ranks
 *     lost    rank 2 kills itself while it computes; the others must learn of it
 *     differ  rank 1 makes another call than the others; all must learn of it
 *     fail    rank 1 cannot compute; all must learn of it */
#include "case.h"

#include "support/rank_program.h"

#include <signal.h>
#include <unistd.h>

enum { CASES = 12 };

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

static weft_status consume_badly(void *user, const weft_overlap_rows *rows)
{
    const int32_t *rank = user;

    (void)rows;
    return *rank == 1 ? weft_fail(WEFT_ERR_NO_MEMORY, "no memory for a matmul") : WEFT_OK;
}

static weft_status consume_nothing(void *user, const weft_overlap_rows *rows)
{
    (void)user;
    (void)rows;
    return WEFT_OK;
}

static char said[1024]; /* by the gather that failed */

/* Gathers until one fails, which is the result; rank DIFFERENT has more rows than the others. */
static weft_status gather_until_failed(weft_context *ctx, int32_t different,
                                       weft_status (*compute)(void *user,
                                                              const weft_overlap_rows *rows))
{
    weft_overlap_options options = {sizeof options, 4096, false};
    struct call call = {.rows = 16, .width = 4, .dtype = WEFT_DTYPE_F32, .chunks = 2};
    int32_t rank = weft_rank(ctx);
    float zeros[64] = {0};
    weft_overlap *overlap;
    weft_status status;
    void *input;

    if (rank == different) call.rows = 32;
    if (memory_make(ctx, zeros, sizeof zeros, &input) != WEFT_OK ||
        create_overlap(ctx, &options, &overlap) != WEFT_OK) {
        (void)fail("the overlap");
        return WEFT_OK;
    }
    do /* rows of a rank may have arrived before it failed */
        status = call_gather(ctx, overlap, &call, input, compute, &rank, NULL);
    while (status == WEFT_OK);
    snprintf(said, sizeof said, "%s", weft_last_error());
    fprintf(stderr, "rank %d: %s\n", rank, said);
    weft_overlap_release(&overlap);
    if (weft_free(ctx, input) != WEFT_OK) (void)fail("weft_free");
    return status;
}

static int lose_rank(weft_context *ctx)
{
    weft_status status = gather_until_failed(ctx, -1, consume_or_die);

    return status == WEFT_ERR_PEER && strstr(said, "rank 2 is gone") != NULL ? 0 : 1;
}

static int differ(weft_context *ctx)
{
    return gather_until_failed(ctx, 1, consume_nothing) == WEFT_ERR_MISMATCH ? 0 : 1;
}

static int fail_once(weft_context *ctx)
{
    weft_status expected = weft_rank(ctx) == 1 ? WEFT_ERR_NO_MEMORY : WEFT_ERR_ABORTED;

    return gather_until_failed(ctx, -1, consume_badly) == expected ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(weft_context *ctx);
    } all[] = {
        {"random", run_random}, {"lost", lose_rank}, {"differ", differ}, {"fail", fail_once}};
    weft_context *ctx;
    int code = -1;

    if (weft_init(NULL, &ctx) != WEFT_OK) return fail("weft_init");
    for (size_t i = 0; i < WF_COUNT(all); i++)
        if (argc == 2 && weft_size(ctx) <= RANKS_MOST && strcmp(argv[1], all[i].name) == 0)
            code = all[i].run(ctx);
    if (code < 0) return fail("usage: weft run -n 4 overlap_rank WHAT");
    return leave(ctx, code);
}
