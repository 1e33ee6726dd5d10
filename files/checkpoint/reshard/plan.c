/* plan.c - the steps of resharding, known before anything is read. */
#include "checkpoint/reshard/journal.h"
#include "checkpoint/rules/view.h"
#include "checkpoint/writer.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_JOBS = 1024, DEFAULT_JOBS = 16, LEAST_BUFFER = 1 << 20, MOST_BUFFER = 8 << 20 };
#define LEAST_MEMORY   (UINT64_C(8) << 20)
#define DEFAULT_MEMORY (UINT64_C(256) << 20)

/* ---- options ---- */

/* A job needs a buffer and a stage.  With little memory there are fewer jobs. */
static weft_status settle_options(weft_reshard *reshard)
{
    weft_reshard_options *options = &reshard->options;
    uint32_t format;
    uint64_t each;

    if (options->layout != NULL)
        WF_TRY(wf_require_kind(options->layout, WF_KIND_LAYOUT, "weft_reshard_options: layout"));
    WF_TRY(
        wf_writer_choose_format(reshard->path, options->format, options->layout != NULL, &format));
    if (options->checksums && options->layout == NULL &&
        (options->format == WEFT_FILE_SAFETENSORS || options->format == WEFT_FILE_NPY ||
         wf_ends_with(reshard->path, ".safetensors") || wf_ends_with(reshard->path, ".npy")))
        return wf_fail(WEFT_ERR_INVALID, "checksums are written to a folder, but %s is one file",
                       reshard->path);
    if (options->parts == 0) options->parts = 1;
    if (options->part < 0 || options->part >= options->parts ||
        (options->parts > 1 && options->combine == NULL))
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_reshard_options.part is %d of %d; parts are numbered from 0, and several "
            "need `combine`",
            options->part, options->parts);
    if (options->memory == 0) options->memory = DEFAULT_MEMORY;
    if (options->memory < LEAST_MEMORY)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_reshard_options.memory is %llu bytes; at least %llu are needed",
                       (unsigned long long)options->memory, (unsigned long long)LEAST_MEMORY);
    if (options->jobs < 0 || options->jobs > MOST_JOBS)
        return wf_fail(WEFT_ERR_INVALID, "weft_reshard_options.jobs is %d; from 1 to %d are valid",
                       options->jobs, MOST_JOBS);
    if (options->jobs == 0) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        options->jobs = processors < 1              ? 1
                        : processors > DEFAULT_JOBS ? DEFAULT_JOBS
                                                    : (int32_t)processors;
    }
    reshard->stage = WF_STAGE + (reshard->from->base != NULL ? WF_GATHER : 0);
    while (options->jobs > 1 &&
           options->memory / (uint64_t)options->jobs < reshard->stage + LEAST_BUFFER)
        options->jobs--;
    each = options->memory / (uint64_t)options->jobs - reshard->stage;
    reshard->buffer = each < MOST_BUFFER ? (size_t)each : MOST_BUFFER;
    return WEFT_OK;
}

/* ---- a run to resume ---- */

/* Take the size of steps from the journal, if there is one with its files. */
static weft_status find_journal(weft_reshard *reshard, struct wf_journal_plan *plan)
{
    char *partial = wf_output_path(reshard->path, WF_PARTIAL);
    weft_status status;
    struct stat info;
    bool exists;

    if (partial == NULL) return wf_fail_memory(strlen(reshard->path) + sizeof WF_PARTIAL);
    exists = lstat(partial, &info) == 0;
    wf_free(partial);
    status = wf_journal_peek(reshard->path, plan);
    if (!exists || status == WEFT_ERR_NOT_FOUND || status == WEFT_ERR_PARSE)
        return WEFT_OK; /* none, or killed before its first record: begin */
    WF_TRY(status);
    if (plan->buffer > reshard->buffer)
        return wf_fail(WEFT_ERR_INVALID,
                       "the run to resume has buffers of %" PRIu64
                       " bytes, but the memory allows %zu for each of %d jobs; give more memory or "
                       "fewer jobs",
                       plan->buffer, reshard->buffer, reshard->options.jobs);
    reshard->buffer = (size_t)plan->buffer;
    reshard->resume = true;
    return WEFT_OK;
}

