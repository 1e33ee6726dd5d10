/* fsdp_check.c - one rank that shards parameters on any backend: groups of several layouts and
 * dtypes are gathered and reduced with and without streams of their own, with parts kept, sums on a
 * rank and replicas; gradients are clipped.  Started by `weft run` with any number of ranks; prints
 * JSON.
 *
 * Elements are random numbers, which do not depend on the layout: a tensor is right if it has the
 * elements that are drawn in its own layout. */
#include "fsdp_clip.h"
#include "fsdp_model.h"
#include "weft/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARAMS = 7, STEPS = 3 };

static const char *const layouts[PARAMS] = {"f32[257,130]", "f32[5,300]", "bf16[1000]", "f32[64,3]",
                                            "f32[3,4]",     "f32[40,6]",  "f16[31]"};
static const char *const shards[PARAMS] = {"S(0)", "S(1)",       "S(0)", "O(0)",
                                           "R",    "B(0;24,16)", "S(0)"};

static void expect(bool claim, const char *what)
{
    if (claim) return;
    fprintf(stderr, "rank %d: %s\n", weft_rank(context), what);
    exit(1);
}

/* Fill TENSOR with the numbers of SEED, multiplied by FACTOR. */
static void draw(weft_tensor *tensor, uint64_t seed, double factor)
{
    weft_random random = {.seed = seed};

    must(weft_tensor_uniform(tensor, &random, -factor, factor, stream), "weft_tensor_uniform");
}

/* TENSOR has the numbers of SEED, up to TOLERANCE. */
static void check_drawn(weft_tensor *tensor, uint64_t seed, double tolerance, const char *what)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *want = NULL;

    expect(tensor != NULL, what);
    must(weft_tensor_create(context, weft_tensor_spec(tensor), NULL, &want), "weft_tensor_create");
    draw(want, seed, 1);
    must(weft_tensor_compare(tensor, want, NULL, stream, &info), "weft_tensor_compare");
    expect(info.equal || (!isnan(info.largest) && info.largest <= tolerance), what);
    weft_tensor_release(&want);
}

/* ---- groups ---- */

struct case_of {
    const char *name;
    bool has_replicas, one_stream;
    const char *gather_dtype, *reduce_dtype;
    double divide;
    int32_t kept_ranks; /* 0: none */
    uint32_t flags[2];  /* of the first two reductions of three */
};

static weft_mesh *axes; /* of the case */
static weft_fsdp *fsdp;
static weft_fsdp_group *group;
static weft_tensor *stored[PARAMS];

static weft_tensor *make_stored(const struct case_of *one, int index)
{
    weft_tensor *tensor = NULL;
    weft_spec *spec = NULL;
    char text[64];

    snprintf(text, sizeof text, "%s %s%s", layouts[index], one->has_replicas ? "R," : "",
             shards[index]);
    must(weft_spec_parse(axes, text, &spec), text);
    must(weft_tensor_create(context, spec, NULL, &tensor), "weft_tensor_create");
    draw(tensor, (uint64_t)index, 1);
    weft_spec_release(&spec);
    return tensor;
}

static void begin_case(const struct case_of *one)
{
    const weft_fsdp_options options = {
        .struct_size = sizeof options, .compute = stream, .one_stream = one->one_stream};
    weft_fsdp_group_options group_options = {.struct_size = sizeof group_options,
                                             .name = one->name,
                                             .shard = "dp",
                                             .replicate = one->has_replicas ? "rep" : NULL,
                                             .gather_dtype = one->gather_dtype,
                                             .reduce_dtype = one->reduce_dtype,
                                             .divide = one->divide};
    weft_fsdp_param params[PARAMS] = {{0}};
    char text[32];

    snprintf(text, sizeof text, one->has_replicas ? "rep=2,dp=%d" : "dp=%d",
             weft_size(context) / (one->has_replicas ? 2 : 1));
    must(weft_mesh_parse(text, &axes), text);
    must(weft_fsdp_create(context, axes, "dp", &options, &fsdp), "weft_fsdp_create");
    for (int i = 0; i < PARAMS; i++)
        params[i].tensor = stored[i] = make_stored(one, i);
    must(weft_fsdp_group_create(fsdp, PARAMS, params, sizeof *params, &group_options, &group),
         "weft_fsdp_group_create");
}

static void end_case(void)
{
    weft_fsdp_group_release(&group);
    weft_fsdp_release(&fsdp);
    for (int i = 0; i < PARAMS; i++)
        weft_tensor_release(&stored[i]);
    weft_mesh_release(&axes);
}

/* Blocks of many sizes are allocated, spoilt and freed in stream order: memory that was freed too
 * early is among them. */
