/* weights.c - the weights of a model are sent from training ranks to serving ranks.
 *
 *     weft run -n 6 ./weights [COSTS]
 *
 * Ranks 0 to 3 train, as two replicas of two.  Ranks 4 and 5 serve, with different shards.  All
 * tensors are in one plan, which is bound once and can run after every training step.  Its scratch
 * is memory of the program.  COSTS is a cost table, by name or file; weft_init compares its digest,
 * since ranks that plan with other costs may plan otherwise. */
#include <weft/weft.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { LAYERS = 8, KINDS = 3, TENSORS = KINDS * LAYERS };

/* The layouts of each layer: in training, and in serving. */
static const char *const layouts[KINDS][2] = {
    {"i32[512,512] R,S(0)", "i32[512,512] S(1)"},   /* attention */
    {"i32[2048,512] R,S(1)", "i32[2048,512] S(0)"}, /* feed forward */
    {"i32[512] R,R", "i32[512] R"},                 /* norm */
};

static void describe(weft_spec *trained[TENSORS], weft_spec *served[TENSORS])
{
    weft_mesh *training, *serving;

    MUST(weft_mesh_parse("dp=2,tp=2@0-3", &training));
    MUST(weft_mesh_parse("tp=2@4,5", &serving));
    for (int i = 0; i < TENSORS; i++) {
        MUST(weft_spec_parse(training, layouts[i % KINDS][0], &trained[i]));
        MUST(weft_spec_parse(serving, layouts[i % KINDS][1], &served[i]));
    }
    weft_mesh_release(&training);
    weft_mesh_release(&serving);
}

/* This rank's shard: its address in device memory (NULL if it has none), and the expected values on
 * the host, which identify tensor and position. */
struct shard {
    void *device;
    int32_t *values;
    int64_t elements;
};

static struct shard make_shard(weft_context *ctx, const weft_spec *spec, int tensor)
{
    struct shard made = {0};
    weft_shard shard;

    weft_spec_shard(spec, weft_rank(ctx), &shard);
    if (!shard.member) return made;
    made.elements = shard.elements;
    made.values = malloc((size_t)shard.elements * sizeof *made.values);
    if (made.values == NULL) exit(EXIT_FAILURE);
    for (int64_t i = 0; i < shard.elements; i++) {
        int64_t columns = shard.dims == 2 ? shard.shape[1] : 1;
        int64_t row = shard.offset[0] + i / columns;
        int64_t column = shard.dims == 2 ? shard.offset[1] + i % columns : 0;

        made.values[i] = (int32_t)((tensor * 4096 + row) * 512 + column);
    }
    MUST(weft_alloc(ctx, (uint64_t)shard.elements * 4, WEFT_MEMORY_DEVICE, &made.device));
    return made;
}

static void drop_shard(weft_context *ctx, struct shard *shard)
{
    MUST(weft_free(ctx, shard->device));
    free(shard->values);
}

static int64_t count_wrong(weft_context *ctx, const struct shard *shard)
{
    int32_t *have = malloc((size_t)shard->elements * sizeof *have + 1);
    int64_t wrong = 0;

    if (have == NULL) exit(EXIT_FAILURE);
    MUST(weft_memory_copy(ctx, shard->device, have, (uint64_t)shard->elements * 4, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    for (int64_t i = 0; i < shard->elements; i++)
        wrong += have[i] != shard->values[i];
    free(have);
    return wrong;
}

/* How many tensors of PLAN share one exchange. */
static int count_together(const weft_plan *plan)
{
    int together = 0;

    for (size_t i = 0; i < TENSORS; i++) {
        weft_plan_tensor_info info = {.struct_size = sizeof info};

        MUST(weft_plan_tensor_get(plan, i, &info));
        together += info.alone == NULL;
    }
    return together;
}

/* Print what travels when PLAN runs, and the step in which a rank sends most: where links are
 * narrow, it takes most of the time. */
static void tell_bytes(const weft_plan *plan)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint64_t received, total, sent, most = 0;
    const char *name = "no step";

    MUST(weft_plan_measure(plan, &received, &total));
    printf("%llu bytes travel, at most %llu to one rank\n", (unsigned long long)total,
           (unsigned long long)received);
    for (size_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        MUST(weft_plan_measure_step(plan, i, &sent, &received));
        if (sent <= most) continue;
        most = sent;
        name = weft_step_name(step.kind);
    }
    printf("a rank sends at most %llu of them in one step, of kind %s\n", (unsigned long long)most,
           name);
}

int main(int argc, char **argv)
{
    weft_init_options init = {.struct_size = sizeof init};
    weft_cost_table *costs = NULL;
    uint64_t digest;
    weft_context *ctx;
    weft_spec *trained[TENSORS], *served[TENSORS];
    weft_plan_options options = {.struct_size = sizeof options};
    weft_bind_options arena = {.struct_size = sizeof arena};
    weft_plan *plan;
    weft_bound *bound;
    struct shard sources[TENSORS], targets[TENSORS];
    void *from[TENSORS], *to[TENSORS];
    int64_t wrong = 0;

    if (argc > 1) {
        MUST(weft_cost_table_open(argv[1], &costs));
        digest = weft_cost_table_digest(costs);
        init.digest = &digest;
        init.digest_bytes = sizeof digest;
    }
    MUST(weft_init(&init, &ctx));
    describe(trained, served);
    options.costs = costs != NULL ? costs : weft_context_costs(ctx);
    MUST(weft_plan_create_batch(TENSORS, (const weft_spec *const *)trained,
                                (const weft_spec *const *)served, &options, &plan));
    if (weft_rank(ctx) == 0) tell_bytes(plan);
    MUST(weft_plan_scratch(plan, weft_world(ctx), NULL, &arena.scratch_bytes));
    MUST(weft_alloc(ctx, arena.scratch_bytes, WEFT_MEMORY_DEVICE, &arena.scratch));
    MUST(weft_plan_bind(plan, weft_world(ctx), &arena, &bound));
    for (int i = 0; i < TENSORS; i++) {
        sources[i] = make_shard(ctx, trained[i], i);
        targets[i] = make_shard(ctx, served[i], i);
        from[i] = sources[i].device;
        to[i] = targets[i].device;
        MUST(weft_memory_copy(ctx, sources[i].values, from[i], (uint64_t)sources[i].elements * 4,
                              NULL));
    }

    MUST(weft_redistribute_batch(bound, (const void *const *)from, to, NULL, NULL));
    for (int i = 0; i < TENSORS; i++)
        wrong += count_wrong(ctx, &targets[i]);
    printf("rank %d: %d of %d tensors travel together, %lld elements wrong\n", weft_rank(ctx),
           count_together(plan), TENSORS, (long long)wrong);

    for (int i = 0; i < TENSORS; i++) {
        drop_shard(ctx, &sources[i]);
        drop_shard(ctx, &targets[i]);
        weft_spec_release(&trained[i]);
        weft_spec_release(&served[i]);
    }
    weft_bound_release(&bound);
    MUST(weft_free(ctx, arena.scratch));
    weft_plan_release(&plan);
    weft_cost_table_release(&costs);
    weft_context_release(&ctx);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
