/* dump_rank.c - a rank whose dumps check_dump.py reads.
 *
 *     dump_rank [--threads N] SCENARIO [RANK]
 *
 * WEFT_DUMP names the files.  Four ranks, except for `signals` and `leave`. */
#include "../../support/move.h"
#include "claims.h"
#include <weft/weft.h>
#include <weft/trace.h>
#include <weft/symm.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct rank {
    weft_context *context;
    weft_comm *world;
    int number;
    char *source, *target; /* 256 KiB each */
    int failed;
};

static const char *scenario;
static int chosen; /* the rank that differs from the others */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static weft_status reduce(struct rank *self, uint64_t count, enum weft_dtype dtype)
{
    return weft_all_reduce(self->world, self->source, self->target, count, dtype, WEFT_REDUCE_SUM,
                           NULL);
}

/* ---- every kind of operation ---- */

static void make_collectives(struct rank *self)
{
    weft_comm *w = self->world;
    void *x = self->source, *y = self->target;
    enum weft_reduction sum = WEFT_REDUCE_SUM;
    uint64_t counts[4] = {1, 2, 3, 4}, offsets[4] = {0, 1, 3, 6};
    uint64_t even[4] = {2, 2, 2, 2}, places[4] = {0, 2, 4, 6}, mine = counts[self->number];

    WORKS(weft_all_reduce(w, x, y, 8, WEFT_DTYPE_F32, sum, NULL));
    WORKS(weft_all_gather(w, x, y, 8, WEFT_DTYPE_BF16, NULL));
    WORKS(weft_reduce_scatter(w, x, y, 8, WEFT_DTYPE_F64, sum, NULL));
    WORKS(weft_all_to_all(w, x, y, 8, WEFT_DTYPE_U8, NULL));
    WORKS(weft_broadcast(w, x, y, 8, WEFT_DTYPE_I32, 1, NULL));
    WORKS(weft_reduce(w, x, y, 8, WEFT_DTYPE_I64, sum, 2, NULL));
    WORKS(weft_gather(w, x, y, 8, WEFT_DTYPE_F16, 3, NULL));
    WORKS(weft_scatter(w, x, y, 8, WEFT_DTYPE_I16, 0, NULL));
    WORKS(weft_barrier(w, NULL));
    WORKS(weft_all_gather_v(w, x, y, counts, offsets, WEFT_DTYPE_F32, NULL));
    WORKS(weft_reduce_scatter_v(w, x, y, counts, offsets, WEFT_DTYPE_F32, sum, NULL));
    WORKS(weft_all_to_all_v(w, x, even, places, y, even, places, WEFT_DTYPE_F32, NULL));
    WORKS(weft_gather_v(w, x, mine, y, counts, offsets, WEFT_DTYPE_F32, 1, NULL));
    WORKS(weft_scatter_v(w, x, counts, offsets, y, mine, WEFT_DTYPE_F32, 2, NULL));
}

/* Every rank sends to the next, twice, and rank 3 sends once to rank 1. */
static void make_messages(struct rank *self)
{
    int32_t next = (self->number + 1) % 4, previous = (self->number + 3) % 4;

    for (int i = 0; i < 2; i++) {
        WORKS(weft_group_begin(self->world));
        WORKS(weft_send(self->world, self->source, 10, WEFT_DTYPE_F32, next, 0, NULL));
        WORKS(weft_receive(self->world, self->target, 10, WEFT_DTYPE_F32, previous, 0, NULL));
        WORKS(weft_group_end(self->world));
    }
    if (self->number == 3)
        WORKS(weft_send(self->world, self->source, 5, WEFT_DTYPE_I8, 1, 0, NULL));
    if (self->number == 1)
        WORKS(weft_receive(self->world, self->target, 5, WEFT_DTYPE_I8, 3, 0, NULL));
}