static void spoil(void)
{
    for (uint64_t bytes = 512; bytes <= 1 << 20; bytes *= 2) {
        void *memory = NULL;

        must(weft_alloc_on(context, bytes, stream, &memory), "weft_alloc_on");
        must(weft_memory_fill(context, memory, 0xff, bytes, stream), "weft_memory_fill");
        must(weft_free_on(context, memory, stream), "weft_free_on");
    }
}

static void gather(const struct case_of *one, enum weft_fsdp_phase phase)
{
    must(weft_fsdp_unshard_begin(group, phase), "weft_fsdp_unshard_begin");
    spoil();
    must(weft_fsdp_unshard_end(group), "weft_fsdp_unshard_end");
    for (uint32_t i = 0; i < PARAMS; i++)
        check_drawn(weft_fsdp_parameter(group, i), i, one->gather_dtype != NULL ? 1e-2 : 0,
                    "a gathered parameter is wrong");
}

/* Rank GIVER contributes numbers of SEED times the number of contributions; all others zeros. */
static void reduce(const struct case_of *one, int32_t giver, uint32_t flags)
{
    double all = one->divide > 0 ? one->divide : (double)weft_mesh_size(axes);
    weft_tensor *gradients[PARAMS] = {NULL};

    for (uint32_t i = 0; i < PARAMS; i++) {
        must(weft_fsdp_gradient_create(group, i, &gradients[i]), "weft_fsdp_gradient_create");
        if (weft_rank(context) == giver) {
            weft_tensor *numbers = NULL;

            must(weft_tensor_create(context, weft_tensor_spec(weft_fsdp_parameter(group, i)), NULL,
                                    &numbers),
                 "weft_tensor_create");
            draw(numbers, 100 + i, all / STEPS);
            must(weft_memory_copy(context, weft_tensor_memory(numbers),
                                  weft_tensor_memory(gradients[i]),
                                  weft_spec_shard_bytes(weft_tensor_spec(numbers), giver), stream),
                 "weft_memory_copy");
            weft_tensor_release(&numbers);
        }
    }
    must(weft_fsdp_reduce_begin(group, gradients, flags), "weft_fsdp_reduce_begin");
    for (uint32_t i = 0; i < PARAMS; i++)
        weft_tensor_release(&gradients[i]);
    spoil();
    must(weft_fsdp_reduce_end(group), "weft_fsdp_reduce_end");
}

static void run_case(const struct case_of *one)
{
    begin_case(one);
    for (int again = 0; again < 2; again++) {
        gather(one, WEFT_FSDP_FORWARD);
        if (one->kept_ranks > 0)
            must(weft_fsdp_reshard_to(group, one->kept_ranks), "weft_fsdp_reshard_to");
        else
            must(weft_fsdp_reshard(group), "weft_fsdp_reshard");
        for (int i = 0; i < STEPS; i++) {
            gather(one, WEFT_FSDP_BACKWARD);
            reduce(one, i % weft_size(context), i < 2 ? one->flags[i] : 0);
        }
        for (uint32_t i = 0; i < PARAMS; i++)
            check_drawn(weft_fsdp_gradient(group, i), 100 + i, 2e-2, "a reduced gradient is wrong");
        must(weft_fsdp_gradients_clear(group), "weft_fsdp_gradients_clear");
    }
    end_case();
}

/* ---- a model ---- */

static void check_model(void)
{
    weft_memory_info before = {.struct_size = sizeof before}, after = before;
    struct model model;

    model_begin(&model, 16);
    for (int i = 0; i < STEPS + 2; i++) {
        model_step(&model, spoil);
        rank_wait();
        must(weft_memory_get(context, i < 2 ? &before : &after), "weft_memory_get");
    }
    expect(before.bytes == after.bytes && before.bytes_peak == after.bytes_peak,
           "steps do not repeat their memory");
    model_end(&model);
}

int main(void)
{
    const struct case_of cases[] = {
        {.name = "plain"},
        {.name = "one stream", .one_stream = true},
        {.name = "dtypes", .gather_dtype = "bf16", .reduce_dtype = "f32"},
        {.name = "range", .reduce_dtype = "f16"},
        {.name = "divide", .divide = 3},
        {.name = "sums", .flags = {WEFT_FSDP_LOCAL, 0}},
        {.name = "replicas", .has_replicas = true},
        {.name = "shards first",
         .has_replicas = true,
         .flags = {WEFT_FSDP_SHARD_ONLY, WEFT_FSDP_SHARD_ONLY}},
        {.name = "a part", .kept_ranks = 2},
    };
    int ran = 0;

    rank_begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_even = weft_size(context) % 2 == 0;

        if (!is_even && (cases[i].has_replicas || cases[i].kept_ranks > 0)) continue;
        run_case(&cases[i]);
        ran++;
    }
    check_clip();
    check_model();
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"ranks\": %d, \"groups\": %d}\n",
               weft_context_plugin(context)->name, weft_size(context), ran);
    rank_end();
    return 0;
}
