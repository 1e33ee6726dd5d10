/* The simulator and real ranks of gloo-cpu give the same bits: every dtype, every reduction, every
 * planner, casts, 1 to 5 ranks, with zeros of both signs, subnormals, the largest values,
 * infinities and NaN.  A NaN equals any NaN; test_redistribute_cast.c compares those of casts. */
#include "base/number.h"
#include "system/redistribute/pairs.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <math.h>

enum { MAX_RANKS = 5 };

/* ---- inputs ---- */

static uint64_t draw(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t bits = wf_hash_mix(wf_hash_mix(seed, a), b);

    return bits ^ bits >> 31;
}

/* A float of DTYPE, or one part of a complex number: special, near 1, or of any bits. */
static void draw_real(uint64_t bits, uint32_t dtype, char *out)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, (double)NAN, 1, -1, 3};
    size_t bytes = wf_dtype_bytes(dtype);
    double value = special[bits >> 8 & 7];
    uint64_t raw = bits >> 16 | bits << 48;

    switch (bits & 7) {
    case 0: /* infinities, also in f8e5m2 */
        wf_number_store_reduced(dtype, WEFT_REDUCE_MAX, &(struct wf_number){.re = value}, 1, 1,
                                out);
        return;
    case 1: /* the largest finite ones */
        wf_number_store_reduced(dtype, WEFT_REDUCE_MAX, &(struct wf_number){.re = INFINITY}, 1, 1,
                                out);
        memcpy(&raw, out, bytes);
        if (dtype != WEFT_DTYPE_F8E4M3) raw -= 1 + (bits >> 8 & 1);
        raw |= (bits >> 9 & 1) << (8 * bytes - 1);
        memcpy(out, &raw, bytes);
        return;
    case 2: /* subnormals and the smallest normal ones */
        raw = (bits >> 8 & 0xf) | (bits >> 12 & 1) << (8 * bytes - 1);
        memcpy(out, &raw, bytes);
        return;
    case 3:
        memcpy(out, &raw, bytes);
        return;
    default:
        value = ldexp((double)(int32_t)(bits >> 32), -28 + (int)(bits >> 8 & 3));
        wf_number_store(dtype, (struct wf_number){.re = value}, out);
    }
}

static void draw_element(uint64_t bits, uint32_t dtype, char *out)
{
    if (dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128) {
        uint32_t part = dtype == WEFT_DTYPE_C64 ? WEFT_DTYPE_F32 : WEFT_DTYPE_F64;
        draw_real(bits, part, out);
        draw_real(draw(bits, 1, 2), part, out + wf_dtype_bytes(part));
    } else if (dtype >= WEFT_DTYPE_F16) {
        draw_real(bits, dtype, out);
    } else {
        bits = dtype == WEFT_DTYPE_BOOL ? bits & 1 : bits;
        memcpy(out, &bits, wf_dtype_bytes(dtype));
    }
}

static int64_t elements_of(const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return shard.elements;
}

/* Data that depends on the rank, for contributions and replicas alike. */
static void fill(uint64_t seed, const weft_spec *spec, int32_t rank, char *shard)
{
    uint32_t dtype = weft_spec_dtype(spec);
    int64_t count = elements_of(spec, rank);

    for (int64_t i = 0; i < count; i++)
        draw_element(draw(seed, (uint64_t)rank, (uint64_t)i), dtype,
                     shard + (size_t)i * wf_dtype_bytes(dtype));
}

/* ---- one case on this rank ---- */

static bool same(uint32_t dtype, const char *a, const char *b)
{
    struct wf_number x, y;

    if (memcmp(a, b, wf_dtype_bytes(dtype)) == 0) return true;
    if (dtype < WEFT_DTYPE_F16) return false;
    x = wf_number_load(dtype, a);
    y = wf_number_load(dtype, b);
    return (isnan(x.re) ? isnan(y.re) : x.re == y.re && signbit(x.re) == signbit(y.re)) &&
           (isnan(x.im) ? isnan(y.im) : x.im == y.im && signbit(x.im) == signbit(y.im));
}

static weft_status compare(const weft_spec *spec, int32_t rank, const char *have, const char *want)
{
    uint32_t dtype = weft_spec_dtype(spec);
    size_t bytes = wf_dtype_bytes(dtype);
    int64_t count = elements_of(spec, rank);
    char texts[2][96];

    for (int64_t i = 0; i < count; i++) {
        const char *a = have + (size_t)i * bytes, *b = want + (size_t)i * bytes;
        if (same(dtype, a, b)) continue;
        wf_number_print(dtype, a, texts[0], sizeof texts[0]);
        wf_number_print(dtype, b, texts[1], sizeof texts[1]);
        return wf_fail(WEFT_ERR_MISMATCH, "rank %d, element %lld of %s: %s, simulated %s", rank,
                       (long long)i, wf_dtype_name(dtype), texts[0], texts[1]);
    }
    return WEFT_OK;
}