/* Run the plan between two layouts, under the name NAME. */
static void run_plan(struct rank *self, const char *from, const char *to, uint32_t planner,
                     const char *name)
{
    weft_plan_options planning = {.struct_size = sizeof planning, .planner = planner};
    weft_bind_options binding = {.struct_size = sizeof binding, .name = name};
    weft_mesh *mesh = NULL;
    weft_spec *specs[2] = {NULL, NULL};
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;

    WORKS(weft_mesh_parse("dp=2,tp=2", &mesh));
    WORKS(weft_spec_parse(mesh, from, &specs[0]));
    WORKS(weft_spec_parse(mesh, to, &specs[1]));
    WORKS(weft_plan_create(specs[0], specs[1], &planning, &plan));
    WORKS(weft_plan_bind(plan, self->world, &binding, &bound));
    WORKS(weft_redistribute(bound, self->source, self->target, NULL, NULL));
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_spec_release(&specs[0]);
    weft_spec_release(&specs[1]);
    weft_mesh_release(&mesh);
}

static void run_plans(struct rank *self)
{
    run_plan(self, "f32[64,64] R,R", "f32[64,64] S(0),R", WEFT_PLANNER_SEARCH, "sliced");
    run_plan(self, "f32[64,64] R,R", "f32[64,64] P,R", WEFT_PLANNER_SEARCH, "parted");
    run_plan(self, "f32[64,64] S(0),R", "f32[64,64] R,R", WEFT_PLANNER_SEARCH, "gathered");
    run_plan(self, "f32[63,64] S(0),R", "f32[63,64] R,R", WEFT_PLANNER_SEARCH, "gathered unevenly");
    run_plan(self, "f32[64,64] P,R", "f32[64,64] S(0),R", WEFT_PLANNER_SEARCH, "scattered");
    run_plan(self, "f32[63,64] P,R", "f32[63,64] S(0),R", WEFT_PLANNER_SEARCH,
             "scattered unevenly");
    run_plan(self, "f32[64,64] P,R", "f32[64,64] R,R", WEFT_PLANNER_SEARCH, "reduced");
    run_plan(self, "f32[64,64] S(0),R", "f32[64,64] S(1),R", WEFT_PLANNER_SEARCH, "turned");
    run_plan(self, "f32[64,64] S(0)[1],S(0)[0]", "f32[64,64] S(0),S(0)", WEFT_PLANNER_SEARCH,
             "a\n\xff\"\xed\xa0\x80\\\xe2\x82\xac");
    run_plan(self, "f32[63,64] R,S(1)", "f32[63,64] S(0),R", WEFT_PLANNER_EXCHANGE, "exchanged");
    run_plan(self, "bf16[64,64] S(0),R", "f32[64,64] R,R", WEFT_PLANNER_SEARCH, "widened");
    run_plan(self, "f32[64,64] P,R", "bf16[64,64] R,R", WEFT_PLANNER_SEARCH, "narrowed");
}

static void run_batch(struct rank *self)
{
    weft_mesh *mesh = NULL;
    weft_spec *rows = NULL, *columns = NULL;

    WORKS(weft_mesh_parse("dp=2,tp=2", &mesh));
    WORKS(weft_spec_parse(mesh, "f32[64,64] S(0),R", &rows));
    WORKS(weft_spec_parse(mesh, "f32[64,64] R,S(1)", &columns));
    WORKS(move_items(
        self->context, 2,
        (weft_move_item[]){{"one", rows, self->source, columns, self->target},
                           {"two", rows, self->source + 65536, columns, self->target + 65536}},
        NULL, NULL));
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    weft_mesh_release(&mesh);
}

/* A communicator that was released still has records. */
static void use_part(struct rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .name = "odd\"\\\xc3\xa9"};
    weft_comm *part = NULL;

    WORKS(weft_comm_split(self->world, self->number % 2, -self->number, &options, &part));
    WORKS(weft_barrier(part, NULL));
    weft_comm_release(&part);
}

static void use_memory(struct rank *self)
{
    weft_symm *symm = NULL;

    WORKS(weft_symm_create(self->world, 4096, NULL, &symm));
    WORKS(weft_symm_barrier(symm, NULL));
    weft_symm_release(&symm);
}

static void do_all(struct rank *self)
{
    make_collectives(self);
    make_messages(self);
    run_plans(self);
    run_batch(self);
    use_part(self);
    use_memory(self);
    WORKS(weft_barrier(self->world, NULL));
    WORKS(weft_dump(self->context, NULL));
}

