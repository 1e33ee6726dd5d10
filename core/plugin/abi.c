/* abi.c - checks the descriptor and the tables of a plugin.
 *
 * The order matters.  Memory is read only after it is known to be the plugin's own.  Fields after
 * the version are read only after the version is accepted. */
#include "plugin.h"

#include "plugin/older.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Name, version and the like are for one line of a table. */
enum { LONGEST_STRING = 255 };

/* A length a table may have, and the fingerprint that belongs to it. */
struct accepted {
    size_t size;
    uint64_t signature;
};

struct slot {
    const char *name;
    size_t offset;
};

/* The properties of one of the four tables. */
struct rule {
    const char *name;
    size_t pointer; /* offset of the table's pointer in weft_plugin */
    size_t copy;    /* offset of our copy in struct wf_tables */
    bool optional;  /* the pointer may be NULL */
    const struct accepted *accepted;
    size_t accepted_count;
    const struct slot *required;
    size_t required_count;
};

/* How every table begins. */
struct head {
    uint32_t struct_size, reserved;
    uint64_t signature;
};

#define SLOT(table, function)                                                                      \
    {                                                                                              \
#function, offsetof(table, function)                                                       \
    }
#define D(function) SLOT(weft_device_table, function)
#define C(function) SLOT(weft_comm_table, function)
#define S(function) SLOT(weft_symm_table, function)
#define K(function) SLOT(weft_kernel_table, function)

static const struct slot device_required[] = {
    D(probe),          D(open),          D(close),       D(describe),    D(allocate),
    D(free),           D(query_pointer), D(copy),        D(fill),        D(stream_create),
    D(stream_destroy), D(stream_query),  D(stream_wait), D(stream_call), D(event_create),
    D(event_destroy),  D(event_record),  D(event_query), D(event_wait),  D(stream_wait_event),
};
static const struct slot comm_required[] = {
    C(prepare),    C(commit), C(destroy), C(abort),       C(async_error), C(support),
    C(collective), C(send),   C(receive), C(group_begin), C(group_end),
};
static const struct slot symm_required[] = {
    S(window_create), S(window_destroy), S(handle), S(put),   S(get),     S(put_signal),
    S(signal),        S(wait_signal),    S(fence),  S(quiet), S(barrier),
};
static const struct slot kernel_required[] = {
    K(regions_create), K(regions_destroy), K(regions_copy), K(reduce), K(cast), K(scale), K(fill),
};

#define OLDER(table, appended, signature)                                                          \
    {offsetof(weft_##table##_table, appended), UINT64_C(signature)},
static const struct accepted device_accepted[] = {
    WF_OLDER_DEVICE(OLDER){sizeof(weft_device_table), WEFT_DEVICE_SIGNATURE}};
static const struct accepted comm_accepted[] = {
    WF_OLDER_COMM(OLDER){sizeof(weft_comm_table), WEFT_COMM_SIGNATURE}};
static const struct accepted symm_accepted[] = {
    WF_OLDER_SYMM(OLDER){sizeof(weft_symm_table), WEFT_SYMM_SIGNATURE}};
static const struct accepted kernel_accepted[] = {
    WF_OLDER_KERNEL(OLDER){sizeof(weft_kernel_table), WEFT_KERNEL_SIGNATURE}};

#define RULE(table, is_optional)                                                                   \
    {                                                                                              \
#table, offsetof(weft_plugin, table), offsetof(struct wf_tables, table), is_optional,      \
            table##_accepted, WF_COUNT(table##_accepted), table##_required,                        \
            WF_COUNT(table##_required)                                                             \
    }

static const struct rule rules[] = {RULE(device, false), RULE(comm, true), RULE(symm, true),
                                    RULE(kernel, true)};

/* Major, minor and size lie where every version of the ABI, past and future, puts them.  Minor
 * versions only append.  A plugin fits if the minor version that it needs is at most ours. */
static bool version_fits(const weft_plugin *given, const char *file, struct wf_verdict *verdict)
{
    if (given->abi_major != WEFT_ABI_MAJOR)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_ABI_MAJOR,
                         "%s is built for plugin ABI %u.%u; this weft has %u.%u; the major numbers "
                         "must be equal",
                         file, given->abi_major, given->abi_minor, WEFT_ABI_MAJOR, WEFT_ABI_MINOR);
    if (given->host_minor_needed > WEFT_ABI_MINOR)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_ABI_MINOR,
                         "%s needs a host of plugin ABI %u.%u or newer; this weft has %u.%u", file,
                         given->abi_major, given->host_minor_needed, WEFT_ABI_MAJOR,
                         WEFT_ABI_MINOR);
    return true;
}

static bool printable(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    return true;
}

static bool strings_good(const weft_plugin *given, const struct wf_image *image, const char *file,
                         struct wf_verdict *verdict)
{
    const struct {
        const char *what, *text;
    } strings[] = {{"name", given->name},
                   {"version", given->version},
                   {"build", given->build},
                   {"description", given->description}};

    for (size_t i = 0; i < WF_COUNT(strings); i++)
        if (!wf_image_holds_string(image, strings[i].text, LONGEST_STRING) ||
            !printable(strings[i].text))
            return wf_refuse(verdict, WEFT_BACKEND_REASON_MALFORMED,
                             "%s: its %s at %p is not a line of at most %d characters in the "
                             "plugin's own memory",
                             file, strings[i].what, (const void *)strings[i].text, LONGEST_STRING);
    if (!wf_plugin_name_valid(given->name, strlen(given->name)))
        return wf_refuse(
            verdict, WEFT_BACKEND_REASON_MALFORMED,
            "%s calls itself \"%s\"; a name must consist of a-z, 0-9 and -, and must not be auto",
            file, given->name);
    return true;
}

static bool descriptor_good(const weft_plugin *given, const struct wf_image *image,
                            const char *file, struct wf_verdict *verdict)
{
    size_t fixed = offsetof(weft_plugin, name); /* up to what version_fits reads */

    if ((uintptr_t)given % _Alignof(weft_plugin) != 0 || !wf_image_holds(image, given, fixed))
        return wf_refuse(
            verdict, WEFT_BACKEND_REASON_MALFORMED,
            "%s: its entry returned %p; expected a descriptor in the plugin's own memory", file,
            (const void *)given);
    if (!version_fits(given, file, verdict)) return false;
    if (given->struct_size < sizeof(weft_plugin) ||
        !wf_image_holds(image, given, given->struct_size))
        return wf_refuse(verdict, WEFT_BACKEND_REASON_MALFORMED,
                         "%s: its descriptor claims %u bytes; expected at least %zu, all in the "
                         "plugin's own memory",
                         file, given->struct_size, sizeof(weft_plugin));
    return strings_good(given, image, file, verdict);
}

static bool signature_good(const struct rule *rule, const struct head *head, const char *file,
                           struct wf_verdict *verdict)
{
    const struct accepted *match = NULL;

    for (size_t i = 0; i < rule->accepted_count; i++)
        if (rule->accepted[i].signature == head->signature) match = &rule->accepted[i];
    if (match == NULL)
        return wf_refuse(
            verdict, WEFT_BACKEND_REASON_FINGERPRINT,
            "%s: its %s table has the fingerprint %016" PRIx64 "; expected %016" PRIx64
            ": it is built with a header that differs from ABI %u.%u; build it again with "
            "the weft_plugin.h of this weft",
            file, rule->name, head->signature, rule->accepted[rule->accepted_count - 1].signature,
            WEFT_ABI_MAJOR, WEFT_ABI_MINOR);
    if (match->size != head->struct_size)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_MALFORMED,
                         "%s: its %s table claims %u bytes; a table with its fingerprint has %zu",
                         file, rule->name, head->struct_size, match->size);
    return true;
}

