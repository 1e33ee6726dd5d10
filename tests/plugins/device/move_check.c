/* move_check.c - one rank of moves on any backend: single tensors and a batch, on two streams, in
 * place, between two meshes, into another dtype, with scratch of the caller; every element of this
 * rank's shards is right.  Started by `weft run` with 4 ranks. */
#include "../../support/move.h"
#include "redistribute/values.h"
#include "weft/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *from_mesh, *from, *to_mesh, *to;
} pairs[] = {
    {"4", "f32[6,10] S(0)", "4", "f32[6,10] S(1)"},
    {"2x2", "f32[64,48] S(0),P", "2x2", "f32[64,48] S(1),R"},
    {"4", "bf16[33] P", "4", "bf16[33] R"},
    {"2@0-1", "i32[9,5] S(0)", "2@2-3", "i32[9,5] S(1)"},
    {"3@1-3", "i64[17] S(0)", "3@1-3", "i64[17] R"},
    {"4", "i16[40,3] R", "4", "i16[40,3] S(0)"},
    {"2x2", "i32[5,6] P(avg),P", "2x2", "i32[5,6] R,R"},
    {"2x2", "f64[7,8] S(0),S(1)", "4", "f64[7,8] SS(0,2)"},
    {"4", "u8[300,200] S(0)", "4", "u8[300,200] S(0)"},
    {"4", "f32[16,10] S(0)", "4", "bf16[16,10] S(1)"},
    {"2x2", "f32[32,48] S(0),P", "2x2", "bf16[32,48] S(1),R"},
    {"4", "bf16[33] S(0)", "4", "f32[33] R"},
    {"4", "f32[14,3] R", "4", "f16[14,3] S(0)"},
    {"2@0-1", "i16[11,5] S(0)", "2@2-3", "i32[11,5] S(1)"},
};

enum { TENSORS = sizeof pairs / sizeof pairs[0] };

struct tensor {
    weft_spec *from, *to;
    struct values values;
    uint64_t bytes[2];
    void *memory[2]; /* each has room for both shards */
};

static weft_context *context;

static uint64_t shard_bytes(const weft_spec *spec)
{
    weft_shard shard;

    weft_spec_shard(spec, weft_rank(context), &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

static weft_status parse(const char *mesh_text, const char *text, weft_spec **out)
{
    weft_mesh *mesh = NULL;
    weft_status status;

    WF_TRY(weft_mesh_parse(mesh_text, &mesh));
    status = weft_spec_parse(mesh, text, out);
    weft_mesh_release(&mesh);
    return status;
}

static weft_status make(int index, struct tensor *t)
{
    WF_TRY(parse(pairs[index].from_mesh, pairs[index].from, &t->from));
    WF_TRY(parse(pairs[index].to_mesh, pairs[index].to, &t->to));
    t->values = values_between(t->from, t->to);
    t->bytes[0] = shard_bytes(t->from);
    t->bytes[1] = shard_bytes(t->to);
    for (int side = 0; side < 2; side++)
        WF_TRY(weft_alloc(context, t->bytes[0] + t->bytes[1] + 1, WEFT_MEMORY_DEVICE,
                          &t->memory[side]));
    return WEFT_OK;
}

/* Set the source, and spoil the target. */
static weft_status fill(const struct tensor *t, weft_stream *stream)
{
    char *host = calloc(1, t->bytes[0] + 1);
    weft_status status;

    if (host == NULL) return wf_fail_memory((size_t)t->bytes[0]);
    values_fill(&t->values, t->from, weft_rank(context), NULL, host);
    status = weft_memory_fill(context, t->memory[1], 0xa5, t->bytes[1], stream);
    if (status == WEFT_OK)
        status = weft_memory_copy(context, host, t->memory[0], t->bytes[0], stream);
    if (status == WEFT_OK) status = weft_context_wait(context, stream, WEFT_FOREVER);
    free(host);
    return status;
}

static weft_status check(const struct tensor *t, const char *name, const void *memory)
{
    char *host = calloc(2, t->bytes[1] + 1), *want = host + t->bytes[1] + 1;
    weft_status status;

    if (host == NULL) return wf_fail_memory((size_t)t->bytes[1]);
    values_fill(&t->values, t->to, weft_rank(context), NULL, want);
    status = weft_memory_copy(context, memory, host, t->bytes[1], NULL);
    if (status == WEFT_OK) status = weft_context_wait(context, NULL, WEFT_FOREVER);
    if (status == WEFT_OK && memcmp(host, want, t->bytes[1]) != 0)
        status = wf_fail(WEFT_ERR_MISMATCH, "%s is wrong", name);
    free(host);
    return status;
}

static weft_status move_each(const struct tensor *tensors, weft_stream *stream, bool in_place)
{
    for (int i = 0; i < TENSORS; i++) {
        const struct tensor *t = &tensors[i];
        void *target = t->memory[in_place ? 0 : 1];
        weft_work *work = NULL;

        WF_TRY(fill(t, stream));
        WF_TRY(move_one(context, t->from, t->memory[0], t->to, target, stream, &work));
        WF_TRY(weft_work_wait(work, WEFT_FOREVER));
        weft_work_release(&work);
        WF_TRY(check(t, pairs[i].from, target));
    }
    return WEFT_OK;
}

static weft_status move_together(const struct tensor *tensors, weft_stream *stream)
{
    weft_move_item items[TENSORS];

    for (int i = 0; i < TENSORS; i++) {
        const struct tensor *t = &tensors[i];

        WF_TRY(fill(t, stream));
        items[i] = (weft_move_item){pairs[i].from, t->from, t->memory[0], t->to, t->memory[i % 2]};
    }
    WF_TRY(move_items(context, TENSORS, items, stream, NULL));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    for (int i = 0; i < TENSORS; i++)
        WF_TRY(check(&tensors[i], pairs[i].from, items[i].target));
    return WEFT_OK;
}

/* Two bound plans in one piece of the caller's scratch. */
static weft_status run_in_own_scratch(const struct tensor *tensors, weft_stream *stream)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = true};
    weft_bound *bound[2] = {NULL};
    uint64_t most = 1;

    for (int pass = 0; pass < 2; pass++) { /* first the size */
        for (int i = 0; i < 2; i++) {
            weft_plan *plan = NULL;
            uint64_t bytes = 0;

            WF_TRY(weft_context_plan(context, tensors[i].from, tensors[i].to, NULL, &plan));
            WF_TRY(weft_plan_scratch(plan, weft_world(context), &options, &bytes));
            if (bytes > most) most = bytes;
            if (pass == 1) WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound[i]));
            if (pass == 1 && weft_bound_scratch(bound[i]) != bytes)
                return wf_fail(WEFT_ERR_MISMATCH, "the size of the scratch is wrong");
            weft_plan_release(&plan);
        }
        if (pass == 1) break;
        WF_TRY(weft_alloc(context, most, WEFT_MEMORY_DEVICE, &options.scratch));
        options.scratch_bytes = most;
    }
    for (int i = 0; i < 6; i++) {
        const struct tensor *t = &tensors[i % 2];

        WF_TRY(fill(t, stream));
        WF_TRY(weft_redistribute(bound[i % 2], t->memory[0], t->memory[1], stream, NULL));
        WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
        WF_TRY(check(t, pairs[i % 2].from, t->memory[1]));
    }
    WF_TRY(weft_barrier(weft_world(context), stream));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    for (int i = 0; i < 2; i++)
        weft_bound_release(&bound[i]);
    return weft_free(context, options.scratch);
}

