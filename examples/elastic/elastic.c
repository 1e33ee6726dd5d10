/* elastic.c - a job that loses ranks and goes on.
 *
 *     weft run -n 4 --min 2 ./elastic 0:3 3:6
 *
 * Each rank counts steps, and the ranks sum them.  An argument RANK:STEP ends that rank in that
 * step, without a word to the others.  These get WEFT_ERR_PEER, make the next generation of the
 * job, and repeat the step.
 *
 *     weft run -n 4 --min 2 --spares 1 --respawn ./elastic 0:3 3:6
 *
 * A process that waits takes the place of the first rank, and one that is started for it the place
 * of the second: at once, if it waits by then, otherwise when the others let it in. */
#include <weft/weft.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 8 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) return try_status;                                              \
    } while (0)

static void end_here(int rank, int step, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int dies, when;

        if (sscanf(argv[i], "%d:%d", &dies, &when) == 2 && dies == rank && when == step)
            raise(SIGKILL);
    }
}

/* Let processes in that wait for a place. */
static weft_status grow(weft_context *ctx, int *done)
{
    weft_next_options options = {.struct_size = sizeof options, .step = (uint64_t)*done};

    return weft_context_grow(ctx, &options, NULL);
}

/* FIRST: this rank's number at the start.  DONE: the steps that it has completed. */
static weft_status train(weft_context *ctx, int first, int *done, int argc, char **argv)
{
    for (int step = *done + 1; step <= STEPS; step++) {
        int sum = step;

        end_here(first, step, argc, argv);
        if (weft_context_wants_next(ctx)) /* it need not wait for an error */
            return weft_fail(WEFT_ERR_ABORTED, "a rank is lost, or asks for the next generation");
        TRY(weft_all_reduce(weft_world(ctx), &sum, &sum, 1, WEFT_DTYPE_I32, WEFT_REDUCE_SUM, NULL));
        TRY(weft_context_wait(ctx, NULL, WEFT_FOREVER));
        if (sum != step * weft_size(ctx)) return weft_fail(WEFT_ERR_INTERNAL, "sum is %d", sum);
        *done = step;
        if (step % 2 == 0) TRY(grow(ctx, done));
    }
    return WEFT_OK;
}

/* A rank that has seen the end of a step goes on after it; so must the others. */
static weft_status go_on(weft_context *ctx, int *done)
{
    weft_next_options options = {.struct_size = sizeof options, .step = (uint64_t)*done};
    weft_next_info next = {.struct_size = sizeof next};

    TRY(weft_context_next(ctx, &options, &next));
    *done = (int)next.step;
    for (size_t i = 0; i < next.lost_count && next.rank == 0; i++)
        printf("rank %d %s\n", next.lost[i], next.reasons[i]);
    return WEFT_OK;
}

static weft_status run(weft_context *ctx, int argc, char **argv)
{
    weft_next_info now = {.struct_size = sizeof now};
    int first = weft_rank(ctx), done = 0;
    weft_status status;

    TRY(weft_context_origin_get(ctx, &now));
    if (now.generation > 1) { /* this process has come later: the others are at this step */
        done = (int)now.step;
        argc = 0;
    }
    status = train(ctx, first, &done, argc, argv);
    while (status == WEFT_ERR_PEER || status == WEFT_ERR_ABORTED) {
        TRY(go_on(ctx, &done));
        status = train(ctx, first, &done, argc, argv);
    }
    if (status == WEFT_OK && weft_rank(ctx) == 0)
        printf("%d steps, by %d ranks in generation %" PRIu64 "\n", done, weft_size(ctx),
               weft_context_generation(ctx));
    return status;
}

int main(int argc, char **argv)
{
    weft_context *ctx = NULL;
    weft_status status = weft_init(NULL, &ctx);

    if (status == WEFT_OK) status = run(ctx, argc, argv);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
    weft_context_release(&ctx);
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
