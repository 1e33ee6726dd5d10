/* elastic_rank.c - a rank of an elastic job: `elastic_rank STEPS [RANK:STEP:EVENT]...`.
 *
 * In each step every rank adds 1 to its shard of a tensor and takes part in an all-reduce.  At an
 * event, the rank with that number at the start is killed, stops, goes, or calls weft_context_next
 * (EVENT: kill, stop, leave, next), or stops in an all-reduce of 64 MiB (EVENT: large).  The others
 * make the next generation, move the tensor into a layout of theirs, and check every element, and
 * that processes of lost ranks are dead.
 *
 * ELASTIC_PAUSE_MS makes steps last so many milliseconds.  `elastic_rank threads` makes an elastic
 * job of threads, which is refused. */
#include "weft/symm.h"
#include "weft/weft.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 48, COLUMNS = 5, MOST = 1024, LARGE = 16 << 20 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) return try_status;                                              \
    } while (0)

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) return wrong(#condition, __LINE__);                                      \
    } while (0)

struct event {
    int rank, step;
    char what[8];
};

struct rank {
    weft_context *ctx;
    int first;          /* its number at the start */
    int first_of[MOST]; /* by rank of now: its number at the start */
    int steps, done;
    struct event events[MOST];
    int event_count;
    weft_mesh *mesh;
    weft_spec *spec;
    weft_tensor *tensor;
    uint64_t tensor_generation;
    int32_t tensor_size, tensor_ranks[MOST]; /* by rank of now: its number in MESH */
    weft_comm *part;
    weft_bound *bound;
    weft_symm *symm;
    uint64_t part_generation;
    void *piece;        /* of weft_alloc in the first generation */
    float *large;       /* [LARGE elements] NULL: no all-reduce of so many has been begun */
    int32_t pids[MOST]; /* by number at the start */
    bool is_one_host;
};

static int faults;

static weft_status wrong(const char *what, int line)
{
    printf("not so: %s, line %d; the last error is: %s\n", what, line, weft_last_error());
    fflush(stdout);
    faults++;
    return WEFT_ERR_INTERNAL;
}

/* ---- the state: element I of step S is I + S ---- */

static float element(int64_t row, int64_t column, int step)
{
    return (float)(row * COLUMNS + column + step);
}

static void set(const struct rank *rank, int step)
{
    const weft_shard *shard = weft_tensor_shard(rank->tensor);
    float *memory = weft_tensor_memory(rank->tensor);

    for (int64_t r = 0; memory != NULL && r < shard->shape[0]; r++)
        for (int64_t c = 0; c < COLUMNS; c++)
            memory[r * COLUMNS + c] = element(shard->offset[0] + r, c, step);
}

static bool is_right(const weft_tensor *tensor, const float *memory, int step)
{
    const weft_shard *shard = weft_tensor_shard(tensor);

    for (int64_t r = 0; r < shard->shape[0]; r++)
        for (int64_t c = 0; c < COLUMNS; c++)
            if (memory[r * COLUMNS + c] != element(shard->offset[0] + r, c, step)) return false;
    return true;
}

/* Two replicas of two shards, while there are four ranks; otherwise, and with ELASTIC_REPLICAS, a
 * replica per rank. */
static weft_status make_tensor(struct rank *rank)
{
    int size = weft_size(rank->ctx);
    bool is_split = size == 4 && getenv("ELASTIC_REPLICAS") == NULL;
    char text[32], layout[64];

    snprintf(text, sizeof text, is_split ? "dp=2,tp=2" : "x=%d", size);
    snprintf(layout, sizeof layout, "f32[%d,%d] %s", ROWS, COLUMNS, is_split ? "R,S(0)" : "R");
    TRY(weft_mesh_parse(text, &rank->mesh));
    TRY(weft_spec_parse(rank->mesh, layout, &rank->spec));
    TRY(weft_tensor_create(rank->ctx, rank->spec, NULL, &rank->tensor));
    set(rank, rank->done);
    rank->tensor_generation = weft_context_generation(rank->ctx);
    rank->tensor_size = size;
    for (int32_t r = 0; r < size; r++)
        rank->tensor_ranks[r] = r;
    return WEFT_OK;
}

