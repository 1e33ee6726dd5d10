/* Rules make tensors of tensors: every function puts each element where it says, every element is
 * used once, and the rules that come with weft undo each other. */
#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

enum { MOST = 4096 };

/* A tensor of I32 whose elements count from FIRST on. */
struct given {
    const char *name;
    int32_t first, dims;
    int64_t shape[3];
};

static const struct given givens[] = {
    {"a", 0, 2, {4, 6}},      {"b", 100, 2, {4, 6}},  {"c", 200, 2, {2, 6}},
    {"t", 300, 3, {2, 3, 4}}, {"s.0", 400, 1, {5}},   {"s.1", 500, 1, {5}},
    {"s.2", 600, 1, {5}},     {"point", 700, 0, {0}}, {"empty", 800, 2, {0, 3}}};

static int32_t elements[MOST];

static int64_t count_elements(int32_t dims, const int64_t *shape)
{
    int64_t count = 1;

    for (int32_t d = 0; d < dims; d++)
        count *= shape[d];
    return count;
}

/* Write COUNT tensors, unless they are there. */
static const char *write_given(const char *name, const struct given *list, size_t count)
{
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    const char *path = folder_path(&folder, name);
    weft_checkpoint_writer *writer = NULL;
    weft_checkpoint_entry entries[32];

    for (size_t i = 0; i < count; i++)
        entries[i] =
            (weft_checkpoint_entry){list[i].name, "I32", list[i].dims, list[i].shape, NULL};
    OK(weft_checkpoint_writer_create(path, count, entries, sizeof *entries, &options, &writer));
    for (size_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < count_elements(list[i].dims, list[i].shape); k++)
            elements[k] = list[i].first + k;
        OK(weft_checkpoint_writer_write(writer, i, NULL, NULL, elements));
    }
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    return path;
}

static weft_checkpoint *open_given(void)
{
    weft_checkpoint *in = NULL;

    OK(weft_checkpoint_open(
        write_given("given.safetensors", givens, sizeof givens / sizeof *givens), &in));
    return in;
}

static weft_status map(const weft_checkpoint *in, const char *text, const char *values,
                       weft_checkpoint **out)
{
    OWNED(weft_checkpoint_rules) *rules = NULL;
    weft_status status = weft_checkpoint_rules_parse(text, values, &rules);

    if (status == WEFT_OK) status = weft_checkpoint_map(in, rules, out);
    return status;
}

/* ---- where elements go ---- */

