/* Every cast that is offered, on real ranks of gloo-cpu: pulled, packed, in place and on a stream.
 * Every bit is that of the simulator, also of NaN, over all codes of 8 and 16 bits and over random
 * bits.  Rank 0 computes what is wanted. */
#include "base/number.h"
#include "system/redistribute/pairs.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

enum { RANKS = 3, ROWS = 300, COLUMNS = 256, ELEMENTS = ROWS * COLUMNS };

static const char *const changes[][2] = {{"S(0)", "S(1)"}, {"S(1)", "R"},     {"R", "S(0)"},
                                         {"S(0)", "S(0)"}, {"R", "P"},        {"S(1)", "P"},
                                         {"R", "P(max)"},  {"S(0)", "P(min)"}};

static uint64_t seed;

/* Element INDEX: every code of a small dtype, random bits of a large one. */
static uint64_t bits_of(uint32_t dtype, uint64_t index)
{
    uint64_t bits = wf_hash_mix(seed, index);

    if (wf_dtype_bytes(dtype) <= 2) return index;
    if (index % 4 == 0) /* subnormals and small integers */
        return bits >> (64 - 4 * wf_dtype_bytes(dtype)) ^ (bits & 1) << 63;
    if (index % 4 == 1 && dtype == WEFT_DTYPE_F32) /* where small floats round */
        return UINT64_C(0x3f800000) | (bits >> 40);
    return bits;
}

static void fill(const weft_spec *spec, int32_t rank, char *shard)
{
    size_t element = wf_dtype_bytes(weft_spec_dtype(spec));
    weft_segment segment;

    for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &segment); at += segment.length)
        for (int64_t i = 0; i < segment.length; i++) {
            uint64_t bits = bits_of(weft_spec_dtype(spec), (uint64_t)(segment.global + i));
            memcpy(shard + (size_t)(segment.local + i) * element, &bits, element);
        }
}

static size_t shard_bytes(const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return (size_t)shard.elements * wf_dtype_bytes(weft_spec_dtype(spec));
}

/* ---- one cast on this rank ---- */

struct run {
    weft_context *context;
    weft_stream *stream;
    int32_t rank;
    struct pair pair;
    weft_plan *plan;
    void *source, *target;
};

static weft_status run_bound(struct run *run, weft_bind_options options, bool in_stream,
                             const char *wanted)
{
    weft_stream *stream = in_stream ? run->stream : NULL;
    size_t bytes = shard_bytes(run->pair.to, run->rank);
    void *source = options.in_place ? run->target : run->source;
    weft_bound *bound = NULL;
    weft_work *work = NULL;

    options.struct_size = sizeof options;
    memset(run->target, 0xa5, bytes);
    if (options.in_place) fill(run->pair.from, run->rank, run->target);
    WF_TRY(weft_plan_bind(run->plan, weft_world(run->context), &options, &bound));
    WF_TRY(weft_redistribute(bound, source, run->target, stream, &work));
    WF_TRY(weft_work_wait(work, WEFT_FOREVER));
    weft_work_release(&work);
    weft_bound_release(&bound);
    if (memcmp(run->target, wanted, bytes) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_MISMATCH, "rank %d has other bits than the simulator%s%s\n%s",
                   run->rank, options.packed ? ", packed" : "",
                   options.in_place ? ", in place" : "",
                   pair_command(&run->pair, "redistribute -n 3"));
}

static weft_status run_all(struct run *run)
{
    struct shards sources = shards_of(run->pair.from), wanted = shards_of(run->pair.to);
    const char *mine = NULL;
    weft_status status;

    for (int32_t rank = 0; rank < RANKS; rank++)
        fill(run->pair.from, rank, sources.at[rank]);
    status = simulate_one(run->plan, (const void *const *)sources.at, wanted.at);
    mine = wanted.at[run->rank];
    memcpy(run->source, sources.at[run->rank], shard_bytes(run->pair.from, run->rank));
    for (int packed = 0; packed < 2 && status == WEFT_OK; packed++)
        for (int in_place = 0; in_place < 2 && status == WEFT_OK; in_place++)
            status = run_bound(run, (weft_bind_options){.packed = packed, .in_place = in_place},
                               packed == in_place, mine);
    shards_free(run->pair.from, &sources);
    shards_free(run->pair.to, &wanted);
    return status;
}