static weft_status check_journal(const weft_reshard *reshard, const struct wf_journal_plan *plan)
{
    if (!reshard->resume || (plan->digest == reshard->digest && plan->steps == reshard->steps))
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s" WF_PARTIAL
                   " is of a run with another source or other options; without resume, it is "
                   "removed and written anew",
                   reshard->path);
}

/* ---- steps ---- */

static weft_status plan_steps(weft_reshard *reshard, const struct wf_tensor *tensor,
                              struct wf_reshard_tensor *out)
{
    out->first = reshard->steps;
    if (!wf_cut_make_from(&out->cut, wf_file_dtype(tensor->dtype)->bits, tensor->dims,
                          tensor->shape, reshard->buffer,
                          wf_tensor_fast_dim(reshard->from, tensor)))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "tensor \"%.200s\" is larger than a buffer, and its rows end inside a byte",
                       tensor->name);
    reshard->steps += out->cut.pieces;
    return WEFT_OK;
}

struct wf_reshard_tensor *wf_reshard_find(const weft_reshard *reshard, uint64_t number)
{
    size_t low = 0, high = reshard->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (reshard->tensors[middle].first <= number)
            low = middle;
        else
            high = middle;
    }
    while (number >= reshard->tensors[low].first + reshard->tensors[low].cut.pieces)
        low++; /* a tensor without steps */
    return &reshard->tensors[low];
}

/* ---- tensors ---- */

/* Bytes of all shards of TENSOR under PLACEMENTS, which must keep its heads whole. */
static weft_status count_shards(weft_reshard *reshard, const struct wf_tensor *tensor,
                                const char *placements, uint64_t *bytes)
{
    const struct wf_file_dtype *dtype = wf_file_dtype(tensor->dtype);
    const weft_mesh *mesh = weft_layout_file_mesh(reshard->options.layout);
    weft_status status;
    weft_spec *spec;

    WF_TRY(wf_file_spec(mesh, tensor->dtype, tensor->dims, tensor->shape, placements, &spec));
    status = wf_placer_check(&reshard->placer, tensor, spec);
    for (int32_t p = 0; p < weft_mesh_size(mesh); p++) {
        weft_shard shard;
        weft_spec_shard(spec, weft_mesh_rank_at(mesh, p), &shard);
        *bytes += (uint64_t)shard.elements * dtype->bits / 8;
    }
    weft_spec_release(&spec);
    return status;
}

/* The placements of TENSOR; they belong to RESHARD. */
static weft_status place(weft_reshard *reshard, const struct wf_tensor *tensor, const char **out)
{
    struct wf_text text = {0};
    weft_status status = wf_placer_text(&reshard->placer, tensor, &text);

    if (status == WEFT_OK) {
        *out = wf_arena_text(&reshard->arena, text.data, text.length);
        if (*out == NULL) status = wf_fail_memory(text.length + 1);
    }
    wf_text_free(&text);
    return status;
}

/* Count what is read and written of TENSOR. */
static weft_status count_bytes(weft_reshard *reshard, const struct wf_tensor *tensor,
                               weft_checkpoint_entry *entry, struct wf_reshard_tensor *out)
{
    uint64_t bits = 0, bytes = (uint64_t)tensor->bytes, written = 0;
    weft_status status;

    WF_TRY(wf_reshard_count_read(reshard->from, tensor, &bits));
    if (reshard->options.layout == NULL) {
        written = bytes;
    } else {
        WF_TRY(place(reshard, tensor, &entry->placements));
        status = count_shards(reshard, tensor, entry->placements, &written);
        if (status != WEFT_OK) return wf_fail_context(status, "tensor \"%.200s\"", tensor->name);
    }
    reshard->read += bits / 8;
    reshard->bytes += bytes;
    reshard->written += written;
    out->copies = bytes > 0 ? written / bytes : 0;
    return WEFT_OK;
}

