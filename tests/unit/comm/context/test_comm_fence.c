#include "comm/comm.h"
#include "rendezvous/launch.h"
#include "support/suite.h"
#include "weft/status.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Rank 0 of an elastic job of two. */
static struct weft_context own = {
    .rank = 0, .size = 2, .terms = {.ranks_min = 1, .silent_ns = WF_SECOND_NS}};
static pid_t child;

static struct wf_process begin_other(void)
{
    struct wf_process other = wf_fence_process();

    child = fork();
    if (child == 0)
        for (;;)
            pause();
    ck_assert_int_gt(child, 0);
    other.pid = (uint64_t)child;
    other.began = wf_process_began(other.pid);
    ck_assert_int_eq(wf_fence_begin(&own), WEFT_OK);
    return other;
}

/* The other process ended by the signal NUMBER. */
static void end_other(int number)
{
    int status;

    wf_fence_end(&own);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == number);
}

TEST(a_process_that_runs_is_killed)
{
    struct wf_process other = begin_other();

    wf_fence_note(&own, 1, &other, true);
    ck_assert_int_eq(wf_fence_wait(&own, 1, "was expelled"), WEFT_OK);
    end_other(SIGKILL);
}

/* A zombie writes nothing any more. */
TEST(a_process_that_nobody_has_waited_for_is_dead)
{
    struct wf_process other = begin_other();

    kill(child, SIGHUP);
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    wf_fence_note(&own, 1, &other, true);
    ck_assert_int_eq(wf_fence_wait(&own, 1, "is gone"), WEFT_OK);
    end_other(SIGHUP);
}

TEST(a_process_of_which_nothing_is_left_is_dead)
{
    struct wf_process other = begin_other();

    kill(child, SIGHUP);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    wf_fence_note(&own, 1, &other, true);
    ck_assert_int_eq(wf_fence_wait(&own, 1, "is gone"), WEFT_OK);
    wf_fence_end(&own);
}

static void refuse(const struct wf_process *other, const char *text)
{
    wf_fence_note(&own, 1, other, true);
    ck_assert_int_eq(wf_fence_wait(&own, 1, "was expelled"), WEFT_ERR_TIMEOUT);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
    ck_assert_int_eq(kill(child, 0), 0);
    kill(child, SIGHUP);
    end_other(SIGHUP);
}

/* The process that has the number now is another one. */
TEST(a_number_that_is_used_again_names_no_process)
{
    struct wf_process other = begin_other();

    other.began--;
    refuse(&other, "may still run");
}

TEST(a_process_of_another_namespace_is_not_taken_for_one_of_this)
{
    struct wf_process other = begin_other();

    other.space++;
    refuse(&other, "namespace of processes");
}

TEST(a_rank_of_another_host_needs_no_proof)
{
    struct wf_process other = begin_other();

    wf_fence_note(&own, 1, &other, false);
    ck_assert_int_eq(wf_fence_wait(&own, 1, "was expelled"), WEFT_OK);
    kill(child, SIGHUP);
    end_other(SIGHUP);
}
