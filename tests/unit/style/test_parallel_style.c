/* Styles of tensor parallel: layouts of a module's tensors, what they communicate, and lists. */
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/parallel.h"

#include <string.h>

static weft_mesh *mesh;

static weft_spec *spec_of(const char *text)
{
    weft_spec *spec;

    if (mesh == NULL) ck_assert_int_eq(weft_mesh_parse("dp=2,tp=4", &mesh), WEFT_OK);
    ck_assert_msg(weft_spec_parse(mesh, text, &spec) == WEFT_OK, "%s", weft_last_error());
    return spec;
}

/* The placements of SPEC, with P for P(sum). */
static void print_placements(const weft_spec *spec, char *out)
{
    char text[128], *at = out;

    ck_assert_int_eq(weft_spec_print(spec, text, sizeof text, NULL), WEFT_OK);
    for (const char *c = strchr(text, ' ') + 1; *c != '\0'; c++) {
        *at++ = *c;
        if (strncmp(c, "P(sum)", 6) == 0) c += 5;
    }
    *at = '\0';
}

/* The layouts of PART: "from -> to | gradient from -> gradient to". */
static void check_layouts(const weft_style *style, enum weft_style_part part, const char *tensor,
                          const char *expected)
{
    weft_spec *spec = spec_of(tensor), *out[WEFT_STYLE_LAYOUTS];
    char texts[WEFT_STYLE_LAYOUTS][128], all[600];

    ck_assert_msg(weft_style_layouts(style, part, spec, 1, out) == WEFT_OK, "%s",
                  weft_last_error());
    for (int i = 0; i < WEFT_STYLE_LAYOUTS; i++) {
        print_placements(out[i], texts[i]);
        weft_spec_release(&out[i]);
    }
    snprintf(all, sizeof all, "%s -> %s | %s -> %s", texts[0], texts[1], texts[2], texts[3]);
    ck_assert_str_eq(all, expected);
    weft_spec_release(&spec);
}

#define STYLE(...) (&(weft_style){.struct_size = sizeof(weft_style), __VA_ARGS__})

TEST(column_splits_outputs)
{
    const weft_style *style = STYLE(.kind = WEFT_STYLE_COLUMN);

    check_layouts(style, WEFT_STYLE_WEIGHT, "f32[8,4] R,R", "R,S(0) -> R,S(0) | R,S(0) -> R,S(0)");
    check_layouts(style, WEFT_STYLE_BIAS, "f32[8] R,R", "R,S(0) -> R,S(0) | R,S(0) -> R,S(0)");
    check_layouts(style, WEFT_STYLE_INPUT, "f32[2,6,4] S(0),R",
                  "S(0),R -> S(0),R | S(0),P -> S(0),R");
    check_layouts(style, WEFT_STYLE_OUTPUT, "f32[2,6,8] S(0),R",
                  "S(0),S(2) -> S(0),S(2) | S(0),S(2) -> S(0),S(2)");
    check_layouts(STYLE(.kind = WEFT_STYLE_COLUMN, .given = "S(1)"), WEFT_STYLE_INPUT,
                  "f32[2,6,4] S(0),R", "S(0),S(1) -> S(0),R | S(0),P -> S(0),S(1)");
    check_layouts(STYLE(.kind = WEFT_STYLE_COLUMN, .embedding = true), WEFT_STYLE_WEIGHT,
                  "f32[8,4] R,R", "R,S(1) -> R,S(1) | R,S(1) -> R,S(1)");
}

TEST(row_splits_inputs)
{
    const weft_style *style = STYLE(.kind = WEFT_STYLE_ROW);

    check_layouts(style, WEFT_STYLE_WEIGHT, "f32[8,4] R,R", "R,S(1) -> R,S(1) | R,S(1) -> R,S(1)");
    check_layouts(style, WEFT_STYLE_BIAS, "f32[8] R,R", "R,R -> R,R | R,P -> R,R");
    check_layouts(style, WEFT_STYLE_INPUT, "f32[6,4] S(0),R",
                  "S(0),S(1) -> S(0),S(1) | S(0),S(1) -> S(0),S(1)");
    check_layouts(style, WEFT_STYLE_OUTPUT, "f32[6,8] S(0),R",
                  "S(0),P -> S(0),R | S(0),R -> S(0),R");
    check_layouts(STYLE(.kind = WEFT_STYLE_ROW, .passed = "S(1)"), WEFT_STYLE_OUTPUT,
                  "f32[2,6,8] S(0),R", "S(0),P -> S(0),S(1) | S(0),S(1) -> S(0),R");
    check_layouts(STYLE(.kind = WEFT_STYLE_ROW, .embedding = true), WEFT_STYLE_WEIGHT,
                  "f32[8,4] R,R", "R,S(0) -> R,S(0) | R,S(0) -> R,S(0)");
    check_layouts(STYLE(.kind = WEFT_STYLE_ROW, .embedding = true), WEFT_STYLE_INPUT,
                  "i32[2,6] S(0),R", "S(0),R -> S(0),R | S(0),P -> S(0),R");
}

