/* One call updates a list of parameters of any layouts, without communication. */
#include "base/base.h"
#include "support/counts.h"
#include "support/suite.h"
#include "system/tensor/holds.h"
#include "weft/apply.h"
#include "weft/context.h"
#include "weft/trace.h"

#include <math.h>
#include <stdio.h>

enum { MEMBERS = 1500, FEW = 104, RANKS = 4, LISTS = 5, STEPS = 3 };

static const char *const layouts[] = {
    "f32[4,6] S(0),R",       "f32[4,6] R,S(1)", "f32[5,3] S(0),S(1)", "f32[7] R,R",
    "f32[9,2] SS(0,3),S(0)", "f32[3] S(0),R",   "f32[0,4] S(0),R",    "f32[8] O(1),R"};

/* ---- the engine's kernel ---- */

struct rates {
    double rate, beta1, beta2, decay;
};

static double real_of(const weft_op_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->attr_count; i++)
        if (strcmp(run->attrs[i].name, name) == 0) return run->attrs[i].real;
    return NAN;
}

static void update(float *p, float g, float *m, float *v, float t, const struct rates *r)
{
    *m = (float)(r->beta1 * *m + (1 - r->beta1) * g);
    *v = (float)(r->beta2 * *v + (1 - r->beta2) * g * g);
    *p -= (float)(r->rate *
                  (*m / (1 - pow(r->beta1, t)) / (sqrt(*v / (1 - pow(r->beta2, t))) + 1e-8) +
                   r->decay * *p));
}

static weft_status adamw(void *user, const weft_op_run *run)
{
    struct rates r = {real_of(run, "lr"), real_of(run, "beta1"), real_of(run, "beta2"),
                      real_of(run, "weight_decay")};
    uint32_t count = (uint32_t)run->input_count / LISTS;

    ++*(int *)user;
    if (run->output_count != 3 * count) return weft_fail(WEFT_ERR_INTERNAL, "not three lists");
    for (uint32_t i = 0; i < count; i++) {
        const weft_tensor_local *p = &run->inputs[i];
        for (uint32_t k = 0; k < 3; k++)
            if (run->outputs[k * count + i].memory !=
                run->inputs[(k == 0 ? 0 : k + 1) * count + i].memory)
                return weft_fail(WEFT_ERR_INTERNAL, "output %u is not in place", k);
        for (int64_t e = 0; e < p->shard->elements; e++)
            update((float *)p->memory + e, ((float *)p[count].memory)[e],
                   (float *)p[2 * count].memory + e, (float *)p[3 * count].memory + e,
                   *(const float *)p[4 * count].memory, &r);
    }
    return WEFT_OK;
}

/* ---- tensors ---- */

struct model {
    weft_context *context;
    weft_mesh *mesh;
    int members; /* of each list */
    weft_tensor *tensors[LISTS * MEMBERS];
};

static void begin(struct model *m, int members)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};

    m->members = members;
    ck_assert_msg(weft_init(&options, &m->context) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_mesh_parse("2x2", &m->mesh), WEFT_OK);
    for (int i = 0; i < LISTS * m->members; i++) {
        const char *layout = i < 4 * members        ? layouts[i % members % 8]
                             : i % members % 8 == 7 ? "f32[] O(1),R"
                                                    : "f32[] R,R";
        double first = i < members ? 0.5 : i < 2 * members ? 0.01 * (i % members) - 3 : 0;
        OWNED(weft_spec) *spec = NULL;

        ck_assert_msg(weft_spec_parse(m->mesh, layout, &spec) == WEFT_OK, "%s", weft_last_error());
        ck_assert_int_eq(weft_tensor_create(m->context, spec, NULL, &m->tensors[i]), WEFT_OK);
        ck_assert_int_eq(weft_tensor_fill(m->tensors[i], first, NULL), WEFT_OK);
    }
}

static void end(struct model *m)
{
    for (int i = 0; i < LISTS * m->members; i++)
        weft_tensor_release(&m->tensors[i]);
    weft_mesh_release(&m->mesh);
    weft_context_release(&m->context);
}

static weft_status step(struct model *m, double rate, int *calls)
{
    weft_op_attr attrs[] = {{.name = "lr", .kind = WEFT_ATTR_REAL, .real = rate},
                            {.name = "beta1", .kind = WEFT_ATTR_REAL, .real = 0.9},
                            {.name = "beta2", .kind = WEFT_ATTR_REAL, .real = 0.99},
                            {.name = "weight_decay", .kind = WEFT_ATTR_REAL, .real = 0.1}};
    weft_op_call call = {.struct_size = sizeof call,
                         .name = "adamw",
                         .input_count = LISTS * (uint32_t)m->members,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = attrs,
                         .attr_count = 4};

    return weft_op_apply(m->context, &call, m->tensors, NULL, adamw, calls, NULL, 0, NULL);
}

