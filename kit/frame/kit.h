/* kit.h - the conformance kit: the interfaces that its files share.
 *
 * One watcher process starts a team of ranks (team.c), as processes or as threads of one process.
 * Every rank runs the same list of cases in the same order.  All ranks open a case, run it, and
 * close it together (cases.c).  The ranks write their progress and results to shared memory
 * (progress.h), so that the watcher can name the case in which a rank crashed or hung.  Results are
 * compared with the exact numbers of base/number.h, never with the plugin itself. */
#ifndef WEFT_KIT_KIT_H
#define WEFT_KIT_KIT_H

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
    const char *backend; /* name or absolute path of the plugin */
    int32_t ranks;
    int32_t hosts; /* the plugin is told that rank r is on host r modulo this */
    bool threads;
    const char *level;    /* NULL: all */
    const char *only;     /* NULL: all cases */
    const char *skip;     /* NULL: no case is excluded */
    const char *rank_env; /* NAME=VALUE with {rank} in it, set in each rank; or NULL */
    uint64_t seed;
    int64_t timeout_ns; /* time limit of communicators, unless a case sets its own */
    int64_t patience;   /* factor of the time after which a case is a hang */
};

/* ---- a rank and its team ---- */

struct kit;

struct kit_progress;

/* The plugin under test, opened once in each process. */
struct kit_plugin {
    const weft_plugin *tables; /* NULL: see `refusal` */
    char name[64], version[64], file[512];
    char refusal[600];
};

/* A subset of the ranks of the team, in some order, and their communicator. */
struct kit_group {
    /* What the plugin claims at this size, on every rank: enum weft_support_level. */
    uint8_t claims[WEFT_COLL_COUNT][WEFT_DTYPE_COUNT][WEFT_REDUCE_COUNT];
    char name[3 * KIT_MAX_RANKS]; /* "all", or "3,1": how cases are named */
    int32_t size;
    int32_t ranks[KIT_MAX_RANKS];
    int32_t mine; /* position of this rank, or -1 */
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
    uint32_t met[KIT_MAX_RANKS]; /* number of synchronizations with each rank */

    const struct kit_plugin *opened;
    const weft_plugin *plugin; /* its tables */
    void *device;
    weft_device_info info;

    struct kit_group groups[KIT_MAX_GROUPS]; /* groups[0] has all ranks in order */
    int group_count;
    uint64_t job; /* different for each team, the same on all its ranks */
    uint32_t comms_made;
    bool messages_known, has_messages; /* of message.c */

    int level; /* the level that runs */
    const char *level_name;
    uint64_t case_number; /* cases opened or skipped so far */
    uint64_t cases_run;
    bool case_failed;
    bool over;     /* a rank was killed on purpose, so this team ends */
    bool any_case; /* run independently of the requested cases */
    struct kit_block blocks[12];
};

/* Open the device with this number for this rank; -1: the plugin chooses one. */
static inline weft_status kit_device_open(const struct kit *kit, int32_t device, void **out)
{
    weft_device_options options = {.struct_size = sizeof options,
                                   .local_rank = kit->rank / kit->options->hosts,
                                   .device = device};

    return kit->plugin->device->open(&options, out);
}

/* Wait until all SIZE ranks of RANKS, which include this one, have called this. */
void kit_synchronize(struct kit *kit, const int32_t *ranks, int32_t size);
/* ALL receives BYTES from each of RANKS in order.  Collective over them. */
void kit_gather(struct kit *kit, const struct kit_group *group, const void *mine, void *all,
                uint64_t bytes);

/* Wait a moment, which grows with the number of TRIES so far. */
void kit_pause(uint32_t tries);
void kit_nap(int64_t nanoseconds);

/* ---- match.c ---- */

/* True if PATTERN matches the case NAME. Parts are separated by '/', and '*' matches one part.  A
 * pattern with fewer parts matches all cases below it. */
bool kit_case_matches(const char *pattern, const char *name);

/* ---- cases.c: opening, failing and closing a case ---- */

