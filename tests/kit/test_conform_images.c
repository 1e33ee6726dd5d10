#include "fake.h"
#include "support/suite.h"

static const struct kit_compare as_floats = {.dtype = WEFT_DTYPE_F32, .by_value = true};

/* Make an image of four floats, let CHANGE modify the memory, and return the kit's message. */
static const char *verdict_on(struct fake *fake, const struct kit_compare *compare,
                              void (*change)(float *payload))
{
    struct kit_image image;

    ck_assert(kit_begin(&fake->kit, "image"));
    ck_assert(kit_image_make(&fake->kit, &image, 16, 4, KIT_DEVICE));
    memcpy(image.before + image.start, (float[]){1, 2, 0, 4}, 16);
    ck_assert(kit_image_upload(&fake->kit, &image));
    change(kit_image_at(&image, 0));
    kit_image_check(&fake->kit, &image, "recv", compare);
    kit_image_free(&fake->kit, &image);
    kit_end(&fake->kit);
    return fake_failure(fake);
}

static void change_nothing(float *payload)
{
    (void)payload;
}

static void change_an_element(float *payload)
{
    payload[1] = 3;
}

static void change_a_sign_of_zero(float *payload)
{
    payload[2] = -0.0f;
}

static void change_a_little(float *payload)
{
    payload[3] = 4.0001f;
}

static void change_before(float *payload)
{
    ((uint8_t *)payload)[-1] ^= 1;
}

static void change_after(float *payload)
{
    ((uint8_t *)payload)[16 + 2] ^= 1;
}

/* Runs with memory that the host can access, and with memory that it cannot. */
static void check_verdict(const struct kit_compare *compare, void (*change)(float *payload),
                          const char *text)
{
    for (uint64_t features = 0; features <= WEFT_FEATURE_HOST_MEMORY; features++) {
        struct fake *fake = fake_make(features);
        const char *verdict = verdict_on(fake, compare, change);
        ck_assert_msg((text == NULL) == (verdict == NULL), "%s", verdict != NULL ? verdict : "-");
        if (text != NULL) ck_assert_ptr_nonnull(strstr(verdict, text));
        fake_free_all(fake);
    }
}

TEST(an_untouched_image_is_fine)
{
    check_verdict(&as_floats, change_nothing, NULL);
}

TEST(a_wrong_element_is_named_with_both_values)
{
    check_verdict(&as_floats, change_an_element,
                  "recv, element 1: expected 2 (0x40000000), got 3 (0x40400000)");
}

TEST(the_sign_of_zero_counts_only_as_bytes)
{
    struct kit_compare as_bytes = {.dtype = WEFT_DTYPE_F32};

    check_verdict(&as_floats, change_a_sign_of_zero, NULL);
    check_verdict(&as_bytes, change_a_sign_of_zero, "element 2");
}

TEST(slack_lets_small_differences_pass)
{
    double wide[] = {0, 0, 0, 0.001}, narrow[] = {0.001, 0, 0, 0.00001};
    struct kit_compare loose = as_floats, tight = as_floats;

    loose.slack = wide;
    tight.slack = narrow;
    check_verdict(&loose, change_a_little, NULL);
    check_verdict(&tight, change_a_little, "element 3");
}

TEST(stray_writes_are_found_on_both_sides)
{
    check_verdict(&as_floats, change_before, "recv: byte 1 before its start was overwritten");
    check_verdict(&as_floats, change_after, "recv: byte 3 past its end was overwritten");
}

TEST(payloads_start_where_they_were_asked_to)
{
    struct fake *fake = fake_make(WEFT_FEATURE_HOST_MEMORY);
    struct kit_image image;

    ck_assert(kit_begin(&fake->kit, "image"));
    for (uint32_t misaligned = 0; misaligned <= 16; misaligned++) {
        ck_assert(kit_image_make(&fake->kit, &image, 100, misaligned, KIT_PLAIN));
        ck_assert_uint_eq((uintptr_t)kit_image_at(&image, 0) % 64, misaligned);
        kit_image_free(&fake->kit, &image);
    }
    kit_end(&fake->kit);
    fake_free_all(fake);
}

TEST(memory_is_kept_for_the_next_image)
{
    struct fake *fake = fake_make(WEFT_FEATURE_HOST_MEMORY);
    struct kit_image first, second;
    void *memory;

    ck_assert(kit_begin(&fake->kit, "image"));
    ck_assert(kit_image_make(&fake->kit, &first, 100, 0, KIT_DEVICE));
    memory = first.memory;
    kit_image_free(&fake->kit, &first);
    ck_assert(kit_image_make(&fake->kit, &first, 200, 0, KIT_DEVICE));
    ck_assert(kit_image_make(&fake->kit, &second, 200, 0, KIT_DEVICE));
    ck_assert_ptr_eq(first.memory, memory);
    ck_assert_ptr_ne(second.memory, memory);
    kit_image_free(&fake->kit, &first);
    kit_image_free(&fake->kit, &second);
    kit_end(&fake->kit);
    fake_free_all(fake);
}
