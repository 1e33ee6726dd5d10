#include "config/config.h"
#include "support/suite.h"
#include "weft/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define ENVIRONMENT(...)                                                                           \
    ((struct wf_environment){(char *const[]){(char *)"HOME=/root", __VA_ARGS__, NULL}, false})

static const struct wf_knob *knob_named(const char *name)
{
    for (size_t i = 0; i < wf_knob_count; i++)
        if (strcmp(wf_knobs[i].name, name) == 0) return &wf_knobs[i];
    ck_abort_msg("no knob %s", name);
}

TEST(an_empty_environment_gives_the_defaults)
{
    struct wf_environment none = {NULL, false};
    struct wf_config *config;

    ck_assert_int_eq(wf_config_parse(none, &config), WEFT_OK);
    ck_assert_str_eq(config->backend, "auto");
    ck_assert_ptr_null(config->plugin_path);
    ck_assert_int_eq(config->log_level, WF_LOG_NOTICE);
    ck_assert_int_eq(config->timeout_ns, INT64_C(300000000000));
    ck_assert(!config->check);
    wf_config_release(&config);
    ck_assert_ptr_null(config);
}

TEST(values_come_from_the_environment)
{
    struct wf_environment set =
        ENVIRONMENT("WEFT_BACKEND=nccl,gloo-cpu", "WEFT_TIMEOUT=2.5", "WEFT_CHECK=yes",
                    "WEFT_LOG=debug", "WEFT_PLUGIN_PATH=/a:/b");
    struct wf_config *config;

    ck_assert_int_eq(wf_config_parse(set, &config), WEFT_OK);
    ck_assert_str_eq(config->backend, "nccl,gloo-cpu");
    ck_assert_str_eq(config->plugin_path, "/a:/b");
    ck_assert_int_eq(config->log_level, WF_LOG_DEBUG);
    ck_assert_int_eq(config->timeout_ns, INT64_C(2500000000));
    ck_assert(config->check);
    wf_config_release(&config);
}

TEST(an_empty_variable_counts_as_not_set)
{
    struct wf_config *config;

    ck_assert_int_eq(wf_config_parse(ENVIRONMENT("WEFT_BACKEND=", "WEFT_TIMEOUT="), &config),
                     WEFT_OK);
    ck_assert_str_eq(config->backend, "auto");
    ck_assert_int_eq(config->timeout_ns, INT64_C(300000000000));
    wf_config_release(&config);
}

TEST(a_bad_value_names_the_variable_the_text_and_what_is_wanted)
{
    struct wf_config *config = NULL;

    ck_assert_int_eq(wf_config_parse(ENVIRONMENT("WEFT_CHECK=maybe"), &config), WEFT_ERR_PARSE);
    ck_assert_ptr_null(config);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "WEFT_CHECK is \"maybe\""));
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "yes"));
    ck_assert_int_eq(wf_config_parse(ENVIRONMENT("WEFT_LOG=loud"), &config), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "notice"));
}

TEST(seconds_are_decimal_positive_and_bounded)
{
    static const char *const good[] = {"1", "0.5", "300", "9223372036", "1.0000000009"};
    static const char *const bad[] = {"0",  "0.0", "-1", "1s", "1e3",         ".5",
                                      "1,", " 1",  "x",  "",   "9223372037.1"};
    const struct wf_knob *knob = knob_named("WEFT_TIMEOUT");

    for (size_t i = 0; i < WF_COUNT(good); i++)
        ck_assert_msg(wf_knob_check(knob, good[i]) == WEFT_OK, "%s", good[i]);
    for (size_t i = 0; i < WF_COUNT(bad); i++)
        ck_assert_msg(wf_knob_check(knob, bad[i]) == WEFT_ERR_PARSE, "%s", bad[i]);
}

TEST(zero_seconds_turn_a_period_off)
{
    struct wf_config *config;

    ck_assert_int_eq(wf_config_parse(ENVIRONMENT("WEFT_SILENT=0"), &config), WEFT_OK);
    ck_assert_int_eq(config->silent_ns, 0);
    wf_config_release(&config);
    ck_assert_int_eq(wf_knob_check(knob_named("WEFT_SILENT"), "-1"), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "0 means never"));
}

