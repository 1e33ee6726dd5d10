/* Any bytes as a file of a checkpoint: it is opened and read, or refused.  The first byte chooses
 * the file; the others of its folder are as weft writes them.  DCP has two files: the next two
 * bytes are the length of .metadata, and its items follow that. */
#include "fuzz.h"

#include "checkpoint/file.h"
#include "weft/weft.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weft-fuzz-XXXXXX", memory[65536];

static void remove_all(void)
{
    static const char *const names[] = {"a.safetensors",
                                        "b.safetensors",
                                        "x.npy",
                                        "model.safetensors.index.json",
                                        ".metadata",
                                        "__0_0.distcp",
                                        "rank-00000-of-00001.safetensors"};
    char path[128];

    for (size_t i = 0; i < WF_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
}

static void remove_folder(void)
{
    remove_all();
    rmdir(folder);
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    FUZZ_ASSERT(file != NULL && fwrite(bytes, 1, count, file) == count);
    fclose(file);
}

/* Read every tensor that fits, whole and without its first row. */
static void read_all(const weft_checkpoint *checkpoint)
{
    weft_checkpoint_info info = {.struct_size = sizeof info};

    FUZZ_ASSERT(weft_checkpoint_get(checkpoint, &info) == WEFT_OK);
    for (size_t i = 0; i < info.tensors && i < 16; i++) {
        weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
        int64_t offset[WEFT_MAX_DIMS] = {1};
        size_t found;
        FUZZ_ASSERT(weft_checkpoint_tensor_get(checkpoint, i, &tensor) == WEFT_OK);
        FUZZ_ASSERT(weft_checkpoint_find(checkpoint, tensor.name, &found) == WEFT_OK && found == i);
        if (tensor.bytes > sizeof memory) continue;
        FUZZ_ASSERT(weft_checkpoint_read(checkpoint, i, NULL, NULL, memory) == WEFT_OK);
        if (tensor.dims > 0 && tensor.shape[0] > 0 && tensor.bits >= 8)
            FUZZ_ASSERT(weft_checkpoint_read(checkpoint, i, offset, NULL, memory) == WEFT_OK);
    }
}

enum { NPY = 1, INDEX = 2, DCP = 5 };

static void write_dcp(const uint8_t *bytes, size_t count)
{
    size_t first = count >= 2 ? (size_t)bytes[0] | (size_t)bytes[1] << 8 : 0;

    if (count < 2) return;
    if (first > count - 2) first = count - 2;
    write_file(".metadata", bytes + 2, first);
    write_file("__0_0.distcp", bytes + 2 + first, count - 2 - first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.safetensors",
                                        "x.npy",
                                        "model.safetensors.index.json",
                                        ".metadata",
                                        "rank-00000-of-00001.safetensors",
                                        "DCP"};
    static const char small[] = "\x40\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[4],"
                                "\"data_offsets\":[0,4]}}           1234";
    size_t kind = size > 0 ? data[0] % WF_COUNT(names) : 0;
    weft_checkpoint *checkpoint = NULL;
    char path[128];

    if (folder[strlen(folder) - 1] == 'X') {
        FUZZ_ASSERT(mkdtemp(folder) != NULL);
        atexit(remove_folder);
    }
    if (size == 0) return 0;
    remove_all();
    if (kind == DCP)
        write_dcp(data + 1, size - 1);
    else
        write_file(names[kind], data + 1, size - 1);
    if (kind == INDEX) write_file("b.safetensors", small, sizeof small - 1);
    snprintf(path, sizeof path, "%s%s%s", folder, kind == NPY ? "/" : "",
             kind == NPY ? names[1] : "");
    if (weft_checkpoint_open(path, &checkpoint) == WEFT_OK) {
        read_all(checkpoint);
        weft_checkpoint_close(&checkpoint);
    }
    FUZZ_ASSERT(checkpoint == NULL);
    return 0;
}
