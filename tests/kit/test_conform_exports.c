#include "checks/process.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

TEST(a_library_exports_more_than_an_entry)
{
    char name[64] = "";

    ck_assert(kit_exports_more(TEST_LIBRARY, name, sizeof name));
    ck_assert_int_eq(strncmp(name, "weft_", 5), 0);
}

TEST(the_example_exports_its_entry_alone)
{
    char name[64] = "";

    ck_assert_msg(!kit_exports_more(TEST_EXAMPLE, name, sizeof name), "%s", name);
}

TEST(files_that_are_no_shared_objects_export_nothing)
{
    char name[64];

    ck_assert(!kit_exports_more("/nowhere/at/all", name, sizeof name));
    ck_assert(!kit_exports_more("/dev/null", name, sizeof name));
    ck_assert(!kit_exports_more(__FILE__, name, sizeof name));
}

/* A truncated file, or one with a changed byte, is read without a fault. */
TEST(broken_files_do_no_harm)
{
    static uint8_t bytes[1 << 20];
    char path[] = "/tmp/weft-exports-XXXXXX", name[64];
    FILE *file = fopen(TEST_EXAMPLE, "rb");
    size_t length, descriptor;

    ck_assert_ptr_nonnull(file);
    length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    descriptor = (size_t)mkstemp(path);
    file = fdopen((int)descriptor, "wb");
    ck_assert_ptr_nonnull(file);
    for (size_t round = 0; round < 400; round++) {
        size_t at = round < 200 ? round : length - 1 - (round - 200) * 7;
        uint8_t old = bytes[at];
        bytes[at] = (uint8_t)(round * 37 + 1);
        rewind(file);
        ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
        fflush(file);
        (void)kit_exports_more(path, name, sizeof name);
        bytes[at] = old;
    }
    fclose(file);
    remove(path);
}
