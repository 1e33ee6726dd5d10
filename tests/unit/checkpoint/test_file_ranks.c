#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

static weft_checkpoint *checkpoint;
static const int64_t shape[] = {4, 6}, one[] = {3}, empty[] = {0, 5};

/* Tensors of bytes: w[4,6] with PLACEMENTS, n[3] replicated, s[] and e[0,5]. */
static void write_ranks(const char *name, const char *text, const char *placements)
{
    const char *replicas = strchr(text, 'x') != NULL ? "R,R" : "R";
    const weft_checkpoint_entry entries[] = {{"w", "U8", 2, shape, placements},
                                             {"n", "I8", 1, one, replicas},
                                             {"s", "F8_E8M0", 0, NULL, replicas},
                                             {"e", "F32", 2, empty, placements}};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    weft_checkpoint_writer *writer = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    OK(weft_mesh_parse(text, &mesh));
    options.mesh = mesh;
    OK(weft_checkpoint_writer_create(folder_path(&folder, name), 4, entries, sizeof *entries,
                                     &options, &writer));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, "abcdefghijklmnopqrstuvwx"));
    OK(weft_checkpoint_writer_write(writer, 1, NULL, NULL, "XYZ"));
    OK(weft_checkpoint_writer_write(writer, 2, NULL, NULL, "!"));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
}

static weft_status open_ranks(const char *name)
{
    weft_checkpoint_close(&checkpoint);
    return weft_checkpoint_open(folder_path(&folder, name), &checkpoint);
}

TEST(a_file_per_rank_describes_itself)
{
    static const char specs[] = "\"weft.mesh\":\"2\",\"weft.rank\":\"1\","
                                "\"weft.specs\":\"{\\\"e\\\":\\\"F32[0,5] S(1)\\\","
                                "\\\"n\\\":\\\"I8[3] R\\\",\\\"s\\\":\\\"F8_E8M0[] R\\\","
                                "\\\"w\\\":\\\"U8[4,6] S(1)\\\"}\"";
    size_t size;
    char *bytes;

    write_ranks("a", "2", "S(1)");
    bytes = read_whole(folder_path(&folder, "a/rank-00001-of-00002.safetensors"), &size);
    ck_assert_msg(strstr(bytes + 8, specs) != NULL, "%s", bytes + 8);
    ck_assert_ptr_nonnull(strstr(bytes + 8, "\"DCP_VERSION\":\"1.0\""));
    ck_assert_ptr_nonnull(strstr(bytes + 8, "\\\"w\\\": {\\\"saved_offsets\\\": [0, 3]}"));
    ck_assert_ptr_nonnull(strstr(bytes + 8, "\"w\":{\"dtype\":\"U8\",\"shape\":[4,3]"));
    ck_assert_ptr_nonnull(strstr(bytes + size - 12, "defjklpqrvwx"));
    free(bytes);
}

TEST(dcp_metadata_are_left_out_if_a_shard_is_not_a_box)
{
    char got[24];
    size_t size;
    char *bytes;

    write_ranks("b", "2", "SS(1,2)");
    bytes = read_whole(folder_path(&folder, "b/rank-00000-of-00002.safetensors"), &size);
    ck_assert_ptr_null(strstr(bytes + 8, "DCP"));
    free(bytes);
    OK(open_ranks("b"));
    OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "w"), NULL, NULL, got));
    ck_assert_int_eq(memcmp(got, "abcdefghijklmnopqrstuvwx", 24), 0);
}

TEST(the_layout_is_known_after_opening)
{
    weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
    weft_checkpoint_info info = {.struct_size = sizeof info};
    char text[100], got[24];

    write_ranks("c", "2x2@0,2,1,3", "S(0),R");
    OK(open_ranks("c"));
    OK(weft_checkpoint_get(checkpoint, &info));
    ck_assert_uint_eq(info.format, WEFT_FILE_RANKS);
    ck_assert_uint_eq(info.files, 4);
    ck_assert_uint_eq(info.tensors, 4);
    ck_assert_uint_eq(info.metadata, 1);
    OK(weft_mesh_print(info.mesh, text, sizeof text, NULL));
    ck_assert_str_eq(text, "2x2@0,2,1,3");
    OK(weft_checkpoint_tensor_get(checkpoint, tensor_index(checkpoint, "w"), &tensor));
    ck_assert_uint_eq(tensor.pieces, 2); /* replicas are not counted */
    OK(weft_spec_print(tensor.spec, text, sizeof text, NULL));
    ck_assert_str_eq(text, "u8[4,6] S(0),R");
    OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "w"), NULL, NULL, got));
    ck_assert_int_eq(memcmp(got, "abcdefghijklmnopqrstuvwx", 24), 0);
    OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "n"), NULL, NULL, got));
    ck_assert_int_eq(memcmp(got, "XYZ", 3), 0);
    OK(weft_checkpoint_tensor_get(checkpoint, tensor_index(checkpoint, "s"), &tensor));
    ck_assert_str_eq(tensor.dtype_name, "F8_E8M0");
    OK(weft_checkpoint_tensor_get(checkpoint, tensor_index(checkpoint, "e"), &tensor));
    ck_assert_uint_eq(tensor.bytes, 0);
}