static void release_tensor(struct rank *rank)
{
    weft_tensor_release(&rank->tensor);
    weft_spec_release(&rank->spec);
    weft_mesh_release(&rank->mesh);
}

/* ---- a step ---- */

static void meet_events(struct rank *rank, int step)
{
    for (int i = 0; i < rank->event_count; i++) {
        struct event *event = &rank->events[i];

        if (event->rank != rank->first || event->step != step) continue;
        if (strcmp(event->what, "kill") == 0) raise(SIGKILL);
        if (strcmp(event->what, "stop") == 0) {
            event->step = -1; /* it may go on, and repeat the step */
            raise(SIGSTOP);
        }
        if (strcmp(event->what, "leave") == 0) {
            release_tensor(rank);
            if (weft_free(rank->ctx, rank->piece) != WEFT_OK) exit(EXIT_FAILURE);
            weft_bound_release(&rank->bound);
            weft_comm_release(&rank->part);
            weft_context_release(&rank->ctx);
            printf("left in step %d\n", step);
            exit(EXIT_SUCCESS);
        }
    }
}

/* It is taken once: the step may be repeated. */
static bool take_request(struct rank *rank, int step)
{
    for (int i = 0; i < rank->event_count; i++) {
        struct event *event = &rank->events[i];

        if (event->rank != rank->first || event->step != step || strcmp(event->what, "next") != 0)
            continue;
        event->step = -1;
        return true;
    }
    return false;
}

static void stop_here(int signal)
{
    (void)signal;
    (void)raise(SIGSTOP);
}

/* The all-reduce in which a rank stops.  It is done once. */
static weft_status reduce_large(struct rank *rank, struct event *event)
{
    struct sigaction action = {.sa_handler = stop_here, .sa_flags = SA_RESTART};
    struct itimerval soon = {.it_value = {.tv_usec = 4000}};

    event->step = -1;
    rank->large = calloc(LARGE, sizeof *rank->large);
    EXPECT(rank->large != NULL);
    TRY(weft_barrier(weft_world(rank->ctx), NULL));
    if (event->rank == rank->first) {
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    for (int i = 0; i < 100; i++)
        TRY(weft_all_reduce(weft_world(rank->ctx), rank->large, rank->large, LARGE, WEFT_DTYPE_F32,
                            WEFT_REDUCE_SUM, NULL));
    return WEFT_OK;
}

static struct event *find_large(struct rank *rank, int step)
{
    for (int i = 0; i < rank->event_count; i++)
        if (rank->events[i].step == step && strcmp(rank->events[i].what, "large") == 0)
            return &rank->events[i];
    return NULL;
}

/* No lost rank writes the memory that it wrote before. */
static weft_status check_large(struct rank *rank)
{
    struct timespec pause = {.tv_nsec = 100000000};

    if (rank->large == NULL) return WEFT_OK;
    for (int i = 0; i < LARGE; i++)
        rank->large[i] = (float)i;
    nanosleep(&pause, NULL);
    for (int i = 0; i < LARGE; i++)
        EXPECT(rank->large[i] == (float)i);
    free(rank->large);
    rank->large = NULL;
    return WEFT_OK;
}

static weft_status work(struct rank *rank)
{
    weft_context *ctx = rank->ctx;
    weft_comm *part = NULL;
    const char *pause = getenv("ELASTIC_PAUSE_MS");
    float one[4000], sum[4000];

    for (int i = 0; i < 4000; i++)
        one[i] = 1;
    for (int step = rank->done + 1; step <= rank->steps; step++) {
        meet_events(rank, step);
        if (pause != NULL) usleep(1000 * (useconds_t)atoi(pause));
        if (take_request(rank, step)) return WEFT_ERR_ABORTED;
        if (find_large(rank, step) != NULL) TRY(reduce_large(rank, find_large(rank, step)));
        TRY(weft_all_reduce(weft_world(ctx), one, sum, 4000, WEFT_DTYPE_F32, WEFT_REDUCE_SUM,
                            NULL));
        EXPECT(sum[0] == (float)weft_size(ctx) && sum[3999] == (float)weft_size(ctx));
        if (step % 4 == 0) {
            TRY(weft_comm_split(weft_world(ctx), weft_rank(ctx) % 2, 0, NULL, &part));
            weft_comm_release(&part);
        }
        set(rank, step);
        rank->done = step;
    }
    return WEFT_OK;
}

/* ---- the next generation ---- */

/* What belongs to the generation before refuses calls with its number. */
static weft_status check_refusals(struct rank *rank)
{
    char text[64];
    float x = 1;

    snprintf(text, sizeof text, "generation %" PRIu64 " of the job has ended",
             rank->part_generation);
    EXPECT(weft_all_reduce(rank->part, &x, &x, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL) ==
           WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), text) != NULL);
    EXPECT(rank->bound == NULL ||
           weft_redistribute(rank->bound, NULL, NULL, NULL, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), text) != NULL);
    weft_bound_release(&rank->bound);
    EXPECT(rank->symm == NULL || weft_symm_barrier(rank->symm, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), text) != NULL);
    weft_symm_release(&rank->symm);
    weft_comm_release(&rank->part);
    snprintf(text, sizeof text, "generation %" PRIu64 " of the job has ended",
             rank->tensor_generation);
    EXPECT(weft_tensor_fill(rank->tensor, 0, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), text) != NULL);
    return WEFT_OK;
}

