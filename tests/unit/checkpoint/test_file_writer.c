#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

#include <sys/file.h>
#include <fcntl.h>

static weft_checkpoint_writer *writer;

static weft_status create(const char *name, const weft_checkpoint_entry *entries, size_t count,
                          const weft_checkpoint_writer_options *options)
{
    weft_checkpoint_writer_release(&writer);
    return weft_checkpoint_writer_create(folder_path(&folder, name), count, entries,
                                         sizeof *entries, options, &writer);
}

static void finish(void)
{
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
}

/* The bytes of FOLDER/NAME are WANT. */
static void check_bytes(const char *name, const char *want, size_t count)
{
    size_t size;
    char *bytes = read_whole(folder_path(&folder, name), &size);

    ck_assert_uint_eq(size, count);
    ck_assert_msg(memcmp(bytes, want, count) == 0, "%s", bytes + 8);
    free(bytes);
}

static const int64_t shape3[] = {1, 2, 3}, shape4[] = {1, 1, 2, 3}, two[] = {2},
                     four_six[] = {4, 6};
static const weft_checkpoint_writer_options plain = {.struct_size = sizeof plain,
                                                     .metadata = &(weft_checkpoint_pair){0, 0}};

TEST(files_are_those_of_the_reference_writer)
{
    /* vectors of the reference implementation's own tests */
    static const char first[] = "@\0\0\0\0\0\0\0"
                                "{\"attn.0\":{\"dtype\":\"F32\",\"shape\":[1,2,3],"
                                "\"data_offsets\":[0,24]}}"
                                "abcdefghijklmnopqrstuvwx";
    static const char second[] = "H\0\0\0\0\0\0\0"
                                 "{\"attn0\":{\"dtype\":\"F32\",\"shape\":[1,1,2,3],"
                                 "\"data_offsets\":[0,24]}}       "
                                 "abcdefghijklmnopqrstuvwx";
    weft_checkpoint_entry entry = {"attn.0", "F32", 3, shape3, NULL};

    OK(create("a.safetensors", &entry, 1, &plain));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "abcdefghijklmnopqrstuvwx"));
    finish();
    check_bytes("a.safetensors", first, sizeof first - 1);
    entry = (weft_checkpoint_entry){"attn0", "f32", 4, shape4, NULL};
    OK(create("b.safetensors", &entry, 1, &plain));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "abcdefghijklmnopqrstuvwx"));
    finish();
    check_bytes("b.safetensors", second, sizeof second - 1);
}

TEST(tensors_are_ordered_by_dtype_then_name)
{
    static const char want[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                               "\"y\":{\"dtype\":\"U64\",\"shape\":[],\"data_offsets\":[0,8]},"
                               "\"B\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},"
                               "\"a\\\"\\n\\u0001\x7f\xc3\xa9\":{\"dtype\":\"BF16\",\"shape\":[2],"
                               "\"data_offsets\":[12,16]},"
                               "\"z\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[16,17]},"
                               "\"x\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[17,19]}}";
    const weft_checkpoint_entry entries[] = {{"x", "BOOL", 1, two, NULL},
                                             {"a\"\n\001\177\xc3\xa9", "bf16", 1, two, NULL},
                                             {"B", "BF16", 1, two, NULL},
                                             {"y", "U64", 0, NULL, NULL},
                                             {"z", "F4", 1, two, NULL}};
    weft_checkpoint *again = NULL;
    size_t size;
    char *bytes, element;

    OK(create("c.safetensors", entries, 5, NULL));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "XX"));
    OK(weft_checkpoint_writer_write(writer, 1, NULL, NULL, "AAAA"));
    OK(weft_checkpoint_writer_write(writer, 2, NULL, NULL, "BBBB"));
    OK(weft_checkpoint_writer_write(writer, 3, NULL, NULL, "YYYYYYYY"));
    OK(weft_checkpoint_writer_write(writer, 4, NULL, NULL, "Z"));
    finish();
    bytes = read_whole(folder_path(&folder, "c.safetensors"), &size);
    ck_assert_uint_eq(size % 8, 19 % 8);
    ck_assert_msg(memcmp(bytes + 8, want, strlen(want)) == 0, "%s", bytes + 8);
    ck_assert_msg(strcmp(bytes + size - 19, "YYYYYYYYBBBBAAAAZXX") == 0, "%s", bytes + size - 19);
    free(bytes);
    OK(weft_checkpoint_open(folder_path(&folder, "c.safetensors"), &again));
    OK(weft_checkpoint_read(again, tensor_index(again, "z"), NULL, NULL, &element));
    ck_assert_int_eq(element, 'Z');
    weft_checkpoint_close(&again);
}

