/* Random groups: parameters of all layouts and dtypes are gathered and are what they were, and
 * gradients are reduced to what a serial sum gives, on threads and on simulated ranks. */
#include "serial.h"
#include "support/job.h"
#include "support/random_layout.h"
#include "support/suite.h"

enum { RANKS = 6, MOST = 5, ROUNDS = 3 };

static struct group_case {
    weft_mesh *meshes[2];
    uint32_t count;
    weft_spec *specs[MOST];
    weft_spec *extra[MOST]; /* of the gradient, with other placements off the shard axes; or NULL */
    bool frozen[MOST], has_rep[MOST];
    uint32_t gradient_dtypes[MOST];
    weft_fsdp_group_options options;
    bool one_stream;
    int32_t kept_ranks;     /* 0: none */
    uint32_t flags[ROUNDS]; /* of the reductions; the last has neither LOCAL nor SHARD_ONLY */
    bool absent[ROUNDS][MOST];
} now;

/* ---- drawing ---- */

static uint32_t draw_dtype(struct random *r, bool floats)
{
    static const uint32_t all[] = {WEFT_DTYPE_F32, WEFT_DTYPE_F32, WEFT_DTYPE_BF16, WEFT_DTYPE_F16,
                                   WEFT_DTYPE_F64, WEFT_DTYPE_I64, WEFT_DTYPE_U8};

    return all[random_in(r, 0, floats ? 4 : 6)];
}

static const char *draw_name(struct random *r)
{
    static const char *const names[] = {NULL, NULL, "f32", "bf16", "f16", "f64"};

    return names[random_in(r, 0, 5)];
}

static void draw_meshes(struct random *r)
{
    static const char *const texts[] = {
        "dp=2",         "dp=3",      "dp=4",      "dp=6",     "rep=2,dp=2",      "rep=2,dp=3",
        "dp=2,tp=2",    "dp=3,tp=2", "tp=2,dp=3", "dp=5@1-5", "rep=2,dp=1,tp=3", "dp=1",
        "dp=4@5,3,1,0", "rep=3,dp=2"};

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            weft_mesh_parse(texts[random_in(r, 0, (int)WF_COUNT(texts) - 1)], &now.meshes[i]),
            WEFT_OK);
}

static weft_placement draw_split(struct random *r, int32_t dims)
{
    weft_placement placement = {.kind = WEFT_PLACE_SHARD};

    if (dims == 0 || random_chance(r, 6)) return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    placement.dim = random_in(r, 0, dims - 1);
    if (random_chance(r, 5)) {
        placement.kind = WEFT_PLACE_STRIDED;
        placement.factor = random_in(r, 1, 3);
    }
    return placement;
}

/* List sizes of some splits.  Shard axes split last, so that a list of another axis is also one of
 * the gathered tensor. */
static void draw_lists(struct random *r, const weft_mesh *mesh, int32_t dims, const int64_t *shape,
                       int32_t dp, weft_placement *placements)
{
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (wf_placement_splits(&placements[a])) placements[a].turn = a == dp ? 1 : 0;
    random_lists(r, mesh, dims, shape, placements);
}

static weft_spec *draw_spec(struct random *r, const weft_mesh *mesh)
{
    weft_placement placements[WEFT_MAX_AXES] = {{0}};
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = random_in(r, 0, 3), dp = 0;
    weft_spec *spec = NULL;

    for (int32_t d = 0; d < dims; d++)
        shape[d] = random_in(r, random_chance(r, 8) ? 0 : 1, 9);
    ck_assert_int_eq(weft_mesh_find_axis(mesh, "dp", &dp), WEFT_OK);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (strcmp(weft_mesh_axis_name(mesh, a), "rep") != 0) placements[a] = draw_split(r, dims);
    if (random_chance(r, 2)) draw_lists(r, mesh, dims, shape, dp, placements);
    if (random_chance(r, 6))
        placements[dp] = (weft_placement){
            .kind = WEFT_PLACE_OWNER, .owner = random_in(r, 0, weft_mesh_axis_size(mesh, dp) - 1)};
    ck_assert_msg(weft_spec_create(mesh, (enum weft_dtype)draw_dtype(r, false), dims, shape,
                                   placements, &spec) == WEFT_OK,
                  "%s", weft_last_error());
    return spec;
}

