/* Native checkpoints of DCP, from tests/data/dcp (its make.py says how they were made). */
#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/suite.h"

static weft_checkpoint *checkpoint;

static const char *data_path(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/dcp/%s", WEFT_TEST_DATA, name);
    return path;
}

/* A copy of the checkpoint of protocol 4 in the test's folder. */
static void copy_checkpoint(void)
{
    static const char *const names[] = {".metadata", "__0_0.distcp", "__1_0.distcp"};

    weft_checkpoint_close(&checkpoint);
    mkdir(folder_path(&folder, "c"), 0777);
    for (int i = 0; i < 3; i++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "protocol4/%s", names[i]);
        snprintf(to, sizeof to, "c/%s", names[i]);
        folder_copy(&folder, to, data_path(from), SIZE_MAX);
    }
}

/* Change OLD to NEW, of as many bytes, at its first place in a file of the copy, and open it. */
static weft_status open_patched(const char *name, const char *old, const char *new, size_t bytes)
{
    char path[64], *content, *at;
    size_t size;

    copy_checkpoint();
    snprintf(path, sizeof path, "c/%s", name);
    content = read_whole(folder_path(&folder, path), &size);
    at = memmem(content, size, old, bytes);
    ck_assert_msg(at != NULL, "%s", old);
    memcpy(at, new, bytes);
    folder_write(&folder, path, content, size);
    free(content);
    return weft_checkpoint_open(folder_path(&folder, "c"), &checkpoint);
}

TEST(tensors_of_every_protocol_are_read)
{
    static const char *const protocols[] = {"protocol2", "protocol4", "protocol5"};
    unsigned char got[96], want[96];

    for (int p = 0; p < 3; p++) {
        weft_checkpoint_info info = {.struct_size = sizeof info};
        weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
        int64_t offset[] = {1, 3}, sizes[] = {2, 2};
        OK(weft_checkpoint_open(data_path(protocols[p]), &checkpoint));
        OK(weft_checkpoint_get(checkpoint, &info));
        ck_assert_uint_eq(info.format, WEFT_FILE_DCP);
        ck_assert_uint_eq(info.tensors, 6);
        ck_assert_uint_eq(info.others, 1);
        ck_assert_uint_eq(info.files, 2);
        OK(weft_checkpoint_tensor_get(checkpoint, tensor_index(checkpoint, "w"), &tensor));
        ck_assert_str_eq(tensor.dtype_name, "F32");
        ck_assert_uint_eq(tensor.pieces, 3);
        ck_assert_int_eq(tensor.shape[1], 6);
        OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "w"), NULL, NULL, got));
        for (int i = 0; i < 96; i++)
            want[i] = (unsigned char)i;
        ck_assert_int_eq(memcmp(got, want, sizeof got), 0);
        OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "w"), offset, sizes, got));
        ck_assert_uint_eq(got[0], 24 + 12);
        ck_assert_uint_eq(got[15], 48 + 12 + 7);
        OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "p"), NULL, NULL, got));
        ck_assert_uint_eq(got[5], 105);
        OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "s"), NULL, NULL, got));
        ck_assert_uint_eq(got[7], 14);
        OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "f"), NULL, NULL, got));
        ck_assert_int_eq(memcmp(got, "\x33\x34\x36\x37", 4), 0);
        OK(weft_checkpoint_tensor_get(checkpoint, tensor_index(checkpoint, "h"), &tensor));
        ck_assert_str_eq(tensor.dtype_name, "F4");
        ck_assert_int_eq(tensor.shape[1], 6);
        OK(weft_checkpoint_read(checkpoint, tensor_index(checkpoint, "h"), NULL, NULL, got));
        ck_assert_uint_eq(got[5], 205);
        weft_checkpoint_close(&checkpoint);
    }
}

TEST(no_other_class_is_accepted)
{
    REFUSED(open_patched(".metadata", "ChunkStorageMetadata", "ChunkStorageMegadata", 20),
            WEFT_ERR_UNSUPPORTED,
            "it names torch.distributed.checkpoint.metadata.ChunkStorageMegadata, which is not one "
            "of the classes that weft knows; weft runs no code");
    REFUSED(open_patched("__0_0.distcp", "_rebuild_tensor_v2", "_rebuild_tensor_vX", 18),
            WEFT_ERR_UNSUPPORTED, "it names torch._utils._rebuild_tensor_vX");
    REFUSED(open_patched(".metadata", "bfloat16", "quint8x2", 8), WEFT_ERR_UNSUPPORTED,
            "it names torch.quint8x2");
}

TEST(wrong_places_are_refused)
{
    REFUSED(weft_checkpoint_open("", &checkpoint), WEFT_ERR_INVALID,
            "weft_checkpoint_open: path is empty");
    REFUSED(open_patched(".metadata", "__1_0.distcp", "../../passwd", 12), WEFT_ERR_PARSE,
            "names the file \"../../passwd\"");
    REFUSED(open_patched(".metadata", "__1_0.distcp", "__7_0.distcp", 12), WEFT_ERR_NOT_FOUND,
            "__7_0.distcp: this file is missing");
    REFUSED(open_patched("__0_0.distcp", "PK\5\6", "PK\5\7", 4), WEFT_ERR_PARSE,
            "the item is not a zip archive");
    REFUSED(open_patched("__0_0.distcp", "PK\1\2", "PK\1\3", 4), WEFT_ERR_PARSE,
            "the directory of the archive is malformed");
    REFUSED(open_patched("__0_0.distcp", "PK\3\4", "PK\3\5", 4), WEFT_ERR_PARSE,
            "a record has no header");
    REFUSED(open_patched("__0_0.distcp", "little", "bigbig", 6), WEFT_ERR_UNSUPPORTED,
            "its elements are big endian");
    REFUSED(open_patched("__0_0.distcp", "FloatStorage", "ShortStorage", 12), WEFT_ERR_PARSE,
            "an item has another dtype or shape");
    REFUSED(open_patched(".metadata", "fqn", "fqm", 3), WEFT_ERR_PARSE, "is not a MetadataIndex");
    REFUSED(open_patched(".metadata", "storage_data", "storage_dato", 12), WEFT_ERR_PARSE,
            "does not tell where the items are");
    copy_checkpoint();
    ck_assert_int_eq(truncate(folder_path(&folder, "c/__1_0.distcp"), 2000), 0);
    REFUSED(weft_checkpoint_open(folder_path(&folder, "c"), &checkpoint), WEFT_ERR_PARSE,
            "of __1_0.distcp, which has 2000");
    copy_checkpoint();
    ck_assert_int_eq(truncate(folder_path(&folder, "c/.metadata"), 1000), 0);
    REFUSED(weft_checkpoint_open(folder_path(&folder, "c"), &checkpoint), WEFT_ERR_PARSE,
            ".metadata, byte ");
}

TEST(allocation_failures_are_reported)
{
    weft_checkpoint_close(&checkpoint);
    ALLOCATIONS_FAIL(weft_checkpoint_open(data_path("protocol4"), &checkpoint),
                     weft_checkpoint_close(&checkpoint));
}
