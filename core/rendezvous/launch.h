/* launch.h - who this rank is, by the variables that launchers set, and where it runs.
 *
 *     launch.c     variables -> rank, size, and how to meet; no effects
 *     identity.c   which host this is
 *     choices.c    what ranks must agree on, and the table of who differs */
#ifndef WEFT_RENDEZVOUS_LAUNCH_H
#define WEFT_RENDEZVOUS_LAUNCH_H

#include "config/config.h"
#include "rendezvous.h"

/* ---- launch.c ---- */

struct wf_launch {
    const char *launcher; /* "weft", "torchrun", "openmpi", "pmi", "slurm", or "none" */
    int32_t rank, size;
    int32_t local_rank; /* -1: the launcher did not say */
    bool one_host;      /* the launcher says that all ranks run on one host */
    char master[256];   /* host and port the launcher names for the job; "" and 0 if it does not */
    uint16_t master_port;
    char job[192]; /* what tells this job from the user's others; "" if the launcher does not */
};

/* Read ENVIRONMENT.  WEFT_ERR_INVALID names the variables that are half set, out of range or at
 * odds with each other.  Without any launcher's variables: a world of one. */
weft_status wf_launch_read(struct wf_environment environment, struct wf_launch *out) WF_NODISCARD;

/* Where the ranks of LAUNCH meet, and the token they share; RENDEZVOUS and TOKEN are what the user
 * said, or NULL.  Ranks of one host meet at a Unix socket, where the kernel vouches for the user;
 * a network address needs a token. */
weft_status wf_launch_rendezvous(const struct wf_launch *launch, const char *rendezvous,
                                 const char *token, struct wf_address *address,
                                 struct wf_job_key *key) WF_NODISCARD;

/* ---- identity.c ---- */

struct wf_identity {
    uint64_t host; /* equal on two ranks iff they may share memory */
    char host_name[64];
    uint64_t pid;
};

/* PRETENDED (WEFT_HOST_ID) stands in for all that tells hosts apart; NULL: look. */
struct wf_identity wf_identity(const char *pretended);

/* ---- choices.c ---- */

/* Texts that must be equal on all ranks, in rows.  Zero-initialise; freed as a text. */
struct wf_choices {
    struct wf_text rows; /* (name, value, whether it is only shown)... as strings */
    uint32_t count;
};

void wf_choices_add(struct wf_choices *choices, const char *name, const char *value);
/* A row that explains another: printed where it differs, but no reason to refuse. */
void wf_choices_explain(struct wf_choices *choices, const char *name, const char *value);
/* OK, or WEFT_ERR_MISMATCH with a table of who differs.  BLOBS are the rows of every rank. */
weft_status wf_choices_compare(const weft_blob *blobs, int32_t count) WF_NODISCARD;

#endif
