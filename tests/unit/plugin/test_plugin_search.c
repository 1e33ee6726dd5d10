#include "plugin/plugin.h"
#include "support/allocfail.h"
#include "support/folder.h"
#include "support/suite.h"

TEST(directories_come_in_order_of_precedence)
{
    struct wf_directories list;

    ck_assert_int_eq(wf_search_directories("/opt/a:/opt/b/", "/var/c", "/usr/bin/tool", &list),
                     WEFT_OK);
    ck_assert_uint_ge(list.count, 4);
    ck_assert_str_eq(list.items[0].path, "/opt/a");
    ck_assert_str_eq(list.items[0].origin, "the plugin_path option");
    ck_assert_str_eq(list.items[1].path, "/opt/b");
    ck_assert_str_eq(list.items[2].path, "/var/c");
    ck_assert_str_eq(list.items[2].origin, "WEFT_PLUGIN_PATH");
    ck_assert_str_eq(list.items[3].origin, "beside libweft");
    for (size_t i = 0; i < list.count; i++)
        ck_assert_ptr_null(list.items[i].refused);
    wf_directories_free(&list);
}

static bool lists(const struct wf_directories *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, path) == 0) return true;
    return false;
}

TEST(beside_means_below_the_library_or_the_program_s_prefix)
{
    struct wf_directories list;

    ck_assert_int_eq(wf_search_directories(NULL, NULL, "/usr/lib/libweft.so.0.1", &list), WEFT_OK);
    ck_assert(lists(&list, "/usr/lib/weft"));
    ck_assert_uint_eq(list.count, 1);
    ck_assert_ptr_null(list.items[0].refused);
    wf_directories_free(&list);
    ck_assert_int_eq(wf_search_directories(NULL, NULL, "/opt/weft/bin/weft", &list), WEFT_OK);
    ck_assert(lists(&list, "/opt/weft/lib/weft"));
    ck_assert(!lists(&list, "/opt/weft/bin/weft"));
    wf_directories_free(&list);
    ck_assert_int_eq(wf_search_directories(NULL, NULL, "/weft", &list), WEFT_OK);
    ck_assert(lists(&list, "/lib/weft"));
    wf_directories_free(&list);
}

TEST(relative_and_repeated_entries_are_kept_with_a_reason)
{
    struct wf_directories list;

    ck_assert_int_eq(wf_search_directories(NULL, ".:lib:/a::/a/:", NULL, &list), WEFT_OK);
    ck_assert_uint_eq(list.count, 4);
    ck_assert_str_eq(list.items[0].refused, "it is not an absolute path");
    ck_assert_str_eq(list.items[1].refused, "it is not an absolute path");
    ck_assert_ptr_null(list.items[2].refused);
    ck_assert_str_eq(list.items[3].refused, "it is listed before");
    wf_directories_free(&list);
}

TEST(plugin_files_are_found_by_name_and_sorted)
{
    struct folder folder = folder_create();
    char **names;
    size_t count;

    folder_write(&folder, "libweft_plugin_zeta.so", "", 0);
    folder_write(&folder, "libweft_plugin_alpha.so", "", 0);
    folder_write(&folder, "libweft_plugin_Bad.so", "", 0);
    folder_write(&folder, "libweft_plugin_.so", "", 0);
    folder_write(&folder, "libweft_plugin_auto.so", "", 0);
    folder_write(&folder, "libweft_plugin_old.so.1", "", 0);
    folder_write(&folder, "libweft.so", "", 0);
    ck_assert_int_eq(wf_search_files(folder.path, &names, &count), WEFT_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(names[0], "libweft_plugin_alpha.so");
    ck_assert_str_eq(names[1], "libweft_plugin_zeta.so");
    wf_search_files_free(names, count);
    folder_remove(&folder);
}

TEST(a_directory_that_cannot_be_listed_says_why)
{
    struct folder folder = folder_create();
    const char *file = folder_write(&folder, "file", "", 0);
    char **names;
    size_t count;

    ck_assert_int_eq(wf_search_files("/no/such/folder", &names, &count), WEFT_ERR_NOT_FOUND);
    ck_assert_str_eq(weft_last_error(), "does not exist");
    ck_assert_int_eq(wf_search_files(file, &names, &count), WEFT_ERR_NOT_FOUND);
    ck_assert_str_eq(weft_last_error(), "is not a directory");
    folder_remove(&folder);
}

TEST(the_own_file_is_this_program_wherever_it_was_started)
{
    char real[4096];
    char *own;
    ssize_t length = readlink("/proc/self/exe", real, sizeof real - 1);

    ck_assert_int_gt(length, 0);
    real[length] = '\0';
    ck_assert_int_eq(wf_search_own_file(&own), WEFT_OK);
    ck_assert_str_eq(own, real);
    wf_free(own);
}

TEST(every_allocation_may_fail)
{
    struct folder folder = folder_create();
    struct wf_directories list = {0};
    char *own, **names = NULL;
    size_t count = 0;

    folder_write(&folder, "libweft_plugin_a.so", "", 0);
    folder_write(&folder, "libweft_plugin_b.so", "", 0);
    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(wf_search_directories("/a:/b", "/c:d", "/usr/bin/tool", &list),
                         wf_directories_free(&list)),
        10);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(wf_search_files(folder.path, &names, &count),
                                       wf_search_files_free(names, count)),
                      4);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(wf_search_own_file(&own), wf_free(own)), 1);
    folder_remove(&folder);
}