TEST(wrong_placements_are_refused)
{
    weft_checkpoint_entry entry = {"w", "U8", 2, shape, "P"};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options};
    static const int64_t odd[] = {2, 3};
    weft_checkpoint_writer *writer = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    OK(weft_mesh_parse("2", &mesh));
    options.mesh = mesh;
    REFUSED(weft_checkpoint_writer_create(folder_path(&folder, "d"), 1, &entry, sizeof(entry),
                                          &options, &writer),
            WEFT_ERR_INVALID, "tensor \"w\": the placements are P; a checkpoint has no partial");
    entry.placements = NULL;
    REFUSED(weft_checkpoint_writer_create(folder_path(&folder, "d"), 1, &entry, sizeof(entry),
                                          &options, &writer),
            WEFT_ERR_INVALID, "placements is NULL");
    entry.placements = "S(2)";
    REFUSED(weft_checkpoint_writer_create(folder_path(&folder, "d"), 1, &entry, sizeof(entry),
                                          &options, &writer),
            WEFT_ERR_INVALID, "tensor \"w\"");
    entry = (weft_checkpoint_entry){"f", "F4", 2, odd, "S(0)"};
    REFUSED(weft_checkpoint_writer_create(folder_path(&folder, "d"), 1, &entry, sizeof(entry),
                                          &options, &writer),
            WEFT_ERR_UNSUPPORTED, "the shard of rank 0 ends inside a byte");
    ck_assert(!path_exists(folder_path(&folder, "d.weft-partial")));
}

/* Change OLD to NEW, which has as many bytes, in a file. */
static void patch(const char *name, const char *old, const char *new)
{
    size_t size;
    const char *path = folder_path(&folder, name);
    char *bytes = read_whole(path, &size), *at = memmem(bytes, size, old, strlen(old));

    ck_assert_msg(at != NULL && strlen(old) == strlen(new), "%s", old);
    memcpy(at, new, strlen(new));
    folder_write(&folder, name, bytes, size);
    free(bytes);
}

TEST(wrong_files_are_refused)
{
    static const char first[] = "f/rank-00000-of-00002.safetensors",
                      second[] = "f/rank-00001-of-00002.safetensors";

    write_ranks("f", "2", "S(1)");
    patch(second, "\"weft.rank\":\"1\"", "\"weft.rank\":\"0\"");
    REFUSED(open_ranks("f"), WEFT_ERR_PARSE, "weft.rank is \"0\"; by its name it is of rank 1");
    write_ranks("f", "2", "S(1)");
    patch(second, "U8[4,6] S(1)", "U8[4,6] S(0)");
    REFUSED(open_ranks("f"), WEFT_ERR_PARSE, "weft.specs differs from that of the first file");
    write_ranks("f", "2", "S(1)");
    patch(first, "U8[4,6] S(1)", "U8[4,9] S(1)");
    REFUSED(open_ranks("f"), WEFT_ERR_PARSE,
            "tensor \"w\" is U8[4,3], but its layout gives U8[4,5]");
    write_ranks("f", "2", "S(1)");
    patch(first, "U8[4,6] S(1)", "U8[4,6] P   ");
    REFUSED(open_ranks("f"), WEFT_ERR_PARSE, "weft.specs: tensor \"w\"");
    write_ranks("f", "2", "S(1)");
    patch(first, "\"weft.mesh\":\"2\"", "\"weft.mesh\":\"3\"");
    REFUSED(open_ranks("f"), WEFT_ERR_PARSE, "the mesh 3 has 3 ranks, but there are 2 files");
    write_ranks("f", "2", "S(1)");
    patch(first, "weft.mesh", "weft.mush");
    REFUSED(open_ranks("f"), WEFT_ERR_PARSE, "its metadata lack weft.mesh");
    write_ranks("f", "2", "S(1)");
    patch(second, "\"w\":{\"dtype\"", "\"x\":{\"dtype\"");
    REFUSED(open_ranks("f"), WEFT_ERR_PARSE, "weft.specs does not have tensor \"x\"");
    write_ranks("f", "2", "S(1)");
    ck_assert_int_eq(remove(folder_path(&folder, second)), 0);
    REFUSED(open_ranks("f"), WEFT_ERR_NOT_FOUND,
            "f/rank-00001-of-00002.safetensors: this file is missing");
    write_ranks("f", "2", "S(1)");
    ck_assert_int_eq(remove(folder_path(&folder, first)), 0);
    REFUSED(open_ranks("f"), WEFT_ERR_NOT_FOUND,
            "f/rank-00000-of-00002.safetensors: this file is missing");
    write_ranks("f", "2", "S(1)");
    write_safetensors(&folder, "f/rank-00000-of-00003.safetensors", "{}", 0);
    REFUSED(open_ranks("f"), WEFT_ERR_INVALID,
            "has rank-00000-of-00002.safetensors and rank-00000-of-00003.safetensors");
    ck_assert_int_eq(remove(folder_path(&folder, "f/rank-00000-of-00003.safetensors")), 0);
    write_ranks("f", "2", "S(1)");
    write_safetensors(&folder, "f/more.safetensors", "{}", 0);
    REFUSED(open_ranks("f"), WEFT_ERR_INVALID, "a checkpoint has one kind");
}

