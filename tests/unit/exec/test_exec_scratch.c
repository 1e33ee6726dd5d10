#include "support/lone_rank.h"
#include "support/random_layout.h"
#include "support/suite.h"
#include "weft/move.h"

enum { ACTIONS = 3 };

/* LONE's bound with actions whose outputs have the sizes of TO, all on one rank. */
static void make_actions(struct lone_rank *lone, struct wf_step *steps, const char *const *to)
{
    size_t bytes = sizeof *lone->bound + ACTIONS * sizeof lone->bound->actions[0];
    struct weft_bound *bound = wf_realloc(lone->bound, bytes);

    ck_assert_ptr_nonnull(bound);
    bound->action_count = ACTIONS;
    memset(bound->actions, 0, ACTIONS * sizeof bound->actions[0]);
    for (int i = 0; i < ACTIONS; i++) {
        steps[i] = (struct wf_step){.to = spec_of("1", to[i])};
        bound->actions[i].step = &steps[i];
        bound->actions[i].kind.dtype = WEFT_DTYPE_F32;
    }
    lone->bound = bound;
}

static void drop_steps(struct wf_step *steps)
{
    for (int i = 0; i < ACTIONS; i++)
        weft_spec_release(&steps[i].to);
}

TEST(outputs_lie_at_two_ends_and_staging_between)
{
    static const char *const to[] = {"f32[250] R", "f32[128] R", "f32[64] R"};
    struct wf_step steps[ACTIONS];
    struct lone_rank lone;
    struct wf_action *a;
    char memory[1024 + 512 + 256];

    lone_begin(&lone, 0, 1);
    make_actions(&lone, steps, to);
    a = lone.bound->actions;
    a[1].packing.in.staged = 60;
    ck_assert_uint_eq(wf_scratch_bytes(lone.bound), 1024 + 512 + 256); /* of the second */
    wf_scratch_assign(lone.bound, memory);
    ck_assert(a[0].from_source && !a[0].to_target);
    ck_assert_ptr_eq(a[0].out_scratch, memory);
    ck_assert(!a[1].from_source && !a[1].to_target);
    ck_assert_ptr_eq(a[1].in_scratch, memory);
    ck_assert_ptr_eq(a[1].packing.in.staging, memory + 1024);
    ck_assert_ptr_eq(a[1].out_scratch, memory + 1024 + 256);
    ck_assert(!a[2].from_source && a[2].to_target);
    ck_assert_ptr_eq(a[2].in_scratch, memory + 1024 + 256);
    drop_steps(steps);
    lone_end(&lone);
}

TEST(what_needs_no_scratch_has_none)
{
    static const char *const to[] = {"f32[0] R", "f32[0] R", "f32[64] R"};
    struct wf_step steps[ACTIONS];
    struct lone_rank lone;

    lone_begin(&lone, 0, 1);
    make_actions(&lone, steps, to);
    ck_assert_uint_eq(wf_scratch_bytes(lone.bound), 0);
    wf_scratch_assign(lone.bound, NULL);
    ck_assert(lone.bound->actions[0].from_source && lone.bound->actions[2].to_target);
    drop_steps(steps);
    lone_end(&lone);
}

/* ---- plans state what binding takes ---- */

/* A backend that scatters equal shards itself, averages, and reads peers' memory. */
static weft_status support_scatter(void *device, const weft_support_query *query, uint32_t *level)
{
    (void)device;
    *level =
        query->collective == WEFT_COLL_REDUCE_SCATTER ? WEFT_SUPPORT_NATIVE : WEFT_SUPPORT_EMULATED;
    return WEFT_OK;
}

static weft_status accept_pull(void *comm, const weft_pull_args *args)
{
    (void)comm;
    (void)args;
    return WEFT_OK;
}

static weft_status accept_pull_cast(void *comm, const weft_pull_args *args, uint32_t dtype)
{
    (void)comm;
    (void)args;
    (void)dtype;
    return WEFT_OK;
}

static weft_status accept_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                               void *const *targets, void *stream)
{
    (void)list;
    (void)from;
    (void)to;
    (void)sources;
    (void)targets;
    (void)stream;
    return WEFT_OK;
}

/* The most scratch that a rank of PLAN takes. */
static uint64_t bound_scratch(struct lone_rank *lone, const weft_plan *plan, bool packed)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed};
    uint64_t most = 0;

    for (int32_t rank = 0; rank < lone->comm.size; rank++) {
        uint64_t bytes = UINT64_MAX;
        lone->comm.rank = rank;
        ck_assert_msg(weft_plan_scratch(plan, &lone->comm, &options, &bytes) == WEFT_OK, "%s",
                      weft_last_error());
        if (bytes > most) most = bytes;
    }
    return most;
}

