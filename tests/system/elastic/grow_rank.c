/* grow_rank.c - a rank of an elastic job that lost ranks are replaced in:
 * `grow_rank STEPS [RANK:STEP:EVENT]...`.
 *
 * Four ranks train: parameters are replicas over dp and shards over tp.  At an event, the rank with
 * that number at the start is killed or stops (EVENT: kill, stop).  A process that comes later has
 * no events; it gets its shard from a rank that has it.  While there are fewer than four ranks,
 * they wait for newcomers.  Every rank prints the loss of each step: `loss STEP BITS`. */
#include "weft/weft.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS = 4, COUNT = 4096, EVENTS = 8 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) return try_status;                                              \
    } while (0)

struct event {
    int rank, step;
    char what[8];
};

struct rank {
    weft_context *ctx;
    int first, steps, done, reduced; /* REDUCED: the step whose gradient is complete */
    struct event events[EVENTS];
    int event_count;
    int32_t holders[RANKS]; /* by coordinate: the rank that has its shard now, or -1 */
    weft_mesh *mesh;
    weft_spec *spec;
    weft_tensor *tensor;
    weft_comm *dp; /* of this generation, like the next */
    float gradient[COUNT];
};

static bool is_whole(const struct rank *rank)
{
    return weft_size(rank->ctx) == RANKS;
}

static int64_t local_count(const struct rank *rank)
{
    return weft_tensor_shard(rank->tensor)->shape[0];
}

/* ---- a step ---- */

static void meet_events(const struct rank *rank, int step)
{
    for (int i = 0; i < rank->event_count; i++) {
        const struct event *event = &rank->events[i];

        if (event->rank != rank->first || event->step != step) continue;
        (void)raise(strcmp(event->what, "stop") == 0 ? SIGSTOP : SIGKILL);
    }
}

/* It depends on the coordinate and on the parameters, so that a wrong element shows. */
static void compute(struct rank *rank, int step)
{
    const float *w = weft_tensor_memory(rank->tensor);
    int replica = weft_rank(rank->ctx) / 2;

    for (int64_t i = 0; i < local_count(rank); i++)
        rank->gradient[i] =
            w[i] * 0.37F + (float)((i * 31 + step * 17 + replica * 7) % 101) * 0.013F;
}

static void update(struct rank *rank, int step)
{
    float *w = weft_tensor_memory(rank->tensor);

    for (int64_t i = 0; i < local_count(rank); i++)
        w[i] -= 0.01F * rank->gradient[i];
    rank->done = step;
}

