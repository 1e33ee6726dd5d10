/* trace_rank.c - a program whose trace is known: on each rank, in this order,
 *
 *     a communicator of all ranks is created and released; 3 all-reduces of 8 KiB;
 *     a message of 16 KiB from each rank to the next, in a group;
 *     a plan from S(0) to S(1), bound as "weights", and 4 runs of it on the default stream;
 *     the same plan bound as "packed", which needs scratch, and 1 run of it;
 *     2 runs of "weights" and an all-gather on a stream, which is called "copies";
 *     a barrier on another stream, which has no name, and often the address of the first.
 *
 *     trace_rank [--threads N] [--wait-not] [--full] [--twice] [--killed] [--many]
 *
 * --wait-not: it does not wait for the stream; --full: at the end, no file can exceed 2 KiB;
 * --twice: there is a second context meanwhile; --killed: the last rank kills itself;
 * --many: before that, collectives of 1 to 2000 bytes, and names that are not UTF-8. */
#include "must.h"
#include "weft/weft.h"
#include "weft/trace.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define COUNT 4096

static bool waits = true, is_full = false, is_twice = false, is_killed = false, has_many = false;

static void run_collectives(weft_comm *world, float *in, float *out)
{
    for (int i = 0; i < 3; i++)
        MUST(weft_all_reduce(world, in, out, COUNT / 2, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
}

static void run_messages(weft_comm *world, const float *in, float *out)
{
    int32_t rank = weft_comm_rank(world), size = weft_comm_size(world);

    if (size == 1) return;
    MUST(weft_group_begin(world));
    MUST(weft_send(world, in, COUNT, WEFT_DTYPE_F32, (rank + 1) % size, 0, NULL));
    MUST(weft_receive(world, out, COUNT, WEFT_DTYPE_F32, (rank + size - 1) % size, 0, NULL));
    MUST(weft_group_end(world));
}

static void run_plan(weft_context *ctx, weft_comm *world, const float *in, float *out)
{
    weft_bind_options named = {.struct_size = sizeof named, .name = "weights"};
    weft_bind_options packs = {.struct_size = sizeof packs, .name = "packed", .packed = true};
    weft_spec *from = NULL, *to = NULL;
    weft_mesh *mesh = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL, *packed = NULL;
    weft_stream *stream = NULL;
    char text[32];

    snprintf(text, sizeof text, "dp=%d", weft_comm_size(world));
    MUST(weft_mesh_parse(text, &mesh));
    MUST(weft_spec_parse(mesh, "f32[64,64] S(0)", &from));
    MUST(weft_spec_parse(mesh, "f32[64,64] S(1)", &to));
    MUST(weft_plan_create(from, to, NULL, &plan));
    MUST(weft_plan_bind(plan, world, &named, &bound));
    for (int i = 0; i < 4; i++)
        MUST(weft_redistribute(bound, in, out, NULL, NULL));
    MUST(weft_plan_bind(plan, world, &packs, &packed));
    MUST(weft_redistribute(packed, in, out, NULL, NULL));
    weft_bound_release(&packed);
    MUST(weft_stream_create(ctx, &stream));
    MUST(weft_stream_set_name(ctx, stream, "copies"));
    for (int i = 0; i < 2; i++)
        MUST(weft_redistribute(bound, in, out, stream, NULL));
    MUST(weft_all_gather(world, in, out, COUNT / 4, WEFT_DTYPE_F32, stream));
    if (waits) MUST(weft_context_wait(ctx, stream, WEFT_FOREVER));
    weft_stream_release(&stream);
    MUST(weft_stream_create(ctx, &stream));
    MUST(weft_barrier(world, stream));
    if (waits) MUST(weft_context_wait(ctx, stream, WEFT_FOREVER));
    weft_stream_release(&stream);
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
}

/* More texts than a trace has numbers for. */
static void run_many(weft_context *ctx, const void *in, void *out)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .name = "odd\xff\033\xc2\x9b"};
    weft_stream *stream = NULL;
    weft_comm *odd = NULL;

    MUST(weft_comm_split(weft_world(ctx), 0, 0, &options, &odd));
    MUST(weft_stream_create(ctx, &stream));
    MUST(weft_stream_set_name(ctx, stream, "\xc3("));
    MUST(weft_barrier(odd, NULL));
    MUST(weft_barrier(odd, stream));
    MUST(weft_context_wait(ctx, stream, WEFT_FOREVER));
    for (uint64_t i = 1; i <= 2000; i++) {
        MUST(weft_all_gather(odd, in, out, i, WEFT_DTYPE_U8, NULL));
        MUST(weft_broadcast(odd, in, out, i, WEFT_DTYPE_U8, 0, NULL));
        MUST(weft_all_reduce(odd, in, out, i, WEFT_DTYPE_U8, WEFT_REDUCE_SUM, stream));
        MUST(weft_all_to_all(odd, in, out, i, WEFT_DTYPE_U8, NULL));
        MUST(weft_reduce(odd, in, out, i, WEFT_DTYPE_U8, WEFT_REDUCE_SUM, 0, NULL));
        MUST(weft_context_wait(ctx, stream, WEFT_FOREVER));
    }
    weft_stream_release(&stream);
    weft_comm_release(&odd);
}

static void run(weft_context *ctx)
{
    weft_comm *world = weft_world(ctx);
    weft_comm *created;
    void *in, *out;

    MUST(weft_comm_split(world, 0, 0, NULL, &created));
    weft_comm_release(&created);
    MUST(weft_alloc(ctx, sizeof(float) * COUNT * 4, WEFT_MEMORY_DEVICE, &in));
    MUST(weft_alloc(ctx, sizeof(float) * COUNT * 4, WEFT_MEMORY_DEVICE, &out));
    if (has_many) run_many(ctx, in, out);
    run_collectives(world, in, out);
    run_messages(world, in, out);
    run_plan(ctx, world, in, out);
    MUST(weft_free(ctx, in));
    MUST(weft_free(ctx, out));
}

static void limit_files(void)
{
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){2048, 2048}) != 0) exit(1);
}

static weft_status run_thread(void *argument)
{
    weft_context *ctx = NULL, *second = NULL;

    (void)argument;
    if (weft_init(NULL, &ctx) != WEFT_OK) return WEFT_ERR_INVALID;
    if (is_twice) MUST(weft_init(NULL, &second));
    run(ctx);
    weft_context_release(&second);
    if (is_full) limit_files();
    if (is_killed && weft_comm_rank(weft_world(ctx)) == weft_comm_size(weft_world(ctx)) - 1)
        raise(SIGKILL);
    weft_context_release(&ctx);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    int threads = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) threads = atoi(argv[++i]);
        if (strcmp(argv[i], "--wait-not") == 0) waits = false;
        if (strcmp(argv[i], "--full") == 0) is_full = true;
        if (strcmp(argv[i], "--twice") == 0) is_twice = true;
        if (strcmp(argv[i], "--killed") == 0) is_killed = true;
        if (strcmp(argv[i], "--many") == 0) has_many = true;
    }
    if (threads > 0) {
        MUST(weft_threads_run(threads, run_thread, NULL));
        return 0;
    }
    return run_thread(NULL) == WEFT_OK ? 0 : 1;
}
