/* pipeline_rank.c - one rank of `weft run -n 4 pipeline_rank WHAT`:
 *
 *     random  random pipelines, compared with a serial loop
 *     lost    rank 2 kills itself in a backward action; the others must learn of it */
#include "model.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, weft_last_error());
    return 1;
}

/* All ranks draw the same pipelines. */
static int run_random(weft_context *ctx)
{
    struct random r = random_begin("pipeline_rank");
    int cases = test_cases(2);

    for (int i = 0; i < cases; i++)
        for (uint32_t kind = 0; weft_schedule_known(kind) != NULL; kind++) {
            weft_status status;

            draw_pipeline(&r, RANKS, kind);
            status = run_drawn(weft_world(ctx));
            if (status != WEFT_OK) return fail(drawn_text());
            weft_schedule_release(&drawn.schedule);
        }
    return 0;
}

static weft_status backward_or_die(void *user, const weft_pipeline_call *call)
{
    if (call->stage == 2 && call->microbatch == 1) (void)kill(getpid(), SIGKILL);
    return model_backward(user, call);
}

static int lose_rank(weft_context *ctx)
{
    struct model model = {.seed = 6, .stages = RANKS, .context = ctx};
    weft_pipeline_values values[RANKS] = {{0}};
    weft_pipeline_options options = {.struct_size = sizeof options,
                                     .user = &model,
                                     .forward = model_forward,
                                     .backward = backward_or_die,
                                     .values = values};
    weft_schedule *schedule;
    weft_pipeline *pipeline;
    weft_status status;
    int code;

    for (int32_t s = 0; s + 1 < RANKS; s++)
        model_values(model.seed, s, &values[s]);
    if (weft_schedule_create("1f1b", RANKS, 0, 6, &schedule) != WEFT_OK ||
        weft_pipeline_create(weft_world(ctx), schedule, &options, &pipeline) != WEFT_OK)
        return fail("the pipeline");
    status = weft_pipeline_run(pipeline);
    fprintf(stderr, "rank %d: %s\n", weft_rank(ctx), weft_last_error());
    code = status == WEFT_ERR_PEER && strstr(weft_last_error(), "rank 2") != NULL ? 0 : 1;
    weft_pipeline_release(&pipeline);
    weft_schedule_release(&schedule);
    return code;
}

int main(int argc, char **argv)
{
    weft_context *ctx;
    int code;

    if (weft_init(NULL, &ctx) != WEFT_OK) return fail("weft_init");
    if (weft_size(ctx) != RANKS || argc != 2)
        return fail("usage: weft run -n 4 pipeline_rank WHAT");
    code = strcmp(argv[1], "lost") == 0 ? lose_rank(ctx) : run_random(ctx);
    if (code == 0) printf("rank %d is done\n", weft_rank(ctx));
    weft_context_release(&ctx);
    return code;
}
