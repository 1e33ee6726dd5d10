#include "support/suite.h"
#include "support/trace.h"
#include "trace/dump/dump.h"

static struct wf_writer writer;
static char bytes[512];

/* One value of each kind in ENCODING.  Returns the number of bytes. */
static size_t encode(const struct wf_encoding *encoding)
{
    struct wf_encoder encoder = {encoding, &writer, true, false}, *to = &encoder;
    struct folder folder = folder_create();
    const char *path = folder_path(&folder, "file");
    size_t count;
    FILE *file;

    wf_writer_open(&writer, path);
    encoding->begin(&writer);
    wf_emit_open(to, WF_MAP);
    wf_emit_key(to, "a\n");
    wf_emit_open(to, WF_LIST);
    wf_emit_number(to, -2);
    wf_emit_number(to, INT64_C(1) << 40);
    wf_emit_open(to, WF_LIST);
    wf_emit_close(to, WF_LIST);
    wf_emit_none(to);
    wf_emit_truth(to, true);
    wf_emit_milliseconds(to, 1500000);
    wf_emit_close(to, WF_LIST);
    wf_emit_key(to, "b");
    wf_emit_open(to, WF_TUPLE);
    wf_emit_text(to, "\"\xff");
    wf_emit_ranks(to, "0-1,12");
    wf_emit_close(to, WF_TUPLE);
    wf_emit_close(to, WF_MAP);
    encoding->end(&writer);
    wf_writer_close(&writer);
    wf_writer_publish(&writer, path);
    ck_assert_int_eq(writer.error, 0);
    file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    count = fread(bytes, 1, sizeof bytes - 1, file);
    bytes[count] = '\0';
    fclose(file);
    folder_remove(&folder);
    return count;
}

TEST(json_has_commas_and_escapes)
{
    encode(&wf_json);
    ck_assert_str_eq(bytes, "{\"a\\u000a\": [-2, 1099511627776, [], null, true, 1.500000], "
                            "\"b\": [\"\\u0022?\", \"[0, 1, 12]\"]}\n");
}

TEST(a_pickle_has_opcodes_of_protocol_2)
{
    static const char want[] =
        "\x80\x02}(X\x02\0\0\0a\n](J\xfe\xff\xff\xff\x8a\x08\0\0\0\0\0\x01\0\0"
        "](eN\x88G\x3f\xf8\0\0\0\0\0\0eX\x01\0\0\0b(X\x02\0\0\0\"?"
        "X\x0a\0\0\0[0, 1, 12]tu.";

    ck_assert_uint_eq(encode(&wf_pickle), sizeof want - 1);
    ck_assert_int_eq(memcmp(bytes, want, sizeof want - 1), 0);
}
