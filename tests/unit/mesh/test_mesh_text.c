#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

TEST(every_form_reads_and_prints)
{
    static const struct {
        const char *text, *printed; /* NULL: as read */
    } cases[] = {
        {"8", NULL},
        {"2x4", NULL},
        {"dp=2,tp=4", NULL},
        {"2x2@4-7", NULL},
        {"2x2@0,2,1,3", NULL},
        {"dp=2,tp=2@0,2,3,1", NULL},
        {"dp=2,tp=2@4-7/2", NULL},
        {"4@0-6:2", NULL},
        {"4@0,2,4,6", "4@0-6:2"},
        {"2x2@0-1,4-5", "2x2@0,1,4,5"},
        {"2x3@0-2,4-6", NULL},
        {"6@9,8,7,3,5,7000", NULL},
        {"7@9,8,7,1,3,5,11", "7@9,8,7,1-5:2,11"},
        {"1", NULL},
        {"1@3", NULL},
        {"1x1@3-3", "1x1@3"},
        {"2x4@0-7", "2x4"},
        {"4x8/8", NULL},
        {"1x2x1x2x1x2x1x2", NULL},
        {"_a1=2", NULL},
        {"007x2", "7x2"},
        {"2@0-2147483647:2147483647", "2@0,2147483647"},
        {"1x2x1@0-2147483647:2147483647", "1x2x1@0,2147483647"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_mesh) *mesh = mesh_of(cases[i].text);
        check_mesh_is(mesh, cases[i].printed != NULL ? cases[i].printed : cases[i].text);
    }
}

TEST(wrong_text_is_refused_with_position_and_reason)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "position 1: expected a mesh such as 2x4 or dp=2,tp=4, found the end"},
        {"(2,2)", "position 1: expected a mesh such as 2x4 or dp=2,tp=4, found '('"},
        {"x", "position 2: expected '=' and a size, found the end"},
        {"2x", "position 3: expected the size of an axis, found the end"},
        {"2xx4", "position 3: expected the size of an axis, found 'x'"},
        {"0x4", "position 1: the size of an axis must be from 1 to 2147483647"},
        {"2x-4", "position 3: expected the size of an axis, found '-'"},
        {"2,4", "position 2: expected 'x' and a size, as in 2x4, found ','"},
        {"dp=2x4", "position 5: expected ',' and an axis, as in dp=2,tp=4, found 'x'"},
        {"dp=2;tp=4", "position 5: expected ',' and an axis, as in dp=2,tp=4, found ';'"},
        {"dp=2 tp=4", "position 5: expected ',' and an axis, as in dp=2,tp=4, found ' '"},
        {"2*4", "position 2: expected 'x' and a size, as in 2x4, found '*'"},
        {"2y4", "position 2: expected 'x' and a size, as in 2x4, found 'y'"},
        {"4@0:6:2", "position 4: a step must follow a range of ranks, as in 0-6:2"},
        {"dp=2,dp=4", "position 6: a second axis named \"dp\""},
        {"dp=2,4", "position 6: expected the name of an axis, found '4'"},
        {"dp2", "position 4: expected '='"},
        {"a234567890123456789012345678901z=2", "position 1: a name of 32 bytes; the maximum is 31"},
        {"2x2x2x2x2x2x2x2x2", "position 17: an axis beyond the 8"},
        {"65536x65536", "position 7: this axis makes the mesh larger than 2147483647 ranks"},
        {"99999999999999999999", "position 1: the size of an axis must be from 1 to 2147483647"},
        {"4294967296", "position 1: the size of an axis must be from 1 to 2147483647"},
        {"2x2@", "position 5: expected a rank, found the end"},
        {"2x2@0,1,2", "position 4: the list has 3 ranks, but the mesh has 4"},
        {"2x2@0-7", "position 4: the list has 8 ranks, but the mesh has 4"},
        {"2x3@0-2147483647", "position 4: the list has 2147483648 ranks, but the mesh has 6"},
        {"2x2@0,1,-2,3", "position 9: expected a rank, found '-'"},
        {"2x2@0,1,1,3", "rank 1 is given twice, at positions 1 and 2 of the list"},
        {"2x2@3-0", "position 5: the range 3-0 goes down"},
        {"2@0-3:2", "position 3: steps of 2 from 0 do not end at 3"},
        {"2@0-2:0", "position 7: the step must be from 1"},
        {"2@0-2147483648", "position 5: the last rank must be from 0 to 2147483647"},
        {"2x2/0", "position 5: the number of devices per host must be from 1"},
        {"2x2/", "position 5: expected the number of devices per host"},
        {"2x2/4x", "position 6: expected the end, found 'x'"},
        {"2x2 ", "position 4: expected the end, found ' '"},
        {"2x2@0,1,2,3\n", "position 12: expected the end, found the end of the line"},
        {"40000x40000@0,1-1599999999",
         "a list of 1600000000 ranks is too long; the maximum is 16777216"},
    };
    weft_mesh *mesh = NULL;

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_status status = weft_mesh_parse(cases[i].text, &mesh);
        ck_assert_msg(status == WEFT_ERR_PARSE || status == WEFT_ERR_INVALID, "%s: %s",
                      cases[i].text, weft_status_name(status));
        check_refused(status, status, cases[i].error);
        check_refused(status, status, "mesh");
    }
    ck_assert_ptr_null(mesh);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(printing_fills_what_fits)
{
    OWNED(weft_mesh) *mesh = mesh_of("dp=2,tp=4");
    char buffer[6] = "?????";
    size_t length = 0;

    ck_assert_int_eq(weft_mesh_print(mesh, NULL, 0, &length), WEFT_OK);
    ck_assert_uint_eq(length, 9);
    ck_assert_int_eq(weft_mesh_print(mesh, buffer, sizeof buffer, NULL), WEFT_OK);
    ck_assert_str_eq(buffer, "dp=2,");
}

