/* kit.h - the conformance kit: what its files share.
 *
 * One watcher process starts a team of ranks (team.c), as processes or as threads of one process.
 * Every rank walks through the same list of cases in the same order; a case is opened, run on all
 * ranks, and closed together (cases.c).  The ranks write what they do and find on a progress in
 * shared memory (progress.h), so that the watcher can name the case in which a rank crashed or
 * hung. Results are compared with the exact numbers of base/number.h, never with the plugin itself.
 */
#ifndef WEFT_CONFORM_KIT_H
#define WEFT_CONFORM_KIT_H

#include "base/base.h"
#include "base/number.h"
#include "weft/weft.h"

#include <stdbool.h>

#define KIT_MAX_RANKS   32
#define KIT_MAX_GROUPS  6
#define KIT_MILLISECOND INT64_C(1000000)
#define KIT_SECOND      INT64_C(1000000000)

/* ---- what the user asked for ---- */

struct kit_options {
    const char *backend; /* name or absolute path */
    int32_t ranks;
    int32_t hosts; /* rank r is on host r modulo this, as far as the plugin is told */
    bool threads;
    const char *level;    /* NULL: all */
    const char *only;     /* NULL: all cases */
    const char *without;  /* NULL: none left out */
    const char *rank_env; /* NAME=VALUE with {rank} in it, set in each rank; or NULL */
    uint64_t seed;
    int64_t timeout_ns; /* of communicators, where a case does not choose its own */
    int64_t patience;   /* times as long before a case is called a hang */
};

/* ---- levels.c ---- */

struct kit;

struct kit_level {
    const char *name, *summary;
    void (*run)(struct kit *kit);
};

extern const struct kit_level kit_levels[];
extern const size_t kit_level_count;
/* Index of the level named by the first LENGTH bytes of NAME, or -1. */
int kit_level_find(const char *name, size_t length);

void kit_level_load(struct kit *kit);
void kit_level_claims(struct kit *kit);
void kit_level_memory(struct kit *kit);
void kit_level_streams(struct kit *kit);
void kit_level_collectives(struct kit *kit);
void kit_level_p2p(struct kit *kit);
void kit_level_groups(struct kit *kit);
void kit_level_errors(struct kit *kit);
void kit_level_symm(struct kit *kit);
void kit_level_kernel(struct kit *kit);
void kit_level_pull(struct kit *kit);
void kit_level_stress(struct kit *kit);

/* ---- team.c: the ranks, and how they meet outside the plugin ---- */

struct kit_progress;

/* The plugin under test, opened once in each process; in plugin.c. */
struct kit_plugin {
    const weft_plugin *tables; /* NULL: see `refusal` */
    char name[64], version[64], file[512];
    char refusal[600];
};

void kit_plugin_open(const char *backend, struct kit_plugin *out);

/* Some ranks of the team, in an order of their own, and their communicator. */
struct kit_group {
    /* What the plugin claims at this size, on every rank: enum weft_support_level. */
    uint8_t claims[WEFT_COLL_COUNT][WEFT_DTYPE_COUNT][WEFT_REDUCE_COUNT];
    char name[3 * KIT_MAX_RANKS]; /* "all", or "3,1": how cases are named */
    int32_t size;
    int32_t ranks[KIT_MAX_RANKS];
    int32_t mine; /* this rank's position, or -1 */
    void *comm;   /* NULL until first used */
};

enum kit_memory { KIT_DEVICE, KIT_PINNED, KIT_PLAIN };

/* Memory that images.c keeps from case to case. */
struct kit_block {
    void *memory;
    uint64_t bytes;
    enum kit_memory kind;
    bool used;
};

/* One rank's view of a run. */
struct kit {
    const struct kit_options *options;
    struct kit_progress *progress;
    int32_t rank, size;
    uint32_t met[KIT_MAX_RANKS]; /* meetings held with each rank so far */

    const struct kit_plugin *opened;
    const weft_plugin *plugin; /* its tables */
    void *device;
    weft_device_info info;

    struct kit_group groups[KIT_MAX_GROUPS]; /* groups[0] is all ranks, in order */
    int group_count;
    uint64_t job; /* fresh for each team; the same on all its ranks */
    uint32_t comms_made;
    bool messages_known, has_messages; /* of message.c */

    int level;            /* being run */
    uint64_t case_number; /* cases opened or passed over so far */
    uint64_t cases_run;
    bool case_failed;
    bool over;     /* a rank was killed on purpose: this team can do no more */
    bool any_case; /* run, whichever were wanted */
    struct kit_block blocks[12];
};

