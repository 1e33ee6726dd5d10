#include "plugin/plugin.h"
#include "support/allocfail.h"
#include "support/folder.h"
#include "support/suite.h"

#define P TEST_PLUGINS

static weft_backends *backends;

/* Search the colon-separated DIRECTORIES for BACKEND. */
static void find(const char *backend, const char *directories)
{
    struct wf_find_input input = {
        .backend = backend,
        .backend_origin = "WEFT_BACKEND",
        .backend_from_environment = true,
        .plugin_path_variable = directories,
    };

    weft_backends_release(&backends);
    ck_assert_msg(wf_backends_find_in(&input, &backends) == WEFT_OK, "%s", weft_last_error());
}

/* The first candidate called NAME. */
static const struct wf_candidate *candidate(const char *name)
{
    for (size_t i = 0; i < backends->candidate_count; i++)
        if (strcmp(backends->candidates[i].name, name) == 0) return &backends->candidates[i];
    ck_abort_msg("no candidate %s", name);
}

static bool traced(const char *words)
{
    for (size_t i = 0; i < backends->line_count; i++)
        if (strstr(backends->lines[i].text, words) != NULL) return true;
    return false;
}

TEST(every_plugin_file_is_a_candidate)
{
    find("auto", P "/good:" P "/better:" P "/major");
    ck_assert_uint_eq(backends->candidate_count, 3);
    ck_assert_uint_eq(candidate("good")->reason, WEFT_BACKEND_REASON_USABLE);
    ck_assert_int_eq(candidate("good")->score, 5000);
    ck_assert_uint_eq(candidate("good")->device_count, 1);
    ck_assert_str_eq(candidate("good")->library, "/opt/libvendor.so.2.20");
    ck_assert_str_eq(candidate("good")->file, P "/good/libweft_plugin_good.so");
    ck_assert_uint_eq(candidate("major")->reason, WEFT_BACKEND_REASON_ABI_MAJOR);
    weft_backends_release(&backends);
}

TEST(what_a_probe_says_becomes_the_reason)
{
    find("auto",
         P "/no-library:" P "/old-library:" P "/no-device:" P "/probe:" P "/library-unended");
    ck_assert_uint_eq(candidate("no-library")->reason, WEFT_BACKEND_REASON_LIBRARY_MISSING);
    ck_assert_str_eq(candidate("no-library")->reason_text, "libvendor.so.2 not found");
    ck_assert_uint_eq(candidate("old-library")->reason, WEFT_BACKEND_REASON_LIBRARY_TOO_OLD);
    ck_assert_str_eq(candidate("old-library")->reason_text, "libvendor 2.17 found, 2.20 wanted");
    ck_assert_uint_eq(candidate("no-device")->reason, WEFT_BACKEND_REASON_NO_DEVICE);
    ck_assert_str_eq(candidate("no-device")->reason_text, "no vendor device in this machine");
    ck_assert_uint_eq(candidate("probe")->reason, WEFT_BACKEND_REASON_PROBE_FAILED);
    ck_assert_str_eq(candidate("probe")->reason_text, weft_status_text(WEFT_ERR_DEVICE));
    ck_assert_uint_eq(strlen(candidate("library-unended")->library), 255);
    weft_backends_release(&backends);
}

TEST(the_first_of_a_name_shadows_the_rest)
{
    struct folder folder = folder_create();
    char directories[1024];

    ck_assert_int_eq(
        symlink(P "/good/libweft_plugin_good.so", folder_path(&folder, "libweft_plugin_good.so")),
        0);
    snprintf(directories, sizeof directories, "%s:%s", P "/good", folder.path);
    find("auto", directories);
    ck_assert_uint_eq(backends->candidate_count, 2);
    ck_assert_uint_eq(backends->candidates[0].reason, WEFT_BACKEND_REASON_USABLE);
    ck_assert_uint_eq(backends->candidates[1].reason, WEFT_BACKEND_REASON_SHADOWED);
    ck_assert_ptr_nonnull(
        strstr(backends->candidates[1].reason_text, P "/good/libweft_plugin_good.so comes first"));
    ck_assert_ptr_null(backends->candidates[1].loaded);
    weft_backends_release(&backends);
    folder_remove(&folder);
}