/* The layout of a gradient that is also partial on some replicated axes besides data's. */
static weft_spec *draw_gradient_spec(struct random *r, const weft_spec *spec, uint32_t dtype)
{
    weft_placement placements[WEFT_MAX_AXES];
    const weft_mesh *mesh = weft_spec_mesh(spec);
    weft_spec *out = NULL;

    memcpy(placements, weft_spec_placements(spec),
           (size_t)weft_mesh_axes(mesh) * sizeof *placements);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        bool data = strcmp(weft_mesh_axis_name(mesh, a), "tp") != 0;

        if (data || (placements[a].kind == WEFT_PLACE_REPLICATE && random_chance(r, 3)))
            placements[a] = (weft_placement){.kind = WEFT_PLACE_PARTIAL};
    }
    ck_assert_msg(weft_spec_create(mesh, (enum weft_dtype)dtype, weft_spec_dims(spec),
                                   weft_spec_shape(spec), placements, &out) == WEFT_OK,
                  "%s", weft_last_error());
    return out;
}

static bool has_axis(const weft_mesh *mesh, const char *name)
{
    int32_t axis;

    return weft_mesh_find_axis(mesh, name, &axis) == WEFT_OK;
}

static void draw_options(struct random *r)
{
    static const double divides[] = {0, 0, 0, 1, 2, 3, 6, 2.5};

    now.options = (weft_fsdp_group_options){.struct_size = sizeof now.options,
                                            .name = "drawn",
                                            .shard = "dp",
                                            .gather_dtype = draw_name(r),
                                            .reduce_dtype = draw_name(r),
                                            .gradient_dtype = draw_name(r),
                                            .divide = divides[random_in(r, 0, 7)],
                                            .sum_only = random_chance(r, 3),
                                            .absent_as_zero = false};
    now.one_stream = random_chance(r, 2);
    now.kept_ranks = random_chance(r, 2) ? random_in(r, 1, 3) : 0;
}

static void draw_case(struct random *r)
{
    now = (struct group_case){0};
    draw_meshes(r);
    draw_options(r);
    now.count = (uint32_t)random_in(r, 1, MOST);
    for (uint32_t i = 0; i < now.count; i++) {
        const weft_mesh *mesh = now.meshes[random_in(r, 0, 1)];

        now.specs[i] = draw_spec(r, mesh);
        now.has_rep[i] = has_axis(mesh, "rep");
        now.gradient_dtypes[i] = draw_dtype(r, true);
        now.extra[i] = draw_gradient_spec(r, now.specs[i], now.gradient_dtypes[i]);
        now.frozen[i] = random_chance(r, 8) || !wf_dtype_is_float(weft_spec_dtype(now.specs[i]));
    }
    for (int round = 0; round < ROUNDS; round++) {
        now.flags[round] = (random_chance(r, 2) ? WEFT_FSDP_KEEP : 0U) |
                           (round + 1 < ROUNDS && random_chance(r, 3) ? WEFT_FSDP_LOCAL : 0U) |
                           (round + 1 < ROUNDS && random_chance(r, 3) ? WEFT_FSDP_SHARD_ONLY : 0U);
        for (uint32_t i = 0; i < now.count; i++)
            now.absent[round][i] = round > 0 && random_chance(r, 5);
    }
}

static void clear_case(void)
{
    for (uint32_t i = 0; i < now.count; i++) {
        weft_spec_release(&now.specs[i]);
        weft_spec_release(&now.extra[i]);
    }
    weft_mesh_release(&now.meshes[0]);
    weft_mesh_release(&now.meshes[1]);
}