/* Position among the ranks of the same host. */
static inline int32_t kit_local_rank(const struct kit *kit)
{
    return kit->rank / kit->options->hosts;
}

/* Wait until all SIZE ranks of RANKS, this one among them, have come. */
void kit_meet(struct kit *kit, const int32_t *ranks, int32_t size);
/* ALL receives BYTES from each of RANKS in order.  Collective over them. */
void kit_gather(struct kit *kit, const struct kit_group *group, const void *mine, void *all,
                uint64_t bytes);

/* Run the team to its end, restarting it past cases that crashed or hung.  LEVEL_DONE is called
 * once for each level that ends, TICK every few milliseconds.  False, after a complaint, if ranks
 * could not be started. */
bool kit_team_run(const struct kit_options *options, struct kit_progress *progress,
                  void (*level_done)(const struct kit_progress *progress, int level),
                  void (*tick)(const struct kit_progress *progress));

/* The main function of a rank: runs all levels that were asked for; in levels.c. */
void kit_rank_main(struct kit *kit);

/* ---- match.c ---- */

/* Does the case NAME lie under PATTERN?  Parts are separated by '/', '*' stands for one part, and
 * a pattern of fewer parts covers everything below it. */
bool kit_case_matches(const char *pattern, const char *name);

/* ---- cases.c: opening, failing and closing a case ---- */

/* Open the case "LEVEL/FORMAT...".  False: it was not asked for; go on to the next. */
bool kit_begin(struct kit *kit, const char *format, ...) WF_PRINTF(2, 3);
/* This rank saw the open case fail.  Only the first reason counts. */
void kit_fail(struct kit *kit, const char *format, ...) WF_PRINTF(2, 3);
/* Close the case together.  True if it passed on every rank. */
bool kit_end(struct kit *kit);
/* The same when rank DEAD, the last one, was killed in the case.  The team is over after it. */
void kit_end_without(struct kit *kit, int32_t dead);
/* This rank ends itself now, as part of the open case. */
_Noreturn void kit_die(struct kit *kit);
/* Work that belongs to no case, though it calls the plugin, until it is over; NAME ("p2p/offered")
 * is what a crash or hang in it is called.  False: an earlier team was lost here. */
bool kit_aside(struct kit *kit, const char *name);
void kit_aside_over(struct kit *kit);
/* Give the open case up to LIMIT, times --patience, before the watcher calls it a hang. */
void kit_allow(struct kit *kit, int64_t limit_ns);
/* Another part of the open case begins: it has as long as a case of its own. */
void kit_allow_again(struct kit *kit);
/* Why the rest of this level is not run on this plugin. */
void kit_skip(struct kit *kit, const char *format, ...) WF_PRINTF(2, 3);

/* Fail the case unless STATUS is WANT; WHAT names the call.  True if it is. */
bool kit_expect(struct kit *kit, const char *what, weft_status status, weft_status want);
static inline bool kit_ok(struct kit *kit, const char *what, weft_status status)
{
    return kit_expect(kit, what, status, WEFT_OK);
}
/* Fail the case unless HOLDS. */
bool kit_check(struct kit *kit, bool holds, const char *format, ...) WF_PRINTF(3, 4);

/* ---- exports.c ---- */

/* Does the shared object at PATH export more than the entry of a plugin?  OUT receives the name. */
bool kit_exports_more(const char *path, char *out, size_t capacity);

/* ---- leaks.c ---- */

/* How many files this process has open; -1 where the system does not tell. */
int kit_open_files(void);

/* ---- claims.c: what the plugin says it can do ---- */

/* Is (COLLECTIVE, DTYPE, REDUCTION) a question at all?  Reductions only where there is one, and
 * barrier has no dtype. */
bool kit_is_question(uint32_t collective, uint32_t dtype, uint32_t reduction);
/* The first of DTYPES for which COLLECTIVE by REDUCTION is claimed over all ranks, or -1. */
int kit_first_claimed(const struct kit *kit, uint32_t collective, uint32_t reduction,
                      const uint32_t *dtypes, size_t count);
/* Ask about everything for every group, and keep what all ranks agree on.  Collective. */
void kit_claims_read(struct kit *kit);

/* ---- comms.c: communicators over the kit's own exchange ---- */

/* The groups of this team: all ranks; one; two apart, reversed; some, out of order. */
void kit_groups_make(struct kit *kit);
/* The group's communicator, made on first use; NULL (and the case failed) if it cannot be.
 * Collective over the group. */