/* Open the case "LEVEL/FORMAT...".  False if it is not requested: the caller continues with the
 * next case. */
bool kit_begin(struct kit *kit, const char *format, ...) WF_PRINTF(2, 3);
/* Fail the open case on this rank.  Only the first reason is kept. */
void kit_fail(struct kit *kit, const char *format, ...) WF_PRINTF(2, 3);
/* A seed that depends on the open case only, so that the case can be run alone. */
uint64_t kit_case_seed(const struct kit *kit);
/* Close the case on all ranks.  True if it passed on every rank. */
bool kit_end(struct kit *kit);
/* The same for a case in which rank DEAD, the last one, was killed.  The team ends after it. */
void kit_end_without(struct kit *kit, int32_t dead);
/* End this rank now, as part of the open case. */
_Noreturn void kit_die(struct kit *kit);
/* Begin work outside of cases that calls the plugin.  A crash or hang in it is reported as NAME
 * ("p2p/offered").  False if an earlier team crashed or hung here. */
bool kit_aside(struct kit *kit, const char *name);
void kit_aside_over(struct kit *kit);
/* Allow the open case LIMIT, times --patience, before the watcher reports a hang. */
void kit_allow(struct kit *kit, int64_t limit_ns);
/* Restart the time limit for the next part of the open case. */
void kit_allow_again(struct kit *kit);
/* Record why the other cases of this level do not run on this plugin. */
void kit_skip(struct kit *kit, const char *format, ...) WF_PRINTF(2, 3);

/* Fail the case unless STATUS is WANT; WHAT names the call.  Returns whether it is. */
bool kit_expect(struct kit *kit, const char *what, weft_status status, weft_status want);
static inline bool kit_ok(struct kit *kit, const char *what, weft_status status)
{
    return kit_expect(kit, what, status, WEFT_OK);
}
/* Fail the case unless HOLDS. */
bool kit_check(struct kit *kit, bool holds, const char *format, ...) WF_PRINTF(3, 4);

/* ---- claims.c: what the plugin says it can do ---- */

/* True if (COLLECTIVE, DTYPE, REDUCTION) is a valid query. Only reducing collectives have a
 * reduction, and barrier has no dtype. */
bool kit_is_question(uint32_t collective, uint32_t dtype, uint32_t reduction);
/* The first of DTYPES for which COLLECTIVE by REDUCTION is claimed over all ranks, or -1. */
int kit_first_claimed(const struct kit *kit, uint32_t collective, uint32_t reduction,
                      const uint32_t *dtypes, size_t count);
/* Query the support of each combination for each group and keep the lowest answer of all ranks.
 * Collective. */
void kit_claims_read(struct kit *kit);

/* ---- comms.c: communicators over the kit's own exchange ---- */

/* Create the groups of this team: all ranks; one rank; two distant ranks, reversed; several,
 * unordered. */
void kit_groups_make(struct kit *kit);
/* The communicator of GROUP, created on first use.  NULL, and the case fails, if it cannot be
 * created.  Collective over the group. */