TEST(sequence_loss_and_placed)
{
    check_layouts(STYLE(.kind = WEFT_STYLE_SEQUENCE), WEFT_STYLE_WEIGHT, "f32[8] R,R",
                  "R,R -> R,R | R,P -> R,R");
    check_layouts(STYLE(.kind = WEFT_STYLE_SEQUENCE), WEFT_STYLE_INPUT, "f32[2,6,8] S(0),R",
                  "S(0),S(1) -> S(0),S(1) | S(0),S(1) -> S(0),S(1)");
    check_layouts(STYLE(.kind = WEFT_STYLE_SEQUENCE, .sequence_dim = 2), WEFT_STYLE_OUTPUT,
                  "f32[2,6,8] R,R", "R,S(2) -> R,S(2) | R,S(2) -> R,S(2)");
    check_layouts(STYLE(.kind = WEFT_STYLE_LOSS), WEFT_STYLE_INPUT, "f32[6,8] S(0),R",
                  "S(0),S(1) -> S(0),S(1) | S(0),S(1) -> S(0),S(1)");
    check_layouts(STYLE(.kind = WEFT_STYLE_LOSS), WEFT_STYLE_OUTPUT, "f32[] R,R",
                  "R,P -> R,R | R,R -> R,R");
    check_layouts(STYLE(.kind = WEFT_STYLE_PLACED, .given = "S(1)", .passed = "R"),
                  WEFT_STYLE_INPUT, "f32[2,6] S(0),R", "S(0),S(1) -> S(0),R | S(0),P -> S(0),S(1)");
}

/* ---- what a column and a row module communicate along the axis ---- */

