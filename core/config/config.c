/* config.c - reads the environment into struct wf_config, by the table of knobs.def. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* clang-format off */
#define NAME_TEXT    "text"
#define NAME_SECRET  "secret"
#define NAME_PATH    "path"
#define NAME_PATHS   "paths"
#define NAME_BOOL    "bool"
#define NAME_LEVEL   "level"
#define NAME_NUMBER  "number"
#define NAME_SECONDS "seconds"
#define NAME_PERIOD  "seconds"
#define NAME_BYTES   "bytes"
/* clang-format on */

const struct wf_knob wf_knobs[] = {
#define KNOB(variable, field, type, fallback, planning, help)                                      \
    {#variable,                                                                                    \
     NAME_##type,                                                                                  \
     fallback,                                                                                     \
     help,                                                                                         \
     WF_KNOB_##type,                                                                               \
     planning,                                                                                     \
     offsetof(struct wf_config, field)},
#include "knobs.def"
#undef KNOB
};
const size_t wf_knob_count = WF_COUNT(wf_knobs);

static const char prefix[] = "WEFT_";
static const char reserved_for_tests[] = "WEFT_TEST_";

struct wf_environment wf_environment(void)
{
    return (struct wf_environment){environ, getauxval(AT_SECURE) != 0};
}

static pthread_mutex_t environment_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int held;

void wf_environment_lock(void)
{
    if (held++ == 0) pthread_mutex_lock(&environment_lock);
}

void wf_environment_unlock(void)
{
    if (--held == 0) pthread_mutex_unlock(&environment_lock);
}

bool wf_environment_is_locked(void)
{
    return held > 0;
}

