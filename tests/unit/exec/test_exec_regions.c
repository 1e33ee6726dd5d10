#include "exec/exec.h"
#include "support/layout.h"
#include "support/suite.h"

/* The boxes that RANK's shards of two specs share. */
static struct wf_region_list boxes(const char *mesh, const char *from, int32_t from_rank,
                                   const char *to, int32_t to_rank)
{
    weft_spec *a = spec_of(mesh, from), *b = spec_of(mesh, to);
    int64_t a_strides[WEFT_MAX_DIMS], b_strides[WEFT_MAX_DIMS];
    struct wf_region_list list = {0};
    struct wf_shard sa, sb;

    wf_shard_of(a, from_rank, &sa);
    wf_shard_of(b, to_rank, &sb);
    wf_row_major(sa.dims, sa.shape, a_strides);
    wf_row_major(sb.dims, sb.shape, b_strides);
    ck_assert_int_eq(wf_regions_add(&list, &sa, a_strides, &sb, b_strides, 3, 5), WEFT_OK);
    weft_spec_release(&a);
    weft_spec_release(&b);
    return list;
}

/* The boxes of LIST as "2x3 3(6,1) -> 0(3,1)": extents, and the offset and strides on both sides.
 */
static const char *describe(const struct wf_region_list *list)
{
    static char out[256];
    size_t length = 0;

    out[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        const weft_region *r = &list->regions[i];
        char extent[64] = "", source[64] = "", target[64] = "";

        ck_assert(r->source == 3 && r->target == 5);
        for (uint32_t d = 0; d < r->dims; d++) {
            const char *comma = d > 0 ? "," : "";

            snprintf(extent + strlen(extent), 16, "%s%lld", d > 0 ? "x" : "",
                     (long long)r->extent[d]);
            snprintf(source + strlen(source), 16, "%s%lld", comma, (long long)r->source_stride[d]);
            snprintf(target + strlen(target), 16, "%s%lld", comma, (long long)r->target_stride[d]);
        }
        length += (size_t)snprintf(&out[length], sizeof out - length, "%s%s %lld(%s) -> %lld(%s)",
                                   i > 0 ? "; " : "", extent, (long long)r->source_offset, source,
                                   (long long)r->target_offset, target);
    }
    return out;
}

TEST(boxes_are_as_few_and_flat_as_they_can_be)
{
    static const struct {
        const char *what, *mesh, *from;
        int32_t from_rank;
        const char *to;
        int32_t to_rank;
        const char *boxes;
    } rows[] = {
        {"whole rows", "2", "f32[4,6] S(0)", 1, "f32[4,6] R", 0, "12 0(1) -> 12(1)"},
        {"a block", "2", "f32[4,6] S(0)", 0, "f32[4,6] S(1)", 1, "2x3 3(6,1) -> 0(3,1)"},
        {"a comb", "2", "f32[16] SS(0,4)", 1, "f32[16] R", 0, "4x2 0(2,1) -> 2(4,1)"},
        {"shards apart", "2", "f32[4,6] S(0)", 0, "f32[4,6] S(0)", 1, ""},
        {"no element", "4", "f32[0,6] S(0)", 0, "f32[0,6] R", 1, ""},
        {"a scalar", "2", "f32[] R", 0, "f32[] R", 1, " 0() -> 0()"},
    };

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        struct wf_region_list list =
            boxes(rows[i].mesh, rows[i].from, rows[i].from_rank, rows[i].to, rows[i].to_rank);

        ck_assert_msg(strcmp(describe(&list), rows[i].boxes) == 0, "%s: %s", rows[i].what,
                      describe(&list));
        wf_free(list.regions);
    }
}
