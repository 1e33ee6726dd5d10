/* cmd_inspect.c - `weft inspect`: what a checkpoint contains. */
#include "common/checkpoints.h"

#include "common/describe.h"
#include "common/progress.h"

#include <inttypes.h>

/* Bytes that RANK holds of all tensors under LAYOUT. */
static weft_status count_held(const weft_checkpoint *in, const weft_checkpoint_info *all,
                              const weft_layout_file *layout, int32_t rank, uint64_t *bytes)
{
    *bytes = 0;
    for (size_t i = 0; i < all->tensors; i++) {
        weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
        weft_spec *spec = NULL;
        weft_shard shard;
        WF_TRY(weft_checkpoint_tensor_get(in, i, &tensor));
        WF_TRY(weft_checkpoint_spec(in, i, layout, &spec));
        weft_spec_shard(spec, rank, &shard);
        *bytes += (uint64_t)shard.elements * tensor.bits / 8;
        weft_spec_release(&spec);
    }
    return WEFT_OK;
}

/* ---- JSON ---- */

static void add_json_tensor(struct wf_json *json, const weft_checkpoint_tensor_info *tensor)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "name", tensor->name);
    wf_json_string(json, "dtype", tensor->dtype_name);
    describe_json_shape(json, "shape", tensor->dims, tensor->shape);
    wf_json_uint(json, "bytes", tensor->bytes);
    wf_json_uint(json, "pieces", tensor->pieces);
    if (tensor->spec != NULL) describe_json_placements(json, "placements", tensor->spec);
    wf_json_end(json, '}');
}

