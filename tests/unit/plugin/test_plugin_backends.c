#include "plugin/plugin.h"
#include "support/allocfail.h"
#include "support/caught.h"
#include "support/suite.h"

#include <stdio.h>
#include <unistd.h>

#define P TEST_PLUGINS
#define ALL                                                                                        \
    P "/good:" P "/better:" P "/by-name:" P "/memory-only:" P "/no-library:" P "/no-device:" P     \
      "/symm:" P "/symm-too"

static weft_backends *find(const char *backend, const char *directories)
{
    struct wf_find_input input = {
        .backend = backend, .backend_origin = "WEFT_BACKEND", .plugin_path_variable = directories};
    weft_backends *backends = NULL;

    ck_assert_msg(wf_backends_find_in(&input, &backends) == WEFT_OK, "%s", weft_last_error());
    return backends;
}

/* The name of the plugin that serves ROLE for BACKEND, or the error. */
static const char *serving(const char *backend, enum weft_backend_role role)
{
    weft_backends *backends = find(backend, ALL);
    static char name[64];
    size_t index;

    if (weft_backends_choose(backends, role, &index) == WEFT_OK)
        snprintf(name, sizeof name, "%s", backends->candidates[index].name);
    else
        name[0] = '\0';
    weft_backends_release(&backends);
    return name[0] != '\0' ? name : weft_last_error();
}

/* The text that choosing BACKEND writes to standard error. */
static const char *told_for(const char *backend, enum weft_backend_role role)
{
    catch_begin();
    serving(backend, role);
    return catch_end();
}

static const char *told(const char *backend)
{
    return told_for(backend, WEFT_BACKEND_ROLE_COMM);
}

TEST(auto_takes_the_highest_score)
{
    ck_assert_str_eq(serving("auto", WEFT_BACKEND_ROLE_COMM), "better");
    ck_assert_str_eq(serving("^better", WEFT_BACKEND_ROLE_COMM), "good");
}

TEST(auto_never_takes_a_score_of_zero)
{
    ck_assert_ptr_nonnull(strstr(serving("^better,^good,^symm", WEFT_BACKEND_ROLE_COMM),
                                 "by-name: usable: its score is 0, so auto does not choose it"));
    ck_assert_str_eq(serving("by-name", WEFT_BACKEND_ROLE_COMM), "by-name");
}

TEST(a_list_is_tried_in_order)
{
    ck_assert_str_eq(serving("good,better", WEFT_BACKEND_ROLE_COMM), "good");
    ck_assert_str_eq(serving("no-device,good", WEFT_BACKEND_ROLE_COMM), "good");
    ck_assert_str_eq(serving("nosuch,auto", WEFT_BACKEND_ROLE_COMM), "better");
    ck_assert_str_eq(serving(P "/any-file/mine.so,good", WEFT_BACKEND_ROLE_COMM), "mine");
}

TEST(a_name_that_cannot_serve_is_an_error_with_its_reason)
{
    const char *error = serving("no-library", WEFT_BACKEND_ROLE_COMM);

    ck_assert_ptr_nonnull(strstr(error, "WEFT_BACKEND is \"no-library\", and no plugin can serve"));
    ck_assert_ptr_nonnull(strstr(error, "vendor library missing: libvendor.so.2 not found"));
    ck_assert_ptr_null(strstr(error, "better"));
    error = serving("memory-only", WEFT_BACKEND_ROLE_COMM);
    ck_assert_ptr_nonnull(strstr(error, "has no comm table"));
    error = serving("nosuch", WEFT_BACKEND_ROLE_COMM);
    ck_assert_ptr_nonnull(
        strstr(error, "known plugins: good, better, by-name, memory-only, no-library"));
}

TEST(auto_without_any_lists_every_candidate)
{
    weft_backends *backends = find("auto", P "/no-library:" P "/no-device");
    size_t index = 77;

    ck_assert_int_eq(weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, &index),
                     WEFT_ERR_NO_BACKEND);
    ck_assert_uint_eq(index, 77);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "no-library: vendor library missing"));
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "no-device: no device"));
    weft_backends_release(&backends);
    backends = find("auto", "/no/such/place");
    ck_assert_int_eq(weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, &index),
                     WEFT_ERR_NO_BACKEND);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "no plugin is in /no/such/place"));
    weft_backends_release(&backends);
}

