/* Any text is a shape or is refused; a shape prints as text that reads back to it. */
#include "fuzz.h"

#include "shard/shard.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    int64_t shape[WEFT_MAX_DIMS] = {-1}, again[WEFT_MAX_DIMS];
    int32_t dims = -1, again_dims;
    struct wf_text printed = {0};

    if (weft_shape_parse(text, &dims, shape) == WEFT_OK) {
        wf_shape_add_text(dims, shape, &printed);
        FUZZ_ASSERT(weft_shape_parse(printed.data, &again_dims, again) == WEFT_OK);
        FUZZ_ASSERT(again_dims == dims && dims >= 0 && dims <= WEFT_MAX_DIMS);
        FUZZ_ASSERT(memcmp(shape, again, (size_t)dims * sizeof *shape) == 0);
        wf_text_free(&printed);
    } else {
        FUZZ_ASSERT(dims == -1 && shape[0] == -1 && weft_last_error()[0] != '\0');
    }
    free(text);
    return 0;
}
