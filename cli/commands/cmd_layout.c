/* cmd_layout.c - `weft layout`: which part of a tensor each rank holds. */
#include "common/cli.h"

#include "common/describe.h"
#include "layout/picture.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

/* Print and clear TEXT when it is long, so that a large mesh does not need much memory. */
static void spill(struct wf_text *text)
{
    if (text->length < 1 << 16) return;
    fwrite(text->data, 1, text->length, stdout);
    text->length = 0;
    text->data[0] = '\0';
}

/* ---- copies and contributions ---- */

/* The index of the copy, or contribution, that a rank holds, and how many there are. */
struct part {
    int32_t index, count;
};

/* False if an axis has an owner, and it is not the rank at COORD. */
static bool owns(const weft_spec *spec, const int32_t *coord)
{
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_OWNER &&
            weft_spec_placements(spec)[i].owner != coord[i])
            return false;
    return true;
}

/* Counts the ranks along the axes with placements of KIND, in row-major order.  A rank that owns
 * nothing has no copy and no contribution. */
static struct part part_of(const weft_spec *spec, const int32_t *coord, uint32_t kind)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    struct part part = {0, 1};

    if (!owns(spec, coord)) return part;
    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++) {
        if (weft_spec_placements(spec)[i].kind != kind) continue;
        part.index = part.index * weft_mesh_axis_size(mesh, i) + coord[i];
        part.count *= weft_mesh_axis_size(mesh, i);
    }
    return part;
}

/* ---- JSON ---- */

static void add_json_placements(struct wf_json *json, const weft_spec *spec)
{
    static const char *const kinds[] = {
        [WEFT_PLACE_REPLICATE] = "replicate", [WEFT_PLACE_SHARD] = "shard",
        [WEFT_PLACE_STRIDED] = "strided",     [WEFT_PLACE_PARTIAL] = "partial",
        [WEFT_PLACE_PARTS] = "parts",         [WEFT_PLACE_SIZES] = "sizes",
        [WEFT_PLACE_OWNER] = "owner"};

    wf_json_begin(json, "placements", '[');
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++) {
        const weft_placement *p = &weft_spec_placements(spec)[i];
        wf_json_begin(json, NULL, '{');
        wf_json_string(json, "kind", kinds[p->kind]);
        if (p->kind == WEFT_PLACE_SHARD || p->kind == WEFT_PLACE_STRIDED ||
            p->kind == WEFT_PLACE_PARTS || p->kind == WEFT_PLACE_SIZES) {
            wf_json_int(json, "dim", p->dim);
            wf_json_int(json, "turn", p->turn);
        }
        if (p->kind == WEFT_PLACE_STRIDED) wf_json_int(json, "factor", p->factor);
        if (p->kind == WEFT_PLACE_PARTIAL)
            wf_json_string(json, "reduction", wf_reduction_name(p->reduction));
        if (p->kind == WEFT_PLACE_OWNER) wf_json_int(json, "owner", p->owner);
        if (p->size_count > 0) describe_json_shape(json, "sizes", (int32_t)p->size_count, p->sizes);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
}

/* ---- the other form of the order of splits ---- */

/* Set *PLACEMENTS to those of the layout that CONVERT makes of SPEC, to be freed.  False: it is
 * SPEC itself, or there is none. */
static bool convert_order(weft_status (*convert)(const weft_spec *, weft_spec **),
                          const weft_spec *spec, struct wf_text *placements)
{
    weft_spec *other = NULL;
    bool is_other = convert(spec, &other) == WEFT_OK && other != spec;

    if (is_other) wf_text_placements(placements, other);
    weft_spec_release(&other);
    return is_other;
}

static void add_json_order(struct wf_json *json, const char *key,
                           weft_status (*convert)(const weft_spec *, weft_spec **),
                           const weft_spec *spec)
{
    struct wf_text placements = {0};

    if (convert_order(convert, spec, &placements)) wf_json_string(json, key, placements.data);
    wf_text_free(&placements);
}

static void add_order(struct wf_text *text, const char *form,
                      weft_status (*convert)(const weft_spec *, weft_spec **),
                      const weft_spec *spec)
{
    struct wf_text placements = {0};

    if (convert_order(convert, spec, &placements))
        wf_text_add(text, "the same with %s: %s\n", form, placements.data);
    wf_text_free(&placements);
}

