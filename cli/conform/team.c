/* team.c - starts the ranks, watches them, and synchronizes them outside the plugin.
 *
 * Ranks are forked before a plugin is opened, because device contexts do not survive a fork.  Ranks
 * that are threads share one forked process, so that the watcher survives a crash.  After a crash
 * or hang the team is killed, and a new one continues behind that case. */
#include "conform/progress.h"

#include "common/children.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_LOSSES 12

struct team {
    const struct kit_options *options;
    struct kit_progress *progress;
    pid_t pids[KIT_MAX_RANKS]; /* 0: ended and waited for */
    int process_count;
    bool shrunk; /* a rank was killed as part of a case */
};

/* ---- meeting ---- */

static void pause_before_try(uint32_t tries)
{
    if (tries < 64) return;
    if (tries < 1024)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

void kit_synchronize(struct kit *kit, const int32_t *ranks, int32_t size)
{
    struct kit_progress *progress = kit->progress;

    atomic_store(&progress->places[kit->rank].waiting, 1);
    for (int32_t i = 0; i < size; i++)
        atomic_store(&progress->meetings[kit->rank][ranks[i]], ++kit->met[ranks[i]]);
    for (int32_t i = 0; i < size; i++) {
        const _Atomic uint32_t *theirs = &progress->meetings[ranks[i]][kit->rank];
        for (uint32_t tries = 0; (int32_t)(atomic_load(theirs) - kit->met[ranks[i]]) < 0; tries++)
            pause_before_try(tries);
    }
    atomic_store(&progress->places[kit->rank].waiting, 0);
}

void kit_gather(struct kit *kit, const struct kit_group *group, const void *mine, void *all,
                uint64_t bytes)
{
    uint8_t *out = all;

    for (uint64_t at = 0; at < bytes; at += KIT_BOX_BYTES) {
        uint64_t part = bytes - at < KIT_BOX_BYTES ? bytes - at : KIT_BOX_BYTES;
        memcpy(kit->progress->boxes[kit->rank], (const uint8_t *)mine + at, part);
        kit_synchronize(kit, group->ranks, group->size);
        for (int32_t i = 0; i < group->size; i++)
            memcpy(out + (uint64_t)i * bytes + at, kit->progress->boxes[group->ranks[i]], part);
        kit_synchronize(kit, group->ranks, group->size);
    }
}

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

static void kill_team(struct team *team)
{
    for (int i = 0; i < team->process_count; i++)
        if (team->pids[i] != 0) kill(team->pids[i], SIGKILL);
    for (int i = 0; i < team->process_count; i++)
        if (team->pids[i] != 0) (void)cli_wait(team->pids[i]);
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
        team->pids[i] = cli_fork();
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

static void announce(struct kit_progress *progress, int *announced,
                     void (*level_done)(const struct kit_progress *, int))
{
    while (*announced < (int)kit_level_count && atomic_load(&progress->levels[*announced].done))
        level_done(progress, (*announced)++);
}

bool kit_team_run(const struct kit_options *options, struct kit_progress *progress,
                  void (*level_done)(const struct kit_progress *progress, int level),
                  void (*tick)(const struct kit_progress *progress))
{
    struct team team = {.options = options, .progress = progress};
    int announced = 0;

    for (int losses = 0; losses < MAX_LOSSES;) {
        bool well = true, all_gone = false;
        if (!start_team(&team)) return false;
        while (well && !all_gone) {
            well = reap(&team, &all_gone) && check_deadlines(&team);
            announce(progress, &announced, level_done);
            tick(progress);
            nanosleep(&(struct timespec){.tv_nsec = 2 * KIT_MILLISECOND}, NULL);
        }
        kill_team(&team);
        announce(progress, &announced, level_done);
        if (well && !team.shrunk) return true;
        if (!well) losses++;
    }
    snprintf(progress->stopped, sizeof progress->stopped,
             "given up after %d crashes and hangs; later cases were not run", MAX_LOSSES);
    return true;
}
