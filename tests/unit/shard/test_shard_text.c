#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

TEST(every_form_reads_and_prints)
{
    static const struct {
        const char *mesh, *text, *printed; /* NULL: as read */
    } cases[] = {
        {"2x4", "f32[4096,4096] S(0),R", NULL},
        {"2x4", "f32[4096,4096] S(0)[1],S(0)[0]", NULL},
        {"2x4", "f32[4096,4096] S(0)[0],S(0)[1]", "f32[4096,4096] S(0),S(0)"},
        {"2x4", "f32[8] SS(0,4)[1],S(0)[0]", NULL},
        {"2", "bf16[8] P", "bf16[8] P(sum)"},
        {"2x2x2x2", "f64[8] P(avg),R,P(sum),S(0)", NULL},
        {"2", "i64[8] P(min)", NULL},
        {"2", "i64[8] P(max)", NULL},
        {"2", "i64[8] P(prod)", NULL},
        {"2", "f8e4m3[1,2,3] SS(2,2)", NULL},
        {"2", "f32[8] SS(0,1)", "f32[8] S(0)"},
        {"2", "bool[] R", NULL},
        {"2", "c64[0] S(0)", NULL},
        {"2", "u8[1,1,1,1,1,1,1,1] S(7)", NULL},
        {"2", "u8[9] SS(0,9223372036854775807)", NULL},
        {"2", "f32[6144,8] B(0;4096,1024,1024)", NULL},
        {"2x4", "f32[8,7] R,G(1;3,3,1,0)", NULL},
        {"2x2", "f32[8] B(0;3,1)[1],S(0)[0]", NULL},
        {"2x4", "f32[8] O(1),O(3)", NULL},
        {"2", "f32[] O(1)", NULL},
        {"2x4", "f32[8] B ( 0 ; 5 , 3 ) , O ( 0 )", "f32[8] B(0;5,3),O(0)"},
        {"2x2", "\t f32 [ 4 , 6 ]  SS ( 0 , 2 ) [ 1 ] , S ( 0 ) [ 0 ] ",
         "f32[4,6] SS(0,2)[1],S(0)[0]"},
    };
    char text[128];

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_spec) *spec = spec_of(cases[i].mesh, cases[i].text), *again = NULL;
        ck_assert_int_eq(weft_spec_print(spec, text, sizeof text, NULL), WEFT_OK);
        ck_assert_str_eq(text, cases[i].printed != NULL ? cases[i].printed : cases[i].text);
        ck_assert_int_eq(weft_spec_parse(weft_spec_mesh(spec), text, &again), WEFT_OK);
        ck_assert_ptr_eq(again, spec);
    }
}

