/* A plugin of this minor of the ABI, in a host of the next: this program has core/plugin/abi.c as
 * it is, but the header and the list of older tables of the next minor (next.py). */
#include "support/own_image.h"
#include "support/suite.h"

#include "plugin/older.h"

static weft_device_table device;
static weft_comm_table comm;
static weft_symm_table symm;
static weft_kernel_table kernel;
static weft_plugin plugin;

static void stub(void)
{
}

/* The table as it was before `appended`. */
static void fill_table(void *table, size_t size, uint64_t signature)
{
    const uint32_t struct_size = (uint32_t)size;
    void (*const function)(void) = stub;

    memcpy(table, &struct_size, sizeof struct_size);
    memcpy((char *)table + 8, &signature, sizeof signature);
    for (size_t at = 16; at < size + sizeof function; at += sizeof function)
        memcpy((char *)table + at, &function, sizeof function);
}

#define FILL(table, appended, number)                                                              \
    fill_table(&table, offsetof(weft_##table##_table, appended), UINT64_C(number));

static void make_older(void)
{
    WF_OLDER_DEVICE(FILL)
    WF_OLDER_COMM(FILL)
    WF_OLDER_SYMM(FILL)
    WF_OLDER_KERNEL(FILL)
    plugin = (weft_plugin){.struct_size = sizeof plugin,
                           .abi_major = WEFT_ABI_MAJOR,
                           .abi_minor = WEFT_ABI_MINOR - 1,
                           .host_minor_needed = WEFT_ABI_MINOR - 1,
                           .name = "older",
                           .version = "1",
                           .build = "b",
                           .description = "d",
                           .device = &device,
                           .comm = &comm,
                           .symm = &symm,
                           .kernel = &kernel};
}

TEST(older_tables_are_taken_without_what_they_lack)
{
    struct wf_image image = own_image();
    struct wf_verdict verdict = {0};
    struct wf_tables tables = {0};

    make_older();
    ck_assert_msg(wf_abi_check(&plugin, &image, "/x.so", &tables, &verdict), "%s", verdict.text);
    ck_assert_uint_eq(tables.plugin.abi_minor, WEFT_ABI_MINOR - 1);
    ck_assert(tables.device.close == device.close);
    ck_assert(tables.device.appended == NULL);
    ck_assert(tables.comm.appended == NULL);
    ck_assert(tables.symm.appended == NULL);
    ck_assert(tables.kernel.appended == NULL);
}

TEST(an_older_fingerprint_belongs_to_the_older_size)
{
    struct wf_image image = own_image();
    struct wf_verdict verdict = {0};
    struct wf_tables tables = {0};

    make_older();
    comm.struct_size = sizeof comm;
    ck_assert(!wf_abi_check(&plugin, &image, "/x.so", &tables, &verdict));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_MALFORMED);
}