void *kit_comm(struct kit *kit, struct kit_group *group);
/* The options in which a communicator differs from the default. */
struct kit_comm_request {
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
void kit_comm_options(struct kit *kit, const struct kit_group *group,
                      struct kit_comm_request request, struct kit_comm_setup *out);

/* Create a communicator over GROUP, which the caller drops.  Collective over the group.  Only
 * _make fails the case if this fails. */
weft_status kit_comm_try(struct kit *kit, const struct kit_group *group,
                         struct kit_comm_request request, void **out);
void *kit_comm_make(struct kit *kit, const struct kit_group *group,
                    struct kit_comm_request request);
void kit_comm_drop(struct kit *kit, void *comm);
/* Abort and forget all cached communicators, which may be unusable after a failure. */
void kit_comms_drop(struct kit *kit);
/* Wait for all work on STREAM, which may be work of COMM.  Returns its error, which the stream
 * or COMM may report, or WEFT_ERR_TIMEOUT after LIMIT. */
weft_status kit_finish(struct kit *kit, void *comm, void *stream, int64_t limit_ns);

/* True if the call WHAT, which returned STATUS, succeeded, and so did its work on the default
 * stream; else the case has failed. */
bool kit_done(struct kit *kit, const char *what, weft_status status);
/* The same for a call that a plugin need not support. */
static inline bool kit_done_if_supported(struct kit *kit, const char *what, weft_status status)
{
    return status != WEFT_ERR_UNSUPPORTED && kit_done(kit, what, status);
}

/* A stream of the plugin; drop accepts NULL.  False: the case has failed. */
bool kit_stream_make(struct kit *kit, void **stream);
void kit_stream_drop(struct kit *kit, void *stream);
/* Wait for STREAM by stream_wait. */
bool kit_stream_wait(struct kit *kit, void *stream);

/* ---- images.c: guarded buffers in the plugin's memory ---- */

/* A buffer with guard bytes around it.  `before` is the uploaded content, `want` the expected
 * content.  Both are host copies of guard, payload, guard. */
struct kit_image {
    void *memory; /* memory of the plugin or of the host */
    enum kit_memory kind;
    uint8_t *before, *want, *got;
    uint64_t bytes; /* bytes of the payload */
    uint64_t start; /* offset of the payload in the copies */
    uint64_t total;
};

/* Create a payload of BYTES, MISALIGNED bytes past an aligned address.  False: the case has
 * failed. */
bool kit_image_make(struct kit *kit, struct kit_image *image, uint64_t bytes, uint32_t misaligned,
                    enum kit_memory kind);
/* Create and upload two payloads of BYTES in the plugin's memory. */
bool kit_images_make(struct kit *kit, struct kit_image *a, struct kit_image *b, uint64_t bytes);
void kit_images_free(struct kit *kit, struct kit_image *a, struct kit_image *b);
void kit_image_free(struct kit *kit, struct kit_image *image);
/* Free all cached memory of the plugin. */
void kit_blocks_free(struct kit *kit);
/* Address of the payload as the plugin sees it. */
void *kit_image_at(const struct kit_image *image, uint64_t offset);
/* Copy `before` to the memory of the plugin and to `want`. */
bool kit_image_upload(struct kit *kit, struct kit_image *image);
/* Copy the memory of the plugin to `got`. */
bool kit_image_download(struct kit *kit, struct kit_image *image);

/* How elements are compared: their DTYPE, and the allowed error of floats relative to SLACK[i],
 * the scale of element i, or NULL for none. */
struct kit_compare {
    uint32_t dtype;
    bool by_value; /* else bytes are compared */
    const double *slack;
};
/* Download, compare, and fail the case at the first difference.  NAME: "recv". */
void kit_image_check(struct kit *kit, struct kit_image *image, const char *name,
                     const struct kit_compare *compare);

/* Copy between host memory and the plugin's, and wait.  False: the case has failed. */
bool kit_copy(struct kit *kit, void *target, const void *source, uint64_t bytes);

/* ---- patterns.c: what the ranks put in ---- */

enum kit_pattern {
    KIT_EXACT,    /* every order of computation gives the same exact result */
    KIT_ROUNDING, /* random; results may differ by rounding */
    KIT_NAN,      /* some elements are NaN on one rank */
    KIT_EXTREME   /* numbers whose sum goes beyond the dtype; of f8e5m2 also infinities */
};

/* Element INDEX of RANK's input (of SIZE ranks), for REDUCTION. */
void kit_pattern_element(enum kit_pattern pattern, uint64_t seed, uint32_t dtype,
                         uint32_t reduction, int32_t size, int32_t rank, uint64_t index,
                         void *element);
/* Random bits, for data that is only moved.  Bools are 0 or 1. */
void kit_pattern_bits(uint64_t seed, uint32_t dtype, int32_t rank, uint64_t index, void *element);
/* The factor of RANK in premul_sum. */
void kit_pattern_scale(uint32_t dtype, int32_t rank, void *element);

#endif
