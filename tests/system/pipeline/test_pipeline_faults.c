/* Ranks that fail, or that do not do the same: every rank gets an error that says why. */
#include "../tensor/holds.h"
#include "model.h"

#include "support/suite.h"
#include "weft/launch.h"

#include <math.h>
#include <time.h>

enum { RANKS = 4 };

struct job {
    weft_context *ctx;
    weft_schedule *schedule;
    struct model model;
    weft_pipeline_tensor tensors[MOST_STAGES][MOST_TENSORS];
    weft_pipeline_values values[MOST_STAGES];
    weft_pipeline_options options;
    weft_pipeline *pipeline;
    weft_mesh *mesh; /* of all ranks */
    weft_pipeline_tensor last;
    weft_pipeline_values stated; /* LAST, by the callback `state` */
};

/* TIMEOUT_NS is the time limit of waits; 0: the default. */
static weft_status begin_limited(struct job *job, const char *name, int64_t timeout_ns)
{
    const weft_init_options limits = {.struct_size = sizeof limits, .timeout_ns = timeout_ns};
    const int32_t ranks = RANKS;

    WF_TRY(weft_init(&limits, &job->ctx));
    WF_TRY(weft_mesh_create(1, &ranks, NULL, &job->mesh));
    WF_TRY(weft_schedule_create(name, RANKS, 0, 8, &job->schedule));
    job->model = (struct model){.seed = 11, .stages = RANKS, .context = job->ctx};
    for (int32_t s = 0; s < MOST_STAGES; s++)
        job->values[s] = model_values(job->mesh, job->model.seed, s, job->tensors[s]);
    job->options = (weft_pipeline_options){.struct_size = sizeof job->options,
                                           .user = job,
                                           .forward = model_forward,
                                           .backward = model_backward,
                                           .values = job->values,
                                           .value_count = RANKS - 1,
                                           .value_size = sizeof *job->values};
    return WEFT_OK;
}

static weft_status begin(struct job *job, const char *name)
{
    return begin_limited(job, name, 0);
}

static weft_status make(struct job *job)
{
    job->options.schedule = job->schedule;
    return weft_pipeline_create(job->ctx, job->mesh, "0", &job->options, &job->pipeline);
}

static weft_status end(struct job *job)
{
    weft_pipeline_release(&job->pipeline);
    free_values(&job->stated);
    for (int32_t s = 0; s < MOST_STAGES; s++)
        free_values(&job->values[s]);
    weft_mesh_release(&job->mesh);
    weft_schedule_release(&job->schedule);
    weft_context_release(&job->ctx);
    return WEFT_OK;
}

/* ---- callbacks that fail ---- */

static int32_t failing_stage, failing_microbatch;
static bool fails_backward, has_stream;

static weft_status forward(void *user, const weft_pipeline_call *call)
{
    struct job *job = user;

    if (!fails_backward && call->stage == failing_stage && call->microbatch == failing_microbatch)
        return weft_fail(WEFT_ERR_SYSTEM, "the kernel has no power");
    return model_forward(&job->model, call);
}

static weft_status backward(void *user, const weft_pipeline_call *call)
{
    struct job *job = user;

    if (fails_backward && call->stage == failing_stage && call->microbatch == failing_microbatch)
        return weft_fail(WEFT_ERR_SYSTEM, "the kernel has no power");
    return model_backward(&job->model, call);
}

static weft_status fail_one(void *unused)
{
    struct job job = {0};
    char where[64];
    int32_t rank;

    (void)unused;
    WF_TRY(begin(&job, "1f1b"));
    rank = weft_rank(job.ctx);
    job.options.forward = forward;
    job.options.backward = backward;
    if (has_stream) WF_TRY(weft_stream_create(job.ctx, &job.options.compute));
    WF_TRY(make(&job));
    snprintf(where, sizeof where, "rank %d: stage %d, microbatch %d (%d%s%d): the callback",
             failing_stage, failing_stage, failing_microbatch, failing_stage,
             fails_backward ? "B" : "F", failing_microbatch);
    FAILS(weft_pipeline_run(job.pipeline),
          rank == failing_stage ? WEFT_ERR_SYSTEM : WEFT_ERR_ABORTED, where);
    HOLDS(strstr(weft_last_error(), "the callback returned ERR_SYSTEM: the kernel has no") != NULL);
    HOLDS(weft_pipeline_run(job.pipeline) != WEFT_OK);
    HOLDS(strstr(weft_last_error(), where) != NULL);
    HOLDS(weft_comm_async_error(weft_world(job.ctx)) == WEFT_OK);
    weft_pipeline_release(&job.pipeline);
    weft_stream_release(&job.options.compute);
    return end(&job);
}