/* Move the tensor of before to shards of all ranks, from living holders. */
static weft_status restore(struct rank *rank, const weft_next_info *next, weft_tensor **out)
{
    int32_t holders[MOST];
    weft_plan_options options = {.struct_size = sizeof options,
                                 .holder_count = (size_t)rank->tensor_size,
                                 .holders = holders};
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;
    char layout[64];

    for (int32_t r = 0; r < rank->tensor_size; r++)
        holders[r] = -1;
    for (int32_t r = 0; r < next->size; r++)
        holders[rank->tensor_ranks[r]] = r;
    snprintf(layout, sizeof layout, "f32[%d,%d] S(0)", ROWS, COLUMNS);
    TRY(weft_mesh_follow(rank->mesh, (size_t)next->size, rank->tensor_ranks, WEFT_FOLLOW_PACK, "x",
                         &mesh));
    TRY(weft_spec_parse(mesh, layout, &spec));
    TRY(weft_tensor_create(rank->ctx, spec, NULL, out));
    TRY(weft_plan_create(rank->spec, spec, &options, &plan));
    TRY(weft_plan_bind(plan, weft_world(rank->ctx), NULL, &bound));
    TRY(weft_redistribute(bound, weft_tensor_memory(rank->tensor), weft_tensor_memory(*out), NULL,
                          NULL));
    TRY(weft_context_wait(rank->ctx, NULL, WEFT_FOREVER));
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return WEFT_OK;
}

/* A process that has ended, and for which its parent may not have waited. */
static bool is_dead(int32_t pid)
{
    char path[64], text[512] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) return true;
    state = fgets(text, sizeof text, file) != NULL ? strrchr(text, ')') : NULL;
    fclose(file);
    return state == NULL || state[2] == 'Z' || state[2] == 'X';
}

