/* plan_files.c - the files of formats that store whole tensors: one safetensors file, a Hugging
 * Face folder, a .npy file. */
#include "writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct wf_out_entry entry_of(const struct wf_out_tensor *tensor)
{
    return (struct wf_out_entry){.name = tensor->name,
                                 .shape = tensor->shape,
                                 .bytes = tensor->bytes,
                                 .dtype = tensor->dtype,
                                 .dims = tensor->dims};
}

/* Lay out the tensors [FIRST, END) of the sorted list in file INDEX, and open it. */
static weft_status plan_file(weft_checkpoint_writer *writer, size_t index, const char *name,
                             size_t first, size_t end)
{
    struct wf_out_entry *entries = wf_calloc(end - first, sizeof *entries);
    struct wf_text *header = &writer->headers[index];
    weft_status status;
    uint64_t bytes = 0;

    if (entries == NULL) return wf_fail_memory((end - first) * sizeof *entries);
    for (size_t i = first; i < end; i++) {
        entries[i - first] = entry_of(writer->sorted[i]);
        entries[i - first].tensor = (size_t)(writer->sorted[i] - writer->tensors);
    }
    status =
        wf_header_layout(entries, end - first, writer->pairs, writer->pair_count, header, &bytes);
    for (size_t i = 0; i < end - first && status == WEFT_OK; i++) {
        struct wf_out_tensor *tensor = &writer->tensors[entries[i].tensor];
        tensor->file = (uint32_t)index;
        tensor->at[0] = header->length + entries[i].at;
    }
    wf_free(entries);
    if (status != WEFT_OK) return status;
    return wf_outputs_open(&writer->output, index, name, header->length + bytes);
}

static weft_status make_headers(weft_checkpoint_writer *writer, size_t count)
{
    writer->headers = wf_calloc(count, sizeof *writer->headers);
    return writer->headers != NULL ? WEFT_OK : wf_fail_memory(count * sizeof *writer->headers);
}

weft_status wf_writer_plan_single(weft_checkpoint_writer *writer)
{
    WF_TRY(make_headers(writer, writer->output.count));
    return plan_file(writer, 0, writer->output.path, 0, writer->count);
}

/* ---- Hugging Face ---- */

/* Where the file that begins with tensor FIRST ends: greedy, in the order of names. */
static size_t end_of_file(const weft_checkpoint_writer *writer, size_t first)
{
    uint64_t bytes = 0;
    size_t i = first;

    for (; i < writer->count; i++) {
        bytes += (uint64_t)writer->sorted[i]->bytes;
        if (bytes > writer->file_bytes && i > first) break;
    }
    return i;
}

static void add_index(weft_checkpoint_writer *writer, const char *name, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        wf_text_add(&writer->index, "%s\n    ", i > 0 ? "," : "");
        wf_header_quote(&writer->index, writer->sorted[i]->name);
        wf_text_add(&writer->index, ": \"%s\"", name);
    }
}

size_t wf_writer_count_files(const weft_checkpoint_writer *writer)
{
    size_t files = 0;

    for (size_t first = 0; first < writer->count; files++)
        first = end_of_file(writer, first);
    return files > 1 ? files + 1 : 1; /* with the index */
}

weft_status wf_writer_plan_folder(weft_checkpoint_writer *writer)
{
    size_t files = writer->output.count > 1 ? writer->output.count - 1 : 1, first = 0, end;
    uint64_t total = 0;
    char name[64] = "model.safetensors";

    WF_TRY(make_headers(writer, writer->output.count));
    for (size_t i = 0; i < writer->count; i++)
        total += (uint64_t)writer->tensors[i].bytes;
    wf_text_add(&writer->index,
                "{\n  \"metadata\": {\n    \"total_size\": %" PRIu64 "\n  },\n  \"weight_map\": {",
                total);
    for (size_t file = 0; file < files; file++, first = end) {
        end = end_of_file(writer, first);
        if (files > 1)
            snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", file + 1, files);
        add_index(writer, name, first, end);
        WF_TRY(plan_file(writer, file, name, first, end));
    }
    wf_text_add(&writer->index, "\n  }\n}\n");
    WF_TRY(wf_text_status(&writer->index));
    if (files == 1) return WEFT_OK;
    return wf_outputs_open(&writer->output, files, "model.safetensors.index.json",
                           writer->index.length);
}

/* ---- .npy ---- */

weft_status wf_writer_plan_npy(weft_checkpoint_writer *writer)
{
    struct wf_out_tensor *tensor = &writer->tensors[0];
    const char *descr = wf_file_dtype(tensor->dtype)->numpy;
    struct wf_text *text;

    if (writer->count != 1)
        return wf_fail(WEFT_ERR_INVALID, "a .npy file has one tensor, but there are %zu",
                       writer->count);
    if (descr == NULL)
        return wf_fail(WEFT_ERR_INVALID, "NumPy cannot store elements of %s",
                       wf_file_dtype(tensor->dtype)->name);
    WF_TRY(make_headers(writer, 1));
    text = &writer->headers[0];
    wf_text_append(text, "\x93NUMPY\x01\0\0\0", 10);
    wf_text_add(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t d = 0; d < tensor->dims; d++)
        wf_text_add(text, "%" PRId64 "%s", tensor->shape[d],
                    tensor->dims == 1      ? ","
                    : d + 1 < tensor->dims ? ", "
                                           : "");
    wf_text_add(text, "), }");
    while ((text->length + 1) % 64 != 0 && !text->failed)
        wf_text_char(text, ' ');
    wf_text_char(text, '\n');
    WF_TRY(wf_text_status(text));
    text->data[8] = (char)((text->length - 10) & 255);
    text->data[9] = (char)((text->length - 10) >> 8);
    tensor->at[0] = text->length;
    return wf_outputs_open(&writer->output, 0, writer->output.path,
                           text->length + (uint64_t)tensor->bytes);
}
