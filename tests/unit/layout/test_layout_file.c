#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

#include <sys/stat.h>
#include <unistd.h>

static weft_layout_file *layout;

static weft_status parse(const char *text)
{
    weft_layout_file_release(&layout);
    return weft_layout_file_parse(text, NULL, &layout);
}

static const char *placements_of(const char *name)
{
    const char *placements = NULL;

    OK(weft_layout_file_find(layout, name, &placements));
    return placements;
}

TEST(the_first_pattern_that_matches_decides)
{
    const char *placements;
    char text[32];

    OK(parse("# Llama\n\nmesh tp=4   # ranks\r\n"
             "*.q_proj.weight   S(0)\r\n"
             "model.*.mlp.*_proj.weight S(1) # not all\n"
             "  exact\tR\n"
             "a*b*c   SS(0,2)\n"
             "model.* R"));
    OK(weft_mesh_print(weft_layout_file_mesh(layout), text, sizeof text, NULL));
    ck_assert_str_eq(text, "tp=4");
    ck_assert_str_eq(placements_of("model.layers.0.self_attn.q_proj.weight"), "S(0)");
    ck_assert_str_eq(placements_of("model.layers.0.mlp.up_proj.weight"), "S(1)");
    ck_assert_str_eq(placements_of("exact"), "R");
    ck_assert_str_eq(placements_of("abbbcc"), "SS(0,2)");
    ck_assert_str_eq(placements_of("model."), "R");
    REFUSED(weft_layout_file_find(layout, "exactly", &placements), WEFT_ERR_NOT_FOUND,
            "no pattern of the layout matches tensor \"exactly\"");
    REFUSED(weft_layout_file_find(layout, "abd", &placements), WEFT_ERR_NOT_FOUND, "\"abd\"");
    REFUSED(weft_layout_file_find(layout, "", &placements), WEFT_ERR_NOT_FOUND, "\"\"");
}

TEST(wrong_layouts_are_refused_with_their_line)
{
    REFUSED(parse(""), WEFT_ERR_PARSE, "expected the mesh, such as \"mesh tp=4\", found the end");
    REFUSED(parse("* R"), WEFT_ERR_PARSE, "expected the mesh");
    REFUSED(parse("meshtp=4"), WEFT_ERR_PARSE, "expected the mesh");
    REFUSED(parse("mesh tp=x\n* R"), WEFT_ERR_PARSE, "layout \"mesh tp=x\", position 6");
    REFUSED(parse("mesh tp=4\n*"), WEFT_ERR_PARSE, "line 2 \"*\", position 2: expected placements");
    REFUSED(parse("mesh tp=4\n# c\n* S(0),R\n"), WEFT_ERR_PARSE, "line 3 \"* S(0),R\", position 3");
    REFUSED(parse("mesh dp=2,tp=4\n* S(0)\n"), WEFT_ERR_PARSE,
            "1 placement, but the mesh dp=2,tp=4 has 2 axes (dp, tp)");
    REFUSED(parse("mesh dp=2,tp=4\n* S(0),R,P(mean)\n"), WEFT_ERR_PARSE,
            "3 placements, but the mesh dp=2,tp=4 has 2 axes (dp, tp)");
    REFUSED(parse("mesh dp=2\n* Shard(0)\n"), WEFT_ERR_PARSE, "did you mean S(0)?");
    REFUSED(parse("mesh tp=4\n* P\n"), WEFT_ERR_PARSE, "a checkpoint has no partial placement");
    REFUSED(parse("mesh tp=4\na.*.w R\nb R\na.*x*.w S(0)\n"), WEFT_ERR_PARSE,
            "line 4 \"a.*x*.w S(0)\", position 1: pattern a.*x*.w decides nothing: the pattern "
            "a.*.w of line 2 matches all its names; put this line before line 2");
    REFUSED(parse("mesh tp=4\n* R\nb S(0)\n"), WEFT_ERR_PARSE, "pattern b decides nothing");
    REFUSED(parse("mesh tp=4\nb R\nb S(0)\n* R"), WEFT_ERR_PARSE,
            "pattern b decides nothing: the pattern b of line 2 matches all its names");
    ck_assert_ptr_null(layout);
}

