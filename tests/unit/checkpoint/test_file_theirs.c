/* Checkpoints that safetensors, torch and numpy wrote (tests/data/theirs, by tests/interop). */
#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/suite.h"

static const char *data_path(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/theirs/%s", WEFT_TEST_DATA, name);
    return path;
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Compare the tensor that JSON is at with the one in IN. */
static void check_tensor(struct wf_json_reader *json, const weft_checkpoint *in, const char *file)
{
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
    size_t index = tensor_index(in, json->text.data), count;
    unsigned char got[4096];
    enum wf_json_event event;
    int64_t shape[8];

    OK(weft_checkpoint_tensor_get(in, index, &info));
    ck_assert_uint_le(info.bytes, sizeof got);
    OK(weft_checkpoint_read(in, index, NULL, NULL, got));
    OK(wf_json_expect(json, WF_EVENT_OBJECT));
    for (;;) {
        OK(wf_json_next(json, &event));
        if (event == WF_EVENT_OBJECT_END) return;
        if (strcmp(json->text.data, "shape") == 0) {
            OK(wf_json_read_ints(json, 8, shape, &count));
            ck_assert_int_eq((int)count, info.dims);
            ck_assert_msg(memcmp(shape, info.shape, count * sizeof *shape) == 0, "%s", info.name);
            continue;
        }
        OK(wf_json_expect(json, WF_EVENT_STRING));
        ck_assert_uint_eq(json->text.length, 2 * info.bytes);
        for (size_t i = 0; i < info.bytes; i++)
            ck_assert_msg(got[i] == digit(json->text.data[2 * i]) * 16 +
                                        digit(json->text.data[2 * i + 1]),
                          "%s: %s: byte %zu", file, info.name, i);
    }
}

TEST(every_tensor_has_its_bytes)
{
    struct wf_json_reader json;
    enum wf_json_event event;
    size_t size;
    char *text = read_whole(data_path("expected.json"), &size);

    wf_json_reader_begin(&json, "expected.json", text, size);
    OK(wf_json_expect(&json, WF_EVENT_OBJECT));
    for (;;) {
        weft_checkpoint_info info = {.struct_size = sizeof info};
        weft_checkpoint *in = NULL;
        char file[64];
        uint64_t tensors = 0;
        OK(wf_json_next(&json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        snprintf(file, sizeof file, "%s", json.text.data);
        OK(weft_checkpoint_open(data_path(file), &in));
        OK(wf_json_expect(&json, WF_EVENT_OBJECT));
        for (;; tensors++) {
            OK(wf_json_next(&json, &event));
            if (event == WF_EVENT_OBJECT_END) break;
            check_tensor(&json, in, file);
        }
        OK(weft_checkpoint_get(in, &info));
        ck_assert_uint_eq(info.tensors, tensors);
        weft_checkpoint_close(&in);
    }
    wf_json_reader_end(&json);
    free(text);
}

TEST(pieces_and_other_items_are_counted)
{
    weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_checkpoint *in = NULL;

    OK(weft_checkpoint_open(data_path("dcp"), &in));
    OK(weft_checkpoint_get(in, &info));
    ck_assert_uint_eq(info.format, WEFT_FILE_DCP);
    ck_assert_uint_eq(info.others, 2);
    OK(weft_checkpoint_tensor_get(in, tensor_index(in, "layers.0.w"), &tensor));
    ck_assert_uint_eq(tensor.pieces, 4);
    weft_checkpoint_close(&in);
    OK(weft_checkpoint_open(data_path("dcp-safetensors"), &in));
    OK(weft_checkpoint_get(in, &info));
    ck_assert_uint_eq(info.format, WEFT_FILE_DCP_SAFETENSORS);
    ck_assert_uint_eq(info.files, 4);
    weft_checkpoint_close(&in);
}

/* Write the tensors and metadata of NAME again; the file must be the same. */
static void write_again(const char *name)
{
    weft_checkpoint_writer_options options = {.struct_size = sizeof options};
    weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_checkpoint_entry entries[32];
    weft_checkpoint_pair pairs[4] = {0};
    weft_checkpoint_writer *writer = NULL;
    weft_checkpoint *in = NULL;
    size_t sizes[2];
    char elements[4096], *bytes[2];

    OK(weft_checkpoint_open(data_path(name), &in));
    OK(weft_checkpoint_get(in, &info));
    ck_assert_uint_le(info.tensors, 32);
    for (size_t i = 0; i < info.tensors; i++) {
        OK(weft_checkpoint_tensor_get(in, i, &tensor));
        entries[i] = (weft_checkpoint_entry){tensor.name, tensor.dtype_name, tensor.dims,
                                             tensor.shape, NULL};
    }
    for (size_t i = 0; i < info.metadata; i++)
        OK(weft_checkpoint_metadata_get(in, i, &pairs[i].key, &pairs[i].value));
    options.metadata = pairs;
    options.metadata_count = info.metadata;
    OK(weft_checkpoint_writer_create(folder_path(&folder, name), info.tensors, entries,
                                     sizeof *entries, &options, &writer));
    for (size_t i = 0; i < info.tensors; i++) {
        OK(weft_checkpoint_read(in, i, NULL, NULL, elements));
        OK(weft_checkpoint_writer_write(writer, i, NULL, NULL, elements));
    }
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    weft_checkpoint_close(&in);
    bytes[0] = read_whole(data_path(name), &sizes[0]);
    bytes[1] = read_whole(folder_path(&folder, name), &sizes[1]);
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_int_eq(memcmp(bytes[0], bytes[1], sizes[0]), 0);
    free(bytes[0]);
    free(bytes[1]);
}

TEST(files_are_byte_identical_to_theirs)
{
    write_again("plain.safetensors");
    write_again("bare.safetensors");
    write_again("rows.npy");
}
