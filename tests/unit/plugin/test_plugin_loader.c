#include "plugin/plugin.h"
#include "support/folder.h"
#include "support/suite.h"

#include <pthread.h>

static const struct wf_loaded *loaded;
static struct wf_verdict verdict;

/* This program: the build tree may lie below directories of other users. */
static const char *own_file(void)
{
    static char *own;

    if (own == NULL) ck_assert_int_eq(wf_search_own_file(&own), WEFT_OK);
    return own;
}

static uint32_t load(const char *file)
{
    verdict = (struct wf_verdict){0};
    loaded = NULL;
    ck_assert_int_eq(wf_load(file, own_file(), false, &loaded, &verdict), WEFT_OK);
    ck_assert((loaded != NULL) == (verdict.reason == WEFT_BACKEND_REASON_USABLE));
    return verdict.reason;
}

TEST(a_good_plugin_loads)
{
    ck_assert_uint_eq(load(TEST_PLUGINS "/good/libweft_plugin_good.so"),
                      WEFT_BACKEND_REASON_USABLE);
    ck_assert_str_eq(loaded->tables.plugin.name, "good");
    ck_assert(loaded->tables.comm.prepare != NULL);
    ck_assert_ptr_null(loaded->tables.plugin.symm);
}

/* Every reason to refuse a plugin at loading, with a word of each message. */
TEST(each_wrong_plugin_is_refused_for_its_own_reason)
{
    static const struct {
        const char *name;
        enum weft_backend_reason reason;
        const char *words;
    } cases[] = {
        {"undefined", WEFT_BACKEND_REASON_DLOPEN_FAILED, "nobody_defines_this"},
        {"no-entry", WEFT_BACKEND_REASON_NO_ENTRY, "weft_plugin_entry"},
        {"borrowed-entry", WEFT_BACKEND_REASON_NO_ENTRY,
         "does not define weft_plugin_entry itself"},
        {"refuses", WEFT_BACKEND_REASON_ENTRY_REFUSED, "not to my taste"},
        {"null", WEFT_BACKEND_REASON_ENTRY_REFUSED, "gives no reason"},
        {"misnamed", WEFT_BACKEND_REASON_NAME_MISMATCH, "calls itself \"other\""},
        {"major", WEFT_BACKEND_REASON_ABI_MAJOR, "ABI 8.0; this weft has 1.0"},
        {"needs-newer", WEFT_BACKEND_REASON_ABI_MINOR, "needs a host of plugin ABI 1.5"},
        {"fingerprint", WEFT_BACKEND_REASON_FINGERPRINT, "comm table has the fingerprint"},
        {"descriptor-small", WEFT_BACKEND_REASON_MALFORMED, "claims 16 bytes"},
        {"descriptor-large", WEFT_BACKEND_REASON_MALFORMED, "claims 4294967295 bytes"},
        {"device-size", WEFT_BACKEND_REASON_MALFORMED, "device table claims"},
        {"comm-size", WEFT_BACKEND_REASON_MALFORMED, "comm table claims 2147483647 bytes"},
        {"null-function", WEFT_BACKEND_REASON_MALFORMED, "NULL for stream_wait"},
        {"no-device-table", WEFT_BACKEND_REASON_MALFORMED, "device table is at"},
        {"wild-string", WEFT_BACKEND_REASON_MALFORMED, "version at 0x1"},
        {"wild-table", WEFT_BACKEND_REASON_MALFORMED, "comm table is at 0x8"},
        {"heap-descriptor", WEFT_BACKEND_REASON_MALFORMED, "in the plugin's own memory"},
        {"heap-table", WEFT_BACKEND_REASON_MALFORMED, "comm table is at"},
        {"unaligned", WEFT_BACKEND_REASON_MALFORMED, "entry returned"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        char file[512];

        snprintf(file, sizeof file, "%s/%s/libweft_plugin_%s.so", TEST_PLUGINS, cases[i].name,
                 cases[i].name);
        ck_assert_msg(load(file) == cases[i].reason, "%s: %s", cases[i].name, verdict.text);
        ck_assert_msg(strstr(verdict.text, cases[i].words) != NULL, "%s: %s", cases[i].name,
                      verdict.text);
        ck_assert_msg(strstr(verdict.text, file) != NULL, "%s is not named: %s", file,
                      verdict.text);
    }
}

TEST(the_file_itself_is_judged_first)
{
    struct folder folder = folder_create();

    ck_assert_uint_eq(load("/no/such/file.so"), WEFT_BACKEND_REASON_NOT_FOUND);
    ck_assert_uint_eq(load(folder_write(&folder, "x.so", "hello", 5)),
                      WEFT_BACKEND_REASON_NOT_READABLE);
    ck_assert_int_eq(chmod(folder_path(&folder, "x.so"), 0666), 0);
    ck_assert_uint_eq(load(folder_path(&folder, "x.so")), WEFT_BACKEND_REASON_NOT_TRUSTED);
    folder_remove(&folder);
}

TEST(a_file_that_is_called_otherwise_promises_no_name)
{
    ck_assert_uint_eq(load(TEST_PLUGINS "/any-file/mine.so"), WEFT_BACKEND_REASON_USABLE);
    ck_assert_str_eq(loaded->tables.plugin.name, "mine");
    ck_assert_uint_eq(load(TEST_PLUGINS "/bad-name/mine.so"), WEFT_BACKEND_REASON_MALFORMED);
}

TEST(the_entry_runs_once_whatever_the_file_is_called)
{
    static const char good[] = TEST_PLUGINS "/good/libweft_plugin_good.so";
    struct folder folder = folder_create();
    const struct wf_loaded *first;

    ck_assert_uint_eq(load(good), WEFT_BACKEND_REASON_USABLE);
    first = loaded;
    ck_assert_uint_eq(load(good), WEFT_BACKEND_REASON_USABLE);
    ck_assert_ptr_eq(loaded, first);
    ck_assert_int_eq(symlink(good, folder_path(&folder, "libweft_plugin_good.so")), 0);
    ck_assert_uint_eq(load(folder_path(&folder, "libweft_plugin_good.so")),
                      WEFT_BACKEND_REASON_USABLE);
    ck_assert_ptr_eq(loaded, first);
    ck_assert_str_eq(loaded->tables.plugin.version, "1.2");
    ck_assert_int_eq(symlink(good, folder_path(&folder, "libweft_plugin_bad.so")), 0);
    ck_assert_uint_eq(load(folder_path(&folder, "libweft_plugin_bad.so")),
                      WEFT_BACKEND_REASON_NAME_MISMATCH);
    folder_remove(&folder);
}

TEST(a_refusal_is_remembered_with_its_words)
{
    char words[sizeof verdict.text];

    ck_assert_uint_eq(load(TEST_PLUGINS "/refuses/libweft_plugin_refuses.so"),
                      WEFT_BACKEND_REASON_ENTRY_REFUSED);
    memcpy(words, verdict.text, sizeof words);
    ck_assert_uint_eq(load(TEST_PLUGINS "/refuses/libweft_plugin_refuses.so"),
                      WEFT_BACKEND_REASON_ENTRY_REFUSED);
    ck_assert_str_eq(verdict.text, words);
}

TEST(out_of_memory_leaves_the_entry_for_the_next_time)
{
    struct folder folder = folder_create();
    const char *copy =
        folder_copy(&folder, "copy.so", TEST_PLUGINS "/good/libweft_plugin_good.so", SIZE_MAX);
    const char *own = own_file();
    int64_t live = wf_mem_live();

    wf_mem_fail_at(1);
    ck_assert_int_eq(wf_load(copy, own, false, &loaded, &verdict), WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(0);
    ck_assert_ptr_null(loaded);
    ck_assert_int_eq(wf_mem_live(), live);
    ck_assert_uint_eq(load(copy), WEFT_BACKEND_REASON_USABLE);
    ck_assert_str_eq(loaded->tables.plugin.version, "1.2");
    folder_remove(&folder);
}

static void *load_in_thread(void *file)
{
    const struct wf_loaded *mine = NULL;
    struct wf_verdict ignored;

    if (wf_load(file, NULL, false, &mine, &ignored) != WEFT_OK) return NULL;
    return (void *)mine;
}

TEST(threads_get_the_same_plugin)
{
    struct folder folder = folder_create();
    const char *copy =
        folder_copy(&folder, "copy.so", TEST_PLUGINS "/good/libweft_plugin_good.so", SIZE_MAX);
    pthread_t threads[8];
    void *results[WF_COUNT(threads)];

    for (size_t i = 0; i < WF_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, load_in_thread, (void *)copy), 0);
    for (size_t i = 0; i < WF_COUNT(threads); i++)
        pthread_join(threads[i], &results[i]);
    ck_assert_ptr_nonnull(results[0]);
    for (size_t i = 1; i < WF_COUNT(threads); i++)
        ck_assert_ptr_eq(results[i], results[0]);
    ck_assert_str_eq(((const struct wf_loaded *)results[0])->tables.plugin.version, "1.2");
    folder_remove(&folder);
}
