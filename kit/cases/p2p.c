/* p2p.c - messages between two ranks.
 *
 * A send may wait for its receive, so outside groups the kit sends in an order in which every
 * receiver reaches its receive. */
#include "cases.h"

#include "checks/collective.h"
#include "checks/message.h"

#define MAX_MESSAGES 12

/* One message from position FROM to position TO of GROUP. */
struct journey {
    struct kit_group *group;
    int32_t from, to, late; /* late: the position that is late, or -1 */
    struct kit_message message;
    bool own_stream;
};

static bool deliver(struct kit *kit, void *comm, const struct kit_message *message, void *stream)
{
    return kit_ok(kit, message->send ? "send" : "receive",
                  kit_message_post(kit, comm, message, stream)) &&
           kit_ok(kit, message->send ? "the send's work" : "the receive's work",
                  kit_finish(kit, comm, stream, 2 * kit->options->timeout_ns));
}

static void travel(struct kit *kit, struct journey journey)
{
    struct kit_message *message = &journey.message;
    int32_t me = journey.group->mine;
    void *stream = NULL, *comm;

    if (me < 0) return;
    comm = kit_comm(kit, journey.group); /* collective: all of the group create it */
    if (comm == NULL || (me != journey.from && me != journey.to)) return;
    message->send = me == journey.from;
    message->peer = message->send ? journey.to : journey.from;
    if (kit_message_make(kit, journey.group, message, kit_case_seed(kit)) &&
        (!journey.own_stream || kit_stream_make(kit, &stream))) {
        if (me == journey.late) kit_nap(10 * KIT_MILLISECOND);
        deliver(kit, comm, message, stream);
    }
    kit_stream_drop(kit, stream);
    kit_message_check(kit, message);
}

static void run_case(struct kit *kit, const char *style, struct journey journey)
{
    if (!kit_begin(kit, "%s/%s/count=%llu/from=%d/to=%d/ranks=%s", style,
                   wf_dtype_name(journey.message.dtype), (unsigned long long)journey.message.count,
                   journey.from, journey.to, journey.group->name))
        return;
    travel(kit, journey);
    kit_end(kit);
}

/* Every pair, in every group. */
void kit_p2p_pairs(struct kit *kit)
{
    for (int g = 0; g < kit->group_count; g++) {
        struct kit_group *group = &kit->groups[g];
        for (int32_t from = 0; from < group->size; from++)
            for (int32_t to = 0; to < group->size; to++)
                if (from != to)
                    run_case(kit, "pair",
                             (struct journey){.group = group,
                                              .from = from,
                                              .to = to,
                                              .late = -1,
                                              .message = {.dtype = WEFT_DTYPE_F32, .count = 5}});
    }
}

void kit_p2p_dtypes_and_counts(struct kit *kit)
{
    static const uint64_t counts[] = {0, 1, 7, 1021};
    struct journey journey = {.group = &kit->groups[0], .from = kit->size - 1, .late = -1};

    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < WF_COUNT(counts); i++) {
            journey.message = (struct kit_message){.dtype = dtype, .count = counts[i]};
            run_case(kit, "plain", journey);
        }
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        uint32_t bytes = (uint32_t)wf_dtype_bytes(dtype);
        journey.message =
            (struct kit_message){.dtype = dtype,
                                 .count = 33,
                                 .misaligned = wf_dtype_is_complex(dtype) ? bytes / 2 : bytes};
        run_case(kit, "misaligned", journey);
    }
}

void kit_p2p_styles(struct kit *kit)
{
    struct journey journey = {.group = &kit->groups[0], .from = 0, .to = 1, .late = -1};

    journey.message = (struct kit_message){.dtype = WEFT_DTYPE_F32, .count = 100003};
    run_case(kit, "large", journey);
    journey.message.count = 9;
    for (journey.late = 0; journey.late < 2; journey.late++)
        run_case(kit, journey.late == 0 ? "late_sender" : "late_receiver", journey);
    journey.late = -1;
    journey.own_stream = true;
    run_case(kit, "own_stream", journey);
    journey.own_stream = false;
    journey.message.memory = KIT_PLAIN;
    if ((kit->info.features & WEFT_FEATURE_HOST_MEMORY) != 0)
        run_case(kit, "plain_memory", journey);
}

/* Several messages from 0 to 1, which must arrive in order; then one back. */
void kit_p2p_in_order(struct kit *kit)
{
    static const uint64_t counts[] = {3, 0, 5000, 1, 1, 700, 2};
    struct kit_group *all = &kit->groups[0];
    void *comm;

    comm = kit_comm(kit, all);
    for (size_t i = 0; i < WF_COUNT(counts) && comm != NULL && kit->rank < 2; i++) {
        bool back = i + 1 == WF_COUNT(counts);
        struct kit_message message = {.send = (kit->rank == 0) != back,
                                      .dtype = WEFT_DTYPE_I16,
                                      .count = counts[i],
                                      .peer = 1 - kit->rank,
                                      .serial = (uint32_t)i};
        bool fine = kit_message_make(kit, all, &message, kit_case_seed(kit)) &&
                    deliver(kit, comm, &message, NULL);
        kit_message_check(kit, &message);
        if (!fine) break;
    }
}

/* Tags tell messages apart, in whatever order they are received. */
void kit_p2p_tags(struct kit *kit)
{
    struct kit_group *all = &kit->groups[0];
    struct kit_message messages[MAX_MESSAGES] = {{0}};
    const weft_comm_table *table = kit->plugin->comm;
    void *comm;

    comm = kit_comm(kit, all);
    if (comm != NULL && kit->rank < 2) {
        kit_ok(kit, "group_begin", table->group_begin(comm));
        for (uint32_t i = 0; i < MAX_MESSAGES; i++) {
            uint32_t which = kit->rank == 0 ? i : MAX_MESSAGES - 1 - i;
            messages[i] = (struct kit_message){.send = kit->rank == 0,
                                               .dtype = WEFT_DTYPE_U32,
                                               .count = 10 + which,
                                               .peer = 1 - kit->rank,
                                               .tag = which * 77,
                                               .serial = which};
            if (kit_message_make(kit, all, &messages[i], kit_case_seed(kit)))
                kit_ok(kit, "send or receive", kit_message_post(kit, comm, &messages[i], NULL));
        }
        if (kit_ok(kit, "group_end", table->group_end(comm)))
            kit_ok(kit, "the group's work",
                   kit_finish(kit, comm, NULL, 2 * kit->options->timeout_ns));
        for (uint32_t i = 0; i < MAX_MESSAGES; i++)
            kit_message_check(kit, &messages[i]);
    }
}

bool kit_when_messages(struct kit *kit)
{
    if (!kit_when_comm(kit)) return false;
    if (kit->size < 2)
        kit_skip(kit, "messages need at least two ranks");
    else if (!kit_has_messages(kit))
        kit_skip(kit, "the plugin has no messages: send says UNSUPPORTED");
    else
        return true;
    return false;
}

bool kit_when_tags(struct kit *kit)
{
    return (kit->info.features & WEFT_FEATURE_TAGS) != 0;
}
