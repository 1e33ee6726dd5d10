/* cmd_verify.c - `weft verify`: do two checkpoints have the same tensors? */
#include "common/checkpoints.h"

#include "base/json/json_reader.h"
#include "common/describe.h"
#include "common/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART = 8 << 20 }; /* bytes that are compared at once */

struct pair {
    const weft_checkpoint *in[2];
    const char *path[2];
    weft_checkpoint_info all[2];
    char *buffer[2];
    size_t capacity;
    struct wf_text difference; /* empty: none so far */
    uint64_t compared;
};

/* ---- what the tensors are ---- */

static weft_status tensor_of(const struct pair *pair, int side, size_t index,
                             weft_checkpoint_tensor_info *out)
{
    *out = (weft_checkpoint_tensor_info){.struct_size = sizeof *out};
    return weft_checkpoint_tensor_get(pair->in[side], index, out);
}

static bool same_shape(const weft_checkpoint_tensor_info *a, const weft_checkpoint_tensor_info *b)
{
    return a->dims == b->dims &&
           (a->dims == 0 || memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) == 0);
}

/* Tensors of both are in the order of their names. */
static weft_status compare_lists(struct pair *pair)
{
    for (size_t i = 0; i < pair->all[0].tensors || i < pair->all[1].tensors; i++) {
        weft_checkpoint_tensor_info tensor[2];
        int order = i >= pair->all[0].tensors ? 1 : -1;
        for (int side = 0; side < 2; side++)
            if (i < pair->all[side].tensors) WF_TRY(tensor_of(pair, side, i, &tensor[side]));
        if (i < pair->all[0].tensors && i < pair->all[1].tensors)
            order = strcmp(tensor[0].name, tensor[1].name);
        if (order != 0) {
            int has = order < 0 ? 0 : 1;
            wf_text_add(&pair->difference, "%s has tensor \"%s\", but %s does not", pair->path[has],
                        tensor[has].name, pair->path[1 - has]);
            return WEFT_OK;
        }
        if (strcmp(tensor[0].dtype_name, tensor[1].dtype_name) == 0 &&
            same_shape(&tensor[0], &tensor[1]))
            continue;
        wf_text_add(&pair->difference, "tensor \"%s\" is %s", tensor[0].name, tensor[0].dtype_name);
        describe_shape(tensor[0].dims, tensor[0].shape, &pair->difference);
        wf_text_add(&pair->difference, " in %s, but %s", pair->path[0], tensor[1].dtype_name);
        describe_shape(tensor[1].dims, tensor[1].shape, &pair->difference);
        wf_text_add(&pair->difference, " in %s", pair->path[1]);
        return WEFT_OK;
    }
    return WEFT_OK;
}

/* ---- what the elements are ---- */

/* Name the element at byte AT of the box at OFFSET. */
static void name_difference(struct pair *pair, const weft_checkpoint_tensor_info *tensor,
                            const int64_t *offset, const int64_t *sizes, size_t at)
{
    int64_t element = (int64_t)at * 8 / (int64_t)tensor->bits, place[WEFT_MAX_DIMS];

    for (int32_t d = tensor->dims - 1; d >= 0; d--) {
        place[d] = offset[d] + element % sizes[d];
        element /= sizes[d];
    }
    wf_text_add(&pair->difference, "tensor \"%s\" differs at element ", tensor->name);
    describe_shape(tensor->dims, place, &pair->difference);
    wf_text_add(&pair->difference, ": byte 0x%02x in %s, 0x%02x in %s",
                (unsigned char)pair->buffer[0][at], pair->path[0],
                (unsigned char)pair->buffer[1][at], pair->path[1]);
}

static weft_status reserve(struct pair *pair, size_t bytes)
{
    if (bytes <= pair->capacity) return WEFT_OK;
    for (int side = 0; side < 2; side++) {
        char *grown = wf_realloc(pair->buffer[side], bytes);
        if (grown == NULL) return wf_fail_memory(bytes);
        pair->buffer[side] = grown;
    }
    pair->capacity = bytes;
    return WEFT_OK;
}

