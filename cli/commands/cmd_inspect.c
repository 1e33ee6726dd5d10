/* cmd_inspect.c - `weft inspect`: what a checkpoint contains. */
#include "common/checkpoints.h"

#include "common/describe.h"
#include "common/progress.h"

#include <inttypes.h>

enum {
    SHAPES_MOST = 3,
    VALUE_MOST = 200
}; /* shapes of a tensor, bytes of metadata that are shown */

/* A tensor by the layout of --layout. */
struct placed {
    weft_spec *spec;
    struct wf_text shapes; /* that ranks hold of it */
};

/* A checkpoint, and the layout of --layout. */
struct contents {
    const weft_checkpoint *in;
    weft_checkpoint_info all;
    const weft_layout_file *layout; /* NULL: none is given; then there is nothing of these */
    struct placed *placed;          /* one for each tensor */
    uint64_t *bytes;                /* that each rank of the mesh holds */
};

/* Add SHAPE to the texts of the COUNT shapes that are in SHARDS already, if it is another one:
 * "[4,12]", or "[6,12] or [2,12]". */
static void add_shape(struct placed *placed, weft_shard *shards, int32_t *count,
                      const weft_shard *shard)
{
    for (int32_t i = 0; i < *count; i++)
        if (memcmp(shards[i].shape, shard->shape, sizeof *shard->shape * (size_t)shard->dims) == 0)
            return;
    if (*count == SHAPES_MOST) return;
    wf_text_add(&placed->shapes, "%s", *count > 0 ? " or " : "");
    if (*count + 1 == SHAPES_MOST)
        wf_text_add(&placed->shapes, "...");
    else
        describe_shape(shard->dims, shard->shape, &placed->shapes);
    shards[(*count)++] = *shard;
}

static weft_status place_tensor(struct contents *contents, size_t index)
{
    const weft_mesh *mesh = weft_layout_file_mesh(contents->layout);
    weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};
    struct placed *placed = &contents->placed[index];
    weft_shard shards[SHAPES_MOST], shard;
    int32_t count = 0;

    WF_TRY(weft_checkpoint_tensor_get(contents->in, index, &tensor));
    WF_TRY(weft_checkpoint_spec(contents->in, index, contents->layout, &placed->spec));
    for (int32_t p = 0; p < weft_mesh_size(mesh); p++) {
        weft_spec_shard(placed->spec, weft_mesh_rank_at(mesh, p), &shard);
        contents->bytes[p] += (uint64_t)shard.elements * tensor.bits / 8;
        add_shape(placed, shards, &count, &shard);
    }
    return wf_text_status(&placed->shapes);
}

static weft_status place_tensors(struct contents *contents)
{
    size_t count = contents->all.tensors,
           ranks = (size_t)weft_mesh_size(weft_layout_file_mesh(contents->layout));

    contents->placed = wf_calloc(count + 1, sizeof *contents->placed);
    contents->bytes = wf_calloc(ranks, sizeof *contents->bytes);
    if (contents->placed == NULL || contents->bytes == NULL)
        return wf_fail_memory(count * sizeof *contents->placed + ranks * sizeof *contents->bytes);
    for (size_t i = 0; i < count; i++) {
        cli_progress_of(i, count, "tensor %zu of %zu", i, count);
        WF_TRY(place_tensor(contents, i));
    }
    return WEFT_OK;
}

static void free_contents(struct contents *contents)
{
    for (size_t i = 0; contents->placed != NULL && i < contents->all.tensors; i++) {
        weft_spec_release(&contents->placed[i].spec);
        wf_text_free(&contents->placed[i].shapes);
    }
    wf_free(contents->placed);
    wf_free(contents->bytes);
}

/* ---- JSON ---- */

/* PLACED is the layout of --layout, NULL without --layout. */
static void add_json_tensor(struct wf_json *json, const weft_checkpoint_tensor_info *tensor,
                            const weft_spec *placed)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "name", tensor->name);
    wf_json_string(json, "dtype", tensor->dtype_name);
    describe_json_shape(json, "shape", tensor->dims, tensor->shape);
    wf_json_uint(json, "bytes", tensor->bytes);
    wf_json_uint(json, "pieces", tensor->pieces);
    if (tensor->spec != NULL) describe_json_placements(json, "placements", tensor->spec);
    if (placed != NULL) describe_json_placements(json, "layout", placed);
    wf_json_end(json, '}');
}