static weft_status plan_tensor(weft_reshard *reshard, size_t index)
{
    const struct wf_tensor *tensor = &reshard->from->tensors[index];
    weft_checkpoint_entry *entry = &reshard->entries[index];

    *entry = (weft_checkpoint_entry){tensor->name, wf_file_dtype(tensor->dtype)->name, tensor->dims,
                                     tensor->shape, NULL};
    reshard->tensors[index].index = index;
    if (wf_file_dtype(tensor->dtype)->foreign && reshard->options.format != WEFT_FILE_NPY)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "tensor \"%.200s\" has dtype %s, which safetensors does not have",
                       tensor->name, wf_file_dtype(tensor->dtype)->name);
    WF_TRY(count_bytes(reshard, tensor, entry, &reshard->tensors[index]));
    return plan_steps(reshard, tensor, &reshard->tensors[index]);
}

static weft_status plan_tensors(weft_reshard *reshard)
{
    size_t count = reshard->from->tensor_count;
    struct wf_journal_plan earlier = {0};

    WF_TRY(settle_options(reshard));
    if (reshard->options.resume) WF_TRY(find_journal(reshard, &earlier));
    reshard->entries = wf_calloc(count, sizeof *reshard->entries);
    reshard->tensors = wf_calloc(count, sizeof *reshard->tensors);
    if (reshard->entries == NULL || reshard->tensors == NULL)
        return wf_fail_memory(count * sizeof *reshard->entries);
    reshard->count = count;
    wf_placer_begin(&reshard->placer, reshard->from, reshard->options.layout);
    for (size_t i = 0; i < count; i++)
        WF_TRY(plan_tensor(reshard, i));
    wf_placer_end(&reshard->placer);
    WF_TRY(wf_reshard_digest(reshard, &reshard->digest));
    return check_journal(reshard, &earlier);
}

weft_status weft_reshard_create(const weft_checkpoint *from, const char *path,
                                const weft_reshard_options *options, weft_reshard **out)
{
    weft_reshard *reshard;
    weft_status status;

    WF_TRY(wf_require_kind(from, WF_KIND_CHECKPOINT, "weft_reshard_create: from"));
    WF_TRY(wf_require(path, "weft_reshard_create: path"));
    WF_TRY(wf_require(out, "weft_reshard_create: out"));
    reshard = wf_calloc(1, sizeof *reshard);
    if (reshard == NULL) return wf_fail_memory(sizeof *reshard);
    reshard->made = WF_OF_KIND(WF_KIND_RESHARD);
    reshard->from = from;
    reshard->path = wf_strdup(path);
    status = reshard->path != NULL ? wf_options_read("weft_reshard_options", options,
                                                     &reshard->options, sizeof reshard->options)
                                   : wf_fail_memory(strlen(path) + 1);
    if (status == WEFT_OK) status = plan_tensors(reshard);
    if (status != WEFT_OK) {
        weft_reshard_release(&reshard);
        return wf_fail_named(status, "weft_reshard_create");
    }
    if (reshard->options.part == 0) wf_checkpoint_warn(from, reshard->options.layout);
    *out = reshard;
    return WEFT_OK;
}

weft_status weft_reshard_get(const weft_reshard *reshard, weft_reshard_info *out)
{
    weft_reshard_info info = {.struct_size = sizeof info};

    WF_TRY(wf_require_kind(reshard, WF_KIND_RESHARD, "weft_reshard_get: reshard"));
    WF_TRY(wf_require(out, "weft_reshard_get: out"));
    info.tensors = reshard->count;
    info.read = reshard->read;
    info.written = reshard->written;
    info.memory = (uint64_t)reshard->options.jobs * (reshard->buffer + reshard->stage);
    info.steps = reshard->steps;
    info.jobs = reshard->options.jobs;
    info.resumed = reshard->resumed;
    info.kept = reshard->kept;
    return wf_info_write("weft_reshard_info", &info, sizeof info, out);
}

void weft_reshard_release(weft_reshard **reshard)
{
    weft_reshard *object = wf_take(reshard, WF_KIND_RESHARD, "weft_reshard_release");

    if (object == NULL) return;
    wf_free(object->path);
    wf_placer_end(&object->placer);
    wf_arena_free(&object->arena);
    wf_free(object->entries);
    wf_free(object->tensors);
    wf_reshard_drop_files(object);
    object->made = wf_released(WF_KIND_RESHARD);
    wf_free(object);
}