TEST(what_is_excluded_or_not_named_is_not_opened)
{
    find("^good", P "/good:" P "/better");
    ck_assert_uint_eq(candidate("good")->reason, WEFT_BACKEND_REASON_EXCLUDED);
    ck_assert_ptr_null(candidate("good")->loaded);
    ck_assert_str_eq(candidate("good")->reason_text,
                     "WEFT_BACKEND is \"^good\", which excludes it");
    ck_assert_uint_eq(candidate("better")->reason, WEFT_BACKEND_REASON_USABLE);
    find("better", P "/good:" P "/better");
    ck_assert_uint_eq(candidate("good")->reason, WEFT_BACKEND_REASON_EXCLUDED);
    ck_assert_str_eq(candidate("good")->reason_text,
                     "WEFT_BACKEND is \"better\", which does not name it");
    ck_assert_uint_eq(candidate("better")->reason, WEFT_BACKEND_REASON_USABLE);
    weft_backends_release(&backends);
}

TEST(a_name_without_a_file_is_a_candidate_that_was_not_found)
{
    find("god,nccl,b", P "/good:" P "/better:/no/such/place");
    ck_assert_uint_eq(candidate("god")->reason, WEFT_BACKEND_REASON_NOT_FOUND);
    ck_assert_ptr_null(candidate("god")->file);
    ck_assert_ptr_nonnull(strstr(candidate("god")->reason_text, "libweft_plugin_god.so"));
    ck_assert_ptr_nonnull(strstr(candidate("god")->reason_text, P "/good, "));
    ck_assert_ptr_nonnull(strstr(candidate("god")->reason_text, "/no/such/place"));
    ck_assert_ptr_nonnull(strstr(candidate("god")->reason_text, "known plugins: good, better"));
    ck_assert_ptr_nonnull(strstr(candidate("god")->reason_text, "did you mean good?"));
    ck_assert_ptr_nonnull(strstr(candidate("nccl")->reason_text, "known plugins: good, better"));
    ck_assert_ptr_nonnull(strstr(candidate("b")->reason_text, "did you mean better?"));
    weft_backends_release(&backends);
}

TEST(a_path_names_a_candidate_that_takes_the_plugin_s_name)
{
    find(P "/any-file/mine.so", P "/good");
    ck_assert_uint_eq(backends->candidate_count, 2);
    ck_assert_str_eq(backends->candidates[0].name, "mine");
    ck_assert_uint_eq(backends->candidates[0].reason, WEFT_BACKEND_REASON_USABLE);
    ck_assert_uint_eq(candidate("good")->reason, WEFT_BACKEND_REASON_EXCLUDED);
    find("/no/such.so", NULL);
    ck_assert_str_eq(backends->candidates[0].name, "such.so");
    ck_assert_uint_eq(backends->candidates[0].reason, WEFT_BACKEND_REASON_NOT_FOUND);
    weft_backends_release(&backends);
}

TEST(a_path_shadows_a_found_file_of_the_same_name)
{
    find(P "/good/libweft_plugin_good.so,auto", P "/good");
    ck_assert_uint_eq(backends->candidate_count, 2);
    ck_assert_uint_eq(backends->candidates[0].reason, WEFT_BACKEND_REASON_USABLE);
    ck_assert_uint_eq(backends->candidates[1].reason, WEFT_BACKEND_REASON_SHADOWED);
    weft_backends_release(&backends);
}

