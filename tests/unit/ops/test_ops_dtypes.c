/* Inputs of one dtype: every one of weft's rules says which inputs share a dtype, and calls that
 * mix them are refused unless they permit it. */
#include "ops/bind/attrs.h"
#include "ops/rule/registry.h"
#include "support/ops.h"
#include "support/suite.h"
#include "system/apply/attr_cases.h"

/* ---- what the rules say ---- */

/* Inputs whose dtype is not that of the others. */
struct exception {
    const char *name, *inputs, *reason;
};

static const struct exception exceptions[] = {
    {"masked_fill", "m", "a mask"},
    {"masked_fill_tensor", "m v", "a mask, and a number"},
    {"copy", "x", "a cast"},
    {"gt", "a b", "PyTorch joins the dtypes of comparisons"},
    {"lt", "a b", "PyTorch joins the dtypes of comparisons"},
    {"eq", "a b", "PyTorch joins the dtypes of comparisons"},
    {"layer_norm", "x", "weights of f32 beside x of bf16"},
    {"layer_norm_bwd", "m r w b", "weights and statistics of f32"},
    {"rms_norm", "w", "weights of f32 beside x of bf16"},
    {"rms_norm_bwd", "r w", "weights and statistics of f32"},
    {"group_norm", "x", "weights of f32 beside x of bf16"},
    {"group_norm_bwd", "m r w", "weights and statistics of f32"},
    {"batch_norm", "x w b u t", "weights and statistics of f32"},
    {"batch_norm_bwd", "w u t m v", "weights and statistics of f32"},
    {"nll_loss", "t", "indices"},
    {"nll_loss_bwd", "t z", "indices, and a count"},
    {"cross_entropy", "t", "indices"},
    {"cross_entropy_bwd", "t e z", "indices, a statistic of f32, and a count"},
    {"scaled_mm", "a b", "two formats of 8 bits, beside their scales"},
    {"scaled_mm_block", "a b", "two formats of 8 bits, beside their scales"},
    {"grouped_mm", "o", "offsets"},
    {"grouped_mm_k", "o", "offsets"},
    {"grouped_mm_t", "o", "offsets"},
    {"max_pool_bwd", "i", "indices"},
    {"max_unpool", "i", "indices"},
    {"sdpa", "m", "a mask"},
    {"sdpa_bwd", "l m", "a statistic of f32, and a mask"},
    {"sdpa_gqa_bwd", "l", "a statistic of f32"},
    {"rope", "x", "tables of f32 beside x of bf16"},
    {"rope_half", "x", "tables of f32 beside x of bf16"},
    {"kv_write", "x i", "a cache of another dtype, and positions"},
    {"embedding", "i", "indices"},
    {"embedding_bwd", "i", "indices"},
    {"gather", "i", "indices"},
    {"index_select", "i", "indices"},
    {"scatter", "i", "indices"},
    {"scatter_value", "i", "indices"},
    {"scatter_add", "i", "indices"},
    {"scatter_reduce", "i", "indices"},
    {"index_add", "i", "indices"},
    {"index_copy", "i", "indices"},
    {"index_reduce", "i", "indices"},
    {"index_fill", "i v", "indices, and a number"},
    {"index", "i", "indices"},
    {"index_put", "i", "indices"},
    {"cholesky_solve", "p", "pivots"},
    {"lu_unpack", "p", "pivots"},
    {"adam", "p g m v t", "state of f32 beside parameters of bf16"},
    {"sgd", "p g m", "state of f32 beside parameters of bf16"},
};

