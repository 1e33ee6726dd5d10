/* trace_stress.c - two threads of each rank with communicators of their own, streams of each, and a
 * group with more messages than the recorder has records (WEFT_RECORDER=64) and a track has levels.
 */
#include "must.h"
#include "weft/weft.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS   100
#define MESSAGES 80
#define COUNT    2048

static weft_context *ctx;

/* Half of the operations are on a stream, which is waited for now and then. */
static void *work(void *argument)
{
    weft_comm *comm = argument;
    weft_stream *stream = NULL;
    void *data;

    MUST(weft_alloc(ctx, COUNT * sizeof(float), WEFT_MEMORY_DEVICE, &data));
    MUST(weft_stream_create(ctx, &stream));
    for (int i = 0; i < ROUNDS; i++) {
        MUST(weft_all_reduce(comm, data, data, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, NULL));
        MUST(weft_all_reduce(comm, data, data, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, stream));
        if (i % 10 == 0) MUST(weft_context_wait(ctx, stream, WEFT_FOREVER));
    }
    MUST(weft_context_wait(ctx, stream, WEFT_FOREVER));
    weft_stream_release(&stream);
    MUST(weft_free(ctx, data));
    return NULL;
}

static void send_many(weft_comm *world)
{
    int32_t size = weft_comm_size(world), rank = weft_comm_rank(world);
    float *data;

    MUST(weft_alloc(ctx, (2 * MESSAGES + 1) * sizeof *data, WEFT_MEMORY_DEVICE, (void **)&data));
    MUST(weft_group_begin(world));
    for (int i = 0; i < MESSAGES; i++) {
        MUST(weft_send(world, data, 1, WEFT_DTYPE_F32, (rank + 1) % size, (uint32_t)i, NULL));
        MUST(weft_receive(world, data + 1 + i, 1, WEFT_DTYPE_F32, (rank + size - 1) % size,
                          (uint32_t)i, NULL));
    }
    MUST(weft_group_end(world));
    MUST(weft_barrier(world, NULL));
    MUST(weft_free(ctx, data));
}

int main(void)
{
    weft_subcomm_options names[] = {{.struct_size = sizeof names[0], .name = "one"},
                                    {.struct_size = sizeof names[0], .name = "two"}};
    weft_comm *comms[2];
    pthread_t threads[2];

    MUST(weft_init(NULL, &ctx));
    for (int i = 0; i < 2; i++)
        MUST(weft_comm_split(weft_world(ctx), 0, 0, &names[i], &comms[i]));
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, comms[i]) != 0) return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    send_many(weft_world(ctx));
    for (int i = 0; i < 2; i++)
        weft_comm_release(&comms[i]);
    weft_context_release(&ctx);
    return 0;
}