/* Compare a box of BYTES that fits the buffers. */
static weft_status compare_part(struct pair *pair, size_t index,
                                const weft_checkpoint_tensor_info *tensor, const int64_t *offset,
                                const int64_t *sizes, size_t bytes)
{
    WF_TRY(reserve(pair, bytes));
    for (int side = 0; side < 2; side++)
        WF_TRY(weft_checkpoint_read(pair->in[side], index, offset, sizes, pair->buffer[side]));
    pair->compared += bytes;
    cli_progress_of(pair->compared, pair->all[0].bytes, "%.2f of %.2f GB compared",
                    (double)pair->compared / 1e9, (double)pair->all[0].bytes / 1e9);
    if (memcmp(pair->buffer[0], pair->buffer[1], bytes) == 0) return WEFT_OK;
    for (size_t at = 0; at < bytes; at++)
        if (pair->buffer[0][at] != pair->buffer[1][at]) {
            name_difference(pair, tensor, offset, sizes, at);
            break;
        }
    return WEFT_OK;
}

/* Half of the SIZE rows of BYTES, such that it ends with a byte; 0: there is no such half. */
static int64_t half_of(int64_t size, size_t bytes)
{
    size_t row_bits = bytes * 8 / (size_t)size;
    int64_t rows = 1;

    while (row_bits * (size_t)rows % 8 != 0)
        rows *= 2;
    return size / 2 / rows * rows;
}

/* Compare a box of BYTES: a large one in halves of its outermost dimension, so that the first
 * difference is found first. */
static weft_status compare_box(struct pair *pair, size_t index,
                               const weft_checkpoint_tensor_info *tensor, const int64_t *offset,
                               const int64_t *sizes, size_t bytes)
{
    int64_t start[WEFT_MAX_DIMS], extent[WEFT_MAX_DIMS];
    int64_t half;
    int32_t outer = 0;
    size_t first;

    while (bytes > PART && sizes[outer] == 1)
        outer++;
    half = bytes > PART ? half_of(sizes[outer], bytes) : 0;
    if (half == 0) return compare_part(pair, index, tensor, offset, sizes, bytes);
    memcpy(start, offset, sizeof start);
    memcpy(extent, sizes, sizeof extent);
    extent[outer] = half;
    first = bytes * 8 / (size_t)sizes[outer] * (size_t)half / 8;
    WF_TRY(compare_box(pair, index, tensor, start, extent, first));
    if (pair->difference.length > 0) return WEFT_OK;
    start[outer] += extent[outer];
    extent[outer] = sizes[outer] - half;
    return compare_box(pair, index, tensor, start, extent, bytes - first);
}

static weft_status compare_tensor(struct pair *pair, size_t index)
{
    int64_t offset[WEFT_MAX_DIMS] = {0}, sizes[WEFT_MAX_DIMS] = {1};
    weft_checkpoint_tensor_info tensor;

    WF_TRY(tensor_of(pair, 0, index, &tensor));
    if (tensor.bytes == 0) return WEFT_OK;
    for (int32_t d = 0; d < tensor.dims; d++)
        sizes[d] = tensor.shape[d];
    return compare_box(pair, index, &tensor, offset, sizes, (size_t)tensor.bytes);
}

/* Files per rank have replicas, of which reading uses one. */
static weft_status compare_replicas(struct pair *pair, int side, size_t index)
{
    weft_status status = weft_checkpoint_check_replicas(pair->in[side], index);

    if (status != WEFT_ERR_MISMATCH) return status;
    wf_text_add(&pair->difference, "%s: %s", pair->path[side], weft_last_error());
    return WEFT_OK;
}

