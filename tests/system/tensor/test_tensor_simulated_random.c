/* Ranks that are simulated hold the same bits as ranks of gloo-cpu that are threads: random
 * layouts, moves, lists, views, random numbers, comparisons and texts. */
#include "base/base.h"
#include "holds.h"
#include "comm/comm.h"
#include "support/move.h"
#include "support/random_layout.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/launch.h"
#include "weft/random.h"

#include <string.h>

enum { RANKS = 6 };

static weft_spec *from, *to; /* of the current case */
static uint64_t seed;

/* The values that each rank has seen, by rank. */
struct notes {
    struct wf_text of[RANKS], labels[RANKS]; /* a label says where the bytes after it begin */
};

static struct notes real, simulated;

static void clear(struct notes *notes)
{
    for (int32_t i = 0; i < RANKS; i++) {
        wf_text_free(&notes->of[i]);
        wf_text_free(&notes->labels[i]);
    }
    *notes = (struct notes){0};
}

/* This process holds the shard of RANK. */
static bool is_here(const weft_context *context, int32_t rank)
{
    return context->is_simulated || context->rank == rank;
}

/* ---- notes ---- */

static void label(struct notes *notes, const weft_context *context, const char *text)
{
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (is_here(context, rank))
            wf_text_add(&notes->labels[rank], "%zu %s, ", notes->of[rank].length, text);
}

static void note(struct notes *notes, const weft_context *context, const weft_mesh *mesh,
                 const void *data, size_t bytes)
{
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (is_here(context, rank) && (mesh == NULL || wf_mesh_index(mesh, rank) >= 0))
            wf_text_append(&notes->of[rank], data, bytes);
}

static bool note_status(struct notes *notes, const weft_context *context, weft_status status,
                        const char *text)
{
    label(notes, context, text);
    note(notes, context, NULL, &status, sizeof status);
    return status == WEFT_OK;
}

/* The bytes of every shard here. */
static weft_status note_shards(struct notes *notes, weft_tensor *tensor)
{
    const weft_context *context = weft_tensor_context(tensor);
    const weft_spec *spec = weft_tensor_spec(tensor);
    uint64_t total = 0, done = 0;
    char *host;

    for (int32_t rank = 0; rank < RANKS; rank++)
        if (is_here(context, rank)) total += weft_spec_shard_bytes(spec, rank);
    host = malloc(total + 1);
    HOLDS(host != NULL);
    WF_TRY(weft_tensor_to_host(tensor, host, total, NULL));
    for (int32_t rank = 0; rank < RANKS; rank++) {
        uint64_t bytes = weft_spec_shard_bytes(spec, rank);

        if (!is_here(context, rank)) continue; /* another thread has its notes */
        wf_text_append(&notes->of[rank], host + done, bytes);
        done += bytes;
    }
    free(host);
    return WEFT_OK;
}

/* ---- the case ---- */

/* Elements that depend on the rank, for contributions and replicas alike. */
static weft_status set_elements(weft_tensor *tensor)
{
    const weft_context *context = weft_tensor_context(tensor);
    const weft_spec *spec = weft_tensor_spec(tensor);
    uint64_t total = 0, done = 0;
    float *host;

    for (int32_t rank = 0; rank < RANKS; rank++)
        if (is_here(context, rank)) total += weft_spec_shard_bytes(spec, rank);
    host = malloc(total + 1);
    HOLDS(host != NULL);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        uint64_t count = is_here(context, rank) ? weft_spec_shard_bytes(spec, rank) / 4 : 0;

        for (uint64_t i = 0; i < count; i++)
            host[done++] = (float)(int32_t)wf_hash_mix(seed + (uint64_t)rank, i) / 3e8F;
    }
    WF_TRY(weft_tensor_from_host(tensor, host, total, NULL));
    free(host);
    return WEFT_OK;
}

