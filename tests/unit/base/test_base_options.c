#include "base/base.h"
#include "weft/status.h"
#include "support/suite.h"

struct known {
    size_t struct_size;
    int64_t first, second;
};

TEST(nothing_given_leaves_the_defaults)
{
    struct known out = {.second = 7};

    ck_assert_int_eq(wf_options_read("known", NULL, &out, sizeof out), WEFT_OK);
    ck_assert_int_eq(out.second, 7);
}

TEST(a_size_below_the_first_version_is_refused)
{
    struct known given = {.first = 1, .second = 2}, out = {.second = 7};

    for (size_t size = 1; size < sizeof given; size++) {
        given.struct_size = size;
        ck_assert_int_eq(wf_options_read("known", &given, &out, sizeof out), WEFT_ERR_INVALID);
    }
    given.struct_size = sizeof(void *);
    ck_assert_int_eq(wf_options_read("known", &given, &out, sizeof out), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "known.struct_size is 8; set it to sizeof(known)");
    ck_assert_int_eq(out.first, 0);
    ck_assert_int_eq(out.second, 7);
}

TEST(an_older_plugin_sets_the_fields_it_knows)
{
    struct {
        uint32_t struct_size;
        int32_t first, second;
    } given = {offsetof(__typeof__(given), second), 1, 2}, out = {.second = 7};

    ck_assert_int_eq(wf_abi_options_read("known", &given, &out, sizeof out), WEFT_OK);
    ck_assert_int_eq(out.first, 1);
    ck_assert_int_eq(out.second, 7);
}

TEST(a_newer_caller_writes_no_further_than_there_is_room)
{
    struct {
        struct known known;
        int newer;
    } given = {.known = {.struct_size = sizeof given, .first = 1}, .newer = 0};
    struct {
        struct known known;
        int guard;
    } out = {.guard = 5};

    ck_assert_int_eq(wf_options_read("known", &given, &out, sizeof out.known), WEFT_OK);
    ck_assert_int_eq(out.known.first, 1);
    ck_assert_int_eq(out.guard, 5);
}

TEST(an_option_newer_than_the_library_is_refused)
{
    struct {
        struct known known;
        int newer;
    } given = {.known = {.struct_size = sizeof given, .first = 1}, .newer = 3};
    struct known out = {0};

    ck_assert_int_eq(wf_options_read("known", &given, &out, sizeof out), WEFT_ERR_VERSION);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "compiled for a newer weft"));
    ck_assert_int_eq(out.first, 0);
}

TEST(a_size_that_was_not_set_is_refused)
{
    struct known given = {.first = 1}, out = {0};

    ck_assert_int_eq(wf_options_read("known", &given, &out, sizeof out), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "known.struct_size is 0; set it to sizeof(known)");
    given.struct_size = 99999;
    ck_assert_int_eq(wf_options_read("known", &given, &out, sizeof out), WEFT_ERR_INVALID);
    ck_assert_int_eq(out.first, 0);
}

TEST(a_size_that_cuts_a_field_is_refused)
{
    struct {
        struct known known;
        int64_t newer;
    } given = {.known = {.first = -1, .second = -1}};
    struct known out = {0};

    for (size_t size = sizeof given.known + 1; size < sizeof given; size++) {
        given.known.struct_size = size;
        ck_assert_int_eq(wf_options_read("known", &given, &out, sizeof out), WEFT_ERR_INVALID);
    }
    ck_assert_int_eq(out.first, 0);
}

TEST(information_is_cut_to_the_callers_struct)
{
    struct {
        size_t struct_size;
        int32_t first, second;
    } info = {sizeof info, 1, 2}, out = {offsetof(__typeof__(info), second), 7, 7};

    ck_assert_int_eq(wf_info_write("info", &info, sizeof info, &out), WEFT_OK);
    ck_assert_int_eq(out.first, 1);
    ck_assert_int_eq(out.second, 7);
    ck_assert_uint_eq(out.struct_size, offsetof(__typeof__(info), second));
    out.struct_size = 0;
    ck_assert_int_eq(wf_info_write("info", &info, sizeof info, &out), WEFT_ERR_INVALID);
    out.struct_size = 65536; /* a newer caller: its other fields are kept */
    ck_assert_int_eq(wf_info_write("info", &info, sizeof info, &out), WEFT_OK);
    ck_assert_int_eq(out.second, 2);
}

TEST(information_of_the_plugin_abi_has_a_shorter_size)
{
    struct {
        uint32_t struct_size;
        int32_t first, second;
    } info = {sizeof info, 1, 2}, out = {offsetof(__typeof__(info), second), 7, 7};

    ck_assert_int_eq(wf_abi_info_write("info", &info, sizeof info, &out), WEFT_OK);
    ck_assert_int_eq(out.first, 1);
    ck_assert_int_eq(out.second, 7);
    out.struct_size = 0;
    ck_assert_int_eq(wf_abi_info_write("info", &info, sizeof info, &out), WEFT_ERR_INVALID);
}