static const struct {
    const char *text, *error;
} wrong_texts[] = {
    {"", "position 1: expected a dtype such as f32, found the end"},
    {"S(0)",
     "position 1: expected a dtype and a shape first, as in f32[4096,4096] S(0), found 'S'"},
    {"R,S(0)", "position 1: expected a dtype and a shape first, as in f32[4096,4096] S(0)"},
    {"f31[8] R,R", "position 1: \"f31\" is not a dtype; the dtypes are bool, i8, "},
    {"float32[8] R,R", "\"float32\" is not a dtype; the dtypes are bool, i8, u8, i16, u16, "},
    {"float32[8] R,R", "c128; did you mean f32?"},
    {"f32", "position 4: expected '[', found the end"},
    {"f32[8 R,R", "position 7: expected ']', found 'R'"},
    {"f32[8x4] R,R", "position 6: sizes in brackets are separated by ',', as in [4,6]"},
    {"f32[8,] R,R", "position 7: expected the size of a dimension, found ']'"},
    {"f32[-1] R,R", "position 5: expected the size of a dimension, found '-'"},
    {"f32[9223372036854775808] R,R", "position 5: the size of a dimension must be at most"},
    {"f32[1,1,1,1,1,1,1,1,1] R,R", "position 21: a dimension beyond the 8"},
    {"f32[8]", "position 7: expected one of the placements R, S(dim), SS(dim,factor), "
               "B(dim;sizes), G(dim;sizes), P(op) and O(coordinate), "
               "found the end"},
    {"f32[8] R", "position 9: 1 placement, but the mesh "},
    {"f32[8] R", " has 2 axes; write one placement for each axis, R for those that do not split"},
    {"f32[8] R,R,R", "position 12: 3 placements, but the mesh "},
    {"f32[8] R,R,G(0;4,4),R", ": 4 placements, but the mesh "},
    {"f32[8] R,Q", "position 10: \"Q\" is not a placement; the placements are R, S(dim), "},
    {"f32[8] dp:S(0),R", "position 8: placements go in the order of the axes, without their names"},
    {"f32[8] Shard(0),R", "position 8: \"Shard\" is not a placement; the placements are R, "},
    {"f32[8] Shard(0),R", "O(coordinate); did you mean S(0)?"},
    {"f32[8] Shard(dim=1),R", "did you mean S(1)?"},
    {"f32[8] shard,R", "did you mean S(dim)?"},
    {"f32[8] s(0),R", "did you mean S(0)?"},
    {"f32[8] R,Replicate()", "position 10: \"Replicate\" is not a placement"},
    {"f32[8] R,Replicate()", "did you mean R?"},
    {"f32[8] Partial(),R", "did you mean P?"},
    {"f32[8] _StridedShard(0, split_factor=2),R", "did you mean SS(0,2)?"},
    {"f32[8] S0,R", "\"S0\" is not a placement"},
    {"f32[8] S0,R", "did you mean S(0)?"},
    {"f32[8] R,", "position 10: expected one of the placements"},
    {"f32[8] S,R", "position 9: expected '(' and a dimension, as in S(0), found ','"},
    {"f32[8] SS,R",
     "position 10: expected '(' and a dimension with a factor, as in SS(0,2), found"},
    {"f32[8] R,B", "position 11: expected '(' and a dimension with sizes, as in B(0;3,2), found"},
    {"f32[8] R,G", "position 11: expected '(' and a dimension with sizes, as in G(0;3,2), found"},
    {"f32[8] S(),R", "position 10: expected a dimension, found ')'"},
    {"f32[8] S(-1),R",
     "position 10: dimensions count from 0, and the last one of this tensor is 0"},
    {"f32[8,4] S( -1),R",
     "position 13: dimensions count from 0, and the last one of this tensor is 1"},
    {"f32[8,4] SS(-2,2),R", "position 13: dimensions count from 0, and the last one of this "},
    {"f32[] S(-1),R", "position 9: dimensions count from 0"},
    {"f32[8] S(8),R", "position 10: a dimension must be at most 7"},
    {"f32[8] S(0,R", "position 11: expected ')', found ','"},
    {"f32[8] SS(0),R", "position 12: expected ',' and a factor, as in SS(0,2), found ')'"},
    {"f32[8] SS(0,),R", "position 13: expected a factor, found ')'"},
    {"f32[8] P(),R", "position 10: expected sum, avg, min, max or prod; P alone is P(sum), found"},
    {"f32[8] P(mean),R", "position 10: \"mean\" is not a reduction; the reductions are sum, avg, "
                         "min, max and prod; did you mean P(avg)?"},
    {"f32[8] P(average),R", "did you mean P(avg)?"},
    {"f32[8] P(SUM),R", "did you mean P(sum)?"},
    {"f32[8] P(add),R", "did you mean P(sum)?"},
    {"f32[8] P(product),R", "did you mean P(prod)?"},
    {"f32[8] P(amax),R", "did you mean P(max)?"},
    {"f32[8] P(norm),R", "the reductions are sum, avg, min, max and prod"},
    {"f32[8] Partial('avg'),R", "did you mean P(avg)?"},
    {"f32[8] Partial(reduce_op=mean),R", "did you mean P(avg)?"},
    {"f32[8] R(),R", "position 8: R has nothing in brackets; write R"},
    {"f32[8] None,R", "did you mean R?"},
    {"f32[8] _StridedShard(dim=0, split_factor=2),R", "did you mean SS(0,2)?"},
    {"f32[8] RaggedShard((0,), (1, 2)),R", "did you mean G(0;sizes)?"},
    {"f32[8] [Shard(0), Replicate()]", "position 8: placements have no brackets around them"},
    {"f32[8] f32[8] R,R", "\"f32\" is a dtype; expected the placements alone"},
    {"f32[8] s12345,R", "\"s12345\" is not a placement"},
    {"f32[8] P(max,R", "position 13: expected ')'"},
    {"f32[8] S(0)[],R", "position 13: expected the turn of a split, found ']'"},
    {"f32[8] S(0)[8],R", "position 13: the turn of a split must be at most 7"},
    {"f32[8] S(0)[0,R", "position 14: expected ']'"},
    {"f32[8] S(0)[1],R", "placement 0 has turn [1], but the turns of dimension 0 are 0 to 0"},
    {"f32[8] S(0)[0],S(0)[0]",
     "placements 0 and 1 both have turn [0]; the turns of dimension 0 must differ"},
    {"f32[8] S(0)[0],S(0)",
     "placement 0 has a turn, and placement 1 has none; both split dimension "
     "0, so give both a turn or none"},
    {"f32[8] S(0),SS(0,2)[1]", "placement 1 has a turn, and placement 0 has none; both split"},
    {"f32[8] S(0)[2],S(0)[0]", "placement 0 has turn [2], but the turns of dimension 0 are 0 to 1"},
    {"f32[8] B(0),R", "position 11: expected ';' and sizes, as in B(0;3,2), found ')'"},
    {"f32[8] G(0,4,4),R", "position 11: expected ';' and sizes, as in G(0;3,2), found ','"},
    {"f32[8] B(0;),R", "position 12: expected a size, found ')'"},
    {"f32[8] B(0;9,-1),R", "position 14: a size must not be negative"},
    {"f32[8] G(0;9,-1),R", "position 14: a size must not be negative"},
    {"f32[8] G(0;4,4,R", "position 16: expected a size, found 'R'"},
    {"f32[8] B(0;9223372036854775808),R", "position 12: a size must be at most"},
    {"f32[8] B(-1;4,4),R", "position 10: dimensions count from 0"},
    {"f32[65] "
     "B(0;1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1),R",
     "position 141: B has more than 64 parts"},
    {"f32[8] B(0;32;8;8),R", "position 14: expected ',' and the next size, or ')', found ';'"},
    {"f32[8] G(0;12*4),R", "position 14: expected ',' and the next size, or ')', found '*'"},
    {"f32[8] B(0;32.0,8),R", "position 14: expected ',' and the next size, or ')', found '.'"},
    {"f32[8] O,R", "position 9: expected '(' and the owner's coordinate, as in O(2), found ','"},
    {"f32[8] O(0,1),R", "position 11: O has one owner; expected ')', found ','"},
    {"f32[8] O(),R", "position 10: expected the owner's coordinate, found ')'"},
    {"f32[8] O(-1),R", "position 10: coordinates count from 0"},
    {"f32[8] O(0)[0],R", "position 12: R, P and O have no turn; only placements that split"},
    {"f32[8] S(0),R[1]", "position 14: R, P and O have no turn; only placements that split"},
    {"f32[8] B(32,8,8),R", "position 10: the dimension of B(dim;sizes) must be at most 7"},
    {"f32[8] G(;8,8),R", "position 10: expected the dimension of G(dim;sizes), found ';'"},
    {"f32[8] R[0],R", "position 9: R, P and O have no turn; only placements that split"},
    {"f32[8,8] S(0)S(1)",
     "position 14: expected ',' between placements after \"f32[8,8] S(0)\", found 'S'"},
    {"f32[8] R  P(max)",
     "position 11: expected ',' between placements after \"f32[8] R\", found 'P'"},
    {"f32[8] R,R R", "position 12: expected the end, found 'R'"},
};

