/* Attributes that a kernel gets are those of its shards: on the shapes of the shards, the operator
 * with these attributes has outputs of the shards' shapes.  Every one of weft's rules that has an
 * attribute is called, in every strategy, on every rank. */
#include "apply/apply.h"
#include "attr_cases.h"
#include "ops/bind/attrs.h"
#include "ops/ops.h"
#include "ops/rule/registry.h"
#include "support/ops.h"
#include "support/suite.h"
#include "weft/context.h"

enum { MOST = 24, RANKS = 4, STRATEGIES = 100 /* of a call, at most, evenly picked */ };

static int calls, changed; /* that were checked; with attributes of other values than the call's */

/* ---- the operator on the shapes of one rank ---- */

static bool has_empty(const weft_tensor_local *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tensors[i].shard != NULL && tensors[i].shard->elements == 0) return true;
    return false;
}

static void show(const char *name, const weft_op_attr *attrs, size_t count, struct wf_text *out)
{
    wf_text_add(out, "%s", name);
    for (size_t i = 0; i < count; i++) {
        wf_text_add(out, " %s=", attrs[i].name);
        if (attrs[i].kind == WEFT_ATTR_INT) wf_text_add(out, "%lld", (long long)attrs[i].integer);
        for (uint32_t j = 0; attrs[i].kind == WEFT_ATTR_LIST && j < attrs[i].count; j++)
            wf_text_add(out, "%lld,", (long long)attrs[i].list[j]);
    }
}

static void make_spec(const weft_mesh *mesh, const weft_tensor_local *local, weft_spec **out)
{
    weft_placement replica = {.kind = WEFT_PLACE_REPLICATE};

    ck_assert_msg(weft_spec_create(mesh, weft_spec_dtype(local->spec), local->shard->dims,
                                   local->shard->shape, &replica, out) == WEFT_OK,
                  "%s", weft_last_error());
}

/* An input of which only the shape is used may have any layout: its shape is that of the output
 * which is like it. */
static const weft_tensor_local *like_output(const weft_op_call *call, const weft_op_choice *choice,
                                            const weft_tensor_local *tensors, uint32_t input)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    const weft_spec *spec = tensors[input].spec;
    const weft_tensor_local *found = &tensors[input];
    struct wf_rule *rule = NULL;
    size_t at = 0;

    ck_assert_int_eq(weft_op_choice_get(choice, &info), WEFT_OK);
    ck_assert_int_eq(wf_rule_read(info.rule, &at, &rule), WEFT_OK);
    for (uint32_t i = 0; input < rule->input_count && rule->slots[input].shape_only &&
                         i < info.outputs && found == &tensors[input];
         i++) {
        const weft_tensor_local *output = &tensors[call->input_count + i];
        if (weft_spec_dims(output->spec) == weft_spec_dims(spec) &&
            memcmp(weft_spec_shape(output->spec), weft_spec_shape(spec),
                   (size_t)weft_spec_dims(spec) * sizeof(int64_t)) == 0)
            found = output;
    }
    wf_rule_drop(rule);
    return found;
}

