/* stress.c - random collectives, many communicators, several threads. */
#include "cases.h"

#include "checks/collective.h"
#include "checks/process.h"

#include <pthread.h>
#include <stdio.h>

#define RANDOM_CASES 300

/* ---- random collectives ---- */

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = wf_hash_mix(*state, 0x632be59bd9b4e019);
    return (uint32_t)((*state >> 20) % below);
}

/* The choice is the same on all ranks, because it depends on the seed and the common claims
 * only. */
static bool draw_collective(struct kit *kit, uint64_t *state, struct kit_collective *c)
{
    struct kit_group *group = &kit->groups[draw(state, (uint32_t)kit->group_count)];

    *c = (struct kit_collective){
        .group = group,
        .collective = draw(state, WEFT_COLL_COUNT),
        .dtype = draw(state, WEFT_DTYPE_COUNT),
        .reduction = draw(state, WEFT_REDUCE_COUNT),
        .count = 1 + draw(state, 1u << draw(state, 13)),
        .root = (int32_t)draw(state, (uint32_t)group->size),
        .late = -1,
        .layout = (enum kit_layout)draw(state, KIT_EMPTY + 1),
        .in_place = draw(state, 2) == 1,
        .own_stream = draw(state, 4) == 0,
    };
    if (!wf_collective_reduces(c->collective)) c->reduction = 0;
    if (c->collective == WEFT_COLL_BARRIER) c->dtype = 0;
    if (draw(state, 3) == 0)
        c->misaligned =
            (uint32_t)wf_dtype_bytes(c->dtype) / (wf_dtype_is_complex(c->dtype) ? 2 : 1);
    return group->claims[c->collective][c->dtype][c->reduction] != WEFT_SUPPORT_NO;
}

void kit_stress_random(struct kit *kit)
{
    uint64_t state = wf_hash_mix(kit->options->seed, 1);

    for (uint32_t i = 0; i < RANDOM_CASES; i++) {
        struct kit_collective c;
        char prefix[32];
        int tries = 0;
        while (!draw_collective(kit, &state, &c) && tries < 10000)
            tries++;
        if (tries == 10000) return; /* the plugin claims too little */
        snprintf(prefix, sizeof prefix, "random/%u/", i);
        kit_collective_case(kit, &c, prefix, c.in_place ? "in_place" : "out_of_place");
    }
}

/* ---- many reductions in a row ---- */

/* Integers whose sums wrap and therefore stay exact. */
static const uint32_t wrapping_dtypes[] = {WEFT_DTYPE_I32, WEFT_DTYPE_U32, WEFT_DTYPE_I64,
                                           WEFT_DTYPE_U64};

static uint32_t wrapping_dtype(const struct kit *kit)
{
    return (uint32_t)kit_first_claimed(kit, WEFT_COLL_ALL_REDUCE, WEFT_REDUCE_SUM, wrapping_dtypes,
                                       WF_COUNT(wrapping_dtypes));
}

bool kit_when_wrapping_sums(struct kit *kit)
{
    bool claimed = wrapping_dtype(kit) != UINT32_MAX;

    if (!claimed) kit_skip(kit, "some cases need all_reduce by sum of 32 or 64 bit integers");
    return claimed;
}

/* The in-place all_reduces of one thread, on its own communicator and stream. */
struct row {
    struct kit *kit;
    void *comm, *stream;
    struct kit_image image;
    uint32_t dtype;
    uint64_t count;
    int length;
    weft_status status;
    char error[512]; /* the error of its thread */
};

static bool row_make(struct kit *kit, struct row *row)
{
    struct kit_image *image = &row->image;

    *row = (struct row){.kit = kit, .dtype = wrapping_dtype(kit), .count = 300, .length = 100};
    row->comm = kit_comm_make(kit, &kit->groups[0], (struct kit_comm_request){0});
    if (row->comm == NULL ||
        !kit_image_make(kit, image, row->count * wf_dtype_bytes(row->dtype), 0, KIT_DEVICE))
        return false;
    for (uint64_t i = 0; i < row->count; i++)
        wf_number_store(row->dtype,
                        (struct wf_number){.integer = (i + 1) * (uint64_t)(kit->rank + 1)},
                        image->before + image->start + i * wf_dtype_bytes(row->dtype));
    return kit_image_upload(kit, image) && kit_stream_make(kit, &row->stream);
}