static weft_status check_info(struct rank *rank, const weft_next_info *next)
{
    EXPECT(next->rank == weft_rank(rank->ctx) && next->size == weft_size(rank->ctx));
    EXPECT(next->generation == weft_context_generation(rank->ctx));
    EXPECT(next->old_count == (size_t)next->size);
    EXPECT(rank->first_of[next->old_ranks[next->rank]] == rank->first);
    EXPECT(next->step >= (uint64_t)rank->done && next->step <= (uint64_t)rank->done + 1);
    /* Another rank may be lost by now, but not where the events are the only ones. */
    EXPECT(getenv("ELASTIC_REPLICAS") != NULL || !weft_context_wants_next(rank->ctx));
    for (size_t i = 0; i < next->lost_count; i++) {
        printf("lost %d: %s\n", rank->first_of[next->lost[i]], next->reasons[i]);
        EXPECT(strncmp(next->reasons[i], "is gone", 7) == 0 ||
               strncmp(next->reasons[i], "was expelled", 12) == 0 ||
               strncmp(next->reasons[i], "has left", 8) == 0);
        EXPECT(!rank->is_one_host || strncmp(next->reasons[i], "has left", 8) == 0 ||
               is_dead(rank->pids[rank->first_of[next->lost[i]]]));
    }
    return WEFT_OK;
}

static void follow(struct rank *rank, const weft_next_info *next)
{
    for (int32_t r = 0; r < next->size; r++) { /* old numbers are not smaller */
        rank->first_of[r] = rank->first_of[next->old_ranks[r]];
        rank->tensor_ranks[r] = rank->tensor_ranks[next->old_ranks[r]];
    }
    if (next->step > (uint64_t)rank->done) set(rank, (int)next->step); /* roll forward */
    rank->done = (int)next->step;
}

/* What the next generation finds unreleased. */
static weft_status make_part(struct rank *rank)
{
    weft_plan *plan = NULL;

    rank->part_generation = weft_context_generation(rank->ctx);
    TRY(weft_comm_split(weft_world(rank->ctx), 0, 0, NULL, &rank->part));
    TRY(weft_plan_create(rank->spec, rank->spec, NULL, &plan));
    TRY(weft_plan_bind(plan, weft_world(rank->ctx), NULL, &rank->bound));
    weft_plan_release(&plan);
    if (rank->is_one_host) TRY(weft_symm_create(rank->part, 64, NULL, &rank->symm));
    return WEFT_OK;
}

/* Ranks that may not be expelled are waited for. */
static weft_status call_next(struct rank *rank, const weft_next_options *options,
                             weft_next_info *next)
{
    weft_status status;

    while ((status = weft_context_next(rank->ctx, options, next)) == WEFT_ERR_TIMEOUT &&
           strstr(weft_last_error(), "silent_ns turns it off") != NULL) {
        printf("waits on: %s\n", weft_last_error());
        fflush(stdout);
    }
    return status;
}

static weft_status go_on(struct rank *rank, bool *is_made)
{
    weft_next_options options = {.struct_size = sizeof options, .step = (uint64_t)rank->done};
    weft_next_info next = {.struct_size = sizeof next};
    weft_tensor *moved = NULL;
    float copy[ROWS * COLUMNS];

    *is_made = false;
    TRY(call_next(rank, &options, &next));
    *is_made = true;
    printf("generation %" PRIu64 ": agree %.1f ms, fence %.1f ms, meet %.1f ms, world %.1f ms\n",
           next.generation, (double)next.agree_ns * 1e-6, (double)next.fence_ns * 1e-6,
           (double)next.meet_ns * 1e-6, (double)next.world_ns * 1e-6);
    TRY(check_info(rank, &next));
    if (rank->part != NULL) TRY(check_refusals(rank));
    EXPECT(is_right(rank->tensor, weft_tensor_memory(rank->tensor), rank->done));
    TRY(weft_tensor_to_host(rank->tensor, copy, sizeof copy, NULL));
    EXPECT(is_right(rank->tensor, copy, rank->done));
    EXPECT(memcmp(rank->piece, "kept", 4) == 0);
    TRY(check_large(rank));
    follow(rank, &next);
    TRY(restore(rank, &next, &moved));
    EXPECT(is_right(moved, weft_tensor_memory(moved), rank->done));
    weft_tensor_release(&moved);
    release_tensor(rank);
    TRY(make_tensor(rank));
    return make_part(rank);
}

