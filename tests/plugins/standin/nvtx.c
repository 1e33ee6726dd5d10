/* nvtx.c - a tool that NVTX_INJECTION64_PATH names: it attaches as NVIDIA's tools do, checks that
 * the client keeps the rules, and remembers the ranges.  It ignores the domains of other clients,
 * such as NCCL.
 *
 * The environment: STANDIN_NVTX_FAIL=1 (it does not start), STANDIN_NVTX_DEAF=1 (it stores
 * no functions), STANDIN_NVTX_PLAIN=1 (it registers no texts). */
#include "ranges.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);

struct callbacks {
    size_t struct_size;
    int (*get_module)(int module, function ***table, unsigned *size);
};

struct version {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set)(uint32_t version);
};

struct event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union {
        uint64_t u64;
        double f64;
    } payload;
    int32_t message_type;
    const void *message;
};

struct domain {
    const char *name;
};
static struct domain domain, foreign;
static const char *category_names[256], *texts[2048];
static int text_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *domain_create(const char *name)
{
    if (strcmp(name, "weft") != 0) return &foreign;
    if (domain.name != NULL) ranges_complain("there are two domains");
    domain.name = strdup(name);
    return &domain;
}

static void *register_string(struct domain *in, const char *text)
{
    char *copy;

    if (in == &foreign) return &foreign;
    copy = strdup(text);
    ranges_register();
    if (in != &domain) ranges_complain("a text is registered in no domain");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < text_count; i++)
        if (strcmp(texts[i], text) == 0) ranges_complain("a text is registered twice");
    if (text_count < 2048) texts[text_count++] = copy;
    pthread_mutex_unlock(&lock);
    return copy;
}

static void name_category(struct domain *in, uint32_t category, const char *name)
{
    if (in == &foreign) return;
    if (in != &domain) ranges_complain("a category is named in no domain");
    if (category == 0 || category >= 256 || category_names[category] != NULL)
        ranges_complain("a category is 0 or is named twice");
    else
        category_names[category] = strdup(name);
}

static int push(struct domain *in, const struct event *event)
{
    const char *category = NULL;

    if (in == &foreign) return 0;
    if (in != &domain) ranges_complain("a range is in no domain");
    if (event->version != 3 || event->size != 48) ranges_complain("an event has another size");
    if (event->payload_type != 1) ranges_complain("a payload is not of 64 bits");
    if (event->message_type != 3 && event->message_type != 1) ranges_complain("no message");
    if (event->category < 256) category = category_names[event->category];
    ranges_push(domain.name, category != NULL ? category : "", event->message, event->payload.u64);
    return 0;
}

static int pop(struct domain *in)
{
    if (in == &foreign) return 0;
    ranges_pop(domain.name);
    return 0;
}

static bool is_set(const char *name)
{
    return getenv(name) != NULL;
}

/* Like tools that look at every module. */
static bool has_all_modules(const struct callbacks *callbacks)
{
    static const unsigned wanted[] = {0, 16, 9, 15, 7, 16, 7};

    for (int module = 1; module <= 6; module++) {
        function **table = NULL;
        unsigned size = 0;

        if (callbacks->get_module(module, &table, &size) == 0 || size != wanted[module])
            return false;
        if (table[0] != NULL || table[size] != NULL) return false;
        for (unsigned i = 1; i < size; i++)
            if (table[i] == NULL) return false;
    }
    return callbacks->get_module(0, NULL, NULL) == 0 && callbacks->get_module(7, NULL, NULL) == 0;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t table));

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t table))
{
    const struct callbacks *callbacks = get_table(1);
    const struct version *version = get_table(3);
    function **table;

    if (is_set("STANDIN_NVTX_FAIL") || callbacks == NULL || version == NULL) return 0;
    if (callbacks->struct_size != sizeof *callbacks || version->struct_size != sizeof *version ||
        version->version != 3 || get_table(2) != NULL || !has_all_modules(callbacks))
        ranges_complain("the client's tables are wrong");
    version->set(3);
    if (callbacks->get_module(5, &table, NULL) == 0) return 0;
    if (is_set("STANDIN_NVTX_DEAF")) return 1;
    *table[4] = (function)push;
    *table[5] = (function)pop;
    *table[8] = (function)name_category;
    if (!is_set("STANDIN_NVTX_PLAIN")) *table[10] = (function)register_string;
    *table[12] = (function)domain_create;
    return 1;
}
