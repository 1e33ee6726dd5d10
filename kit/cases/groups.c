/* groups.c - operations that start together. */
#include "cases.h"

#include "checks/collective.h"
#include "checks/message.h"

#include <string.h>

#define MAX_MESSAGES (2 * KIT_MAX_RANKS)

/* The messages of one rank in one case. */
struct bundle {
    struct kit *kit;
    void *comm;
    struct kit_message messages[MAX_MESSAGES];
    size_t count;
};

static bool begin(struct bundle *bundle)
{
    return kit_ok(bundle->kit, "group_begin", bundle->kit->plugin->comm->group_begin(bundle->comm));
}

/* End the group and wait for its work. */
static void end(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;

    if (kit_ok(kit, "group_end", kit->plugin->comm->group_end(bundle->comm)))
        kit_ok(kit, "the group's work",
               kit_finish(kit, bundle->comm, NULL, 2 * kit->options->timeout_ns));
}

static void post(struct bundle *bundle, bool send, int32_t peer, uint64_t count, uint32_t serial)
{
    struct kit *kit = bundle->kit;
    struct kit_message *message = &bundle->messages[bundle->count++];

    *message = (struct kit_message){
        .send = send, .dtype = WEFT_DTYPE_I32, .count = count, .peer = peer, .serial = serial};
    if (kit_message_make(kit, &kit->groups[0], message, kit_case_seed(kit)))
        kit_ok(kit, send ? "send" : "receive", kit_message_post(kit, bundle->comm, message, NULL));
}

static void check_all(struct bundle *bundle)
{
    for (size_t i = 0; i < bundle->count; i++)
        kit_message_check(bundle->kit, &bundle->messages[i]);
}

static int32_t neighbour(const struct kit *kit, int32_t step)
{
    return (kit->rank + step + kit->size) % kit->size;
}

/* ---- messages in groups ---- */

static void ring(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;

    if (!begin(bundle)) return;
    post(bundle, true, neighbour(kit, 1), 50021, 0);
    post(bundle, false, neighbour(kit, -1), 50021, 0);
    end(bundle);
}

static void to_self(struct bundle *bundle)
{
    if (!begin(bundle)) return;
    post(bundle, true, bundle->kit->rank, 30011, 0);
    post(bundle, false, bundle->kit->rank, 30011, 0);
    end(bundle);
}

/* Messages between all pairs, receives first.  Lengths differ, and some are zero. */
static void everyone(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;

    if (!begin(bundle)) return;
    for (int32_t peer = 0; peer < kit->size; peer++)
        post(bundle, false, peer, (uint64_t)((peer * 7 + kit->rank * 3) % 5) * 1009, 0);
    for (int32_t peer = kit->size; peer-- > 0;)
        post(bundle, true, peer, (uint64_t)((kit->rank * 7 + peer * 3) % 5) * 1009, 0);
    end(bundle);
}

/* Short and long messages in turn, and long ones in a row. */
static const uint64_t lengths[] = {200003, 0,      300007, 150001, 5,      160001, 1,
                                   170003, 180001, 190027, 33,     140009, 250007, 131072,
                                   7,      240007, 210011, 2,      131073, 220009};

static void many(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;

    if (!begin(bundle)) return;
    for (uint32_t i = 0; i < WF_COUNT(lengths); i++) {
        post(bundle, true, neighbour(kit, 1), lengths[i], i);
        post(bundle, false, neighbour(kit, -1), lengths[i], i);
    }
    end(bundle);
}

/* Position 0 sends its messages alone, so that each send may wait for its receive; position 1
 * receives them as a group. */
static void alone_to_a_group(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;
    bool send = kit->rank == 0;

    if (kit->size < 2 || kit->rank > 1 || (!send && !begin(bundle))) return;
    for (uint32_t i = 0; i < WF_COUNT(lengths); i++)
        post(bundle, send, 1 - kit->rank, lengths[i], i);
    if (send)
        kit_ok(kit, "the sends' work",
               kit_finish(kit, bundle->comm, NULL, 2 * kit->options->timeout_ns));
    else
        end(bundle);
}

static void nested(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;

    if (!begin(bundle)) return;
    post(bundle, true, neighbour(kit, 1), 40, 0);
    if (begin(bundle)) {
        post(bundle, true, neighbour(kit, 1), 50, 1);
        kit_ok(kit, "the inner group_end", kit->plugin->comm->group_end(bundle->comm));
    }
    post(bundle, false, neighbour(kit, -1), 40, 0);
    post(bundle, false, neighbour(kit, -1), 50, 1);
    end(bundle);
}

static void empty(struct bundle *bundle)
{
    if (begin(bundle)) end(bundle);
    if (begin(bundle)) end(bundle);
}

static void again(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;

    for (uint32_t round = 0; round < 100 && begin(bundle); round++) {
        bundle->count = 0;
        post(bundle, true, neighbour(kit, 1), round, round);
        post(bundle, false, neighbour(kit, -1), round, round);
        end(bundle);
        check_all(bundle);
    }
    bundle->count = 0;
}