TEST(wrong_text_is_refused_with_position_and_reason)
{
    weft_mesh *mesh = mesh_of("2x2");
    weft_spec *spec = NULL;

    for (size_t i = 0; i < WF_COUNT(wrong_texts); i++) {
        check_refused(weft_spec_parse(mesh, wrong_texts[i].text, &spec), WEFT_ERR_PARSE,
                      wrong_texts[i].error);
        check_refused(WEFT_OK, WEFT_OK, "spec \"");
    }
    ck_assert_ptr_null(spec);
    weft_mesh_release(&mesh);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(shapes_read_in_three_ways)
{
    static const struct {
        const char *text;
        int32_t dims;
        int64_t last;
    } cases[] = {{"4x6", 2, 6}, {"4,6", 2, 6},       {"[4,6]", 2, 6},
                 {"[]", 0, 0},  {"7", 1, 7},         {" 7 ", 1, 7},
                 {"0", 1, 0},   {"[ 4 , 6 ]", 2, 6}, {"1x2x3x4x5x6x7x8", 8, 8},
                 {"[7]", 1, 7}};
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims;

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        ck_assert_msg(weft_shape_parse(cases[i].text, &dims, shape) == WEFT_OK, "%s",
                      weft_last_error());
        ck_assert_int_eq(dims, cases[i].dims);
        if (dims > 0) ck_assert_int_eq(shape[dims - 1], cases[i].last);
    }
}