static const char *describe(const struct random *r)
{
    static char text[16384];
    size_t length = (size_t)snprintf(
        text, sizeof text,
        "WEFT_TEST_SEED=%llu gather %s reduce %s gradient %s divide %g sum_only %d one_stream %d "
        "kept %d flags %u %u %u\n%s",
        (unsigned long long)r->seed, now.options.gather_dtype, now.options.reduce_dtype,
        now.options.gradient_dtype, now.options.divide, now.options.sum_only, now.one_stream,
        now.kept_ranks, now.flags[0], now.flags[1], now.flags[2], weft_last_error());

    for (uint32_t i = 0; i < now.count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "\n%u: %s of %s, gradient %s", i, as_command(now.specs[i]),
                                   weft_dtype_name(weft_spec_dtype(now.specs[i])),
                                   weft_dtype_name((enum weft_dtype)now.gradient_dtypes[i]));
    return text;
}

/* ---- the case ---- */

static weft_status check_gathered(const weft_fsdp_group *group)
{
    for (uint32_t i = 0; i < now.count; i++) {
        struct elements of = {.which = i};
        weft_tensor *tensor = weft_fsdp_parameter(group, i);

        if (tensor == NULL) return weft_fail(WEFT_ERR_INTERNAL, "no parameter %u", i);
        WF_TRY(each_element(tensor, check_parameter, &of));
    }
    return WEFT_OK;
}

static weft_status gather(weft_fsdp_group *group, enum weft_fsdp_phase phase)
{
    WF_TRY(weft_fsdp_unshard_begin(group, phase));
    WF_TRY(weft_fsdp_unshard_end(group));
    return check_gathered(group);
}

static weft_status reduce_round(weft_context *context, weft_fsdp_group *group, uint64_t round)
{
    weft_tensor *gradients[MOST] = {NULL};

    for (uint32_t i = 0; i < now.count; i++) {
        struct elements of = {.which = i, .round = round, .spec = now.extra[i]};

        if (now.frozen[i] || now.absent[round][i]) continue;
        WF_TRY(weft_tensor_create(context, now.extra[i], NULL, &gradients[i]));
        WF_TRY(each_element(gradients[i], set_gradient, &of));
    }
    WF_TRY(weft_fsdp_reduce_begin(group, gradients, now.flags[round]));
    for (uint32_t i = 0; i < now.count; i++)
        weft_tensor_release(&gradients[i]);
    return weft_fsdp_reduce_end(group);
}

/* Rounding of the narrowest dtype that a gradient passes, several times. */
static double tolerance_of(uint32_t index)
{
    const char *const names[] = {now.options.reduce_dtype, now.options.gradient_dtype,
                                 weft_dtype_name(weft_spec_dtype(now.specs[index])),
                                 weft_dtype_name((enum weft_dtype)now.gradient_dtypes[index])};
    double most = 0;

    for (size_t i = 0; i < WF_COUNT(names); i++) {
        enum weft_dtype dtype = WEFT_DTYPE_F64;

        if (names[i] != NULL && weft_dtype_parse(names[i], &dtype) == WEFT_OK)
            most = fmax(most, wf_dtype_epsilon((uint32_t)dtype));
    }
    return 12 * most;
}

static int32_t size_along(const weft_mesh *mesh, const char *name)
{
    int32_t axis;

    return weft_mesh_find_axis(mesh, name, &axis) == WEFT_OK ? weft_mesh_axis_size(mesh, axis) : 1;
}

