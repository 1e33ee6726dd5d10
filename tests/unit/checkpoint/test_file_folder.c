/* Folders of safetensors files: with an index, without one, and DCP's sharded files. */
#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

#include <fcntl.h>

static weft_checkpoint *checkpoint;

static weft_status open_folder(const char *name)
{
    weft_checkpoint_close(&checkpoint);
    return weft_checkpoint_open(folder_path(&folder, name), &checkpoint);
}

/* A file of folder AT with one u8 tensor NAME of SHAPE and BYTES; METADATA is NULL or a member. */
static void write_one(const char *at, const char *file, const char *metadata, const char *name,
                      const char *shape, size_t bytes)
{
    char header[1000], path[200];

    mkdir(folder_path(&folder, at), 0777);
    snprintf(header, sizeof header,
             "{%s%s\"%s\":{\"dtype\":\"U8\",\"shape\":%s,\"data_offsets\":[0,%zu]}}",
             metadata != NULL ? metadata : "", metadata != NULL ? "," : "", name, shape, bytes);
    snprintf(path, sizeof path, "%s/%s", at, file);
    write_safetensors(&folder, path, header, bytes);
}

static void write_index(const char *at, const char *text)
{
    char path[200];

    snprintf(path, sizeof path, "%s/model.safetensors.index.json", at);
    folder_write(&folder, path, text, strlen(text));
}