TEST(the_error_of_a_callback_reaches_all_ranks)
{
    static const struct {
        int32_t stage, microbatch;
        bool backward;
    } places[] = {{0, 0, false}, {3, 7, false}, {1, 3, true}, {0, 7, true}, {2, 5, false}};

    for (size_t i = 0; i < WF_COUNT(places); i++) {
        failing_stage = places[i].stage;
        failing_microbatch = places[i].microbatch;
        fails_backward = places[i].backward;
        has_stream = i % 2 == 1;
        ck_assert_msg(weft_threads_run(RANKS, fail_one, NULL) == WEFT_OK, "%s", weft_last_error());
    }
}

/* ---- ranks that differ ---- */

static weft_status state(void *user, int32_t stage, const weft_pipeline_values *in,
                         weft_pipeline_values *out)
{
    struct job *job = user;

    (void)in;
    if (stage == 2) return weft_fail(WEFT_ERR_UNSUPPORTED, "the stage is too small");
    free_values(&job->stated);
    *out = job->stated = one_value(job->mesh, "bool[] R", &job->last);
    return WEFT_OK;
}

static weft_status reduce(void *user, const weft_pipeline_call *call)
{
    (void)user, (void)call;
    return WEFT_OK;
}

static weft_status differ(void *unused)
{
    struct job job = {0};
    int32_t rank;

    (void)unused;
    WF_TRY(begin(&job, "1f1b"));
    rank = weft_rank(job.ctx);
    if (rank == 2) {
        weft_schedule_release(&job.schedule);
        WF_TRY(weft_schedule_create("gpipe", RANKS, 0, 8, &job.schedule));
    }
    FAILS(make(&job), WEFT_ERR_MISMATCH, "differ in schedule: 1f1b");
    HOLDS(strstr(weft_last_error(), "gpipe of 4 stages and 8 microbatches") != NULL);
    if (rank == 2) {
        weft_schedule_release(&job.schedule);
        WF_TRY(weft_schedule_create("1f1b", RANKS, 0, 8, &job.schedule));
        free_values(&job.values[1]);
        job.values[1] = one_value(job.mesh, "f16[] R", job.tensors[1]);
    }
    FAILS(make(&job), WEFT_ERR_MISMATCH, "differ in layouts between stages");
    if (rank == 2) {
        free_values(&job.values[1]);
        job.values[1] = model_values(job.mesh, job.model.seed, 1, job.tensors[1]);
    }
    if (rank == 1) job.options.loss_scale = 2;
    FAILS(make(&job), WEFT_ERR_MISMATCH, "differ in loss_scale: ");
    job.options.loss_scale = rank == 1 ? NAN : 2;
    FAILS(make(&job), WEFT_ERR_INVALID, "loss_scale is not a number");
    job.options.loss_scale = 0;
    if (rank == 3) job.options.reduce = reduce;
    FAILS(make(&job), WEFT_ERR_MISMATCH, "differ in reduce: not set and set");
    job.options.reduce = NULL;
    if (rank == 3) {
        job.options.values = NULL;
        job.options.shapes = state;
    }
    FAILS(make(&job), WEFT_ERR_MISMATCH, "differ in values: set and not set");
    job.options.values = job.values;
    job.options.shapes = NULL;
    if (rank == 1) job.options.forward = NULL;
    HOLDS(make(&job) == WEFT_ERR_INVALID);
    HOLDS(strstr(weft_last_error(), "the callback `forward` is NULL") != NULL);
    job.options.forward = model_forward;
    job.options.user = &job.model;
    WF_TRY(make(&job)); /* nothing of the refused calls is left */
    WF_TRY(weft_pipeline_run(job.pipeline));
    return end(&job);
}

TEST(ranks_that_differ_are_found_before_anything_runs)
{
    ck_assert_msg(weft_threads_run(RANKS, differ, NULL) == WEFT_OK, "%s", weft_last_error());
}