TEST(bytes_have_a_unit_or_none_and_a_limit)
{
    static const char *const bad[] = {
        "abc", "-1", "99999999T", "8589934592G", "9223372036854775808",
        "1KB", "K",  "1 K",       "0x10",        "1.5G"};
    struct wf_config *config;

    for (size_t i = 0; i < WF_COUNT(bad); i++)
        ck_assert_msg(wf_knob_check(knob_named("WEFT_CPU_HEAP"), bad[i]) == WEFT_ERR_PARSE, "%s",
                      bad[i]);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "WEFT_CPU_HEAP is \"1.5G\"; expected a number "
                                                    "of bytes"));
    ck_assert_int_eq(
        wf_config_parse(ENVIRONMENT("WEFT_GLOO_STAGE=50k", "WEFT_NVSHMEM_HEAP=8589934591G"),
                        &config),
        WEFT_OK);
    ck_assert_int_eq(config->cpu_heap, -1);
    ck_assert_int_eq(config->gloo_stage, 51200);
    ck_assert_int_eq(config->nvshmem_heap, INT64_C(8589934591) << 30);
    wf_config_release(&config);
}

TEST(every_default_can_be_read)
{
    for (size_t i = 0; i < wf_knob_count; i++)
        if (wf_knobs[i].fallback[0] != '\0')
            ck_assert_msg(wf_knob_check(&wf_knobs[i], wf_knobs[i].fallback) == WEFT_OK, "%s",
                          wf_knobs[i].name);
}

TEST(a_privileged_program_ignores_path_variables)
{
    struct wf_environment secure =
        ENVIRONMENT("WEFT_PLUGIN_PATH=/evil", "WEFT_NCCL_LIB=/evil.so", "WEFT_BACKEND=nccl");
    struct wf_config *config;

    secure.secure = true;
    ck_assert_int_eq(wf_config_parse(secure, &config), WEFT_OK);
    ck_assert_ptr_null(config->plugin_path);
    ck_assert_ptr_null(config->nccl_lib);
    ck_assert_str_eq(config->backend, "nccl");
    ck_assert(wf_knob_ignored(knob_named("WEFT_NCCL_LIB"), secure));
    ck_assert(!wf_knob_ignored(knob_named("WEFT_BACKEND"), secure));
    wf_config_release(&config);
}

TEST(unknown_variables_come_with_the_nearest_known_name)
{
    struct wf_environment set =
        ENVIRONMENT("WEFT_BAKEND=x", "WEFT_LOG=info", "WEFT_QUITE_SOMETHING_ELSE=1",
                    "WEFT_TEST_SEED=1", "XWEFT_Y=1");
    const struct wf_knob *nearest;
    const char *name;
    size_t length;

    name = wf_config_unknown(set, 0, &length, &nearest);
    ck_assert_uint_eq(length, strlen("WEFT_BAKEND"));
    ck_assert_int_eq(strncmp(name, "WEFT_BAKEND", length), 0);
    ck_assert_str_eq(nearest->name, "WEFT_BACKEND");
    name = wf_config_unknown(set, 1, &length, &nearest);
    ck_assert_int_eq(strncmp(name, "WEFT_QUITE_SOMETHING_ELSE", length), 0);
    ck_assert_ptr_null(nearest);
    ck_assert_ptr_null(wf_config_unknown(set, 2, &length, &nearest));
}

TEST(plugins_see_knobs_and_nothing_else)
{
    setenv("WEFT_NCCL_LIB", "/opt/libnccl.so.2", 1);
    unsetenv("WEFT_RCCL_LIB");
    ck_assert_str_eq(wf_config_knob("WEFT_NCCL_LIB"), "/opt/libnccl.so.2");
    ck_assert_ptr_null(wf_config_knob("WEFT_RCCL_LIB"));
    ck_assert_ptr_null(wf_config_knob("PATH"));
    ck_assert_ptr_nonnull(wf_config_getenv("PATH"));
    unsetenv("WEFT_NCCL_LIB");
}