void *kit_comm(struct kit *kit, struct kit_group *group);
/* How a communicator shall differ from the usual. */
struct kit_comm_wish {
    int64_t timeout_ns;    /* 0: the run's */
    uint32_t flags;        /* WEFT_COMM_ bits */
    int exchange_fails_at; /* the n-th call of the exchange fails on every rank; 0: none */
};

/* Options for prepare or split over GROUP, with the storage they point to. */
struct kit_comm_setup {
    weft_comm_options options;
    uint64_t host_ids[KIT_MAX_RANKS];
    char name[128];
};
void kit_comm_options(struct kit *kit, const struct kit_group *group, struct kit_comm_wish wish,
                      struct kit_comm_setup *out);

/* A fresh communicator over GROUP, which the caller drops.  Collective over the group; its failure
 * is the case's only for _make. */
weft_status kit_comm_try(struct kit *kit, const struct kit_group *group, struct kit_comm_wish wish,
                         void **out);
void *kit_comm_make(struct kit *kit, const struct kit_group *group, struct kit_comm_wish wish);
void kit_comm_drop(struct kit *kit, void *comm);
/* Abort and forget all cached communicators: after a failure they are not to be trusted. */
void kit_comms_drop(struct kit *kit);
/* Wait for all work on STREAM, which may be COMM's: its error, from wherever it shows, or
 * WEFT_ERR_TIMEOUT after LIMIT. */
weft_status kit_finish(struct kit *kit, void *comm, void *stream, int64_t limit_ns);

/* ---- images.c: guarded buffers in the plugin's memory ---- */

/* A buffer with guard bytes around it.  `before` is what is uploaded; `want` is what it shall hold
 * in the end; both are host copies of guard, payload, guard. */
struct kit_image {
    void *memory; /* of the plugin, or the host's own */
    enum kit_memory kind;
    uint8_t *before, *want, *got;
    uint64_t bytes; /* of the payload */
    uint64_t start; /* of the payload within the copies */
    uint64_t total;
};

/* Payload of BYTES, MISALIGNED bytes past a well-aligned address.  False: the case has failed. */
bool kit_image_make(struct kit *kit, struct kit_image *image, uint64_t bytes, uint32_t misaligned,
                    enum kit_memory kind);
void kit_image_free(struct kit *kit, struct kit_image *image);
/* Give all memory that is kept back to the plugin. */
void kit_blocks_free(struct kit *kit);
/* Address of the payload as the plugin sees it. */
void *kit_image_at(const struct kit_image *image, uint64_t offset);
/* Bring `before` into the plugin's memory; `want` starts as its copy. */
bool kit_image_upload(struct kit *kit, struct kit_image *image);
/* Fetch what is there now into `got`. */
bool kit_image_download(struct kit *kit, struct kit_image *image);

/* How payload elements compare: DTYPE, and how far a float may be from `want`, relative to
 * SLACK[i] (element i's scale), or NULL for exact. */
struct kit_compare {
    uint32_t dtype;
    bool by_value; /* else by bytes */
    const double *slack;
};
/* Download, compare, and fail the case at the first difference.  NAME: "recv". */
void kit_image_check(struct kit *kit, struct kit_image *image, const char *name,
                     const struct kit_compare *compare);

/* Copy between host memory and the plugin's, and wait.  False: the case has failed. */
bool kit_copy(struct kit *kit, void *target, const void *source, uint64_t bytes);

/* ---- patterns.c: what the ranks put in ---- */

enum kit_pattern {
    KIT_EXACT,    /* every order of computing gives the same, exact result */
    KIT_ROUNDING, /* random; results may differ by rounding */
    KIT_NAN,      /* some elements are NaN on one rank */
    KIT_EXTREME   /* numbers whose sum goes beyond the dtype; of f8e5m2 also infinities */
};

/* Element INDEX of RANK's input (of SIZE ranks), for REDUCTION. */
void kit_pattern_element(enum kit_pattern pattern, uint64_t seed, uint32_t dtype,
                         uint32_t reduction, int32_t size, int32_t rank, uint64_t index,
                         void *element);
/* Any bits at all, for data that is only moved; bools stay 0 or 1. */
void kit_pattern_bits(uint64_t seed, uint32_t dtype, int32_t rank, uint64_t index, void *element);
/* RANK's factor of premul_sum. */
void kit_pattern_scale(uint32_t dtype, int32_t rank, void *element);

#endif
