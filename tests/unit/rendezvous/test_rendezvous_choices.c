#include "rendezvous/launch.h"
#include "support/suite.h"
#include "weft/status.h"

#include <stdio.h>
#include <string.h>

static struct wf_choices made[64];

/* The choices of rank RANK; a NULL value omits the row. */
static void choose(int32_t rank, const char *plugin, const char *build, const char *knob)
{
    wf_text_free(&made[rank].rows);
    made[rank].count = 0;
    wf_choices_add(&made[rank], "plugin", plugin);
    if (build != NULL) wf_choices_add(&made[rank], "plugin build", build);
    wf_choices_explain(&made[rank], "WEFT_KNOB", knob);
}

static weft_status compare(int32_t count)
{
    weft_blob blobs[64];
    weft_status status;

    for (int32_t i = 0; i < count; i++)
        blobs[i] = (weft_blob){made[i].rows.data, made[i].rows.length};
    status = wf_choices_compare(blobs, count);
    for (int32_t i = 0; i < count; i++) {
        wf_text_free(&made[i].rows);
        made[i].count = 0;
    }
    return status;
}

TEST(equal_choices_go_on)
{
    for (int32_t i = 0; i < 3; i++)
        choose(i, "gloo-cpu", "1", "x");
    ck_assert_int_eq(compare(3), WEFT_OK);
    choose(0, "gloo-cpu", "1", "x");
    ck_assert_int_eq(compare(1), WEFT_OK);
}

TEST(the_table_shows_the_differences_of_ranks)
{
    for (int32_t i = 0; i < 4; i++)
        choose(i, i == 3 ? "nccl" : "gloo-cpu", "1", "x");
    ck_assert_int_eq(compare(4), WEFT_ERR_MISMATCH);
    ck_assert_str_eq(
        weft_last_error(),
        "ranks have different settings that must be equal:\n  plugin           gloo-cpu            "
        "     ranks 0-2\n                   nccl                     rank 3");
}

TEST(rows_that_explain_do_not_refuse_but_are_shown)
{
    choose(0, "a", "1", "yes");
    choose(1, "a", "1", "1");
    ck_assert_int_eq(compare(2), WEFT_OK);
    choose(0, "a", "1", "yes");
    choose(1, "a", "2", "");
    ck_assert_int_eq(compare(2), WEFT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "plugin build"));
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "WEFT_KNOB        yes"));
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "(none)"));
}

TEST(a_row_another_version_does_not_have_is_a_difference)
{
    choose(0, "a", "1", "x");
    choose(1, "a", NULL, "x");
    ck_assert_int_eq(compare(2), WEFT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "(not reported)"));
}

TEST(many_different_values_are_cut_short)
{
    char name[8];

    for (int32_t i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "p%d", i);
        choose(i, name, "1", "x");
    }
    ck_assert_int_eq(compare(64), WEFT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "rank 7"));
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "(and more)"));
    ck_assert_ptr_null(strstr(weft_last_error(), "p8"));
}
