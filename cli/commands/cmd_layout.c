/* cmd_layout.c - `weft layout`: which part of a tensor each rank holds. */
#include "common/cli.h"

#include "layout/picture.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

/* Print what TEXT holds when that is much, so that the ranks of a large mesh need no memory. */
static void spill(struct wf_text *text)
{
    if (text->length < 1 << 16) return;
    fwrite(text->data, 1, text->length, stdout);
    text->length = 0;
    text->data[0] = '\0';
}

/* ---- JSON ---- */

static void add_json_runs(struct wf_json *json, const struct wf_shard *shard)
{
    wf_json_begin(json, "runs", '[');
    for (int32_t d = 0; d < shard->dims; d++) {
        struct wf_index index = wf_shard_index(shard, d);
        weft_run run;
        wf_json_begin(json, NULL, '[');
        for (int64_t at = 0; wf_index_run(&index, at, &run); at += run.length) {
            wf_json_begin(json, NULL, '[');
            wf_json_int(json, NULL, run.start);
            wf_json_int(json, NULL, run.length);
            wf_json_end(json, ']');
            spill(json->out);
        }
        wf_json_end(json, ']');
    }
    wf_json_end(json, ']');
}

static void add_json_list(struct wf_json *json, const char *key, const int64_t *list, int32_t count)
{
    wf_json_begin(json, key, '[');
    for (int32_t i = 0; i < count; i++)
        wf_json_int(json, NULL, list[i]);
    wf_json_end(json, ']');
}

static void add_json_rank(struct wf_json *json, const weft_spec *spec, int32_t rank)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES];
    struct wf_shard shard;

    wf_shard_of(spec, rank, &shard);
    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "rank", rank);
    if (weft_mesh_coord(mesh, rank, coord)) {
        wf_json_begin(json, "coord", '[');
        for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
            wf_json_int(json, NULL, coord[i]);
        wf_json_end(json, ']');
    } else {
        wf_json_null(json, "coord");
    }
    add_json_list(json, "shape", shard.shape, shard.dims);
    add_json_list(json, "offset", shard.offset, shard.dims);
    add_json_runs(json, &shard);
    wf_json_end(json, '}');
    spill(json->out);
}

/* ---- text ---- */

enum { SHOWN_RUNS = 6, SHOWN_RANKS = 256 };

static void add_runs(struct wf_text *text, const struct wf_shard *shard)
{
    if (shard->dims == 0) wf_text_add(text, "the scalar");
    for (int32_t d = 0; d < shard->dims; d++) {
        struct wf_index index = wf_shard_index(shard, d);
        int64_t at = 0;
        weft_run run;
        if (d > 0) wf_text_add(text, " x ");
        if (index.length == 0) wf_text_add(text, "none");
        for (int i = 0; i < SHOWN_RUNS && wf_index_run(&index, at, &run); i++, at += run.length) {
            wf_text_add(text, "%s%" PRId64, i > 0 ? "," : "", run.start);
            if (run.length > 1) wf_text_add(text, "-%" PRId64, run.start + run.length - 1);
        }
        if (at < index.length) wf_text_add(text, ",...");
    }
}

static void add_rank(struct wf_text *text, const weft_spec *spec, int32_t rank)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES];
    struct wf_shard shard;
    struct wf_text column = {0};

    wf_shard_of(spec, rank, &shard);
    if (!weft_mesh_coord(mesh, rank, coord)) {
        wf_text_add(text, "%-6d is not in the mesh and holds nothing\n", rank);
        return;
    }
    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        wf_text_add(&column, "%s%d", i > 0 ? "," : "", coord[i]);
    wf_text_add(text, "%-6d %-10s ", rank, column.data != NULL ? column.data : "");
    wf_text_free(&column);
    wf_shape_add_text(shard.dims, shard.shape, &column);
    wf_text_add(text, "%-16s ", column.data != NULL ? column.data : "");
    wf_text_free(&column);
    wf_shape_add_text(shard.dims, shard.offset, &column);
    wf_text_add(text, "%-16s ", column.data != NULL ? column.data : "");
    wf_text_free(&column);
    add_runs(text, &shard);
    wf_text_char(text, '\n');
}

