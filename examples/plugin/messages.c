/* messages.c - sends, receives, and groups of operations that start together.
 *
 * Each pair of ranks has one slot per direction.  The messages of a group advance in turns, each as
 * far as its slot allows, until all are complete.  The order in which ranks post them does not
 * matter. */
#include "example.h"

#include <string.h>

struct example_operation {
    struct example_operation *next;
    bool is_send, is_collective, done;
    weft_message message;
    uint64_t bytes, moved;
    weft_collective_args args;
    uint64_t arrays[4][EXAMPLE_MAX_RANKS];
    uint8_t scale[16];
};

static void append(struct example_comm *comm, struct example_operation *operation)
{
    struct example_operation **link = &comm->queue;

    while (*link != NULL)
        link = &(*link)->next;
    *link = operation;
}

void example_drop_queue(struct example_comm *comm)
{
    while (comm->queue != NULL) {
        struct example_operation *next = comm->queue->next;
        plug_free(comm->queue);
        comm->queue = next;
    }
}

/* ---- collectives in groups ---- */

static const uint64_t *keep(struct example_comm *comm, const uint64_t *array, uint64_t *copy)
{
    if (array == NULL) return NULL;
    memcpy(copy, array, (size_t)comm->size * sizeof *copy);
    return copy;
}

weft_status example_queue_collective(struct example_comm *comm, const weft_collective_args *args)
{
    struct example_operation *operation = plug_alloc(sizeof *operation);

    if (operation == NULL) return plug_fail(WEFT_ERR_NO_MEMORY, "no memory for a group");
    *operation = (struct example_operation){.is_collective = true, .args = *args};
    operation->args.send_counts = keep(comm, args->send_counts, operation->arrays[0]);
    operation->args.send_offsets = keep(comm, args->send_offsets, operation->arrays[1]);
    operation->args.recv_counts = keep(comm, args->recv_counts, operation->arrays[2]);
    operation->args.recv_offsets = keep(comm, args->recv_offsets, operation->arrays[3]);
    if (args->scale != NULL) {
        memcpy(operation->scale, args->scale, kit_dtype_bytes(args->dtype));
        operation->args.scale = operation->scale;
    }
    append(comm, operation);
    return WEFT_OK;
}

/* ---- messages ---- */

/* Returns true if a part was moved. */
static bool move_on(struct example_comm *comm, struct example_operation *operation)
{
    int32_t peer = operation->message.peer;
    struct example_slot *slot = operation->is_send ? &comm->segment->slots[comm->rank][peer]
                                                   : &comm->segment->slots[peer][comm->rank];
    uint64_t part = operation->bytes - operation->moved;
    uint8_t *at;

    operation->done = part == 0;
    if (operation->done || (atomic_load(&slot->full) != 0) == operation->is_send) return false;
    if (part > EXAMPLE_SLOT) part = EXAMPLE_SLOT;
    at = (uint8_t *)operation->message.buffer + operation->moved;
    if (operation->is_send)
        memcpy(slot->data, at, part);
    else
        memcpy(at, slot->data, part);
    atomic_store(&slot->full, operation->is_send);
    operation->moved += part;
    operation->done = operation->moved == operation->bytes;
    return true;
}

/* One turn.  For each peer and direction, only the first incomplete message may advance.  Sets
 * *MOVED if a part was moved. */
static bool move_all(struct example_comm *comm, bool *moved)
{
    bool busy[2][EXAMPLE_MAX_RANKS] = {{false}};
    bool all_done = true;

    for (struct example_operation *o = comm->queue; o != NULL; o = o->next) {
        bool *blocked = &busy[o->is_send][o->is_collective ? 0 : o->message.peer];
        if (o->is_collective || o->done) continue;
        if (!*blocked && move_on(comm, o)) *moved = true;
        if (o->done) continue;
        *blocked = true;
        all_done = false;
    }
    return all_done;
}

static weft_status run_queue(struct example_comm *comm)
{
    int64_t deadline = example_now() + comm->timeout_ns;
    weft_status status = atomic_load(&comm->error);
    uint32_t tries = 0;
    bool moved = false;

    if (status != WEFT_OK) return plug_fail(status, "the communicator has failed before");
    while (!move_all(comm, &moved)) {
        if (moved) deadline = example_now() + comm->timeout_ns; /* of a wait without progress */
        moved = false;
        status = example_pause(comm, deadline, &tries);
        if (status != WEFT_OK) return status;
    }
    for (struct example_operation *o = comm->queue; o != NULL; o = o->next) {
        if (!o->is_collective) continue;
        status = example_collective_now(comm, &o->args);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

static weft_status post(struct example_comm *comm, const weft_message *message, bool is_send)
{
    uint64_t element = kit_dtype_bytes(message->dtype);
    struct example_operation *operation;

    if (element == 0)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is not known", message->dtype);
    if (message->peer < 0 || message->peer >= comm->size)
        return plug_fail(WEFT_ERR_INVALID, "peer %d of %d ranks", message->peer, comm->size);
    if (message->buffer == NULL && message->count > 0)
        return plug_fail(WEFT_ERR_INVALID, "the buffer is NULL");
    operation = plug_alloc(sizeof *operation);
    if (operation == NULL) return plug_fail(WEFT_ERR_NO_MEMORY, "no memory for a message");
    *operation = (struct example_operation){
        .is_send = is_send, .message = *message, .bytes = message->count * element};
    append(comm, operation);
    return WEFT_OK;
}

/* Queue the message if a group is open, else transfer it now. */
static weft_status post_or_move(struct example_comm *comm, const weft_message *message,
                                bool is_send)
{
    weft_status status = post(comm, message, is_send);

    if (comm->group_depth > 0) {
        if (comm->group_error == WEFT_OK) comm->group_error = status;
        return status;
    }
    if (status == WEFT_OK) status = run_queue(comm);
    example_drop_queue(comm);
    return status;
}

weft_status example_send(void *comm, const weft_message *message)
{
    return post_or_move(comm, message, true);
}

weft_status example_receive(void *comm, const weft_message *message)
{
    return post_or_move(comm, message, false);
}

/* ---- groups ---- */

weft_status example_group_begin(void *self)
{
    struct example_comm *comm = self;

    if (comm->group_depth++ == 0) comm->group_error = WEFT_OK;
    return WEFT_OK;
}

weft_status example_group_end(void *self)
{
    struct example_comm *comm = self;
    weft_status status;

    if (comm->group_depth == 0) return plug_fail(WEFT_ERR_INVALID, "group_end without group_begin");
    if (--comm->group_depth > 0) return WEFT_OK;
    status = comm->group_error;
    if (status == WEFT_OK) status = run_queue(comm);
    example_drop_queue(comm);
    return status;
}
