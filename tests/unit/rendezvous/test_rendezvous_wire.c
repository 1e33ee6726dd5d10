#include "rendezvous/rendezvous.h"
#include "support/suite.h"

#include <string.h>

static struct wf_seal plain;

static struct wf_seal sealed(void)
{
    struct wf_seal seal = {.on = true};

    memset(seal.key, 7, sizeof seal.key);
    return seal;
}

TEST(a_frame_is_read_as_it_was_written_byte_by_byte)
{
    struct wf_text out = {0};
    struct wf_inbox inbox = {0};
    struct wf_frame frame;
    struct wf_reader reader;
    char text[16];
    weft_blob blob;
    size_t begin = wf_frame_begin(&out, &plain, WF_FRAME_GATHER, UINT64_C(0x1122334455667788));

    wf_put_u32(&out, 0xdeadbeef);
    wf_put_u64(&out, UINT64_C(0xfedcba9876543210));
    wf_put_blob(&out, "\0\1\2", 3);
    wf_put_string(&out, "hello");
    wf_frame_end(&out, &plain, begin);
    for (size_t i = 0; i < out.length; i++) {
        ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_IN_PROGRESS);
        wf_text_append(&inbox.bytes, out.data + i, 1);
    }
    ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_OK);
    ck_assert_uint_eq(frame.type, WF_FRAME_GATHER);
    ck_assert_uint_eq(frame.id, UINT64_C(0x1122334455667788));
    reader = wf_frame_reader(&frame);
    ck_assert_uint_eq(wf_take_u32(&reader), 0xdeadbeef);
    ck_assert_uint_eq(wf_take_u64(&reader), UINT64_C(0xfedcba9876543210));
    blob = wf_take_blob(&reader);
    ck_assert_uint_eq(blob.bytes, 3);
    ck_assert_mem_eq(blob.data, "\0\1\2", 3);
    wf_take_string(&reader, text, sizeof text);
    ck_assert_str_eq(text, "hello");
    ck_assert(!reader.failed && reader.left == 0);
    wf_frame_drop(&inbox, &frame);
    ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_IN_PROGRESS);
    wf_text_free(&out);
    wf_inbox_free(&inbox);
}

TEST(reading_past_the_end_gives_nothing_and_is_noticed)
{
    uint8_t bytes[] = {1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 'x'};
    struct wf_reader reader = {bytes, sizeof bytes, false};
    char text[8] = "before";

    ck_assert_uint_eq(wf_take_u32(&reader), 1);
    wf_take_string(&reader, text, sizeof text); /* claims 2^64 - 1 bytes */
    ck_assert_str_eq(text, "");
    ck_assert(reader.failed);
    ck_assert_uint_eq(wf_take_u64(&reader), 0);
    ck_assert_uint_eq(wf_take_blob(&reader).bytes, 0);
}

TEST(strings_are_cut_and_made_printable)
{
    struct wf_text out = {0};
    struct wf_reader reader;
    char text[8];

    wf_put_blob(&out, "a\tb\033[2Jc\nlong", 13);
    reader = (struct wf_reader){(const uint8_t *)out.data, out.length, false};
    wf_take_string(&reader, text, sizeof text);
    ck_assert_str_eq(text, "a?b?[2J");
    wf_text_free(&out);
}

static void taken_as(const char *bytes, size_t size, const char *wanted)
{
    struct wf_text out = {0};
    struct wf_reader reader;
    char text[16];

    wf_put_blob(&out, bytes, size);
    reader = (struct wf_reader){(const uint8_t *)out.data, out.length, false};
    wf_take_string(&reader, text, sizeof text);
    ck_assert_str_eq(text, wanted);
    wf_text_free(&out);
}

TEST(strings_are_utf_8_without_control_characters)
{
    taken_as("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    taken_as("a\xc2\x9b[31m", 7, "a??[31m"); /* U+009B begins a sequence, as ESC [ does */
    taken_as("\x9b\xff\xc0\x80\xe0\x80\x80", 7, "???????");
    taken_as("\xed\xa0\x80\xf4\x90\x80\x80", 7, "???????"); /* a surrogate, above U+10FFFF */
    taken_as("\xf5\x80\xc3", 3, "???");
    taken_as("\xe2\x82", 2, "??");
    taken_as("x\0y\177", 4, "x?y?");
    taken_as("0123456789abcd\xc3\xa4", 16, "0123456789abcd"); /* not cut within a character */
}

TEST(a_status_that_weft_does_not_have_is_not_taken)
{
    static const uint32_t wrong[] = {7777, 2, 0x7fffffff, (uint32_t)-18, 0x80000000};

    for (size_t i = 0; i < WF_COUNT(wrong); i++) {
        struct wf_text out = {0};
        struct wf_reader reader;

        wf_put_u32(&out, wrong[i]);
        reader = (struct wf_reader){(const uint8_t *)out.data, out.length, false};
        ck_assert_int_eq(wf_take_status(&reader), WEFT_ERR_INTERNAL);
        ck_assert(reader.failed);
        wf_text_free(&out);
    }
}

TEST(what_cannot_be_a_frame_is_refused_without_waiting_for_its_end)
{
    struct wf_inbox inbox = {0};
    struct wf_frame frame;

    wf_text_append(&inbox.bytes, "GET / HTTP/1.1\r\n\r\n", 18);
    ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_ERR_PARSE);
    wf_inbox_free(&inbox);
    wf_text_append(&inbox.bytes, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16); /* type 0 */
    ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_ERR_PARSE);
    wf_inbox_free(&inbox);
}

TEST(an_inbox_that_is_never_empty_does_not_grow)
{
    struct wf_text one = {0};
    struct wf_inbox inbox = {0};
    struct wf_frame frame;
    size_t begin = wf_frame_begin(&one, &plain, WF_FRAME_TELL, 7);

    wf_put_blob(&one, "0123456789", 10);
    wf_frame_end(&one, &plain, begin);
    wf_text_append(&inbox.bytes, one.data, 5); /* half a frame always remains */
    for (int i = 0; i < 10000; i++) {
        wf_text_append(&inbox.bytes, one.data + 5, one.length - 5);
        wf_text_append(&inbox.bytes, one.data, 5);
        ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_OK);
        ck_assert_uint_eq(frame.id, 7);
        wf_frame_drop(&inbox, &frame);
    }
    ck_assert_uint_le(inbox.bytes.capacity, 256);
    wf_text_free(&one);
    wf_inbox_free(&inbox);
}

