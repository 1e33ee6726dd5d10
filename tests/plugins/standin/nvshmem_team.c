/* nvshmem_team.c - teams: the members agree on a number that is free on all of them.
 *
 * STANDIN_NO_TEAMS=1 makes every creation fail. */
#include "nvshmem_team.h"

#include <stdlib.h>
#include <time.h>

#define job standin_job

enum { TEAM_BYTES = 8 << 20 }; /* of device memory */

struct options {
    int version, contexts;
    uint64_t id;
    char reserved[48];
};
_Static_assert(sizeof(struct options) == 64, "as the library has it");

static struct standin_team teams[MAX_TEAMS];

const struct standin_team *standin_team(int number)
{
    return number > 0 && number < MAX_TEAMS && teams[number].is_made ? &teams[number] : NULL;
}

void standin_team_meet(int number)
{
    const struct standin_team *team = &teams[number];

    standin_wait_all(&job.board->teams[number][team->pes[0]], team->size);
}

/* The team's number when all members have found each other; or -1. */
static int make(const struct standin_team *team)
{
    uint32_t common = ~UINT32_C(0);
    int number = 0;

    for (int i = 0; i < team->size; i++)
        common &= atomic_load(&job.board->free_teams[team->pes[i]]);
    while (number < MAX_TEAMS && (common >> number & 1) == 0)
        number++;
    if (number == MAX_TEAMS) return -1;
    teams[number] = *team;
    teams[number].is_made = true;
    standin_team_meet(number);
    atomic_fetch_and(&job.board->free_teams[job.pe], ~(UINT32_C(1) << number));
    standin_team_meet(number);
    return number;
}

/* Every process calls it, but only some become members. */
API(int, nvshmem_team_split_strided, int parent, int first, int step, int size,
    const struct options *options, long given, int *out)
{
    struct standin_team team = {.size = size, .place = -1};
    int number = -1;

    if (parent != 0 || options != NULL || given != 0 || step < 1 || first < 0 || size < 1 ||
        first + (size - 1) * step >= job.pes)
        return 7;
    standin_need(TEAM_BYTES);
    standin_wait_all(&job.board->all, job.pes);
    for (int i = 0; i < size; i++) {
        team.pes[i] = first + i * step;
        if (team.pes[i] == job.pe) team.place = i;
    }
    if (team.place >= 0 && standin_setting("STANDIN_NO_TEAMS", 0) == 0) number = make(&team);
    standin_wait_all(&job.board->all, job.pes);
    *out = number;
    return team.place >= 0 && number < 0 ? 1 : 0;
}

API(int, nvshmemx_team_get_uniqueid, uint64_t *id)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    *id = ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) << 6 | (uint64_t)job.pe;
    return 0;
}

static int find_members(uint64_t id, struct standin_team *team)
{
    int count = 0;

    for (int p = 0; p < job.pes; p++)
        if (atomic_load(&job.board->team_ids[p]) == id) {
            team->pes[atomic_load(&job.board->places[p])] = p;
            count++;
        }
    return count;
}

/* No member continues before all have found each other.  A member without a free number leaves at
 * once.  Later teams have larger ids. */
static void wait_for_others(uint64_t id, const struct standin_team *team)
{
    for (int i = 0; i < team->size; i++)
        while (atomic_load(&job.board->found_ids[team->pes[i]]) < id)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* The real library handles these lists incorrectly: see shmem_team.c. */
static void check_list(const struct standin_team *team)
{
    bool steps = team->pes[1] > team->pes[0];

    for (int i = 2; i < team->size; i++)
        if (team->pes[i] - team->pes[i - 1] != team->pes[1] - team->pes[0]) steps = false;
    if (steps && (team->size & (team->size - 1)) != 0) abort();
}

API(int, nvshmemx_team_init, int *out, const struct options *options, long given, int size,
    int place)
{
    struct standin_team team = {.size = size, .place = place};
    int number;

    if (options->version != (2 << 16) + (int)sizeof *options || given != 2 || size < 2) return 7;
    standin_need(TEAM_BYTES);
    if (standin_setting("STANDIN_NO_TEAMS", 0) != 0) return 1;
    atomic_store(&job.board->places[job.pe], place);
    atomic_store(&job.board->team_ids[job.pe], options->id);
    while (find_members(options->id, &team) < size)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    atomic_store(&job.board->found_ids[job.pe], options->id);
    wait_for_others(options->id, &team);
    check_list(&team);
    number = make(&team);
    atomic_store(&job.board->team_ids[job.pe], 0);
    *out = number;
    return number < 0 ? 1 : 0;
}

API(void, nvshmem_team_destroy, int number)
{
    if (standin_team(number) == NULL) abort();
    standin_need(0);
    teams[number].is_made = false;
    atomic_fetch_or(&job.board->free_teams[job.pe], UINT32_C(1) << number);
}
