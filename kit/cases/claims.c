/* claims.c - the support query is pure, the same everywhere, and true. */
#include "cases.h"

#include "checks/collective.h"
#include "checks/message.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define UNANSWERED 0xff

/* The answers to all queries, also to invalid ones. */
struct answers {
    uint8_t levels[WEFT_COLL_COUNT][WEFT_DTYPE_COUNT][WEFT_REDUCE_COUNT];
};

struct asking {
    struct kit *kit;
    void *device;
    bool backwards;
    struct answers answers;
};

static weft_status ask(struct kit *kit, void *device, const uint32_t question[3], uint32_t *level)
{
    weft_support_query query = {.struct_size = sizeof query,
                                .collective = question[0],
                                .dtype = question[1],
                                .reduction = question[2],
                                .size = kit->size};

    return kit->plugin->comm->support(device, &query, level);
}

static void *ask_all(void *argument)
{
    struct asking *asking = argument;
    uint32_t total = WEFT_COLL_COUNT * WEFT_DTYPE_COUNT * WEFT_REDUCE_COUNT;

    for (uint32_t i = 0; i < total; i++) {
        uint32_t n = asking->backwards ? total - 1 - i : i;
        uint32_t question[3] = {n / (WEFT_DTYPE_COUNT * WEFT_REDUCE_COUNT),
                                n / WEFT_REDUCE_COUNT % WEFT_DTYPE_COUNT, n % WEFT_REDUCE_COUNT};
        uint32_t level = UNANSWERED;
        if (ask(asking->kit, asking->device, question, &level) != WEFT_OK) level = UNANSWERED;
        asking->answers.levels[question[0]][question[1]][question[2]] = (uint8_t)level;
    }
    return NULL;
}

/* Write the first query with different answers in the two rounds to OUT.  False if there is
 * none. */
static bool first_difference(const struct answers *a, const struct answers *b, char *out,
                             size_t capacity)
{
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++)
        for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
            for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++) {
                if (a->levels[c][d][r] == b->levels[c][d][r]) continue;
                snprintf(out, capacity, "%s, %s, %s: %u, then %u", wf_collective_name(c),
                         wf_dtype_name(d), wf_reduction_name(r), a->levels[c][d][r],
                         b->levels[c][d][r]);
                return true;
            }
    return false;
}

void kit_claims_pure(struct kit *kit)
{
    struct asking first = {.kit = kit, .device = kit->device}, second = first;
    pthread_t thread;
    char text[128];

    ask_all(&first);
    second.backwards = true;
    if (pthread_create(&thread, NULL, ask_all, &second) == 0) {
        pthread_join(thread, NULL);
        if (first_difference(&first.answers, &second.answers, text, sizeof text))
            kit_fail(kit, "asked again, from another thread, the answer changed: %s", text);
    }
}

void kit_claims_answered(struct kit *kit)
{
    struct asking asking = {.kit = kit, .device = kit->device};

    ask_all(&asking);
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++)
        for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
            for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++) {
                uint32_t level = asking.answers.levels[c][d][r];
                if (!kit_is_question(c, d, r)) continue;
                kit_check(kit, level <= WEFT_SUPPORT_NATIVE,
                          "%s, %s, %s: no answer, or one that is not a level (%u)",
                          wf_collective_name(c), wf_dtype_name(d), wf_reduction_name(r), level);
                kit_check(kit,
                          !wf_collective_reduces(c) || wf_reduction_defined(r, d) ||
                              level == WEFT_SUPPORT_NO,
                          "%s of %s by %s is not defined, yet claimed", wf_collective_name(c),
                          wf_dtype_name(d), wf_reduction_name(r));
            }
}

void kit_claims_unknown_values(struct kit *kit)
{
    static const uint32_t questions[][3] = {
        {WEFT_COLL_COUNT, 0, 0},
        {9999, 0, 0},
        {WEFT_COLL_ALL_GATHER, WEFT_DTYPE_COUNT, 0},
        {WEFT_COLL_ALL_GATHER, 9999, 0},
        {WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, WEFT_REDUCE_COUNT},
        {WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, 9999}};

    for (size_t i = 0; i < WF_COUNT(questions); i++) {
        uint32_t level = UNANSWERED;
        weft_status status = ask(kit, kit->device, questions[i], &level);
        kit_check(
            kit, (status == WEFT_OK && level == WEFT_SUPPORT_NO) || status == WEFT_ERR_UNSUPPORTED,
            "collective %u, dtype %u, reduction %u: WEFT_%s, level %u, where none is known",
            questions[i][0], questions[i][1], questions[i][2], weft_status_name(status), level);
    }
}

