/* recover.c - a team of ranks goes on without the one whose device fails.
 *
 *     ./recover
 *
 * Ranks are threads of this process, as in the test of a program.  All of them sum numbers in a
 * team.  In the third step the device of rank 2 fails.  It aborts the team's communicator, so that
 * no rank waits for it.  The others get the error, form a team without it, and repeat the step.  At
 * the end the first rank of the team says who is in it. */
#include <weft/weft.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, STEPS = 5, FAILS_AT = 3, FAILS = 2 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) return try_status;                                              \
    } while (0)

struct job {
    atomic_int right;     /* sums that were as expected */
    char report[1 << 14]; /* of rank 0, about all ranks, when the team had failed */
    char members[64];     /* of the last team */
};

/* The sum of the numbers of TEAM's ranks; each gives its rank in the job plus 1. */
static weft_status add_up(weft_comm *team, bool fails, int *sum)
{
    weft_context *ctx = weft_comm_context(team);

    if (fails) {
        weft_comm_abort(team);
        return weft_fail(WEFT_ERR_DEVICE, "the device of rank %d has failed", weft_rank(ctx));
    }
    *sum = weft_rank(ctx) + 1;
    TRY(weft_all_reduce(team, sum, sum, 1, WEFT_DTYPE_I32, WEFT_REDUCE_SUM, NULL));
    return weft_context_wait(ctx, NULL, WEFT_FOREVER);
}

/* The ranks of the world without LOST. */
static weft_status form_team(weft_context *ctx, int lost, weft_comm **team)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .name = "team"};
    int32_t ranks[RANKS];
    size_t count = 0;

    for (int r = 0; r < weft_size(ctx); r++)
        if (r != lost) ranks[count++] = r;
    return weft_comm_create(weft_world(ctx), count, ranks, &options, team);
}

/* The sum that STEP has in TEAM. */
static int expected(const weft_comm *team)
{
    int sum = 0;

    for (int r = 0; r < RANKS; r++)
        if (weft_comm_find_rank(team, r) >= 0) sum += r + 1;
    return sum;
}

/* Write the name of TEAM and the ranks of the job that are in it: "team#12: 0 1 3". */
static void describe(const weft_comm *team, char *text, size_t size)
{
    int length = snprintf(text, size, "%s:", weft_comm_name(team));

    for (int r = 0; r < weft_comm_size(team); r++)
        length +=
            snprintf(text + length, size - (size_t)length, " %d", weft_comm_world_rank(team, r));
}

static weft_status run_rank(void *user)
{
    struct job *job = user;
    weft_context *ctx;
    weft_comm *team;

    TRY(weft_init(NULL, &ctx));
    TRY(form_team(ctx, -1, &team));
    for (int step = 1; step <= STEPS && team != NULL; step++) {
        bool fails = step == FAILS_AT && weft_rank(ctx) == FAILS;
        int sum = 0;
        weft_status status = add_up(team, fails, &sum);

        if (status == WEFT_ERR_ABORTED || fails) { /* the others hear of it, too */
            if (weft_rank(ctx) == 0)
                TRY(weft_comm_report_print(team, job->report, sizeof job->report, NULL));
            weft_comm_release(&team);
            TRY(form_team(ctx, FAILS, &team)); /* NULL on the rank that is left out */
            step--;
        } else {
            TRY(status);
            if (sum == expected(team)) atomic_fetch_add(&job->right, 1);
        }
    }
    if (team != NULL && weft_comm_rank(team) == 0)
        describe(team, job->members, sizeof job->members);
    weft_comm_release(&team);
    weft_context_release(&ctx);
    return WEFT_OK;
}

int main(void)
{
    static struct job job;
    const int wanted = RANKS * (FAILS_AT - 1) + (RANKS - 1) * (STEPS - FAILS_AT + 1);

    if (weft_threads_run(RANKS, run_rank, &job) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error());
        return EXIT_FAILURE;
    }
    printf("%s\n%d of %d sums are right; the last ranks of %s\n", job.report,
           atomic_load(&job.right), wanted, job.members);
    if (strstr(job.report, "team") == NULL || strstr(job.members, ": 0 1 3") == NULL)
        return EXIT_FAILURE;
    return atomic_load(&job.right) == wanted ? EXIT_SUCCESS : EXIT_FAILURE;
}
