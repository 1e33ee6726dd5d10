/* parcel.c - one message of a case: its buffer, its call and its check. */
#include "conform/checks/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t payload_bytes(const struct kit_parcel *parcel)
{
    return parcel->count * wf_dtype_bytes(parcel->dtype);
}

static void fill(const struct kit_group *group, const struct kit_parcel *parcel, uint64_t seed,
                 uint8_t *out)
{
    int32_t from = parcel->send ? group->mine : parcel->peer;
    int32_t to = parcel->send ? parcel->peer : group->mine;
    uint64_t own_seed = wf_hash_mix(wf_hash_mix(seed, parcel->serial), (uint64_t)to);

    for (uint64_t i = 0; i < parcel->count; i++)
        kit_pattern_bits(own_seed, parcel->dtype, from, i, out + i * wf_dtype_bytes(parcel->dtype));
}

bool kit_parcel_make(struct kit *kit, const struct kit_group *group, struct kit_parcel *parcel,
                     uint64_t seed)
{
    struct kit_image *image = &parcel->image;

    if (!kit_image_make(kit, image, payload_bytes(parcel), parcel->misaligned, parcel->memory))
        return false;
    if (parcel->send) fill(group, parcel, seed, image->before + image->start);
    if (!kit_image_upload(kit, image)) return false;
    if (!parcel->send) fill(group, parcel, seed, image->want + image->start);
    return true;
}

weft_status kit_parcel_post(struct kit *kit, void *comm, const struct kit_parcel *parcel,
                            void *stream)
{
    weft_message message = {
        .struct_size = sizeof message,
        .dtype = parcel->dtype,
        .buffer = parcel->count > 0 ? kit_image_at(&parcel->image, 0) : NULL,
        .count = parcel->count,
        .peer = parcel->peer,
        .tag = parcel->tag,
        .stream = stream,
    };

    return parcel->send ? kit->plugin->comm->send(comm, &message)
                        : kit->plugin->comm->receive(comm, &message);
}

void kit_parcel_check(struct kit *kit, struct kit_parcel *parcel)
{
    char name[64];

    if (parcel->image.memory == NULL) return;
    snprintf(name, sizeof name, "message %u %s rank %d of its group", parcel->serial,
             parcel->send ? "to" : "from", parcel->peer);
    kit_image_check(kit, &parcel->image, name, &(struct kit_compare){.dtype = parcel->dtype});
    kit_image_free(kit, &parcel->image);
}

void kit_parcel_check_unmoved(struct kit *kit, struct kit_parcel *parcel)
{
    if (parcel->image.memory == NULL) return;
    memcpy(parcel->image.want, parcel->image.before, parcel->image.total);
    kit_parcel_check(kit, parcel);
}

/* A message to oneself, in a group, shows whether there are messages. */
static bool offers_messages(struct kit *kit)
{
    const weft_comm_table *table = kit->plugin->comm;
    void *comm = kit_comm(kit, &kit->groups[0]);
    weft_message message = {
        .struct_size = sizeof message, .dtype = WEFT_DTYPE_U8, .peer = kit->rank};
    bool offered;

    if (comm == NULL || table->group_begin(comm) != WEFT_OK) return true; /* cases will tell */
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