static void count_move(const weft_spec *from, const weft_spec *to, uint32_t *kinds)
{
    OWNED(weft_plan) *plan = NULL;
    weft_plan_info info = {.struct_size = sizeof info};

    ck_assert_msg(weft_plan_create(from, to, NULL, &plan) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    for (uint32_t i = 0; i < info.steps; i++) {
        weft_plan_step_info step = {.struct_size = sizeof step};
        ck_assert_int_eq(weft_plan_step_get(plan, i, &step), WEFT_OK);
        kinds[step.kind]++;
    }
}

static void count_part(const weft_style *style, enum weft_style_part part, const char *tensor,
                       bool backward, uint32_t *kinds)
{
    weft_spec *spec = spec_of(tensor), *out[WEFT_STYLE_LAYOUTS];

    ck_assert_int_eq(weft_style_layouts(style, part, spec, 1, out), WEFT_OK);
    count_move(out[WEFT_STYLE_FROM], out[WEFT_STYLE_TO], kinds);
    if (backward) count_move(out[WEFT_STYLE_GRADIENT_FROM], out[WEFT_STYLE_GRADIENT_TO], kinds);
    for (int i = 0; i < WEFT_STYLE_LAYOUTS; i++)
        weft_spec_release(&out[i]);
    weft_spec_release(&spec);
}

/* An input that needs no gradient, as in the published counts. */
static void count_mlp(const weft_style *first, const weft_style *second, uint32_t *kinds)
{
    count_part(first, WEFT_STYLE_INPUT, "f32[4,64,64] S(0),R", false, kinds);
    count_part(first, WEFT_STYLE_OUTPUT, "f32[4,64,256] S(0),R", true, kinds);
    count_part(second, WEFT_STYLE_INPUT, "f32[4,64,256] S(0),R", true, kinds);
    count_part(second, WEFT_STYLE_OUTPUT, "f32[4,64,64] S(0),R", true, kinds);
}

TEST(modules_communicate_no_more_than_published)
{
    uint32_t plain[32] = {0}, sequence[32] = {0};

    count_mlp(STYLE(.kind = WEFT_STYLE_COLUMN), STYLE(.kind = WEFT_STYLE_ROW), plain);
    ck_assert_uint_eq(plain[WEFT_STEP_ALL_REDUCE], 1);
    ck_assert_uint_eq(plain[WEFT_STEP_ALL_GATHER] + plain[WEFT_STEP_REDUCE_SCATTER], 0);
    count_mlp(STYLE(.kind = WEFT_STYLE_COLUMN, .given = "S(1)"),
              STYLE(.kind = WEFT_STYLE_ROW, .passed = "S(1)"), sequence);
    ck_assert_uint_eq(sequence[WEFT_STEP_ALL_GATHER], 2);
    ck_assert_uint_eq(sequence[WEFT_STEP_REDUCE_SCATTER], 1);
    ck_assert_uint_eq(sequence[WEFT_STEP_ALL_REDUCE], 0);
}

static void refuse(const weft_style *style, enum weft_style_part part, const char *tensor,
                   int32_t axis, const char *text)
{
    weft_spec *spec = spec_of(tensor), *out[WEFT_STYLE_LAYOUTS] = {0};

    ck_assert_int_ne(weft_style_layouts(style, part, spec, axis, out), WEFT_OK);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
    ck_assert_ptr_null(out[0]);
    weft_spec_release(&spec);
}

TEST(styles_that_do_not_fit_are_refused)
{
    refuse(STYLE(.kind = WEFT_STYLE_ROW), WEFT_STYLE_WEIGHT, "f32[8] R,R", 1,
           "the weight has 1 dimension; a column or row style needs 2");
    refuse(STYLE(.kind = WEFT_STYLE_SEQUENCE), WEFT_STYLE_INPUT, "f32[8] R,R", 1, "no dimension");
    refuse(STYLE(.kind = WEFT_STYLE_LOSS), WEFT_STYLE_INPUT, "f32[] R,R", 1, "the last one");
    refuse(STYLE(.kind = WEFT_STYLE_PLACED), WEFT_STYLE_INPUT, "f32[8] R,R", 1, "needs `passed`");
    refuse(STYLE(.kind = WEFT_STYLE_PLACED, .passed = "S(3)"), WEFT_STYLE_INPUT, "f32[8] R,R", 1,
           "weft_style_layouts");
    refuse(STYLE(.kind = 9), WEFT_STYLE_INPUT, "f32[8] R,R", 1, "kind 9");
    refuse(STYLE(.kind = WEFT_STYLE_ROW), WEFT_STYLE_INPUT, "f32[8] R,R", 2, "axis is 2");
}

/* ---- lists ---- */

static const char *const list = "# styles\n"
                                "mesh dp=2,tp=4\n"
                                "x             dp S(0)\n"
                                "*.q.weight    tp column   # columns\n"
                                "*.o.weight    tp row\n"
                                "*.embed       1  row(embedding)\n"
                                "*.weight      dp S(1)\n"
                                "x*            tp sequence(2)\n"
                                "logits        tp loss\r\n";

static void check_apply(const weft_styles *styles, const char *name, enum weft_style_part part,
                        const char *tensor, const char *expected)
{
    OWNED(weft_spec) *spec = spec_of(tensor), *out = NULL;
    char text[128];

    ck_assert_msg(weft_styles_apply(styles, name, part, spec, &out) == WEFT_OK, "%s",
                  weft_last_error());
    print_placements(out, text);
    ck_assert_str_eq(text, expected);
}

TEST(a_list_gives_layouts_by_name_and_axis)
{
    OWNED(weft_styles) *styles = NULL;
    const char *pattern;

    ck_assert_msg(weft_styles_parse(list, NULL, &styles) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_mesh_size(weft_styles_mesh(styles)), 8);
    check_apply(styles, "layers.0.q.weight", WEFT_STYLE_WEIGHT, "f32[8,8] R,R", "S(1),S(0)");
    check_apply(styles, "layers.0.o.weight", WEFT_STYLE_WEIGHT, "f32[8,8] R,R", "S(1),S(1)");
    check_apply(styles, "m.embed", WEFT_STYLE_WEIGHT, "f32[8,8] R,R", "R,S(0)");
    check_apply(styles, "x", WEFT_STYLE_OUTPUT, "f32[2,4,8] R,R", "S(0),S(2)");
    check_apply(styles, "logits", WEFT_STYLE_OUTPUT, "f32[2,8] R,R", "R,S(1)");
    check_apply(styles, "other", WEFT_STYLE_OUTPUT, "f32[2,8] R,P", "R,P");
    ck_assert_int_eq(weft_styles_find(styles, "a.q.weight", 1, &pattern), WEFT_OK);
    ck_assert_str_eq(pattern, "*.q.weight");
    ck_assert_int_eq(weft_styles_find(styles, "a.q.weight", 0, &pattern), WEFT_OK);
    ck_assert_str_eq(pattern, "*.weight");
    ck_assert_int_eq(weft_styles_find(styles, "logits", 0, &pattern), WEFT_ERR_NOT_FOUND);
}

/* One size for each of 32 ranks: the text of the placement has 164 bytes. */
TEST(placements_may_be_long)
{
    static const char tensor[] = "f32[160032] R";
    weft_spec *spec = NULL, *want = NULL, *styled = NULL, *out[WEFT_STYLE_LAYOUTS];
    char placed[256] = "G(0;", text[320];
    OWNED(weft_styles) *styles = NULL;

    for (int i = 0; i < 32; i++)
        strcat(placed, i == 0 ? "5001" : ",5001");
    strcat(placed, ")");
    snprintf(text, sizeof text, "mesh tp=32\nw tp %s\n", placed);
    ck_assert_msg(weft_styles_parse(text, NULL, &styles) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_spec_parse(weft_styles_mesh(styles), tensor, &spec), WEFT_OK);
    ck_assert_msg(weft_spec_with(spec, placed, &want) == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(weft_styles_apply(styles, "w", WEFT_STYLE_WEIGHT, spec, &styled) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_ptr_eq(styled, want);
    ck_assert_msg(
        weft_style_layouts(STYLE(.kind = WEFT_STYLE_PLACED, .passed = placed, .given = "R"),
                           WEFT_STYLE_WEIGHT, spec, 0, out) == WEFT_OK,
        "%s", weft_last_error());
    ck_assert_ptr_eq(out[WEFT_STYLE_FROM], spec);
    ck_assert_ptr_eq(out[WEFT_STYLE_TO], want);
    for (int i = 0; i < WEFT_STYLE_LAYOUTS; i++)
        weft_spec_release(&out[i]);
    weft_spec_release(&styled);
    weft_spec_release(&want);
    weft_spec_release(&spec);
}

static void refuse_text(const char *text, const char *expected)
{
    weft_styles *styles = NULL;

    ck_assert_int_eq(weft_styles_parse(text, NULL, &styles), WEFT_ERR_PARSE);
    ck_assert_msg(strstr(weft_last_error(), expected) != NULL, "%s", weft_last_error());
    ck_assert_ptr_null(styles);
}

TEST(malformed_lists_are_refused_with_the_line)
{
    refuse_text("", "no line gives the mesh, such as \"mesh dp=2,tp=4\"");
    refuse_text("x dp S(0)\n", "styles line 1: expected the mesh");
    refuse_text("msh dp=2\n", "found \"msh dp=2\"");
    refuse_text("mesh dp=2\n\nx tp S(0)\n", "styles line 3");
    refuse_text("mesh dp=2\nx dp\n",
                "styles line 2: expected a pattern, an axis and a style; found \"x dp\"");
    refuse_text("mesh dp=2\nx dp rows\n", "found \"rows\": did you mean row?");
    refuse_text("mesh dp=2\nx dp ColwiseParallel()\n", "did you mean column?");
    refuse_text("mesh dp=2\nx dp P(mean)\n", "did you mean P(avg)?");
    refuse_text("mesh dp=2\nx dp sequence(0)\n", "found \"sequence(0)\"");
    refuse_text("mesh dp=2\nx dp S(0),S(1)\n", "styles line 2");
    refuse_text("mesh dp=2,tp=2\nx* dp S(0)\nx.* tp row\nx.w 0 R\n",
                "styles line 4: pattern x.w decides nothing: the pattern x* of line 2 matches all "
                "its names on the same axis; put this line before line 2, or remove it");
}

TEST(no_allocation_failure_leaks)
{
    weft_styles *styles = NULL;

    (void)ALLOCATIONS_FAIL(weft_styles_parse(list, NULL, &styles), weft_styles_release(&styles));
}