TEST(a_large_frames_memory_is_given_back)
{
    struct wf_text one = {0};
    struct wf_inbox inbox = {0};
    struct wf_frame frame;
    struct wf_seal seal = sealed();
    size_t begin = wf_frame_begin(&one, &seal, WF_FRAME_TELL, 7);
    static const char large[200000];

    inbox.seal = sealed();
    wf_put_blob(&one, large, sizeof large);
    wf_frame_end(&one, &seal, begin);
    wf_text_append(&inbox.bytes, one.data, one.length);
    ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_OK);
    wf_frame_drop(&inbox, &frame);
    ck_assert_uint_eq(inbox.bytes.capacity, 0);
    wf_text_free(&one);
}

/* Two sealed frames, with a payload and without. */
static struct wf_text two_sealed(size_t *second)
{
    struct wf_seal seal = sealed();
    struct wf_text out = {0};
    size_t begin = wf_frame_begin(&out, &seal, WF_FRAME_TELL, 7);

    wf_put_string(&out, "hello");
    wf_frame_end(&out, &seal, begin);
    *second = wf_frame_begin(&out, &seal, WF_FRAME_LEAVE, 0);
    wf_frame_end(&out, &seal, *second);
    ck_assert_uint_eq(seal.sequence, 2);
    return out;
}

/* The number of frames of BYTES that are accepted before another result, and that result. */
static int take_sealed(const char *bytes, size_t length, weft_status *last)
{
    struct wf_inbox inbox = {.seal = sealed()};
    struct wf_frame frame;
    int taken = 0;

    for (size_t i = 0; i < length; i++) {
        wf_text_append(&inbox.bytes, bytes + i, 1);
        while ((*last = wf_frame_next(&inbox, &frame)) == WEFT_OK) {
            wf_frame_drop(&inbox, &frame);
            taken++;
        }
        if (*last != WEFT_IN_PROGRESS) break;
    }
    wf_inbox_free(&inbox);
    return taken;
}

TEST(no_bit_of_a_sealed_frame_can_be_changed)
{
    size_t second;
    struct wf_text out = two_sealed(&second);
    weft_status last;

    ck_assert_int_eq(take_sealed(out.data, out.length, &last), 2);
    ck_assert_int_eq(last, WEFT_IN_PROGRESS);
    for (size_t bit = 0; bit < 8 * out.length; bit++) {
        out.data[bit / 8] = (char)(out.data[bit / 8] ^ 1 << bit % 8);
        ck_assert_int_eq(take_sealed(out.data, out.length, &last), bit / 8 < second ? 0 : 1);
        ck_assert_int_eq(last, WEFT_ERR_INVALID);
        out.data[bit / 8] = (char)(out.data[bit / 8] ^ 1 << bit % 8);
    }
    wf_text_free(&out);
}

TEST(sealed_frames_cannot_be_repeated_moved_or_left_out)
{
    size_t second;
    struct wf_text out = two_sealed(&second), again = {0};
    weft_status last;

    wf_text_append(&again, out.data, second); /* the first, twice */
    wf_text_append(&again, out.data, second);
    ck_assert_int_eq(take_sealed(again.data, again.length, &last), 1);
    ck_assert_int_eq(last, WEFT_ERR_INVALID);
    ck_assert_int_eq(take_sealed(out.data + second, out.length - second, &last), 0);
    ck_assert_int_eq(last, WEFT_ERR_INVALID);
    wf_text_free(&again);
    wf_text_free(&out);
}

/* A length that is not authentic, or without a seal, must not make the reader wait for its
 * bytes. */
TEST(a_length_is_checked_before_its_bytes_are_awaited)
{
    size_t second;
    struct wf_text out = two_sealed(&second), long_one = {0};
    struct wf_inbox inbox = {0};
    struct wf_frame frame;
    weft_status last;
    size_t begin;

    out.data[2] = 1;
    ck_assert_int_eq(take_sealed(out.data, WF_FRAME_HEADER + WF_FRAME_TAG, &last), 0);
    ck_assert_int_eq(last, WEFT_ERR_INVALID);
    begin = wf_frame_begin(&long_one, &plain, WF_FRAME_ADMITTED, 0);
    for (uint64_t i = 0; i <= WF_FRAME_PLAIN; i++)
        wf_text_char(&long_one, 'x');
    wf_frame_end(&long_one, &plain, begin);
    wf_text_append(&inbox.bytes, long_one.data, WF_FRAME_HEADER);
    ck_assert_int_eq(wf_frame_next(&inbox, &frame), WEFT_ERR_PARSE);
    wf_inbox_free(&inbox);
    wf_text_free(&long_one);
    wf_text_free(&out);
}
