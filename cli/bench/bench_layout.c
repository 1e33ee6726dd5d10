/* bench_layout.c - `weft bench layout`: measures queries about layouts, in one thread. */
#include "common/cli.h"

#include "bench/rows.h"
#include "timing/alone.h"

#include <string.h>

/* The inputs of the operations below. */
struct subject {
    const char *mesh_text, *spec_text;
    weft_mesh *mesh;
    weft_spec *spec, *other;
    int32_t rank;
    volatile int64_t sink; /* keeps results from being optimised away */
};

static int shape_and_offset(void *argument)
{
    struct subject *s = argument;
    weft_shard shard;

    weft_spec_shard(s->spec, s->rank, &shard);
    s->sink += shard.offset[0];
    return 0;
}

static int parse_known_spec(void *argument)
{
    struct subject *s = argument;
    weft_spec *again;
    weft_status status = weft_spec_parse(s->mesh, s->spec_text, &again);

    if (status == WEFT_OK) weft_spec_release(&again);
    return status;
}

static int create_known_spec(void *argument)
{
    struct subject *s = argument;
    weft_spec *again;
    weft_status status =
        weft_spec_create(s->mesh, weft_spec_dtype(s->spec), weft_spec_dims(s->spec),
                         weft_spec_shape(s->spec), weft_spec_placements(s->spec), &again);

    if (status == WEFT_OK) weft_spec_release(&again);
    return status;
}

static int parse_known_mesh(void *argument)
{
    struct subject *s = argument;
    weft_mesh *again;
    weft_status status = weft_mesh_parse(s->mesh_text, &again);

    if (status == WEFT_OK) weft_mesh_release(&again);
    return status;
}

static int coordinate_of_rank(void *argument)
{
    struct subject *s = argument;
    int32_t coord[WEFT_MAX_AXES];

    s->sink += weft_mesh_coord_of(s->mesh, s->rank, coord) == WEFT_OK ? coord[0] : 0;
    return 0;
}

static int first_run(void *argument)
{
    struct subject *s = argument;
    weft_index_run run;

    if (weft_spec_run(s->spec, s->rank, 0, 0, &run)) s->sink += run.length;
    return 0;
}

static int first_overlap(void *argument)
{
    struct subject *s = argument;
    weft_intersection overlap;

    if (weft_spec_intersection(s->spec, s->rank, s->other, s->rank, 0, 0, &overlap))
        s->sink += overlap.length;
    return 0;
}

static const char three_axes[] = "f32[4096,1000,64] S(0),SS(1,4),S(0)";
static const char moved[] = "f32[4096,1000,64] S(1),S(0),SS(0,8)";

/* The rows.  A limit of 0 means that no time is promised. */
static const struct row {
    const char *name, *mesh, *spec;
    int (*operation)(void *);
    uint64_t limit_ns;
} rows[] = {
    {"shape and offset, 3 axes, 64 ranks", "4x4x4", three_axes, shape_and_offset, 200},
    {"shape and offset, 3 axes, 2^20 ranks", "64x128x128", three_axes, shape_and_offset, 200},
    {"shape and offset, 3 axes, listed ranks", "2x2x2@7,0,6,1,5,2,4,3", three_axes,
     shape_and_offset, 200},
    {"parse and intern a known spec", "4x4x4", three_axes, parse_known_spec, 1000},
    {"intern a known spec, without text", "4x4x4", three_axes, create_known_spec, 0},
    {"parse and intern a known mesh", "dp=4,cp=4,tp=4", three_axes, parse_known_mesh, 0},
    {"coordinate of a rank, 2^20 ranks", "64x128x128", three_axes, coordinate_of_rank, 0},
    {"first run, 3 axes", "4x4x4", three_axes, first_run, 0},
    {"first overlap of two shards, 3 axes", "4x4x4", three_axes, first_overlap, 0},
};

static weft_status prepare(const struct row *row, struct subject *out)
{
    *out = (struct subject){.mesh_text = row->mesh, .spec_text = row->spec, .rank = 5};
    WF_TRY(weft_mesh_parse(row->mesh, &out->mesh));
    WF_TRY(weft_spec_parse(out->mesh, row->spec, &out->spec));
    return weft_spec_parse(out->mesh, moved, &out->other);
}

static weft_status measure(size_t index, uint64_t budget_ns, struct bench_times *times)
{
    const struct row *row = &rows[index];
    struct subject subject;
    weft_status status = prepare(row, &subject);

    if (status == WEFT_OK) status = bench_alone(row->operation, &subject, budget_ns, times);
    weft_spec_release(&subject.spec);
    weft_spec_release(&subject.other);
    weft_mesh_release(&subject.mesh);
    return status;
}

static void add_text(struct wf_text *text, size_t index, const struct bench_times *times)
{
    const struct row *row = &rows[index];

    wf_text_add(text, "%-42s %6llu ns", row->name, (unsigned long long)times->median_ns);
    if (row->limit_ns > 0)
        wf_text_add(text, "   %s %llu ns", times->median_ns < row->limit_ns ? "under" : "NOT under",
                    (unsigned long long)row->limit_ns);
    wf_text_char(text, '\n');
}

static void add_json(struct wf_json *json, size_t index)
{
    wf_json_string(json, "name", rows[index].name);
    wf_json_string(json, "mesh", rows[index].mesh);
    wf_json_string(json, "spec", rows[index].spec);
}

static uint64_t limit_ns(size_t index)
{
    return rows[index].limit_ns;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const struct bench_rows layout = {.name = "layout",
                                             .count = WF_COUNT(rows),
                                             .measure = measure,
                                             .add_text = add_text,
                                             .add_json = add_json,
                                             .limit_ns = limit_ns};

    return bench_rows_run(command, argc, argv, &layout);
}

const struct cli_command bench_layout = {
    .name = "bench layout",
    .summary = "measure queries about layouts, parsing and interning",
    .arguments = "[--budget-ms N] [--json]",
    .example = "weft bench layout",
    .page = "performance.md",
    .options = bench_rows_options,
    .run = run,
};