static weft_status move_lists(struct notes *notes, weft_tensor *here, weft_tensor *there)
{
    weft_context *context = weft_tensor_context(here);
    weft_tensor *tensors[] = {here, there, here}, *targets[3] = {NULL};
    weft_work *work = NULL;

    for (int i = 0; i < 3; i++)
        WF_TRY(weft_tensor_create(context, i == 1 ? from : to, NULL, &targets[i]));
    if (note_status(notes, context, weft_tensors_move_into(3, tensors, targets, NULL, NULL, &work),
                    "list")) {
        WF_TRY(weft_work_wait(work, WEFT_FOREVER));
        weft_work_release(&work);
        for (int i = 0; i < 3; i++)
            WF_TRY(note_shards(notes, targets[i]));
    }
    if (note_status(notes, context, move_into(here, targets[0], NULL, NULL), "move_into"))
        WF_TRY(note_shards(notes, targets[0]));
    for (int i = 0; i < 3; i++)
        weft_tensor_release(&targets[i]);
    return WEFT_OK;
}

/* A part of dimension 0 and two dimensions swapped, then moved and set. */
static weft_status use_views(struct notes *notes, weft_tensor *tensor)
{
    weft_context *context = weft_tensor_context(tensor);
    const weft_spec *spec = weft_tensor_spec(tensor);
    weft_tensor *part = NULL, *swapped = NULL, *moved = NULL;
    int32_t dims = weft_spec_dims(spec);

    if (dims == 0 || weft_spec_shape(spec)[0] < 2) return WEFT_OK;
    if (!note_status(notes, context,
                     weft_tensor_narrow(tensor, 0, 1, weft_spec_shape(spec)[0] - 1, &part),
                     "narrow"))
        return WEFT_OK;
    WF_TRY(weft_tensor_transpose(part, 0, dims - 1, &swapped));
    WF_TRY(note_shards(notes, swapped));
    if (note_status(notes, context, weft_tensor_full(swapped, WEFT_EVERY_RANK, NULL, NULL, &moved),
                    "view"))
        WF_TRY(note_shards(notes, moved));
    WF_TRY(weft_tensor_fill(swapped, 3, NULL));
    WF_TRY(note_shards(notes, tensor));
    weft_tensor_release(&moved);
    weft_tensor_release(&swapped);
    weft_tensor_release(&part);
    return WEFT_OK;
}

static weft_status draw(struct notes *notes, weft_context *context)
{
    weft_random random = {seed, 9};
    weft_tensor *tensor = NULL;
    OWNED(weft_spec) *spec = NULL;

    label(notes, context, "draw");
    WF_TRY(weft_spec_gradient(from, &spec));
    WF_TRY(weft_tensor_create(context, spec, NULL, &tensor));
    WF_TRY(weft_tensor_normal(tensor, &random, 1, 2, NULL));
    WF_TRY(note_shards(notes, tensor));
    WF_TRY(weft_tensor_dropout(tensor, &random, 0.25, NULL));
    WF_TRY(note_shards(notes, tensor));
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

static void note_difference(struct notes *notes, const weft_context *context,
                            const weft_tensor_difference_info *info)
{
    const weft_mesh *mesh = weft_spec_mesh(from);

    note(notes, context, mesh, &info->ranks, sizeof info->ranks);
    note(notes, context, mesh, &info->equal, sizeof info->equal);
    note(notes, context, mesh, &info->differing, sizeof info->differing);
    note(notes, context, mesh, &info->largest, sizeof info->largest);
    note(notes, context, mesh, &info->rank, sizeof info->rank);
    note(notes, context, mesh, info->index, sizeof info->index);
    note(notes, context, mesh, info->first, sizeof info->first);
    note(notes, context, mesh, info->second, sizeof info->second);
}

/* All ranks of the meshes get one result of a comparison, and one text. */
static weft_status compare(struct notes *notes, weft_tensor *here, weft_tensor *there)
{
    const weft_context *context = weft_tensor_context(here);
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    static _Thread_local char text[1 << 16];
    size_t length = 0;

    if (note_status(notes, context, weft_tensor_compare(here, there, NULL, NULL, &info), "compare"))
        note_difference(notes, context, &info);
    if (note_status(notes, context,
                    weft_tensor_full_print(here, NULL, NULL, text, sizeof text, &length), "print"))
        note(notes, context, weft_spec_mesh(from), text, length);
    return WEFT_OK;
}

static weft_status run_case(weft_context *context, struct notes *notes)
{
    weft_tensor *here = NULL, *there = NULL, *one = NULL;
    int32_t rank = weft_mesh_rank_at(weft_spec_mesh(from), 0);

    WF_TRY(weft_tensor_create(context, from, NULL, &here));
    WF_TRY(set_elements(here));
    if (note_status(notes, context, weft_tensor_move(here, to, NULL, NULL, &there), "move")) {
        WF_TRY(note_shards(notes, there));
        WF_TRY(move_lists(notes, here, there));
        WF_TRY(compare(notes, here, there));
    }
    if (note_status(notes, context, weft_tensor_full(here, rank, NULL, NULL, &one), "full"))
        WF_TRY(note_shards(notes, one));
    WF_TRY(draw(notes, context));
    WF_TRY(use_views(notes, here));
    weft_tensor_release(&one);
    weft_tensor_release(&there);
    weft_tensor_release(&here);
    return WEFT_OK;
}

static weft_status run_real(void *unused)
{
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(run_case(context, &real));
    return WEFT_OK;
}

static weft_status run_simulated(void)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(&options, &context));
    WF_TRY(run_case(context, &simulated));
    return WEFT_OK;
}