static void *row_run(void *argument)
{
    struct row *row = argument;
    struct kit *kit = row->kit;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_ALL_REDUCE,
                                 .dtype = row->dtype,
                                 .send = kit_image_at(&row->image, 0),
                                 .recv = kit_image_at(&row->image, 0),
                                 .count = row->count,
                                 .stream = row->stream};

    if (kit->plugin->device->bind_thread != NULL)
        row->status = kit->plugin->device->bind_thread(kit->device);
    for (int i = 0; i < row->length && row->status == WEFT_OK; i++)
        row->status = kit->plugin->comm->collective(row->comm, &args);
    if (row->status == WEFT_OK)
        row->status = kit_finish(kit, row->comm, row->stream, 2 * kit->options->timeout_ns);
    if (row->status != WEFT_OK) snprintf(row->error, sizeof row->error, "%s", weft_last_error());
    return NULL;
}

/* The first round gives the sum of all ranks; each further round multiplies it by their number. */
static void row_check(struct row *row)
{
    struct kit *kit = row->kit;
    struct kit_image *image = &row->image;
    uint64_t factor = (uint64_t)kit->size * ((uint64_t)kit->size + 1) / 2;

    for (int i = 1; i < row->length; i++)
        factor *= (uint64_t)kit->size;
    for (uint64_t i = 0; i < row->count; i++)
        wf_number_store(row->dtype, (struct wf_number){.integer = (i + 1) * factor},
                        image->want + image->start + i * wf_dtype_bytes(row->dtype));
    if (kit_check(kit, row->status == WEFT_OK, "100 all_reduces in a row: WEFT_%s (%s)",
                  weft_status_name(row->status), row->error))
        kit_image_check(kit, image, "the buffer in place",
                        &(struct kit_compare){.dtype = row->dtype});
}

static void row_free(struct row *row)
{
    if (row->stream != NULL)
        row->kit->plugin->device->stream_destroy(row->kit->device, row->stream);
    kit_image_free(row->kit, &row->image);
    kit_comm_drop(row->kit, row->comm);
}

static void in_a_row(struct kit *kit, size_t thread_count)
{
    struct row rows[3];
    pthread_t threads[WF_COUNT(rows)];
    bool made = true;

    for (size_t i = 0; i < thread_count; i++)
        made = row_make(kit, &rows[i]) && made;
    if (made && thread_count == 1) row_run(&rows[0]);
    for (size_t i = 0; i < thread_count && made && thread_count > 1; i++)
        if (pthread_create(&threads[i], NULL, row_run, &rows[i]) != 0) {
            kit_fail(kit, "the kit could not start a thread");
            thread_count = i;
        }
    for (size_t i = 0; i < thread_count && made && thread_count > 1; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < thread_count; i++) {
        if (made) row_check(&rows[i]);
        /* No rank destroys its communicator while another rank still works. */
        kit_synchronize(kit, kit->groups[0].ranks, kit->size);
        row_free(&rows[i]);
    }
}

void kit_stress_in_a_row(struct kit *kit)
{
    in_a_row(kit, 1);
}

void kit_stress_threads(struct kit *kit)
{
    in_a_row(kit, 3);
}

/* ---- communicators ---- */

/* Communicators are created and destroyed repeatedly.  The first rounds may open files that the
 * process keeps. */
void kit_stress_communicators_remade(struct kit *kit)
{
    int before = 0, after;

    for (int i = 0; i < 30; i++) {
        void *comm;
        kit_allow_again(kit);
        comm = kit_comm_make(kit, &kit->groups[0], (struct kit_comm_request){0});
        if (comm == NULL) break;
        kit_synchronize(kit, kit->groups[0].ranks, kit->size);
        kit_comm_drop(kit, comm);
        if (i == 9) before = kit_open_files();
    }
    after = kit_open_files();
    if (!kit->options->threads)
        kit_check(kit, after <= before, "20 communicators left %d files open", after - before);
}

/* Many communicators exist at the same time and are used in turn. */
void kit_stress_communicators_many(struct kit *kit)
{
    struct kit_group groups[12];

    for (size_t i = 0; i < WF_COUNT(groups); i++) {
        groups[i] = kit->groups[i % (size_t)kit->group_count];
        groups[i].comm = NULL;
    }
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < WF_COUNT(groups); i++) {
            struct kit_collective c = {.group = &groups[i],
                                       .collective = WEFT_COLL_ALL_REDUCE,
                                       .dtype = wrapping_dtype(kit),
                                       .count = 11 + i,
                                       .late = -1};
            kit_allow_again(kit);
            kit_collective_run(kit, &c, kit_case_seed(kit) + i);
        }
    kit_synchronize(kit, kit->groups[0].ranks, kit->size);
    for (size_t i = 0; i < WF_COUNT(groups); i++)
        kit_comm_drop(kit, groups[i].comm);
}