/* TENSORS: the inputs of the call, then OUTPUTS outputs. */
static void check_local(const weft_op_call *call, const weft_op_choice *strategy,
                        const weft_op_attr *attrs, const weft_tensor_local *tensors, size_t outputs,
                        int32_t rank)
{
    weft_spec *specs[MOST] = {NULL};
    weft_op_tensor given[MOST];
    weft_op_call local = *call;
    weft_op_choice *choice = NULL;
    struct wf_text text = {0};
    OWNED(weft_mesh) *mesh = NULL;

    for (uint32_t i = 0; i < call->attr_count; i++)
        changed += !wf_attr_same_value(&attrs[i], &call->attrs[i]);
    show(call->name, attrs, call->attr_count, &text);
    ck_assert_int_eq(weft_mesh_parse("1", &mesh), WEFT_OK);
    for (uint32_t i = 0; i < call->input_count; i++)
        if (tensors[i].shard != NULL)
            make_spec(mesh, like_output(call, strategy, tensors, i), &specs[i]);
    for (uint32_t i = 0; call->output_count > 0 && i < outputs; i++) {
        const weft_shard *shard = tensors[call->input_count + i].shard;
        given[i] = (weft_op_tensor){.dtype = call->outputs[i].dtype, .dims = shard->dims};
        memcpy(given[i].shape, shard->shape, sizeof given[i].shape);
    }
    local.inputs = (const weft_spec *const *)specs;
    local.attr_size = sizeof attrs[0];
    local.attrs = attrs;
    local.mesh = mesh;
    local.outputs = call->output_count > 0 ? given : NULL;
    ck_assert_msg(weft_op_check(&local, NULL, &choice) == WEFT_OK, "rank %d: %s: %s", rank,
                  text.data, weft_last_error());
    for (uint32_t i = 0; i < outputs; i++) {
        const weft_shard *shard = tensors[call->input_count + i].shard;
        const weft_spec *made = weft_op_choice_output(choice, i);

        ck_assert_msg(weft_spec_dims(made) == shard->dims, "rank %d: %s: output %u", rank,
                      text.data, i);
        for (int32_t d = 0; d < shard->dims; d++)
            ck_assert_msg(weft_spec_shape(made)[d] == shard->shape[d],
                          "rank %d: %s: output %u has size %lld in dimension %d, its shard %lld",
                          rank, text.data, i, (long long)weft_spec_shape(made)[d], d,
                          (long long)shard->shape[d]);
    }
    calls++;
    weft_op_choice_release(&choice);
    for (uint32_t i = 0; i < call->input_count; i++)
        weft_spec_release(&specs[i]);
    wf_text_free(&text);
}

/* ---- strategies ---- */

/* What a kernel would get in CHOICE, on every rank. */
static void check_choice(const weft_op_call *call, const weft_op_choice *choice)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_op_choice_get(choice, &info), WEFT_OK);
    for (int32_t rank = 0; rank < (int32_t)weft_mesh_size(call->mesh); rank++) {
        struct wf_local_attrs attrs = {0};
        weft_tensor_local tensors[MOST] = {{0}};
        weft_shard shards[MOST];

        for (uint32_t i = 0; i < info.inputs + info.outputs; i++) {
            const weft_spec *spec = i < info.inputs
                                        ? weft_op_choice_input(choice, i)
                                        : weft_op_choice_output(choice, i - info.inputs);
            if (spec == NULL) continue;
            weft_spec_shard(spec, rank, &shards[i]);
            tensors[i] = (weft_tensor_local){.spec = spec, .shard = &shards[i]};
        }
        if (has_empty(tensors, info.inputs + info.outputs)) continue;
        ck_assert_int_eq(wf_local_attrs_set(&attrs, call, choice, tensors, rank), WEFT_OK);
        check_local(call, choice, attrs.values, tensors, info.outputs, rank);
        wf_local_attrs_free(&attrs);
    }
}

static weft_status kernel(void *user, const weft_op_run *run)
{
    const weft_op_call *call = user;
    weft_tensor_local tensors[MOST];

    memcpy(tensors, run->inputs, run->input_count * sizeof *tensors);
    memcpy(tensors + run->input_count, run->outputs, run->output_count * sizeof *tensors);
    if (!has_empty(tensors, run->input_count + run->output_count))
        check_local(call, run->choice, run->attrs, tensors, run->output_count, run->rank);
    return WEFT_OK;
}

/* The kernel of weft_op_apply on inputs in the layouts of CHOICE. */
static void apply(weft_context *context, const weft_op_call *call, const weft_op_choice *choice)
{
    weft_tensor *inputs[MOST] = {NULL}, *outputs[MOST] = {NULL};
    weft_op_choice_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_op_choice_get(choice, &info), WEFT_OK);
    for (uint32_t i = 0; i < call->input_count; i++)
        if (call->inputs[i] != NULL)
            ck_assert_msg(weft_tensor_create(context, weft_op_choice_input(choice, i), NULL,
                                             &inputs[i]) == WEFT_OK,
                          "%s", weft_last_error());
    ck_assert_msg(weft_op_apply(context, call, inputs, NULL, kernel, (void *)(uintptr_t)call, NULL,
                                MOST, outputs) == WEFT_OK,
                  "%s", weft_last_error());
    for (uint32_t i = 0; i < info.inputs; i++)
        weft_tensor_release(&inputs[i]);
    for (uint32_t i = 0; i < info.outputs; i++)
        weft_tensor_release(&outputs[i]);
}

