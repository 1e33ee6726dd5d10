/* call_driver.c - runs the cases of test_function for every public function.
 *
 * Each function has a child process with its own objects, because a fork of a rank is refused.  If
 * a case ends the child, the next child goes on with the case after it. */
#include "call_suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The results of a child, in shared memory. */
struct report {
    int case_number; /* counted while the child runs */
    char case_name[96];
    int failures, cases;
};

static struct report *report;
const struct function *function;
struct world world;
static int first_case;

bool begin_case(const char *format, ...)
{
    va_list list;

    if (++report->case_number < first_case) return false;
    va_start(list, format);
    vsnprintf(report->case_name, sizeof report->case_name, format, list);
    va_end(list);
    report->cases++;
    return true;
}

void expect(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "not so: %s, %s: %s; the last error is \"%s\"\n", function->name,
            report->case_name, what, weft_last_error());
    report->failures++;
}

void fill(uintptr_t *p)
{
    memset(p, 0, MAX_POINTERS * sizeof *p);
    function->fill(&world, p);
}

struct answer call(const uintptr_t *p)
{
    struct answer answer = {0};

    (void)weft_fail(WEFT_ERR_INVALID, "no error of this call");
    function->call(p, &answer);
    return answer;
}

static bool is_result(enum role role)
{
    return role == ROLE_RESULT || role == ROLE_INFO || role == ROLE_ABI_INFO;
}

void expect_untouched(const uintptr_t *p)
{
    for (int i = 0; i < function->pointers; i++) {
        const struct pointer *one = &function->pointer[i];
        size_t head = one->role == ROLE_INFO       ? sizeof(size_t)
                      : one->role == ROLE_ABI_INFO ? sizeof(uint32_t)
                                                   : 0;
        bool same = true;

        if (p[i] == 0 || !is_result(one->role)) continue;
        for (size_t at = head; at < SLOT_BYTES; at++)
            if (world.slots[i][at] != UNTOUCHED) same = false;
        expect(same, "a result is written although the call fails");
    }
}

/* Run the cases of the function from number FIRST on; the number of the case that ended the child,
 * or 0. */
static int run_child(int first)
{
    pid_t child;
    int status;

    report->case_number = 0;
    strcpy(report->case_name, "before the first case");
    child = fork();
    if (child == 0) {
        first_case = first;
        alarm(120);
        test_function();
        fflush(NULL);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    fprintf(stderr, "not so: %s, %s: the process ended with %s %d\n", function->name,
            report->case_name, WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    report->failures++;
    return report->case_number;
}

int main(int argc, char **argv)
{
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) abort();
    for (size_t i = 0; i < function_count; i++) {
        int first = 1;

        function = &functions[i];
        if (argc > 1 && strcmp(argv[1], function->name) != 0) continue;
        while ((first = run_child(first)) > 0)
            first++;
    }
    printf("%zu functions, %d cases, %d failures\n", function_count, report->cases,
           report->failures);
    return report->failures > 0 || report->cases == 0;
}
