/* The kit's host services: errors reach the host and are kept, structs of other sizes are copied up
 * to their common size, knobs are read. */
#include "plug_host.h"

#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct {
    weft_status status;
    int64_t code;
    char vendor[32], text[1024];
    const char *knob;
    bool has_memory;
    int32_t level;
} seen;

static void set_error(weft_status status, const char *vendor, int64_t code, const char *text)
{
    seen.status = status;
    seen.code = code;
    snprintf(seen.vendor, sizeof seen.vendor, "%s", vendor != NULL ? vendor : "");
    snprintf(seen.text, sizeof seen.text, "%s", text);
}

static void log_text(int32_t level, const char *text)
{
    seen.level = level;
    snprintf(seen.text, sizeof seen.text, "%s", text);
}

static void *allocate(size_t bytes)
{
    void *memory = seen.has_memory ? malloc(bytes) : NULL;

    if (memory != NULL) memset(memory, 0xaa, bytes);
    return memory;
}

static const char *knob(const char *name)
{
    return strcmp(name, "WEFT_TEST") == 0 ? seen.knob : NULL;
}

static const weft_host host = {.struct_size = sizeof host,
                               .log = log_text,
                               .set_error = set_error,
                               .allocate = allocate,
                               .release = free,
                               .knob = knob};

static void begin(void)
{
    plug_host_set(&host);
    memset(&seen, 0, sizeof seen);
    seen.has_memory = true;
}

TEST(works_without_a_host)
{
    void *memory = plug_alloc(8);

    ck_assert_ptr_nonnull(memory);
    plug_free(memory);
    ck_assert_ptr_null(plug_knob("WEFT_TEST"));
    ck_assert_int_eq(plug_fail(WEFT_ERR_INVALID, "number %d", 7), WEFT_ERR_INVALID);
    ck_assert_str_eq(plug_last_text(), "number 7");
    plug_log(1, "to nobody");
}

TEST(a_failure_reaches_the_host_and_is_remembered)
{
    begin();
    ck_assert_int_eq(plug_fail(WEFT_ERR_PEER, "rank %d", 3), WEFT_ERR_PEER);
    ck_assert_int_eq(seen.status, WEFT_ERR_PEER);
    ck_assert_str_eq(seen.text, "rank 3");
    ck_assert_str_eq(seen.vendor, "");
    ck_assert_int_eq(plug_fail_vendor(WEFT_ERR_DEVICE, "V", 42, "%s again", plug_last_text()),
                     WEFT_ERR_DEVICE);
    ck_assert_str_eq(seen.text, "rank 3 again");
    ck_assert_str_eq(plug_last_text(), "rank 3 again");
    ck_assert_str_eq(seen.vendor, "V");
    ck_assert_int_eq(seen.code, 42);
    plug_fail_errno(WEFT_ERR_INVALID, ENOENT, "opening %s", "x");
    ck_assert_str_eq(seen.text, "opening x: No such file or directory");
    ck_assert_int_eq(seen.code, ENOENT);
    plug_log(2, "%d lines", 5);
    ck_assert_int_eq(seen.level, 2);
    ck_assert_str_eq(seen.text, "5 lines");
}

TEST(memory_is_zeroed_and_its_lack_described)
{
    unsigned char *memory;

    begin();
    memory = plug_new(16);
    for (size_t i = 0; i < 16; i++)
        ck_assert_uint_eq(memory[i], 0);
    plug_free(memory);
    memory = plug_alloc(0);
    ck_assert_ptr_nonnull(memory);
    plug_free(memory);
    seen.has_memory = false;
    ck_assert_ptr_null(plug_alloc(16));
    ck_assert_str_eq(seen.text, "");
    ck_assert_ptr_null(plug_new(16));
    ck_assert_int_eq(seen.status, WEFT_ERR_NO_MEMORY);
    ck_assert_str_eq(seen.text, "out of host memory: cannot allocate 16 bytes");
}

struct known {
    uint32_t struct_size;
    int32_t a, b;
};

TEST(structs_are_copied_as_far_as_both_sides_know_them)
{
    struct {
        struct known known;
        int32_t more;
    } longer = {{sizeof longer, 1, 2}, 3};
    struct known ours = {sizeof ours, -1, -1}, shorter = {8, 5, 6};

    plug_take_struct(&ours, &longer, sizeof ours);
    ck_assert_int_eq(ours.a, 1);
    ck_assert_int_eq(ours.b, 2);
    plug_take_struct(&ours, &shorter, sizeof ours);
    ck_assert_int_eq(ours.a, 5);
    ck_assert_int_eq(ours.b, 0);
    ours = (struct known){sizeof ours, 10, 11};
    plug_give_struct(&longer, &ours, sizeof ours);
    ck_assert_uint_eq(longer.known.struct_size, sizeof longer);
    ck_assert_int_eq(longer.known.b, 11);
    ck_assert_int_eq(longer.more, 3);
    plug_give_struct(&shorter, &ours, sizeof ours);
    ck_assert_uint_eq(shorter.struct_size, 8);
    ck_assert_int_eq(shorter.a, 10);
    ck_assert_int_eq(shorter.b, 6);
}

static void reads_bytes(const char *value, uint64_t want)
{
    uint64_t bytes = 0;

    seen.knob = value;
    ck_assert_int_eq(plug_knob_bytes("WEFT_TEST", 9, &bytes), WEFT_OK);
    ck_assert_uint_eq(bytes, want);
}

TEST(knobs_are_read)
{
    static const char *const wrong[] = {
        "x", "-1", "1T", "1KB", "9223372036854775808", "8388608T", "9007199254740992K"};
    uint64_t bytes = 77;

    begin();
    ck_assert(plug_knob_flag("WEFT_TEST", true) && !plug_knob_flag("WEFT_TEST", false));
    seen.knob = "off";
    ck_assert(!plug_knob_flag("WEFT_TEST", true));
    seen.knob = "1";
    ck_assert(plug_knob_flag("WEFT_TEST", false));
    reads_bytes(NULL, 9);
    reads_bytes("", 9);
    reads_bytes("0", 0);
    reads_bytes("4k", 4096);
    reads_bytes("64G", UINT64_C(64) << 30);
    for (size_t i = 0; i < PLUG_LENGTH(wrong); i++) {
        seen.knob = wrong[i];
        ck_assert_int_eq(plug_knob_bytes("WEFT_TEST", 9, &bytes), WEFT_ERR_INVALID);
        ck_assert_uint_eq(bytes, 77);
        ck_assert_msg(strstr(seen.text, wrong[i]) != NULL, "%s", seen.text);
    }
}

TEST(the_clock_goes_forward)
{
    uint64_t before = plug_now();

    ck_assert_uint_ge(plug_now(), before);
}