/* The inputs of ONE as op_begin reads them: replicas, if ONE has no placements. */
static bool write_inputs(const struct attr_case *one, const char *replicas, struct wf_text *out)
{
    const char *at = one->inputs;

    wf_text_add(out, "%s", "");
    if (strchr(at, '(') != NULL) {
        wf_text_add(out, "%s", at);
        return false;
    }
    for (size_t length; *at != '\0'; at += length + (at[length] != '\0' ? 3 : 0)) {
        length = strcspn(at, " ");
        wf_text_add(out, "%s%.*s %s", out->length > 0 ? " ; " : "", (int)length, at, replicas);
    }
    return true;
}

static void try_case(weft_context *context, const struct attr_case *one, const char *mesh)
{
    bool in_two = strchr(mesh, 'x') != NULL;
    struct wf_text inputs = {0};
    weft_op_choice *choice = NULL;
    weft_op_list *list = NULL;
    op_text o;

    if (!write_inputs(one, in_two ? "R,R" : "R", &inputs)) {
        if (in_two) goto done;
        op_begin(&o, one->name, "2", inputs.data, one->attrs, one->outputs);
        ck_assert_msg(weft_op_check(&o.call, NULL, &choice) == WEFT_OK, "%s", weft_last_error());
        check_choice(&o.call, choice);
        apply(context, &o.call, choice);
        weft_op_choice_release(&choice);
        op_text_release(&o);
        goto done;
    }
    op_begin(&o, one->name, mesh, inputs.data, one->attrs, one->outputs);
    ck_assert_msg(weft_op_list_create(&o.call, NULL, &list) == WEFT_OK, "%s", weft_last_error());
    for (size_t i = 0; i < weft_op_list_count(list);
         i += 1 + weft_op_list_count(list) / STRATEGIES) {
        check_choice(&o.call, weft_op_list_choice(list, i));
        if (!in_two) apply(context, &o.call, weft_op_list_choice(list, i));
    }
    weft_op_list_release(&list);
    op_text_release(&o);
done:
    wf_text_free(&inputs);
}

TEST(kernels_get_the_attributes_of_their_shards)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    OWNED(weft_context) *context = NULL;

    ck_assert_msg(weft_init(&options, &context) == WEFT_OK, "%s", weft_last_error());
    for (size_t i = 0; i < WF_COUNT(attr_cases); i++) {
        int before = calls;

        try_case(context, &attr_cases[i], "4");
        try_case(context, &attr_cases[i], "2x2");
        ck_assert_msg(calls > before, "%s %s: nothing was checked", attr_cases[i].name,
                      attr_cases[i].attrs);
    }
    ck_assert_int_gt(changed, 100);
    printf("%d calls, %d attributes of other values\n", calls, changed);
}

/* ---- elements ---- */

/* Which elements of a dimension of its first input the kernel of a call must take. */
struct taken {
    const char *name, *mesh, *input, *attrs;
    int64_t first, step; /* of the first output */
    int ranks;           /* that have some */
};

static int taking; /* ranks */

static int64_t global_index(const weft_tensor_local *local, int32_t rank, int64_t position)
{
    weft_index_run run;

    ck_assert(weft_spec_run(local->spec, rank, 0, position, &run));
    return run.start;
}

static int64_t attr_of(const weft_op_run *run, const char *name, int64_t absent)
{
    for (uint32_t i = 0; i < run->attr_count; i++)
        if (strcmp(run->attrs[i].name, name) == 0) return run->attrs[i].integer;
    return absent;
}

/* An element of the input is its index in the whole tensor.  The kernel takes elements as a plain
 * one does, by the attributes that it gets. */
static weft_status take(void *user, const weft_op_run *run)
{
    const struct taken *one = user;
    const weft_tensor_local *x = &run->inputs[0];
    int64_t at = attr_of(run, "start", 0), step = attr_of(run, "step", 1);
    int64_t end = attr_of(run, "end", INT64_MAX), expected = one->first;

    if (at < 0) at += x->shard->shape[0];
    if (end < 0) end += x->shard->shape[0];
    for (uint32_t i = 0; i < run->output_count; i++) {
        const weft_tensor_local *y = &run->outputs[i];
        int64_t count = y->shard->shape[0], whole = weft_spec_shape(y->spec)[0];

        if (strcmp(one->name, "split") == 0)
            ck_assert_int_eq(run->attrs[1].list[i], count);
        else
            ck_assert_int_le(at + (count - 1) * step, end - 1);
        for (int64_t j = 0; j < count; j++, at += step) {
            ck_assert_int_lt(at, x->shard->shape[0]);
            ck_assert_int_eq(global_index(x, run->rank, at),
                             expected + global_index(y, run->rank, j) * one->step);
        }
        expected += whole;
    }
    taking++;
    return WEFT_OK;
}