TEST(patterns_alone_need_the_mesh_of_the_program)
{
    weft_mesh *mesh = NULL;

    OK(weft_mesh_parse("dp=2,tp=2", &mesh));
    weft_layout_file_release(&layout);
    OK(weft_layout_file_parse("# no mesh\nmeshes R,R\n* S(0),R\n", mesh, &layout));
    ck_assert_ptr_eq(weft_layout_file_mesh(layout), mesh);
    ck_assert_str_eq(placements_of("meshes"), "R,R");
    ck_assert_str_eq(placements_of("a"), "S(0),R");
    weft_layout_file_release(&layout);
    REFUSED(weft_layout_file_parse("# nothing\n", mesh, &layout), WEFT_ERR_PARSE,
            "expected the mesh");
    REFUSED(weft_layout_file_parse("* S(0)\n", mesh, &layout), WEFT_ERR_PARSE, "1 placement");
    weft_mesh_release(&mesh);
}

TEST(another_mesh_takes_the_place)
{
    OWNED(weft_mesh) *mesh = NULL, *two = NULL;

    OK(weft_mesh_parse("tp=8", &mesh));
    OK(weft_mesh_parse("2x4", &two));
    OK(weft_layout_file_parse("mesh tp=4\n* R", mesh, &layout));
    ck_assert_ptr_eq(weft_layout_file_mesh(layout), mesh);
    weft_layout_file_release(&layout);
    REFUSED(weft_layout_file_parse("mesh tp=4\n* R", two, &layout), WEFT_ERR_INVALID,
            "the mesh tp=4 of the layout has 1 axis, and the mesh 2x4, which replaces it, 2; it "
            "must have as many");
}

TEST(files_are_read)
{
    OK(weft_layout_file_open(folder_write(&folder, "l", "mesh 2\n* R\n", 11), NULL, &layout));
    ck_assert_str_eq(placements_of("any"), "R");
    weft_layout_file_release(&layout);
    REFUSED(weft_layout_file_open(folder_write(&folder, "m", "mesh 2\n* X\n", 11), NULL, &layout),
            WEFT_ERR_PARSE, "line 2");
    REFUSED(weft_layout_file_open(folder_write(&folder, "n", "mesh\0 2", 7), NULL, &layout),
            WEFT_ERR_PARSE, "is not a layout file");
    REFUSED(weft_layout_file_open(folder_path(&folder, "none"), NULL, &layout), WEFT_ERR_NOT_FOUND,
            "none: No such file");
}

/* Change to the test's folder while a name is looked up. */
static weft_status open_here(const char *name)
{
    char before[4096];
    weft_status status;

    weft_layout_file_release(&layout);
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(folder_path(&folder, ".")), 0);
    status = weft_layout_file_open(name, NULL, &layout);
    ck_assert_int_eq(chdir(before), 0);
    return status;
}

TEST(layouts_that_come_with_weft_are_found_by_name)
{
    OK(open_here("llama"));
    ck_assert_str_eq(placements_of("model.layers.0.self_attn.q_proj.weight"), "S(0)");
    OK(open_here("gpt2.layout"));
    ck_assert_str_eq(placements_of("h.0.attn.c_attn.bias"), "SS(0,3)");
    ck_assert_int_eq(mkdir(folder_path(&folder, "llama"), 0700), 0);
    OK(open_here("llama")); /* a checkpoint of that name does not hide it */
    folder_write(&folder, "qwen", "mesh 2\n* R\n", 11);
    OK(open_here("qwen")); /* a file does */
    ck_assert_str_eq(placements_of("any"), "R");
    REFUSED(open_here("lama"), WEFT_ERR_NOT_FOUND,
            "lama: No such file or directory; nor is it one of those that come with weft: chatglm, "
            "gpt2, llama,");
    REFUSED(open_here("./gpt2"), WEFT_ERR_NOT_FOUND, "./gpt2: No such file or directory");
    REFUSED(open_here(""), WEFT_ERR_NOT_FOUND, "No such file");
}

TEST(patterns_may_have_lists)
{
    OK(parse("mesh 2\n*.{q,k}_proj.{weight,bias} S(0)\nx{,.y} S(1)\n* R"));
    ck_assert_str_eq(placements_of("a.q_proj.weight"), "S(0)");
    ck_assert_str_eq(placements_of("a.k_proj.bias"), "S(0)");
    ck_assert_str_eq(placements_of("a.v_proj.bias"), "R");
    ck_assert_str_eq(placements_of("x"), "S(1)");
    ck_assert_str_eq(placements_of("x.y"), "S(1)");
    REFUSED(parse("mesh 2\n*.{q} R"), WEFT_ERR_PARSE,
            "line 2 \"*.{q} R\", position 1: in pattern *.{q}, { begins a list such as {q,k,v}");
    REFUSED(parse("mesh 2\n*.{q,k R"), WEFT_ERR_PARSE, "{ begins a list");
    REFUSED(parse("mesh 2\n*.k R\n*.{q,k} R"), WEFT_ERR_PARSE,
            "pattern *.k decides nothing: the pattern *.k of line 2 matches all its names");
    REFUSED(parse("mesh 2\n{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} R"), WEFT_ERR_PARSE,
            "the lists stand for more than 256 patterns");
}

