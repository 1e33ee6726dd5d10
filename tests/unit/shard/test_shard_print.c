#include "support/layout.h"
#include "support/suite.h"

TEST(messages_show_a_few_sizes_and_specs_all)
{
    OWNED(weft_spec) *spec = spec_of("12", "f32[12] G(0;2,0,1,1,1,1,1,1,1,1,1,1)");
    struct wf_text text = {0};

    wf_placement_add_short_text(weft_spec_placements(spec), &text);
    ck_assert_str_eq(text.data, "G(0;2,0,1,1,1,1,1,1,...)");
    wf_text_free(&text);
    wf_placement_add_text(weft_spec_placements(spec), &text);
    ck_assert_str_eq(text.data, "G(0;2,0,1,1,1,1,1,1,1,1,1,1)");
    wf_text_free(&text);
    wf_placements_add_short_text(weft_spec_placements(spec), 1, &text);
    ck_assert_str_eq(text.data, "G(0;2,0,1,1,1,1,1,1,...)");
    wf_text_free(&text);
}

TEST(a_short_buffer_gets_the_beginning)
{
    OWNED(weft_spec) *spec = spec_of("2", "f32[8] O(1)");
    char text[8];
    size_t length = 0;

    ck_assert_int_eq(weft_spec_print(spec, text, sizeof text, &length), WEFT_OK);
    ck_assert_str_eq(text, "f32[8] ");
    ck_assert_uint_eq(length, strlen("f32[8] O(1)"));
}