static void add_json_tensor(struct wf_json *json, const weft_spec *spec)
{
    describe_json_mesh(json, "mesh", weft_spec_mesh(spec));
    describe_json_shape(json, "shape", weft_spec_dims(spec), weft_spec_shape(spec));
    wf_json_string(json, "dtype", weft_dtype_name(weft_spec_dtype(spec)));
    add_json_placements(json, spec);
    add_json_order(json, "with_strides", weft_spec_order_to_strides, spec);
    add_json_order(json, "with_turns", weft_spec_strides_to_order, spec);
}

/* Add "copy": [2, 4] for the third of four, or null if there is one only. */
static void add_json_part(struct wf_json *json, const char *key, struct part part)
{
    if (part.count == 1) {
        wf_json_null(json, key);
        return;
    }
    wf_json_begin(json, key, '[');
    wf_json_int(json, NULL, part.index);
    wf_json_int(json, NULL, part.count);
    wf_json_end(json, ']');
}

static void add_json_rank(struct wf_json *json, const weft_spec *spec, int32_t rank)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    struct part copy = {0, 1}, contribution = {0, 1};
    int32_t coord[WEFT_MAX_AXES];
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "rank", rank);
    if (weft_mesh_coord_of(mesh, rank, coord) == WEFT_OK) {
        wf_json_begin(json, "coord", '[');
        for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
            wf_json_int(json, NULL, coord[i]);
        wf_json_end(json, ']');
        copy = part_of(spec, coord, WEFT_PLACE_REPLICATE);
        contribution = part_of(spec, coord, WEFT_PLACE_PARTIAL);
    } else {
        wf_json_null(json, "coord");
    }
    describe_json_shape(json, "shape", shard.dims, shard.shape);
    describe_json_shape(json, "offset", shard.dims, shard.offset);
    wf_json_int(json, "elements", shard.elements);
    describe_json_runs(json, "runs", spec, rank);
    add_json_part(json, "copy", copy);
    add_json_part(json, "contribution", contribution);
    wf_json_end(json, '}');
    spill(json->out);
}

/* ---- text ---- */

enum { SHOWN_RANKS = 256 };

/* Add "copy 1/4", "sum part 2/4", "values", or "nothing" for a rank that is not the owner. */
static void add_holding(struct wf_text *text, const weft_spec *spec, const int32_t *coord)
{
    struct part copy = part_of(spec, coord, WEFT_PLACE_REPLICATE);
    struct part contribution = part_of(spec, coord, WEFT_PLACE_PARTIAL);

    if (copy.count > 1) wf_text_add(text, "copy %d/%d", copy.index + 1, copy.count);
    if (copy.count > 1 && contribution.count > 1) wf_text_add(text, " of ");
    if (contribution.count > 1)
        wf_text_add(text, "%s part %d/%d", picture_reduction(spec), contribution.index + 1,
                    contribution.count);
    if (copy.count == 1 && contribution.count == 1)
        wf_text_add(text, owns(spec, coord) ? "values" : "nothing");
}

/* Move COLUMN to TEXT, at least WIDTH wide. */
static void add_column(struct wf_text *text, int width, struct wf_text *column)
{
    wf_text_add(text, "%-*s ", width, column->data != NULL ? column->data : "");
    wf_text_free(column);
}

static void add_rank(struct wf_text *text, const weft_spec *spec, int32_t rank)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES];
    weft_shard shard;
    struct wf_text column = {0};

    weft_spec_shard(spec, rank, &shard);
    if (weft_mesh_coord_of(mesh, rank, coord) != WEFT_OK) {
        wf_text_add(text, "%-6d is not in the mesh and holds nothing\n", rank);
        return;
    }
    wf_text_add(text, "%-6d ", rank);
    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        wf_text_add(&column, "%s%d", i > 0 ? "," : "", coord[i]);
    add_column(text, 10, &column);
    describe_shape(shard.dims, shard.shape, &column);
    add_column(text, 16, &column);
    describe_shape(shard.dims, shard.offset, &column);
    add_column(text, 16, &column);
    add_holding(&column, spec, coord);
    add_column(text, 16, &column);
    describe_runs(spec, rank, text);
    wf_text_char(text, '\n');
}

