/* ranks.h - ranks for tests of the CPU plugin, as threads or as processes.
 *
 * Every rank opens a device, creates a communicator over all ranks, and runs a body with it.  A
 * rank that fails reports the line, and ranks_run counts it. */
#ifndef WEFT_TESTS_RANKS_H
#define WEFT_TESTS_RANKS_H

#include "weft_plugin.h"

#include <stdbool.h>

#define RANKS_MAX 64

/* Sanitizers need address space and keep freed memory for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RANKS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RANKS_SANITIZED true
#endif
#endif
#if !defined(RANKS_SANITIZED)
#define RANKS_SANITIZED false
#endif

struct rank {
    int number, size;
    void *device, *comm;
    const weft_plugin *plugin;
    struct ranks_shared *shared;
    int round; /* of exchanges */
    int step;  /* of the creation: 0 for the addresses, from 1 on for the exchanges */
    /* Changes what another rank sent in STEP; NULL: nothing is changed. */
    void (*forge)(struct rank *rank, unsigned char *data, uint64_t bytes);
};

struct ranks_options {
    int size;
    bool threads;
    uint32_t flags; /* WEFT_COMM_ bits */
    int64_t timeout_ns;
    int host_of[RANKS_MAX]; /* simulated hosts, by rank; all 0: one host */
    uint64_t hidden;        /* a bit for each rank whose memory the others cannot map */
    void (*body)(struct rank *rank);
};

/* Run all ranks.  Returns the number of ranks that failed, including killed ones. */
int ranks_run(const struct ranks_options *options);
/* The network to test: WEFT_TEST_NETWORK, or "gloo". */
const char *ranks_network(void);

/* Another communicator over all ranks. */
weft_status ranks_comm(struct rank *rank, const char *name, void **comm);
/* Wait for all ranks, without the plugin. */
void ranks_meet(struct rank *rank);
/* Wait for all ranks but one, which has died. */
void ranks_meet_survivors(struct rank *rank);
/* The calling thread's last error text. */
const char *ranks_error(void);
/* Set a knob for this process; NULL removes it. */
void ranks_knob(const char *name, const char *value);

/* Fail this rank unless TRUTH; the rank's body ends. */
#define RANK_CHECK(truth)                                                                          \
    do {                                                                                           \
        if (!(truth)) ranks_fail(rank, __FILE__, __LINE__, #truth);                                \
    } while (0)
#define RANK_OK(call)                                                                              \
    do {                                                                                           \
        weft_status rank_status = (call);                                                          \
        if (rank_status != WEFT_OK)                                                                \
            ranks_fail_status(rank, __FILE__, __LINE__, #call, rank_status);                       \
    } while (0)
_Noreturn void ranks_fail(struct rank *rank, const char *file, int line, const char *text);
_Noreturn void ranks_fail_status(struct rank *rank, const char *file, int line, const char *text,
                                 weft_status status);

#endif