/* Every element of parameter I is WANT on every rank that holds it. */
static void check_parameter(const struct model *m, int i, float want)
{
    for (int32_t rank = 0; rank < RANKS; rank++) {
        weft_tensor_local_info local = {.struct_size = sizeof local};

        ck_assert_int_eq(weft_tensor_local_of(m->tensors[i], rank, &local), WEFT_OK);
        for (int64_t e = 0; e < local.shard.elements; e++)
            ck_assert_msg(((const float *)local.memory)[e] == want,
                          "parameter %d, %s, rank %d: %.9g instead of %.9g", i, layouts[i % 8],
                          rank, (double)((const float *)local.memory)[e], (double)want);
    }
}

TEST(one_call_updates_parameters_of_all_layouts)
{
    static struct model m;
    weft_record_counts *counting = NULL;
    struct counted counts;
    int calls = 0;

    begin(&m, MEMBERS);
    ck_assert_int_eq(weft_record_counts_create(m.context, &counting), WEFT_OK);
    for (int s = 1; s <= STEPS; s++) {
        uint64_t made;

        for (int i = 4 * MEMBERS; i < LISTS * MEMBERS; i++)
            ck_assert_int_eq(weft_tensor_fill(m.tensors[i], s, NULL), WEFT_OK);
        wf_mem_fail_at(0);
        (void)wf_mem_made();
        ck_assert_msg(step(&m, 0.1 / s, &calls) == WEFT_OK, "%s", weft_last_error());
        made = wf_mem_made();
        ck_assert_int_eq(calls, s * RANKS);
        /* the layouts are found once, whatever the rate is */
        if (s > 1) ck_assert_uint_lt(made, 4);
    }
    ck_assert_int_eq(counts_take(counting, &counts), WEFT_OK);
    ck_assert_uint_eq(counts.sums.implicit_moves, 0);
    for (int i = 0; i < MEMBERS; i++) {
        float p = 0.5f, g = (float)(0.01 * i - 3), mean = 0, square = 0;

        for (int s = 1; s <= STEPS; s++)
            update(&p, g, &mean, &square, (float)s, &(struct rates){0.1 / s, 0.9, 0.99, 0.1});
        check_parameter(&m, i, p);
    }
    end(&m);
}

TEST(a_list_with_other_layouts_is_another_call)
{
    static struct model m;
    weft_tensor *before, *other;
    weft_spec *spec;
    int calls = 0;

    begin(&m, FEW);
    for (int i = 4 * FEW; i < LISTS * FEW; i++)
        ck_assert_int_eq(weft_tensor_fill(m.tensors[i], 1, NULL), WEFT_OK);
    ck_assert_int_eq(step(&m, 0.1, &calls), WEFT_OK);
    /* a gradient that is not summed yet */
    ck_assert_int_eq(weft_spec_parse(m.mesh, "f32[4,6] S(0),P", &spec), WEFT_OK);
    ck_assert_int_eq(weft_tensor_create(m.context, spec, NULL, &other), WEFT_OK);
    before = m.tensors[FEW + 96];
    m.tensors[FEW + 96] = other;
    ck_assert_int_eq(step(&m, 0.1, &calls), WEFT_ERR_MISMATCH);
    ck_assert_msg(strstr(weft_last_error(), "operator adamw") != NULL &&
                      strstr(weft_last_error(), "cheapest fix") != NULL,
                  "%s", weft_last_error());
    ck_assert_int_eq(calls, RANKS);
    m.tensors[FEW + 96] = before;
    ck_assert_int_eq(step(&m, 0.1, &calls), WEFT_OK);
    ck_assert_int_eq(calls, 2 * RANKS);
    weft_tensor_release(&other);
    weft_spec_release(&spec);
    end(&m);
}

TEST(outputs_may_be_left_out_only_in_place)
{
    static struct model m;
    weft_op_call relu = {.struct_size = sizeof relu, .name = "relu", .input_count = 1};
    int calls = 0;

    begin(&m, FEW);
    ck_assert_int_eq(weft_op_apply(m.context, &relu, m.tensors, NULL, adamw, &calls, NULL, 0, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "output 0 has memory of its own"));
    end(&m);
}

/* The choice of such a call is kept, and found by its attributes. */
TEST(attributes_without_values_are_refused)
{
    static struct model m;
    weft_op_call call = {.struct_size = sizeof call, .name = "adamw", .attr_count = 4};
    weft_op_attr attrs[4] = {{.name = "lr", .kind = WEFT_ATTR_TEXT},
                             {.name = "beta1", .kind = WEFT_ATTR_REAL},
                             {.name = "beta2", .kind = WEFT_ATTR_REAL},
                             {.name = "weight_decay", .kind = WEFT_ATTR_REAL}};
    int calls = 0;

    begin(&m, FEW);
    call.input_count = LISTS * FEW;
    ck_assert_int_eq(step(&m, 0.1, &calls), WEFT_OK);
    ck_assert_int_eq(weft_op_apply(m.context, &call, m.tensors, NULL, adamw, &calls, NULL, 0, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_op_call.attrs is NULL"));
    call.attr_size = sizeof(weft_op_attr);
    call.attrs = attrs;
    ck_assert_int_eq(weft_op_apply(m.context, &call, m.tensors, NULL, adamw, &calls, NULL, 0, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "attribute 0, lr: its text is NULL"));
    end(&m);
}