/* Rules, a tensor that they make, its shape as text, and its elements. */
static const struct placed {
    const char *rule, *name, *shape;
    int32_t count, elements[24];
} places[] = {
    {"x = a", "x", "[4,6]", 3, {0, 1, 2}},
    {"x = cat0(c, a)",
     "x",
     "[6,6]",
     14,
     {200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 0, 1}},
    {"x = cat1(a, b)", "x", "[4,12]", 14, {0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 104, 105, 6, 7}},
    {"x = cat0(s.{n})",
     "x",
     "[15]",
     12,
     {400, 401, 402, 403, 404, 500, 501, 502, 503, 504, 600, 601}},
    {"x = stack0(s.{n})", "x", "[3,5]", 6, {400, 401, 402, 403, 404, 500}},
    {"x = stack1(s.{n})", "x", "[5,3]", 7, {400, 500, 600, 401, 501, 601, 402}},
    {"x = interleave0(a, b)",
     "x",
     "[8,6]",
     14,
     {0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 104, 105, 6, 7}},
    {"x = interleave1({a,b})", "x", "[4,12]", 6, {0, 100, 1, 101, 2, 102}},
    {"x = interleave1(a, b, 3)",
     "x",
     "[4,12]",
     13,
     {0, 1, 2, 100, 101, 102, 3, 4, 5, 103, 104, 105, 6}},
    {"x.{l,r} = split1(a)", "x.r", "[4,3]", 4, {3, 4, 5, 9}},
    {"x.{l,r} = split1(a, 2, 4)", "x.l", "[4,2]", 4, {0, 1, 6, 7}},
    {"x.{l,r} = split1(a, 1:2)", "x.r", "[4,4]", 5, {2, 3, 4, 5, 8}},
    {"x.{n} = unstack1(t)", "x.2", "[2,4]", 8, {308, 309, 310, 311, 320, 321, 322, 323}},
    {"x.{n} = unstack2(t)", "x.3", "[2,3]", 6, {303, 307, 311, 315, 319, 323}},
    {"x.{l,r} = deinterleave0(a)", "x.r", "[2,6]", 7, {6, 7, 8, 9, 10, 11, 18}},
    {"x.{l,r} = deinterleave1(a, 1)", "x.r", "[4,3]", 4, {1, 3, 5, 7}},
    {"x = slice0(a, 1:3)\na : drop",
     "x",
     "[2,6]",
     12,
     {6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}},
    {"x = pad0(c, 3)",
     "x",
     "[3,6]",
     18,
     {200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211}},
    {"x = pad1(c, 8)", "x", "[2,8]", 12, {200, 201, 202, 203, 204, 205, 0, 0, 206, 207, 208, 209}},
    {"x = align1(c, 4)", "x", "[2,8]", 9, {200, 201, 202, 203, 204, 205, 0, 0, 206}},
    {"x = transpose(c)", "x", "[6,2]", 6, {200, 206, 201, 207, 202, 208}},
    {"x = transpose(t)", "x", "[2,4,3]", 6, {300, 304, 308, 301, 305, 309}},
    {"x = transpose(t, 2, 0, 1)", "x", "[4,2,3]", 7, {300, 304, 308, 312, 316, 320, 301}},
    {"x = reshape(t, 4, -1)", "x", "[4,6]", 24, {300, 301, 302, 303, 304, 305, 306, 307,
                                                 308, 309, 310, 311, 312, 313, 314, 315,
                                                 316, 317, 318, 319, 320, 321, 322, 323}},
    {"x = reshape(transpose(c), -1)",
     "x",
     "[12]",
     12,
     {200, 206, 201, 207, 202, 208, 203, 209, 204, 210, 205, 211}},
    {"x = reshape(point, 1, 1)", "x", "[1,1]", 1, {700}},
    {"x = reshape(slice0(s.0, 2:3))\ns.0 : drop", "x", "[]", 1, {402}},
    {"x = reshape(empty, 3, 0, 2)", "x", "[3,0,2]", 0, {0}},
    {"x = group1(a, 2)", "x", "[4,2,3]", 7, {0, 1, 2, 3, 4, 5, 6}},
    {"x = flatten1(t)", "x", "[2,12]", 3, {300, 301, 302}},
    {"x = permute_heads(s.0, 1)", NULL, "5 rows are not 1 heads of pairs", 0, {0}},
    {"x = permute_heads(reshape(slice0(t, 0:1), 12), 2)\nt : drop",
     "x",
     "[12]",
     12,
     {300, 302, 304, 301, 303, 305, 306, 308, 310, 307, 309, 311}},
    {"x = unpermute_heads(reshape(slice0(t, 0:1), 12), 2)\nt : drop",
     "x",
     "[12]",
     12,
     {300, 303, 301, 304, 302, 305, 306, 309, 307, 310, 308, 311}},
    {"x = flatten0(cat1(group0({a,c}, 2)))", "x", "[6,6]", 21, {0,   1,   2,   3,   4,  5,   6,
                                                                7,   8,   9,   10,  11, 200, 201,
                                                                202, 203, 204, 205, 12, 13,  14}},
    {"{n}.y = s.{n}", "2.y", "[5]", 5, {600, 601, 602, 603, 604}},
    {"new.* = s.*", "new.1", "[5]", 2, {500, 501}},
    {"x = a\ny = tie(a)", "y", "[4,6]", 3, {0, 1, 2}},
    {"x = tie(a)\ny = a", "x", "[4,6]", 3, {0, 1, 2}},
    {"let two = 2\nx = group1(a, $two)", "x", "[4,2,3]", 2, {0, 1}},
};

