/* launch.c - rank and size from the variables that launchers set.
 *
 * Launchers nest: torchrun inside srun, mpirun inside a batch job.  The innermost is the one whose
 * variables are most specific, so the first complete set in the order below counts. */
#include "launch.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The minimum number of characters of a token. */
#define TOKEN_MIN 16

/* One launcher's variables.  NULL: the launcher has no such variable. */
struct dialect {
    const char *name;
    const char *rank, *size, *local_rank, *local_size;
    const char *hosts;   /* number of hosts */
    const char *job[3];  /* variables that differ between jobs */
    bool rank_may_stray; /* the rank variable can be set without this launcher */
};

static const struct dialect dialects[] = {
    {.name = "weft", .rank = "WEFT_RANK", .size = "WEFT_SIZE", .local_rank = "WEFT_LOCAL_RANK"},
    {.name = "torchrun",
     .rank = "RANK",
     .size = "WORLD_SIZE",
     .local_rank = "LOCAL_RANK",
     .local_size = "LOCAL_WORLD_SIZE",
     .job = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {.name = "openmpi",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {.name = "pmi",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .local_size = "MPI_LOCALNRANKS",
     .job = {"PMI_JOBID"}},
    /* A batch script has SLURM_PROCID too; only srun's steps have a number of tasks. */
    {.name = "slurm",
     .rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",
     .local_rank = "SLURM_LOCALID",
     .hosts = "SLURM_STEP_NUM_NODES",
     .job = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     .rank_may_stray = true},
};

static weft_status read_number(struct wf_environment environment, const char *name, int64_t least,
                               int32_t *out)
{
    const char *text = wf_environment_get(environment, name);
    struct wf_scan scan = {text, 0};
    int64_t value;

    if (wf_scan_int(&scan, "a number", &value) != WEFT_OK || !wf_scan_end(&scan) || value < least ||
        value > INT32_MAX)
        return wf_fail(WEFT_ERR_INVALID, "%s is \"%.100s\"; expected a whole number, at least %d",
                       name, text, (int)least);
    *out = (int32_t)value;
    return WEFT_OK;
}

static bool is_set(struct wf_environment environment, const char *name)
{
    return name != NULL && wf_environment_get(environment, name) != NULL;
}

/* Read rank and size from DIALECT's variables.  *PRESENT is false if they are not set. */
static weft_status read_place(struct wf_environment environment, const struct dialect *dialect,
                              bool *present, int32_t *rank, int32_t *size)
{
    bool has_rank = is_set(environment, dialect->rank);
    bool has_size = is_set(environment, dialect->size);

    *present = has_rank && has_size;
    if (dialect->rank_may_stray && !has_size) return WEFT_OK;
    if (has_rank != has_size)
        return wf_fail(WEFT_ERR_INVALID, "%s is set, but %s is not; set both, or neither",
                       has_rank ? dialect->rank : dialect->size,
                       has_rank ? dialect->size : dialect->rank);
    if (!*present) return WEFT_OK;
    WF_TRY(read_number(environment, dialect->rank, 0, rank));
    WF_TRY(read_number(environment, dialect->size, 1, size));
    if (*rank >= *size)
        return wf_fail(WEFT_ERR_INVALID, "%s is %d and %s is %d; the rank must be from 0 to %d",
                       dialect->rank, *rank, dialect->size, *size, *size - 1);
    return WEFT_OK;
}

static weft_status read_locality(struct wf_environment environment, const struct dialect *dialect,
                                 struct wf_launch *launch)
{
    int32_t count = 0;

    if (is_set(environment, dialect->local_rank))
        WF_TRY(read_number(environment, dialect->local_rank, 0, &launch->local_rank));
    if (launch->local_rank >= launch->size)
        return wf_fail(WEFT_ERR_INVALID, "%s is %d; it must be below %s, which is %d",
                       dialect->local_rank, launch->local_rank, dialect->size, launch->size);
    if (is_set(environment, dialect->local_size)) {
        WF_TRY(read_number(environment, dialect->local_size, 1, &count));
        if (count > launch->size)
            return wf_fail(WEFT_ERR_INVALID, "%s is %d; it must be at most %s, which is %d",
                           dialect->local_size, count, dialect->size, launch->size);
        if (launch->local_rank >= count)
            return wf_fail(WEFT_ERR_INVALID, "%s is %d; it must be below %s, which is %d",
                           dialect->local_rank, launch->local_rank, dialect->local_size, count);
        launch->one_host = count == launch->size;
    }
    if (is_set(environment, dialect->hosts)) {
        WF_TRY(read_number(environment, dialect->hosts, 1, &count));
        launch->one_host = count == 1;
    }
    return WEFT_OK;
}

static weft_status read_master(struct wf_environment environment, struct wf_launch *launch)
{
    const char *host = wf_environment_get(environment, "MASTER_ADDR");
    struct wf_address address = {0};
    int32_t port = 0;

    if (host == NULL) return WEFT_OK;
    if (strlen(host) >= sizeof launch->master)
        return wf_fail(WEFT_ERR_INVALID, "MASTER_ADDR is \"%.60s...\", which is too long", host);
    if (strpbrk(host, "[]") != NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "MASTER_ADDR is \"%.200s\"; expected a host name or an address, without "
                       "brackets and port",
                       host);
    memcpy(launch->master, host, strlen(host) + 1);
    memcpy(address.host, host, strlen(host) + 1);
    if (wf_address_is_local(&address)) launch->one_host = true;
    if (!is_set(environment, "MASTER_PORT")) return WEFT_OK;
    WF_TRY(read_number(environment, "MASTER_PORT", 1, &port));
    if (port > 65534)
        return wf_fail(
            WEFT_ERR_INVALID,
            "MASTER_PORT is %d; expected a port up to 65534, because weft uses the next port",
            port);
    launch->master_port = (uint16_t)port;
    return WEFT_OK;
}

/* MPICH sets no variable that identifies the job.  Its processes have a socket to their common
 * parent; the parent's process id identifies the job. */
static void name_job_by_socket(struct wf_environment environment, struct wf_launch *launch)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    int32_t fd = -1;

    if (!is_set(environment, "PMI_FD") || read_number(environment, "PMI_FD", 0, &fd) != WEFT_OK ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        peer.pid = getppid();
    snprintf(launch->job, sizeof launch->job, "pmi:%d", (int)peer.pid);
}

static void name_job(struct wf_environment environment, const struct dialect *dialect,
                     struct wf_launch *launch)
{
    bool named = false;
    size_t used = (size_t)snprintf(launch->job, sizeof launch->job, "%s", dialect->name);

    for (size_t i = 0; i < WF_COUNT(dialect->job); i++) {
        const char *value = NULL;

        if (dialect->job[i] != NULL) value = wf_environment_get(environment, dialect->job[i]);
        if (value == NULL || used >= sizeof launch->job) continue;
        used += (size_t)snprintf(launch->job + used, sizeof launch->job - used, ":%s", value);
        named = true;
    }
    if (named) return;
    launch->job[0] = '\0';
    if (strcmp(dialect->name, "pmi") == 0) name_job_by_socket(environment, launch);
}

/* Fails if the variables of another launcher give a different rank in a job of the same size.  Such
 * launchers are not nested, so some of the variables are stale. */
static weft_status check_against(struct wf_environment environment, const struct dialect *chosen,
                                 const struct dialect *other, const struct wf_launch *launch)
{
    int32_t rank = 0, size = 0;
    bool present;

    if (read_place(environment, other, &present, &rank, &size) != WEFT_OK) return WEFT_OK;
    if (!present || size != launch->size || rank == launch->rank) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s is %d, but %s is %d, both with %d ranks: unset one pair, or choose with "
                   "WEFT_LAUNCHER=%s or WEFT_LAUNCHER=%s",
                   chosen->rank, launch->rank, other->rank, rank, size, chosen->name, other->name);
}

static weft_status read_dialect(struct wf_environment environment, size_t index, bool forced,
                                struct wf_launch *out)
{
    const struct dialect *dialect = &dialects[index];

    out->launcher = dialect->name;
    for (size_t i = index + 1; !forced && i < WF_COUNT(dialects); i++)
        WF_TRY(check_against(environment, dialect, &dialects[i], out));
    WF_TRY(read_locality(environment, dialect, out));
    name_job(environment, dialect, out);
    return strcmp(dialect->name, "torchrun") == 0 ? read_master(environment, out) : WEFT_OK;
}

static weft_status unknown_launcher(const char *wanted)
{
    struct wf_text names = {0};
    weft_status status;

    for (size_t i = 0; i < WF_COUNT(dialects); i++)
        wf_text_add(&names, ", %s", dialects[i].name);
    status = wf_fail(WEFT_ERR_INVALID, "WEFT_LAUNCHER is \"%.60s\"; expected auto, none%s", wanted,
                     names.data != NULL ? names.data : "");
    wf_text_free(&names);
    return status;
}

/* Whether a torchrun inside a rank of `weft run`, or of a launcher like it, started this process:
 * these launchers remove TORCHELASTIC_RUN_ID. */
static bool is_torchrun_inside(struct wf_environment environment, const char *wanted)
{
    const char *served = wf_environment_get(environment, "WEFT_SERVED");

    return wanted != NULL && strcmp(wanted, dialects[0].name) == 0 && served != NULL &&
           strcmp(served, "1") == 0 && is_set(environment, "TORCHELASTIC_RUN_ID");
}

weft_status wf_launch_read(struct wf_environment environment, struct wf_launch *out)
{
    const char *wanted = wf_environment_get(environment, "WEFT_LAUNCHER");
    struct wf_launch launch = {.launcher = "none", .size = 1, .local_rank = -1, .one_host = false};
    bool known, forced, present = false;

    launch.is_inside = is_torchrun_inside(environment, wanted);
    if (launch.is_inside) wanted = "torchrun";
    known = wanted == NULL || strcmp(wanted, "auto") == 0;
    forced = !known;
    if (forced && strcmp(wanted, "none") == 0) {
        *out = launch;
        return WEFT_OK;
    }
    for (size_t i = 0; i < WF_COUNT(dialects) && !present; i++) {
        if (forced && strcmp(wanted, dialects[i].name) != 0) continue;
        known = true;
        WF_TRY(read_place(environment, &dialects[i], &present, &launch.rank, &launch.size));
        if (present) WF_TRY(read_dialect(environment, i, forced, &launch));
        if (!present && forced)
            return wf_fail(WEFT_ERR_INVALID, "WEFT_LAUNCHER is %s, but %s and %s are not set",
                           wanted, dialects[i].rank, dialects[i].size);
    }
    if (!known) return unknown_launcher(wanted);
    if (!present) launch = (struct wf_launch){.launcher = "none", .size = 1, .local_rank = -1};
    *out = launch;
    return WEFT_OK;
}

/* ---- the address of the rendezvous ---- */

static weft_status address_on_host(const struct wf_launch *launch, struct wf_address *address)
{
    uint8_t digest[WF_SHA256_BYTES];
    char name[256];
    int used = snprintf(name, sizeof name, "%u %s", (unsigned)geteuid(), launch->job);

    wf_sha256(name, used > 0 ? strnlen(name, sizeof name) : 0, digest);
    *address = (struct wf_address){.is_unix = true};
    used = snprintf(address->host, sizeof address->host, "weft-%u-", (unsigned)geteuid());
    for (size_t i = 0; i < 12; i++)
        used += snprintf(address->host + used, sizeof address->host - (size_t)used, "%02x",
                         (unsigned)digest[i]);
    return WEFT_OK;
}

/* NULL if the program gave its rank itself. */
static const struct dialect *find_dialect(const struct wf_launch *launch)
{
    for (size_t i = 0; i < WF_COUNT(dialects); i++)
        if (strcmp(dialects[i].name, launch->launcher) == 0) return &dialects[i];
    return NULL;
}

const char *wf_launch_rank_setting(const struct wf_launch *launch)
{
    const struct dialect *dialect = find_dialect(launch);

    return dialect != NULL ? dialect->rank : "weft_init_options.rank";
}

const char *wf_launch_address_setting(const struct wf_launch *launch)
{
    if (find_dialect(launch) == NULL) return "weft_init_options.rendezvous";
    if (strcmp(launch->launcher, "torchrun") == 0) return "MASTER_PORT";
    return strcmp(launch->launcher, "weft") == 0 ? "WEFT_RENDEZVOUS" : NULL;
}

/* Fails: rank and size are set, but not the address of the rendezvous. */
static weft_status missing_address(const struct wf_launch *launch)
{
    const struct dialect *dialect = find_dialect(launch);

    if (dialect == NULL)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_init: weft_init_options.rank is %d and .size is %d, but .rendezvous is not "
            "set, so rank %d cannot find the other ranks; set it to the same value on "
            "all ranks: \"unix:my-job\" if all ranks are on one host, or "
            "\"HOST-OF-RANK-0:29400\" with the same .token on all ranks; or set "
            ".exchange or .threads",
            launch->rank, launch->size, launch->rank);
    if (dialect == dialects)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s and %s are set, but WEFT_RENDEZVOUS is not, so rank %d cannot find the "
                       "other ranks; set it to the same value on all ranks: "
                       "WEFT_RENDEZVOUS=unix:my-job if all ranks are on one host, or "
                       "WEFT_RENDEZVOUS=HOST-OF-RANK-0:29400 and one WEFT_TOKEN; `weft run -n %d "
                       "PROGRAM` sets all of them",
                       dialect->rank, dialect->size, launch->rank, launch->size);
    return wf_fail(WEFT_ERR_INVALID,
                   "%s and %s of %s are set, but they give no address for ranks on several hosts; "
                   "set WEFT_RENDEZVOUS=HOST-OF-RANK-0:29400 and one WEFT_TOKEN on all ranks",
                   dialect->rank, dialect->size, dialect->name);
}