enum { RANKS = 32 };

/* A mesh of at most RANKS ranks, below RANKS. */
static weft_mesh *small_mesh(struct random *r)
{
    int32_t sizes[3], ranks[RANKS], axes = random_in(r, 1, 3);
    weft_mesh_options options = {.struct_size = sizeof options, .ranks = ranks};
    weft_mesh *mesh = NULL;

    for (int32_t a = 0; a < axes; a++)
        sizes[a] = random_in(r, 1, 3);
    random_order(r, RANKS, ranks);
    if (random_chance(r, 2))
        for (int32_t i = 0; i < RANKS; i++)
            ranks[i] = i;
    ck_assert_int_eq(weft_mesh_create(axes, sizes, &options, &mesh), WEFT_OK);
    return mesh;
}

/* A random spec, in another dtype than f32 one time in three. */
static weft_spec *random_dtype(struct random *r, const weft_mesh *mesh, int32_t dims,
                               const int64_t *shape)
{
    weft_spec *spec = random_spec(r, mesh, dims, shape), *other = NULL;

    if (!random_chance(r, 3)) return spec;
    ck_assert_int_eq(
        weft_spec_with_dtype(spec, random_chance(r, 2) ? WEFT_DTYPE_BF16 : WEFT_DTYPE_F64, &other),
        WEFT_OK);
    weft_spec_release(&spec);
    return other;
}

static void compare_scratch(struct lone_rank *lone, struct random *r, bool crosses)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan_info info = {.struct_size = sizeof info};
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = random_shape(r, shape);
    OWNED(weft_mesh) *mesh = small_mesh(r),
                     *other = crosses ? small_mesh(r) : weft_mesh_retain(mesh);
    OWNED(weft_spec) *from = random_spec(r, mesh, dims, shape),
                     *to = random_dtype(r, other, dims, shape);
    bool packed = random_chance(r, 2);
    static char source[8192];
    OWNED(weft_cost_table) *costs = NULL;
    OWNED(weft_plan) *plan = NULL;

    ck_assert_int_eq(weft_cost_table_open(packed ? "default" : "cpu", &costs), WEFT_OK);
    options.costs = costs;
    options.minimize = (uint32_t)random_in(r, 0, 2);
    if (random_chance(r, 4)) options.planner = WEFT_PLANNER_EXCHANGE;
    if (weft_plan_create(from, to, &options, &plan) == WEFT_OK) {
        uint64_t bytes = bound_scratch(lone, plan, packed);
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_msg(info.peak_bytes == bytes, "%s -> %s: stated %llu, bound %llu; %u %u %d",
                      strcpy(source, as_command(from)), as_command(to),
                      (unsigned long long)info.peak_bytes, (unsigned long long)bytes,
                      options.minimize, options.planner, packed);
    }
}

enum { TENSORS = 6 };

/* The same for a batch of random tensors, with a limit of scratch one time in three. */
static void compare_batch(struct lone_rank *lone, struct random *r, bool crosses)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_mesh) *mesh = small_mesh(r),
                     *other = crosses ? small_mesh(r) : weft_mesh_retain(mesh);
    uint32_t count = (uint32_t)random_in(r, 1, TENSORS);
    const weft_spec *from[TENSORS], *to[TENSORS];
    bool packed = random_chance(r, 2);
    weft_cost_table *costs = NULL;
    weft_plan *plan = NULL;

    for (uint32_t i = 0; i < count; i++) {
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(r, shape);
        from[i] = random_spec(r, mesh, dims, shape);
        to[i] = random_dtype(r, other, dims, shape);
    }
    ck_assert_int_eq(weft_cost_table_open(packed ? "default" : "cpu", &costs), WEFT_OK);
    options.costs = costs;
    options.minimize = (uint32_t)random_in(r, 0, 2);
    if (random_chance(r, 3)) options.memory_limit = (uint64_t)random_in(r, 1, 16) * 256;
    if (weft_plan_create_batch(count, from, to, &options, &plan) == WEFT_OK) {
        uint64_t bytes = bound_scratch(lone, plan, packed);
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_msg(info.peak_bytes == bytes, "%zu of %u tensors: stated %llu, bound %llu; %u %d",
                      info.together, count, (unsigned long long)info.peak_bytes,
                      (unsigned long long)bytes, options.minimize, packed);
        ck_assert(options.memory_limit == 0 || bytes <= options.memory_limit);
    }
    weft_plan_release(&plan);
    weft_cost_table_release(&costs);
    for (uint32_t i = 0; i < count; i++) {
        weft_spec_release((weft_spec **)&from[i]);
        weft_spec_release((weft_spec **)&to[i]);
    }
}

