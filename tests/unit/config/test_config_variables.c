#include "config/config.h"
#include "support/suite.h"

#define ENVIRONMENT(...) ((struct wf_environment){(char *const[]){__VA_ARGS__, NULL}, false})

/* Variable NAME in ENVIRONMENT. */
static weft_variable_info find(struct wf_environment environment, const char *name)
{
    weft_variable_info out;

    for (size_t i = 0; wf_variable_find(environment, i, &out); i++)
        if (strcmp(out.name, name) == 0) return out;
    ck_abort_msg("there is no %s", name);
}

TEST(every_knob_has_a_value_a_source_and_help)
{
    struct wf_environment environment = ENVIRONMENT("WEFT_TIMEOUT=7");
    weft_variable_info variable = find(environment, "WEFT_TIMEOUT");

    ck_assert_str_eq(variable.value, "7");
    ck_assert_str_eq(variable.source, "environment");
    ck_assert_str_eq(variable.type, "seconds");
    ck_assert_str_eq(variable.fallback, "300");
    variable = find(environment, "WEFT_BACKEND");
    ck_assert_str_eq(variable.value, "auto");
    ck_assert_str_eq(variable.source, "default");
    for (size_t i = 0; i < wf_knob_count; i++) {
        ck_assert(wf_variable_find(environment, i, &variable));
        ck_assert_str_eq(variable.name, wf_knobs[i].name);
        ck_assert_msg(strchr(variable.help, '|') == NULL, "%s breaks the table of weft env",
                      variable.name);
        ck_assert_ptr_null(variable.problem);
    }
    ck_assert(!wf_variable_find(environment, wf_knob_count, &variable));
}

TEST(problems_and_unknown_variables_are_pointed_out)
{
    struct wf_environment environment = ENVIRONMENT("WEFT_TIMEOUT=soon", "WEFT_BAKEND=x");
    weft_variable_info variable = find(environment, "WEFT_TIMEOUT");

    ck_assert_ptr_nonnull(strstr(variable.problem, "WEFT_TIMEOUT is \"soon\""));
    variable = find(environment, "WEFT_BAKEND");
    ck_assert_ptr_null(variable.type);
    ck_assert_str_eq(variable.nearest, "WEFT_BACKEND");
    ck_assert_str_eq(variable.value, "x");
}

TEST(ignored_values_say_so)
{
    struct wf_environment secure = ENVIRONMENT("WEFT_PLUGIN_PATH=/evil");
    weft_variable_info variable;

    secure.secure = true;
    variable = find(secure, "WEFT_PLUGIN_PATH");
    ck_assert_str_eq(variable.value, "/evil");
    ck_assert_str_eq(variable.source, "ignored");
    ck_assert_ptr_nonnull(variable.problem);
}

TEST(secrets_are_not_shown)
{
    ck_assert_str_eq(find(ENVIRONMENT("WEFT_TOKEN=hunter2"), "WEFT_TOKEN").value, "(secret)");
    ck_assert_ptr_null(find(ENVIRONMENT("WEFT_LOG=info"), "WEFT_TOKEN").value);
}

TEST(no_more_than_the_callers_struct_is_written)
{
    struct {
        weft_variable_info info;
        char behind[sizeof(weft_variable_info)];
    } room;
    size_t small = offsetof(weft_variable_info, type);

    memset(&room, 0x5a, sizeof room);
    room.info.struct_size = small;
    ck_assert(weft_variable_get(0, &room.info) == WEFT_OK);
    ck_assert_uint_eq(room.info.struct_size, small);
    ck_assert_str_eq(room.info.name, wf_knobs[0].name);
    ck_assert_int_eq(((const unsigned char *)&room)[small], 0x5a);
    room.info.struct_size = sizeof room;
    ck_assert(weft_variable_get(0, &room.info) == WEFT_OK);
    ck_assert_int_eq(room.behind[0], 0x5a);
    room.info.struct_size = 0;
    ck_assert(weft_variable_get(0, &room.info) != WEFT_OK);
    ck_assert(weft_variable_get(0, NULL) != WEFT_OK);
    ck_assert(weft_variable_get(SIZE_MAX, &room.info) != WEFT_OK);
}
