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

/* Messages of one stream that are launched together. */
struct batch {
    const struct gpu_op *ops[WK_MESSAGES];
    uint32_t count;
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

/* Publish the sends, wait for their acknowledgements, or both. */
static weft_status launch_post(struct messages *messages, const struct batch *batch,
                               uint32_t settle)
{
    struct wk_post_args args = {
        .channel = shmem_channel(messages->comm), .count = batch->count, .settle = settle};
    vendor_stream stream = batch->ops[0]->stream;
    weft_status status = WEFT_OK;

    PLUG_TRY(shmem_turn_begin(messages->comm, stream));
    for (uint32_t i = 0; i < batch->count && status == WEFT_OK; i++) {
        const struct gpu_op *op = batch->ops[i];

        args.items[i] = (struct wk_post_item){.bytes = bytes_of(op), .peer = (uint32_t)op->root};
        if (settle != 1) status = stage(messages, op, &args.items[i].address);
    }
    if (status == WEFT_OK)
        status = shmem_onesided_launch(messages->comm, SHMEM_POST, 1, 1, &args, stream);
    shmem_turn_end(messages->comm, stream);
    return status;
}

static uint64_t blocks_of(const struct gpu_op *op)
{
    return bytes_of(op) / TILE_BYTES + (bytes_of(op) % TILE_BYTES != 0);
}

static bool is_large(const struct gpu_op *op)
{
    return blocks_of(op) > WAITING_BLOCKS_MAX;
}

static struct wk_fetch_item fetched(const struct gpu_op *op)
{
    return (struct wk_fetch_item){
        .target = (uintptr_t)op->recv, .bytes = bytes_of(op), .peer = (uint32_t)op->root};
}

/* Few blocks await a small message and copy it.  A large message is awaited by one block, of a
 * kernel of its own or of the kernel of the large message before it, and then copied by many. */
static weft_status fetch(struct gpu_comm *comm, const struct batch *batch, uint32_t index)
{
    const struct gpu_op *op = batch->ops[index];
    bool follows = index > 0 && is_large(batch->ops[index - 1]);
    struct wk_fetch_args args = {.channel = shmem_channel(comm),
                                 .table = (uintptr_t)comm->table.memory,
                                 .phases = WK_AWAIT,
                                 .blocks = 1,
                                 .item = fetched(op)};

    if (is_large(op)) {
        args.phases = WK_AWAIT | WK_KEEP;
        if (!follows) PLUG_TRY(shmem_onesided_launch(comm, SHMEM_FETCH, 1, 1, &args, op->stream));
        args.phases = 0;
        args.is_chained = index + 1 < batch->count && is_large(batch->ops[index + 1]);
        if (args.is_chained) args.next = fetched(batch->ops[index + 1]);
    }
    if (blocks_of(op) > 1)
        args.blocks = (uint32_t)(blocks_of(op) < BLOCKS_MAX ? blocks_of(op) : BLOCKS_MAX);
    return shmem_onesided_launch(comm, SHMEM_FETCH, 1, args.blocks, &args, op->stream);
}

static weft_status launch_fetch(struct messages *messages, const struct batch *batch)
{
    struct gpu_comm *comm = messages->comm;
    vendor_stream stream = batch->ops[0]->stream;
    weft_status status = WEFT_OK;

    PLUG_TRY(shmem_turn_begin(comm, stream));
    for (uint32_t i = 0; i < batch->count && status == WEFT_OK; i++)
        status = fetch(comm, batch, i);
    shmem_turn_end(comm, stream);
    return status;
}

enum step { PUBLISH, FETCH, SETTLE, STEPS };

static weft_status launch(struct messages *messages, struct batch *batch, enum step step)
{
    weft_status status = WEFT_OK;

    if (batch->count > 0)
        status = step == FETCH ? launch_fetch(messages, batch)
                               : launch_post(messages, batch, step == SETTLE);
    batch->count = 0;
    return status;
}

/* Add OP to the batch.  A batch that is full, or of another stream, is launched first. */
static weft_status add(struct messages *messages, struct batch *batch, enum step step,
                       const struct gpu_op *op)
{
    if (batch->count == WK_MESSAGES || (batch->count > 0 && batch->ops[0]->stream != op->stream))
        PLUG_TRY(launch(messages, batch, step));
    batch->ops[batch->count++] = op;
    return WEFT_OK;
}

/* One round: publish the sends, fetch the receives, wait for the acknowledgements. */
static weft_status run_round(struct messages *messages, size_t round, bool *more)
{
    struct batch batch = {0};

    for (enum step step = PUBLISH; step < STEPS; step++) {
        for (size_t i = 0; i < messages->count; i++) {
            const struct gpu_op *op = &messages->ops[i];
            size_t place = op->kind >= GPU_OP_SEND ? place_of(messages, i) / WK_MESSAGES : 0;
            if (op->kind < GPU_OP_SEND) continue;
            if (place > round) *more = true;
            if (place != round || (op->kind == GPU_OP_RECEIVE) != (step == FETCH)) continue;
            PLUG_TRY(add(messages, &batch, step, op));
        }
        PLUG_TRY(launch(messages, &batch, step));
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
    if (count == 1 && ops[0].kind == GPU_OP_SEND) {
        const struct batch alone = {{ops}, 1};
        return launch_post(&messages, &alone, 2);
    }
    for (size_t round = 0; more; round++) {
        more = false;
        PLUG_TRY(run_round(&messages, round, &more));
    }
    return WEFT_OK;
}
