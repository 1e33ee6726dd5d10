/* The descriptor and the tables are in this program, so its own image is used as the plugin's. */
#include "support/own_image.h"
#include "support/suite.h"

typedef void (*function)(void);

static weft_device_table device;
static weft_comm_table comm;
static weft_symm_table symm;
static weft_kernel_table kernel;
static weft_plugin plugin;
static struct wf_image image;
static struct wf_tables tables;
static struct wf_verdict verdict;

static void stub(void)
{
}

/* SIZE bytes of a table: its head, then functions. */
static void fill_table(void *table, size_t size, uint64_t signature)
{
    const uint32_t struct_size = (uint32_t)size;
    const function f = stub;

    memset(table, 0, size);
    memcpy(table, &struct_size, sizeof struct_size);
    memcpy((char *)table + 8, &signature, sizeof signature);
    for (size_t at = 16; at < size; at += sizeof f)
        memcpy((char *)table + at, &f, sizeof f);
}

/* A valid descriptor and four valid tables. */
static void make_good(void)
{
    fill_table(&device, sizeof device, WEFT_DEVICE_SIGNATURE);
    fill_table(&comm, sizeof comm, WEFT_COMM_SIGNATURE);
    fill_table(&symm, sizeof symm, WEFT_SYMM_SIGNATURE);
    fill_table(&kernel, sizeof kernel, WEFT_KERNEL_SIGNATURE);
    plugin = (weft_plugin){
        .struct_size = sizeof plugin,
        .abi_major = WEFT_ABI_MAJOR,
        .abi_minor = WEFT_ABI_MINOR,
        .host_minor_needed = WEFT_ABI_MINOR,
        .name = "mine",
        .version = "1",
        .build = "b",
        .description = "d",
        .device = &device,
        .comm = &comm,
        .symm = &symm,
        .kernel = &kernel,
    };
    image = own_image();
}

static uint32_t judged(void)
{
    verdict = (struct wf_verdict){0};
    tables = (struct wf_tables){0};
    if (wf_abi_check(&plugin, &image, "/x.so", &tables, &verdict))
        return WEFT_BACKEND_REASON_USABLE;
    ck_assert_ptr_null(tables.plugin.name);
    ck_assert_uint_ne(verdict.reason, WEFT_BACKEND_REASON_USABLE);
    ck_assert_msg(strncmp(verdict.text, "/x.so", 5) == 0, "%s", verdict.text);
    return verdict.reason;
}

TEST(good_tables_are_copied)
{
    make_good();
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_USABLE);
    ck_assert_str_eq(tables.plugin.name, "mine");
    ck_assert_ptr_eq(tables.plugin.device, &tables.device);
    ck_assert_ptr_eq(tables.plugin.comm, &tables.comm);
    ck_assert_ptr_eq(tables.plugin.symm, &tables.symm);
    ck_assert_ptr_eq(tables.plugin.kernel, &tables.kernel);
    ck_assert_mem_eq(&tables.comm, &comm, sizeof comm);
    ck_assert_mem_eq(&tables.kernel, &kernel, sizeof kernel);
}

TEST(optional_tables_may_be_absent_and_the_device_may_not)
{
    make_good();
    plugin.comm = NULL;
    plugin.symm = NULL;
    plugin.kernel = NULL;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_USABLE);
    ck_assert_ptr_null(tables.plugin.comm);
    plugin.device = NULL;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
}

TEST(the_version_is_judged_before_anything_behind_it_is_read)
{
    make_good();
    plugin.name = (const char *)1;
    plugin.struct_size = 0;
    plugin.abi_major = WEFT_ABI_MAJOR + 1;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_ABI_MAJOR);
    make_good();
    plugin.host_minor_needed = WEFT_ABI_MINOR + 1;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_ABI_MINOR);
}

TEST(a_newer_plugin_that_can_do_with_this_host_is_taken)
{
    make_good();
    plugin.abi_minor = WEFT_ABI_MINOR + 3;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_USABLE);
    ck_assert_uint_eq(tables.plugin.abi_minor, WEFT_ABI_MINOR + 3);
}

TEST(a_longer_descriptor_is_taken_up_to_what_is_known)
{
    static struct {
        weft_plugin known;
        uint64_t unknown;
    } longer;

    make_good();
    plugin.struct_size = sizeof longer;
    longer.known = plugin;
    longer.unknown = 1;
    ck_assert(wf_abi_check(&longer.known, &image, "/x.so", &tables, &verdict));
    ck_assert_uint_eq(tables.plugin.struct_size, sizeof(weft_plugin));
}

TEST(sizes_that_lie_are_malformed)
{
    static const uint32_t lies[] = {0,          1,         15, 16, 24, sizeof(weft_plugin) - 1,
                                    0x7fffffff, UINT32_MAX};

    for (size_t i = 0; i < WF_COUNT(lies); i++) {
        make_good();
        plugin.struct_size = lies[i];
        ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
        make_good();
        device.struct_size = lies[i];
        ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
        make_good();
        kernel.struct_size = lies[i];
        ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    }
}

