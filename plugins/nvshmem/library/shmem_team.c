/* shmem_team.c - teams of NVSHMEM, which its own collectives need.
 *
 * nvshmem_team_split_strided is called by every member of the parent, so it creates the teams that
 * contain all ranks in order.  nvshmemx_team_init is called by the members only, and creates the
 * other teams.  A communicator that neither function can express has no team; its collectives use
 * this plugin's kernels.  Both functions wait for the device and have no time limit. */
#include "shmem.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEAMS_MAX = 24,       /* NVSHMEM has 32 and uses some itself */
    SLOT_MAX = 64 << 20,  /* bytes */
    SLOT_MIN = 4096,      /* smaller slots would need too many rounds */
    ARENA_SHARE = 4,      /* the slots get 1 / ARENA_SHARE of the arena */
    TEAM_BYTES = 64 << 20 /* device memory that the creation of a team may need */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* NVSHMEM creates one team at a time */
static atomic_int made;
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_comm *watched; /* communicators with teams */

/* NVSHMEM treats any other value as true. */
static bool nvls_is_forced(void)
{
    const char *disabled = getenv("NVSHMEM_DISABLE_NVLS");

    return disabled != NULL && strchr("0NnFf", disabled[0]) != NULL && disabled[0] != '\0';
}

weft_status shmem_team_requested(uint64_t *found)
{
    const char *asked = plug_knob(VENDOR_COLLECTIVES);

    *found = 0;
    if (asked == NULL || strcmp(asked, "weft") == 0) return WEFT_OK;
    if (strcmp(asked, "nvshmem") != 0)
        return plug_fail(WEFT_ERR_INVALID, "%s is \"%s\"; expected weft or nvshmem",
                         VENDOR_COLLECTIVES, asked);
    if (nvls_is_forced())
        return plug_fail(
            WEFT_ERR_INVALID,
            "%s=nvshmem and NVSHMEM_DISABLE_NVLS=%s: with NVLS, NVSHMEM ends the process "
            "when its teams run out; unset one of the two",
            VENDOR_COLLECTIVES, getenv("NVSHMEM_DISABLE_NVLS"));
    if (!shmem_job.is_lost && atomic_load(&made) < TEAMS_MAX) *found = shmem_library_found();
    return WEFT_OK;
}

static bool is_common(const struct shmem_entry *all, int32_t size)
{
    for (int32_t r = 0; r < size; r++)
        if (all[r].library == 0 || all[r].library != all[0].library) return false;
    return true;
}

uint64_t shmem_team_slot(uint64_t bytes, const struct shmem_entry *all, int32_t size)
{
    uint64_t slot = bytes / ARENA_SHARE / SHMEM_TEAM_SLOTS / SLOT_MIN * SLOT_MIN;

    if (size == 1 || !is_common(all, size)) return 0;
    return slot < SLOT_MAX ? slot : SLOT_MAX;
}

/* ---- lists of ranks that can form a team ---- */

static bool is_everybody(const struct gpu_comm *comm, const struct shmem_entry *all)
{
    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].pe != r) return false;
    return comm->size == shmem_job.pes;
}

static bool has_steps(const struct gpu_comm *comm, const struct shmem_entry *all)
{
    int32_t step = all[1].pe - all[0].pe;

    for (int32_t r = 2; r < comm->size; r++)
        if (all[r].pe - all[r - 1].pe != step) return false;
    return step > 0;
}

/* NVSHMEM 3.4 does not record the first member of a team of nvshmemx_team_init.  The member is then
 * missing if the others follow in equal steps, unless their number is a power of two. */
static bool can_be_listed(const struct gpu_comm *comm, const struct shmem_entry *all)
{
    bool is_power = (comm->size & (comm->size - 1)) == 0 && comm->size <= 32;

    return is_power || !has_steps(comm, all);
}

bool shmem_team_is_wanted(const struct gpu_comm *comm, const struct shmem_entry *all)
{
    if (comm->size == 1 || shmem_job.slot_bytes == 0 || !is_common(all, comm->size)) return false;
    if (is_everybody(comm, all)) return shmem_api.nvshmem_team_split_strided != NULL;
    return shmem_api.nvshmemx_team_init != NULL && shmem_api.nvshmemx_team_get_uniqueid != NULL &&
           can_be_listed(comm, all);
}

