#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

static weft_checkpoint *checkpoint;

static weft_status open_header(const char *header, size_t elements)
{
    weft_checkpoint_close(&checkpoint);
    return weft_checkpoint_open(write_safetensors(&folder, "a.safetensors", header, elements),
                                &checkpoint);
}

#define REFUSE(header, elements, part) REFUSED(open_header(header, elements), WEFT_ERR_PARSE, part)

TEST(tensors_are_listed_by_name)
{
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
    weft_checkpoint_info all = {.struct_size = sizeof all};
    const char *key, *value;
    uint16_t numbers[6];

    OK(open_header("{\"__metadata__\":{\"format\":\"pt\",\"a\":\"\\u00e9\"},"
                   "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                   "\"b\":{\"data_offsets\":[0,8],\"shape\":[],\"dtype\":\"C64\"},"
                   "\"e\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[8,8]}}  ",
                   20));
    OK(weft_checkpoint_get(checkpoint, &all));
    ck_assert_uint_eq(all.format, WEFT_FILE_SAFETENSORS);
    ck_assert_uint_eq(all.tensors, 3);
    ck_assert_uint_eq(all.bytes, 20);
    ck_assert_uint_eq(all.files, 1);
    ck_assert_uint_eq(all.metadata, 2);
    OK(weft_checkpoint_metadata_get(checkpoint, 0, &key, &value));
    ck_assert_str_eq(key, "a");
    ck_assert_str_eq(value, "\xc3\xa9");
    REFUSED(weft_checkpoint_metadata_get(checkpoint, 2, &key, &value), WEFT_ERR_NOT_FOUND,
            "index is 2, but there are 2");
    OK(weft_checkpoint_tensor_get(checkpoint, 0, &info));
    ck_assert_str_eq(info.name, "b");
    ck_assert_int_eq(info.dims, 0);
    ck_assert_uint_eq(info.bytes, 8);
    ck_assert_uint_eq(info.dtype, WEFT_DTYPE_C64);
    OK(weft_checkpoint_tensor_get(checkpoint, 2, &info));
    ck_assert_str_eq(info.name, "w");
    ck_assert_str_eq(info.dtype_name, "BF16");
    ck_assert_int_eq(info.shape[1], 3);
    OK(weft_checkpoint_read(checkpoint, 2, NULL, NULL, numbers));
    ck_assert_uint_eq(numbers[0], 0x0908);
    ck_assert_uint_eq(numbers[5], 0x1312);
    OK(weft_checkpoint_read(checkpoint, 1, NULL, NULL, numbers)); /* nothing to read */
    REFUSED(weft_checkpoint_tensor_get(checkpoint, 3, &info), WEFT_ERR_NOT_FOUND, "index is 3");
}

TEST(a_shard_without_elements_needs_no_memory)
{
    OWNED(weft_mesh) *mesh = NULL;
    OWNED(weft_spec) *spec = NULL;

    OK(open_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8));
    OK(weft_mesh_parse("4", &mesh));
    OK(weft_spec_parse(mesh, "f32[2] S(0)", &spec));
    OK(weft_checkpoint_read_shard(checkpoint, 0, spec, 3, NULL));
    OK(weft_checkpoint_read_shard(checkpoint, 0, spec, 4, NULL)); /* outside the mesh */
    REFUSED(weft_checkpoint_read_shard(checkpoint, 0, spec, 1, NULL), WEFT_ERR_INVALID,
            "target is NULL");
    REFUSED(weft_checkpoint_read_shard(checkpoint, 0, spec, -1, NULL), WEFT_ERR_INVALID,
            "rank is -1");
}

TEST(every_dtype_keeps_its_name)
{
    static const char *const names[] = {
        "BOOL",    "F4",  "F6_E2M3",     "F6_E3M2",     "U8",  "I8",  "F8_E5M2", "F8_E4M3",
        "F8_E8M0", "I16", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "U16", "F16", "BF16",    "I32",
        "U32",     "F32", "C64",         "F64",         "I64", "U64"};
    static const int bits[] = {8, 4,  6,  6,  8,  8,  8,  8,  8,  16, 8,
                               8, 16, 16, 16, 32, 32, 32, 64, 64, 64, 64};

    for (size_t i = 0; i < WF_COUNT(names); i++) {
        weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
        char header[200];
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%d]}}", names[i],
                 bits[i]);
        OK(open_header(header, (size_t)bits[i]));
        OK(weft_checkpoint_tensor_get(checkpoint, 0, &info));
        ck_assert_str_eq(info.dtype_name, names[i]);
        ck_assert_uint_eq(info.bits, (unsigned)bits[i]);
        ck_assert_uint_eq(info.bytes, (unsigned)bits[i]);
    }
}

#define TENSOR(name, dtype, shape, begin, end)                                                     \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

