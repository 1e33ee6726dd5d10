/* message.h - one message of a case: its buffer, its call and its check. */
#ifndef WEFT_CONFORM_MESSAGE_H
#define WEFT_CONFORM_MESSAGE_H

#include "conform/kit.h"

struct kit_message {
    bool send; /* else receive */
    uint32_t dtype, tag;
    uint64_t count;
    int32_t peer;    /* position in the group */
    uint32_t serial; /* the same on both sides; tells messages of one case apart */
    uint32_t misaligned;
    enum kit_memory memory;
    struct kit_image image;
};

/* Make the message's buffer, and put in what is to be sent.  SEED is the case's. */
bool kit_message_make(struct kit *kit, const struct kit_group *group, struct kit_message *message,
                      uint64_t seed);
/* Hand it to the plugin. */
weft_status kit_message_post(struct kit *kit, void *comm, const struct kit_message *message,
                             void *stream);
/* After the work is done: has it arrived, with nothing else written?  Frees the buffer. */
void kit_message_check(struct kit *kit, struct kit_message *message);
/* Check instead that the receive buffer is as it was, since nothing was to happen. */
void kit_message_check_unmoved(struct kit *kit, struct kit_message *message);

/* Does the plugin have messages at all?  Collective over all ranks. */
bool kit_has_messages(struct kit *kit);

#endif