/* ---- failures ---- */

static void reduce_until_error(struct rank *self)
{
    while (reduce(self, 8, WEFT_DTYPE_F32) == WEFT_OK)
        continue;
    printf("as expected: %s\n", weft_last_error());
}

static void do_end(struct rank *self, int signal)
{
    for (int i = 0; i < 10; i++)
        WORKS(reduce(self, 8, WEFT_DTYPE_F32));
    if (self->number == chosen) raise(signal);
    reduce_until_error(self);
}

/* The chosen rank does something else than the others. */
static void do_defect(struct rank *self)
{
    bool differs = self->number == chosen;
    const char *defect = scenario + strlen("wrong-");

    for (int i = 0; i < 3; i++)
        WORKS(reduce(self, 8, WEFT_DTYPE_F32));
    if (differs && strcmp(defect, "rank") == 0)
        while (weft_comm_async_error(self->world) == WEFT_OK)
            pause_ms(10);
    else if (differs && strcmp(defect, "operation") == 0)
        HOLDS(weft_all_gather(self->world, self->source, self->target, 8, WEFT_DTYPE_F32, NULL) !=
              WEFT_OK);
    else if (differs && strcmp(defect, "size") == 0)
        HOLDS(reduce(self, 9, WEFT_DTYPE_F32) != WEFT_OK);
    else if (differs && strcmp(defect, "dtype") == 0)
        HOLDS(reduce(self, 8, WEFT_DTYPE_I32) != WEFT_OK);
    else
        HOLDS(reduce(self, 8, WEFT_DTYPE_F32) != WEFT_OK);
    printf("as expected: %s\n", weft_last_error());
}