static weft_status train_step(struct rank *rank, int step)
{
    const float *w = weft_tensor_memory(rank->tensor);
    float loss = 0;
    uint32_t bits;

    compute(rank, step);
    TRY(weft_all_reduce(rank->dp, rank->gradient, rank->gradient, (uint64_t)local_count(rank),
                        WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    TRY(weft_context_wait(rank->ctx, NULL, WEFT_FOREVER));
    rank->reduced = step;
    for (int64_t i = 0; i < local_count(rank); i++)
        loss += w[i] * w[i];
    TRY(weft_all_reduce(weft_world(rank->ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM,
                        NULL));
    TRY(weft_context_wait(rank->ctx, NULL, WEFT_FOREVER));
    update(rank, step);
    memcpy(&bits, &loss, sizeof bits);
    printf("loss %d %08" PRIx32 "\n", step, bits);
    fflush(stdout);
    return WEFT_OK;
}

/* ---- generations ---- */

/* The survivors know the holders; a newcomer learns them. */
static weft_status share_holders(struct rank *rank)
{
    TRY(weft_all_reduce(weft_world(rank->ctx), rank->holders, rank->holders, RANKS, WEFT_DTYPE_I32,
                        WEFT_REDUCE_MAX, NULL));
    return weft_context_wait(rank->ctx, NULL, WEFT_FOREVER);
}

static weft_status make_tensor(struct rank *rank, weft_tensor **out)
{
    if (rank->mesh == NULL) TRY(weft_mesh_parse("dp=2,tp=2", &rank->mesh));
    if (rank->spec == NULL) TRY(weft_spec_parse(rank->mesh, "f32[4096] R,S(0)", &rank->spec));
    return weft_tensor_create(rank->ctx, rank->spec, NULL, out);
}

/* The tensor of before, or nothing, becomes that of this generation. */
static weft_status restore(struct rank *rank)
{
    weft_plan_options options = {
        .struct_size = sizeof options, .holder_count = RANKS, .holders = rank->holders};
    weft_tensor *next = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;
    void *memory;

    TRY(share_holders(rank));
    TRY(make_tensor(rank, &next));
    memory = weft_tensor_memory(next);
    TRY(weft_plan_create(rank->spec, rank->spec, &options, &plan));
    TRY(weft_plan_bind(plan, weft_world(rank->ctx), NULL, &bound));
    TRY(weft_redistribute(bound, rank->tensor != NULL ? weft_tensor_memory(rank->tensor) : memory,
                          memory, NULL, NULL));
    TRY(weft_context_wait(rank->ctx, NULL, WEFT_FOREVER));
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_tensor_release(&rank->tensor);
    rank->tensor = next;
    for (int32_t r = 0; r < RANKS; r++)
        rank->holders[r] = r;
    return WEFT_OK;
}

/* A rank that is behind has the gradient of the step that another one has seen complete. */
static weft_status follow(struct rank *rank, const weft_next_info *now)
{
    int32_t holders[RANKS];

    for (int32_t c = 0; c < RANKS; c++) {
        holders[c] = -1;
        for (size_t r = 0; r < now->old_count; r++)
            if (rank->holders[c] >= 0 && now->old_ranks[r] == rank->holders[c])
                holders[c] = (int32_t)r;
    }
    memcpy(rank->holders, holders, sizeof holders);
    if (now->step > (uint64_t)rank->done) {
        if (rank->reduced != rank->done + 1 || now->step != (uint64_t)rank->reduced)
            return weft_fail(WEFT_ERR_INTERNAL, "step %d is not complete here", rank->reduced);
        update(rank, rank->reduced);
    }
    weft_comm_release(&rank->dp);
    return WEFT_OK;
}

static weft_status grow(struct rank *rank)
{
    weft_next_options options = {.struct_size = sizeof options, .step = (uint64_t)rank->done};
    weft_next_info now = {.struct_size = sizeof now};
    uint64_t before = weft_context_generation(rank->ctx);

    TRY(weft_context_grow(rank->ctx, &options, &now));
    return now.generation != before ? follow(rank, &now) : WEFT_OK;
}

/* Wait until there are four ranks; then train. */
static weft_status train(struct rank *rank)
{
    struct timespec pause = {.tv_nsec = 20000000};

    while (!is_whole(rank)) {
        nanosleep(&pause, NULL);
        TRY(grow(rank));
    }
    if (rank->dp == NULL) {
        TRY(restore(rank));
        TRY(weft_comm_split(weft_world(rank->ctx), weft_rank(rank->ctx) % 2, 0, NULL, &rank->dp));
    }
    while (rank->done < rank->steps) {
        meet_events(rank, rank->done + 1);
        if (weft_context_wants_next(rank->ctx)) return WEFT_ERR_ABORTED;
        TRY(train_step(rank, rank->done + 1));
        if (rank->done % 4 == 0) TRY(grow(rank)); /* nothing changes in a whole job */
    }
    return WEFT_OK;
}

static weft_status next(struct rank *rank)
{
    weft_next_options options = {.struct_size = sizeof options, .step = (uint64_t)rank->done};
    weft_next_info now = {.struct_size = sizeof now};

    TRY(weft_context_next(rank->ctx, &options, &now));
    return follow(rank, &now);
}

static weft_status begin(struct rank *rank)
{
    weft_next_info now = {.struct_size = sizeof now};

    TRY(weft_init(NULL, &rank->ctx));
    TRY(weft_context_origin_get(rank->ctx, &now));
    rank->first = weft_rank(rank->ctx);
    for (int32_t r = 0; r < RANKS; r++)
        rank->holders[r] = now.generation == 1 ? r : -1;
    if (now.generation == 1) {
        TRY(make_tensor(rank, &rank->tensor));
        for (int64_t i = 0; i < local_count(rank); i++)
            ((float *)weft_tensor_memory(rank->tensor))[i] = (float)(i % 97) * 0.021F;
    } else {
        rank->event_count = 0;
        rank->done = (int)now.step;
        printf("came as rank %d of %d, in step %d\n", now.rank, now.size, rank->done);
        for (size_t r = 0; r < now.old_count; r++) /* the survivors' holders are by old numbers */
            if (now.old_ranks[r] < 0 && (int32_t)r == now.rank) return WEFT_OK;
        return weft_fail(WEFT_ERR_INTERNAL, "this rank is not new in its first generation");
    }
    return WEFT_OK;
}

static weft_status run(struct rank *rank)
{
    weft_status status;

    TRY(begin(rank));
    printf("begun\n");
    fflush(stdout);
    status = train(rank);
    while (status == WEFT_ERR_PEER || status == WEFT_ERR_ABORTED) {
        status = next(rank);
        if (status != WEFT_OK) return status;
        status = train(rank);
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct rank rank;
    weft_status status;

    rank.steps = argc > 1 ? atoi(argv[1]) : 8;
    for (int i = 2; i < argc && rank.event_count < EVENTS; i++) {
        struct event *event = &rank.events[rank.event_count];

        if (sscanf(argv[i], "%d:%d:%7s", &event->rank, &event->step, event->what) == 3)
            rank.event_count++;
    }
    status = run(&rank);
    if (status != WEFT_OK) {
        printf("ends: %s: %s\n", weft_status_name(status), weft_last_error());
        fflush(stdout);
        _Exit(EXIT_FAILURE);
    }
    printf("rank %d of %d after %d steps\n", weft_rank(rank.ctx), weft_size(rank.ctx), rank.done);
    weft_comm_release(&rank.dp);
    weft_tensor_release(&rank.tensor);
    weft_spec_release(&rank.spec);
    weft_mesh_release(&rank.mesh);
    weft_context_release(&rank.ctx);
    return EXIT_SUCCESS;
}