static weft_status add_json(struct wf_json *json, const struct contents *contents)
{
    const weft_checkpoint *in = contents->in;
    const weft_checkpoint_info *all = &contents->all;
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
        add_json_tensor(json, &tensor, contents->placed != NULL ? contents->placed[i].spec : NULL);
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

static void add_placements(struct wf_text *out, const weft_spec *spec)
{
    struct wf_text text = {0};

    wf_text_placements(&text, spec);
    wf_text_add(out, "%-12s ", text.data != NULL ? text.data : "");
    wf_text_free(&text);
}

static void add_tensor(struct wf_text *out, const weft_checkpoint_tensor_info *tensor,
                       const struct placed *placed)
{
    struct wf_text shape = {0};
    size_t begin = out->length;

    describe_shape(tensor->dims, tensor->shape, &shape);
    wf_text_add(out, "%-8s %-20s ", tensor->dtype_name, shape.data != NULL ? shape.data : "");
    wf_text_free(&shape);
    if (placed != NULL) {
        add_placements(out, placed->spec);
        wf_text_add(out, "%-20s ", placed->shapes.data);
    } else if (tensor->spec != NULL) {
        add_placements(out, tensor->spec);
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

/* The first line: what the checkpoint is. */
static void add_summary(struct wf_text *out, const weft_checkpoint_info *all)
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
}

/* One line for each pair of the metadata, such as the step of a training. */
static weft_status add_metadata(struct wf_text *out, const struct contents *contents)
{
    for (size_t i = 0; i < contents->all.metadata; i++) {
        const char *key = NULL, *value = NULL;
        size_t begin = out->length;

        WF_TRY(weft_checkpoint_metadata_get(contents->in, i, &key, &value));
        wf_text_add(out, "metadata %.*s: %.*s%s", VALUE_MOST, key, VALUE_MOST, value,
                    strlen(value) > VALUE_MOST ? "..." : "");
        if (wf_text_status(out) == WEFT_OK) wf_text_clean(out->data + begin, out->length - begin);
        wf_text_char(out, '\n');
    }
    return WEFT_OK;
}

static weft_status add_text(struct wf_text *out, const struct contents *contents)
{
    add_summary(out, &contents->all);
    WF_TRY(add_metadata(out, contents));
    if (contents->layout != NULL) {
        wf_text_add(out, "placements and shapes on the ranks of the mesh ");
        wf_text_mesh(out, weft_layout_file_mesh(contents->layout));
        wf_text_add(out, ":\n");
    }
    for (size_t i = 0; i < contents->all.tensors; i++) {
        weft_checkpoint_tensor_info tensor = {.struct_size = sizeof tensor};

        WF_TRY(weft_checkpoint_tensor_get(contents->in, i, &tensor));
        add_tensor(out, &tensor, contents->placed != NULL ? &contents->placed[i] : NULL);
    }
    for (size_t i = 0; i < contents->all.unlisted; i++)
        WF_TRY(add_unlisted(out, contents->in, i));
    return WEFT_OK;
}

/* What the rank at POSITION holds: the bytes, and the shapes of its shards in the order of the
 * tensors. */
static void add_json_rank(struct wf_json *json, const struct contents *contents, int32_t position)
{
    int32_t rank = weft_mesh_rank_at(weft_layout_file_mesh(contents->layout), position);

    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "rank", rank);
    wf_json_uint(json, "bytes", contents->bytes[position]);
    wf_json_begin(json, "shapes", '[');
    for (size_t i = 0; i < contents->all.tensors; i++) {
        weft_shard shard;

        weft_spec_shard(contents->placed[i].spec, rank, &shard);
        describe_json_shape(json, NULL, shard.dims, shard.shape);
    }
    wf_json_end(json, ']');
    wf_json_end(json, '}');
}

/* What each rank of a layout holds. */
static void add_ranks(struct wf_text *out, struct wf_json *json, const struct contents *contents)
{
    const weft_mesh *mesh = weft_layout_file_mesh(contents->layout);

    if (json != NULL) wf_json_begin(json, "ranks", '[');
    for (int32_t p = 0; p < weft_mesh_size(mesh); p++) {
        if (json != NULL) {
            add_json_rank(json, contents, p);
        } else {
            wf_text_add(out, "rank %d holds ", weft_mesh_rank_at(mesh, p));
            wf_text_bytes(out, contents->bytes[p]);
            wf_text_char(out, '\n');
        }
    }
    if (json != NULL) wf_json_end(json, ']');
}

static weft_status add_contents(struct wf_text *out, struct contents *contents, bool as_json)
{
    struct wf_json json = {.out = out};

    if (contents->layout != NULL) WF_TRY(place_tensors(contents));
    if (!as_json) {
        WF_TRY(add_text(out, contents));
        if (contents->layout != NULL) add_ranks(out, NULL, contents);
        return WEFT_OK;
    }
    wf_json_begin(&json, NULL, '{');
    WF_TRY(add_json(&json, contents));
    if (contents->layout != NULL) add_ranks(out, &json, contents);
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return WEFT_OK;
}

static weft_status describe(const weft_checkpoint *in, const weft_layout_file *layout, bool as_json,
                            struct wf_text *out)
{
    struct contents contents = {.in = in, .layout = layout, .all.struct_size = sizeof contents.all};
    weft_status status = weft_checkpoint_get(in, &contents.all);

    if (status == WEFT_OK) status = add_contents(out, &contents, as_json);
    free_contents(&contents);
    return status;
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
    struct cli_checkpoint opened = {.missing = false};
    const weft_checkpoint *in = NULL;
    weft_layout_file *layout = NULL;
    struct cli_rules rules = {.count = 0};
    weft_status status = WEFT_OK;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (args.rest_count != 1) {
        fprintf(stderr, "weft %s: the checkpoint is missing; for example:\n  %s\n", command->name,
                command->example);
        return CLI_USAGE;
    }
    status = cli_layout_open(command, &args, &layout);
    if (status == WEFT_OK) status = cli_rules_open(command, &args, &rules);
    cli_progress_begin();
    cli_progress("opening %s", args.rest[0]);
    if (status == WEFT_OK) status = cli_checkpoint_open(args.rest[0], &rules, &opened, &in);
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
    cli_rules_close(&rules);
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
            {"layout", "FILE", "print placements, and what each rank of this layout would hold", 0},
            CLI_MESH, /* in place of that of the layout */
            CLI_MESH_RANKS,
            CLI_RULES,
            CLI_JSON,
            {0}},
    .run = run,
};