/* Call COMPARE with random tensors on a backend that does what plans assume. */
static void compare_many(void (*compare)(struct lone_rank *, struct random *, bool), int cases)
{
    struct random r = {.state = test_seed_begin("exec_scratch") | 1};
    weft_kernel_table kernel = keeping_kernel;
    const weft_plugin *plugin;
    weft_comm_table table;
    struct lone_rank lone;
    weft_plugin able;

    lone_begin(&lone, 0, RANKS);
    plugin = lone.context->plugin;
    able = *plugin;
    kernel.regions_cast = accept_cast;
    able.kernel = &kernel;
    lone.context->plugin = lone.comm.plugin = &able;
    table = *lone.comm.table;
    table.support = support_scatter;
    table.pull = accept_pull;
    table.pull_cast = accept_pull_cast;
    lone.comm.table = &table;
    lone.comm.averages = UINT32_MAX;
    for (int i = test_cases(cases); i > 0; i--)
        compare(&lone, &r, i % 3 == 0);
    lone.context->plugin = plugin;
    lone_end(&lone);
}

TEST(a_plan_states_the_scratch_that_binding_takes)
{
    compare_many(compare_scratch, 600);
}

/* Placements of AXES axes of which any order divides 24 indices. */
static void add_plain(struct random *r, int axes, char *out, size_t capacity)
{
    for (int a = 0; a < axes; a++) {
        size_t length = strlen(out);
        int kind = random_in(r, 0, 4);
        if (kind < 3)
            snprintf(out + length, capacity - length, "%sS(%d)", a > 0 ? "," : "", kind);
        else
            snprintf(out + length, capacity - length, "%s%c", a > 0 ? "," : "", "RP"[kind - 3]);
    }
}

/* Collectives among shards of one size, whose messages are not compared one by one. */
static void compare_regular(struct lone_rank *lone, struct random *r, bool crosses)
{
    static const char *const meshes[] = {"4", "2x3", "4x2", "2x2x2", "2x1x3", "3x2x2"};
    static const int axes[] = {1, 2, 2, 3, 3, 3};
    int at = random_in(r, 0, 5);
    char texts[2][64] = {"f32[24,12,24] ", "f32[24,12,24] "};
    weft_plan_options options = {.struct_size = sizeof options,
                                 .minimize = (uint32_t)random_in(r, 0, 2)};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_cost_table) *costs = NULL;
    OWNED(weft_spec) *from = NULL, *to = NULL;
    OWNED(weft_plan) *plan = NULL;

    (void)crosses;
    for (int i = 0; i < 2; i++)
        add_plain(r, axes[at], texts[i], sizeof texts[i]);
    from = spec_of(meshes[at], texts[0]);
    to = spec_of(meshes[at], texts[1]);
    ck_assert_int_eq(weft_cost_table_open("default", &costs), WEFT_OK);
    options.costs = costs;
    if (random_chance(r, 2)) options.without = 1U << WEFT_STEP_EXCHANGE | 1U << WEFT_STEP_PERMUTE;
    if (weft_plan_create(from, to, &options, &plan) == WEFT_OK) {
        uint64_t bytes = bound_scratch(lone, plan, true);
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_msg(info.scratch_exact && info.peak_bytes == bytes,
                      "%s: %s -> %s, minimize %u: stated %llu, bound %llu", meshes[at], texts[0],
                      texts[1], options.minimize, (unsigned long long)info.peak_bytes,
                      (unsigned long long)bytes);
    }
}

TEST(collectives_of_equal_shards_take_the_scratch_that_they_state)
{
    compare_many(compare_regular, 600);
}

/* Shards of one shape, of which the first is one run and the others are not. */
static void compare_parts(struct lone_rank *lone, struct random *r, bool crosses)
{
    OWNED(weft_cost_table) *costs = NULL;
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_spec) *from = spec_of("2x2", "f32[8,24] S(1)[1],B(1;14,2,4,4)[0]");
    OWNED(weft_spec) *to = spec_of("2x2", "f32[8,24] S(0)[1],S(0)[0]");
    OWNED(weft_plan) *plan = NULL;

    (void)r;
    (void)crosses;
    ck_assert_int_eq(weft_cost_table_open("default", &costs), WEFT_OK);
    options.costs = costs;
    ck_assert_int_eq(weft_plan_create(from, to, &options, &plan), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.peak_bytes, bound_scratch(lone, plan, true));
    ck_assert_uint_eq(info.peak_bytes, 512);
}

TEST(shards_of_one_shape_may_have_other_runs)
{
    compare_many(compare_parts, 1);
}

TEST(a_batch_states_the_scratch_that_binding_takes)
{
    compare_many(compare_batch, 300);
}
