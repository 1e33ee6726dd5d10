/* plan_ranks.c - one safetensors file per rank; ranks.c describes the metadata.
 *
 * If every shard is one box, the files also have the metadata of DCP's sharded safetensors, so that
 * PyTorch reads them. */
#include "writer.h"
#include "outside/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_box(const weft_spec *spec, int32_t rank, const weft_shard *shard)
{
    weft_index_run run;

    for (int32_t d = 0; d < shard->dims && shard->elements > 0; d++)
        if (!weft_spec_run(spec, rank, d, 0, &run) || run.length != shard->shape[d]) return false;
    return true;
}

static bool are_boxes(const weft_checkpoint_writer *writer)
{
    for (size_t i = 0; i < writer->count; i++)
        for (int32_t p = 0; p < weft_mesh_size(writer->mesh); p++) {
            int32_t rank = weft_mesh_rank_at(writer->mesh, p);
            weft_shard shard;
            weft_spec_shard(writer->tensors[i].spec, rank, &shard);
            if (!is_box(writer->tensors[i].spec, rank, &shard)) return false;
        }
    return true;
}

/* {"NAME":"BF16[4096,4096] S(0),R"} */
static weft_status add_specs(const weft_checkpoint_writer *writer, struct wf_text *out)
{
    wf_text_char(out, '{');
    for (size_t i = 0; i < writer->count; i++) {
        const struct wf_out_tensor *tensor = writer->sorted[i];
        if (i > 0) wf_text_char(out, ',');
        wf_header_quote(out, tensor->name);
        wf_text_add(out, ":\"%s", wf_file_dtype(tensor->dtype)->name);
        wf_shape_add_text(tensor->dims, tensor->shape, out);
        wf_text_char(out, ' ');
        wf_text_placements(out, tensor->spec);
        wf_text_char(out, '"');
    }
    wf_text_char(out, '}');
    return wf_text_status(out);
}

static void add_offsets(struct wf_text *out, const char *name, const weft_shard *shard)
{
    wf_text_add(out, "%s", out->length > 1 ? ", " : "");
    wf_header_quote(out, name);
    wf_text_add(out, ": {\"saved_offsets\": [");
    for (int32_t d = 0; d < shard->dims; d++)
        wf_text_add(out, "%s%" PRId64, d > 0 ? ", " : "", shard->offset[d]);
    wf_text_add(out, "]}");
}

struct rank_file {
    weft_checkpoint_writer *writer;
    int32_t position, rank;
    struct wf_out_entry *entries;
    int64_t (*shapes)[WEFT_MAX_DIMS];
    size_t count;
    struct wf_text sharding;
};

/* The shards of a rank that are not empty. */
static weft_status list_shards(struct rank_file *file)
{
    wf_text_char(&file->sharding, '{');
    for (size_t i = 0; i < file->writer->count; i++) {
        const struct wf_out_tensor *tensor = file->writer->sorted[i];
        struct wf_out_entry *entry = &file->entries[file->count];
        weft_shard shard;
        weft_spec_shard(tensor->spec, file->rank, &shard);
        if (shard.elements == 0) continue;
        memcpy(file->shapes[file->count], shard.shape, sizeof shard.shape);
        *entry = (struct wf_out_entry){.name = tensor->name,
                                       .shape = file->shapes[file->count],
                                       .tensor = (size_t)(tensor - file->writer->tensors),
                                       .dtype = tensor->dtype,
                                       .dims = tensor->dims};
        if (!wf_file_bytes(tensor->dtype, tensor->dims, entry->shape, &entry->bytes))
            return wf_fail(WEFT_ERR_UNSUPPORTED,
                           "tensor \"%s\": the shard of rank %d ends inside a byte", tensor->name,
                           file->rank);
        add_offsets(&file->sharding, tensor->name, &shard);
        file->count++;
    }
    wf_text_char(&file->sharding, '}');
    return wf_text_status(&file->sharding);
}