static int32_t terminal_width(void)
{
    struct winsize size;

    return ioctl(fileno(stdout), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

/* Of a tensor with more dimensions than the picture: which are in it. */
static void add_dims(struct wf_text *text, const struct picture *picture)
{
    if (weft_spec_dims(picture->spec) <= 2) return;
    if (picture->rows.dim >= 0)
        wf_text_add(text, "dimensions %d and %d", picture->rows.dim, picture->columns.dim);
    else
        wf_text_add(text, "dimension %d", picture->columns.dim);
    wf_text_add(text, ", the others are whole:\n");
}

/* The picture, or one line that says why there is none. */
static void add_grid(struct wf_text *text, const weft_spec *spec)
{
    struct picture picture;
    bool colour = cli_colour(stdout, CLI_BOLD)[0] != '\0';

    if (picture_create(spec, &picture) != WEFT_OK) {
        wf_text_add(text, "(%s)\n\n", weft_last_error());
        return;
    }
    add_dims(text, &picture);
    if (!picture_add_grid(&picture, terminal_width(), colour, text))
        wf_text_add(text, "(no picture: it is wider than the terminal or too tall; --svg FILE "
                          "draws it)\n");
    wf_text_char(text, '\n');
    picture_free(&picture);
}

static void add_text(struct wf_text *text, const weft_spec *spec, const int32_t *only)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t shown = weft_mesh_size(mesh) < SHOWN_RANKS ? weft_mesh_size(mesh) : SHOWN_RANKS;

    if (only == NULL) add_grid(text, spec);
    wf_text_add(text, "%s%-6s %-10s %-16s %-16s %s%s\n", cli_colour(stdout, CLI_BOLD), "rank",
                "coord", "shape", "offset", "runs", cli_colour(stdout, CLI_PLAIN));
    if (only != NULL) {
        add_rank(text, spec, *only);
        return;
    }
    for (int32_t i = 0; i < shown; i++)
        add_rank(text, spec, weft_mesh_rank_at(mesh, i));
    if (shown < weft_mesh_size(mesh))
        wf_text_add(text, "... and %d more; --rank R shows any, --json all\n",
                    weft_mesh_size(mesh) - shown);
}

/* ---- the command ---- */

static int write_svg(const struct cli_command *command, const weft_spec *spec, const char *path)
{
    struct wf_text text = {0};
    struct picture picture;
    FILE *file = stdout;
    int exit_code;

    if (picture_create(spec, &picture) != WEFT_OK) return cli_fail(command);
    picture_add_svg(&picture, &text);
    picture_free(&picture);
    if (strcmp(path, "-") != 0) file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "weft %s: %s: %s\n", command->name, path, strerror(errno));
        wf_text_free(&text);
        return CLI_NO;
    }
    exit_code = cli_print(command, file, &text);
    if (file != stdout && fclose(file) != 0) exit_code = CLI_NO;
    if (exit_code != CLI_OK) fprintf(stderr, "weft %s: %s was not written\n", command->name, path);
    return exit_code;
}

static int print_ranks(const struct cli_command *command, const weft_spec *spec,
                       const int32_t *only, bool as_json)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};
    const weft_mesh *mesh = weft_spec_mesh(spec);

    if (!as_json) {
        add_text(&text, spec, only);
        return cli_print(command, stdout, &text);
    }
    wf_json_begin(&json, NULL, '{');
    wf_json_begin(&json, "ranks", '[');
    if (only != NULL) add_json_rank(&json, spec, *only);
    for (int32_t i = 0; only == NULL && i < weft_mesh_size(mesh); i++)
        add_json_rank(&json, spec, weft_mesh_rank_at(mesh, i));
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(&text, '\n');
    return cli_print(command, stdout, &text);
}

static weft_status read_spec(const char *mesh_text, const char *shape_text,
                             const char *placements_text, weft_spec **out)
{
    weft_placement placements[WEFT_MAX_AXES];
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = 0;
    weft_mesh *mesh = NULL;
    weft_status status;

    WF_TRY(wf_shape_parse(shape_text, &dims, shape));
    WF_TRY(weft_mesh_parse(mesh_text, &mesh));
    status = wf_placements_parse(placements_text, weft_mesh_axes(mesh), placements);
    if (status == WEFT_OK)
        status = weft_spec_create(mesh, WEFT_DTYPE_F32, dims, shape, placements, out);
    weft_mesh_release(&mesh);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const char *const needed[] = {"mesh", "shape", "placements"};
    struct cli_args args;
    int64_t rank;
    int32_t only;
    int exit_code = CLI_OK;
    weft_spec *spec = NULL;
    const char *svg;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    for (size_t i = 0; i < WF_COUNT(needed); i++)
        if (!cli_has(command, &args, needed[i])) {
            fprintf(stderr, "weft %s: --%s is missing; for example:\n  %s\n", command->name,
                    needed[i], command->example);
            return CLI_USAGE;
        }
    if (!cli_int(command, &args, "rank", 0, INT32_MAX, -1, &rank)) return CLI_USAGE;
    if (read_spec(cli_value(command, &args, "mesh"), cli_value(command, &args, "shape"),
                  cli_value(command, &args, "placements"), &spec) != WEFT_OK) {
        cli_fail(command);
        return CLI_USAGE;
    }
    only = (int32_t)rank;
    svg = cli_value(command, &args, "svg");
    if (svg != NULL) exit_code = write_svg(command, spec, svg);
    if (exit_code == CLI_OK && (svg == NULL || cli_has(command, &args, "json")))
        exit_code =
            print_ranks(command, spec, rank >= 0 ? &only : NULL, cli_has(command, &args, "json"));
    weft_spec_release(&spec);
    return exit_code;
}

const struct cli_command cli_layout = {
    .name = "layout",
    .summary = "which part of a tensor each rank holds",
    .arguments = "--mesh M --shape S --placements P [--rank R] [--json] [--svg FILE]",
    .example = "weft layout --mesh 2x4 --shape 8x16 --placements 'S(0),S(1)'",
    .options =
        (const struct cli_option[]){
            {"mesh", "M", "ranks: 2x4, dp=2,tp=4, 2x2@4-7, 2x2@0,2,1,3"},
            {"shape", "S", "of the tensor: 4096x4096; [] is a scalar"},
            {"placements", "P", "one per mesh axis: R, S(dim), SS(dim,factor), P(op)"},
            {"rank", "R", "this rank only"},
            {"json", NULL, "as JSON"},
            {"svg", "FILE", "draw it into FILE; - is standard output"},
            {0}},
    .run = run,
};
