#include "config/config.h"
#include "support/suite.h"

#define ENVIRONMENT(...) ((struct wf_environment){(char *const[]){__VA_ARGS__, NULL}, false})

static char *printed(void (*print)(struct wf_environment, struct wf_text *),
                     struct wf_environment environment)
{
    struct wf_text text = {0};
    char *out;

    print(environment, &text);
    ck_assert_int_eq(wf_text_take(&text, &out), WEFT_OK);
    return out;
}

START_TEST(every_knob_is_printed_with_value_source_and_help)
{
    char *out = printed(wf_config_print, ENVIRONMENT("WEFT_TIMEOUT=7"));

    for (size_t i = 0; i < wf_knob_count; i++) {
        ck_assert_ptr_nonnull(strstr(out, wf_knobs[i].name));
        ck_assert_ptr_nonnull(strstr(out, wf_knobs[i].help));
    }
    ck_assert_ptr_nonnull(strstr(out, "WEFT_TIMEOUT=7  (environment)"));
    ck_assert_ptr_nonnull(strstr(out, "WEFT_BACKEND=auto  (default)"));
    wf_free(out);
}
END_TEST

START_TEST(problems_and_unknown_variables_are_pointed_out)
{
    char *out = printed(wf_config_print, ENVIRONMENT("WEFT_TIMEOUT=soon", "WEFT_BAKEND=x"));

    ck_assert_ptr_nonnull(strstr(out, "! WEFT_TIMEOUT is \"soon\""));
    ck_assert_ptr_nonnull(strstr(out, "! WEFT_BAKEND means nothing to weft; did you mean "
                                      "WEFT_BACKEND?"));
    wf_free(out);
}
END_TEST

START_TEST(ignored_values_say_so)
{
    struct wf_environment secure = ENVIRONMENT("WEFT_PLUGIN_PATH=/evil");
    char *out;

    secure.secure = true;
    out = printed(wf_config_print_json, secure);
    ck_assert_ptr_nonnull(strstr(out, "\"value\":\"/evil\",\"default\":null,\"source\":"
                                      "\"ignored\""));
    wf_free(out);
}
END_TEST

START_TEST(json_names_the_unknown_and_the_nearest)
{
    char *out = printed(wf_config_print_json, ENVIRONMENT("WEFT_BAKEND=x"));

    ck_assert_ptr_nonnull(strstr(out, "\"unknown\":[{\"name\":\"WEFT_BAKEND\",\"nearest\":"
                                      "\"WEFT_BACKEND\"}]"));
    wf_free(out);
}
END_TEST

START_TEST(the_page_has_a_row_per_knob)
{
    struct wf_text text = {0};

    wf_config_print_markdown(&text);
    for (size_t i = 0; i < wf_knob_count; i++) {
        ck_assert_ptr_nonnull(strstr(text.data, wf_knobs[i].name));
        ck_assert_msg(strchr(wf_knobs[i].help, '|') == NULL, "%s breaks the table",
                      wf_knobs[i].name);
    }
    wf_text_free(&text);
}
END_TEST

SUITE(config_print, every_knob_is_printed_with_value_source_and_help,
      problems_and_unknown_variables_are_pointed_out, ignored_values_say_so,
      json_names_the_unknown_and_the_nearest, the_page_has_a_row_per_knob)
