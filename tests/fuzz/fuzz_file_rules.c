/* Any text is rules or is refused.  Rules either make tensors of a small checkpoint, every one of
 * which can be read, or say why they do not fit. */
#include "fuzz.h"

#include "weft/file.h"
#include "weft/weft.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static weft_checkpoint *in;

/* A checkpoint in a file without a name. */
static void make_checkpoint(void)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[0,96]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[96,192]},"
        "\"s.0\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[192,200]},"
        "\"s.1\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[200,208]}}";
    static char bytes[8 + sizeof header - 1 + 208];
    int fd = memfd_create("rules", MFD_CLOEXEC);
    char path[64];

    bytes[0] = (char)((sizeof header - 1) & 255);
    bytes[1] = (char)((sizeof header - 1) >> 8);
    memcpy(bytes + 8, header, sizeof header - 1);
    FUZZ_ASSERT(fd >= 0 && write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FUZZ_ASSERT(weft_checkpoint_open(path, &in) == WEFT_OK);
}

static void read_tensors(const weft_checkpoint *out)
{
    weft_checkpoint_info all = {.struct_size = sizeof all};

    FUZZ_ASSERT(weft_checkpoint_get(out, &all) == WEFT_OK);
    for (size_t i = 0; i < all.tensors; i++) {
        weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
        void *target;
        FUZZ_ASSERT(weft_checkpoint_tensor_get(out, i, &info) == WEFT_OK);
        if (info.bytes > 1 << 20) continue;
        target = malloc(info.bytes + 1);
        FUZZ_ASSERT(target != NULL);
        FUZZ_ASSERT(weft_checkpoint_read(out, i, NULL, NULL, target) == WEFT_OK);
        free(target);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    weft_checkpoint *out = NULL;
    weft_checkpoint_rules *rules = NULL;

    if (in == NULL) make_checkpoint();
    if (weft_checkpoint_rules_parse(text, NULL, &rules) != WEFT_OK) {
        FUZZ_ASSERT(rules == NULL && weft_last_error()[0] != '\0');
    } else if (weft_checkpoint_map(in, rules, &out) == WEFT_OK) {
        read_tensors(out);
    } else {
        FUZZ_ASSERT(out == NULL && weft_last_error()[0] != '\0');
    }
    weft_checkpoint_close(&out);
    weft_checkpoint_rules_release(&rules);
    free(text);
    return 0;
}