static void check_case(const weft_checkpoint *in, const struct placed *c)
{
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
    weft_checkpoint *out = NULL;
    struct wf_text text = {0};
    char rules[300];

    snprintf(rules, sizeof rules, "%s\n* = *\n", c->rule);
    if (c->name == NULL) {
        REFUSED(map(in, rules, NULL, &out), WEFT_ERR_INVALID, c->shape);
        return;
    }
    ck_assert_msg(map(in, rules, NULL, &out) == WEFT_OK, "%s: %s", c->rule, weft_last_error());
    OK(weft_checkpoint_tensor_get(out, tensor_index(out, c->name), &info));
    wf_shape_add_text(info.dims, info.shape, &text);
    ck_assert_msg(strcmp(text.data, c->shape) == 0, "%s: %s", c->rule, text.data);
    wf_text_free(&text);
    memset(elements, -1, sizeof elements);
    OK(weft_checkpoint_read(out, tensor_index(out, c->name), NULL, NULL, elements));
    for (int32_t i = 0; i < c->count; i++)
        ck_assert_msg(elements[i] == c->elements[i], "%s: element %d is %d, not %d", c->rule, i,
                      elements[i], c->elements[i]);
    weft_checkpoint_close(&out);
}

TEST(every_function_puts_elements_in_their_places)
{
    weft_checkpoint *in = open_given();

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        check_case(in, &places[i]);
    weft_checkpoint_close(&in);
}

/* ---- what is refused ---- */

static const struct refused {
    const char *rules;
    weft_status status;
    const char *text;
} wrong[] = {
    {"x = a", WEFT_ERR_NOT_FOUND, "no rule uses tensor \"b\""},
    {"x = slice0(a, 0:3)\n", WEFT_ERR_NOT_FOUND, "no rule uses tensor \"b\""},
    {"x = slice0(a, 0:3)\n{b,c,t,point,empty} : drop\ns.* : drop", WEFT_ERR_INVALID,
     "no rule uses element [3,0] of tensor \"a\""},
    {"x = slice1(a, 2:6)\ny = slice1(a, 0:3)\n{b,c,t,point,empty} : drop\ns.* : drop",
     WEFT_ERR_INVALID,
     "element [0,2] of tensor \"a\" goes to \"x\" (line 1) and to \"y\" (line 2)"},
    {"x = cat0(a, a)\n{b,c,t,point,empty} : drop\ns.* : drop", WEFT_ERR_INVALID,
     "element [0,0] of tensor \"a\" goes to \"x\" (line 1) and to \"x\" (line 1)"},
    {"x = slice0(a, 0:2)\n* = *", WEFT_ERR_INVALID, "goes to \"x\" (line 1) and to \"a\" (line 2)"},
    {"x = tie(a)\n{b,c,t,point,empty} : drop\ns.* : drop", WEFT_ERR_NOT_FOUND,
     "no rule uses tensor \"a\" other than as a tie"},
    {"x = a\nx = b\n* = *", WEFT_ERR_INVALID,
     "line 2: tensor \"x\": tensor \"x\" is made here and in line 1"},
    {"x = z", WEFT_ERR_NOT_FOUND, "line 1: no tensor matches \"z\""},
    {"x = cat0(a, z)", WEFT_ERR_NOT_FOUND, "tensor \"z\" is needed"},
    {"x = cat0(a, t)", WEFT_ERR_INVALID, "part 0 is I32[4,6], but part 1 is I32[2,3,4]"},
    {"x = cat2(a, b)", WEFT_ERR_INVALID, "there is no dimension 2"},
    {"x = {a,b}", WEFT_ERR_INVALID, "has 2 values, but the new name \"x\" has room for 1"},
    {"x.{i}.{j} = a", WEFT_ERR_INVALID, "at most one"},
    {"x.{l,r} = split0(c, 1, 2)", WEFT_ERR_INVALID, "the sizes add up to 3"},
    {"x = split0(a)", WEFT_ERR_INVALID, "the number of parts is not known"},
    {"x.{l,m,r} = split0(a)", WEFT_ERR_INVALID, "4 indices are not 3 equal parts"},
    {"x = slice0(a, 2:5)", WEFT_ERR_INVALID, "dimension 0 has 4"},
    {"x = pad0(a, 3)", WEFT_ERR_INVALID, "cannot be padded to 3"},
    {"x = reshape(a, 5, -1)", WEFT_ERR_INVALID, "24 elements"},
    {"x = transpose(s.0)", WEFT_ERR_INVALID, "cannot be transposed"},
    {"x = transpose(a, 0, 0)", WEFT_ERR_INVALID, "must be listed once"},
    {"x = cat0(cast(a, f32), b)", WEFT_ERR_INVALID, "outermost"},
    {"x = stack0(s.{n}.{m})", WEFT_ERR_NOT_FOUND, "no tensor matches"},
    {"x = stack0({n}.{m})", WEFT_ERR_INVALID, "several captures"},
    {"x = stack0({n})", WEFT_ERR_INVALID, "has no number there"},
    {"x = pad0(a, 9223372036854775807)", WEFT_ERR_INVALID, "more than 2^56 elements"},
    {"x = align0(a, 9223372036854775807)", WEFT_ERR_INVALID, "is not from 1 to 2^31 - 1"},
    {"x = permute_heads(a, 9223372036854775807)", WEFT_ERR_INVALID, "heads of pairs"},
    {"x = interleave0(a, b, 9223372036854775807)", WEFT_ERR_INVALID, "are not groups of"},
    {"x = reshape(a, 9223372036854775807, 9223372036854775807)", WEFT_ERR_INVALID,
     "the sizes must be"},
    {"x.{n} = unstack0(pad0(s.0, 2000000))", WEFT_ERR_UNSUPPORTED, "at most 1048576"},
    {"q : drop", WEFT_ERR_NOT_FOUND, "no tensor matches \"q\""},
    {"x = a\n{n} = {a,b}\na : drop", WEFT_ERR_PARSE, "this rule can never apply"},
    {"x.* = a*\n*a : drop", WEFT_ERR_NOT_FOUND,
     "line 2: no tensor that is left matches \"*a\": line 1 takes \"a\"; put this rule before "
     "line 1"},
    /* the text */
    {"x = ", WEFT_ERR_PARSE, "expected the name of a tensor"},
    {"x", WEFT_ERR_PARSE, "expected = or :"},
    {"x = cut0(a)", WEFT_ERR_PARSE, "\"cut0\" is not a function"},
    {"x = cat(a)", WEFT_ERR_PARSE, "\"cat\" is not a function"},
    {"x = cat0(a", WEFT_ERR_PARSE, "expected , or )"},
    {"x = pad0(a)", WEFT_ERR_PARSE, "pad has 0 numbers; it needs 1"},
    {"x = cast(a)", WEFT_ERR_PARSE, "expected a dtype"},
    {"x = cast(a, f5)", WEFT_ERR_PARSE, "\"f5\" is not a dtype; the dtypes are bool, i8"},
    {"x = a b", WEFT_ERR_PARSE, "expected the end of the line"},
    {"x : lose", WEFT_ERR_PARSE, "expected drop, or cast"},
    {"x.{a = b", WEFT_ERR_PARSE, "has no }"},
    {"x = pad0(a, $n)", WEFT_ERR_PARSE, "gives $n a value"},
    {"let n\nx = pad0(a, $n)", WEFT_ERR_PARSE, "n has no value"},
    {"let n = 1\nlet n = 2", WEFT_ERR_PARSE, "given twice"},
};

