/* fork_rank.c - one rank that forks: `fork_rank calls`, or `fork_rank orphan RANK`.
 *
 * Ranks that see the expected result print "as expected" and their error, and return 0. */
#include "weft/weft.h"
#include "weft/symm.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static weft_context *ctx;
static weft_comm *part;
static weft_bound *bound;
static weft_symm *symm;
static char *memory; /* memory of the backend for the plan and symmetric memory */

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: not so: %s: %s\n", __LINE__, #condition, weft_last_error()); \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) MUST((call) == WEFT_OK)
#define REFUSED(call)                                                                              \
    MUST((call) == WEFT_ERR_INVALID &&                                                             \
         strstr(weft_last_error(), "this process is a fork of the process that called weft_init"))

static void make_plan(weft_plan **out)
{
    weft_mesh *mesh;
    weft_spec *from, *to;
    char text[16];

    snprintf(text, sizeof text, "%d", weft_size(ctx));
    OK(weft_mesh_parse(text, &mesh));
    OK(weft_spec_parse(mesh, "f32[64,64] S(0)", &from));
    OK(weft_spec_parse(mesh, "f32[64,64] R", &to));
    OK(weft_plan_create(from, to, NULL, out));
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
}

static weft_status redistribute(void)
{
    return weft_redistribute(bound, memory, memory + 65536, NULL, NULL);
}

static weft_status reduce(void)
{
    return weft_all_reduce(part, memory, memory + 65536, 64, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
}

/* Descriptors of sockets, events and shared memory, all of which belong to weft here. */
static int foreign_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;

    MUST(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        char path[300], target[256] = "";

        snprintf(path, sizeof path, "/proc/self/fd/%.30s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) < 0 || atoi(entry->d_name) <= STDERR_FILENO)
            continue;
        count += strncmp(target, "socket:", 7) == 0 || strncmp(target, "anon_inode:", 11) == 0 ||
                 strncmp(target, "/memfd:", 7) == 0 || strncmp(target, "/dev/shm/", 9) == 0;
    }
    closedir(folder);
    return count;
}

/* The child calls every function and exits normally. */
static void try_all(void)
{
    weft_context *other = NULL;
    weft_comm *comm = NULL;
    void *more = NULL;

    MUST(foreign_files() == 0);
    REFUSED(reduce());
    REFUSED(weft_barrier(weft_world(ctx), NULL));
    REFUSED(redistribute());
    REFUSED(weft_symm_put_to(symm, memory, 0, 0, 64, NULL));
    REFUSED(weft_symm_barrier(symm, NULL));
    REFUSED(weft_comm_split(part, 0, 0, NULL, &comm));
    REFUSED(weft_alloc(ctx, 64, WEFT_MEMORY_DEVICE, &more));
    REFUSED(weft_free(ctx, memory));
    REFUSED(weft_init(NULL, &other));
    weft_comm_abort(part);
    weft_symm_release(&symm);
    weft_bound_release(&bound);
    weft_comm_release(&part);
    weft_context_release(&ctx);
    MUST(symm == NULL && bound == NULL && part == NULL && ctx == NULL);
    exit(0);
}

static int calls(int number)
{
    int code;
    pid_t child;

    (void)number;
    MUST(foreign_files() > 0);
    for (int i = 0; i < 5; i++) {
        fflush(NULL);
        child = fork();
        if (child == 0) try_all();
        OK(reduce());
        OK(redistribute());
        MUST(child > 0 && waitpid(child, &code, 0) == child && code == 0);
        OK(reduce());
        OK(redistribute());
        OK(weft_symm_barrier(symm, NULL));
    }
    printf("as expected\n");
    return 0;
}

/* Rank NUMBER is killed while its child lives.  The others wait where only the rendezvous can
 * report it. */
static int orphan(int number)
{
    weft_comm *comm = NULL;
    weft_status status;
    pid_t child;

    OK(reduce());
    if (weft_rank(ctx) == number) {
        child = fork();
        if (child == 0) {
            for (int fd = 0; fd <= STDERR_FILENO; fd++)
                close(fd);
            alarm(200);
            for (;;)
                pause();
        }
        printf("child %d\n", (int)child);
        fflush(NULL);
        raise(SIGKILL);
    }
    status = weft_comm_split(part, 0, 0, NULL, &comm);
    printf("as expected: %s: %s\n", weft_status_name(status), weft_last_error());
    return status == WEFT_ERR_PEER ? 0 : 4;
}

int main(int argc, char **argv)
{
    weft_plan *plan;
    int code;

    if (argc < 2) return 2;
    OK(weft_init(NULL, &ctx));
    OK(weft_comm_split(weft_world(ctx), 0, 0, NULL, &part));
    OK(weft_alloc(ctx, 131072, WEFT_MEMORY_DEVICE, (void **)&memory));
    make_plan(&plan);
    OK(weft_plan_bind(plan, part, NULL, &bound));
    weft_plan_release(&plan);
    OK(weft_symm_create(part, 4096, NULL, &symm));
    code = strcmp(argv[1], "orphan") == 0 ? orphan(argc > 2 ? atoi(argv[2]) : 0) : calls(0);
    weft_symm_release(&symm);
    weft_bound_release(&bound);
    weft_comm_release(&part);
    OK(weft_free(ctx, memory));
    weft_context_release(&ctx);
    return code;
}