void kit_claims_same_on_all_ranks(struct kit *kit)
{
    struct asking asking = {.kit = kit, .device = kit->device};
    struct answers all[KIT_MAX_RANKS];
    char text[128];

    ask_all(&asking);
    kit_gather(kit, &kit->groups[0], &asking.answers, all, sizeof asking.answers);
    for (int32_t rank = 1; rank < kit->size; rank++)
        if (first_difference(&all[0], &all[rank], text, sizeof text))
            kit_fail(kit, "on rank 0 and on rank %d: %s", rank, text);
}

/* Without a device the answer is the highest possible level. */
void kit_claims_without_device(struct kit *kit)
{
    struct asking with = {.kit = kit, .device = kit->device}, without = {.kit = kit};

    ask_all(&with);
    ask_all(&without);
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++)
        for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
            for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++)
                if (kit_is_question(c, d, r))
                    kit_check(kit, without.answers.levels[c][d][r] >= with.answers.levels[c][d][r],
                              "%s, %s, %s: %u at best, but %u on this device",
                              wf_collective_name(c), wf_dtype_name(d), wf_reduction_name(r),
                              without.answers.levels[c][d][r], with.answers.levels[c][d][r]);
}

/* A call that the plugin does not claim is refused without side effects. */
static void refused(struct kit *kit, uint32_t collective, uint32_t dtype, uint32_t reduction)
{
    uint64_t bytes = (uint64_t)kit->size * wf_dtype_bytes(dtype);
    uint64_t counts[KIT_MAX_RANKS], offsets[KIT_MAX_RANKS];
    struct kit_image send = {0}, recv = {0};
    struct kit_compare exactly = {.dtype = WEFT_DTYPE_U8};
    void *comm = kit_comm(kit, &kit->groups[0]);
    uint8_t scale[16];
    weft_collective_args args = {
        .struct_size = sizeof args,
        .collective = collective,
        .dtype = dtype,
        .reduction = reduction,
        .count = 1,
        .scale = scale,
        .send_counts = counts,
        .send_offsets = offsets,
        .recv_counts = counts,
        .recv_offsets = offsets,
    };

    for (int32_t i = 0; i < kit->size; i++) {
        counts[i] = 1;
        offsets[i] = (uint64_t)i;
    }
    kit_pattern_scale(dtype, kit->rank, scale);
    if (comm != NULL && kit_images_make(kit, &send, &recv, bytes)) {
        args.send = kit_image_at(&send, 0);
        args.recv = kit_image_at(&recv, 0);
        kit_expect(kit, "a collective that is not claimed",
                   kit->plugin->comm->collective(comm, &args), WEFT_ERR_UNSUPPORTED);
        kit_ok(kit, "async_error after it", kit->plugin->comm->async_error(comm));
        kit_image_check(kit, &recv, "recv of a refused collective", &exactly);
    }
    kit_images_free(kit, &send, &recv);
}

static void denied(struct kit *kit, uint32_t collective, uint32_t dtype, uint32_t reduction)
{
    bool reduces = wf_collective_reduces(collective);

    if (!kit_begin(kit, "denied/%s/%s%s%s", wf_collective_name(collective), wf_dtype_name(dtype),
                   reduces ? "/" : "", reduces ? wf_reduction_name(reduction) : ""))
        return;
    refused(kit, collective, dtype, reduction);
    kit_end(kit);
}

void kit_claims_truthful(struct kit *kit)
{
    struct kit_group *all = &kit->groups[0];

    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++)
        for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
            for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++) {
                struct kit_collective kept = {.group = all,
                                              .collective = c,
                                              .dtype = d,
                                              .reduction = r,
                                              .count = 1,
                                              .late = -1};
                if (!kit_is_question(c, d, r)) continue;
                if (all->claims[c][d][r] == WEFT_SUPPORT_NO)
                    denied(kit, c, d, r);
                else
                    kit_collective_case(kit, &kept, "kept/", "out_of_place");
            }
}

