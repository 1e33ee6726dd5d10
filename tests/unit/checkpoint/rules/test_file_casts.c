/* Lines that cast: what they cast, and what is said of a line without effect or of another name. */
#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/suite.h"

/* A checkpoint with the floats "f" and "g.k", the integers "step" and "g.n", and the complex "z".
 */
static weft_checkpoint *open_mixed(void)
{
    static const int64_t shape[] = {2};
    static const char zeros[16] = {0};
    weft_checkpoint_entry entries[] = {{"f", "F32", 1, shape, NULL},
                                       {"g.k", "F32", 1, shape, NULL},
                                       {"g.n", "I32", 1, shape, NULL},
                                       {"step", "I64", 1, shape, NULL},
                                       {"z", "C64", 1, shape, NULL}};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    const char *path = folder_path(&folder, "mixed.safetensors");
    weft_checkpoint_writer *writer = NULL;
    weft_checkpoint *in = NULL;

    OK(weft_checkpoint_writer_create(path, 5, entries, sizeof *entries, &options, &writer));
    for (size_t i = 0; i < 5; i++)
        OK(weft_checkpoint_writer_write(writer, i, NULL, NULL, zeros));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    OK(weft_checkpoint_open(path, &in));
    return in;
}

static weft_status map(const weft_checkpoint *in, const char *text, weft_checkpoint **out)
{
    OWNED(weft_checkpoint_rules) *rules = NULL;
    weft_status status = weft_checkpoint_rules_parse(text, NULL, &rules);

    if (status == WEFT_OK) status = weft_checkpoint_map(in, rules, out);
    return status;
}

/* Rules, and the dtypes of "f" and "step" after them. */
static const struct effect {
    const char *rules, *f, *step;
} effects[] = {
    {"* = *\n* : cast bf16", "BF16", "I64"},
    {"* : cast bf16\n* = *", "BF16", "I64"},
    {"* = *\n? step : cast f16", "F32", "I64"},
    {"step = cast(step, f16)\n* = *", "F32", "F16"},
    {"step = cast(step, f16)\n* = *\n* : cast bf16", "BF16", "F16"},
    {"step = cast(step, f16)\n* = *\nstep : cast bf16", "F32", "F16"},
    {"* = *\ng.* : cast F16", "F32", "I64"},
};

TEST(a_line_casts_the_floats_that_it_matches)
{
    weft_checkpoint *in = open_mixed(), *out = NULL;

    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        weft_checkpoint_tensor_info info = {.struct_size = sizeof info};

        ck_assert_msg(map(in, effects[i].rules, &out) == WEFT_OK, "%s: %s", effects[i].rules,
                      weft_last_error());
        OK(weft_checkpoint_tensor_get(out, tensor_index(out, "f"), &info));
        ck_assert_str_eq(info.dtype_name, effects[i].f);
        OK(weft_checkpoint_tensor_get(out, tensor_index(out, "step"), &info));
        ck_assert_str_eq(info.dtype_name, effects[i].step);
        weft_checkpoint_close(&out);
    }
    weft_checkpoint_close(&in);
}

/* Rules of which a line has no effect, and the text. */
static const struct idle {
    const char *rules, *text;
} idles[] = {
    {"* = *\nstep : cast f16",
     "weft_checkpoint_map: rules, line 2: \"step\" casts nothing: such a line casts tensors of "
     "floating point, and \"step\" is I64; to cast \"step\", make it with \"step = cast(step, "
     "f16)\", before line 1 or in its place; a rule that begins with ? may cast none"},
    {"n = step\n* = *\n{n,g.n} : cast F16", "make it with \"g.n = cast(g.n, f16)\", before line 2"},
    {"n = reshape(step, 1, 2)\n* = *\nn : cast bf16", "\"n = cast(..., bf16)\", before line 1"},
    {"* = *\nz : cast f16", "and \"z\" is C64; a rule that begins with ? may cast none"},
    {"* : cast f16",
     "rules, line 1: no new tensor matches \"*\", because no rule makes a tensor of \"f\"; add the "
     "rule \"* = *\" as the last one, which keeps what is left"},
    {"f = f\ng.* : cast f16", "no rule makes a tensor of \"g.k\"; add the rule \"* = *\""},
    {"new = f\nf : cast f16\n* = *",
     "line 2: no new tensor matches \"f\": line 1 makes tensors with other names of \"f\"; a line "
     "with cast matches names of new tensors"},
    {"f : drop\nf : cast f16\n* = *", "line 2: no new tensor matches \"f\": line 1 drops \"f\""},
    {"* = *\nh : cast f16",
     "no new tensor matches \"h\"; a rule that begins with ? may match none"},
};

