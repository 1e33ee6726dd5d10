/* message.h - one message of a case: its buffer, its call and its check. */
#ifndef WEFT_KIT_MESSAGE_H
#define WEFT_KIT_MESSAGE_H

#include "frame/kit.h"

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

/* Create the buffer of the message and fill it with the data to send.  SEED is the case's. */
bool kit_message_make(struct kit *kit, const struct kit_group *group, struct kit_message *message,
                      uint64_t seed);
/* Call the plugin's send or receive. */
weft_status kit_message_post(struct kit *kit, void *comm, const struct kit_message *message,
                             void *stream);
/* After the work is done: check that the message has arrived and that no other byte was written.
 * Frees the buffer. */
void kit_message_check(struct kit *kit, struct kit_message *message);
/* Check instead that the receive buffer is unchanged. */
void kit_message_check_unmoved(struct kit *kit, struct kit_message *message);

/* True if the plugin has messages.  Collective over all ranks. */
bool kit_has_messages(struct kit *kit);

#endif