TEST(sizes_may_be_numbers_of_the_model)
{
    OK(parse("mesh tp=4\na B(0; $heads*$head_dim*2, 3, $x)\nb SS(0,$n)"));
    ck_assert_str_eq(placements_of("a"), "B(0; $heads*$head_dim*2, 3, $x)");
    REFUSED(parse("mesh tp=4\na B(0; $, 3)"), WEFT_ERR_PARSE, "expected a name after $");
    REFUSED(parse("mesh tp=4\na B(0; $x*, 3)"), WEFT_ERR_PARSE, "a number or $ and a name");
    REFUSED(parse("mesh tp=4\na B(0; $x"), WEFT_ERR_PARSE, "position");
}

TEST(a_line_may_say_how_large_heads_are)
{
    const char *size;
    int32_t dim;

    OK(parse("mesh tp=4\na S(0)  heads0($head_dim*3) # whole\n"
             "{b,c} B(1; $heads, 3) heads1(128)\nd SS(0,$heads)"));
    ck_assert_str_eq(placements_of("a"), "S(0)");
    ck_assert_str_eq(placements_of("c"), "B(1; $heads, 3)");
    ck_assert_str_eq(placements_of("d"), "SS(0,$heads)");
    OK(weft_layout_file_heads(layout, "a", &dim, &size));
    ck_assert_int_eq(dim, 0);
    ck_assert_str_eq(size, "$head_dim*3");
    OK(weft_layout_file_heads(layout, "c", &dim, &size));
    ck_assert_int_eq(dim, 1);
    ck_assert_str_eq(size, "128");
    OK(weft_layout_file_heads(layout, "d", &dim, &size));
    ck_assert_int_eq(dim, 0);
    ck_assert_str_eq(size, "");
    REFUSED(weft_layout_file_heads(layout, "e", &dim, &size), WEFT_ERR_NOT_FOUND,
            "weft_layout_file_heads: no pattern of the layout matches tensor \"e\"");
    REFUSED(parse("mesh tp=4\na S(0) heads($head_dim)"), WEFT_ERR_PARSE,
            "line 2 \"a S(0) heads($head_dim)\", position 3: behind placements, expected heads, a "
            "dimension and a size, such as heads0($head_dim)");
    REFUSED(parse("mesh tp=4\na S(0) heads0(8"), WEFT_ERR_PARSE, "behind placements");
    REFUSED(parse("mesh tp=4\na S(0) heads"), WEFT_ERR_PARSE, "behind placements");
    REFUSED(parse("mesh tp=4\na S(0) heads9(8)"), WEFT_ERR_PARSE, "behind placements");
    REFUSED(parse("mesh tp=4\na S(0) heads0()"), WEFT_ERR_PARSE, "behind placements");
    REFUSED(parse("mesh tp=4\na S(0) heads0(x)"), WEFT_ERR_PARSE, "such as 128 or $head_dim");
    REFUSED(parse("mesh tp=4\na S(0) heads0(x$n)"), WEFT_ERR_PARSE,
            "position 3: heads0(x$n): expected a number from 1");
    REFUSED(parse("mesh tp=4\na S(0) heads0(2*3)"), WEFT_ERR_PARSE, "heads0(2*3): expected");
    OK(parse("mesh tp=4\na B(1; 3*$kv, 2) heads1(2*$head_dim*3)"));
    OK(weft_layout_file_heads(layout, "a", &dim, &size));
    ck_assert_str_eq(size, "2*$head_dim*3");
    REFUSED(parse("mesh tp=4\na S(0) heads0(0)"), WEFT_ERR_PARSE, "expected a number from 1");
    REFUSED(parse("mesh tp=4\na S(0) heads0(8,8)"), WEFT_ERR_PARSE, "expected a number from 1");
}

TEST(allocation_failures_are_reported)
{
    ALLOCATIONS_FAIL(weft_layout_file_parse("mesh tp=4\nb S(0) heads0($x)\n", NULL, &layout),
                     weft_layout_file_release(&layout));
    ALLOCATIONS_FAIL(weft_layout_file_parse("mesh tp=4\na R\nb S(0)\n", NULL, &layout),
                     weft_layout_file_release(&layout));
}