TEST(a_line_that_casts_nothing_is_refused)
{
    weft_checkpoint *in = open_mixed(), *out = NULL;

    for (size_t i = 0; i < sizeof idles / sizeof *idles; i++)
        REFUSED(map(in, idles[i].rules, &out), WEFT_ERR_NOT_FOUND, idles[i].text);
    weft_checkpoint_close(&in);
}

/* What users of other systems write, and what they mean. */
static const struct {
    const char *theirs, *ours;
} names[] = {{"float16", "f16"},          {"half", "f16"},       {"torch.float16", "f16"},
             {"bfloat16", "bf16"},        {"np.float32", "f32"}, {"torch.bfloat16", "bf16"},
             {"float8_e4m3fn", "f8e4m3"}, {"double", "f64"},     {"Float", "f32"}};

TEST(another_name_of_a_dtype_gives_a_suggestion)
{
    weft_checkpoint_rules *rules = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char line[64], function[64], want[128];

        snprintf(line, sizeof line, "* = *\n* : cast %s", names[i].theirs);
        snprintf(function, sizeof function, "* = cast(*, %s)", names[i].theirs);
        snprintf(want, sizeof want, "\"%s\" is not a dtype; the dtypes are ", names[i].theirs);
        REFUSED(weft_checkpoint_rules_parse(line, NULL, &rules), WEFT_ERR_PARSE, want);
        snprintf(want, sizeof want, "; did you mean %s?", names[i].ours);
        REFUSED(weft_checkpoint_rules_parse(line, NULL, &rules), WEFT_ERR_PARSE, want);
        REFUSED(weft_checkpoint_rules_parse(function, NULL, &rules), WEFT_ERR_PARSE, want);
    }
    REFUSED(weft_checkpoint_rules_parse("* : cast", NULL, &rules), WEFT_ERR_PARSE,
            "expected a dtype, such as bf16, found the end");
    REFUSED(weft_checkpoint_rules_parse("* : cast F8_E8M0", NULL, &rules), WEFT_ERR_PARSE,
            "weft does not cast to F8_E8M0");
}

TEST(errors_name_the_file_of_the_rules_and_the_line)
{
    static const char lines[] = "* = *\n# steps\nh : cast f16\n";
    static const char slices[] = "x = slice0(f, 0:1)\ng.* = g.*\nstep = step\nz = z\n";
    weft_checkpoint *in = open_mixed(), *out = NULL;
    const char *path = folder_path(&folder, "r.rules");
    weft_checkpoint_rules *rules = NULL;
    char want[512];

    folder_write(&folder, "r.rules", lines, strlen(lines));
    OK(weft_checkpoint_rules_open(path, NULL, &rules));
    snprintf(want, sizeof want, "weft_checkpoint_map: %s: rules, line 3: ", path);
    REFUSED(weft_checkpoint_map(in, rules, &out), WEFT_ERR_NOT_FOUND, want);
    weft_checkpoint_rules_release(&rules);
    folder_write(&folder, "r.rules", slices, strlen(slices));
    OK(weft_checkpoint_rules_open(path, NULL, &rules));
    snprintf(want, sizeof want,
             "%s: rules: no rule uses element [1] of tensor \"f\"; line 1 uses others", path);
    REFUSED(weft_checkpoint_map(in, rules, &out), WEFT_ERR_INVALID, want);
    weft_checkpoint_rules_release(&rules);
    weft_checkpoint_close(&in);
}