/* ---- creation ---- */

bool shmem_team_is_safe(void)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;

    if (shmem_guard_device(TEAM_BYTES) == WEFT_OK) return true;
    if (!atomic_flag_test_and_set(&is_told))
        plug_log(1, "no NVSHMEM teams are created, so its collectives are not used: %s",
                 plug_last_text());
    return false;
}

int32_t shmem_team_make(const struct gpu_comm *comm, const struct shmem_entry *all)
{
    struct shmem_team_options options = {
        .version = SHMEM_TEAM_OPTIONS_VERSION, .contexts = -1, .id = all[0].team_id};
    int team = -1, code;

    pthread_mutex_lock(&lock);
    if (is_everybody(comm, all))
        code = shmem_api.nvshmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, comm->size, NULL, 0,
                                                    &team);
    else
        code = shmem_api.nvshmemx_team_init(&team, &options, SHMEM_TEAM_HAS_ID, comm->size,
                                            comm->rank);
    pthread_mutex_unlock(&lock);
    if (code != 0 || team <= SHMEM_TEAM_WORLD) return 0;
    atomic_fetch_add(&made, 1);
    return team;
}

static void destroy(int32_t team)
{
    if (shmem_api.nvshmem_team_destroy == NULL) return;
    pthread_mutex_lock(&lock);
    shmem_api.nvshmem_team_destroy(team);
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&made, 1);
}

static void watch(struct gpu_comm *comm)
{
    pthread_mutex_lock(&watched_lock);
    comm->next_team = watched;
    watched = comm;
    pthread_mutex_unlock(&watched_lock);
}

void shmem_team_settle(struct gpu_comm *comm, const struct shmem_entry *mine,
                       const struct shmem_entry *all)
{
    bool usable = mine->team > 0 && mine->team < SHMEM_TEAM_SLOTS;

    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].team != mine->team) usable = false;
    if (usable) {
        comm->team = mine->team;
        watch(comm);
        plug_log(4, "the communicator %s is NVSHMEM's team %d", comm->name, comm->team);
        return;
    }
    plug_log(2,
             "NVSHMEM created no team for communicator %s, so its collectives are not used there",
             comm->name);
    if (mine->team > 0) destroy(mine->team);
}

void shmem_team_release(struct gpu_comm *comm)
{
    struct gpu_scope scope;

    if (comm->team == 0 || gpu_enter(comm->device, &scope) != WEFT_OK) return;
    if (shmem_guard_device(0) == WEFT_OK)
        destroy(comm->team);
    else
        plug_log(2, "NVSHMEM's team of the communicator %s is not freed: %s", comm->name,
                 plug_last_text());
    comm->team = 0;
    gpu_leave(&scope);
}

/* ---- collectives that do not end ---- */

void shmem_team_forget(struct gpu_comm *comm)
{
    pthread_mutex_lock(&watched_lock);
    for (struct gpu_comm **at = &watched; *at != NULL; at = &(*at)->next_team)
        if (*at == comm) {
            *at = comm->next_team;
            break;
        }
    pthread_mutex_unlock(&watched_lock);
}

/* NVSHMEM's kernels follow a kernel of this plugin that times out if a rank is missing.  They get
 * some time to end by themselves. */
static bool hangs(struct gpu_comm *comm, vendor_stream stream)
{
    if (!gpu_comm_has_failed(comm)) return false;
    if (comm->failed_ns == 0) comm->failed_ns = plug_now();
    return comm->has_last && comm->last_stream == stream &&
           plug_now() - comm->failed_ns > SHMEM_LIBRARY_GRACE_NS &&
           gpu_api.event_query(comm->last) == GPU_NOT_READY;
}

weft_status shmem_team_hangs(vendor_stream stream)
{
    weft_status status = WEFT_OK;

    pthread_mutex_lock(&watched_lock);
    for (struct gpu_comm *comm = watched; comm != NULL && status == WEFT_OK;
         comm = comm->next_team) {
        if (!hangs(comm, stream)) continue;
        shmem_job_lose(comm->device);
        status = gpu_comm_cause(comm);
    }
    pthread_mutex_unlock(&watched_lock);
    return status;
}
