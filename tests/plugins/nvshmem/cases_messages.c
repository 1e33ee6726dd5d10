/* cases_messages.c - messages of one call group that are on several streams. */
#include "arena.h"

enum { BYTES = 64, SENDER = 1 };

static void exchange(struct rank *self, unsigned char *memory, weft_stream *const *streams)
{
    OK(weft_group_begin(self->world));
    for (int i = 0; i < 2; i++, memory += BYTES) {
        if (self->number == SENDER)
            OK(weft_send(self->world, memory, BYTES, WEFT_DTYPE_U8, 0, 0, streams[i]));
        if (self->number == 0)
            OK(weft_receive(self->world, memory, BYTES, WEFT_DTYPE_U8, SENDER, 0, streams[i]));
    }
    OK(weft_group_end(self->world));
}

/* The second message is written late, on its stream. */
static void messages_of_a_group_keep_to_their_streams(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 1);
    weft_stream *streams[] = {self->stream, NULL};
    unsigned char *memory = take(self, 2 * BYTES), host[BYTES] = {0};
    bool sends = self->number == SENDER;

    if (symm == NULL || !OK(weft_stream_create(self->context, &streams[1]))) return;
    OK(weft_memory_fill(self->context, memory, 0, 2 * BYTES, NULL));
    finish(self, NULL);
    if (sends) {
        OK(weft_symm_wait_from(symm, SENDER, 0, WEFT_COMPARE_EQ, 1, WEFT_FOREVER, streams[1]));
        OK(weft_memory_fill(self->context, memory + BYTES, 7, BYTES, streams[1]));
    }
    exchange(self, memory, streams);
    if (sends) {
        pause_ns(SECOND / 5);
        OK(weft_symm_signal_to(symm, SENDER, 0, 1, WEFT_SIGNAL_SET, NULL));
    }
    OK(weft_memory_copy(self->context, memory + BYTES, host, BYTES, streams[1]));
    finish(self, streams[1]);
    check(self, self->number > SENDER || host[BYTES - 1] == 7,
          "the second message does not keep to its stream");
    finish(self, streams[0]);
    weft_stream_release(&streams[1]);
    give(self, memory);
    weft_symm_release(&symm);
}

const struct symm_case message_cases[] = {
    {"messages_of_a_group_keep_to_their_streams", messages_of_a_group_keep_to_their_streams, 2},
    {NULL, NULL, 0}};