static weft_spec *make_spec(const weft_mesh *mesh, uint32_t dtype, const char *placements)
{
    char text[64];
    weft_spec *spec = NULL;

    snprintf(text, sizeof text, "%s[%d,%d] %s", wf_dtype_name(dtype), ROWS, COLUMNS, placements);
    ck_assert_msg(weft_spec_parse(mesh, text, &spec) == WEFT_OK, "%s", weft_last_error());
    return spec;
}

static weft_status run_pair(struct run *run, const weft_mesh *mesh, uint32_t from, uint32_t to)
{
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < WF_COUNT(changes) && status == WEFT_OK; i++) {
        run->pair.from = make_spec(mesh, from, changes[i][0]);
        run->pair.to = make_spec(mesh, to, changes[i][1]);
        run->pair.options = (weft_plan_options){.struct_size = sizeof run->pair.options,
                                                .costs = weft_context_costs(run->context)};
        if (strcmp(changes[i][1], "P(min)") == 0) /* one step creates the partial and casts */
            run->pair.options.planner = WEFT_PLANNER_EXCHANGE;
        status = weft_plan_create(run->pair.from, run->pair.to, &run->pair.options, &run->plan);
        run->pair.costs = "cpu";
        if (status == WEFT_OK) status = run_all(run);
        weft_plan_release(&run->plan);
        weft_spec_release(&run->pair.from);
        weft_spec_release(&run->pair.to);
    }
    return status;
}

static weft_status rank_main(void *argument)
{
    struct run run = {0};
    weft_mesh *mesh = NULL;
    int pairs = 0;

    (void)argument;
    WF_TRY(weft_init(NULL, &run.context));
    WF_TRY(weft_stream_create(run.context, &run.stream));
    run.rank = weft_rank(run.context);
    WF_TRY(weft_mesh_parse("3", &mesh));
    WF_TRY(weft_alloc(run.context, (size_t)ELEMENTS * 8, WEFT_MEMORY_DEVICE, &run.source));
    WF_TRY(weft_alloc(run.context, (size_t)ELEMENTS * 8, WEFT_MEMORY_DEVICE, &run.target));
    for (uint32_t from = 0; from < WEFT_DTYPE_COUNT; from++)
        for (uint32_t to = 0; to < WEFT_DTYPE_COUNT; to++) {
            enum wf_cast_kind kind = wf_cast_kind(from, to);
            if (kind != WF_CAST_NARROWS && kind != WF_CAST_WIDENS) continue;
            WF_TRY(run_pair(&run, mesh, from, to));
            pairs++;
        }
    if (pairs != 6 * 5 + 18) return wf_fail(WEFT_ERR_INTERNAL, "%d casts are offered", pairs);
    WF_TRY(weft_free(run.context, run.source));
    WF_TRY(weft_free(run.context, run.target));
    weft_mesh_release(&mesh);
    weft_stream_release(&run.stream);
    weft_context_release(&run.context);
    return WEFT_OK;
}

TEST(every_cast_has_the_bits_of_the_simulator)
{
    seed = test_seed_begin("every_cast_has_the_bits_of_the_simulator");
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
}

/* The sum is exact in f32, and lies between two numbers of bf16: narrowed contributions would give
 * another one.  i8 wraps at 8 bits, i32 does not. */
TEST(sums_are_computed_in_the_wider_dtype_and_rounded_once)
{
    static const float parts[2] = {1, 0x1.01p-8f}; /* 1 + 2^-8 + 2^-16: above the tie */
    static const int8_t bytes[2] = {100, 100};
    const void *floats[] = {&parts[0], &parts[1]}, *integers[] = {&bytes[0], &bytes[1]};
    uint16_t narrow[2];
    int32_t wide[2];
    void *to_narrow[] = {&narrow[0], &narrow[1]}, *to_wide[] = {&wide[0], &wide[1]};
    OWNED(weft_mesh) *mesh = NULL;

    ck_assert_int_eq(weft_mesh_parse("2", &mesh), WEFT_OK);
    for (int i = 0; i < 2; i++) {
        OWNED(weft_spec) *from = NULL, *to = NULL;
        OWNED(weft_plan) *plan = NULL;

        ck_assert_int_eq(weft_spec_parse(mesh, i == 0 ? "f32[1] P" : "i8[1] P", &from), WEFT_OK);
        ck_assert_int_eq(weft_spec_parse(mesh, i == 0 ? "bf16[1] R" : "i32[1] R", &to), WEFT_OK);
        ck_assert_int_eq(weft_plan_create(from, to, NULL, &plan), WEFT_OK);
        ck_assert_int_eq(
            simulate_one(plan, i == 0 ? floats : integers, i == 0 ? to_narrow : to_wide), WEFT_OK);
    }
    ck_assert_uint_eq(narrow[0], 0x3f81);
    ck_assert_uint_eq(narrow[1], 0x3f81);
    ck_assert_int_eq(wide[0], 200);
    ck_assert_int_eq(wide[1], 200);
}