static bool functions_present(const struct rule *rule, const void *table, const char *file,
                              struct wf_verdict *verdict)
{
    for (size_t i = 0; i < rule->required_count; i++) {
        void (*function)(void);

        memcpy(&function, (const char *)table + rule->required[i].offset, sizeof function);
        if (function == NULL)
            return wf_refuse(verdict, WEFT_BACKEND_REASON_MALFORMED,
                             "%s: its %s table has NULL for %s, which is required", file,
                             rule->name, rule->required[i].name);
    }
    return true;
}

static bool table_good(const struct rule *rule, const void *table, const struct wf_image *image,
                       const char *file, struct wf_verdict *verdict)
{
    struct head head;

    if (table == NULL || (uintptr_t)table % _Alignof(struct head) != 0 ||
        !wf_image_holds(image, table, sizeof head))
        return wf_refuse(
            verdict, WEFT_BACKEND_REASON_MALFORMED,
            "%s: its %s table is at %p; expected an address in the plugin's own memory", file,
            rule->name, table);
    memcpy(&head, table, sizeof head);
    if (!signature_good(rule, &head, file, verdict)) return false;
    if (!wf_image_holds(image, table, head.struct_size))
        return wf_refuse(
            verdict, WEFT_BACKEND_REASON_MALFORMED,
            "%s: its %s table claims %u bytes, which reach beyond the plugin's own memory", file,
            rule->name, head.struct_size);
    return functions_present(rule, table, file, verdict);
}

bool wf_abi_check(const weft_plugin *given, const struct wf_image *image, const char *file,
                  struct wf_tables *out, struct wf_verdict *verdict)
{
    struct wf_tables copy = {0};

    if (!descriptor_good(given, image, file, verdict)) return false;
    memcpy(&copy.plugin, given, sizeof copy.plugin);
    copy.plugin.struct_size = sizeof copy.plugin;
    for (size_t i = 0; i < WF_COUNT(rules); i++) {
        const struct rule *rule = &rules[i];
        const void *table, *placed = (const char *)out + rule->copy;
        struct head head;

        memcpy(&table, (const char *)given + rule->pointer, sizeof table);
        if (table == NULL && rule->optional) continue;
        if (!table_good(rule, table, image, file, verdict)) return false;
        memcpy(&head, table, sizeof head);
        memcpy((char *)&copy + rule->copy, table, head.struct_size);
        memcpy((char *)&copy.plugin + rule->pointer, &placed, sizeof placed);
    }
    *out = copy;
    return true;
}