/* The end of a group returns its first error, and no operation of the group runs. */
static void error_inside(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;
    weft_message nobody = {
        .struct_size = sizeof nobody, .dtype = WEFT_DTYPE_U8, .peer = kit->size + 3};

    if (!begin(bundle)) return;
    post(bundle, true, neighbour(kit, 1), 20, 0);
    kit_expect(kit, "send to a rank that is not there",
               kit->plugin->comm->send(bundle->comm, &nobody), WEFT_ERR_INVALID);
    post(bundle, false, neighbour(kit, -1), 20, 0);
    kit_expect(kit, "group_end after an error inside", kit->plugin->comm->group_end(bundle->comm),
               WEFT_ERR_INVALID);
    kit_finish(kit, bundle->comm, NULL, kit->options->timeout_ns);
    for (size_t i = 0; i < bundle->count; i++)
        kit_message_check_unmoved(kit, &bundle->messages[i]);
    bundle->count = 0;
    ring(bundle); /* the communicator still works */
}

/* ---- collectives in groups ---- */

struct pair {
    struct kit_image send, recv;
};

/* An all_gather_v of rank + 1 elements per rank.  Its arrays are freed before the group ends. */
static void gather_in_group(struct bundle *bundle, struct pair *pair, uint32_t serial)
{
    struct kit *kit = bundle->kit;
    uint64_t counts[KIT_MAX_RANKS], offsets[KIT_MAX_RANKS], total = 0;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_GATHER_V,
                                 .dtype = WEFT_DTYPE_U8,
                                 .recv_counts = counts,
                                 .recv_offsets = offsets};

    for (int32_t i = 0; i < kit->size; i++) {
        counts[i] = (uint64_t)i + 1;
        offsets[i] = total;
        total += counts[i];
    }
    if (!kit_image_make(kit, &pair->send, counts[kit->rank], 0, KIT_DEVICE) ||
        !kit_image_make(kit, &pair->recv, total, 0, KIT_DEVICE))
        return;
    memset(pair->send.before + pair->send.start, (int)(serial * 40) + kit->rank, pair->send.bytes);
    if (!kit_image_upload(kit, &pair->send) || !kit_image_upload(kit, &pair->recv)) return;
    for (int32_t i = 0; i < kit->size; i++)
        memset(pair->recv.want + pair->recv.start + offsets[i], (int)(serial * 40) + i, counts[i]);
    args.send = kit_image_at(&pair->send, 0);
    args.recv = kit_image_at(&pair->recv, 0);
    kit_ok(kit, "collective in a group", kit->plugin->comm->collective(bundle->comm, &args));
    memset(counts, 0x7f, sizeof counts);
    memset(offsets, 0x7f, sizeof offsets);
}

static void check_pair(struct kit *kit, struct pair *pair)
{
    struct kit_compare exactly = {.dtype = WEFT_DTYPE_U8};

    if (pair->recv.memory != NULL) kit_image_check(kit, &pair->recv, "recv", &exactly);
    kit_images_free(kit, &pair->recv, &pair->send);
}

static bool can_gather(const struct kit *kit)
{
    return kit->groups[0].claims[WEFT_COLL_ALL_GATHER_V][WEFT_DTYPE_U8][0];
}

static void collectives(struct bundle *bundle)
{
    struct pair pairs[3] = {{{0}, {0}}};

    if (!can_gather(bundle->kit) || !begin(bundle)) return;
    for (uint32_t i = 0; i < WF_COUNT(pairs); i++)
        gather_in_group(bundle, &pairs[i], i);
    end(bundle);
    for (uint32_t i = 0; i < WF_COUNT(pairs); i++)
        check_pair(bundle->kit, &pairs[i]);
}

static void mixed(struct bundle *bundle)
{
    struct kit *kit = bundle->kit;
    struct pair pair = {{0}, {0}};

    if (!can_gather(kit) || !begin(bundle)) return;
    post(bundle, true, neighbour(kit, 1), 3000, 0);
    gather_in_group(bundle, &pair, 1);
    post(bundle, false, neighbour(kit, -1), 3000, 0);
    end(bundle);
    check_pair(kit, &pair);
}

void kit_groups(struct kit *kit)
{
    static const struct {
        const char *name;
        void (*run)(struct bundle *bundle);
        bool messages;
    } cases[] = {
        {"empty", empty, false},
        {"collectives", collectives, false},
        {"ring", ring, true},
        {"to_self", to_self, true},
        {"everyone", everyone, true},
        {"many", many, true},
        {"alone_to_a_group", alone_to_a_group, true},
        {"nested", nested, true},
        {"again", again, true},
        {"error_inside", error_inside, true},
        {"mixed", mixed, true},
    };

    if (!kit_has_messages(kit)) kit_skip(kit, "without messages: send says UNSUPPORTED");
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct bundle bundle = {.kit = kit};
        if (cases[i].messages && !kit_has_messages(kit)) continue;
        if (!kit_begin(kit, "%s", cases[i].name)) continue;
        bundle.comm = kit_comm(kit, &kit->groups[0]);
        if (bundle.comm != NULL) cases[i].run(&bundle);
        check_all(&bundle);
        kit_end(kit);
    }
}