/* True if every element of SPEC's shard, at position AT of its mesh, has the bits IDENTITY. */
static bool is_filled(const weft_spec *spec, const struct shards *shards, int32_t at,
                      uint64_t identity)
{
    size_t element = wf_dtype_bytes(weft_spec_dtype(spec));
    size_t bytes = shard_bytes(spec, weft_mesh_rank_at(weft_spec_mesh(spec), at));

    for (size_t i = 0; i < bytes; i += element)
        if (memcmp((const char *)shards->at[at] + i, &identity, element) != 0) return false;
    return true;
}

static void check_identity(struct pair *pair, uint32_t holders, uint64_t identity)
{
    struct shards sources = shards_of(pair->from), targets = shards_of(pair->to);
    weft_plan *plan = NULL;

    ck_assert_msg(weft_plan_create(pair->from, pair->to, &pair->options, &plan) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_int_eq(simulate_one(plan, (const void *const *)sources.at, targets.at), WEFT_OK);
    for (int32_t i = 0; i < weft_mesh_size(weft_spec_mesh(pair->to)); i++)
        ck_assert_msg(is_filled(pair->to, &targets, i, identity) == (holders >> i & 1),
                      "position %d: %s", i, pair_command(pair, "sim"));
    weft_plan_release(&plan);
    shards_free(pair->from, &sources);
    shards_free(pair->to, &targets);
}

/* The highest value of i8 is not the identity of a minimum of i64, and f8e4m3 has no infinity. */
TEST(new_partials_hold_the_identity_of_the_target_in_every_plan)
{
    static const char *const tables[] = {"default", "cpu", "dtensor"};
    static const struct {
        const char *mesh, *to_mesh, *from, *to;
        uint32_t holders; /* bit per position: it holds the identity */
        uint64_t identity;
    } cases[] = {
        {"2", "2", "f8e4m3[5] S(0)", "bf16[5] P(min)", 2, 0x7f80},
        {"2x2", "2x2", "f8e4m3[8] R,S(0)", "bf16[8] P(min),R", 12, 0x7f80},
        {"2x2", "2x2", "i8[8] S(0),R", "i64[8] R,P(max)", 10, UINT64_C(1) << 63},
        {"2", "2x2@2-5", "u8[800] S(0)", "i16[800] P(max),R", 12, 0x8000},
        {"2", "2@1-2", "u16[] R", "u32[] P(min)", 2, UINT32_MAX},
        {"2x2", "2x2", "f32[8] P(max),R", "f8e5m2[8] R,P(max)", 10, 0xfc},
        {"2x2", "2x2", "f64[8] P,S(0)", "f8e5m2[8] S(0),P(min)", 10, 0x7c},
    };

    for (size_t i = 0; i < WF_COUNT(cases) * 3 * 3 * 2; i++) {
        size_t c = i / 18;
        OWNED(weft_mesh) *mesh = NULL, *to_mesh = NULL;
        struct pair pair = {.costs = tables[i % 3]};

        ck_assert_int_eq(weft_mesh_parse(cases[c].mesh, &mesh), WEFT_OK);
        ck_assert_int_eq(weft_mesh_parse(cases[c].to_mesh, &to_mesh), WEFT_OK);
        ck_assert_int_eq(weft_spec_parse(mesh, cases[c].from, &pair.from), WEFT_OK);
        ck_assert_int_eq(weft_spec_parse(to_mesh, cases[c].to, &pair.to), WEFT_OK);
        ck_assert_int_eq(weft_cost_table_open(pair.costs, &pair.cost_table), WEFT_OK);
        pair.options = (weft_plan_options){.struct_size = sizeof pair.options,
                                           .costs = pair.cost_table,
                                           .minimize = (uint32_t)(i / 3 % 3)};
        if (i / 9 % 2 == 1) pair.options.planner = WEFT_PLANNER_EXCHANGE;
        check_identity(&pair, cases[c].holders, cases[c].identity);
        pair_release(&pair);
    }
}