TEST(nothing_appears_before_the_commit)
{
    weft_checkpoint_entry entry = {"t", "U8", 1, two, NULL};

    OK(create("d.safetensors", &entry, 1, NULL));
    ck_assert(!path_exists(folder_path(&folder, "d.safetensors")));
    ck_assert(path_exists(folder_path(&folder, "d.safetensors.weft-partial")));
    REFUSED(weft_checkpoint_writer_commit(writer), WEFT_ERR_INVALID,
            "tensor \"t\" has 2 bytes, of which 0 were written");
    weft_checkpoint_writer_release(&writer);
    ck_assert(!path_exists(folder_path(&folder, "d.safetensors.weft-partial")));
    OK(create("d", &entry, 1, NULL));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "ab"));
    ck_assert(!path_exists(folder_path(&folder, "d")));
    weft_checkpoint_writer_release(&writer);
    ck_assert(!path_exists(folder_path(&folder, "d.weft-partial")));
    OK(create("d/", &entry, 1, NULL));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "ab"));
    finish();
    ck_assert(path_exists(folder_path(&folder, "d/model.safetensors")));
    ck_assert(!path_exists(folder_path(&folder, "d.weft-partial")));
}

TEST(existing_output_is_kept_unless_told)
{
    weft_checkpoint_writer_options replace = {.struct_size = sizeof replace, .replace = true};
    weft_checkpoint_entry entry = {"t", "U8", 1, two, NULL};
    size_t size;
    char *bytes;

    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "e" : "e.safetensors";
        OK(create(name, &entry, 1, NULL));
        OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "ab"));
        finish();
        REFUSED(create(name, &entry, 1, NULL), WEFT_ERR_INVALID, "exists already");
        OK(create(name, &entry, 1, &replace));
        OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "cd"));
        finish();
        bytes = read_whole(folder_path(&folder, i == 0 ? "e/model.safetensors" : name), &size);
        ck_assert_str_eq(bytes + size - 2, "cd");
        free(bytes);
    }
    folder_write(&folder, "e/config.json", "{}", 2);
    REFUSED(create("e", &entry, 1, &replace), WEFT_ERR_INVALID,
            "has \"config.json\", which is not a file of a checkpoint");
    REFUSED(create("e.safetensors/", &entry, 1, &replace), WEFT_ERR_INVALID, "is not a folder");
    ck_assert(path_exists(folder_path(&folder, "e/config.json")));
}

TEST(two_writers_do_not_meet)
{
    weft_checkpoint_entry entry = {"t", "U8", 1, two, NULL};
    weft_checkpoint_writer *second = NULL;

    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "f" : "f.safetensors";
        OK(create(name, &entry, 1, NULL));
        REFUSED(weft_checkpoint_writer_create(folder_path(&folder, name), 1, &entry, sizeof(entry),
                                              NULL, &second),
                WEFT_ERR_INVALID, "is being written by another process, or by a save of this one");
        OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "ab"));
        finish();
    }
}

TEST(an_interrupted_run_is_cleaned_up)
{
    weft_checkpoint_entry entry = {"t", "U8", 1, two, NULL};

    ck_assert_int_eq(mkdir(folder_path(&folder, "g.weft-partial"), 0777), 0);
    folder_write(&folder, "g.weft-partial/model-00001-of-00002.safetensors", "half", 4);
    OK(create("g", &entry, 1, NULL));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "ab"));
    finish();
    ck_assert(!path_exists(folder_path(&folder, "g/model-00001-of-00002.safetensors")));
}

TEST(a_folder_is_split_by_size)
{
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .file_bytes = 30};
    const weft_checkpoint_entry entries[] = {{"a", "U8", 2, four_six, NULL},
                                             {"b", "U8", 1, two, NULL},
                                             {"c", "U16", 2, four_six, NULL},
                                             {"d", "U8", 1, two, NULL}};
    char elements[48] = {0}, index[64];
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_checkpoint *again = NULL;
    size_t size;
    char *bytes;

    OK(create("h", entries, 4, &options));
    for (size_t i = 0; i < 4; i++)
        OK(weft_checkpoint_writer_write(writer, i, NULL, NULL, elements));
    finish();
    bytes = read_whole(folder_path(&folder, "h/model.safetensors.index.json"), &size);
    ck_assert_str_eq(bytes, "{\n  \"metadata\": {\n    \"total_size\": 76\n  },\n"
                            "  \"weight_map\": {\n"
                            "    \"a\": \"model-00001-of-00003.safetensors\",\n"
                            "    \"b\": \"model-00001-of-00003.safetensors\",\n"
                            "    \"c\": \"model-00002-of-00003.safetensors\",\n"
                            "    \"d\": \"model-00003-of-00003.safetensors\"\n  }\n}\n");
    free(bytes);
    OK(weft_checkpoint_open(folder_path(&folder, "h"), &again));
    OK(weft_checkpoint_get(again, &info));
    ck_assert_uint_eq(info.format, WEFT_FILE_HUGGING_FACE);
    ck_assert_uint_eq(info.files, 3);
    ck_assert_uint_eq(info.tensors, 4);
    weft_checkpoint_close(&again);
    snprintf(index, sizeof index, "h/model-00002-of-00003.safetensors");
    ck_assert_int_eq(remove(folder_path(&folder, index)), 0);
    REFUSED(weft_checkpoint_open(folder_path(&folder, "h"), &again), WEFT_ERR_NOT_FOUND,
            "model-00002-of-00003.safetensors: this file is missing");
}

