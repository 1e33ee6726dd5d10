/* world_rank.c - one rank of the tests here: `world_rank SCENARIO [NUMBER [TIMES]]`.
 *
 * Ranks that see the expected result print "as expected" and their error, and return 0. */
#include "support/open_files.h"
#include "weft/weft.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 1000

static weft_context *ctx;
static weft_comm *world;
static int32_t rank, size;
static float *in, *out;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, weft_last_error());      \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static weft_status reduce(weft_comm *comm)
{
    int32_t members = weft_comm_size(comm);
    weft_status status;

    for (int i = 0; i < COUNT; i++)
        in[i] = (float)(weft_comm_rank(comm) + i);
    status = weft_all_reduce(comm, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    for (int i = 0; status == WEFT_OK && i < COUNT; i++)
        if (out[i] != (float)(members * (members - 1) / 2 + members * i)) {
            fprintf(stderr, "element %d is %g\n", i, (double)out[i]);
            exit(4);
        }
    return status;
}

static int reduce_until_error(void)
{
    weft_status status;

    do
        status = reduce(world);
    while (status == WEFT_OK);
    printf("as expected: %s: %s\n", weft_status_name(status), weft_last_error());
    if (reduce(world) != status) return 6; /* the error is permanent */
    return 0;
}

/* A sanitizer's allocator maps its own memory and keeps it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER true
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER false
#endif

/* Resources of a process that communicators must release. */
struct holdings {
    int files, threads;
    int shared; /* mappings of weft's shared memory */
    int all;    /* mappings of any kind; 0 with a sanitizer */
};

static struct holdings holdings_now(void)
{
    struct holdings now = {.files = open_files(), .threads = entries_of("/proc/self/task")};
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    while (fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, "/memfd:weft") != NULL || strstr(line, "/dev/shm/weft") != NULL)
            now.shared++;
        if (!HAS_SANITIZER) now.all++;
    }
    fclose(maps);
    return now;
}

/* ---- scenarios ---- */

static int hello(int number)
{
    for (int i = 0; i < number; i++)
        MUST(reduce(world));
    printf("as expected\n");
    return 0;
}

