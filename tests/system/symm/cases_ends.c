/* cases_ends.c - memory that is freed while this rank waits for a signal on a stream: by its
 * release, with its communicator, after an abort.  A rank that reads freed memory would crash on a
 * CPU, or fail the device. */
#include "rank.h"

#include <stdio.h>
#include <string.h>

#define AT_MOST  (300 * SECOND) /* for waits that must end; long, for busy machines */
#define TOO_LONG (3600 * SECOND)

struct scene {
    weft_comm *comm;
    weft_symm *symm;
    weft_stream *streams[2];
    int32_t peer; /* the peer that rank 0 waits for */
    int64_t began;
};

/* False without streams, or after a failed check. */
static bool begin(struct rank *self, struct scene *scene, int64_t limit)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = limit};

    *scene = (struct scene){.peer = self->size - 1, .began = now_ns()};
    if (self->stream == NULL) return false;
    for (size_t i = 0; i < COUNT(scene->streams); i++)
        if (!OK(weft_stream_create(self->context, &scene->streams[i]))) return false;
    if (OK(weft_comm_split(self->world, 0, 0, &options, &scene->comm)))
        scene->symm = make(self, scene->comm, 64, 2);
    return scene->symm != NULL;
}

/* Rank 0 waits on stream I for a signal that is never sent, with more work behind it. */
static void wait_endlessly_on(struct rank *self, struct scene *scene, size_t i, int64_t timeout_ns)
{
    weft_stream *stream = scene->streams[i];

    if (self->number != 0) return;
    OK(weft_symm_wait_from(scene->symm, scene->peer, 1, WEFT_COMPARE_EQ, 5, timeout_ns, stream));
    OK(weft_symm_signal_to(scene->symm, scene->peer, 0, 1, WEFT_SIGNAL_SET, stream));
    check(self, weft_stream_test(stream) == WEFT_IN_PROGRESS, "the wait is over");
}

/* Waits without a limit and with a long one.  Until they end, a device gets no more work, because
 * it may have too few queues. */
static void wait_endlessly(struct rank *self, struct scene *scene)
{
    wait_endlessly_on(self, scene, 0, WEFT_FOREVER);
    wait_endlessly_on(self, scene, 1, TOO_LONG);
}

enum outcome { WELL, BADLY };

/* Streams and device have drained, and the world is usable. */
static void end(struct rank *self, struct scene *scene, enum outcome wanted)
{
    void *memory;

    for (size_t i = 0; i < COUNT(scene->streams); i++) {
        weft_status status = weft_context_wait(self->context, scene->streams[i], AT_MOST);

        if (self->number == 0 && i == 0)
            check(self, (status == WEFT_OK) == (wanted == WELL), "the stream ended in %s: %s",
                  weft_status_name(status), weft_last_error());
    }
    check(self, now_ns() - scene->began < AT_MOST, "it took %.1f s",
          (double)(now_ns() - scene->began) / 1e9);
    weft_symm_release(&scene->symm);
    weft_comm_release(&scene->comm);
    for (size_t i = 0; i < COUNT(scene->streams); i++)
        weft_stream_release(&scene->streams[i]);
    memory = take(self, 100);
    give(self, memory);
    scene->symm = make(self, self->world, 64, 1);
    weft_symm_release(&scene->symm);
}

static void a_release_waits_for_waits(struct rank *self)
{
    struct scene scene;

    if (!begin(self, &scene, 0)) return;
    if (self->number == 0)
        OK(weft_symm_wait_from(scene.symm, scene.peer, 1, WEFT_COMPARE_EQ, 5, 0, scene.streams[0]));
    if (self->number == scene.peer) {
        pause_ns(SECOND / 5);
        OK(weft_symm_signal_to(scene.symm, 0, 1, 5, WEFT_SIGNAL_SET, NULL));
        finish(self, NULL);
    }
    weft_symm_release(&scene.symm);
    OK(weft_stream_test(scene.streams[0]));
    OK(weft_comm_async_error(scene.comm));
    end(self, &scene, WELL);
}

/* A release waits only for the waits on its own memory. */
static void a_wait_on_other_memory_keeps_no_release(struct rank *self)
{
    struct scene scene;
    weft_symm *other;

    if (!self->host_memory) {
        if (self->number == 0) printf("skipped: releasing may wait for a device's kernels\n");
        return;
    }
    if (!begin(self, &scene, 0)) return;
    other = make(self, scene.comm, 64, 1);
    if (self->number == 0)
        OK(weft_symm_wait_from(scene.symm, scene.peer, 1, WEFT_COMPARE_EQ, 5, 0, scene.streams[0]));
    weft_symm_release(&other);
    OK(weft_comm_async_error(scene.comm));
    if (self->number == 0)
        check(self, weft_stream_test(scene.streams[0]) == WEFT_IN_PROGRESS, "the wait is over");
    OK(weft_barrier(self->world, NULL));
    finish(self, NULL);
    if (self->number == scene.peer)
        OK(weft_symm_signal_to(scene.symm, 0, 1, 5, WEFT_SIGNAL_SET, NULL));
    finish(self, NULL);
    weft_symm_release(&scene.symm);
    end(self, &scene, WELL);
}