TEST(the_file_of_one_rank_is_not_a_checkpoint)
{
    write_ranks("o", "2", "S(1)");
    REFUSED(open_ranks("o/rank-00001-of-00002.safetensors"), WEFT_ERR_INVALID,
            "is the file of one of 2 ranks and has parts of tensors; open its folder");
    write_ranks("p", "1", "S(1)");
    OK(open_ranks("p/rank-00000-of-00001.safetensors"));
}

TEST(a_shard_that_is_not_there_is_named)
{
    write_ranks("g", "2", "S(1)");
    /* rank 1 has only the metadata */
    write_safetensors(&folder, "g/rank-00001-of-00002.safetensors",
                      "{\"__metadata__\":{\"weft.mesh\":\"2\",\"weft.rank\":\"1\","
                      "\"weft.specs\":\"{\\\"e\\\":\\\"F32[0,5] S(1)\\\","
                      "\\\"n\\\":\\\"I8[3] R\\\",\\\"s\\\":\\\"F8_E8M0[] R\\\","
                      "\\\"w\\\":\\\"U8[4,6] S(1)\\\"}\"}}",
                      0);
    REFUSED(open_ranks("g"), WEFT_ERR_PARSE, "rank-00001-of-00002.safetensors lacks tensor \"w\"");
}

TEST(replicas_are_compared_on_request)
{
    size_t size, index;
    char *bytes;

    write_ranks("r", "2x2@0,2,1,3", "S(0),R");
    OK(open_ranks("r"));
    for (index = 0; index < 4; index++)
        OK(weft_checkpoint_check_replicas(checkpoint, index));
    REFUSED(weft_checkpoint_check_replicas(checkpoint, 4), WEFT_ERR_NOT_FOUND, "index is 4");
    bytes = read_whole(folder_path(&folder, "r/rank-00003-of-00004.safetensors"), &size);
    *(char *)memmem(bytes, size, "nopq", 4) = '?';
    folder_write(&folder, "r/rank-00003-of-00004.safetensors", bytes, size);
    free(bytes);
    OK(open_ranks("r"));
    REFUSED(weft_checkpoint_check_replicas(checkpoint, tensor_index(checkpoint, "w")),
            WEFT_ERR_MISMATCH,
            "byte 1 of its shard is 0x6e in rank-00002-of-00004.safetensors and 0x3f in "
            "rank-00003-of-00004.safetensors");
    OK(weft_checkpoint_check_replicas(checkpoint, tensor_index(checkpoint, "n")));
}

TEST(allocation_failures_are_reported)
{
    weft_checkpoint_close(&checkpoint);
    write_ranks("h", "2", "S(1)");
    ALLOCATIONS_FAIL(weft_checkpoint_open(folder_path(&folder, "h"), &checkpoint),
                     weft_checkpoint_close(&checkpoint));
}
