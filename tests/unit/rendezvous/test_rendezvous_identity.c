#include "rendezvous/launch.h"
#include "support/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(processes_of_one_host_have_one_identity)
{
    struct wf_identity here = wf_identity(NULL);
    int code = -1;
    pid_t child = fork();

    if (child == 0) _exit(wf_identity(NULL).host == here.host ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    ck_assert_int_eq(code, 0);
    ck_assert_uint_eq(here.pid, (uint64_t)getpid());
    ck_assert_str_ne(here.host_name, "");
}

TEST(a_pretended_host_is_as_good_as_a_real_one)
{
    ck_assert_uint_eq(wf_identity("a").host, wf_identity("a").host);
    ck_assert_uint_ne(wf_identity("a").host, wf_identity("b").host);
    ck_assert_uint_ne(wf_identity("a").host, wf_identity(NULL).host);
}

TEST(a_process_began_at_one_time)
{
    uint64_t own = wf_process_began((uint64_t)getpid());
    pid_t child = fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    ck_assert_uint_gt(own, 0);
    ck_assert_uint_eq(wf_process_began((uint64_t)getpid()), own);
    ck_assert_uint_ge(wf_process_began((uint64_t)child), own);
    ck_assert_uint_ge(own, wf_process_began(1));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_uint_eq(wf_process_began((uint64_t)child), 0);
}
