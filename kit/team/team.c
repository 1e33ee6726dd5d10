/* team.c - starts the ranks and watches them.
 *
 * Ranks are forked before a plugin is opened, because device contexts do not survive a fork.  Ranks
 * that are threads share one forked process, so that the watcher survives a crash.  After a crash
 * or hang the team is killed, and a new one continues behind that case. */
#include "run.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_LOSSES 12

struct team {
    const struct kit_options *options;
    const struct kit_program *program;
    struct kit_progress *progress;
    pid_t pids[KIT_MAX_RANKS]; /* 0: ended and waited for */
    int process_count;
    bool shrunk; /* a rank was killed as part of a case */
};

/* ---- one rank ---- */

static void set_rank_env(const char *assignment, int32_t rank)
{
    char name[128], value[256];
    const char *equals = strchr(assignment, '=');
    const char *mark = strstr(assignment, "{rank}");

    snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
    if (mark != NULL)
        snprintf(value, sizeof value, "%.*s%d%s", (int)(mark - equals - 1), equals + 1, rank,
                 mark + strlen("{rank}"));
    else
        snprintf(value, sizeof value, "%s", equals + 1);
    setenv(name, value, 1);
}

static void run_rank(struct team *team, int32_t rank, const struct kit_plugin *plugin)
{
    struct kit *kit = calloc(1, sizeof *kit);

    if (kit == NULL) abort();
    kit->options = team->options;
    kit->progress = team->progress;
    kit->rank = rank;
    kit->size = team->options->ranks;
    kit->opened = plugin;
    kit->plugin = plugin->tables;
    kit_rank_main(kit);
    atomic_store(&team->progress->places[rank].finished, 1);
    free(kit);
}

struct thread_start {
    struct team *team;
    int32_t rank;
    const struct kit_plugin *plugin;
};

static void *thread_main(void *argument)
{
    struct thread_start *start = argument;

    run_rank(start->team, start->rank, start->plugin);
    return NULL;
}

static void run_threads(struct team *team)
{
    struct kit_plugin plugin;
    struct thread_start starts[KIT_MAX_RANKS];
    pthread_t threads[KIT_MAX_RANKS];

    kit_plugin_open(team->options->backend, &plugin);
    for (int32_t rank = 0; rank < team->options->ranks; rank++) {
        starts[rank] = (struct thread_start){team, rank, &plugin};
        if (pthread_create(&threads[rank], NULL, thread_main, &starts[rank]) != 0) abort();
    }
    for (int32_t rank = 0; rank < team->options->ranks; rank++)
        pthread_join(threads[rank], NULL);
}

static _Noreturn void run_process(struct team *team, int32_t rank)
{
    struct kit_plugin plugin;

    if (team->options->rank_env != NULL) set_rank_env(team->options->rank_env, rank);
    if (team->options->threads) {
        run_threads(team);
    } else {
        kit_plugin_open(team->options->backend, &plugin);
        run_rank(team, rank, &plugin);
    }
    exit(EXIT_SUCCESS);
}

/* ---- the watcher ---- */

