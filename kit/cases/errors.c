/* errors.c - wrong arguments are refused, say why, and leave everything as it was.
 *
 * faults.c goes on with what goes wrong between ranks. */
#include "cases.h"

#include "checks/collective.h"
#include "checks/message.h"

#include <string.h>

/* Arguments that are valid for every collective, with one element per peer. */
struct universal {
    weft_collective_args args;
    uint64_t counts[KIT_MAX_RANKS], offsets[KIT_MAX_RANKS];
    uint8_t scale[16];
    struct kit_image send, recv;
};

static bool universal_make(struct kit *kit, struct universal *u, uint32_t collective,
                           uint32_t dtype, uint32_t reduction)
{
    uint64_t bytes = 16 * (uint64_t)kit->size;

    *u = (struct universal){0};
    for (int32_t i = 0; i < kit->size; i++) {
        u->counts[i] = 1;
        u->offsets[i] = (uint64_t)i;
    }
    if (!kit_images_make(kit, &u->send, &u->recv, bytes)) return false;
    u->scale[0] = 1;
    u->args = (weft_collective_args){
        .struct_size = sizeof u->args,
        .collective = collective,
        .dtype = dtype,
        .reduction = reduction,
        .send = kit_image_at(&u->send, 0),
        .recv = kit_image_at(&u->recv, 0),
        .count = 1,
        .send_counts = u->counts,
        .send_offsets = u->offsets,
        .recv_counts = u->counts,
        .recv_offsets = u->offsets,
        .scale = u->scale,
    };
    return true;
}

/* Check that the call is refused with WANT and a text, and that no buffer was changed. */
static void refused(struct kit *kit, struct universal *u, weft_status want)
{
    void *comm = kit_comm(kit, &kit->groups[0]);
    struct kit_compare exactly = {.dtype = WEFT_DTYPE_U8};

    if (comm == NULL) return;
    (void)wf_fail(WEFT_OK, "%s", "");
    if (kit_expect(kit, "collective", kit->plugin->comm->collective(comm, &u->args), want))
        kit_check(kit, weft_last_error()[0] != '\0', "it was refused without set_error");
    kit_ok(kit, "async_error after a refusal", kit->plugin->comm->async_error(comm));
    kit_image_check(kit, &u->recv, "recv of a refused call", &exactly);
    kit_image_check(kit, &u->send, "send of a refused call", &exactly);
}

static void universal_free(struct kit *kit, struct universal *u)
{
    kit_images_free(kit, &u->send, &u->recv);
}

/* ---- unknown values ---- */

static void unknown(struct kit *kit, const char *name, uint32_t collective, uint32_t dtype,
                    uint32_t reduction)
{
    struct universal u;

    if (!kit_begin(kit, "unknown/%s", name)) return;
    if (universal_make(kit, &u, collective, dtype, reduction))
        refused(kit, &u, WEFT_ERR_UNSUPPORTED);
    universal_free(kit, &u);
    kit_end(kit);
}

void kit_errors_unknown(struct kit *kit)
{
    unknown(kit, "collective", WEFT_COLL_COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM);
    unknown(kit, "collective=9999", 9999, WEFT_DTYPE_F32, WEFT_REDUCE_SUM);
    unknown(kit, "dtype", WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_COUNT, WEFT_REDUCE_SUM);
    unknown(kit, "reduction", WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, WEFT_REDUCE_COUNT);
}

/* ---- arguments out of range, or missing ---- */

static void bad_root(struct kit *kit, uint32_t collective, uint32_t dtype, uint32_t reduction)
{
    const int32_t roots[] = {-1, kit->size, INT32_MAX, INT32_MIN};

    for (size_t i = 0; i < WF_COUNT(roots); i++) {
        struct universal u;
        if (!kit_begin(kit, "root/%s/root=%d", wf_collective_name(collective), roots[i])) continue;
        if (universal_make(kit, &u, collective, dtype, reduction)) {
            u.args.root = roots[i];
            refused(kit, &u, WEFT_ERR_INVALID);
        }
        universal_free(kit, &u);
        kit_end(kit);
    }
}

/* Pointers that a call needs, and which calls. */
enum need { ALWAYS, TO_SPLIT_SEND, TO_SPLIT_RECV, TO_SCALE };

static const struct argument {
    const char *name;
    size_t at; /* in weft_collective_args */
    enum need need;
} pointers[] = {
    {"send", offsetof(weft_collective_args, send), ALWAYS},
    {"recv", offsetof(weft_collective_args, recv), ALWAYS},
    {"send_counts", offsetof(weft_collective_args, send_counts), TO_SPLIT_SEND},
    {"send_offsets", offsetof(weft_collective_args, send_offsets), TO_SPLIT_SEND},
    {"recv_counts", offsetof(weft_collective_args, recv_counts), TO_SPLIT_RECV},
    {"recv_offsets", offsetof(weft_collective_args, recv_offsets), TO_SPLIT_RECV},
    {"scale", offsetof(weft_collective_args, scale), TO_SCALE},
};

/* True if COLLECTIVE needs the argument on every rank, so that all ranks refuse the call. */
static bool needs(uint32_t collective, uint32_t reduction, enum need need)
{
    const struct kit_shape *shape = &kit_shapes[collective];

    if (kit_is_rooted(collective) || collective == WEFT_COLL_BARRIER) return false;
    if (need == TO_SPLIT_SEND) return shape->varied && shape->split_send;
    if (need == TO_SPLIT_RECV) return shape->varied && shape->split_recv;
    return need == ALWAYS || (shape->reduces && reduction == WEFT_REDUCE_PREMUL_SUM);
}

