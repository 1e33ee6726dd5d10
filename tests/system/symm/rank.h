/* rank.h - one rank of the suite: its state, its checks, and memory that it accesses through
 * copies, so that the same cases run on a CPU and on a GPU. */
#ifndef WEFT_TESTS_SYMM_RANK_H
#define WEFT_TESTS_SYMM_RANK_H

#include "weft/weft.h"
#include "weft/symm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECOND    INT64_C(1000000000)
#define COUNT(of) (sizeof(of) / sizeof((of)[0]))

struct rank {
    weft_context *context;
    weft_comm *world;
    weft_stream *stream; /* NULL if the memory does not support one */
    int32_t number, size;
    int rounds;       /* of repeated tests */
    bool checks;      /* WEFT_CHECK is on */
    bool host_memory; /* memory is host memory, not device memory */
    bool threads;     /* the ranks are threads of one process */
    bool second;      /* another plugin provides the symmetric memory */
    const char *name; /* of the case that runs */
    bool failed;      /* in this case */
    int failures;     /* cases in all */
};

/* Print a failed check, once per case.  Returns HOLDS. */
bool check(struct rank *self, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* STATUS must be WEFT_OK; else print WHAT and the last error. */
bool ok(struct rank *self, weft_status status, const char *what);
#define OK(call) ok(self, call, #call)
/* STATUS must be WANTED, and the last error must contain PART. */
bool refused(struct rank *self, const char *what, weft_status status, weft_status wanted,
             const char *part);

int64_t now_ns(void);
void pause_ns(int64_t ns);

/* Wait for all of this rank's work on STREAM. */
bool finish(struct rank *self, weft_stream *stream);
bool upload(struct rank *self, void *device, const void *host, uint64_t bytes);
bool download(struct rank *self, void *host, const void *device, uint64_t bytes);
/* Device memory, or NULL after a failed check. */
void *take(struct rank *self, uint64_t bytes);
void give(struct rank *self, void *memory);
/* A communicator of all ranks that a case may fail. */
weft_comm *spare_comm(struct rank *self);
weft_symm *make(struct rank *self, weft_comm *comm, uint64_t bytes, uint32_t channels);
/* Byte I of FROM's data for TO. */
uint8_t byte_of(int32_t from, int32_t to, uint64_t i);

/* ---- the cases ---- */

struct symm_case {
    const char *name;
    void (*run)(struct rank *self);
    int32_t least; /* minimum number of ranks */
};

extern const struct symm_case making_cases[], moving_cases[], signal_cases[], litmus_cases[],
    fault_cases[], end_cases[]; /* each ends with a NULL name */

/* Run the cases of COUNT groups, or only the case ONLY, in order on all ranks. */
void run_cases(struct rank *self, const struct symm_case *const *groups, size_t count,
               const char *only);

/* Rank GONE kills itself, and the others must get an error.  Returns the exit code. */
int run_gone(struct rank *self, int32_t gone);
/* A wait is pending when the context ends.  HOW: the memory is "released" or "kept".  Returns the
 * exit code. */
int run_leaving(struct rank *self, const char *how);

#endif
