/* entry.c - `weft run --threads`: the ranks as threads of one process.
 *
 * The program is a shared object that exports `int weft_main(int argc, char **argv)` and is linked
 * with libweft.  The threads must be run by the library that the program is linked with, which is
 * found through the program; it may be another version than the tool's. */
#include "run/run.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

struct entry {
    int (*weft_main)(int argc, char **argv);
    char **program;
    int argc;
    atomic_int code; /* exit code of the rank that failed first */
};

static weft_status call(void *argument)
{
    struct entry *entry = argument;
    int code = entry->weft_main(entry->argc, entry->program), none = 0;

    if (code == 0) return WEFT_OK;
    atomic_compare_exchange_strong(&entry->code, &none, code);
    return WEFT_ERR_PEER;
}

static void *find(void *object, const char *program, const char *name)
{
    void *symbol = dlsym(object, name);

    if (symbol == NULL)
        fprintf(
            stderr,
            "weft run: %s has no %s; --threads wants a shared object, linked with libweft, that "
            "exports `int weft_main(int argc, char **argv)`\n",
            program, name);
    return symbol;
}

/* The process is the program's now; `weft status` shows this name. */
static void take_name(const char *program)
{
    const char *slash = strrchr(program, '/');

    (void)prctl(PR_SET_NAME, slash != NULL ? slash + 1 : program);
}

int run_entry(const struct run_job *job)
{
    struct entry entry = {.program = job->program};
    weft_status (*threads_run)(int32_t, weft_status(*)(void *), void *);
    void *object, *symbols[2];
    char path[4096];

    /* A name without a slash is a file in this directory. dlopen alone would search its library
     * path. */
    snprintf(path, sizeof path, "%s%s", strchr(job->program[0], '/') != NULL ? "" : "./",
             job->program[0]);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        fprintf(stderr, "weft run: cannot open %s: %s\n", job->program[0], dlerror());
        return 127;
    }
    symbols[0] = find(object, job->program[0], "weft_main");
    if (symbols[0] == NULL) return 127;
    symbols[1] = find(object, job->program[0], "weft_threads_run");
    if (symbols[1] == NULL) return 127;
    memcpy(&entry.weft_main, &symbols[0], sizeof symbols[0]);
    memcpy(&threads_run, &symbols[1], sizeof symbols[1]);
    while (job->program[entry.argc] != NULL)
        entry.argc++;
    take_name(job->program[0]);
    if (threads_run(job->ranks, call, &entry) != WEFT_OK && entry.code == 0) entry.code = 1;
    fflush(NULL); /* the process ends without going through exit */
    return entry.code & 255;
}
