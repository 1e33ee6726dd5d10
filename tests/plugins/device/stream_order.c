/* stream_order.c - redistributions only post work to a stream: while the stream is blocked, the
 * host can post any number of them, and after it is unblocked every result is right.
 *
 *     weft run -n 2 stream_order [REPETITIONS]
 *
 * Does not need the Check library, so that it runs on a machine with a GPU and little else. */
#include "comm/comm.h"
#include "redistribute/values.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const transitions[][2] = {
    {"f32[96,80] S(0)", "f32[96,80] R"},    {"f32[96,80] S(0)", "f32[96,80] S(1)"},
    {"f32[95,81] S(1)", "f32[95,81] S(0)"}, {"f32[96,80] P", "f32[96,80] R"},
    {"f32[96,80] P", "f32[96,80] S(0)"},    {"f32[96,80] P", "f32[96,80] S(1)"},
    {"i64[7,5,3] S(2)", "i64[7,5,3] R"},    {"f32[96,80] R", "f32[96,80] S(1)"},
};

/* One transition on one rank. */
struct trial {
    weft_context *context;
    weft_stream *stream;
    weft_spec *from, *to;
    weft_plan *plan;
    weft_bound *bound;
    uint64_t source_bytes, target_bytes;
    void *source, *target;     /* of the device */
    void *expected, *obtained; /* of the host */
};

static atomic_bool held;

static void hold(void *unused)
{
    (void)unused;
    while (atomic_load(&held))
        sched_yield();
}

static uint64_t shard_bytes(const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

static weft_status prepare(struct trial *t, const char *const *transition)
{
    weft_mesh *mesh = NULL;
    struct values values;
    int32_t rank = weft_rank(t->context);
    char ranks[16];
    void *filled;

    snprintf(ranks, sizeof ranks, "%d", weft_size(t->context));
    WF_TRY(weft_mesh_parse(ranks, &mesh));
    WF_TRY(weft_spec_parse(mesh, transition[0], &t->from));
    WF_TRY(weft_spec_parse(mesh, transition[1], &t->to));
    weft_mesh_release(&mesh);
    WF_TRY(weft_plan_create(t->from, t->to, NULL, &t->plan));
    WF_TRY(weft_plan_bind(t->plan, weft_world(t->context), NULL, &t->bound));
    t->source_bytes = shard_bytes(t->from, rank);
    t->target_bytes = shard_bytes(t->to, rank);
    WF_TRY(weft_alloc(t->context, t->source_bytes, WEFT_MEMORY_DEVICE, &t->source));
    WF_TRY(weft_alloc(t->context, t->target_bytes, WEFT_MEMORY_DEVICE, &t->target));
    filled = malloc(t->source_bytes + 1);
    t->expected = malloc(t->target_bytes + 1);
    t->obtained = malloc(t->target_bytes + 1);
    if (filled == NULL || t->expected == NULL || t->obtained == NULL)
        return wf_fail_memory(t->target_bytes);
    values = values_between(t->from, t->to);
    values_fill(&values, t->from, rank, NULL, filled);
    values_fill(&values, t->to, rank, NULL, t->expected);
    WF_TRY(weft_memory_copy(t->context, filled, t->source, t->source_bytes, t->stream));
    WF_TRY(weft_context_wait(t->context, t->stream, WEFT_FOREVER));
    free(filled);
    return WEFT_OK;
}

static weft_status clear(struct trial *t)
{
    free(t->expected);
    free(t->obtained);
    WF_TRY(weft_free(t->context, t->source));
    WF_TRY(weft_free(t->context, t->target));
    weft_bound_release(&t->bound);
    weft_plan_release(&t->plan);
    weft_spec_release(&t->from);
    weft_spec_release(&t->to);
    return WEFT_OK;
}

/* The first use of the library may connect to peers and load kernels. */
static weft_status run_freely(struct trial *t)
{
    WF_TRY(weft_redistribute(t->bound, t->source, t->target, t->stream, NULL));
    return weft_context_wait(t->context, t->stream, WEFT_FOREVER);
}

static weft_status run_held(struct trial *t, int repetitions)
{
    const weft_plugin *plugin = weft_context_plugin(t->context);
    weft_work *work = NULL;
    weft_status status = WEFT_OK;

    atomic_store(&held, true);
    WF_TRY(plugin->device->stream_call(t->context->device, t->stream, hold, NULL));
    for (int i = 0; i < repetitions && status == WEFT_OK; i++) {
        status = weft_memory_fill(t->context, t->target, 0xa5, t->target_bytes, t->stream);
        if (status == WEFT_OK)
            status = weft_redistribute(t->bound, t->source, t->target, t->stream, NULL);
    }
    if (status == WEFT_OK) status = weft_work_record(t->context, t->stream, &work);
    if (status == WEFT_OK && weft_work_test(work) != WEFT_IN_PROGRESS)
        status = wf_fail(WEFT_ERR_INTERNAL, "the work is over while its stream is held up");
    atomic_store(&held, false);
    WF_TRY(status);
    status = weft_work_wait(work, WEFT_FOREVER);
    weft_work_release(&work);
    return status;
}

static weft_status compare(struct trial *t)
{
    WF_TRY(weft_memory_copy(t->context, t->target, t->obtained, t->target_bytes, t->stream));
    WF_TRY(weft_context_wait(t->context, t->stream, WEFT_FOREVER));
    if (memcmp(t->expected, t->obtained, t->target_bytes) != 0)
        return wf_fail(WEFT_ERR_MISMATCH, "rank %d got other values", weft_rank(t->context));
    return WEFT_OK;
}

static weft_status run_all(weft_context *context, int repetitions)
{
    struct trial t = {.context = context};

    WF_TRY(weft_stream_create(context, &t.stream));
    for (size_t i = 0; i < WF_COUNT(transitions); i++) {
        weft_status status = prepare(&t, transitions[i]);
        if (status == WEFT_OK) status = run_freely(&t);
        if (status == WEFT_OK) status = run_held(&t, repetitions);
        if (status == WEFT_OK) status = compare(&t);
        if (status == WEFT_OK) status = clear(&t);
        if (status != WEFT_OK)
            return wf_fail_context(status, "%s to %s", transitions[i][0], transitions[i][1]);
    }
    weft_stream_release(&t.stream);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    weft_context *context = NULL;
    weft_status status = weft_init(NULL, &context);

    if (status == WEFT_OK) status = run_all(context, argc > 1 ? atoi(argv[1]) : 20);
    if (status != WEFT_OK) fprintf(stderr, "stream_order: %s\n", weft_last_error());
    if (status == WEFT_OK && weft_rank(context) == 0)
        printf("%zu transitions keep to their stream\n", WF_COUNT(transitions));
    if (status == WEFT_OK) weft_context_release(&context);
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