/* Files that cannot be written do not disturb the job. */
static void do_refused(struct rank *self)
{
    struct rlimit limit, small;

    WORKS(reduce(self, 8, WEFT_DTYPE_F32));
    HOLDS(weft_dump(self->context, "/nonexistent/dump") == WEFT_ERR_SYSTEM);
    HOLDS(strstr(weft_last_error(), "weft_dump: /nonexistent/dump.") != NULL);
    HOLDS(strstr(weft_last_error(), "No such file") != NULL);
    HOLDS(weft_dump(self->context, "/dev/null/dump") == WEFT_ERR_SYSTEM);
    HOLDS(weft_dump(NULL, "x") == WEFT_ERR_INVALID);
    WORKS(weft_barrier(self->world, NULL)); /* the limit is the process's */
    if (self->number == 0) {
        for (int i = 0; i < 100; i++)
            HOLDS(weft_dump(self->context, "/nonexistent/dump") == WEFT_ERR_SYSTEM);
        HOLDS(getrlimit(RLIMIT_FSIZE, &limit) == 0);
        small = limit;
        small.rlim_cur = 1000;
        HOLDS(setrlimit(RLIMIT_FSIZE, &small) == 0);
        HOLDS(weft_dump(self->context, NULL) == WEFT_ERR_SYSTEM);
        HOLDS(strstr(weft_last_error(), "File too large") != NULL);
        HOLDS(raise(SIGUSR1) == 0);
        HOLDS(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    WORKS(reduce(self, 8, WEFT_DTYPE_F32));
}

/* ---- signals ---- */

static atomic_int handled;
static atomic_bool is_done;

static void count_signal(int number)
{
    handled += number == SIGUSR1;
}

static void *send_signals(void *process)
{
    while (!is_done) {
        int before = handled;

        kill(*(const pid_t *)process, SIGUSR1);
        while (handled == before)
            pause_ms(1);
        pause_ms(50);
    }
    return NULL;
}

static void do_signals(struct rank *self)
{
    int32_t *sum = (int32_t *)(void *)self->target;

    for (int i = 0; i < 10000; i++) {
        bool has_enough = i % 100 == 99; /* if all ranks have handled ten signals */
        int32_t given = has_enough ? handled >= 10 : i;

        if (i == 500) HOLDS(raise(SIGUSR1) == 0);
        *(int32_t *)(void *)self->source = given;
        WORKS(reduce(self, 1, WEFT_DTYPE_I32));
        if (!has_enough) HOLDS(*sum == i * weft_size(self->context));
        if (has_enough && i > 500 && *sum == weft_size(self->context)) break;
    }
}

/* Each rank leaves right after its signal, while the handler of another may be writing. */
static void do_leave(struct rank *self)
{
    WORKS(reduce(self, 8, WEFT_DTYPE_F32));
    HOLDS(raise(SIGUSR1) == 0);
}

/* ---- one rank ---- */

/* A communicator of two ranks fails: the other ranks write their dumps too. */
static void do_part(struct rank *self)
{
    weft_comm *part = NULL;
    char path[4096];

    WORKS(reduce(self, 8, WEFT_DTYPE_F32));
    WORKS(weft_comm_split(self->world, self->number < 2 ? 0 : WEFT_NO_COLOR, 0, NULL, &part));
    if (self->number == 0) weft_comm_abort(part);
    snprintf(path, sizeof path, "%s-%d.json", getenv("WEFT_DUMP"), self->number);
    for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++)
        pause_ms(10);
    weft_comm_release(&part);
}

static void act(struct rank *self)
{
    if (strcmp(scenario, "part") == 0) do_part(self);
    if (strcmp(scenario, "all") == 0) do_all(self);
    if (strcmp(scenario, "killed") == 0) do_end(self, SIGKILL);
    if (strcmp(scenario, "stopped") == 0) do_end(self, SIGSTOP);
    if (strncmp(scenario, "wrong-", 6) == 0) do_defect(self);
    if (strcmp(scenario, "refused") == 0) do_refused(self);
    if (strcmp(scenario, "signals") == 0) do_signals(self);
    if (strcmp(scenario, "leave") == 0) do_leave(self);
    if (strcmp(scenario, "calm") == 0) WORKS(reduce(self, 8, WEFT_DTYPE_F32));
}

static weft_status run_rank(void *argument)
{
    struct rank *self = calloc(1, sizeof *self);
    void *memory[2];
    int failed;

    (void)argument;
    if (self == NULL) return weft_fail(WEFT_ERR_NO_MEMORY, "no memory");
    if (weft_init(NULL, &self->context) != WEFT_OK) return WEFT_ERR_INTERNAL;
    self->number = weft_rank(self->context);
    self->world = weft_world(self->context);
    for (int i = 0; i < 2; i++)
        WORKS(weft_alloc(self->context, 262144, WEFT_MEMORY_DEVICE, &memory[i]));
    memset(memory[0], 0, 262144);
    self->source = memory[0];
    self->target = memory[1];
    act(self);
    for (int i = 0; i < 2; i++)
        if (weft_free(self->context, memory[i]) != WEFT_OK) puts(weft_last_error());
    weft_context_release(&self->context);
    failed = self->failed;
    free(self);
    return failed ? weft_fail(WEFT_ERR_INTERNAL, "a claim does not hold") : WEFT_OK;
}

/* The program's handler runs, too, and is back in its place at the end. */
static int check_handler(void)
{
    struct sigaction now;

    sigaction(SIGUSR1, NULL, &now);
    if (handled > 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == count_signal) return 0;
    fprintf(stderr, "not so: %d signals were handled, and the handler is back\n", (int)handled);
    return 1;
}

int main(int argc, char **argv)
{
    int threads = argc > 3 && strcmp(argv[1], "--threads") == 0 ? atoi(argv[2]) : 0;
    char **rest = argv + (threads > 0 ? 3 : 1);
    bool has_signals;
    weft_status status;
    pid_t self = getpid();
    pthread_t sender;

    if (argc < 2) return 2;
    scenario = rest[0];
    chosen = rest[1] != NULL ? atoi(rest[1]) : 0;
    has_signals = strcmp(scenario, "signals") == 0;
    if (has_signals) {
        signal(SIGUSR1, count_signal);
        if (pthread_create(&sender, NULL, send_signals, &self) != 0) return 3;
    }
    status = threads > 0 ? weft_threads_run(threads, run_rank, NULL) : run_rank(NULL);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
    is_done = true;
    if (has_signals) {
        pthread_join(sender, NULL);
        if (check_handler() != 0) return EXIT_FAILURE;
    }
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