TEST(wrong_entries_are_refused)
{
    REFUSE("{" TENSOR("t", "F3", "[2]", 0, 8) "}", 8, "\"F3\" is not a dtype of safetensors");
    REFUSE("{" TENSOR("t", "f32", "[2]", 0, 8) "}", 8, "\"f32\" is not a dtype");
    REFUSE("{" TENSOR("t", "C128", "[1]", 0, 16) "}", 16, "\"C128\" is not a dtype");
    REFUSE("{" TENSOR("t", "F32", "[2]", 0, 4) "}", 4, "tensor \"t\": ");
    REFUSE("{" TENSOR("t", "F32", "[2]", 0, 4) "}", 4, "give 8 bytes, but data_offsets 4");
    REFUSE("{" TENSOR("t", "F32", "[-2]", 0, 4) "}", 4, "expected an integer");
    REFUSE("{" TENSOR("t", "F32", "[1.0]", 0, 4) "}", 4, "expected an integer");
    REFUSE("{" TENSOR("t", "F4", "[3]", 0, 1) "}", 1, "end inside a byte");
    REFUSE("{" TENSOR("t", "F32", "[4611686018427387904,4611686018427387904]", 0, 0) "}", 0,
           "more than 2^62 bits");
    REFUSE("{" TENSOR("t", "F32", "[9223372036854775808]", 0, 0) "}", 0, "expected an integer");
    REFUSE("{" TENSOR("t", "U8", "[4]", 4, 0) "}", 4, "begin <= end");
    REFUSE("{" TENSOR("t", "U8", "[4]", 0, 4) "}", 3, "but the file has 3 bytes of elements");
    REFUSE("{\"t\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, "data_offsets is missing");
    REFUSE("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,5]}}", 4, "more than 2");
    REFUSE("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", 4, "[begin, end]");
    REFUSE("{\"t\":[]}", 0, "expected an object");
    REFUSE("{\"__metadata__\":{\"a\":1}}", 0, "expected a string, found a number");
    REFUSED(open_header("{" TENSOR("t", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1),
            WEFT_ERR_UNSUPPORTED, "tensor \"t\": it has 9 dimensions; weft reads up to 8");
    OK(open_header("{\"t\":{\"extra\":[{}],\"dtype\":\"U8\",\"shape\":[4],"
                   "\"data_offsets\":[0,4]}}",
                   4));
}

TEST(ranges_cover_the_file_exactly)
{
    REFUSE("{" TENSOR("a", "U8", "[4]", 0, 4) "," TENSOR("b", "U8", "[4]", 2, 6) "}", 6,
           "\"b\" begins at byte 2 of the elements, but \"a\" before it ends at 4");
    REFUSE("{" TENSOR("a", "U8", "[4]", 0, 4) "," TENSOR("b", "U8", "[4]", 5, 9) "}", 9,
           "begins at byte 5");
    REFUSE("{" TENSOR("a", "U8", "[4]", 1, 5) "}", 5, "begins at byte 1");
    REFUSE("{" TENSOR("a", "U8", "[4]", 0, 4) "}", 5,
           "end at byte 4 of the elements, but the file "
           "has 5");
    REFUSE("{" TENSOR("a", "U8", "[4]", 0, 4) "," TENSOR("b", "U8", "[4]", 0, 4) "}", 4,
           "begins at byte 0");
    REFUSE("{}", 1, "end at byte 0");
    OK(open_header("{}", 0));
    OK(open_header("{" TENSOR("b", "U8", "[2]", 4, 6) "," TENSOR("a", "U8", "[4]", 0, 4) "}", 6));
}

TEST(wrong_headers_are_refused)
{
    static const char large[] = "\x01\xe1\xf5\x05\0\0\0\0{}";

    REFUSE(" {}", 0, "the header must begin with '{'");
    REFUSE("", 0, "found the end");
    REFUSE("[]", 0, "expected an object");
    REFUSE("{}x", 0, "expected the end, found 'x'");
    REFUSE("{" TENSOR("a", "U8", "[0]", 0, 0) "," TENSOR("a", "U8", "[0]", 0, 0) "}", 0,
           "a key stands here that its object has already");
    weft_checkpoint_close(&checkpoint);
    REFUSED(weft_checkpoint_open(folder_write(&folder, "s", "1234567", 7), &checkpoint),
            WEFT_ERR_PARSE, "has 7 bytes; a safetensors file has at least 8");
    REFUSED(
        weft_checkpoint_open(folder_write(&folder, "s", "\x09\0\0\0\0\0\0\0{}", 10), &checkpoint),
        WEFT_ERR_PARSE, "the header has 9 bytes, but the file has 10; it is cut short");
    REFUSED(weft_checkpoint_open(folder_write(&folder, "s", large, 10), &checkpoint),
            WEFT_ERR_PARSE, "100000001 bytes, more than the 100000000");
    REFUSED(weft_checkpoint_open(
                folder_write(&folder, "s", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), &checkpoint),
            WEFT_ERR_PARSE, "18446744073709551615 bytes");
    ck_assert_ptr_null(checkpoint);
}

TEST(what_is_not_a_file_is_refused)
{
    ck_assert_int_eq(mkfifo(folder_path(&folder, "pipe"), 0600), 0);
    REFUSED(weft_checkpoint_open(folder_path(&folder, "pipe"), &checkpoint), WEFT_ERR_INVALID,
            "is not a regular file");
    REFUSED(weft_checkpoint_open(folder_path(&folder, "none"), &checkpoint), WEFT_ERR_NOT_FOUND,
            "No such file");
    ck_assert_int_eq(remove(folder_path(&folder, "pipe")), 0);
}

TEST(allocation_failures_are_reported)
{
    OK(open_header("{\"__metadata__\":{\"format\":\"pt\"}," TENSOR(
                       "b", "U8", "[2]", 4, 6) "," TENSOR("a", "U8", "[4]", 0, 4) "}",
                   6));
    weft_checkpoint_close(&checkpoint);
    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_checkpoint_open(folder_path(&folder, "a.safetensors"), &checkpoint),
                         weft_checkpoint_close(&checkpoint)),
        8);
}
