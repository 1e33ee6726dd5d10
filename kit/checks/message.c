/* message.c - one message of a case: its buffer, its call and its check. */
#include "message.h"

#include <stdio.h>
#include <string.h>

static uint64_t payload_bytes(const struct kit_message *message)
{
    return message->count * wf_dtype_bytes(message->dtype);
}

static void fill(const struct kit_group *group, const struct kit_message *message, uint64_t seed,
                 uint8_t *out)
{
    int32_t from = message->send ? group->mine : message->peer;
    int32_t to = message->send ? message->peer : group->mine;
    uint64_t own_seed = wf_hash_mix(wf_hash_mix(seed, message->serial), (uint64_t)to);

    for (uint64_t i = 0; i < message->count; i++)
        kit_pattern_bits(own_seed, message->dtype, from, i,
                         out + i * wf_dtype_bytes(message->dtype));
}

bool kit_message_make(struct kit *kit, const struct kit_group *group, struct kit_message *message,
                      uint64_t seed)
{
    struct kit_image *image = &message->image;

    if (!kit_image_make(kit, image, payload_bytes(message), message->misaligned, message->memory))
        return false;
    if (message->send) fill(group, message, seed, image->before + image->start);
    if (!kit_image_upload(kit, image)) return false;
    if (!message->send) fill(group, message, seed, image->want + image->start);
    return true;
}

weft_status kit_message_post(struct kit *kit, void *comm, const struct kit_message *message,
                             void *stream)
{
    weft_message posted = {
        .struct_size = sizeof posted,
        .dtype = message->dtype,
        .buffer = message->count > 0 ? kit_image_at(&message->image, 0) : NULL,
        .count = message->count,
        .peer = message->peer,
        .tag = message->tag,
        .stream = stream,
    };

    return message->send ? kit->plugin->comm->send(comm, &posted)
                         : kit->plugin->comm->receive(comm, &posted);
}

void kit_message_check(struct kit *kit, struct kit_message *message)
{
    char name[64];

    if (message->image.memory == NULL) return;
    snprintf(name, sizeof name, "message %u %s rank %d of its group", message->serial,
             message->send ? "to" : "from", message->peer);
    kit_image_check(kit, &message->image, name, &(struct kit_compare){.dtype = message->dtype});
    kit_image_free(kit, &message->image);
}

void kit_message_check_unmoved(struct kit *kit, struct kit_message *message)
{
    if (message->image.memory == NULL) return;
    memcpy(message->image.want, message->image.before, message->image.total);
    kit_message_check(kit, message);
}

/* A message of a rank to itself, in a group, shows whether the plugin has messages. */
static bool offers_messages(struct kit *kit)
{
    const weft_comm_table *table = kit->plugin->comm;
    void *comm = kit_comm(kit, &kit->groups[0]);
    weft_message message = {
        .struct_size = sizeof message, .dtype = WEFT_DTYPE_U8, .peer = kit->rank};
    bool offered;

    if (comm == NULL || table->group_begin(comm) != WEFT_OK)
        return true; /* the cases report the failure */
    offered = table->send(comm, &message) != WEFT_ERR_UNSUPPORTED;
    if (table->receive(comm, &message) != WEFT_ERR_UNSUPPORTED) offered = true;
    return table->group_end(comm) != WEFT_ERR_UNSUPPORTED && offered;
}

bool kit_has_messages(struct kit *kit)
{
    uint8_t mine, all[KIT_MAX_RANKS];

    if (kit->messages_known) return kit->has_messages;
    mine = kit_aside(kit, "p2p/offered") && offers_messages(kit);
    kit_gather(kit, &kit->groups[0], &mine, all, sizeof mine);
    for (int32_t rank = 0; rank < kit->size; rank++)
        kit->has_messages = kit->has_messages || all[rank];
    kit->messages_known = true;
    kit_comms_drop(kit);
    kit_aside_over(kit);
    return kit->has_messages;
}