static weft_status compare(struct pair *pair)
{
    WF_TRY(compare_lists(pair));
    for (size_t i = 0; i < pair->all[0].tensors && pair->difference.length == 0; i++) {
        WF_TRY(compare_tensor(pair, i));
        for (int side = 0; side < 2 && pair->difference.length == 0; side++)
            WF_TRY(compare_replicas(pair, side, i));
    }
    return wf_text_status(&pair->difference);
}

/* ---- checksums ---- */

/* Open the regular file at PATH. */
static weft_status open_sums(const char *path, int *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;

    if (fd < 0)
        return wf_fail(WEFT_ERR_NOT_FOUND, "%s: %s; `weft reshard --verify` writes it", path,
                       kit_error_text(errno));
    *out = fd;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return WEFT_OK;
    close(fd);
    return wf_fail(WEFT_ERR_INVALID, "%s is not a regular file", path);
}

/* The next bytes of the file whose descriptor SOURCE is. */
static weft_status read_sums(void *source, char *buffer, size_t capacity, size_t *count)
{
    const int *fd = source;
    ssize_t bytes = read(*fd, buffer, capacity);

    if (bytes < 0) return wf_fail(WEFT_ERR_SYSTEM, "weft.json: %s", kit_error_text(errno));
    *count = (size_t)bytes;
    return WEFT_OK;
}

/* Compare one tensor with its checksum in the document. */
static weft_status check_sum(struct pair *pair, struct wf_json_reader *json)
{
    weft_checkpoint_tensor_info tensor;
    size_t index;
    uint64_t sum;
    char text[20];

    WF_TRY(weft_checkpoint_find(pair->in[0], json->text.data, &index));
    WF_TRY(wf_json_expect(json, WF_EVENT_STRING));
    WF_TRY(tensor_of(pair, 0, index, &tensor));
    WF_TRY(weft_checkpoint_checksum(pair->in[0], index, &sum));
    pair->compared += tensor.bytes;
    cli_progress_of(pair->compared, pair->all[0].bytes, "%.2f of %.2f GB checked",
                    (double)pair->compared / 1e9, (double)pair->all[0].bytes / 1e9);
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    if (strcmp(text, json->text.data) != 0)
        wf_text_add(&pair->difference, "tensor \"%s\" has checksum %s, but weft.json has %s",
                    tensor.name, text, json->text.data);
    return pair->difference.length == 0 ? compare_replicas(pair, 0, index) : WEFT_OK;
}