TEST(wrong_shapes_are_refused)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"8*8", "position 2: expected 'x' or ',', found '*'"},
        {"", "shape \"\", position 1: expected the size of a dimension, found the end"},
        {"4x", "position 3: expected the size of a dimension"},
        {"4x6,2", "position 2: expected the end, found 'x'"},
        {"[4x6]", "position 3: sizes in brackets are separated by ',', as in [4,6]"},
        {"[4,6", "position 5: expected ']'"},
        {"[]x", "position 3: expected the end"},
        {"-4", "position 1: expected the size of a dimension, found '-'"},
        {"1x1x1x1x1x1x1x1x1", "position 17: a dimension beyond the 8"},
        {"99999999999999999999", "position 1: the size of a dimension must be at most"},
    };
    int64_t shape[WEFT_MAX_DIMS] = {-7};
    int32_t dims = -7;

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_refused(weft_shape_parse(cases[i].text, &dims, shape), WEFT_ERR_PARSE,
                      cases[i].error);
    ck_assert_int_eq(dims, -7);
    ck_assert_int_eq(shape[0], -7);
}

TEST(text_survives_every_allocation_failure)
{
    static const char given[] = "f32[8,8] B(0;5,3),G(1;3,3,2,0)";
    OWNED(weft_mesh) *mesh = mesh_of("2x4");
    OWNED(weft_spec) *spec = NULL;
    char text[64];

    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_spec_parse(mesh, given, &spec), weft_spec_release(&spec)), 1);
    ck_assert_int_eq(weft_spec_parse(mesh, given, &spec), WEFT_OK);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(weft_spec_print(spec, text, sizeof text, NULL), (void)0), 1);
}

TEST(parts_of_a_spec_are_read_alone)
{
    weft_placement placements[WEFT_MAX_AXES] = {{.dim = 7}};
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims;

    ck_assert_int_eq(weft_placements_parse("B(1;5,3),O(7)", 2, placements), WEFT_OK);
    ck_assert_uint_eq(placements[0].kind, WEFT_PLACE_PARTS);
    ck_assert_uint_eq(placements[0].size_count, 2);
    ck_assert_int_eq(placements[0].sizes[1], 3);
    ck_assert_int_eq(placements[1].owner, 7);
    weft_placements_free(2, placements);
    ck_assert_ptr_null(placements[0].sizes);
    weft_placements_free(2, placements);
    weft_placements_free(2, NULL);
    ck_assert_int_eq(wf_mem_live(), 0);
    ck_assert_int_eq(weft_placements_parse("SS(1,2),P(max)", 2, placements), WEFT_OK);
    ck_assert_uint_eq(placements[0].kind, WEFT_PLACE_STRIDED);
    ck_assert_int_eq(placements[0].factor, 2);
    ck_assert_uint_eq(placements[1].reduction, WEFT_REDUCE_MAX);
    check_refused(weft_placements_parse("R", 2, placements), WEFT_ERR_PARSE,
                  "placements \"R\", position 2: 1 placement, but the mesh has 2 axes; write one "
                  "placement for each axis");
    check_refused(weft_placements_parse("R", 0, placements), WEFT_ERR_INVALID, "axes is 0");
    check_refused(weft_placements_parse("R", 9, placements), WEFT_ERR_INVALID, "axes is 9");
    check_refused(weft_placements_parse(NULL, 1, placements), WEFT_ERR_INVALID, "text is NULL");
    check_refused(weft_placements_parse("R", 1, NULL), WEFT_ERR_INVALID, "placements is NULL");
    check_refused(weft_shape_parse(NULL, &dims, shape), WEFT_ERR_INVALID, "text is NULL");
    check_refused(weft_shape_parse("4", NULL, shape), WEFT_ERR_INVALID, "dims is NULL");
    check_refused(weft_shape_parse("4", &dims, NULL), WEFT_ERR_INVALID, "shape is NULL");
    ck_assert_uint_eq(placements[0].kind, WEFT_PLACE_STRIDED);
}