const char *wf_environment_get(struct wf_environment environment, const char *name)
{
    size_t length = strlen(name);

    for (char *const *entry = environment.entries; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return (*entry)[length + 1] != '\0' ? *entry + length + 1 : NULL;
    return NULL;
}

const char *wf_config_getenv(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const struct wf_knob *find_knob(const char *name, size_t length)
{
    for (size_t i = 0; i < wf_knob_count; i++)
        if (strlen(wf_knobs[i].name) == length && memcmp(wf_knobs[i].name, name, length) == 0)
            return &wf_knobs[i];
    return NULL;
}

static bool is_path(const struct wf_knob *knob)
{
    return knob->kind == WF_KNOB_PATH || knob->kind == WF_KNOB_PATHS;
}

static bool is_string(const struct wf_knob *knob)
{
    return knob->kind == WF_KNOB_TEXT || knob->kind == WF_KNOB_SECRET || is_path(knob);
}

bool wf_knob_ignored(const struct wf_knob *knob, struct wf_environment environment)
{
    return environment.secure && is_path(knob) &&
           wf_environment_get(environment, knob->name) != NULL;
}

const char *wf_config_knob(const char *name)
{
    const struct wf_knob *knob = find_knob(name, strlen(name));
    const char *value = NULL;

    wf_environment_lock();
    if (knob != NULL && !wf_knob_ignored(knob, wf_environment())) value = wf_config_getenv(name);
    wf_environment_unlock();
    return value;
}

/* ---- values ---- */

/* A value of any kind but string. */
union value {
    bool yes;
    int level;
    int64_t number;
};

static weft_status refuse_value(const struct wf_knob *knob, const char *text, const char *expected)
{
    return wf_fail(WEFT_ERR_PARSE, "%s is \"%.200s\"; expected %s", knob->name, text, expected);
}

/* Index of TEXT in NAMES, or -1. */
static int find_word(const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) return (int)i;
    return -1;
}

static weft_status parse_bool(const struct wf_knob *knob, const char *text, bool *out)
{
    static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
    int word = find_word(text, words, WF_COUNT(words));

    if (word < 0) return refuse_value(knob, text, "1, yes, on or true, or 0, no, off or false");
    *out = word % 2 == 1;
    return WEFT_OK;
}

static weft_status parse_level(const struct wf_knob *knob, const char *text, int *out)
{
    static const char *const words[] = {"error", "warning", "notice", "info", "debug"};
    int word = find_word(text, words, WF_COUNT(words));

    if (word < 0) return refuse_value(knob, text, "error, warning, notice, info or debug");
    *out = word;
    return WEFT_OK;
}

static weft_status parse_number(const struct wf_knob *knob, const char *text, int64_t *out)
{
    bool is_recorder = knob->offset == offsetof(struct wf_config, recorder);
    struct wf_scan scan = {text, 0};
    int64_t value;

    if (wf_scan_int(&scan, "a number", &value) != WEFT_OK || !wf_scan_end(&scan) ||
        (is_recorder && value > WF_CONFIG_RECORDER_MOST))
        return refuse_value(knob, text,
                            is_recorder ? "a whole number from 0 to 65536"
                                        : "a whole number from 0 to 2^63 - 1");
    *out = value;
    return WEFT_OK;
}

/* "12", "0.25": parsed by hand, because the locale's decimal point must not matter. */
static weft_status parse_seconds(const struct wf_knob *knob, const char *text, int64_t *out)
{
    bool may_be_0 = knob->kind == WF_KNOB_PERIOD;
    const char *expected = may_be_0
                               ? "seconds, such as 30 or 0.5, below 2^63 nanoseconds; 0 means never"
                               : "seconds, such as 30 or 0.5, above 0 and below 2^63 nanoseconds";
    struct wf_scan scan = {text, 0};
    int64_t seconds, nanoseconds = 0, unit = 100000000;

    if (wf_scan_int(&scan, "seconds", &seconds) != WEFT_OK)
        return refuse_value(knob, text, expected);
    if (wf_scan_char(&scan, '.')) {
        for (; wf_scan_peek(&scan) >= '0' && wf_scan_peek(&scan) <= '9'; scan.at++) {
            nanoseconds += (wf_scan_peek(&scan) - '0') * unit;
            unit /= 10;
        }
    }
    if (!wf_scan_end(&scan) || !wf_mul_i64(seconds, 1000000000, &seconds) ||
        !wf_add_i64(seconds, nanoseconds, &seconds) || (seconds == 0 && !may_be_0))
        return refuse_value(knob, text, expected);
    *out = seconds;
    return WEFT_OK;
}

static weft_status parse_bytes(const struct wf_knob *knob, const char *text, int64_t *out)
{
    static const char units[] = "KMG", small_units[] = "kmg";
    struct wf_scan scan = {text, 0};
    int64_t value;
    bool fits = wf_scan_int(&scan, "bytes", &value) == WEFT_OK;

    for (int i = 0; fits && i < 3; i++)
        if (wf_scan_char(&scan, units[i]) || wf_scan_char(&scan, small_units[i])) {
            fits = wf_mul_i64(value, INT64_C(1024) << 10 * i, &value);
            break;
        }
    if (!fits || !wf_scan_end(&scan))
        return refuse_value(knob, text, "a number of bytes below 2^63, such as 65536, 512M or 64G");
    *out = value;
    return WEFT_OK;
}

/* TEXT is never empty; it is NULL for a knob that is not set and has no default. */
static weft_status parse_value(const struct wf_knob *knob, const char *text, union value *out)
{
    switch (knob->kind) {
    case WF_KNOB_BOOL:
        return parse_bool(knob, text != NULL ? text : "0", &out->yes);
    case WF_KNOB_LEVEL:
        return parse_level(knob, text != NULL ? text : "notice", &out->level);
    case WF_KNOB_NUMBER:
    case WF_KNOB_SECONDS:
    case WF_KNOB_PERIOD:
    case WF_KNOB_BYTES:
        out->number = -1;
        if (text == NULL) return WEFT_OK;
        if (knob->kind == WF_KNOB_BYTES) return parse_bytes(knob, text, &out->number);
        return knob->kind == WF_KNOB_NUMBER ? parse_number(knob, text, &out->number)
                                            : parse_seconds(knob, text, &out->number);
    case WF_KNOB_TEXT:
    case WF_KNOB_SECRET:
    case WF_KNOB_PATH:
    case WF_KNOB_PATHS:
        break;
    }
    return WEFT_OK;
}

weft_status wf_knob_check(const struct wf_knob *knob, const char *text)
{
    union value ignored;

    return parse_value(knob, text, &ignored);
}

static const char **string_field(struct wf_config *config, const struct wf_knob *knob)
{
    return (const char **)(void *)((char *)config + knob->offset);
}

static weft_status set_field(struct wf_config *config, const struct wf_knob *knob, const char *text)
{
    void *field = (char *)config + knob->offset;
    union value value;

    WF_TRY(parse_value(knob, text, &value));
    if (is_string(knob)) {
        char *copy = text != NULL ? wf_strdup(text) : NULL;
        if (text != NULL && copy == NULL) return wf_fail_memory(strlen(text) + 1);
        *string_field(config, knob) = copy;
    } else if (knob->kind == WF_KNOB_BOOL) {
        *(bool *)field = value.yes;
    } else if (knob->kind == WF_KNOB_LEVEL) {
        *(int *)field = value.level;
    } else {
        *(int64_t *)field = value.number;
    }
    return WEFT_OK;
}

/* ---- the struct ---- */

weft_status wf_config_parse(struct wf_environment environment, struct wf_config **out)
{
    struct wf_config *config = wf_calloc(1, sizeof *config);

    if (config == NULL) return wf_fail_memory(sizeof *config);
    for (size_t i = 0; i < wf_knob_count; i++) {
        const struct wf_knob *knob = &wf_knobs[i];
        const char *text = wf_environment_get(environment, knob->name);
        weft_status status;

        if (wf_knob_ignored(knob, environment)) text = NULL;
        if (text == NULL && knob->fallback[0] != '\0') text = knob->fallback;
        status = set_field(config, knob, text);
        if (status != WEFT_OK) {
            wf_config_release(&config);
            return status;
        }
    }
    *out = config;
    return WEFT_OK;
}

static void point_out_unknown(struct wf_environment environment)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const struct wf_knob *nearest;
    const char *name;
    size_t length;

    if (atomic_flag_test_and_set(&done)) return;
    for (size_t i = 0; (name = wf_config_unknown(environment, i, &length, &nearest)) != NULL; i++)
        wf_log(WF_LOG_WARNING, "weft does not know %.*s%s%s%s", (int)length, name,
               nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest->name : "",
               nearest != NULL ? "?" : "; `weft env` lists the variables it knows");
}