static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; (at = strstr(at, word)) != NULL; at++) {
        bool begins = at == words || at[-1] == ' ';
        if (begins && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}

static bool is_exception(const struct wf_rule *rule, int input)
{
    char name[32];

    snprintf(name, sizeof name, "%.*s", WF_WORD(rule, rule->slots[input].name));
    for (size_t i = 0; i < WF_COUNT(exceptions); i++)
        if (wf_word_is(rule, rule->names[0], exceptions[i].name) &&
            has_word(exceptions[i].inputs, name, strlen(name)))
            return true;
    return rule->slots[input].shape_only;
}

static bool joins(const struct wf_rule *rule)
{
    for (int i = 0; i < rule->output_count; i++) {
        uint8_t type = rule->slots[rule->input_count + i].type;
        if (type == WF_TYPE_JOIN || type == WF_TYPE_FLOAT) return true;
    }
    return false;
}

/* Inputs A and B, which may be one list. */
static bool is_stated(const struct wf_rule *rule, int a, int b)
{
    if (rule->slots[a].same != 0 && rule->slots[a].same == rule->slots[b].same) return true;
    return joins(rule) || is_exception(rule, a) || is_exception(rule, b);
}

static void read_rules(struct wf_rule **rules)
{
    for (size_t i = 0; i < wf_op_builtin_count; i++) {
        size_t at = 0;
        ck_assert_int_eq(wf_rule_read(wf_op_builtin[i], &at, &rules[i]), WEFT_OK);
    }
}

static void drop_rules(struct wf_rule **rules)
{
    for (size_t i = 0; i < wf_op_builtin_count; i++)
        wf_rule_drop(rules[i]);
    free(rules);
}

TEST(every_rule_says_which_inputs_share_a_dtype)
{
    struct wf_rule **rules = calloc(wf_op_builtin_count, sizeof *rules);

    read_rules(rules);
    for (size_t i = 0; i < wf_op_builtin_count; i++)
        for (int a = 0; a < rules[i]->input_count; a++)
            for (int b = rules[i]->slots[a].list ? a : a + 1; b < rules[i]->input_count; b++)
                ck_assert_msg(is_stated(rules[i], a, b),
                              "write `same`, or an exception, for inputs %d and %d of: %s", a, b,
                              wf_op_builtin[i]);
    drop_rules(rules);
}

/* ---- calls ---- */

/* Rules without attributes. */
static const struct attr_case plain_cases[] = {
    {"rrelu", "f32[4] ; f32[4]", "", NULL},
    {"complex", "f32[4] ; f32[4]", "", NULL},
    {"equal", "f32[4] ; f32[4]", "", NULL},
    {"nll_loss_bwd", "f32[] ; f32[4,8] ; i64[4] ; f32[8] ; f32[]", "", NULL},
    {"mm", "f32[4,8] ; f32[8,6]", "", NULL},
    {"bmm", "f32[2,4,8] ; f32[2,8,6]", "", NULL},
    {"dot", "f32[4] ; f32[4]", "", NULL},
    {"mv", "f32[4,8] ; f32[8]", "", NULL},
    {"outer", "f32[4] ; f32[4]", "", NULL},
    {"linear", "f32[4,8] ; f32[6,8] ; f32[6]", "", NULL},
    {"kron", "f32[4,8] ; f32[6,8]", "", NULL},
    {"scaled_mm", "f8e4m3[4,8] ; f8e5m2[8,6] ; f32[4,1] ; f32[1,6]", "", NULL},
    {"grouped_mm", "f32[4,8] ; f32[2,8,6] ; i32[2]", "", NULL},
    {"grouped_mm_3d", "f32[2,4,8] ; f32[2,8,6]", "", NULL},
    {"grouped_mm_k", "f32[4,8] ; f32[8,6] ; i32[2]", "", NULL},
    {"grouped_mm_t", "f32[2,4,8] ; f32[8,6] ; i32[2]", "", NULL},
    {"conv2_patch", "f32[4,8,6,6] ; f32[8,8,2,2] ; f32[8]", "", NULL},
    {"grid_sample_bwd", "f32[4,8,6] ; f32[4,8,8] ; f32[4,6,1]", "", NULL},
    {"solve", "f32[4,4] ; f32[4,2]", "", NULL},
    {"cholesky_solve", "f32[4,2] ; f32[4,4]", "", NULL},
    {"triangular_solve", "f32[4,2] ; f32[4,4]", "", NULL},
    {"solve_ex", "f32[4,4] ; f32[4,2]", "", NULL},
    {"ormqr", "f32[4,4] ; f32[4] ; f32[4,2]", "", NULL},
    {"householder_product", "f32[4,4] ; f32[4]", "", NULL},
    {"diagonal_scatter", "f32[4,8,8] ; f32[4,7]", "offset=1 dim1=1 dim2=2", NULL},
};

static int refused;

/* The call of ONE with input MIXED, below the end of its inputs, of bf16. */
static void begin(const struct attr_case *one, int mixed, op_text *o)
{
    struct wf_text inputs = {0};
    const char *at = one->inputs;

    wf_text_add(&inputs, "%s", "");
    for (int i = 0; *at != '\0'; i++) {
        size_t length = strcspn(at, " "), dtype = i == mixed ? strcspn(at, "[") : 0;
        wf_text_add(&inputs, "%s%s%.*s R", i > 0 ? " ; " : "", i == mixed ? "bf16" : "",
                    (int)(length - dtype), at + dtype);
        at += strcspn(at, ";");
        at += *at == ';' ? 2 : 0;
    }
    op_begin(o, one->name, "2", inputs.data, one->attrs, one->outputs);
    wf_text_free(&inputs);
}

/* Mix the dtypes of each group of RULE, which answers ONE. */
static void try_case(const struct wf_rule *rule, const struct attr_case *one)
{
    for (int i = 0; i < rule->input_count; i++) {
        bool alone = !rule->slots[i].list;
        weft_op_choice *choice = NULL;
        op_text o;

        for (int j = 0; j < i; j++)
            alone = alone && rule->slots[j].same != rule->slots[i].same;
        if (rule->slots[i].same == 0 || alone) continue;
        begin(one, i, &o);
        if (o.call.input_count > (uint32_t)i) {
            ck_assert_msg(weft_op_check(&o.call, NULL, &choice) == WEFT_ERR_INVALID, "%s",
                          one->name);
            ck_assert_msg(strstr(weft_last_error(), "f32") != NULL &&
                              strstr(weft_last_error(), "bf16") != NULL &&
                              strstr(weft_last_error(), "WEFT_OP_CALL_MIXED_DTYPES") != NULL,
                          "%s", weft_last_error());
            o.call.flags = WEFT_OP_CALL_MIXED_DTYPES;
            ck_assert_msg(weft_op_check(&o.call, NULL, &choice) == WEFT_OK, "%s",
                          weft_last_error());
            weft_op_choice_release(&choice);
            o.call.flags = 0; /* what was permitted is not kept */
            ck_assert_int_eq(weft_op_check(&o.call, NULL, &choice), WEFT_ERR_INVALID);
            refused++;
        }
        op_text_release(&o);
    }
}

TEST(calls_that_mix_dtypes_are_refused_unless_they_permit_it)
{
    struct wf_rule **rules = calloc(wf_op_builtin_count, sizeof *rules);
    bool *covered = calloc(wf_op_builtin_count, sizeof *covered);

    read_rules(rules);
    for (size_t i = 0; i < WF_COUNT(attr_cases) + WF_COUNT(plain_cases); i++) {
        const struct attr_case *one =
            i < WF_COUNT(attr_cases) ? &attr_cases[i] : &plain_cases[i - WF_COUNT(attr_cases)];
        size_t line = rule_of_case(rules, one);
        int before = refused;
        ck_assert_uint_lt(line, wf_op_builtin_count);
        if (strchr(one->inputs, '(') == NULL || rule_has_name(rules[line], "stack"))
            try_case(rules[line], one);
        covered[line] = covered[line] || refused > before;
    }
    for (size_t i = 0; i < wf_op_builtin_count; i++)
        for (int j = 0; j < rules[i]->input_count; j++)
            ck_assert_msg(covered[i] || rules[i]->slots[j].same == 0,
                          "add a call of this rule to plain_cases: %s", wf_op_builtin[i]);
    free(covered);
    drop_rules(rules);
}

TEST(dtypes_may_differ_where_the_rule_does_not_name_them)
{
    static const struct {
        const char *name, *inputs, *attrs;
    } known[] = {
        {"add", "bf16[4] S(0) ; f32[4] S(0)", ""},
        {"gt", "bf16[4] S(0) ; f32[4] S(0)", ""},
        {"layer_norm", "bf16[4,8] S(0) ; f32[8] R ; f32[8] R", "dims=1"},
        {"embedding", "bf16[8,4] R ; i32[6] S(0)", ""},
        {"where", "bool[4] R ; bf16[4] R ; f32[4] R", ""},
        {"adamw", "bf16[4] S(0) ; f32[4] S(0) ; f32[4] S(0) ; f32[4] S(0) ; f32[] R", ""},
        {"mm_", "f32[4,4] R ; f32[4,4] R", ""},
    };

    for (size_t i = 0; i < WF_COUNT(known); i++) {
        const char *answer = op_check(known[i].name, "2", known[i].inputs, known[i].attrs);
        ck_assert_msg(answer[0] != '!', "%s", answer);
    }
    ck_assert_ptr_nonnull(
        strstr(op_check("mm", "2", "f32[4,4] R ; bf16[4,4] R", ""),
               "! weft_op_check: operator mm: input a is f32, and b is bf16; cast one of them"));
    ck_assert_ptr_nonnull(strstr(op_check("cat", "2", "f32[4] R ; f32[4] R ; f16[4] R", "dim=0"),
                                 "one tensor of x is f32, and another is f16"));
    ck_assert_ptr_nonnull(strstr(
        op_check("foreach_mm", "2", "f32[4,4] R ; f32[4,4] R ; f32[4,4] R ; bf16[4,4] R", ""),
        "input a is f32, and b is bf16"));
}

/* A rule of the program states it by the same clause; parts of a chain and the calls of gradients
 * have the flag of the call. */
TEST(rules_of_the_program_state_their_dtypes)
{
    weft_op_backward *backward = NULL;
    weft_op_choice *choice = NULL;
    op_text o;

    ck_assert_int_eq(weft_op_register("blend: a[..] b[..] m[..] -> c[..]; same a b"), WEFT_OK);
    ck_assert_int_eq(weft_op_register("mlp is linear; relu; linear"), WEFT_OK);
    ck_assert_str_eq(op_check("blend", "2", "f32[4] S(0) ; f32[4] S(0) ; u8[4] S(0)", ""),
                     "S(0) ; S(0) ; S(0) -> S(0)");
    ck_assert_ptr_nonnull(strstr(op_check("blend", "2", "f32[4] R ; f16[4] R ; u8[4] R", ""),
                                 "input a is f32, and b is f16"));
    ck_assert_int_eq(weft_op_register("bad: a[..] b[..] -> c[..]; same a"), WEFT_ERR_PARSE);
    ck_assert_int_eq(weft_op_register("bad: a[..] b[..] -> c[..]; same a b; same a b"),
                     WEFT_ERR_PARSE);
    op_begin(&o, "mlp", "2", "bf16[4,8] S(0) ; f32[6,8] R ; f32[2,6] R", "", NULL);
    ck_assert_int_eq(weft_op_check(&o.call, NULL, &choice), WEFT_ERR_INVALID);
    o.call.flags = WEFT_OP_CALL_MIXED_DTYPES;
    ck_assert_msg(weft_op_check(&o.call, NULL, &choice) == WEFT_OK, "%s", weft_last_error());
    weft_op_choice_release(&choice);
    op_text_release(&o);
    op_begin(&o, "mm", "2", "bf16[4,8] S(0) ; f32[8,6] R", "", NULL);
    ck_assert_int_eq(weft_op_backward_create(&o.call, NULL, &backward), WEFT_ERR_INVALID);
    o.call.flags = WEFT_OP_CALL_MIXED_DTYPES;
    ck_assert_msg(weft_op_backward_create(&o.call, NULL, &backward) == WEFT_OK, "%s",
                  weft_last_error());
    weft_op_backward_release(&backward);
    op_text_release(&o);
    ck_assert_int_eq(weft_op_remove("mlp"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("blend"), WEFT_OK);
}