TEST(one_size_follows_from_the_ranks_of_the_job)
{
    static const char *const texts[][2] = {
        {"dp=*", "dp=12"},
        {"*", "12"},
        {"dp=*,tp=4", "dp=3,tp=4"},
        {"3x*x2", "3x2x2"},
        {"dp=*,tp=4/4", "dp=3,tp=4/4"},
        {"4x*@0-22:2", "4x3@0-22:2"},
        {"12", "12"},
        {"tp=12,dp=*", "tp=12,dp=1"},
    };
    weft_mesh *mesh = NULL;
    char text[64];

    for (size_t i = 0; i < WF_COUNT(texts); i++) {
        ck_assert_int_eq(weft_mesh_parse_for(texts[i][0], 12, &mesh), WEFT_OK);
        ck_assert_int_eq(weft_mesh_print(mesh, text, sizeof text, NULL), WEFT_OK);
        ck_assert_str_eq(text, texts[i][1]);
        weft_mesh_release(&mesh);
    }
    check_refused(weft_mesh_parse_for("dp=*,tp=5", 12, &mesh), WEFT_ERR_PARSE,
                  "12 ranks divided by 5, which leaves a rest");
    check_refused(weft_mesh_parse_for("dp=*,tp=24", 12, &mesh), WEFT_ERR_PARSE, "leaves a rest");
    check_refused(weft_mesh_parse_for("*x*", 12, &mesh), WEFT_ERR_PARSE, "a second axis of size *");
    check_refused(weft_mesh_parse_for("dp=*", 0, &mesh), WEFT_ERR_INVALID, "ranks is 0");
    check_refused(weft_mesh_parse_for("4x*@0-3", 12, &mesh), WEFT_ERR_PARSE, "list has 4 ranks");
    check_refused(weft_mesh_parse("dp=*", &mesh), WEFT_ERR_PARSE, "call weft_mesh_parse_for");
}

TEST(text_survives_every_allocation_failure)
{
    static const char given[] = "dp=2,tp=3@7,1,3,0,2,9/4";
    OWNED(weft_mesh) *mesh = NULL;
    char buffer[64];

    ck_assert_uint_ge(ALLOCATIONS_FAIL(weft_mesh_parse(given, &mesh), weft_mesh_release(&mesh)), 4);
    ck_assert_int_eq(weft_mesh_parse(given, &mesh), WEFT_OK);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(weft_mesh_print(mesh, buffer, sizeof buffer, NULL), (void)0),
                      1);
}