TEST(symmetric_memory_needs_a_table_for_it)
{
    ck_assert_ptr_nonnull(strstr(serving("good", WEFT_BACKEND_ROLE_SYMM), "has no symm table"));
    ck_assert_str_eq(serving("symm", WEFT_BACKEND_ROLE_SYMM), "symm");
}

TEST(two_plugins_share_the_roles_only_when_both_are_named)
{
    ck_assert_str_eq(serving("good,symm", WEFT_BACKEND_ROLE_COMM), "good");
    ck_assert_str_eq(serving("good,symm", WEFT_BACKEND_ROLE_SYMM), "symm");
    ck_assert_ptr_nonnull(
        strstr(serving("auto", WEFT_BACKEND_ROLE_SYMM), "another plugin communicates"));
    ck_assert_ptr_nonnull(
        strstr(serving("good,auto", WEFT_BACKEND_ROLE_SYMM), "no plugin can serve symmetric"));
    ck_assert_str_eq(serving("^good,^better", WEFT_BACKEND_ROLE_COMM), "symm");
    ck_assert_str_eq(serving("^good,^better", WEFT_BACKEND_ROLE_SYMM), "symm");
}

TEST(a_second_name_goes_before_the_memory_of_the_first)
{
    ck_assert_str_eq(serving("symm,symm-too", WEFT_BACKEND_ROLE_COMM), "symm");
    ck_assert_str_eq(serving("symm,symm-too", WEFT_BACKEND_ROLE_SYMM), "symm-too");
    ck_assert_str_eq(serving("symm-too,good,symm", WEFT_BACKEND_ROLE_SYMM), "symm");
    ck_assert_str_eq(serving("no-device,symm,good", WEFT_BACKEND_ROLE_SYMM), "symm");
    ck_assert_str_eq(serving("symm,no-device,auto", WEFT_BACKEND_ROLE_SYMM), "symm");
    ck_assert_ptr_nonnull(
        strstr(serving("nosuch", WEFT_BACKEND_ROLE_SYMM), "no plugin can serve symmetric"));
}

TEST(a_fallback_is_reported_in_one_line)
{
    const char *line = told("auto");

    ck_assert_ptr_nonnull(strstr(line, "notice: WEFT_BACKEND is \"auto\": better serves instead of "
                                       "no-library (vendor library missing), no-device (no "
                                       "device)"));
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
    line = told("no-device,nosuch,good");
    ck_assert_ptr_nonnull(
        strstr(line, "good serves instead of no-device (no device), nosuch (not found)"));
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
    ck_assert_str_eq(told("good,better"), "");
    ck_assert_str_eq(told("^no-library,^no-device"), "");
}

TEST(a_second_plugin_that_cannot_serve_is_reported_in_one_line)
{
    const char *line = told_for("symm,no-device,nosuch", WEFT_BACKEND_ROLE_SYMM);

    ck_assert_ptr_nonnull(strstr(line,
                                 "notice: WEFT_BACKEND is \"symm,no-device,nosuch\": symmetric "
                                 "memory comes from symm instead of no-device (no device), nosuch "
                                 "(not found)"));
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
    line = told_for("no-library,symm,no-device,symm-too,nosuch", WEFT_BACKEND_ROLE_SYMM);
    ck_assert_ptr_nonnull(strstr(line, "comes from symm-too instead of no-device (no device);"));
    ck_assert_str_eq(told_for("symm,symm-too", WEFT_BACKEND_ROLE_SYMM), "");
    ck_assert_str_eq(told_for("symm,good", WEFT_BACKEND_ROLE_SYMM), "");
}

TEST(information_lives_in_the_list)
{
    weft_backends *backends = find("auto", P "/good:" P "/major");
    weft_backend_info info = {.struct_size = sizeof info};
    weft_backend_info small = {.struct_size = offsetof(weft_backend_info, file)};

    ck_assert_uint_eq(weft_backends_count(backends), 2);
    ck_assert_int_eq(weft_backends_get(backends, 0, &info), WEFT_OK);
    ck_assert_str_eq(info.name, "good");
    ck_assert_str_eq(info.version, "1.2");
    ck_assert_str_eq(info.build, "test");
    ck_assert_uint_eq(info.abi_minor, WEFT_ABI_MINOR);
    ck_assert_int_eq(weft_backends_get(backends, 1, &info), WEFT_OK);
    ck_assert_ptr_null(info.version);
    ck_assert_uint_eq(info.reason, WEFT_BACKEND_REASON_ABI_MAJOR);
    ck_assert_int_eq(weft_backends_get(backends, 2, &info), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_backends_get(backends, 0, &small), WEFT_OK);
    ck_assert_str_eq(small.name, "good");
    ck_assert_ptr_null(small.file);
    small.struct_size = 0;
    ck_assert_int_eq(weft_backends_get(backends, 0, &small), WEFT_ERR_INVALID);
    weft_backends_release(&backends);
    weft_backends_release(&backends);
}