static void wait_for(pid_t child)
{
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void kill_team(struct team *team)
{
    for (int i = 0; i < team->process_count; i++)
        if (team->pids[i] != 0) kill(team->pids[i], SIGKILL);
    for (int i = 0; i < team->process_count; i++)
        if (team->pids[i] != 0) wait_for(team->pids[i]);
    memset(team->pids, 0, sizeof team->pids);
}

static bool start_team(struct team *team)
{
    struct kit_progress *progress = team->progress;

    memset(progress->places, 0, sizeof progress->places);
    memset(progress->meetings, 0, sizeof progress->meetings);
    team->shrunk = false;
    team->process_count = team->options->threads ? 1 : team->options->ranks;
    fflush(NULL);
    for (int i = 0; i < team->process_count; i++) {
        team->pids[i] = team->program->fork();
        if (team->pids[i] < 0) {
            perror("weft conform: fork");
            team->pids[i] = 0;
            kill_team(team);
            return false;
        }
        if (team->pids[i] == 0) run_process(team, i);
    }
    return true;
}

/* The ranks that are still in the open case, as "0, 2". */
static void list_ranks_inside(const struct team *team, uint64_t case_number, char *out,
                              size_t capacity)
{
    size_t used = 0;

    out[0] = '\0';
    for (int32_t rank = 0; rank < team->options->ranks; rank++) {
        const struct kit_place *place = &team->progress->places[rank];
        if (atomic_load(&place->case_number) != case_number) continue;
        if (atomic_load(&place->started_ns) == 0 || atomic_load(&place->waiting)) continue;
        used += (size_t)snprintf(out + used, capacity - used, "%s%d", used > 0 ? ", " : "", rank);
    }
}

/* The level of a case name; level load for an empty name. */
static int level_of(const char *case_name)
{
    int level = kit_level_find(case_name, strcspn(case_name, "/"));

    return level < 0 ? 0 : level;
}

/* Record the failure of RANK's case and exclude it from the next team. */
static void record_loss(struct team *team, int32_t rank, const char *text)
{
    struct kit_progress *progress = team->progress;
    const struct kit_place *place = &progress->places[rank];
    const char *name = place->case_name[0] != '\0' ? place->case_name : "load/plugin";
    size_t level_part = strcspn(name, "/");
    size_t part = level_part + (name[level_part] == '/');

    kit_progress_fail(progress, level_of(name), name, rank, text);
    part += strcspn(name + part, "/");
    snprintf(progress->avoid[progress->avoid_count], sizeof progress->avoid[0], "%.*s", (int)part,
             name);
    progress->avoid_count++;
    if (atomic_load(&place->case_number) > progress->resume_after)
        progress->resume_after = atomic_load(&place->case_number);
}

static bool reap(struct team *team, bool *all_gone)
{
    char text[KIT_TEXT_BYTES];

    *all_gone = true;
    for (int i = 0; i < team->process_count; i++) {
        int status = 0;
        pid_t ended;
        if (team->pids[i] == 0) continue;
        ended = waitpid(team->pids[i], &status, WNOHANG);
        if (ended == 0 || (ended < 0 && errno == EINTR)) {
            *all_gone = false;
            continue;
        }
        team->pids[i] = 0;
        if (atomic_load(&team->progress->places[i].dying)) {
            team->shrunk = true;
            team->progress->resume_after = atomic_load(&team->progress->places[i].case_number);
            continue;
        }
        if (WIFSIGNALED(status))
            snprintf(text, sizeof text, "the %s was ended by signal %d (%s)",
                     team->options->threads ? "process of all ranks" : "rank", WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
        else if (!atomic_load(&team->progress->places[i].finished))
            snprintf(text, sizeof text, "the rank ended the process, with exit code %d",
                     WEXITSTATUS(status));
        else
            continue;
        record_loss(team, i, text);
        return false;
    }
    return true;
}

static bool check_deadlines(struct team *team)
{
    uint64_t now = wf_now_ns();
    char text[KIT_TEXT_BYTES], inside[128];

    for (int32_t rank = 0; rank < team->options->ranks; rank++) {
        const struct kit_place *place = &team->progress->places[rank];
        uint64_t started = atomic_load(&place->started_ns);
        if (started == 0 || now < atomic_load(&place->deadline_ns)) continue;
        list_ranks_inside(team, atomic_load(&place->case_number), inside, sizeof inside);
        snprintf(text, sizeof text, "hangs: after %.1f s rank %s had not returned from it",
                 (double)(now - started) * 1e-9, inside[0] != '\0' ? inside : "?");
        record_loss(team, rank, text);
        return false;
    }
    return true;
}

static void announce(const struct team *team, int *announced)
{
    for (;
         *announced < (int)kit_level_count && atomic_load(&team->progress->levels[*announced].done);
         ++*announced)
        if (team->program->level_done != NULL)
            team->program->level_done(team->progress, *announced);
}

struct kit_progress *kit_progress_make(void)
{
    struct kit_progress *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return progress != MAP_FAILED ? progress : NULL;
}

void kit_progress_free(struct kit_progress *progress)
{
    munmap(progress, sizeof *progress);
}

bool kit_team_run(const struct kit_options *options, const struct kit_program *program,
                  struct kit_progress *progress)
{
    struct team team = {.options = options, .program = program, .progress = progress};
    int announced = 0;

    progress->job = wf_hash_mix(wf_now_ns(), (uint64_t)getpid());
    for (int losses = 0; losses < MAX_LOSSES;) {
        bool well = true, all_gone = false;
        if (!start_team(&team)) return false;
        while (well && !all_gone) {
            well = reap(&team, &all_gone) && check_deadlines(&team);
            announce(&team, &announced);
            program->tick(progress);
            nanosleep(&(struct timespec){.tv_nsec = 2 * KIT_MILLISECOND}, NULL);
        }
        kill_team(&team);
        announce(&team, &announced);
        if (well && !team.shrunk) return true;
        if (!well) losses++;
    }
    snprintf(progress->stopped, sizeof progress->stopped,
             "given up after %d crashes and hangs; later cases were not run", MAX_LOSSES);
    return true;
}