static int32_t terminal_width(void)
{
    struct winsize size;

    return ioctl(fileno(stdout), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

/* Add the dimensions that the picture shows if the tensor has others. */
static void add_dims(struct wf_text *text, const struct picture *picture)
{
    if (weft_spec_dims(picture->spec) <= 2) return;
    if (picture->rows.dim >= 0)
        wf_text_add(text, "dimensions %d and %d", picture->rows.dim, picture->columns.dim);
    else
        wf_text_add(text, "dimension %d", picture->columns.dim);
    wf_text_add(text, "; the others are whole:\n");
}

/* Add what the ranks of one cell hold if a cell has several ranks. */
static void add_meaning(struct wf_text *text, const weft_spec *spec)
{
    size_t before = text->length;

    picture_explain(spec, text);
    if (text->length > before) wf_text_add(text, ":\n");
}

/* Add the picture, or one line that says why the layout cannot be drawn. */
static void add_grid(struct wf_text *text, const weft_spec *spec)
{
    struct picture picture;
    bool colour = cli_colour(stdout, CLI_BOLD)[0] != '\0';

    if (picture_create(spec, &picture) != WEFT_OK) {
        wf_text_add(text, "(%s)\n\n", weft_last_error());
        return;
    }
    add_dims(text, &picture);
    add_meaning(text, spec);
    if (!picture_add_grid(&picture, terminal_width(), colour, text))
        wf_text_add(text, "(cannot draw the layout: it is wider than the terminal or too tall; "
                          "--svg FILE draws it)\n");
    wf_text_char(text, '\n');
    picture_free(&picture);
}

static void add_text(struct wf_text *text, const weft_spec *spec, const int32_t *only)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t shown = weft_mesh_size(mesh) < SHOWN_RANKS ? weft_mesh_size(mesh) : SHOWN_RANKS;

    if (only == NULL) add_grid(text, spec);
    wf_text_add(text, "%s%-6s %-10s %-16s %-16s %-16s %s%s\n", cli_colour(stdout, CLI_BOLD), "rank",
                "coord", "shape", "offset", "holds", "runs", cli_colour(stdout, CLI_PLAIN));
    if (only != NULL) {
        add_rank(text, spec, *only);
        return;
    }
    for (int32_t i = 0; i < shown; i++)
        add_rank(text, spec, weft_mesh_rank_at(mesh, i));
    if (shown < weft_mesh_size(mesh))
        wf_text_add(text, "... and %d more; --rank R shows any, --json all\n",
                    weft_mesh_size(mesh) - shown);
    add_order(text, "strides", weft_spec_order_to_strides, spec);
    add_order(text, "turns", weft_spec_strides_to_order, spec);
}

/* ---- the command ---- */

static int write_svg(const struct cli_command *command, const weft_spec *spec, const char *path)
{
    struct wf_text text = {0};
    struct picture picture;
    weft_status status = picture_create(spec, &picture);

    if (status != WEFT_OK) return cli_fail(command, status);
    picture_add_svg(&picture, &text);
    picture_free(&picture);
    return cli_print_to(command, path, &text);
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
    add_json_tensor(&json, spec);
    wf_json_begin(&json, "ranks", '[');
    if (only != NULL) add_json_rank(&json, spec, *only);
    for (int32_t i = 0; only == NULL && i < weft_mesh_size(mesh); i++)
        add_json_rank(&json, spec, weft_mesh_rank_at(mesh, i));
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(&text, '\n');
    return cli_print(command, stdout, &text);
}

static weft_status read_spec(const struct cli_command *command, const struct cli_args *args,
                             weft_spec **out)
{
    weft_mesh *mesh = NULL;
    weft_status status;

    WF_TRY(cli_mesh(command, args, "mesh", &mesh));
    status = cli_spec(command, args, "placements", mesh, out);
    weft_mesh_release(&mesh);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const char *const needed[] = {"mesh", "placements"};
    struct cli_args args;
    int64_t rank;
    int32_t only;
    int exit_code = CLI_OK;
    weft_spec *spec = NULL;
    weft_status status;
    const char *svg;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    for (size_t i = 0; i < WF_COUNT(needed); i++)
        if (!cli_has(command, &args, needed[i])) {
            fprintf(stderr, "weft %s: --%s is missing; for example:\n  %s\n", command->name,
                    needed[i], command->example);
            return CLI_USAGE;
        }
    if (!cli_int(command, &args, "rank", 0, INT32_MAX, -1, &rank)) return CLI_USAGE;
    status = read_spec(command, &args, &spec);
    if (status != WEFT_OK) {
        cli_fail(command, status);
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
    .summary = "print which part of a tensor each rank holds",
    .arguments = "--mesh M --placements P [--shape S] [options]",
    .example = "weft layout --mesh 2x4 --placements 'f32[8,16] S(0),S(1)'",
    .page = "layouts.md",
    .options =
        (const struct cli_option[]){
            CLI_TENSOR, {"rank", "R", "print this rank only", 0}, CLI_JSON, CLI_SVG, {0}},
    .warns = true,
    .run = run,
};