TEST(rules_that_do_not_fit_are_refused)
{
    weft_checkpoint *in = open_given(), *out = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(map(in, wrong[i].rules, NULL, &out) == wrong[i].status &&
                          strstr(weft_last_error(), wrong[i].text) != NULL,
                      "%s: %s", wrong[i].rules, weft_last_error());
    }
    REFUSED(map(in, "* = *", "n=1", &out), WEFT_ERR_INVALID, "no line \"let n = ...\"");
    REFUSED(map(in, "* = *", "n", &out), WEFT_ERR_PARSE, "expected =");
    weft_checkpoint_close(&in);
}

TEST(numbers_must_be_complete)
{
    static const struct given gap[] = {{"e.0.w", 0, 1, {2}}, {"e.2.w", 10, 1, {2}}};
    weft_checkpoint *in = NULL, *out = NULL;

    OK(weft_checkpoint_open(write_given("gap.safetensors", gap, 2), &in));
    REFUSED(map(in, "w = stack0(e.{i}.w)", NULL, &out), WEFT_ERR_INVALID,
            "there is no number 1; the next tensor is \"e.2.w\"");
    weft_checkpoint_close(&in);
}

/* Comparing with four stars is stopped. */
TEST(long_names_end)
{
    static char name[3001];
    const struct given given = {name, 0, 1, {2}};
    weft_checkpoint *in = NULL, *out = NULL;

    memset(name, 'a', 3000);
    OK(weft_checkpoint_open(write_given("long.safetensors", &given, 1), &in));
    REFUSED(map(in, "? x = *a*a*a*b\n", NULL, &out), WEFT_ERR_NOT_FOUND, "no rule uses tensor");
    weft_checkpoint_close(&in);
}