TEST(a_table_that_ends_beyond_the_image_is_malformed)
{
    make_good();
    /* An image that ends in the middle of the comm table, with the rest in another segment. */
    for (size_t i = 0; i < image.count; i++)
        if ((uintptr_t)&comm >= image.segments[i].start &&
            (uintptr_t)&comm < image.segments[i].end) {
            image.segments[image.count] = image.segments[i];
            image.segments[i].end = (uintptr_t)&comm + 32;
            image.segments[image.count].start = (uintptr_t)&comm + 40;
            image.count++;
            break;
        }
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    ck_assert_ptr_nonnull(strstr(verdict.text, "beyond the plugin's own memory"));
}

TEST(pointers_out_of_the_image_are_malformed)
{
    weft_comm_table on_stack;
    weft_plugin moved;

    make_good();
    on_stack = comm;
    plugin.comm = &on_stack;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    plugin.comm = (const weft_comm_table *)8;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    plugin.comm = (const weft_comm_table *)(const void *)((const char *)&comm + 4);
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    make_good();
    moved = plugin;
    ck_assert(!wf_abi_check(&moved, &image, "/x.so", &tables, &verdict));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_MALFORMED);
}

TEST(strings_are_one_line_of_the_image)
{
    static char endless[300];
    char on_stack[] = "x";

    memset(endless, 'x', sizeof endless - 1);
    make_good();
    plugin.version = NULL;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    plugin.version = on_stack;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    plugin.version = endless;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    plugin.version = "two\nlines";
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    make_good();
    plugin.name = "Mine";
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    plugin.name = "auto";
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
    plugin.name = "";
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_MALFORMED);
}

TEST(fingerprints_are_compared_and_both_are_named)
{
    make_good();
    symm.signature = UINT64_C(0xabc);
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_FINGERPRINT);
    ck_assert_ptr_nonnull(strstr(verdict.text, "symm"));
    ck_assert_ptr_nonnull(strstr(verdict.text, "0000000000000abc"));
    make_good();
    comm.signature = WEFT_DEVICE_SIGNATURE;
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_FINGERPRINT);
}

/* 1.0 changed before it was released. */
TEST(plugins_of_an_unreleased_header_are_refused_by_their_fingerprint)
{
    make_good();
    comm.signature = UINT64_C(0x515084483af48e11); /* of the first header that said 1.0 */
    ck_assert_uint_eq(judged(), WEFT_BACKEND_REASON_FINGERPRINT);
    ck_assert_ptr_nonnull(strstr(verdict.text, "differs from ABI 1.0; build it again"));
}

#define OFFSET(table, function) offsetof(weft_##table##_table, function)

/* The optional entries of weft_plugin.h, by table. */
static const size_t device_optional[] = {
    OFFSET(device, stream_wrap),   OFFSET(device, stream_native), OFFSET(device, event_elapsed),
    OFFSET(device, bind_thread),   OFFSET(device, event_wrap),    OFFSET(device, event_native),
    OFFSET(device, ranges_wanted), OFFSET(device, range_begin),   OFFSET(device, range_end),
    OFFSET(device, allocate_on),   OFFSET(device, free_on),       0};
static const size_t comm_optional[] = {
    OFFSET(comm, pull),    OFFSET(comm, split),    OFFSET(comm, cost),
    OFFSET(comm, wrap),    OFFSET(comm, native),   OFFSET(comm, pull_cast),
    OFFSET(comm, carrier), OFFSET(comm, exchange), 0};
static const size_t symm_optional[] = {OFFSET(symm, window_register), 0};
static const size_t kernel_optional[] = {OFFSET(kernel, regions_reduce),
                                         OFFSET(kernel, regions_average),
                                         OFFSET(kernel, regions_cast),
                                         OFFSET(kernel, regions_draw),
                                         OFFSET(kernel, spans_create),
                                         OFFSET(kernel, spans_destroy),
                                         OFFSET(kernel, spans_powers),
                                         OFFSET(kernel, spans_limit),
                                         OFFSET(kernel, spans_clamp),
                                         OFFSET(kernel, merge_rows),
                                         0};

static void check_slots(void *table, size_t size, const size_t *optional)
{
    for (size_t at = 16; at < size; at += sizeof(function)) {
        const function none = NULL;
        bool required = true;

        for (const size_t *o = optional; *o != 0; o++)
            if (*o == at) required = false;
        make_good();
        memcpy((char *)table + at, &none, sizeof none);
        ck_assert_msg(judged() ==
                          (required ? WEFT_BACKEND_REASON_MALFORMED : WEFT_BACKEND_REASON_USABLE),
                      "offset %zu: %s", at, verdict.text);
        if (required) ck_assert_ptr_nonnull(strstr(verdict.text, "which is required"));
    }
}

TEST(every_function_that_is_not_optional_is_required)
{
    check_slots(&device, sizeof device, device_optional);
    check_slots(&comm, sizeof comm, comm_optional);
    check_slots(&symm, sizeof symm, symm_optional);
    check_slots(&kernel, sizeof kernel, kernel_optional);
}
