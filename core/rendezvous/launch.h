/* launch.h - this rank's number, from the variables that launchers set, and its host.
 *
 *     launch.c     variables -> rank, size and rendezvous; no side effects
 *     identity.c   which host this is
 *     choices.c    settings that must be equal on all ranks, and a table of the differences */
#ifndef WEFT_RENDEZVOUS_LAUNCH_H
#define WEFT_RENDEZVOUS_LAUNCH_H

#include "config/config.h"
#include "rendezvous.h"

/* ---- launch.c ---- */

struct wf_launch {
    const char *launcher; /* "weft", "torchrun", "openmpi", "pmi", "slurm", "none", or "options" if
                             the program gave rank and size itself */
    int32_t rank, size;
    int32_t local_rank; /* -1: the launcher does not set it */
    bool one_host;      /* the launcher says that all ranks run on one host */
    bool is_inside;     /* of a rank of `weft run`, whose rendezvous is another job's */
    char master[256];   /* host and port the launcher names for the job; "" and 0 if it does not */
    uint16_t master_port;
    char job[192]; /* identifies this job among the user's jobs; "" if the launcher does not */
};

/* Read ENVIRONMENT.  WEFT_ERR_INVALID if variables are incomplete, out of range or contradictory;
 * the text names them.  Without any launcher's variables: a job of one rank. */
weft_status wf_launch_read(struct wf_environment environment, struct wf_launch *out) WF_NODISCARD;

/* The address of the rendezvous of LAUNCH, and the token of the job.  RENDEZVOUS and TOKEN are the
 * user's settings, or NULL; messages call RENDEZVOUS by the name SETTING.  Ranks of one host use a
 * Unix socket, on which the kernel reports the peer's user.  A network address needs a token. */
weft_status wf_launch_rendezvous(const struct wf_launch *launch, const char *rendezvous,
                                 const char *setting, const char *token, struct wf_address *address,
                                 struct wf_job_key *key) WF_NODISCARD;

/* The setting that gives the rank, and the one that gives the address of the rendezvous, for
 * messages; NULL: the launcher gives the address by variables that the user does not set. */
const char *wf_launch_rank_setting(const struct wf_launch *launch);
const char *wf_launch_address_setting(const struct wf_launch *launch);

/* ---- identity.c ---- */

struct wf_identity {
    uint64_t host; /* equal on two ranks iff they may share memory */
    char host_name[64];
    uint64_t pid;
};

/* PRETENDED (WEFT_HOST_ID) replaces the properties of the host; NULL: read them. */
struct wf_identity wf_identity(const char *pretended);

/* When process PID began, in clock ticks of the kernel; 0: not known.  With it, PID is the number
 * of one process only. */
uint64_t wf_process_began(uint64_t pid);

/* Equal in two processes whose CLOCK_MONOTONIC is the same: of one kernel and time namespace. */
uint64_t wf_clock_identity(void);

/* ---- choices.c ---- */

/* Texts that must be equal on all ranks, in rows.  Zero-initialise; freed as a text. */
struct wf_choices {
    struct wf_text rows; /* (name, value, whether it is only shown)... as strings */
    uint32_t count;
};

void wf_choices_add(struct wf_choices *choices, const char *name, const char *value);
/* Add a row that explains another one: it is printed if it differs, but may differ. */
void wf_choices_explain(struct wf_choices *choices, const char *name, const char *value);
/* OK, or WEFT_ERR_MISMATCH with a table of the differences.  BLOBS are the rows of every rank. */
weft_status wf_choices_compare(const weft_blob *blobs, int32_t count) WF_NODISCARD;

#endif
