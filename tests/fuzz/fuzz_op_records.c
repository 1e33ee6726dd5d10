/* Any line is answered by one JSON object: with the layouts of a call, or with an error. */
#include "fuzz.h"

#include "op/records.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = fuzz_string(data, size);
    struct wf_text text = {0};
    struct wf_json_tree tree;

    FUZZ_ASSERT(op_record_answer(line, NULL, &text) == WEFT_OK);
    FUZZ_ASSERT(strchr(text.data, '\n') == text.data + text.length - 1);
    FUZZ_ASSERT(wf_json_read("it", text.data, &tree) == WEFT_OK);
    FUZZ_ASSERT(wf_json_find(tree.root, "id") != NULL);
    FUZZ_ASSERT((wf_json_find(tree.root, "error") != NULL) !=
                (wf_json_find(tree.root, "chosen") != NULL));
    wf_json_free(&tree);
    wf_text_free(&text);
    weft_op_cache_clear();
    free(line);
    return 0;
}