TEST(casts_change_floats_only)
{
    static const float values[4] = {1, -2.5F, 3, 1e30F};
    static const uint16_t wanted[4] = {0x3f80, 0xc020, 0x4040, 0x714a};
    weft_checkpoint_entry entries[] = {{"f", "F32", 1, (const int64_t[]){4}, NULL},
                                       {"i", "I32", 1, (const int64_t[]){4}, NULL},
                                       {"k", "F32", 1, (const int64_t[]){4}, NULL}};
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
    const char *path = folder_path(&folder, "floats.safetensors");
    weft_checkpoint *in = NULL, *out = NULL;
    weft_checkpoint_writer *writer = NULL;
    uint16_t got[4];

    OK(weft_checkpoint_writer_create(path, 3, entries, sizeof *entries, NULL, &writer));
    for (size_t i = 0; i < 3; i++)
        OK(weft_checkpoint_writer_write(writer, i, NULL, NULL, values));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    OK(weft_checkpoint_open(path, &in));
    OK(map(in, "* = *\nk : cast f32\n* : cast bf16", NULL, &out));
    OK(weft_checkpoint_read(out, tensor_index(out, "f"), NULL, NULL, got));
    ck_assert_mem_eq(got, wanted, sizeof got);
    OK(weft_checkpoint_tensor_get(out, tensor_index(out, "i"), &info));
    ck_assert_str_eq(info.dtype_name, "I32");
    OK(weft_checkpoint_tensor_get(out, tensor_index(out, "k"), &info));
    ck_assert_str_eq(info.dtype_name, "F32");
    weft_checkpoint_close(&out);
    OK(map(in, "i = cast(i, f64)\n* = *", NULL, &out));
    OK(weft_checkpoint_tensor_get(out, tensor_index(out, "i"), &info));
    ck_assert_str_eq(info.dtype_name, "F64");
    weft_checkpoint_close(&out);
    weft_checkpoint_close(&in);
}

/* ---- the rules that come with weft ---- */

static const struct given model[] = {
    {"model.layers.0.self_attn.q_proj.weight", 0, 2, {12, 5}},
    {"model.layers.0.self_attn.k_proj.weight", 100, 2, {6, 5}},
    {"model.layers.0.self_attn.v_proj.weight", 200, 2, {6, 5}},
    {"model.layers.0.self_attn.q_proj.bias", 300, 1, {12}},
    {"model.layers.0.self_attn.k_proj.bias", 320, 1, {6}},
    {"model.layers.0.self_attn.v_proj.bias", 340, 1, {6}},
    {"model.layers.1.self_attn.q_proj.weight", 400, 2, {12, 5}},
    {"model.layers.1.self_attn.k_proj.weight", 500, 2, {6, 5}},
    {"model.layers.1.self_attn.v_proj.weight", 600, 2, {6, 5}},
    {"model.layers.0.mlp.gate_proj.weight", 700, 2, {7, 5}},
    {"model.layers.0.mlp.up_proj.weight", 800, 2, {7, 5}},
    {"model.layers.1.mlp.experts.0.gate_proj.weight", 900, 2, {3, 5}},
    {"model.layers.1.mlp.experts.1.gate_proj.weight", 920, 2, {3, 5}},
    {"model.layers.1.mlp.experts.2.gate_proj.weight", 940, 2, {3, 5}},
    {"model.layers.1.mlp.experts.0.up_proj.weight", 960, 2, {3, 5}},
    {"model.layers.1.mlp.experts.1.up_proj.weight", 980, 2, {3, 5}},
    {"model.layers.1.mlp.experts.2.up_proj.weight", 1000, 2, {3, 5}},
    {"model.layers.1.mlp.experts.10.up_proj.bias", 1020, 1, {3}},
    {"model.norm.weight", 1040, 1, {5}}};

/* All tensors of MODEL, unless EXCEPT. */
static void check_same(const weft_checkpoint *in, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        int64_t all = count_elements(model[i].dims, model[i].shape);
        OK(weft_checkpoint_read(in, tensor_index(in, model[i].name), NULL, NULL, elements));
        for (int32_t k = 0; k < all; k++)
            ck_assert_msg(elements[k] == model[i].first + k, "%s: %d is %d", model[i].name, k,
                          elements[k]);
    }
}

