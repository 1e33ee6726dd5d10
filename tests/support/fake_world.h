/* fake_world.h - a world of thread ranks on the fake plugin. */
#ifndef WEFT_TESTS_FAKE_WORLD_H
#define WEFT_TESTS_FAKE_WORLD_H

#include "comm/comm.h"
#include "support/fake_plugin.h"
#include "weft/status.h"

#include <check.h>
#include <pthread.h>

#define WORLD_MAX 64

/* Results of a rank's body. */
struct seen {
    weft_status status;
    char text[2048];
};

struct world_rank {
    int32_t rank, size;
    int failed_line; /* of the first failed claim */
    const char *failed_claim;
    weft_context *context;
    struct seen seen;
    pthread_t thread;
    weft_threads *threads;
    int64_t timeout_ns;
    void (*body)(struct world_rank *);
    void *argument;
    const weft_plugin *plugin; /* NULL: fake_plugin() */
    const void *digest;        /* of the options */
    size_t digest_bytes;
};

static inline void note_seen(struct seen *seen, weft_status status)
{
    seen->status = status;
    snprintf(seen->text, sizeof seen->text, "%s", status != WEFT_OK ? weft_last_error() : "");
}

static inline void *world_run_rank(void *argument)
{
    struct world_rank *self = argument;
    weft_init_options options = {.struct_size = sizeof options,
                                 .rank = self->rank,
                                 .threads = self->threads,
                                 .timeout_ns = self->timeout_ns,
                                 .join_timeout_ns = 300 * WF_SECOND_NS,
                                 .digest = self->digest,
                                 .digest_bytes = self->digest_bytes};

    note_seen(&self->seen,
              wf_context_create(&options, self->plugin != NULL ? self->plugin : fake_plugin(),
                                &self->context));
    if (self->seen.status != WEFT_OK) return NULL;
    if (self->body != NULL) self->body(self);
    weft_context_release(&self->context);
    return NULL;
}

/* A claim in a rank's body.  The framework's own assertions work in the test's thread only. */
#define HOLDS(claim)                                                                               \
    do {                                                                                           \
        if (!(claim) && self->failed_line == 0) {                                                  \
            self->failed_line = __LINE__;                                                          \
            self->failed_claim = #claim;                                                           \
        }                                                                                          \
    } while (0)

/* Initialize the ranks.  The test may change them before world_go. */
static inline void world_begin(struct world_rank *ranks, int32_t size,
                               void (*body)(struct world_rank *), void *argument)
{
    weft_threads *threads;

    ck_assert_int_eq(weft_threads_create(size, &threads), WEFT_OK);
    for (int32_t rank = 0; rank < size; rank++)
        ranks[rank] = (struct world_rank){.rank = rank,
                                          .size = size,
                                          .threads = threads,
                                          .timeout_ns = 300 * WF_SECOND_NS,
                                          .body = body,
                                          .argument = argument};
}

static inline void world_go(struct world_rank *ranks, int32_t size)
{
    weft_threads *threads = ranks[0].threads;

    for (int32_t rank = 0; rank < size; rank++)
        ck_assert_int_eq(pthread_create(&ranks[rank].thread, NULL, world_run_rank, &ranks[rank]),
                         0);
    for (int32_t rank = 0; rank < size; rank++)
        pthread_join(ranks[rank].thread, NULL);
    weft_threads_release(&threads);
    for (int32_t rank = 0; rank < size; rank++)
        ck_assert_msg(ranks[rank].failed_line == 0, "rank %d, line %d: not so: %s", rank,
                      ranks[rank].failed_line, ranks[rank].failed_claim);
}

static inline void world_run(struct world_rank *ranks, int32_t size,
                             void (*body)(struct world_rank *), void *argument)
{
    world_begin(ranks, size, body, argument);
    world_go(ranks, size);
}

/* A world of one rank on PLUGIN, in the test's own thread. */
static inline weft_context *world_alone_on(const weft_plugin *plugin)
{
    weft_init_options options = {.struct_size = sizeof options, .size = 1};
    weft_context *context;

    ck_assert_int_eq(wf_context_create(&options, plugin, &context), WEFT_OK);
    return context;
}

/* The same on the fake plugin. */
static inline weft_context *world_alone(void)
{
    return world_alone_on(fake_plugin());
}

/* Every rank has the same result. */
static inline void all_saw(const struct world_rank *ranks, int32_t size, weft_status status,
                           const char *part)
{
    for (int32_t rank = 0; rank < size; rank++) {
        ck_assert_msg(ranks[rank].seen.status == status, "rank %d saw %s: %s", rank,
                      weft_status_name(ranks[rank].seen.status), ranks[rank].seen.text);
        ck_assert_msg(strstr(ranks[rank].seen.text, part) != NULL, "rank %d: no \"%s\" in: %s",
                      rank, part, ranks[rank].seen.text);
    }
}

#endif
