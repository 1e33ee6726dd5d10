#include "support/own_image.h"
#include "support/suite.h"

#include <dlfcn.h>

static const char constant[] = "a constant of this program";
static char zeroes[64];

TEST(a_program_holds_its_own_data_and_code)
{
    struct wf_image image = own_image();

    ck_assert(wf_image_holds(&image, constant, sizeof constant));
    ck_assert(wf_image_holds(&image, zeroes, sizeof zeroes));
    ck_assert(wf_image_executes(&image, (const void *)(uintptr_t)&own_image));
    ck_assert(!wf_image_executes(&image, zeroes));
}

TEST(heap_stack_and_nothing_are_not_its_own)
{
    char on_stack[16] = "x";
    char *on_heap = malloc(16);
    struct wf_image image = own_image();

    ck_assert(!wf_image_holds(&image, on_stack, 1));
    ck_assert(!wf_image_holds(&image, on_heap, 1));
    ck_assert(!wf_image_holds(&image, NULL, 1));
    ck_assert(!wf_image_holds(&image, (const void *)8, 1));
    ck_assert(!wf_image_holds(&image, constant, 0));
    free(on_heap);
}

TEST(a_range_may_not_leave_its_segment)
{
    struct wf_image image = own_image();
    const char *end;

    ck_assert(!wf_image_holds(&image, constant, (size_t)1 << 40));
    ck_assert(!wf_image_holds(&image, constant, SIZE_MAX));
    end = (const char *)image.segments[0].end;
    ck_assert(wf_image_holds(&image, end - 1, 1));
    ck_assert(!wf_image_holds(&image, end - 1, 2));
}

TEST(a_string_ends_within_its_segment_and_its_length)
{
    struct wf_image image = own_image();

    ck_assert(wf_image_holds_string(&image, constant, sizeof constant - 1));
    ck_assert(!wf_image_holds_string(&image, constant, sizeof constant - 2));
    ck_assert(!wf_image_holds_string(&image, NULL, 10));
    ck_assert(!wf_image_holds_string(&image, (const char *)1, 10));
    /* The last bytes of a segment, filled up, have no end there. */
    image.segments[0].start = (uintptr_t)constant;
    image.segments[0].end = (uintptr_t)constant + 4;
    image.segments[0].flags = 4;
    image.count = 1;
    ck_assert(!wf_image_holds_string(&image, constant, 100));
}

TEST(a_library_s_image_is_found_by_its_handle)
{
    void *handle =
        dlopen(TEST_PLUGINS "/any-file/mine.so", RTLD_NOW | RTLD_LOCAL); /* kept open, as ever */
    struct wf_image image;
    void *symbol;

    ck_assert_ptr_nonnull(handle);
    symbol = dlsym(handle, "weft_plugin_entry");
    ck_assert_ptr_nonnull(symbol);
    ck_assert(wf_image_of_handle(handle, &image));
    ck_assert(wf_image_executes(&image, symbol));
    ck_assert(!wf_image_holds(&image, constant, 1));
}