TEST(reading_the_process_sets_the_log_level)
{
    struct wf_config *config;
    int before = wf_log_level();

    setenv("WEFT_LOG", "error", 1);
    ck_assert_int_eq(wf_config_read(&config), WEFT_OK);
    ck_assert_int_eq(wf_log_level(), WF_LOG_ERROR);
    wf_config_release(&config);
    unsetenv("WEFT_LOG");
    wf_log_set_level(before);
}

TEST(the_digest_sees_planning_knobs_alone)
{
    struct wf_config *a, *b;

    ck_assert_int_eq(wf_config_parse(ENVIRONMENT("WEFT_LOG=debug"), &a), WEFT_OK);
    ck_assert_int_eq(wf_config_parse(ENVIRONMENT("WEFT_TIMEOUT=1"), &b), WEFT_OK);
    ck_assert_uint_eq(wf_config_digest(a), wf_config_digest(b));
    wf_config_release(&a);
    wf_config_release(&b);
    for (size_t i = 0; i < wf_knob_count; i++) {
        char changed[128];

        if (!wf_knobs[i].planning) continue;
        snprintf(changed, sizeof changed, "%s=%s", wf_knobs[i].name,
                 strcmp(wf_knobs[i].fallback, "1") == 0 ? "0" : "1");
        ck_assert_int_eq(wf_config_parse(ENVIRONMENT("A=b"), &a), WEFT_OK);
        ck_assert_int_eq(wf_config_parse(ENVIRONMENT(changed), &b), WEFT_OK);
        ck_assert_uint_ne(wf_config_digest(a), wf_config_digest(b));
        wf_config_release(&a);
        wf_config_release(&b);
    }
}

TEST(every_allocation_may_fail)
{
    struct wf_environment set = ENVIRONMENT("WEFT_BACKEND=nccl", "WEFT_PLUGIN_PATH=/a");
    int64_t live = wf_mem_live();
    struct wf_config *config = NULL;
    uint64_t n = 1;

    for (;; n++) {
        weft_status status;

        wf_mem_fail_at(n);
        status = wf_config_parse(set, &config);
        wf_mem_fail_at(0);
        if (status == WEFT_OK) break;
        ck_assert_int_eq(status, WEFT_ERR_NO_MEMORY);
        ck_assert_ptr_null(config);
        ck_assert_int_eq(wf_mem_live(), live);
    }
    ck_assert_uint_gt(n, 2);
    wf_config_release(&config);
    ck_assert_int_eq(wf_mem_live(), live);
}

static atomic_int reads;

static void *read_environment(void *unused)
{
    struct wf_config *config = NULL;

    if (wf_config_knob("WEFT_BACKEND") != NULL) atomic_fetch_add(&reads, 1);
    if (wf_config_read(&config) == WEFT_OK) atomic_fetch_add(&reads, 1);
    wf_config_release(&config);
    return unused;
}

/* As a probed plugin does, which may read knobs too. */
TEST(the_environment_is_not_read_while_it_changes)
{
    pthread_t reader;

    setenv("WEFT_BACKEND", "gloo-cpu", 1);
    wf_environment_lock();
    wf_environment_lock();
    ck_assert_int_eq(pthread_create(&reader, NULL, read_environment, NULL), 0);
    for (int i = 0; i < 200; i++) {
        char name[32];

        snprintf(name, sizeof name, "WEFT_TEST_%d", i);
        setenv(name, "x", 1);
        ck_assert_str_eq(wf_config_knob("WEFT_BACKEND"), "gloo-cpu");
        if (i == 100) wf_environment_unlock();
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    ck_assert_int_eq(atomic_load(&reads), 0);
    wf_environment_unlock();
    pthread_join(reader, NULL);
    ck_assert_int_eq(atomic_load(&reads), 2);
    unsetenv("WEFT_BACKEND");
}