TEST(the_index_decides)
{
    weft_checkpoint_info info = {.struct_size = sizeof info};

    write_one("i", "x.safetensors", NULL, "a", "[4]", 4);
    write_one("i", "y.safetensors", NULL, "b", "[2]", 2);
    write_index("i", "{\"metadata\":{\"total_size\":6},\"weight_map\":{\"b\":\"y.safetensors\","
                     "\"a\":\"x.safetensors\"}}");
    OK(open_folder("i"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.format, WEFT_FILE_HUGGING_FACE);
    ck_assert_uint_eq(info.files, 2);
    ck_assert_uint_eq(info.tensors, 2);
    /* a second copy of "a", which the index does not use */
    write_one("i", "y.safetensors", NULL, "a", "[2]", 2);
    write_index("i", "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
    OK(open_folder("i"));
    OK(open_folder("i/model.safetensors.index.json"));
}

TEST(tensors_that_the_index_does_not_list_are_known)
{
    weft_checkpoint_unlisted_info tensor = {.struct_size = sizeof tensor};
    weft_checkpoint_info info = {.struct_size = sizeof info};
    size_t index;

    write_one("u", "x.safetensors", NULL, "a", "[4]", 4);
    write_one("u", "y.safetensors", NULL, "b", "[2,3]", 6);
    write_one("u", "z.safetensors", NULL, "a", "[4]", 4);
    write_index("u", "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
    OK(open_folder("u"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.tensors, 1);
    ck_assert_uint_eq(info.files, 1);
    ck_assert_uint_eq(info.bytes, 4);
    ck_assert_uint_eq(info.unlisted, 1); /* "a" of z.safetensors is listed, in another file */
    OK(weft_checkpoint_unlisted_get(checkpoint, 0, &tensor));
    ck_assert_str_eq(tensor.name, "b");
    ck_assert_str_eq(tensor.file, "y.safetensors");
    ck_assert_int_eq(tensor.dims, 2);
    ck_assert_int_eq(tensor.shape[1], 3);
    ck_assert_uint_eq(tensor.bytes, 6);
    REFUSED(weft_checkpoint_unlisted_get(checkpoint, 1, &tensor), WEFT_ERR_NOT_FOUND,
            "index is 1, but 1 tensor is not listed");
    REFUSED(weft_checkpoint_find(checkpoint, "b", &index), WEFT_ERR_NOT_FOUND,
            "model.safetensors.index.json does not list tensor \"b\", which y.safetensors has");
    OK(open_folder("u/model.safetensors.index.json"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.unlisted, 0);
    folder_write(&folder, "u/w.safetensors", "not one", 7); /* does not spoil the checkpoint */
    OK(open_folder("u"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.unlisted, 1);
}

/* The index names the file for another tensor. */
TEST(tensors_of_a_listed_file_may_be_unlisted)
{
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                                 "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]}}";
    weft_checkpoint_unlisted_info tensor = {.struct_size = sizeof tensor};
    weft_checkpoint_info info = {.struct_size = sizeof info};
    size_t index;

    write_one("v", "b.safetensors", NULL, "b", "[4]", 4);
    write_safetensors(&folder, "v/x.safetensors", header, 5);
    write_index("v", "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
    OK(open_folder("v"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.tensors, 1);
    ck_assert_uint_eq(info.bytes, 2);
    ck_assert_uint_eq(info.unlisted, 2);
    OK(weft_checkpoint_unlisted_get(checkpoint, 0, &tensor));
    ck_assert_str_eq(tensor.name, "b");
    OK(weft_checkpoint_unlisted_get(checkpoint, 1, &tensor));
    ck_assert_str_eq(tensor.name, "c");
    ck_assert_str_eq(tensor.file, "x.safetensors");
    ck_assert_uint_eq(tensor.bytes, 3);
    REFUSED(weft_checkpoint_find(checkpoint, "c", &index), WEFT_ERR_NOT_FOUND,
            "does not list tensor \"c\", which x.safetensors has; add it to the index");
    OK(open_folder("v/model.safetensors.index.json"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.tensors, 1);
    ck_assert_uint_eq(info.unlisted, 0);
}

TEST(a_wrong_index_is_refused)
{
    write_one("j", "x.safetensors", NULL, "a", "[4]", 4);
    write_index("j", "{\"weight_map\":{\"a\":\"../x.safetensors\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "names the file \"../x.safetensors\"");
    write_index("j", "{\"weight_map\":{\"a\":\"..\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "names the file \"..\"");
    write_index("j", "{\"weight_map\":{\"a\":\"/etc/passwd\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "must lie in its folder");
    write_index("j", "{\"weight_map\":{\"a\":\"\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "names the file \"\"");
    write_index("j", "{\"weight_map\":{\"a\":\"z.safetensors\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_NOT_FOUND, "z.safetensors: this file is missing");
    write_index("j", "{\"weight_map\":{\"a\":\"x.safetensors\",\"c\":\"x.safetensors\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE,
            "lists tensor \"c\" in x.safetensors, which does not have it");
    write_index("j", "{\"weight_map\":{\"c\":\"x.safetensors\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE,
            "lists tensor \"c\" in x.safetensors, which does not have it");
    write_index("j", "{\"weight_map\":{\"a\":\"x.safetensors\",\"a\":\"x.safetensors\"}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "a key stands here that its object has already");
    write_index("j", "{\"weight_map\":{\"a\":7}}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "expected a string, found a number");
    write_index("j", "{}");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "has no \"weight_map\"");
    write_index("j", "{\"weight_map\":{}} x");
    REFUSED(open_folder("j"), WEFT_ERR_PARSE, "expected the end");
}

TEST(a_folder_without_an_index_is_read_whole)
{
    weft_checkpoint_info info = {.struct_size = sizeof info};

    write_one("k", "model-00001-of-00003.safetensors", NULL, "a", "[4]", 4);
    write_one("k", "model-00003-of-00003.safetensors", NULL, "b", "[2]", 2);
    REFUSED(open_folder("k"), WEFT_ERR_NOT_FOUND,
            "model-00002-of-00003.safetensors: this file is missing");
    write_one("k", "model-00002-of-00003.safetensors", NULL, "c", "[2]", 2);
    OK(open_folder("k"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.tensors, 3);
    ck_assert_int_eq(remove(folder_path(&folder, "k/model-00001-of-00003.safetensors")), 0);
    REFUSED(open_folder("k"), WEFT_ERR_NOT_FOUND,
            "model-00001-of-00003.safetensors: this file is missing");
    write_one("k", "model-00001-of-00003.safetensors", NULL, "c", "[2]", 2);
    REFUSED(open_folder("k"), WEFT_ERR_PARSE,
            "tensor \"c\" stands in model-00001-of-00003.safetensors and in model-00002");
    ck_assert_int_eq(mkdir(folder_path(&folder, "empty"), 0777), 0);
    REFUSED(open_folder("empty"), WEFT_ERR_NOT_FOUND, "it is not a checkpoint");
}

#define SHARDING(text)                                                                             \
    "\"__metadata__\":{\"DCP_VERSION\":\"1.0\",\"DCP_SHARDING_INFO\":\"{\\\"w\\\": "               \
    "{\\\"saved_offsets\\\": " text "}}\"}"

static void write_boxes(const char *offset)
{
    char metadata[300];

    write_one("l", "shard-00001-model-00001-of-00001.safetensors", SHARDING("[0, 0]"), "w", "[2,3]",
              6);
    write_one("l", "shard-00002-model-00001-of-00001.safetensors", SHARDING("[0, 3]"), "w", "[3,2]",
              6);
    snprintf(metadata, sizeof metadata, SHARDING("%s"), offset);
    write_one("l", "shard-00003-model-00001-of-00001.safetensors", metadata, "w", "[1,3]", 3);
}

TEST(boxes_of_dcp_make_one_tensor)
{
    static const char want[] = {0, 1, 2, 0, 1, 3, 4, 5, 2, 3, 0, 1, 2, 4, 5};
    weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
    weft_checkpoint_info info = {.struct_size = sizeof info};
    int64_t offset[] = {1, 2}, sizes[] = {2, 2};
    char got[15], box[4];

    write_boxes("[2, 0]");
    OK(open_folder("l"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.format, WEFT_FILE_DCP_SAFETENSORS);
    OK(weft_checkpoint_tensor_get(checkpoint, 0, &tensor));
    ck_assert_int_eq(tensor.shape[0], 3);
    ck_assert_int_eq(tensor.shape[1], 5);
    ck_assert_uint_eq(tensor.pieces, 3);
    OK(weft_checkpoint_read(checkpoint, 0, NULL, NULL, got));
    ck_assert_int_eq(memcmp(got, want, sizeof want), 0);
    OK(weft_checkpoint_read(checkpoint, 0, offset, sizes, box));
    ck_assert_int_eq(memcmp(box, "\5\2\2\4", 4), 0);
    ck_assert_int_eq(weft_checkpoint_dims(checkpoint, 0), 2);
    ck_assert_int_eq(weft_checkpoint_dims(checkpoint, 1), 0);
    ck_assert_uint_eq(weft_checkpoint_box_bytes(checkpoint, 0, offset, sizes), 4);
    ck_assert_uint_eq(weft_checkpoint_box_bytes(checkpoint, 0, NULL, NULL), 15);
    ck_assert_uint_eq(weft_checkpoint_box_bytes(checkpoint, 1, NULL, NULL), 0);
    offset[0] = 2;
    ck_assert_uint_eq(weft_checkpoint_box_bytes(checkpoint, 0, offset, sizes), 0);
    REFUSED(weft_checkpoint_read(checkpoint, 0, offset, sizes, box), WEFT_ERR_INVALID,
            "tensor \"w\" has 3 elements in dimension 0, but the box has 2 from 2 on");
    offset[0] = -1;
    REFUSED(weft_checkpoint_read(checkpoint, 0, offset, sizes, box), WEFT_ERR_INVALID,
            "the box begins at -1");
}

TEST(one_box_of_dcp_is_no_whole_tensor)
{
    write_boxes("[2, 0]");
    REFUSED(open_folder("l/shard-00002-model-00001-of-00001.safetensors"), WEFT_ERR_PARSE,
            "tensor \"w\": no file has element [0,0]");
    OK(open_folder("l/shard-00001-model-00001-of-00001.safetensors")); /* its end is not known */
}

TEST(boxes_cover_the_tensor)
{
    write_boxes("[1, 0]");
    REFUSED(open_folder("l"), WEFT_ERR_PARSE,
            "tensor \"w\": element [1,0] stands in shard-00001-"
            "model-00001-of-00001.safetensors and in shard-00003");
    write_boxes("[3, 0]");
    REFUSED(open_folder("l"), WEFT_ERR_PARSE, "tensor \"w\": no file has element [2,0]");
    write_boxes("[2]");
    REFUSED(open_folder("l"), WEFT_ERR_PARSE, "tensor \"w\" has 2 dimensions; saved_offsets");
    write_boxes("[2, 9223372036854775807]");
    REFUSED(open_folder("l"), WEFT_ERR_PARSE,
            "an offset in shard-00003-model-00001-of-00001."
            "safetensors is too large");
    write_boxes("[2, -1]");
    REFUSED(open_folder("l"), WEFT_ERR_PARSE, "DCP_SHARDING_INFO, byte");
}

TEST(pieces_agree_on_dtype_and_dimensions)
{
    write_one("n", "a.safetensors", SHARDING("[0]"), "w", "[2]", 2);
    write_one("n", "b.safetensors", SHARDING("[2, 0]"), "w", "[2,1]", 2);
    REFUSED(open_folder("n"), WEFT_ERR_PARSE, "has 1 dimensions in a.safetensors, but 2 in b");
    write_safetensors(&folder, "n/b.safetensors",
                      "{" SHARDING("[2]") ",\"w\":{\"dtype\":\"I8\",\"shape\":[2],"
                                          "\"data_offsets\":[0,2]}}",
                      2);
    REFUSED(open_folder("n"), WEFT_ERR_PARSE, "has dtype U8 in a.safetensors, but I8 in b");
}

TEST(a_file_that_changes_is_noticed)
{
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char got[4];

    write_one("o", "x.safetensors", NULL, "a", "[4]", 4);
    OK(open_folder("o"));
    OK(weft_checkpoint_read(checkpoint, 0, NULL, NULL, got));
    ck_assert_int_eq(utimensat(AT_FDCWD, folder_path(&folder, "o/x.safetensors"), times, 0), 0);
    REFUSED(weft_checkpoint_read(checkpoint, 0, NULL, NULL, got), WEFT_ERR_SYSTEM,
            "was replaced or modified after the checkpoint was opened");
    OK(open_folder("o"));
    ck_assert_int_eq(truncate(folder_path(&folder, "o/x.safetensors"), 90), 0);
    REFUSED(weft_checkpoint_read(checkpoint, 0, NULL, NULL, got), WEFT_ERR_SYSTEM,
            "weft_checkpoint_read: tensor \"a\"");
}

TEST(allocation_failures_are_reported)
{
    write_boxes("[2, 0]");
    weft_checkpoint_close(&checkpoint);
    ALLOCATIONS_FAIL(weft_checkpoint_open(folder_path(&folder, "l"), &checkpoint),
                     weft_checkpoint_close(&checkpoint));
    write_one("p", "x.safetensors", NULL, "a", "[4]", 4);
    write_index("p", "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
    ALLOCATIONS_FAIL(weft_checkpoint_open(folder_path(&folder, "p"), &checkpoint),
                     weft_checkpoint_close(&checkpoint));
}