static int32_t place_of(const weft_spec *spec, int32_t rank)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t place = 0;

    while (place < weft_mesh_size(mesh) && weft_mesh_rank_at(mesh, place) != rank)
        place++;
    return place < weft_mesh_size(mesh) ? place : -1;
}

struct run {
    weft_context *context;
    int32_t rank;
    struct shards sources, wanted;
};

static weft_status run_bound(const struct run *run, const struct pair *pair, const weft_plan *plan,
                             bool packed)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed};
    int32_t from = place_of(pair->from, run->rank), to = place_of(pair->to, run->rank);
    size_t bytes = to < 0 ? 0
                          : (size_t)elements_of(pair->to, run->rank) *
                                wf_dtype_bytes(weft_spec_dtype(pair->to));
    weft_bound *bound = NULL;
    char *target = calloc(1, bytes + 16);
    weft_status status;

    WF_TRY(weft_plan_bind(plan, weft_world(run->context), &options, &bound));
    status = weft_redistribute(bound, from < 0 ? NULL : run->sources.at[from], target, NULL, NULL);
    if (status == WEFT_OK) status = weft_context_wait(run->context, NULL, WEFT_FOREVER);
    if (status == WEFT_OK && to >= 0)
        status = compare(pair->to, run->rank, target, run->wanted.at[to]);
    weft_bound_release(&bound);
    free(target);
    return status;
}

static weft_status run_case(struct run *run, const struct pair *pair, uint64_t seed)
{
    const weft_mesh *mesh = weft_spec_mesh(pair->from);
    OWNED(weft_plan) *plan = NULL;
    weft_status status;

    if (weft_plan_create(pair->from, pair->to, &pair->options, &plan) != WEFT_OK) return WEFT_OK;
    run->sources = shards_of(pair->from);
    run->wanted = shards_of(pair->to);
    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        fill(seed, pair->from, weft_mesh_rank_at(mesh, i), run->sources.at[i]);
    status = simulate_one(plan, (const void *const *)run->sources.at, run->wanted.at);
    if (status == WEFT_OK) status = run_bound(run, pair, plan, false);
    if (status == WEFT_OK) status = run_bound(run, pair, plan, true);
    shards_free(pair->from, &run->sources);
    shards_free(pair->to, &run->wanted);
    return status;
}

/* ---- random cases ---- */

static struct {
    struct random random;
    int cases;
} shared;

static bool has_partials(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL &&
            weft_mesh_axis_size(mesh, a) > 1)
            return true;
    return false;
}

/* Most pairs have something to reduce. */
static struct pair draw_pair(struct random *r, int32_t world)
{
    struct pair pair = random_pair(r, world);

    for (int tries = 0; tries < 8 && !has_partials(pair.from); tries++) {
        pair_release(&pair);
        pair = random_pair(r, world);
    }
    return pair;
}

static weft_status rank_main(void *argument)
{
    struct run run = {0};
    weft_status status = WEFT_OK;
    int32_t world;

    (void)argument;
    WF_TRY(weft_init(NULL, &run.context));
    run.rank = weft_rank(run.context);
    world = weft_size(run.context);
    for (int i = 0; i < shared.cases && status == WEFT_OK; i++) {
        uint64_t state = wf_hash_mix(shared.random.seed + (uint64_t)world, (uint64_t)i) | 1;
        struct random r = {shared.random.seed, state};
        struct pair pair = draw_pair(&r, world);
        status = run_case(&run, &pair, state);
        if (status == WEFT_ERR_MISMATCH)
            printf("case %d of %d ranks: %s\n%s\n", i, world, weft_last_error(),
                   pair_command(&pair, "redistribute"));
        pair_release(&pair);
    }
    if (status != WEFT_OK) return status; /* the process frees the failed case's memory */
    weft_context_release(&run.context);
    return WEFT_OK;
}

TEST(the_simulator_and_real_ranks_give_the_same_bits)
{
    shared.random = random_begin("the_simulator_and_real_ranks_give_the_same_bits");
    shared.cases = test_cases(250);
    for (int32_t ranks = 1; ranks <= MAX_RANKS; ranks++)
        ck_assert_msg(weft_threads_run(ranks, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
}
