/* shmem_messages.c - messages: the sender publishes the address of its message, the receiver
 * fetches the message and acknowledges it.
 *
 * If several messages start together, all sends are published first, so that no rank waits for a
 * message whose sender is waiting too.  A pair of ranks can have WK_MESSAGES pending messages, so
 * more messages are sent in rounds. */
#include "shmem.h"

#include <string.h>

enum { TILE_BYTES = 16384, BLOCKS_MAX = 1024, WAITING_BLOCKS_MAX = 32 };

/* Messages that start together, and the offset in the stage of the next copy. */
struct messages {
    struct gpu_comm *comm;
    const struct gpu_op *ops;
    size_t count;
    uint64_t staged;
};

static uint64_t bytes_of(const struct gpu_op *op)
{
    return op->count * op->bytes;
}

static bool is_staged(const struct gpu_op *op)
{
    uint64_t offset;

    return bytes_of(op) > 0 && !shmem_arena_holds(op->send, bytes_of(op), &offset);
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* The number of messages before INDEX with the same kind and peer. */
static size_t place_of(const struct messages *messages, size_t index)
{
    size_t place = 0;

    for (size_t i = 0; i < index; i++)
        if (messages->ops[i].kind == messages->ops[index].kind &&
            messages->ops[i].root == messages->ops[index].root)
            place++;
    return place;
}

static weft_status stage(struct messages *messages, const struct gpu_op *op, uint64_t *offset)
{
    struct gpu_comm *comm = messages->comm;
    char *target;

    *offset = 0;
    if (bytes_of(op) == 0) return WEFT_OK;
    if (shmem_arena_holds(op->send, bytes_of(op), offset)) return WEFT_OK;
    target =
        (char *)comm->send_stage.memory + messages->staged; /* the stage has room for OP's bytes */
    messages->staged += padded(bytes_of(op));
    shmem_arena_holds(target, bytes_of(op), offset);
    return gpu_check(gpu_vendor_copy(target, op->send, bytes_of(op), op->stream),
                     "copying into symmetric memory");
}

static weft_status launch_post(struct messages *messages, const struct gpu_op *op, uint32_t settle)
{
    struct wk_post_args args = {
        .channel = shmem_channel(messages->comm), .count = 1, .settle = settle};
    weft_status status = WEFT_OK;

    args.items[0] = (struct wk_post_item){.bytes = bytes_of(op), .peer = (uint32_t)op->root};
    PLUG_TRY(shmem_turn_begin(messages->comm, op->stream));
    if (settle != 1) status = stage(messages, op, &args.items[0].address);
    if (status == WEFT_OK)
        status = shmem_onesided_launch(messages->comm, SHMEM_POST, 1, 1, &args, op->stream);
    shmem_turn_end(messages->comm, op->stream);
    return status;
}

static weft_status launch_fetch(struct messages *messages, const struct gpu_op *op)
{
    uint64_t bytes = bytes_of(op), blocks = bytes / TILE_BYTES + (bytes % TILE_BYTES != 0);
    struct gpu_comm *comm = messages->comm;
    struct wk_fetch_args args = {.channel = shmem_channel(comm),
                                 .table = (uintptr_t)comm->table.memory,
                                 .target = (uintptr_t)op->recv,
                                 .bytes = bytes,
                                 .peer = (uint32_t)op->root,
                                 .phases = WK_AWAIT,
                                 .blocks = 1};
    weft_status status = WEFT_OK;

    PLUG_TRY(shmem_turn_begin(comm, op->stream));
    if (blocks > WAITING_BLOCKS_MAX) {
        args.phases = WK_AWAIT | WK_KEEP;
        status = shmem_onesided_launch(comm, SHMEM_FETCH, 1, 1, &args, op->stream);
        args.phases = 0;
    }
    if (blocks > 1) args.blocks = (uint32_t)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
    if (status == WEFT_OK)
        status = shmem_onesided_launch(comm, SHMEM_FETCH, 1, args.blocks, &args, op->stream);
    shmem_turn_end(comm, op->stream);
    return status;
}

/* One round: publish the sends, fetch the receives, wait for the acknowledgements. */
static weft_status run_round(struct messages *messages, size_t round, bool *more)
{
    for (int step = 0; step < 3; step++)
        for (size_t i = 0; i < messages->count; i++) {
            const struct gpu_op *op = &messages->ops[i];
            size_t place = op->kind >= GPU_OP_SEND ? place_of(messages, i) / WK_MESSAGES : 0;
            if (op->kind < GPU_OP_SEND) continue;
            if (place > round) *more = true;
            if (place != round || (op->kind == GPU_OP_RECEIVE) != (step == 1)) continue;
            PLUG_TRY(step == 1 ? launch_fetch(messages, op)
                               : launch_post(messages, op, step == 0 ? 0 : 1));
        }
    return WEFT_OK;
}

weft_status shmem_messages_run(struct gpu_comm *comm, const struct gpu_op *ops, size_t count)
{
    struct messages messages = {comm, ops, count, 0};
    uint64_t staged = 0;
    bool more = true;

    for (size_t i = 0; i < count; i++)
        if (ops[i].kind == GPU_OP_SEND && is_staged(&ops[i])) staged += padded(bytes_of(&ops[i]));
    if (staged > 0) PLUG_TRY(shmem_stage_grow(comm, &comm->send_stage, staged));
    if (count == 1 && ops[0].kind == GPU_OP_SEND) return launch_post(&messages, &ops[0], 2);
    for (size_t round = 0; more; round++) {
        more = false;
        PLUG_TRY(run_round(&messages, round, &more));
    }
    return WEFT_OK;
}