static bool fits(const weft_mesh *mesh)
{
    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        if (weft_mesh_rank_at(mesh, i) >= RANKS) return false;
    return true;
}

static weft_mesh *small_mesh(struct random *r)
{
    for (;;) {
        weft_mesh *mesh = random_mesh(r);

        if (fits(mesh)) return mesh;
        weft_mesh_release(&mesh);
    }
}

static const char *describe(const struct random *r)
{
    static char text[16384];

    snprintf(text, sizeof text, "WEFT_TEST_SEED=%llu", (unsigned long long)r->seed);
    snprintf(text + strlen(text), sizeof text - strlen(text), "\n%s", as_command(from));
    snprintf(text + strlen(text), sizeof text - strlen(text), "\n%s\n%s", as_command(to),
             weft_last_error());
    return text;
}

/* Where the notes of rank RANK differ; -1: nowhere. */
static int64_t find_difference(int32_t rank)
{
    const struct wf_text *a = &real.of[rank], *b = &simulated.of[rank];
    size_t at = 0;

    while (at < a->length && at < b->length && a->data[at] == b->data[at])
        at++;
    return at == a->length && at == b->length ? -1 : (int64_t)at;
}

TEST(simulated_ranks_hold_the_bits_of_real_ones)
{
    struct random r = random_begin("simulated_ranks_hold_the_bits_of_real_ones");

    for (int left = test_cases(60); left > 0; left--) {
        OWNED(weft_mesh) *mesh = small_mesh(&r),
                         *other = random_chance(&r, 3) ? small_mesh(&r) : NULL;
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);

        from = random_spec(&r, mesh, dims, shape);
        to = random_spec(&r, other != NULL ? other : mesh, dims, shape);
        seed = (uint64_t)random_in(&r, 0, 1000000);
        ck_assert_msg(weft_threads_run(RANKS, run_real, NULL) == WEFT_OK, "%s", describe(&r));
        ck_assert_msg(run_simulated() == WEFT_OK, "%s", describe(&r));
        for (int32_t i = 0; i < RANKS; i++)
            ck_assert_msg(find_difference(i) < 0, "rank %d differs at %lld (%s)\n%s", i,
                          (long long)find_difference(i), real.labels[i].data, describe(&r));
        clear(&real);
        clear(&simulated);
        weft_spec_release(&from);
        weft_spec_release(&to);
    }
}
