/* Layouts recorded from PyTorch 2.11: tests/data/layouts.jsonl, one case per line. */
#include "shard/shard.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

/* The file's keys are always in the same order, so no JSON parser is needed. */
static void expect(struct wf_scan *scan, const char *word)
{
    ck_assert_msg(wf_scan_word(scan, word), "expected %s at %.60s", word, scan->text + scan->at);
}

/* `[1,2,3]` into OUT; returns how many. */
static int32_t read_list(struct wf_scan *scan, int64_t *out)
{
    int32_t count = 0;

    expect(scan, "[");
    while (!wf_scan_char(scan, ']')) {
        ck_assert_int_lt(count, WEFT_MAX_DIMS);
        ck_assert_int_eq(wf_scan_int(scan, "a number", &out[count++]), WEFT_OK);
        wf_scan_char(scan, ',');
    }
    return count;
}

static void check_segments(struct wf_scan *scan, const weft_spec *spec, int32_t rank)
{
    int64_t at = 0, run[WEFT_MAX_DIMS];
    weft_segment segment;

    expect(scan, "[");
    while (!wf_scan_char(scan, ']')) {
        ck_assert_int_eq(read_list(scan, run), 2);
        wf_scan_char(scan, ',');
        ck_assert(weft_spec_segment(spec, rank, NULL, at, &segment));
        ck_assert_int_eq(segment.global, run[0]);
        ck_assert_int_eq(segment.length, run[1]);
        ck_assert_int_eq(segment.local, at);
        at += segment.length;
    }
    ck_assert(!weft_spec_segment(spec, rank, NULL, at, &segment));
}

static void check_rank(struct wf_scan *scan, const weft_spec *spec)
{
    int64_t coord[WEFT_MAX_DIMS], shape[WEFT_MAX_DIMS], theirs[WEFT_MAX_DIMS];
    int64_t offset[WEFT_MAX_DIMS];
    int32_t at[WEFT_MAX_AXES], rank, dims;
    weft_shard shard;

    expect(scan, "{\"coord\":");
    for (int32_t i = read_list(scan, coord) - 1; i >= 0; i--)
        at[i] = (int32_t)coord[i];
    ck_assert_int_eq(weft_mesh_rank(weft_spec_mesh(spec), at, &rank), WEFT_OK);
    expect(scan, ",\"shape\":");
    dims = read_list(scan, shape);
    expect(scan, ",\"runs\":");
    check_segments(scan, spec, rank);
    expect(scan, ",\"torch_shape\":");
    read_list(scan, theirs);
    expect(scan, ",\"torch_offset\":");
    ck_assert_int_eq(read_list(scan, offset), dims);
    expect(scan, "}");

    weft_spec_shard(spec, rank, &shard);
    ck_assert(shard.member);
    ck_assert_int_eq(shard.dims, dims);
    for (int32_t d = 0; d < dims; d++) {
        ck_assert_int_eq(shard.shape[d], shape[d]);
        ck_assert_int_eq(shard.shape[d], theirs[d]);
        ck_assert_int_eq(shard.offset[d], offset[d]);
    }
}

static void read_spec(struct wf_scan *scan, weft_spec **spec)
{
    int64_t list[WEFT_MAX_DIMS], shape[WEFT_MAX_DIMS];
    int32_t sizes[WEFT_MAX_AXES], axes, dims;
    weft_placement placements[WEFT_MAX_AXES];
    char text[256];
    OWNED(weft_mesh) *mesh = NULL;

    expect(scan, "{\"mesh\":");
    axes = read_list(scan, list);
    for (int32_t i = 0; i < axes; i++)
        sizes[i] = (int32_t)list[i];
    ck_assert_int_eq(weft_mesh_create(axes, sizes, NULL, &mesh), WEFT_OK);
    expect(scan, ",\"shape\":");
    dims = read_list(scan, shape);
    expect(scan, ",\"placements\":\"");
    snprintf(text, sizeof text, "%.*s", (int)strcspn(scan->text + scan->at, "\""),
             scan->text + scan->at);
    scan->at += strlen(text);
    ck_assert_int_eq(weft_placements_parse(text, axes, placements), WEFT_OK);
    ck_assert_int_eq(weft_spec_create(mesh, WEFT_DTYPE_F32, dims, shape, placements, spec),
                     WEFT_OK);
}

TEST(every_recorded_layout_is_ours)
{
    FILE *file = fopen(WEFT_TEST_DATA "/layouts.jsonl", "r");
    static char line[1 << 16];
    int cases = 0;

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        struct wf_scan scan = {line, 0};
        int32_t ranks = 0;
        weft_spec *spec;
        read_spec(&scan, &spec);
        expect(&scan, "\",\"ranks\":[");
        while (!wf_scan_char(&scan, ']')) {
            check_rank(&scan, spec);
            ranks++;
            wf_scan_char(&scan, ',');
        }
        ck_assert_int_eq(ranks, weft_mesh_size(weft_spec_mesh(spec)));
        weft_spec_release(&spec);
        cases++;
    }
    fclose(file);
    ck_assert_int_eq(cases, 1516);
    ck_assert_int_eq(wf_mem_live(), 0);
}