/* Memory that is not from weft_alloc, too large for a slot. */
static int private_memory(int number)
{
    size_t count = 100000;
    int32_t next = (rank + 1) % size, previous = (rank + size - 1) % size;
    float *send = malloc(count * sizeof *send), *recv = malloc(count * sizeof *recv);

    (void)number;
    if (send == NULL || recv == NULL) return 13;
    for (size_t i = 0; i < count; i++)
        send[i] = (float)(rank + 1);
    MUST(weft_group_begin(world));
    MUST(weft_send(world, send, count, WEFT_DTYPE_F32, next, 5, NULL));
    MUST(weft_receive(world, recv, count, WEFT_DTYPE_F32, previous, 5, NULL));
    MUST(weft_group_end(world));
    for (size_t i = 0; i < count; i++)
        if (recv[i] != (float)(previous + 1)) return 14;
    MUST(weft_all_reduce(world, send, recv, count, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    for (size_t i = 0; i < count; i++)
        if (recv[i] != (float)(size * (size + 1) / 2)) return 15;
    free(send);
    free(recv);
    printf("as expected\n");
    return 0;
}

static int die(int number)
{
    for (int i = 0; i < 10; i++)
        MUST(reduce(world));
    if (rank == number) raise(SIGKILL);
    return reduce_until_error();
}

static int stop(int number)
{
    for (int i = 0; i < 10; i++)
        MUST(reduce(world));
    if (rank == number) raise(SIGSTOP);
    return reduce_until_error();
}

static int leave(int number)
{
    for (int i = 0; i < 10; i++)
        MUST(reduce(world));
    if (rank == number) return 0;
    return reduce_until_error();
}

static int exit_early(int number)
{
    for (int i = 0; i < 10; i++)
        MUST(reduce(world));
    if (rank == number) _exit(0);
    return reduce_until_error();
}

/* A rank is killed while the others create a communicator. */
static int die_in_split(int number)
{
    weft_comm *part;
    weft_status status = WEFT_OK;

    if (rank == number) {
        pause_ms(100);
        raise(SIGKILL);
    }
    for (int i = 0; i < 100000 && status == WEFT_OK; i++) {
        status = weft_comm_split(world, 0, 0, NULL, &part);
        if (status == WEFT_OK) weft_comm_release(&part);
    }
    printf("as expected: %s: %s\n", weft_status_name(status), weft_last_error());
    return status == WEFT_ERR_PEER ? 0 : 7;
}

/* The remaining ranks create a communicator of their own. */
static int go_on(int number)
{
    int32_t list[64], count = 0;
    weft_comm *rest;

    if (rank == number) raise(SIGKILL);
    while (reduce(world) == WEFT_OK)
        continue;
    for (int32_t i = 0; i < size; i++)
        if (i != number) list[count++] = i;
    MUST(weft_comm_create(world, (size_t)count, list, NULL, &rest));
    for (int i = 0; i < 10; i++)
        MUST(reduce(rest));
    weft_comm_release(&rest);
    printf("as expected\n");
    return 0;
}

static int abort_one(int number)
{
    for (int i = 0; i < 10; i++)
        MUST(reduce(world));
    if (rank == number) {
        weft_comm_abort(world);
        return reduce(world) == WEFT_ERR_ABORTED ? 0 : 8;
    }
    return reduce_until_error();
}

/* Work on a stream that rank 0 never joins: it aborts (NUMBER 0) or exits (1). */
static int undone(int number)
{
    weft_status want = number == 0 ? WEFT_ERR_ABORTED : WEFT_ERR_PEER, status;
    weft_stream *stream;
    weft_work *work;
    bool holds;

    MUST(reduce(world));
    if (rank == 0) {
        pause_ms(300);
        if (number == 1) _exit(0);
        weft_comm_abort(world);
        pause_ms(300); /* the other ranks must not get the exit as the cause */
        return 0;
    }
    MUST(weft_stream_create(ctx, &stream));
    MUST(weft_all_reduce(world, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream));
    MUST(weft_work_record(ctx, stream, &work));
    holds = weft_work_wait(work, WEFT_FOREVER) == want && weft_work_test(work) == want &&
            weft_stream_test(stream) == want;
    status = weft_context_wait(ctx, stream, WEFT_FOREVER);
    printf("as expected: %s: %s\n", weft_status_name(status), weft_last_error());
    weft_work_release(&work);
    weft_stream_release(&stream);
    return holds && status == want ? 0 : 16;
}

/* Different calls on different ranks.  NUMBER selects the difference. */
static int mismatch(int number)
{
    weft_status status;
    bool odd = rank == size - 1;

    MUST(reduce(world));
    if (number == 0)
        status = odd ? weft_barrier(world, NULL)
                     : weft_all_reduce(world, in, out, 8, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    else if (number == 1)
        status =
            weft_all_reduce(world, in, out, odd ? 9 : 8, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    else if (number == 2)
        status = weft_all_reduce(world, in, out, 8, odd ? WEFT_DTYPE_I32 : WEFT_DTYPE_F32,
                                 WEFT_REDUCE_SUM, NULL);
    else
        status = weft_broadcast(world, in, out, 8, WEFT_DTYPE_F32, odd, NULL);
    printf("as expected: %s: %s\n", weft_status_name(status), weft_last_error());
    return status == WEFT_ERR_MISMATCH ? 0 : 9;
}

static int churn(int number)
{
    struct holdings before = {0}, after;

    for (int i = 0; i < number; i++) {
        weft_comm *part;

        MUST(weft_comm_split(world, rank % 2, -rank, NULL, &part));
        MUST(reduce(part));
        weft_comm_release(&part);
        if (i == 20) before = holdings_now();
    }
    after = holdings_now();
    if (after.files > before.files || after.threads > before.threads ||
        after.shared > before.shared || after.all > before.all + 2) {
        fprintf(stderr,
                "%d files became %d, %d threads %d, %d mappings of shared memory %d, "
                "%d mappings in all %d\n",
                before.files, after.files, before.threads, after.threads, before.shared,
                after.shared, before.all, after.all);
        return 10;
    }
    printf("as expected\n");
    return 0;
}

/* Rank 0 leaves; the others make a communicator without it, and then one of them dies. */
static int outlive_first(int number)
{
    int32_t list[64], count = 0;
    weft_comm *rest = NULL;
    weft_status status = WEFT_OK;

    MUST(reduce(world));
    if (rank == 0) return 0;
    for (int32_t i = 1; i < size; i++)
        list[count++] = i;
    while (reduce(world) == WEFT_OK)
        continue;
    MUST(weft_comm_create(world, (size_t)count, list, NULL, &rest));
    MUST(reduce(rest));
    weft_comm_release(&rest);
    if (rank == number) raise(SIGKILL);
    while (status == WEFT_OK) {
        status = weft_comm_create(world, (size_t)count, list, NULL, &rest);
        if (status == WEFT_OK) weft_comm_release(&rest);
    }
    printf("as expected: %s: %s\n", weft_status_name(status), weft_last_error());
    return status == WEFT_ERR_PEER ? 0 : 17;
}

static const struct {
    const char *name;
    int (*run)(int number);
} scenarios[] = {{"hello", hello},
                 {"die", die},
                 {"stop", stop},
                 {"leave", leave},
                 {"exit", exit_early},
                 {"die_in_split", die_in_split},
                 {"go_on", go_on},
                 {"abort", abort_one},
                 {"undone", undone},
                 {"mismatch", mismatch},
                 {"churn", churn},
                 {"private", private_memory},
                 {"outlive_first", outlive_first}};

static int run(const char *name, int number)
{
    int code = 2;
    void *memory;

    if (weft_init(NULL, &ctx) != WEFT_OK) {
        fprintf(stderr, "weft_init: %s\n", weft_last_error());
        return 11;
    }
    world = weft_world(ctx);
    rank = weft_rank(ctx);
    size = weft_size(ctx);
    MUST(weft_alloc(ctx, 2 * COUNT * sizeof(float), WEFT_MEMORY_DEVICE, &memory));
    in = memory;
    out = in + COUNT;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].name, name) == 0) code = scenarios[i].run(number);
    if (weft_free(ctx, memory) != WEFT_OK) code = 12;
    weft_context_release(&ctx);
    return code;
}

int main(int argc, char **argv)
{
    int number = argc > 2 ? atoi(argv[2]) : 0, times = argc > 3 ? atoi(argv[3]) : 1, code = 2;

    for (int i = 0; argc > 1 && i < times && (i == 0 || code == 0); i++)
        code = run(argv[1], number);
    return code;
}