/* Rank 0's release times out, and all ranks get the cause before their own time limit. */
static void give_up(struct rank *self, struct scene *scene)
{
    char part[64];

    snprintf(part, sizeof part, "rank 0, with a wait for channel 1 of rank %d to be == 5",
             scene->peer);
    weft_symm_release(&scene->symm);
    check(self, scene->symm == NULL, "it is still there");
    refused(self, "what the communicator says", weft_comm_async_error(scene->comm),
            WEFT_ERR_TIMEOUT, part);
    check(self, strstr(weft_last_error(), "weft_symm_release on") != NULL, "no release in: %s",
          weft_last_error());
    end(self, scene, BADLY);
}

static void a_release_that_times_out_is_reported_to_all(struct rank *self)
{
    struct scene scene;

    /* Long enough to create the communicator and memory. */
    if (!begin(self, &scene, self->host_memory ? 4 * SECOND : 6 * SECOND)) return;
    wait_endlessly(self, &scene);
    give_up(self, &scene);
}

/* A wait timed out before the release, and no caller has received its error. */
static void a_release_reports_a_wait_that_timed_out(struct rank *self)
{
    struct scene scene;

    if (!begin(self, &scene, 0)) return;
    wait_endlessly_on(self, &scene, 0, SECOND / 5);
    give_up(self, &scene);
}

enum order { COMM_FIRST, ABORT_AND_RELEASE, ABORT_AND_COMM_FIRST };

static void end_all(struct rank *self, struct scene *scene, enum order order)
{
    if (order != COMM_FIRST && self->number == 0) weft_comm_abort(scene->comm);
    if (order != ABORT_AND_RELEASE) {
        weft_comm_release(&scene->comm);
        refused(self, "a fence without a communicator", weft_symm_fence(scene->symm, NULL),
                WEFT_ERR_INVALID, "was released; its symmetric memory");
    }
    weft_symm_release(&scene->symm);
}

/* Rank 0 first, so that no other rank leaves the communicator before it. */
static void end_in_order(struct rank *self, enum order order)
{
    struct scene scene;

    if (!begin(self, &scene, 0)) return;
    wait_endlessly(self, &scene);
    if (self->number == 0) end_all(self, &scene, order);
    OK(weft_barrier(self->world, NULL));
    finish(self, NULL);
    if (self->number != 0) end_all(self, &scene, order);
    end(self, &scene, BADLY);
}

static void its_communicator_may_end_first(struct rank *self)
{
    end_in_order(self, COMM_FIRST);
}

static void an_abort_may_come_first(struct rank *self)
{
    end_in_order(self, ABORT_AND_RELEASE);
    end_in_order(self, ABORT_AND_COMM_FIRST);
}

const struct symm_case end_cases[] = {
    {"a_release_waits_for_waits", a_release_waits_for_waits, 2},
    {"a_wait_on_other_memory_keeps_no_release", a_wait_on_other_memory_keeps_no_release, 1},
    {"a_release_that_times_out_is_reported_to_all", a_release_that_times_out_is_reported_to_all, 1},
    {"a_release_reports_a_wait_that_timed_out", a_release_reports_a_wait_that_timed_out, 1},
    {"its_communicator_may_end_first", its_communicator_may_end_first, 1},
    {"an_abort_may_come_first", an_abort_may_come_first, 1},
    {NULL, NULL, 0}};

/* The last step of the program: the context is released, and the memory's release failed or was not
 * called. */
int run_leaving(struct rank *self, const char *how)
{
    weft_symm *symm = make(self, self->world, 64, 2);
    weft_stream *stream = NULL;
    int64_t began = now_ns();

    self->name = "leaving";
    if (symm == NULL || !OK(weft_stream_create(self->context, &stream))) return 1;
    if (self->number == 0)
        OK(weft_symm_wait_from(symm, 0, 1, WEFT_COMPARE_EQ, 5, WEFT_FOREVER, stream));
    if (strcmp(how, "released") == 0) weft_symm_release(&symm);
    weft_stream_release(&self->stream);
    weft_context_release(&self->context);
    weft_symm_release(&symm);
    check(self, now_ns() - began < AT_MOST, "it took %.1f s", (double)(now_ns() - began) / 1e9);
    return self->failed;
}
