#include "support/lone_rank.h"
#include "support/suite.h"

/* A piece of memory whose size the device knows. */
static _Alignas(16) char piece[256];

static weft_status query_piece(void *device, const void *pointer, weft_pointer_info *out)
{
    uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)piece;

    (void)device;
    if (at < start || at >= start + sizeof piece) return WEFT_OK; /* unknown memory */
    out->base = piece;
    out->bytes = sizeof piece;
    return WEFT_OK;
}

static struct extents {
    const char *spec;
    int64_t strides[2];
    bool strided;
    uint64_t elements, bytes;
} const extents[] = {
    {"f32[4,4] R", {0, 0}, false, 16, 64},   {"f32[4,4] S(0)", {0, 0}, false, 8, 32},
    {"f32[4,4] S(0)", {8, 1}, true, 8, 48},  {"f32[4,4] S(1)", {0, 0}, true, 8, 4},
    {"f64[1,4] S(1)", {99, 2}, true, 2, 24}, {"i8[0,4] S(1)", {1, 1}, true, 0, 0}};

TEST(a_shard_takes_the_bytes_up_to_its_last_element)
{
    for (size_t i = 0; i < WF_COUNT(extents); i++) {
        OWNED(weft_spec) *spec = spec_of("2", extents[i].spec);
        struct wf_extent have;

        wf_buffers_measure(spec, 0, extents[i].strided ? extents[i].strides : NULL, &have);
        ck_assert_msg(have.elements == extents[i].elements && have.bytes == extents[i].bytes,
                      "%s, case %zu: %llu elements, %llu bytes", extents[i].spec, i,
                      (unsigned long long)have.elements, (unsigned long long)have.bytes);
        ck_assert_int_eq(have.strided, extents[i].strided);
        wf_buffers_measure(spec, 7, NULL, &have); /* not in the mesh */
        ck_assert_uint_eq(have.elements + have.bytes, 0);
    }
}

static weft_status run(struct lone_rank *lone, const void *source, void *target)
{
    return wf_buffers_check("weft_redistribute", lone->bound, &source, &target, NULL);
}

static void refused(weft_status status, const char *text)
{
    ck_assert_int_eq(status, WEFT_ERR_INVALID);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "no \"%s\" in: %s", text,
                  weft_last_error());
}

TEST(memory_is_looked_at_as_far_as_it_is_known)
{
    weft_device_table table = *fake_plugin()->device;
    weft_plugin plugin = *fake_plugin();
    struct lone_rank lone;
    char other[64];

    lone_begin(&lone, 0, 2);
    table.query_pointer = query_piece;
    plugin.device = &table;
    lone.comm.plugin = &plugin;
    lone.bound->checked = true;
    lone.bound->memory =
        (struct wf_memory){{16, 64, false, WEFT_DTYPE_I8}, {16, 64, false, WEFT_DTYPE_I8}};
    ck_assert_int_eq(run(&lone, piece, piece + 64), WEFT_OK);
    ck_assert_int_eq(run(&lone, piece, piece + 192), WEFT_OK);
    ck_assert_int_eq(run(&lone, other, piece), WEFT_OK);
    refused(run(&lone, piece, piece + 193), "target begins 193 bytes into it");
    refused(run(&lone, piece, piece + 63), "overlap");
    refused(run(&lone, piece + 63, piece), "overlap");
    refused(run(&lone, piece, piece), "are the same memory");
    refused(run(&lone, NULL, piece), "source is NULL");
    lone.bound->memory.target.dtype = WEFT_DTYPE_F32;
    refused(run(&lone, piece + 65, piece + 1), "weft_redistribute: on rank 0, target is 0x");
    refused(run(&lone, piece + 65, piece + 1), "is not aligned to 4 bytes, as f32 requires");
    ck_assert_int_eq(run(&lone, piece + 69, piece + 4), WEFT_OK);
    lone.bound->memory.target.dtype = WEFT_DTYPE_I8;
    lone.bound->in_place = true;
    ck_assert_int_eq(run(&lone, piece, piece), WEFT_OK);
    lone.bound->in_place = false;
    /* Columns of one matrix interleave.  Buffers with the same first element are equal. */
    lone.bound->memory =
        (struct wf_memory){{16, 124, true, WEFT_DTYPE_I8}, {16, 124, true, WEFT_DTYPE_I8}};
    ck_assert_int_eq(run(&lone, piece, piece + 4), WEFT_OK);
    refused(run(&lone, piece, piece), "are the same memory");
    lone.bound->memory.source = (struct wf_extent){0};
    ck_assert_int_eq(run(&lone, NULL, piece), WEFT_OK);
    lone_end(&lone);
}