TEST(bundled_rules_undo_each_other)
{
    static const struct {
        const char *there, *back, *values, *made;
    } pairs[] = {
        {"fuse-qkv", "split-qkv", "heads=4,kv_heads=2", "model.layers.1.self_attn.qkv_proj.weight"},
        {"group-qkv", "ungroup-qkv", "heads=4,kv_heads=2",
         "model.layers.0.self_attn.qkv_proj.bias"},
        {"fuse-gate-up", "split-gate-up", NULL, "model.layers.0.mlp.gate_up_proj.weight"},
        {"stack-experts", "unstack-experts", NULL, "model.layers.1.mlp.experts.up_proj.weight"}};
    struct given list[32];
    size_t count = 0;
    weft_checkpoint *in = NULL;

    for (size_t i = 0; i < sizeof model / sizeof *model; i++)
        if (strstr(model[i].name, ".10.") == NULL) list[count++] = model[i];
    OK(weft_checkpoint_open(write_given("model.safetensors", list, count), &in));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        weft_checkpoint *there = NULL, *back = NULL;
        weft_checkpoint_rules *rules = NULL;
        char path[300];
        snprintf(path, sizeof path, "%s/%s.rules", WEFT_TEST_RULES, pairs[i].there);
        OK(weft_checkpoint_rules_open(path, i == 1 ? "kv_heads=2" : NULL, &rules));
        OK(weft_checkpoint_map(in, rules, &there));
        weft_checkpoint_rules_release(&rules);
        tensor_index(there, pairs[i].made);
        snprintf(path, sizeof path, "%s/%s.rules", WEFT_TEST_RULES, pairs[i].back);
        OK(weft_checkpoint_rules_open(path, pairs[i].values, &rules));
        OK(weft_checkpoint_map(there, rules, &back));
        weft_checkpoint_rules_release(&rules);
        check_same(back, 0, 17);
        check_same(back, 18, 1);
        weft_checkpoint_close(&back);
        weft_checkpoint_close(&there);
    }
    weft_checkpoint_close(&in);
}

TEST(a_part_that_is_missing_is_named)
{
    weft_checkpoint *in = NULL, *out = NULL;

    OK(weft_checkpoint_open(write_given("part.safetensors", model + 1, 2), &in));
    REFUSED(map(in, "*.qkv.weight = cat0(*.{q,k,v}_proj.weight)\n* = *", NULL, &out),
            WEFT_ERR_NOT_FOUND, "tensor \"model.layers.0.self_attn.q_proj.weight\" is needed");
    weft_checkpoint_close(&in);
    OK(weft_checkpoint_open(write_given("part.safetensors", model + 16, 2), &in));
    REFUSED(map(in, "*.experts.{w}.bias = stack0(*.experts.{e}.{w}.bias)\n* = *", NULL, &out),
            WEFT_ERR_INVALID, "there is no number 0");
    weft_checkpoint_close(&in);
}

static weft_status map_and_read(void *argument)
{
    static const char text[] = "x = interleave1({a,b}, 3)\ny.{l,r} = split1(c, 1:5)\n"
                               "z.{n} = unstack0(t)\nv = cast(tie(pad0(s.0, 9)), f32)\n* = *\n";
    weft_checkpoint *out = NULL;
    weft_status status = map(argument, text, NULL, &out);

    if (status == WEFT_OK) {
        size_t index = 0;
        status = weft_checkpoint_find(out, "x", &index);
        if (status == WEFT_OK) status = weft_checkpoint_read(out, index, NULL, NULL, elements);
    }
    weft_checkpoint_close(&out);
    return status;
}

static weft_status map_wrongly(void *argument)
{
    weft_checkpoint *out = NULL;
    weft_status status = map(argument, "x = slice0(a, 0:2)\n* = *", NULL, &out);

    return status == WEFT_ERR_INVALID ? WEFT_OK : status;
}

TEST(memory_may_run_out_anywhere)
{
    weft_checkpoint *in = open_given();

    ALLOCATIONS_FAIL(map_and_read(in), (void)0);
    ALLOCATIONS_FAIL(map_wrongly(in), (void)0);
    weft_checkpoint_close(&in);
}