TEST(null_arguments_are_errors_not_crashes)
{
    weft_backends *backends = find("auto", P "/good");
    weft_backend_info info = {.struct_size = sizeof info};
    size_t index;

    ck_assert_uint_eq(weft_backends_count(NULL), 0);
    ck_assert_uint_eq(weft_backends_trace_count(NULL), 0);
    ck_assert_int_eq(weft_backends_get(NULL, 0, &info), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_backends_get(backends, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_backends_choose(NULL, WEFT_BACKEND_ROLE_COMM, &index), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, NULL),
                     WEFT_ERR_INVALID);
    weft_backends_release(&backends);
    weft_backends_release(NULL);
}

TEST(tables_are_given_only_of_what_is_usable)
{
    OWNED(weft_backends) *backends = find("auto", P "/good:" P "/no-device:" P "/major");

    ck_assert_str_eq(wf_backends_plugin(backends, 0)->name, "good");
    ck_assert_ptr_null(wf_backends_plugin(backends, 1));
    ck_assert_str_eq(weft_backends_plugin(backends, 1)->name, "no-device");
    ck_assert_ptr_null(weft_backends_plugin(backends, 2));
    ck_assert_ptr_null(wf_backends_plugin(backends, 99));
}

TEST(every_reason_has_words)
{
    for (uint32_t i = 0; i < WEFT_BACKEND_REASON_COUNT; i++)
        ck_assert_str_ne(weft_backend_reason_text(i), "unknown");
    ck_assert_str_eq(weft_backend_reason_text(WEFT_BACKEND_REASON_COUNT), "unknown");
}

TEST(every_allocation_may_fail)
{
    weft_backends *backends = find("no-device,good", ALL);
    int level = wf_log_level();
    size_t index;

    wf_log_set_level(WF_LOG_ERROR);
    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, &index), (void)0),
        1);
    weft_backends_release(&backends);
    backends = find("no-device", ALL);
    wf_mem_fail_at(1);
    ck_assert_int_eq(weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, &index),
                     WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(0);
    weft_backends_release(&backends);
    wf_log_set_level(level);
}

TEST(the_list_tells_its_choice_tables_and_lines)
{
    weft_backends *backends = find("good", ALL);
    const char *origin = NULL;
    weft_backend_trace_info line = {.struct_size = sizeof line};
    size_t lines = 0, others = 0, chosen = 0;

    ck_assert_str_eq(weft_backends_wanted(backends, &origin), "good");
    ck_assert_str_eq(origin, "WEFT_BACKEND");
    ck_assert_str_eq(weft_backends_wanted(backends, NULL), "good");
    ck_assert_int_eq(weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, &chosen), WEFT_OK);
    ck_assert_str_eq(weft_backends_plugin(backends, chosen)->name, "good");
    for (size_t i = 0; i < weft_backends_trace_count(backends); i++) {
        ck_assert_int_eq(weft_backends_trace_get(backends, i, &line), WEFT_OK);
        ck_assert_str_ne(line.text, "");
        lines += line.candidate == chosen;
        others += line.candidate == SIZE_MAX;
    }
    ck_assert(lines > 0 && others > 0);
    ck_assert_int_eq(weft_backends_trace_get(backends, lines + 1000, &line), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "but the trace has "));
    ck_assert_int_eq(weft_backends_trace_get(backends, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_null(weft_backends_plugin(backends, SIZE_MAX));
    weft_backends_release(&backends);
    ck_assert_ptr_null(weft_backends_plugin(NULL, 0));
    ck_assert_ptr_null(weft_backends_wanted(NULL, NULL));
    ck_assert_int_eq(weft_backends_trace_get(NULL, 0, &line), WEFT_ERR_INVALID);
}
