/* The identity of a process, and whether it still runs. */
#include "cpu.h"

#include "support/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(this_process_is_alive_and_itself)
{
    struct cpu_process self, again;

    ck_assert_int_eq(cpu_process_self(&self), WEFT_OK);
    ck_assert_int_eq(cpu_process_self(&again), WEFT_OK);
    ck_assert(cpu_process_same(&self, &again));
    ck_assert(cpu_process_alive(&self));
    ck_assert_int_eq(self.pid, getpid());
}

TEST(a_forked_process_is_another)
{
    struct cpu_process parent;
    int status;
    pid_t child;

    ck_assert_int_eq(cpu_process_self(&parent), WEFT_OK);
    child = fork();
    if (child == 0) {
        struct cpu_process self;

        if (cpu_process_self(&self) != WEFT_OK) _exit(1);
        _exit(cpu_process_same(&self, &parent) ? 2 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

TEST(a_killed_process_is_gone_before_and_after_it_is_reaped)
{
    struct cpu_process other = {.pid = fork()};
    siginfo_t about;

    if (other.pid == 0) {
        for (;;)
            pause();
    }
    ck_assert(cpu_process_alive(&other));
    kill(other.pid, SIGSTOP);
    ck_assert(cpu_process_alive(&other));
    kill(other.pid, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)other.pid, &about, WEXITED | WNOWAIT), 0);
    ck_assert(!cpu_process_alive(&other));
    ck_assert_int_eq(waitpid(other.pid, NULL, 0), other.pid);
    ck_assert(!cpu_process_alive(&other));
}

TEST(a_pid_that_was_given_again_is_another_process)
{
    struct cpu_process self;

    ck_assert_int_eq(cpu_process_self(&self), WEFT_OK);
    ck_assert_uint_ne(self.start, 0);
    self.start -= 1;
    ck_assert(!cpu_process_alive(&self));
}

TEST(there_is_a_processor)
{
    ck_assert_int_ge(cpu_processors(), 1);
}