/* The rounds whose contributions the gradient has, after all of them. */
static weft_status check_reduced(const weft_fsdp_group *group, uint32_t index)
{
    const weft_mesh *mesh = weft_spec_mesh(now.specs[index]);
    double all = (double)size_along(mesh, "dp") * size_along(mesh, "rep");
    struct elements of = {.which = index,
                          .spec = now.extra[index],
                          .factor = 1 / (now.options.divide > 0 ? now.options.divide : all),
                          .tolerance = tolerance_of(index)};
    weft_tensor *gradient = weft_fsdp_gradient(group, index);
    bool present[ROUNDS], any = false;

    for (int i = 0; i < ROUNDS; i++) {
        present[i] = !now.frozen[index] && !now.absent[i][index];
        any = any || present[i];
    }
    if ((gradient != NULL) != any)
        return weft_fail(WEFT_ERR_INTERNAL, "gradient %u is %s", index, any ? "missing" : "there");
    if (!any) return WEFT_OK;
    of.present = present;
    of.rounds = ROUNDS;
    return each_element(gradient, check_gradient, &of);
}

static weft_status make_group(weft_context *context, weft_fsdp *fsdp, weft_tensor **tensors,
                              weft_fsdp_group **out)
{
    weft_fsdp_param params[MOST] = {{0}};

    for (uint32_t i = 0; i < now.count; i++) {
        struct elements of = {.which = i};

        WF_TRY(weft_tensor_create(context, now.specs[i], NULL, &tensors[i]));
        WF_TRY(each_element(tensors[i], set_parameter, &of));
        params[i] = (weft_fsdp_param){.tensor = tensors[i],
                                      .replicate = now.has_rep[i] ? "rep" : NULL,
                                      .frozen = now.frozen[i]};
    }
    return weft_fsdp_group_create(fsdp, now.count, params, sizeof *params, &now.options, out);
}

static bool can_keep(void)
{
    for (uint32_t i = 0; i < now.count; i++)
        if (now.kept_ranks == 0 ||
            size_along(weft_spec_mesh(now.specs[i]), "dp") % now.kept_ranks != 0)
            return false;
    return true;
}

static weft_status run_case(weft_context *context)
{
    const weft_fsdp_options options = {.struct_size = sizeof options, .one_stream = now.one_stream};
    weft_tensor *tensors[MOST] = {NULL};
    weft_fsdp_group *group = NULL;
    weft_fsdp *fsdp = NULL;

    WF_TRY(weft_fsdp_create(context, weft_spec_mesh(now.specs[0]), "dp", &options, &fsdp));
    WF_TRY(make_group(context, fsdp, tensors, &group));
    WF_TRY(gather(group, WEFT_FSDP_FORWARD));
    WF_TRY(can_keep() ? weft_fsdp_reshard_to(group, now.kept_ranks) : weft_fsdp_reshard(group));
    if (now.kept_ranks == 1 && can_keep()) WF_TRY(weft_fsdp_reshard(group));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        weft_fsdp_group_info info = {.struct_size = sizeof info};

        WF_TRY(weft_fsdp_group_get(group, &info));
        if (info.state != WEFT_FSDP_GATHERED) WF_TRY(gather(group, WEFT_FSDP_BACKWARD));
        WF_TRY(reduce_round(context, group, round));
    }
    for (uint32_t i = 0; i < now.count; i++)
        WF_TRY(check_reduced(group, i));
    WF_TRY(weft_fsdp_gradients_clear(group));
    WF_TRY(weft_fsdp_reshard(group));
    weft_fsdp_group_release(&group);
    weft_fsdp_release(&fsdp);
    for (uint32_t i = 0; i < now.count; i++)
        weft_tensor_release(&tensors[i]);
    return WEFT_OK;
}

TEST(a_group_gathers_its_parameters_and_reduces_their_gradients)
{
    struct random r = random_begin("a_group_gathers_its_parameters_and_reduces_their_gradients");

    for (int left = test_cases(60); left > 0; left--) {
        draw_case(&r);
        ck_assert_msg(job_of_simulated(RANKS, run_case) == WEFT_OK, "simulated: %s", describe(&r));
        ck_assert_msg(job_of_threads(RANKS, run_case) == WEFT_OK, "%s", describe(&r));
        clear_case();
    }
}
