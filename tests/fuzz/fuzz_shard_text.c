/* Any two lines are a spec on a mesh or are refused.  A spec prints as text that reads back to the
 * same object, and the shards of its ranks are consistent. */
#include "fuzz.h"

#include "shard/shard.h"

#include <string.h>

static void check_text(const weft_spec *spec)
{
    static char text[1 << 17];
    weft_spec *again = NULL;
    size_t length;

    FUZZ_ASSERT(weft_spec_print(spec, text, sizeof text, &length) == WEFT_OK);
    FUZZ_ASSERT(length < sizeof text);
    FUZZ_ASSERT(weft_spec_parse(weft_spec_mesh(spec), text, &again) == WEFT_OK && again == spec);
    weft_spec_release(&again);
}

/* The first runs of each dimension ascend, and positions and indices convert to each other. */
static void check_rank(const weft_spec *spec, int32_t rank)
{
    struct wf_shard shard;
    weft_segment segment;

    wf_shard_of(spec, rank, &shard);
    for (int32_t d = 0; d < shard.dims; d++) {
        struct wf_index index = wf_shard_index(&shard, d);
        int64_t at = 0, end = -1;
        weft_index_run run;
        FUZZ_ASSERT(shard.shape[d] >= 0 && shard.shape[d] <= spec->layout.shape[d]);
        for (int i = 0; i < 100 && wf_index_run(&index, at, &run); i++, at += run.length) {
            FUZZ_ASSERT(run.start > end && run.length > 0 && at + run.length <= index.length);
            FUZZ_ASSERT(i > 0 || run.start == shard.offset[d]);
            FUZZ_ASSERT(wf_index_seek(&index, run.start) == at);
            end = run.start + run.length;
            FUZZ_ASSERT(end <= spec->layout.shape[d]);
            FUZZ_ASSERT(wf_index_at(&index, at + run.length - 1) == end - 1);
        }
        FUZZ_ASSERT(at > 0 || shard.offset[d] == spec->layout.shape[d] || shard.shape[d] > 0);
    }
    if (shard.elements <= 4096)
        for (int64_t at = 0; wf_shard_segment(&shard, spec->layout.shape, NULL, at, &segment);
             at += segment.length)
            FUZZ_ASSERT(segment.length > 0 && segment.local == at);
}

static void check_conversions(const weft_spec *spec)
{
    weft_spec *other = NULL;

    if (weft_spec_order_to_strides(spec, &other) == WEFT_OK) {
        check_text(other);
        weft_spec_release(&other);
    }
    if (weft_spec_strides_to_order(spec, &other) == WEFT_OK) {
        check_text(other);
        weft_spec_release(&other);
    }
}

static void check_spec(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    check_text(spec);
    check_rank(spec, weft_mesh_rank_at(mesh, 0));
    check_rank(spec, weft_mesh_rank_at(mesh, weft_mesh_size(mesh) / 2));
    check_rank(spec, weft_mesh_rank_at(mesh, weft_mesh_size(mesh) - 1));
    check_rank(spec, -1);
    if (weft_mesh_size(mesh) <= 256) check_conversions(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *mesh_text = fuzz_string(data, size), *spec_text = strchr(mesh_text, '\n');
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;

    if (spec_text != NULL) *spec_text++ = '\0';
    if (spec_text != NULL && strchr(mesh_text, '@') == NULL &&
        weft_mesh_parse(mesh_text, &mesh) == WEFT_OK) {
        if (weft_spec_parse(mesh, spec_text, &spec) == WEFT_OK)
            check_spec(spec);
        else
            FUZZ_ASSERT(spec == NULL && weft_last_error()[0] != '\0');
        weft_spec_release(&spec);
        weft_mesh_release(&mesh);
    }
    FUZZ_ASSERT(wf_mem_live() == 0);
    free(mesh_text);
    return 0;
}