static weft_status check_sums(struct pair *pair, struct wf_json_reader *json)
{
    enum wf_json_event event;
    uint64_t tensors = 0;

    WF_TRY(wf_json_expect(json, WF_EVENT_OBJECT));
    for (;;) {
        WF_TRY(wf_json_next(json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        if (pair->difference.length == 0)
            WF_TRY(check_sum(pair, json));
        else
            WF_TRY(wf_json_skip(json));
        tensors++;
    }
    if (pair->difference.length == 0 && tensors != pair->all[0].tensors)
        wf_text_add(&pair->difference, "weft.json has %" PRIu64 " tensor%s, but %s has %" PRIu64,
                    tensors, WF_PLURAL(tensors), pair->path[0], pair->all[0].tensors);
    return WEFT_OK;
}

static weft_status check_document(struct pair *pair, struct wf_json_reader *json)
{
    enum wf_json_event event;
    bool known = false, checked = false;

    WF_TRY(wf_json_expect(json, WF_EVENT_OBJECT));
    for (;;) {
        WF_TRY(wf_json_next(json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        if (strcmp(json->text.data, "checksum") == 0) {
            WF_TRY(wf_json_expect(json, WF_EVENT_STRING));
            known = strcmp(json->text.data, "weft-1") == 0;
        } else if (strcmp(json->text.data, "tensors") == 0 && known) {
            WF_TRY(check_sums(pair, json));
            checked = true;
        } else {
            WF_TRY(wf_json_skip(json));
        }
    }
    if (!known) return wf_json_refuse(json, "the kind of its checksums is not weft-1");
    if (!checked) return wf_json_refuse(json, "it has no \"tensors\" behind \"checksum\"");
    return wf_json_expect(json, WF_EVENT_END);
}

/* Compare a checkpoint with its weft.json. */
static weft_status compare_sums(struct pair *pair)
{
    struct wf_json_reader json;
    struct wf_text path = {0};
    weft_status status;
    int fd = -1;

    wf_text_add(&path, "%s/weft.json", pair->path[0]);
    WF_TRY(wf_text_status(&path));
    status = open_sums(path.data, &fd);
    if (status == WEFT_OK) {
        wf_json_reader_stream(&json, path.data, read_sums, &fd);
        status = check_document(pair, &json);
        wf_json_reader_end(&json);
        close(fd);
    }
    wf_text_free(&path);
    return status;
}

/* ---- the command ---- */

static int print_answer(const struct cli_command *command, const struct pair *pair, bool as_json)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};
    bool same = pair->difference.length == 0;
    int exit_code;

    if (as_json) {
        wf_json_begin(&json, NULL, '{');
        wf_json_bool(&json, "same", same);
        wf_json_uint(&json, "tensors", pair->all[0].tensors);
        wf_json_uint(&json, "compared", pair->compared);
        wf_json_string(&json, "difference", same ? NULL : pair->difference.data);
        wf_json_end(&json, '}');
    } else if (same) {
        wf_text_add(&text, "the same: %" PRIu64 " tensor%s, ", pair->all[0].tensors,
                    WF_PLURAL(pair->all[0].tensors));
        wf_text_bytes(&text, pair->compared);
    } else {
        wf_text_add(&text, "different: %s", pair->difference.data);
        if (text.data != NULL) wf_text_clean(text.data, text.length); /* names of tensors */
    }
    wf_text_char(&text, '\n');
    exit_code = cli_print(command, stdout, &text);
    return exit_code != CLI_OK || same ? exit_code : CLI_NO;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_checkpoint in[2] = {{.missing = false}, {.missing = false}};
    struct cli_rules rules = {.count = 0};
    struct pair pair = {0};
    weft_status status;
    struct cli_args args;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (args.rest_count == 0) {
        fprintf(stderr, "weft %s: one or two checkpoints are needed; for example:\n  %s\n",
                command->name, command->example);
        return CLI_USAGE;
    }
    status = cli_rules_open(command, &args, &rules);
    if (status != WEFT_OK) {
        cli_fail(command, status);
        return CLI_USAGE;
    }
    cli_progress_begin();
    for (int side = 0; side < args.rest_count && status == WEFT_OK; side++) {
        cli_progress("opening %s", args.rest[side]);
        pair.path[side] = args.rest[side];
        pair.all[side].struct_size = sizeof pair.all[side];
        status = cli_checkpoint_open(args.rest[side], side == 0 ? &rules : NULL, &in[side],
                                     &pair.in[side]);
        if (status == WEFT_OK) status = weft_checkpoint_get(pair.in[side], &pair.all[side]);
    }
    if (status == WEFT_OK) status = args.rest_count == 2 ? compare(&pair) : compare_sums(&pair);
    cli_progress_end();
    exit_code = status != WEFT_OK ? cli_checkpoint_fail(command, &in[in[1].missing ? 1 : 0], status)
                                  : print_answer(command, &pair, cli_has(command, &args, "json"));
    for (int side = 0; side < 2; side++) {
        wf_free(pair.buffer[side]);
        cli_checkpoint_close(&in[side]);
    }
    cli_rules_close(&rules);
    wf_text_free(&pair.difference);
    return exit_code;
}

const struct cli_command cli_verify = {
    .name = "verify",
    .summary = "compare two checkpoints, in any formats and layouts, or one with its checksums",
    .arguments = "A [B] [options]",
    .example = "weft verify Llama-3-8B out",
    .rest_max = 2,
    .page = "checkpoints.md",
    .options = (const struct cli_option[]){CLI_RULES, CLI_JSON, {0}},
    .run = run,
};