static int compare_pairs(const void *left, const void *right)
{
    return strcmp(((const struct wf_pair *)left)->key, ((const struct wf_pair *)right)->key);
}

/* The header, with COMMON metadata and that of this rank. */
static weft_status lay_out(struct rank_file *file, const struct wf_pair *common, size_t count,
                           bool boxes)
{
    weft_checkpoint_writer *writer = file->writer;
    struct wf_text *header = &writer->headers[file->position];
    struct wf_pair *pairs = wf_calloc(count + 3, sizeof *pairs);
    char rank[16], name[64];
    weft_status status;
    uint64_t bytes = 0;

    if (pairs == NULL) return wf_fail_memory((count + 3) * sizeof *pairs);
    snprintf(rank, sizeof rank, "%d", file->rank);
    memcpy(pairs, common, count * sizeof *pairs);
    pairs[count++] = (struct wf_pair){"weft.rank", rank};
    if (boxes) {
        pairs[count++] = (struct wf_pair){"DCP_VERSION", "1.0"};
        pairs[count++] = (struct wf_pair){"DCP_SHARDING_INFO", file->sharding.data};
    }
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    status = wf_header_layout(file->entries, file->count, pairs, count, header, &bytes);
    wf_free(pairs);
    if (status != WEFT_OK) return status;
    for (size_t i = 0; i < file->count; i++)
        writer->tensors[file->entries[i].tensor].at[file->position] =
            header->length + file->entries[i].at;
    snprintf(name, sizeof name, "rank-%05d-of-%05d.safetensors", file->position,
             weft_mesh_size(writer->mesh));
    return wf_outputs_open(&writer->output, (size_t)file->position, name, header->length + bytes);
}

static weft_status plan_file(weft_checkpoint_writer *writer, int32_t position,
                             const struct wf_pair *common, size_t count, bool boxes)
{
    struct rank_file file = {.writer = writer,
                             .position = position,
                             .rank = weft_mesh_rank_at(writer->mesh, position),
                             .entries = wf_calloc(writer->count, sizeof *file.entries),
                             .shapes = wf_calloc(writer->count, sizeof *file.shapes)};
    weft_status status = file.entries == NULL || file.shapes == NULL
                             ? wf_fail_memory(writer->count * sizeof *file.shapes)
                             : list_shards(&file);

    if (status == WEFT_OK) status = lay_out(&file, common, count, boxes);
    wf_free(file.entries);
    wf_free(file.shapes);
    wf_text_free(&file.sharding);
    return status;
}

static weft_status plan_files(weft_checkpoint_writer *writer, const char *mesh, const char *specs)
{
    size_t count = writer->pair_count + 2;
    struct wf_pair *common = wf_calloc(count, sizeof *common);
    bool boxes = are_boxes(writer);
    weft_status status = WEFT_OK;

    if (common == NULL) return wf_fail_memory(count * sizeof *common);
    for (size_t i = 0; i < writer->pair_count; i++)
        common[i] = writer->pairs[i];
    common[writer->pair_count] = (struct wf_pair){"weft.mesh", mesh};
    common[writer->pair_count + 1] = (struct wf_pair){"weft.specs", specs};
    for (int32_t p = 0; p < weft_mesh_size(writer->mesh) && status == WEFT_OK; p++)
        status = plan_file(writer, p, common, count, boxes);
    wf_free(common);
    return status;
}

weft_status wf_writer_plan_ranks(weft_checkpoint_writer *writer)
{
    struct wf_text mesh = {0}, specs = {0};
    weft_status status;

    writer->headers = wf_calloc(writer->output.count, sizeof *writer->headers);
    if (writer->headers == NULL)
        return wf_fail_memory(writer->output.count * sizeof *writer->headers);
    wf_text_mesh(&mesh, writer->mesh);
    status = wf_text_status(&mesh);
    if (status == WEFT_OK) status = add_specs(writer, &specs);
    if (status == WEFT_OK) status = plan_files(writer, mesh.data, specs.data);
    wf_text_free(&specs);
    wf_text_free(&mesh);
    return status;
}