TEST(cuts_of_shards_take_the_elements_of_the_whole_cut)
{
    static const struct taken known[] = {
        {"slice", "2", "f32[16] B(0;8,4,4)", "dim=0 start=8 end=12", 8, 1, 2},
        {"slice", "2", "f32[16] B(0;6,4,6)", "dim=0 start=-6", 10, 1, 2},
        {"slice", "4", "f32[16] SS(0,2)", "dim=0 start=8", 8, 1, 4},
        {"slice", "4", "f32[16] SS(0,4)", "dim=0 start=4 end=12", 4, 1, 4},
        {"slice", "4", "f32[16] S(0)", "dim=0 start=1 step=2", 1, 2, 4},
        {"slice", "4", "f32[16] S(0)", "dim=0 start=-13 end=99 step=4", 3, 4, 4},
        {"slice", "4", "f32[16] S(0)", "dim=0 start=-99 end=16", 0, 1, 4},
        {"slice", "2", "f32[16] R", "dim=0 start=-5 end=-2", 11, 1, 2},
        {"narrow", "2", "f32[16] B(0;2,10,4)", "dim=0 start=2 end=12", 2, 1, 2},
        {"split", "2", "f32[16] B(0;8,4,4)", "dim=0 sizes=8,4,4", 0, 1, 2},
        {"split", "2", "f32[15] B(0;5,4,3,3)", "dim=0 sizes=5,7,3", 0, 1, 2},
        {"split", "2", "f32[34] SS(0,17)", "dim=0 sizes=2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2", 0, 1,
         2},
    };
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    OWNED(weft_context) *context = NULL;

    ck_assert_msg(weft_init(&options, &context) == WEFT_OK, "%s", weft_last_error());
    for (size_t i = 0; i < WF_COUNT(known); i++) {
        weft_tensor *input, *outputs[MOST] = {NULL};
        OWNED(op_text) o;

        taking = 0;
        op_begin(&o, known[i].name, known[i].mesh, known[i].input, known[i].attrs, NULL);
        ck_assert_int_eq(weft_tensor_create(context, o.inputs[0], NULL, &input), WEFT_OK);
        ck_assert_msg(weft_op_apply(context, &o.call, &input, NULL, take,
                                    (void *)(uintptr_t)&known[i], NULL, MOST, outputs) == WEFT_OK,
                      "%s", weft_last_error());
        ck_assert_int_eq(taking, known[i].ranks);
        weft_tensor_release(&input);
        for (int j = 0; j < MOST; j++)
            weft_tensor_release(&outputs[j]);
    }
}

/* ---- all rules ---- */

TEST(every_rule_with_attributes_has_a_case)
{
    struct wf_rule **rules = calloc(wf_op_builtin_count, sizeof *rules);
    bool *covered = calloc(wf_op_builtin_count, sizeof *covered);

    for (size_t i = 0; i < wf_op_builtin_count; i++) {
        size_t at = 0;
        ck_assert_int_eq(wf_rule_read(wf_op_builtin[i], &at, &rules[i]), WEFT_OK);
    }
    for (size_t i = 0; i < WF_COUNT(attr_cases); i++) {
        size_t line = rule_of_case(rules, &attr_cases[i]);
        ck_assert_msg(line < wf_op_builtin_count, "%s %s", attr_cases[i].name, attr_cases[i].attrs);
        covered[line] = true;
    }
    for (size_t i = 0; i < wf_op_builtin_count; i++) {
        ck_assert_msg(rules[i]->attr_count == 0 || covered[i],
                      "add a call of this rule to attr_cases.h: %s", wf_op_builtin[i]);
        wf_rule_drop(rules[i]);
    }
    free(rules);
    free(covered);
}