/* The caller has PIECES of memory: what weft keeps for its moves is not counted as the caller's. */
static weft_status check_pieces(uint64_t pieces)
{
    weft_memory_info info = {.struct_size = sizeof info};

    WF_TRY(weft_memory_get(context, &info));
    if (info.pieces == pieces) return WEFT_OK;
    return wf_fail(WEFT_ERR_MISMATCH, "%llu pieces of memory are not freed; the caller has %llu",
                   (unsigned long long)info.pieces, (unsigned long long)pieces);
}

static weft_status run(void)
{
    static struct tensor tensors[TENSORS];
    weft_move_info info = {.struct_size = sizeof info};
    weft_stream *stream = NULL;

    WF_TRY(weft_stream_create(context, &stream));
    for (int i = 0; i < TENSORS; i++)
        WF_TRY(make(i, &tensors[i]));
    for (int again = 0; again < 2; again++) {
        WF_TRY(move_each(tensors, NULL, false));
        WF_TRY(move_each(tensors, stream, true));
        WF_TRY(move_together(tensors, again == 0 ? stream : NULL));
        WF_TRY(weft_move_get(context, &info));
        if (info.bound_total > (uint64_t)(again + 1) * (TENSORS + 1))
            return wf_fail(WEFT_ERR_MISMATCH, "moves bind more than once");
        WF_TRY(check_pieces((uint64_t)2 * TENSORS));
        WF_TRY(weft_move_clear(context));
    }
    WF_TRY(run_in_own_scratch(tensors, stream));
    if (weft_rank(context) == 0)
        printf("%d tensors are right on %d ranks of %s\n", TENSORS, weft_size(context),
               weft_context_plugin(context)->name);
    weft_stream_release(&stream);
    for (int i = 0; i < TENSORS; i++) {
        for (int side = 0; side < 2; side++)
            WF_TRY(weft_free(context, tensors[i].memory[side]));
        weft_spec_release(&tensors[i].from);
        weft_spec_release(&tensors[i].to);
    }
    return WEFT_OK;
}

int main(void)
{
    weft_init_options options = {.struct_size = sizeof options, .plugin_path = PLUGINS};

    if (weft_init(&options, &context) != WEFT_OK || run() != WEFT_OK) {
        fprintf(stderr, "move_check: rank %d: %s\n", weft_rank(context), weft_last_error());
        return 1;
    }
    weft_context_release(&context);
    return 0;
}