/* ---- shapes ---- */

static weft_status state_silently(void *user, int32_t stage, const weft_pipeline_values *in,
                                  weft_pipeline_values *out)
{
    (void)user, (void)in, (void)out;
    return stage == 2 ? (weft_status)7 : WEFT_OK;
}

static weft_status fail_to_state(void *unused)
{
    struct job job = {0};

    (void)unused;
    WF_TRY(begin(&job, "1f1b"));
    job.options.values = NULL;
    job.options.shapes = state;
    FAILS(make(&job), WEFT_ERR_UNSUPPORTED,
          "the shapes of stage 2: the callback returned ERR_UNSUPPORTED: the stage is too "
          "small");
    job.options.shapes = state_silently;
    FAILS(make(&job), WEFT_ERR_INVALID,
          "the shapes of stage 2: the callback returned 7, which is not an error");
    return end(&job);
}

TEST(a_callback_that_states_no_layout_is_an_error_on_all_ranks)
{
    ck_assert_msg(weft_threads_run(RANKS, fail_to_state, NULL) == WEFT_OK, "%s", weft_last_error());
}

/* ---- a rank that ends ---- */

static weft_status results[RANKS];

static weft_status leave_early(void *unused)
{
    struct job job = {0};
    int32_t rank;

    (void)unused;
    WF_TRY(begin(&job, "1f1b"));
    rank = weft_rank(job.ctx);
    job.options.user = &job.model;
    WF_TRY(make(&job));
    WF_TRY(weft_pipeline_run(job.pipeline));
    if (rank == 1) {
        end(&job);
        return weft_fail(WEFT_ERR_INTERNAL, "this rank ends");
    }
    results[rank] = weft_pipeline_run(job.pipeline);
    HOLDS(results[rank] == WEFT_OK || strstr(weft_last_error(), "rank 1") != NULL);
    return end(&job);
}

TEST(when_a_rank_ends_the_others_do_not_wait_for_it)
{
    ck_assert_int_eq(weft_threads_run(RANKS, leave_early, NULL), WEFT_ERR_INTERNAL);
    ck_assert_msg(strstr(weft_last_error(), "this rank ends") != NULL, "%s", weft_last_error());
    for (int32_t rank = 0; rank < RANKS; rank++)
        ck_assert_msg(rank == 1 || results[rank] != WEFT_OK, "rank %d", rank);
}

/* ---- a rank that does not run ---- */

static _Atomic int returned, timed_out;

static weft_status run_without_the_last(void *unused)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct job job = {0};

    (void)unused;
    WF_TRY(begin_limited(&job, "1f1b", INT64_C(3000000000)));
    job.options.user = &job.model;
    WF_TRY(make(&job));
    if (weft_rank(job.ctx) + 1 < RANKS) {
        weft_status status = weft_pipeline_run(job.pipeline);

        HOLDS(status != WEFT_OK);
        HOLDS(status != WEFT_ERR_TIMEOUT || strstr(weft_last_error(), "stage ") != NULL);
        timed_out += status == WEFT_ERR_TIMEOUT;
        returned++;
    }
    while (returned + 1 < RANKS)
        nanosleep(&pause, NULL);
    weft_pipeline_release(&job.pipeline);
    return end(&job);
}

TEST(a_timeout_names_the_action_that_waits)
{
    ck_assert_msg(weft_threads_run(RANKS, run_without_the_last, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_int_gt(timed_out, 0);
}

/* ---- memory ---- */

TEST_ON_RANKS(RANKS, without_memory_on_one_rank_all_get_the_error)
{
    struct job job = {0};

    WF_TRY(begin(&job, "zb1p"));
    job.model.stages = 2 * RANKS;
    job.options.value_count = 2 * RANKS - 1;
    job.options.user = &job.model;
    for (uint64_t at = 1; at < 12; at++) {
        weft_status status;

        if (weft_rank(job.ctx) == 1) wf_mem_fail_at(at);
        status = make(&job);
        wf_mem_fail_at(0);
        HOLDS(status != WEFT_OK);
        HOLDS(job.pipeline == NULL);
    }
    WF_TRY(make(&job));
    WF_TRY(weft_pipeline_run(job.pipeline));
    return end(&job);
}
