/* status_suite.c - a time limit passes in work on a stream: every rank gets WEFT_ERR_TIMEOUT,
 * whichever rank looks first, and every later call of the rank returns the same status and text.
 *
 *     status_suite [--threads N] */
#include "weft/weft.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_NS INT64_C(4000000000) /* also of making the communicator, on a busy machine */

static atomic_int failures;

struct rank {
    weft_context *context;
    weft_comm *world, *comm;
    weft_stream *stream;
    weft_work *work;
    int32_t number, size;
    const char *name; /* of the case */
    char text[2048];  /* of the first error */
    void *room;       /* received here */
};

static void complain(const struct rank *self, const char *format, ...)
{
    char text[3000];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "not so: rank %d: %s: %s\n", self->number, self->name, text);
    failures++;
}

static void good(const struct rank *self, const char *what, weft_status status)
{
    if (status != WEFT_OK) complain(self, "%s: %s", what, weft_last_error());
}

/* All ranks are here.  The world has another time limit. */
static void synchronize(const struct rank *self)
{
    good(self, "a barrier of the world", weft_barrier(self->world, NULL));
    good(self, "its wait", weft_context_wait(self->context, NULL, WEFT_FOREVER));
}

/* STATUS is a time-out with the text of the first one on this rank. */
static void late(struct rank *self, const char *what, weft_status status)
{
    const char *text = status == WEFT_OK ? "" : weft_last_error();

    if (status != WEFT_ERR_TIMEOUT)
        complain(self, "%s is %s, not a time-out: %s", what, weft_status_name(status), text);
    if (self->text[0] == '\0') snprintf(self->text, sizeof self->text, "%s", text);
    if (strcmp(self->text, text) != 0)
        complain(self, "%s has another text: \"%s\", not \"%s\"", what, text, self->text);
}

/* Receive on the stream what PEER never sends. */
static void receive(struct rank *self, int32_t peer)
{
    weft_status status = weft_receive(self->comm, self->room, 1, WEFT_DTYPE_U64, peer,
                                      (uint32_t)self->number, self->stream);

    if (status != WEFT_OK) late(self, "weft_receive", status);
    good(self, "weft_work_record", weft_work_record(self->context, self->stream, &self->work));
}

/* Wait until the time limit has passed on the stream, without a call of weft that would see it. */
static void await_limit(struct rank *self)
{
    const weft_plugin *plugin = weft_context_plugin(self->context);
    void *device = weft_context_device(self->context);

    while (plugin->device->stream_query(device, self->stream) == WEFT_IN_PROGRESS)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* Every way to see the failure. */
static void look(struct rank *self)
{
    late(self, "weft_stream_wait", weft_stream_wait(self->stream, WEFT_FOREVER));
    late(self, "weft_work_wait", weft_work_wait(self->work, WEFT_FOREVER));
    late(self, "weft_comm_async_error", weft_comm_async_error(self->comm));
    late(self, "weft_barrier", weft_barrier(self->comm, NULL));
    late(self, "weft_send",
         weft_send(self->comm, self->room, 1, WEFT_DTYPE_U64, 0, 0, self->stream));
    late(self, "weft_work_test", weft_work_test(self->work));
    late(self, "weft_stream_test", weft_stream_test(self->stream));
}

/* The limit passes on rank 0.  The other ranks then wait for rank 0. */
static void run_case(struct rank *self, const char *name, int32_t first)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = LIMIT_NS};

    self->name = name;
    self->text[0] = '\0';
    good(self, "weft_comm_split", weft_comm_split(self->world, 0, 0, &options, &self->comm));
    good(self, "weft_stream_create", weft_stream_create(self->context, &self->stream));
    if (self->number == 0) {
        receive(self, 1);
        await_limit(self);
    }
    synchronize(self);
    if (self->number != 0) receive(self, 0);
    synchronize(self); /* all have posted: a call on a failed communicator posts nothing */
    if (self->number == first) look(self);
    synchronize(self);
    look(self);
    synchronize(self);
    weft_work_release(&self->work);
    weft_stream_release(&self->stream);
    weft_comm_release(&self->comm);
}

static weft_status rank_main(void *argument)
{
    struct rank self = {.name = "start"};

    (void)argument;
    if (weft_init(NULL, &self.context) != WEFT_OK) return WEFT_ERR_SYSTEM;
    self.world = weft_world(self.context);
    self.number = weft_rank(self.context);
    self.size = weft_size(self.context);
    good(&self, "weft_alloc", weft_alloc(self.context, 64, WEFT_MEMORY_DEVICE, &self.room));
    run_case(&self, "the rank whose limit passed looks first", 0);
    run_case(&self, "another rank looks first", 1);
    good(&self, "weft_free", weft_free(self.context, self.room));
    weft_context_release(&self.context);
    return WEFT_OK;
}

int main(int count, char **words)
{
    weft_status status;

    if (count == 3 && strcmp(words[1], "--threads") == 0)
        status = weft_threads_run(atoi(words[2]), rank_main, NULL);
    else
        status = rank_main(NULL);
    if (status != WEFT_OK) fprintf(stderr, "not so: %s\n", weft_last_error());
    return status == WEFT_OK && failures == 0 ? 0 : 1;
}