static void missing(struct kit *kit, uint32_t collective, uint32_t dtype, uint32_t reduction)
{
    for (size_t i = 0; i < WF_COUNT(pointers); i++) {
        struct universal u;
        if (!needs(collective, reduction, pointers[i].need)) continue;
        if (!kit_begin(kit, "null/%s/%s/%s", wf_collective_name(collective),
                       wf_reduction_name(reduction), pointers[i].name))
            continue;
        if (universal_make(kit, &u, collective, dtype, reduction)) {
            memset((uint8_t *)&u.args + pointers[i].at, 0, sizeof(void *));
            refused(kit, &u, WEFT_ERR_INVALID);
        }
        universal_free(kit, &u);
        kit_end(kit);
    }
}

static void arguments(struct kit *kit, uint32_t collective)
{
    const struct kit_group *all = &kit->groups[0];
    bool done[WEFT_REDUCE_COUNT] = {false};

    for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
        for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++) {
            bool interesting = r == WEFT_REDUCE_SUM || r == WEFT_REDUCE_PREMUL_SUM;
            if (!all->claims[collective][d][r] || done[r] || !interesting) continue;
            done[r] = true; /* one dtype is enough */
            if (kit_is_rooted(collective) && r == WEFT_REDUCE_SUM) bad_root(kit, collective, d, r);
            missing(kit, collective, d, r);
        }
}

void kit_errors_arguments(struct kit *kit)
{
    for (uint32_t collective = 0; collective < WEFT_COLL_COUNT; collective++)
        arguments(kit, collective);
}

static void bad_message(struct kit *kit, const char *name, weft_message message, weft_status want)
{
    for (int sends = 0; sends < 2; sends++) {
        weft_status status;
        void *comm;
        if (!kit_begin(kit, "message/%s/%s", sends ? "send" : "receive", name)) continue;
        comm = kit_comm(kit, &kit->groups[0]);
        if (comm != NULL) {
            (void)wf_fail(WEFT_OK, "%s", "");
            status = sends ? kit->plugin->comm->send(comm, &message)
                           : kit->plugin->comm->receive(comm, &message);
            if (kit_expect(kit, sends ? "send" : "receive", status, want))
                kit_check(kit, weft_last_error()[0] != '\0', "it was refused without set_error");
            kit_ok(kit, "async_error after a refusal", kit->plugin->comm->async_error(comm));
        }
        kit_end(kit);
    }
}

void kit_errors_messages(struct kit *kit)
{
    uint8_t byte = 0;
    weft_message good = {
        .struct_size = sizeof good, .dtype = WEFT_DTYPE_U8, .buffer = &byte, .count = 1, .peer = 0};
    weft_message bad = good;

    bad.peer = -1;
    bad_message(kit, "peer=-1", bad, WEFT_ERR_INVALID);
    bad.peer = kit->size;
    bad_message(kit, "peer=size", bad, WEFT_ERR_INVALID);
    bad = good;
    bad.dtype = WEFT_DTYPE_COUNT;
    bad_message(kit, "unknown_dtype", bad, WEFT_ERR_UNSUPPORTED);
    bad = good;
    bad.buffer = NULL;
    bad_message(kit, "null", bad, WEFT_ERR_INVALID);
}

/* ---- communicators that are not made ---- */

static void bad_options(struct kit *kit, const char *name, int32_t rank, int32_t size)
{
    struct kit_comm_setup setup;
    weft_blob address = {NULL, 77};
    void *comm = &setup;

    if (!kit_begin(kit, "prepare/%s", name)) return;
    kit_comm_options(kit, &kit->groups[0], (struct kit_comm_request){0}, &setup);
    setup.options.rank = rank;
    setup.options.size = size;
    kit_expect(kit, "prepare",
               kit->plugin->comm->prepare(kit->device, &setup.options, &comm, &address),
               WEFT_ERR_INVALID);
    kit_check(kit, comm == &setup && address.bytes == 77,
              "a failing prepare has written its outputs");
    kit_end(kit);
}

void kit_errors_options(struct kit *kit)
{
    bad_options(kit, "rank=size", kit->size, kit->size);
    bad_options(kit, "rank=-1", -1, kit->size);
    bad_options(kit, "size=0", 0, 0);
}

/* Prepare a communicator and destroy it before the exchange. */
void kit_errors_prepared_and_dropped(struct kit *kit)
{
    for (int i = 0; i < 20; i++) {
        struct kit_comm_setup setup;
        weft_blob address = {0};
        void *comm = NULL;
        kit->comms_made++;
        kit_comm_options(kit, &kit->groups[0], (struct kit_comm_request){0}, &setup);
        if (!kit_ok(kit, "prepare",
                    kit->plugin->comm->prepare(kit->device, &setup.options, &comm, &address)))
            break;
        if (i % 2 == 0) kit->plugin->comm->abort(comm);
        kit->plugin->comm->destroy(comm);
    }
    kit->plugin->comm->destroy(NULL);
}

void kit_errors_null_copy(struct kit *kit)
{
    uint8_t bytes[8] = {0};

    kit_expect(kit, "copy to NULL", kit->plugin->device->copy(kit->device, NULL, bytes, 8, NULL),
               WEFT_ERR_INVALID);
    kit_expect(kit, "copy from NULL", kit->plugin->device->copy(kit->device, bytes, NULL, 8, NULL),
               WEFT_ERR_INVALID);
    kit_expect(kit, "fill of NULL", kit->plugin->device->fill(kit->device, NULL, 1, 8, NULL),
               WEFT_ERR_INVALID);
}