/* The planner uses predictions: each claimed combination must have one, and it must not be 0. */
void kit_claims_cost(struct kit *kit)
{
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++) {
        weft_support_query query = {
            .struct_size = sizeof query, .collective = c, .size = kit->size};
        weft_cost out = {.struct_size = sizeof out};
        weft_status status;
        if (c != WEFT_COLL_BARRIER) query.dtype = WEFT_DTYPE_F32;
        if (!kit->groups[0].claims[c][query.dtype][0]) continue;
        status = kit->plugin->comm->cost(kit->device, &query, 1 << 20, &out);
        if (status == WEFT_ERR_UNSUPPORTED) continue; /* weft's own cost table is used */
        if (!kit_ok(kit, "cost", status)) break;
        kit_check(kit, out.measured <= 1, "%s: measured is %u; expected 0 or 1",
                  wf_collective_name(c), out.measured);
        kit_check(kit, kit->size == 1 || out.latency_ns + out.femtoseconds_per_byte > 0,
                  "%s over %d ranks is said to take no time", wf_collective_name(c), kit->size);
    }
}

/* weft asks for messages with one that has no peer, and for pull without regions. */
void kit_claims_carried(struct kit *kit)
{
    const weft_comm_table *table = kit->plugin->comm;
    weft_message message = {.struct_size = sizeof message, .dtype = WEFT_DTYPE_U8, .peer = -1};
    weft_pull_args question = {.struct_size = sizeof question};
    const struct kit_group *all = &kit->groups[0];
    bool has_messages = kit_has_messages(kit);
    void *comm;

    if (!kit_begin(kit, "carried")) return;
    comm = kit_comm(kit, &kit->groups[0]);
    if (comm != NULL) {
        kit_expect(kit, "a message to rank -1", table->send(comm, &message),
                   has_messages ? WEFT_ERR_INVALID : WEFT_ERR_UNSUPPORTED);
        if (all->claims[WEFT_COLL_ALL_TO_ALL_V][WEFT_DTYPE_U8][0] != WEFT_SUPPORT_NO)
            kit_skip(kit, "weft uses all_to_all_v for operations that the plugin does not support");
        else if (has_messages)
            kit_skip(kit, "weft uses messages for operations that the plugin does not support");
        else if (table->pull != NULL && kit->plugin->kernel != NULL &&
                 table->pull(comm, &question) != WEFT_ERR_UNSUPPORTED)
            kit_skip(kit, "weft uses pull for operations that the plugin does not support");
        else if (all->claims[WEFT_COLL_ALL_GATHER][WEFT_DTYPE_U8][0] != WEFT_SUPPORT_NO)
            kit_skip(kit, "weft uses all_gather for operations that the plugin does not support");
        else
            kit_skip(kit, "weft redistributes nothing: the plugin has neither all_to_all_v of u8, "
                          "messages, pull with a kernel table, nor all_gather of u8");
    }
    kit_end(kit);
}

static void read_carrier(const weft_comm_table *table, void *comm, char *out, size_t size)
{
    const char *text = table->carrier(comm);

    snprintf(out, size, "%.255s", text != NULL ? text : "");
}

/* The text belongs to the communicator, and does not change. */
void kit_claims_carrier(struct kit *kit)
{
    const weft_comm_table *table = kit->plugin->comm;
    void *comm = kit_comm(kit, &kit->groups[0]);
    char first[256], second[256];

    if (comm == NULL) return;
    read_carrier(table, comm, first, sizeof first);
    read_carrier(table, comm, second, sizeof second);
    kit_check(kit, strcmp(first, second) == 0, "the text was \"%s\", and then \"%s\"", first,
              second);
}

bool kit_when_carriers(struct kit *kit)
{
    return kit->plugin->comm->carrier != NULL;
}

bool kit_when_costs(struct kit *kit)
{
    return kit->plugin->comm->cost != NULL;
}
