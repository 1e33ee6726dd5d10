/* Which error a command reports of the ranks that it starts. */
#include "common/local_ranks.h"

#include "support/suite.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Rank 1 loses its peer before rank 0 says why it leaves. */
static weft_status lose_a_peer(void *self, weft_context *context, const struct local_rank *rank)
{
    (void)self;
    (void)rank;
    if (weft_rank(context) == 1) return weft_fail(WEFT_ERR_PEER, "rank 0 has left the job");
    usleep(300000);
    return weft_fail(WEFT_ERR_UNSUPPORTED, "the device has no doubles");
}

TEST(the_cause_is_reported_and_not_the_loss_of_a_peer)
{
    struct local_job job = {.work = lose_a_peer};

    ck_assert_int_eq(local_ranks_run(2, NULL, &job), WEFT_ERR_UNSUPPORTED);
    ck_assert_str_eq(weft_last_error(), "rank 0: the device has no doubles");
}

/* Rank 0 ends without an error of its own, perhaps before rank 1 has joined. */
static weft_status vanish(void *self, weft_context *context, const struct local_rank *rank)
{
    (void)self;
    (void)rank;
    if (weft_rank(context) == 1) return weft_fail(WEFT_ERR_PEER, "rank 0 has left the job");
    _exit(0);
}

TEST(the_loss_of_a_peer_is_reported_if_nobody_knows_the_cause)
{
    struct local_job job = {.work = vanish};

    ck_assert_int_eq(local_ranks_run(2, NULL, &job), WEFT_ERR_PEER);
    ck_assert_msg(strncmp(weft_last_error(), "rank 1: rank 0 ", 15) == 0, "%s", weft_last_error());
}

static weft_status kill_itself(void *self, weft_context *context, const struct local_rank *rank)
{
    (void)self;
    (void)context;
    (void)rank;
    return raise(SIGKILL) == 0 ? WEFT_OK : WEFT_ERR_SYSTEM;
}

TEST(the_end_of_a_rank_is_known_if_the_parent_ignores_sigchld)
{
    struct local_job job = {.work = kill_itself};

    signal(SIGCHLD, SIG_IGN);
    ck_assert_int_eq(local_ranks_run(1, NULL, &job), WEFT_ERR_PEER);
    ck_assert_str_eq(weft_last_error(), "rank 0 was ended by signal 9");
}
