/* Traces: reading, summing up and merging accept any file or refuse it, and a merged file can be
 * read. */
#include "fuzz.h"

#include "trace/merge.h"
#include "trace/summary.h"

static void check_merged(struct trace_file *file)
{
    struct trace_facts facts;
    struct wf_text merged = {0};
    uint64_t bound_ns;

    if (trace_merge_check(file, 1) != WEFT_OK) return;
    FUZZ_ASSERT(trace_merge(file, 1, NULL, &merged, &bound_ns) == WEFT_OK);
    FUZZ_ASSERT(trace_read_facts("merged", (const uint8_t *)merged.data, merged.length, NULL,
                                 &facts) == WEFT_OK);
    FUZZ_ASSERT(facts.rank == file->facts.rank && facts.size == file->facts.size);
    wf_text_free(&merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_file file = {.name = "fuzz", .bytes = size};
    struct wf_text text = {0};
    bool is_read;

    file.data = malloc(size + 1); /* exactly the input, for the sanitizers */
    if (file.data == NULL) abort();
    for (size_t i = 0; i < size; i++)
        file.data[i] = data[i];
    is_read = trace_summarize("fuzz", file.data, size, false, NULL, &text) == WEFT_OK;
    FUZZ_ASSERT(is_read ==
                (trace_summarize("fuzz", file.data, size, true, NULL, &text) == WEFT_OK));
    wf_text_free(&text);
    if (trace_read_facts("fuzz", file.data, size, NULL, &file.facts) == WEFT_OK) {
        FUZZ_ASSERT(is_read);
        check_merged(&file);
    }
    free(file.data);
    return 0;
}