static weft_status find_address(const struct wf_launch *launch, const char *rendezvous,
                                const char *setting, struct wf_address *address)
{
    if (rendezvous != NULL) return wf_address_parse(setting, rendezvous, -1, address);
    if (launch->one_host && launch->job[0] != '\0') return address_on_host(launch, address);
    if (launch->master[0] != '\0' && launch->master_port != 0) {
        *address = (struct wf_address){.port = (uint16_t)(launch->master_port + 1)};
        memcpy(address->host, launch->master, sizeof launch->master);
        return WEFT_OK;
    }
    if (strcmp(launch->launcher, "torchrun") == 0)
        return wf_fail(WEFT_ERR_INVALID, "RANK and WORLD_SIZE are set, but not both MASTER_ADDR "
                                         "and MASTER_PORT; set them, or WEFT_RENDEZVOUS=host:port");
    return missing_address(launch);
}

weft_status wf_launch_rendezvous(const struct wf_launch *launch, const char *rendezvous,
                                 const char *setting, const char *token, struct wf_address *address,
                                 struct wf_job_key *key)
{
    struct wf_address found;
    char text[WF_ADDRESS_TEXT];

    WF_TRY(find_address(launch, rendezvous, setting, &found));
    wf_address_print(&found, text);
    if (token == NULL && !found.is_unix)
        return wf_fail(WEFT_ERR_INVALID,
                       "the rendezvous is at %s, which other users can reach: set %s to one secret "
                       "on all ranks, such as the output of `openssl rand -hex 16`",
                       text,
                       find_dialect(launch) != NULL ? "WEFT_TOKEN"
                                                    : "weft_init_options.token or WEFT_TOKEN");
    if (token != NULL && strlen(token) < TOKEN_MIN)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_init: the token (WEFT_TOKEN or weft_init_options.token) has %zu "
                       "characters; a token must have at least %d, so that it cannot be guessed: "
                       "set it to one "
                       "secret on all ranks, such as the output of `openssl rand -hex 16`",
                       strlen(token), TOKEN_MIN);
    *key = wf_job_key(token != NULL ? token : launch->job);
    *address = found;
    return WEFT_OK;
}