weft_status wf_config_read(struct wf_config **out)
{
    struct wf_config *config;
    weft_status status;

    wf_environment_lock();
    status = wf_config_parse(wf_environment(), &config);
    if (status == WEFT_OK) {
        wf_log_set_level(config->log_level);
        point_out_unknown(wf_environment());
        *out = config;
    }
    wf_environment_unlock();
    return status;
}

void wf_config_release(struct wf_config **config)
{
    if (*config == NULL) return;
    for (size_t i = 0; i < wf_knob_count; i++)
        if (is_string(&wf_knobs[i])) wf_free((void *)*string_field(*config, &wf_knobs[i]));
    wf_free(*config);
    *config = NULL;
}

static uint64_t hash_field(uint64_t seed, const struct wf_config *config,
                           const struct wf_knob *knob)
{
    const char *field = (const char *)config + knob->offset;
    const char *text;

    switch (knob->kind) {
    case WF_KNOB_BOOL:
        return wf_hash_mix(seed, *(const bool *)(const void *)field);
    case WF_KNOB_LEVEL:
        return wf_hash_mix(seed, (uint64_t) * (const int *)(const void *)field);
    case WF_KNOB_NUMBER:
    case WF_KNOB_SECONDS:
    case WF_KNOB_PERIOD:
    case WF_KNOB_BYTES:
        return wf_hash_mix(seed, (uint64_t) * (const int64_t *)(const void *)field);
    case WF_KNOB_TEXT:
    case WF_KNOB_SECRET:
    case WF_KNOB_PATH:
    case WF_KNOB_PATHS:
        break;
    }
    text = *(const char *const *)(const void *)field;
    return text != NULL ? wf_hash(seed, text, strlen(text) + 1) : wf_hash_mix(seed, 0);
}

uint64_t wf_config_digest(const struct wf_config *config)
{
    uint64_t digest = 0;

    for (size_t i = 0; i < wf_knob_count; i++)
        if (wf_knobs[i].planning) {
            digest = wf_hash(digest, wf_knobs[i].name, strlen(wf_knobs[i].name));
            digest = hash_field(digest, config, &wf_knobs[i]);
        }
    return digest;
}

/* ---- variables that are not in the table ---- */

static const struct wf_knob *nearest_knob(const char *name, size_t length)
{
    const char *names[WF_COUNT(wf_knobs)];
    char copy[64];
    int nearest;

    if (length >= sizeof copy) return NULL;
    memcpy(copy, name, length);
    copy[length] = '\0';
    for (size_t i = 0; i < wf_knob_count; i++)
        names[i] = wf_knobs[i].name + strlen(prefix);
    nearest = wf_nearest(copy + strlen(prefix), names, wf_knob_count);
    return nearest >= 0 ? &wf_knobs[nearest] : NULL;
}

const char *wf_config_unknown(struct wf_environment environment, size_t index, size_t *length,
                              const struct wf_knob **nearest)
{
    for (char *const *entry = environment.entries; entry != NULL && *entry != NULL; entry++) {
        size_t name_length = strcspn(*entry, "=");
        if (strncmp(*entry, prefix, strlen(prefix)) != 0 || find_knob(*entry, name_length) != NULL)
            continue;
        if (strncmp(*entry, reserved_for_tests, strlen(reserved_for_tests)) == 0) continue;
        if (index-- > 0) continue;
        *length = name_length;
        *nearest = nearest_knob(*entry, name_length);
        return *entry;
    }
    return NULL;
}
