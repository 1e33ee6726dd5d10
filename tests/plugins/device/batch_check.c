/* batch_check.c - one rank of a batch of tensors on any backend: every element of this rank's
 * shards is right, for fused and for separate tensors.  Started by `weft run`. */
#include "redistribute/values.h"
#include "weft/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const pairs[][2] = {
    {"f32[6,10] S(0)", "f32[6,10] S(1)"},
    {"f64[7] P", "f64[7] S(0)"},
    {"i8[33] S(0)", "i8[33] R"},
    {"bf16[4,9,5] S(2)", "bf16[4,9,5] S(0)"},
    {"c128[5,3] S(0)", "c128[5,3] R"},
    {"f32[12,12] P", "f32[12,12] R"},
    {"i32[16] P(max)", "i32[16] S(0)"},
    {"f32[300,200] S(0)", "f32[300,200] S(1)"},
    {"u8[9] R", "u8[9] S(0)"},
    {"f32[2,3] SS(0,2)", "f32[2,3] R"},
};

enum { TENSORS = sizeof pairs / sizeof pairs[0] };

struct tensor {
    weft_spec *from, *to;
    struct values values;
    uint64_t bytes[2];
    void *memory[2];
};

static uint64_t shard_bytes(const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

static weft_status make(weft_context *context, const weft_mesh *mesh, int index, struct tensor *t)
{
    int32_t rank = weft_rank(context);
    void *host;
    weft_status status;

    WF_TRY(weft_spec_parse(mesh, pairs[index][0], &t->from));
    WF_TRY(weft_spec_parse(mesh, pairs[index][1], &t->to));
    t->values = values_between(t->from, t->to);
    t->bytes[0] = shard_bytes(t->from, rank);
    t->bytes[1] = shard_bytes(t->to, rank);
    for (int side = 0; side < 2; side++)
        WF_TRY(weft_alloc(context, t->bytes[side] + 1, WEFT_MEMORY_DEVICE, &t->memory[side]));
    host = calloc(1, t->bytes[0] + 1);
    if (host == NULL) return wf_fail_memory((size_t)t->bytes[0]);
    values_fill(&t->values, t->from, rank, NULL, host);
    status = weft_memory_copy(context, host, t->memory[0], t->bytes[0], NULL);
    if (status == WEFT_OK) status = weft_context_wait(context, NULL, WEFT_FOREVER);
    free(host);
    return status;
}

static weft_status compare(const struct tensor *t, int32_t rank, int index, const char *have)
{
    size_t element = weft_dtype_bytes(weft_spec_dtype(t->to));
    _Alignas(16) char want[16];
    weft_segment segment;

    for (int64_t at = 0; weft_spec_segment(t->to, rank, NULL, at, &segment); at += segment.length)
        for (int64_t i = 0; i < segment.length; i++) {
            wf_number_store(t->values.dtype, values_at(&t->values, segment.global + i), want);
            if (memcmp(want, have + (size_t)(segment.local + i) * element, element) != 0)
                return wf_fail(WEFT_ERR_MISMATCH, "rank %d: tensor %d, %s -> %s: element %lld",
                               rank, index, pairs[index][0], pairs[index][1],
                               (long long)(segment.global + i));
        }
    return WEFT_OK;
}

static weft_status check(weft_context *context, const struct tensor *t, int index)
{
    char *host = calloc(1, t->bytes[1] + 1);
    weft_status status;

    if (host == NULL) return wf_fail_memory((size_t)t->bytes[1]);
    status = weft_memory_copy(context, t->memory[1], host, t->bytes[1], NULL);
    if (status == WEFT_OK) status = weft_context_wait(context, NULL, WEFT_FOREVER);
    if (status == WEFT_OK) status = compare(t, weft_rank(context), index, host);
    free(host);
    return status;
}

static weft_status run(weft_context *context)
{
    static struct tensor tensors[TENSORS];
    const weft_spec *from[TENSORS], *to[TENSORS];
    const void *sources[TENSORS];
    void *targets[TENSORS];
    int32_t size = weft_size(context);
    weft_bound *bound = NULL;
    weft_mesh *mesh = NULL;
    weft_plan *plan = NULL;
    weft_plan_info info = {.struct_size = sizeof info};

    WF_TRY(weft_mesh_create(1, &size, NULL, &mesh));
    for (int i = 0; i < TENSORS; i++) {
        WF_TRY(make(context, mesh, i, &tensors[i]));
        from[i] = tensors[i].from;
        to[i] = tensors[i].to;
        sources[i] = tensors[i].memory[0];
        targets[i] = tensors[i].memory[1];
    }
    WF_TRY(weft_plan_create_batch(TENSORS, from, to, NULL, &plan));
    WF_TRY(weft_plan_get(plan, &info));
    WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &bound));
    for (int again = 0; again < 3; again++)
        WF_TRY(weft_redistribute_batch(bound, sources, targets, NULL, NULL));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    for (int i = 0; i < TENSORS; i++)
        WF_TRY(check(context, &tensors[i], i));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    if (weft_rank(context) == 0)
        printf("%d tensors are right on %d ranks of %s, %zu of them together\n", TENSORS, size,
               weft_context_plugin(context)->name, info.together);
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    for (int i = 0; i < TENSORS; i++) {
        for (int side = 0; side < 2; side++)
            WF_TRY(weft_free(context, tensors[i].memory[side]));
        weft_spec_release(&tensors[i].from);
        weft_spec_release(&tensors[i].to);
    }
    weft_mesh_release(&mesh);
    return WEFT_OK;
}

int main(void)
{
    weft_init_options options = {.struct_size = sizeof options, .plugin_path = PLUGINS};
    weft_context *context = NULL;

    if (weft_init(&options, &context) != WEFT_OK || run(context) != WEFT_OK) {
        fprintf(stderr, "batch_check: %s\n", weft_last_error());
        return 1;
    }
    weft_context_release(&context);
    return 0;
}
