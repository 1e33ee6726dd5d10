/* load.c - the plugin identifies itself, and opens and closes devices without leaks. */

#include "cases.h"

#include "checks/process.h"

#include <pthread.h>
#include <string.h>

static bool is_name(const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;

    return length > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static bool is_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

void kit_load_identity(struct kit *kit)
{
    const weft_plugin *plugin = kit->plugin;

    kit_check(kit, is_name(plugin->name), "the name \"%s\" is not of [a-z0-9-]",
              plugin->name != NULL ? plugin->name : "");
    kit_check(kit, is_text(plugin->version), "it has no version");
    kit_check(kit, is_text(plugin->build), "it has no build id");
    kit_check(kit, is_text(plugin->description), "it has no description");
}

void kit_load_exports(struct kit *kit)
{
    char name[128];

    kit_check(kit, !kit_exports_more(kit->opened->file, name, sizeof name),
              "it exports %s; it must export weft_plugin_entry only", name);
}

void kit_load_probe(struct kit *kit)
{
    weft_probe first = {.struct_size = sizeof first}, second = {.struct_size = sizeof second};

    if (kit_ok(kit, "probe", kit->plugin->device->probe(&first)) &&
        kit_ok(kit, "probe, again", kit->plugin->device->probe(&second))) {
        kit_check(kit, first.score == second.score && first.device_count == second.device_count,
                  "two probes differ: score %d and %d, devices %u and %u", first.score,
                  second.score, first.device_count, second.device_count);
        kit_check(kit, first.device_count > 0, "usable, but with no device");
        kit_check(kit, memchr(first.library, 0, sizeof first.library) != NULL,
                  "the library's name is not ended");
    }
}

/* Structs that end before `uuid`, as an older core passes them. */
void kit_load_short_struct(struct kit *kit)
{
    union {
        weft_device_info info;
        uint8_t bytes[sizeof(weft_device_info)];
    } out;
    size_t known = offsetof(weft_device_info, uuid);

    memset(&out, 0x5a, sizeof out);
    out.info.struct_size = (uint32_t)known;
    if (kit_ok(kit, "describe", kit->plugin->device->describe(kit->device, &out.info)))
        for (size_t i = known; i < sizeof out; i++)
            if (!kit_check(kit, out.bytes[i] == 0x5a,
                           "describe wrote byte %zu of a struct of %zu bytes", i, known))
                break;
}

void kit_load_describe(struct kit *kit)
{
    weft_device_info info = {.struct_size = sizeof info};

    if (kit_ok(kit, "describe", kit->plugin->device->describe(kit->device, &info))) {
        kit_check(kit, is_text(info.name), "the device has no name");
        kit_check(kit, is_text(info.uuid), "the device has no uuid");
        kit_check(kit, info.alignment > 0 && (info.alignment & (info.alignment - 1)) == 0,
                  "the alignment, %llu, is not a power of two", (unsigned long long)info.alignment);
        kit_check(kit, info.memory_free <= info.memory_total,
                  "more memory is free (%llu) than there is (%llu)",
                  (unsigned long long)info.memory_free, (unsigned long long)info.memory_total);
    }
}

static bool open_and_close(struct kit *kit)
{
    void *device = NULL;

    if (!kit_ok(kit, "open", kit_device_open(kit, -1, &device))) return false;
    if (!kit_check(kit, device != NULL, "open: WEFT_OK without a device")) return false;
    kit->plugin->device->close(device);
    return true;
}

/* The first rounds may open files that the process keeps. */
void kit_load_reopen(struct kit *kit)
{
    int before = 0, after;

    for (int i = 0; i < 20 && open_and_close(kit); i++)
        if (i == 9) before = kit_open_files();
    after = kit_open_files();
    if (!kit->options->threads)
        kit_check(kit, after <= before, "10 times open and close left %d files open",
                  after - before);
}

void kit_load_no_such_device(struct kit *kit)
{
    const int32_t none = 1 << 20;
    void *device = kit;
    weft_status status = kit_device_open(kit, none, &device);

    kit_check(kit, status != WEFT_OK, "device %d opens", none);
    kit_check(kit, device == kit, "a failing open has written its output");
    if (status == WEFT_OK) kit->plugin->device->close(device);
}

/* ---- ranges for the vendor's tools ---- */

/* Ranges nest, and their names may be long. */
static void *mark_ranges(void *given)
{
    const weft_device_table *device = given;
    char name[400];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (uint64_t i = 0; i < 100; i++) {
        weft_range range = {.struct_size = sizeof range, .category = "kit", .bytes = i << 32};

        range.name = i % 2 == 0 ? "a range" : name + i;
        device->range_begin(&range);
        if (i % 3 != 0) device->range_end();
    }
    for (int i = 0; i < 34; i++) /* those with i % 3 == 0 */
        device->range_end();
    return NULL;
}

static void mark_in_threads(struct kit *kit)
{
    weft_device_table device = *kit->plugin->device;
    pthread_t threads[4];
    size_t started = 0;

    (void)mark_ranges(&device);
    while (started < WF_COUNT(threads) &&
           pthread_create(&threads[started], NULL, mark_ranges, &device) == 0)
        started++;
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    kit_check(kit, started == WF_COUNT(threads), "no thread starts");
}

bool kit_when_ranges(struct kit *kit)
{
    const weft_device_table *device = kit->plugin->device;

    return WF_HAS(device, ranges_wanted) || WF_HAS(device, range_begin) ||
           WF_HAS(device, range_end);
}

/* Without a tool, the two other functions are not called. */
void kit_load_ranges(struct kit *kit)
{
    const weft_device_table *device = kit->plugin->device;
    bool wanted = WF_HAS(device, ranges_wanted), begins = WF_HAS(device, range_begin);
    bool ends = WF_HAS(device, range_end);
    uint32_t answer;

    kit_check(kit, wanted == begins && wanted == ends,
              "the device table has %s, %s, %s; expected all three or none",
              wanted ? "ranges_wanted" : "no ranges_wanted",
              begins ? "range_begin" : "no range_begin", ends ? "range_end" : "no range_end");
    if (wanted && begins && ends) {
        answer = device->ranges_wanted();
        kit_check(kit, answer <= 1, "ranges_wanted: %u; expected 0 or 1", answer);
        kit_check(kit, device->ranges_wanted() == answer, "ranges_wanted: two answers");
        if (answer == 1) mark_in_threads(kit);
    }
}