TEST(wrong_tensors_are_refused)
{
    static const int64_t negative[] = {-1}, huge[] = {INT64_MAX, INT64_MAX}, three[] = {3};
    weft_checkpoint_entry twice[] = {{"t", "U8", 1, two, NULL}, {"t", "I8", 1, two, NULL}};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .format = 77};
    weft_checkpoint_entry entry = {"t", "F99", 1, two, NULL};
    int64_t offset[] = {1};

    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "tensor \"t\": \"F99\" is not a dtype");
    entry.dtype = "C128";
    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "is not a dtype of safetensors");
    entry = (weft_checkpoint_entry){"t", "U8", 1, negative, NULL};
    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "it must not be negative");
    entry = (weft_checkpoint_entry){"t", "U8", 2, huge, NULL};
    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "2^62 bits");
    entry = (weft_checkpoint_entry){"t", "F4", 1, three, NULL};
    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "ends inside a byte");
    entry = (weft_checkpoint_entry){"t", "U8", 9, two, NULL};
    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "9 dimensions");
    entry = (weft_checkpoint_entry){NULL, "U8", 1, two, NULL};
    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "name of entry 0 is NULL");
    entry.name = "__metadata__";
    REFUSED(create("w", &entry, 1, NULL), WEFT_ERR_INVALID, "__metadata__");
    REFUSED(create("w", twice, 2, NULL), WEFT_ERR_INVALID, "two tensors have the name \"t\"");
    REFUSED(create("w", twice, 1, &options), WEFT_ERR_INVALID,
            "does not write format 77 (unknown); it writes safetensors");
    options.format = WEFT_FILE_RANKS;
    REFUSED(create("w", twice, 1, &options), WEFT_ERR_INVALID,
            "format is ranks, files per rank, which needs a `mesh`");
    REFUSED(create("none/w", twice, 1, NULL), WEFT_ERR_SYSTEM, "No such file");
    ck_assert(!path_exists(folder_path(&folder, "w.weft-partial")));
    OK(create("w", twice, 1, NULL));
    ck_assert_int_eq(weft_checkpoint_writer_dims(writer, 0), 1);
    ck_assert_int_eq(weft_checkpoint_writer_dims(writer, 1), 0);
    ck_assert_uint_eq(weft_checkpoint_writer_box_bytes(writer, 0, NULL, NULL), 2);
    ck_assert_uint_eq(weft_checkpoint_writer_box_bytes(writer, 0, offset, NULL), 1);
    ck_assert_uint_eq(weft_checkpoint_writer_box_bytes(writer, 0, offset, two), 0);
    ck_assert_uint_eq(weft_checkpoint_writer_box_bytes(writer, 1, NULL, NULL), 0);
    REFUSED(weft_checkpoint_writer_write(writer, 1, NULL, NULL, "ab"), WEFT_ERR_INVALID,
            "index is 1, but the checkpoint has 1 tensor");
    ck_assert_ptr_null(strstr(weft_last_error(), "tensors"));
    REFUSED(weft_checkpoint_writer_write(writer, 0, offset, two, "ab"), WEFT_ERR_INVALID,
            "has 2 elements in dimension 0, but the box has 2 from 1 on");
    weft_checkpoint_writer_release(&writer);
}

TEST(entries_of_a_newer_program_are_read)
{
    struct {
        weft_checkpoint_entry entry;
        uint64_t later;
    } newer[2] = {{{"a", "U8", 1, (const int64_t[]){2}, NULL}, 0},
                  {{"b", "U8", 1, (const int64_t[]){1}, NULL}, 0}};

    OK(weft_checkpoint_writer_create(folder_path(&folder, "newer"), 2, &newer[0].entry,
                                     sizeof newer[0], NULL, &writer));
    ck_assert_uint_eq(weft_checkpoint_writer_box_bytes(writer, 1, NULL, NULL), 1);
    weft_checkpoint_writer_release(&writer);
    newer[1].later = 1;
    REFUSED(weft_checkpoint_writer_create(folder_path(&folder, "newer"), 2, &newer[0].entry,
                                          sizeof newer[0], NULL, &writer),
            WEFT_ERR_VERSION, "weft_checkpoint_entry");
}

TEST(allocation_failures_are_reported)
{
    static const weft_checkpoint_entry entries[] = {{"a", "U8", 2, four_six, NULL},
                                                    {"b", "U8", 1, two, NULL}};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .file_bytes = 10};

    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_checkpoint_writer_create(folder_path(&folder, "m"), 2, entries,
                                                       sizeof *entries, &options, &writer),
                         weft_checkpoint_writer_release(&writer)),
        8);
    ck_assert(!path_exists(folder_path(&folder, "m.weft-partial")));
}