static weft_status exchange_pids(struct rank *rank)
{
    int32_t own = (int32_t)getpid();

    rank->is_one_host = weft_local_size(rank->ctx) == weft_size(rank->ctx);
    return weft_all_gather(weft_world(rank->ctx), &own, rank->pids, 1, WEFT_DTYPE_I32, NULL);
}

static weft_status run(struct rank *rank)
{
    weft_status status;
    bool is_made;

    TRY(weft_init(NULL, &rank->ctx));
    rank->first = weft_rank(rank->ctx);
    for (int r = 0; r < weft_size(rank->ctx); r++)
        rank->first_of[r] = r;
    EXPECT(weft_context_generation(rank->ctx) == 1);
    TRY(weft_alloc(rank->ctx, 64, WEFT_MEMORY_DEVICE, &rank->piece));
    memcpy(rank->piece, "kept", 4);
    TRY(exchange_pids(rank));
    TRY(make_tensor(rank));
    TRY(make_part(rank));
    printf("generation 1 has begun\n");
    fflush(stdout);
    for (;;) {
        status = work(rank);
        /* A rank may be lost before the communicators of the next generation are used. */
        while (status == WEFT_ERR_PEER || status == WEFT_ERR_ABORTED ||
               status == WEFT_ERR_TIMEOUT) {
            status = go_on(rank, &is_made);
            if (!is_made) return status;
        }
        if (status != WEFT_OK) return status;
        if (rank->done == rank->steps) break;
    }
    EXPECT(is_right(rank->tensor, weft_tensor_memory(rank->tensor), rank->done));
    return WEFT_OK;
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL) closedir(folder);
    return count;
}

static long read_resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0, resident = 0;

    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    if (file != NULL) fclose(file);
    return resident * sysconf(_SC_PAGESIZE) / 1024;
}

static int count_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    int count = 0, letter;

    while (file != NULL && (letter = fgetc(file)) != EOF)
        count += letter == '\n';
    if (file != NULL) fclose(file);
    return count;
}

static void read_events(struct rank *rank, int argc, char **argv)
{
    for (int i = 2; i < argc && rank->event_count < MOST; i++) {
        struct event *event = &rank->events[rank->event_count];

        if (sscanf(argv[i], "%d:%d:%7s", &event->rank, &event->step, event->what) == 3)
            rank->event_count++;
    }
}

static weft_status begin_thread(void *user)
{
    weft_context *ctx = NULL;

    (void)user;
    TRY(weft_init(NULL, &ctx));
    weft_context_release(&ctx);
    return WEFT_OK;
}

static int run_threads(void)
{
    weft_status status = weft_threads_run(2, begin_thread, NULL);

    printf("%s: %s\n", weft_status_name(status), weft_last_error());
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static struct rank rank;
    weft_status status;

    if (argc > 1 && strcmp(argv[1], "threads") == 0) return run_threads();
    rank.steps = argc > 1 ? atoi(argv[1]) : 20;
    read_events(&rank, argc, argv);
    status = run(&rank);
    if (status != WEFT_OK) {
        printf("rank %d ends: %s: %s\n", rank.first, weft_status_name(status), weft_last_error());
        fflush(stdout);
        _exit(EXIT_FAILURE);
    }
    printf("rank %d is %d of %d in generation %" PRIu64 " after %d steps, %d files, %d threads, "
           "%ld KiB, %d mappings\n",
           rank.first, weft_rank(rank.ctx), weft_size(rank.ctx), weft_context_generation(rank.ctx),
           rank.done, count_entries("/proc/self/fd"), count_entries("/proc/self/task"),
           read_resident(), count_mappings());
    release_tensor(&rank);
    weft_bound_release(&rank.bound);
    weft_symm_release(&rank.symm);
    weft_comm_release(&rank.part);
    if (weft_free(rank.ctx, rank.piece) != WEFT_OK) faults++;
    weft_context_release(&rank.ctx);
    return faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