TEST(a_privileged_program_takes_no_path_from_the_environment)
{
    struct wf_find_input input = {
        .backend = P "/any-file/mine.so",
        .backend_origin = "WEFT_BACKEND",
        .backend_from_environment = true,
        .secure = true,
    };

    ck_assert_int_eq(wf_backends_find_in(&input, &backends), WEFT_OK);
    ck_assert_uint_eq(backends->candidates[0].reason, WEFT_BACKEND_REASON_NOT_TRUSTED);
    ck_assert_ptr_null(backends->candidates[0].loaded);
    weft_backends_release(&backends);
    input.backend_from_environment = false; /* the program's own choice */
    ck_assert_int_eq(wf_backends_find_in(&input, &backends), WEFT_OK);
    ck_assert_ptr_null(strstr(backends->candidates[0].reason_text, "WEFT_BACKEND"));
    weft_backends_release(&backends);
}

TEST(the_trace_tells_directories_files_and_decisions)
{
    find("auto", "relative:/no/such/place:" P "/good:" P "/major");
    ck_assert(traced("WEFT_BACKEND is \"auto\""));
    ck_assert(traced("directory relative (WEFT_PLUGIN_PATH): not searched: it is not an absolute"));
    ck_assert(traced("directory /no/such/place (WEFT_PLUGIN_PATH): does not exist"));
    ck_assert(traced(P "/good (WEFT_PLUGIN_PATH): 1 plugin file"));
    ck_assert(traced("libweft_plugin_good.so: usable: 1 device, score 5000"));
    ck_assert(traced("ABI major: " P "/major/libweft_plugin_major.so is built for"));
    ck_assert(traced("communication: good serves"));
    ck_assert(traced("symmetric memory: no plugin serves"));
    weft_backends_release(&backends);
}

TEST(a_choice_that_cannot_be_read_is_an_error)
{
    struct wf_find_input input = {.backend = "NCCL", .backend_origin = "WEFT_BACKEND"};

    ck_assert_int_eq(wf_backends_find_in(&input, &backends), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "WEFT_BACKEND: backend \"NCCL\""));
    ck_assert_ptr_null(backends);
}

TEST(the_public_call_reads_the_environment_and_options_win)
{
    weft_backend_options options = {.struct_size = sizeof options, .backend = "better"};

    setenv("WEFT_BACKEND", "good", 1);
    setenv("WEFT_PLUGIN_PATH", P "/good:" P "/better", 1);
    ck_assert_int_eq(weft_backends_create(NULL, &backends), WEFT_OK);
    ck_assert_uint_eq(candidate("good")->reason, WEFT_BACKEND_REASON_USABLE);
    weft_backends_release(&backends);
    ck_assert_int_eq(weft_backends_create(&options, &backends), WEFT_OK);
    ck_assert_uint_eq(candidate("good")->reason, WEFT_BACKEND_REASON_EXCLUDED);
    ck_assert_uint_eq(candidate("better")->reason, WEFT_BACKEND_REASON_USABLE);
    weft_backends_release(&backends);
    unsetenv("WEFT_PLUGIN_PATH");
    options.plugin_path = P "/better";
    ck_assert_int_eq(weft_backends_create(&options, &backends), WEFT_OK);
    ck_assert_uint_eq(candidate("better")->reason, WEFT_BACKEND_REASON_USABLE);
    weft_backends_release(&backends);
    unsetenv("WEFT_BACKEND");
}

TEST(arguments_are_checked)
{
    weft_backend_options options = {0};

    ck_assert_int_eq(weft_backends_create(NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_backends_create(&options, &backends), WEFT_ERR_INVALID);
    ck_assert_ptr_null(backends);
}

TEST(every_allocation_may_fail)
{
    weft_backend_options options = {
        .struct_size = sizeof options,
        .backend = "nosuch," P "/any-file/mine.so,auto,^better",
        .plugin_path = "relative:" P "/good:" P "/better:" P "/good/:/no/such/place:" P "/major",
    };
    weft_backends *much = NULL;

    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_backends_create(&options, &much), weft_backends_release(&much)), 40);
}