static weft_status add_json(struct wf_json *json, const weft_checkpoint *in,
                            const weft_checkpoint_info *all)
{
    const char *key, *value;

    wf_json_string(json, "format", weft_file_format_name((enum weft_file_format)all->format));
    wf_json_uint(json, "files", all->files);
    wf_json_uint(json, "bytes", all->bytes);
    wf_json_uint(json, "others", all->others);
    if (all->mesh != NULL) describe_json_mesh(json, "mesh", all->mesh);
    wf_json_begin(json, "metadata", '{');
    for (size_t i = 0; i < all->metadata; i++) {
        WF_TRY(weft_checkpoint_metadata_get(in, i, &key, &value));
        wf_json_string(json, key, value);
    }
    wf_json_end(json, '}');
    wf_json_begin(json, "tensors", '[');
    for (size_t i = 0; i < all->tensors; i++) {
        weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
        WF_TRY(weft_checkpoint_tensor_get(in, i, &tensor));
        add_json_tensor(json, &tensor);
    }
    wf_json_end(json, ']');
    wf_json_begin(json, "unlisted", '[');
    for (size_t i = 0; i < all->unlisted; i++) {
        weft_checkpoint_unlisted_info tensor = {.struct_size = sizeof tensor};
        WF_TRY(weft_checkpoint_unlisted_get(in, i, &tensor));
        wf_json_begin(json, NULL, '{');
        wf_json_string(json, "name", tensor.name);
        wf_json_string(json, "dtype", tensor.dtype_name);
        describe_json_shape(json, "shape", tensor.dims, tensor.shape);
        wf_json_uint(json, "bytes", tensor.bytes);
        wf_json_string(json, "file", tensor.file);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
    return WEFT_OK;
}

/* ---- text ---- */

static void add_tensor(struct wf_text *out, const weft_checkpoint_tensor_info *tensor)
{
    struct wf_text shape = {0};
    size_t begin = out->length;

    describe_shape(tensor->dims, tensor->shape, &shape);
    wf_text_add(out, "%-8s %-20s ", tensor->dtype_name, shape.data != NULL ? shape.data : "");
    wf_text_free(&shape);
    if (tensor->spec != NULL) {
        wf_text_placements(&shape, tensor->spec);
        wf_text_add(out, "%-12s ", shape.data != NULL ? shape.data : "");
        wf_text_free(&shape);
    }
    wf_text_add(out, "%s", tensor->name);
    if (tensor->spec == NULL && tensor->pieces > 1)
        wf_text_add(out, "  (%zu pieces)", tensor->pieces);
    if (wf_text_status(out) == WEFT_OK) wf_text_clean(out->data + begin, out->length - begin);
    wf_text_char(out, '\n');
}

static weft_status add_unlisted(struct wf_text *out, const weft_checkpoint *in, size_t index)
{
    weft_checkpoint_unlisted_info tensor = {.struct_size = sizeof tensor};
    struct wf_text shape = {0};
    size_t begin = out->length;

    WF_TRY(weft_checkpoint_unlisted_get(in, index, &tensor));
    describe_shape(tensor.dims, tensor.shape, &shape);
    wf_text_add(out, "%-8s %-20s %s  (in %s, not in the index: left out)", tensor.dtype_name,
                shape.data != NULL ? shape.data : "", tensor.name, tensor.file);
    wf_text_free(&shape);
    if (wf_text_status(out) == WEFT_OK) wf_text_clean(out->data + begin, out->length - begin);
    wf_text_char(out, '\n');
    return WEFT_OK;
}

static weft_status add_text(struct wf_text *out, const weft_checkpoint *in,
                            const weft_checkpoint_info *all)
{
    wf_text_add(out, "%s: %zu tensor%s, ",
                weft_file_format_name((enum weft_file_format)all->format), all->tensors,
                WF_PLURAL(all->tensors));
    wf_text_bytes(out, all->bytes);
    wf_text_add(out, ", %zu file%s", all->files, WF_PLURAL(all->files));
    if (all->mesh != NULL) {
        wf_text_add(out, ", mesh ");
        wf_text_mesh(out, all->mesh);
    }
    if (all->others > 0)
        wf_text_add(out, ", %zu item%s that %s not read", all->others, WF_PLURAL(all->others),
                    all->others == 1 ? "is not a tensor and is" : "are not tensors and are");
    wf_text_char(out, '\n');
    for (size_t i = 0; i < all->tensors; i++) {
        weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
        WF_TRY(weft_checkpoint_tensor_get(in, i, &tensor));
        add_tensor(out, &tensor);
    }
    for (size_t i = 0; i < all->unlisted; i++)
        WF_TRY(add_unlisted(out, in, i));
    return WEFT_OK;
}

/* The bytes that each rank of a layout holds. */
static weft_status add_ranks(struct wf_text *out, struct wf_json *json, const weft_checkpoint *in,
                             const weft_checkpoint_info *all, const weft_layout_file *layout)
{
    const weft_mesh *mesh = weft_layout_file_mesh(layout);
    uint64_t bytes;

    if (json != NULL) wf_json_begin(json, "ranks", '[');
    for (int32_t p = 0; p < weft_mesh_size(mesh); p++) {
        int32_t rank = weft_mesh_rank_at(mesh, p);
        cli_progress_of((uint64_t)p, (uint64_t)weft_mesh_size(mesh),
                        "counting bytes: rank %d of %d", p, weft_mesh_size(mesh));
        WF_TRY(count_held(in, all, layout, rank, &bytes));
        if (json != NULL) {
            wf_json_begin(json, NULL, '{');
            wf_json_int(json, "rank", rank);
            wf_json_uint(json, "bytes", bytes);
            wf_json_end(json, '}');
        } else {
            wf_text_add(out, "rank %d holds ", rank);
            wf_text_bytes(out, bytes);
            wf_text_char(out, '\n');
        }
    }
    if (json != NULL) wf_json_end(json, ']');
    return WEFT_OK;
}

static weft_status describe(const weft_checkpoint *in, const weft_layout_file *layout, bool as_json,
                            struct wf_text *out)
{
    weft_checkpoint_info all = {.struct_size = sizeof all};
    struct wf_json json = {.out = out};

    WF_TRY(weft_checkpoint_get(in, &all));
    if (!as_json) {
        WF_TRY(add_text(out, in, &all));
        return layout != NULL ? add_ranks(out, NULL, in, &all, layout) : WEFT_OK;
    }
    wf_json_begin(&json, NULL, '{');
    WF_TRY(add_json(&json, in, &all));
    if (layout != NULL) WF_TRY(add_ranks(out, &json, in, &all, layout));
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return WEFT_OK;
}

static void warn_unlisted(const struct cli_command *command, const weft_checkpoint *in)
{
    weft_checkpoint_info all = {.struct_size = sizeof all};

    if (weft_checkpoint_get(in, &all) != WEFT_OK || all.unlisted == 0) return;
    fprintf(stderr, "weft %s: %zu tensor%s in files of the folder %s not in the index\n",
            command->name, all.unlisted, WF_PLURAL(all.unlisted), all.unlisted == 1 ? "is" : "are");
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct wf_text text = {0};
    struct cli_args args;
    struct cli_checkpoint opened = {NULL, NULL, false};
    const weft_checkpoint *in = NULL;
    weft_layout_file *layout = NULL;
    weft_checkpoint_rules *rules = NULL;
    weft_status status = WEFT_OK;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (args.rest_count != 1) {
        fprintf(stderr, "weft %s: the checkpoint is missing; for example:\n  %s\n", command->name,
                command->example);
        return CLI_USAGE;
    }
    status = cli_layout_open(command, &args, &layout);
    if (status == WEFT_OK) status = cli_rules(command, &args, &rules);
    cli_progress_begin();
    cli_progress("opening %s", args.rest[0]);
    if (status == WEFT_OK) status = cli_checkpoint_open(args.rest[0], rules, &opened, &in);
    if (status == WEFT_OK) status = describe(in, layout, cli_has(command, &args, "json"), &text);
    cli_progress_end();
    if (status == WEFT_OK) {
        exit_code = cli_print(command, stdout, &text);
        warn_unlisted(command, in);
    } else {
        exit_code = cli_checkpoint_fail(command, &opened, status);
    }
    wf_text_free(&text);
    cli_checkpoint_close(&opened);
    weft_layout_file_release(&layout);
    weft_checkpoint_rules_release(&rules);
    return exit_code;
}

const struct cli_command cli_inspect = {
    .name = "inspect",
    .summary = "print the tensors and the layout of a checkpoint",
    .arguments = "CHECKPOINT [options]",
    .example = "weft inspect Llama-3-8B",
    .rest_max = 1,
    .page = "checkpoints.md",
    .options =
        (const struct cli_option[]){
            {"layout", "FILE", "print what each rank of this layout would hold too", 0},
            CLI_MESH, /* in place of that of the layout */
            CLI_MESH_RANKS,
            CLI_RULES,
            CLI_JSON,
            {0}},
    .run = run,
};
