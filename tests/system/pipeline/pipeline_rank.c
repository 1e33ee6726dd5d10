/* pipeline_rank.c - one rank of `weft run -n 4 pipeline_rank WHAT`:
 *
 *     random  random pipelines, compared with a serial loop
 *     lost    rank 2 kills itself in a backward action; the others must learn of it
 *     time    on 1 to 4 ranks: nanoseconds of an action whose callback does nothing */
#include "model.h"

#include "support/rank_program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4 };

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
    weft_pipeline_tensor tensors[RANKS][MOST_TENSORS];
    weft_pipeline_values values[RANKS] = {{0}};
    weft_pipeline_options options = {.struct_size = sizeof options,
                                     .user = &model,
                                     .forward = model_forward,
                                     .backward = backward_or_die,
                                     .values = values,
                                     .value_count = RANKS - 1,
                                     .value_size = sizeof *values};
    weft_mesh *mesh = mesh_of(weft_world(ctx));
    weft_schedule *schedule;
    weft_pipeline *pipeline;
    weft_status status;
    int code;

    for (int32_t s = 0; s + 1 < RANKS; s++)
        values[s] = model_values(mesh, model.seed, s, tensors[s]);
    if (weft_schedule_create("1f1b", RANKS, 0, 6, &schedule) != WEFT_OK ||
        create_pipeline(weft_world(ctx), schedule, &options, &pipeline) != WEFT_OK)
        return fail("the pipeline");
    status = weft_pipeline_run(pipeline);
    fprintf(stderr, "rank %d: %s\n", weft_rank(ctx), weft_last_error());
    code = status == WEFT_ERR_PEER && strstr(weft_last_error(), "rank 2") != NULL ? 0 : 1;
    weft_pipeline_release(&pipeline);
    weft_schedule_release(&schedule);
    for (int32_t s = 0; s + 1 < RANKS; s++)
        free_values(&values[s]);
    weft_mesh_release(&mesh);
    return code;
}

static weft_status do_nothing(void *user, const weft_pipeline_call *call)
{
    (void)user, (void)call;
    return WEFT_OK;
}

/* Nanoseconds of an action of the fastest of several runs. */
static double action_ns(weft_pipeline *pipeline)
{
    weft_pipeline_info info = {.struct_size = sizeof info};
    double best = 1e30;

    for (int i = 0; i < 20; i++) {
        uint64_t begun = wf_now_ns(), taken;

        if (weft_pipeline_run(pipeline) != WEFT_OK) return -1;
        taken = wf_now_ns() - begun;
        if ((double)taken < best) best = (double)taken;
    }
    return weft_pipeline_get(pipeline, &info) == WEFT_OK ? best / (double)info.actions : -1;
}

static int time_actions(weft_context *ctx, const char *name)
{
    weft_mesh *mesh = mesh_of(weft_world(ctx));
    weft_pipeline_tensor tensor;
    weft_pipeline_values one = one_value(mesh, "f32[16] R", &tensor), values[2 * RANKS];
    weft_pipeline_options options = {.struct_size = sizeof options,
                                     .forward = do_nothing,
                                     .backward = do_nothing,
                                     .values = values,
                                     .value_count = 2 * (size_t)weft_size(ctx) - 1,
                                     .value_size = sizeof *values};
    weft_schedule *schedule;
    weft_pipeline *pipeline;
    double ns;

    for (int s = 0; s < 2 * RANKS; s++)
        values[s] = one;
    if (weft_schedule_create(name, weft_size(ctx), 2, 256, &schedule) != WEFT_OK ||
        create_pipeline(weft_world(ctx), schedule, &options, &pipeline) != WEFT_OK)
        return fail("the pipeline");
    ns = action_ns(pipeline);
    if (weft_rank(ctx) == 0) printf("%s, %d ranks: %.0f ns an action\n", name, weft_size(ctx), ns);
    weft_pipeline_release(&pipeline);
    weft_schedule_release(&schedule);
    free_values(&one);
    weft_mesh_release(&mesh);
    return ns > 0 ? 0 : fail("weft_pipeline_run");
}

int main(int argc, char **argv)
{
    weft_context *ctx;
    int code;

    if (weft_init(NULL, &ctx) != WEFT_OK) return fail("weft_init");
    if (argc != 2 || (weft_size(ctx) != RANKS && strcmp(argv[1], "time") != 0))
        return fail("usage: weft run -n 4 pipeline_rank WHAT");
    if (strcmp(argv[1], "time") == 0)
        code = time_actions(ctx, "looped-bfs") + time_actions(ctx, "zb1p");
    else
        code = strcmp(argv[1], "lost") == 0 ? lose_rank(ctx) : run_random(ctx);
    return leave(ctx, code);
}
