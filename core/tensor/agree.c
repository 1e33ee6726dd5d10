/* agree.c - the ranks that make a collective call compare what they pass to it. */
#include "tensor.h"

#include <string.h>

enum { MOST_TEXT = 600 }; /* bytes of a rank's text that others show */

/* What a rank passes, as the others get it: this, and then its text. */
struct card {
    int32_t rank;
    int32_t length;
    uint64_t digest;
};

void wf_layout_add(const weft_spec *spec, const char *name, struct wf_text *out)
{
    size_t begin = out->length;

    if (name != NULL) {
        wf_text_add(out, "%s", name);
        if (wf_text_status(out) == WEFT_OK) wf_text_clean(out->data + begin, out->length - begin);
        wf_text_add(out, ": ");
    }
    wf_text_add(out, "%s", weft_dtype_name((enum weft_dtype)spec->layout.dtype));
    wf_shape_add_text(spec->layout.dims, spec->layout.shape, out);
    wf_text_char(out, ' ');
    wf_placements_add_text(spec->layout.placements, spec->layout.mesh->axes, out);
    wf_text_add(out, " on ");
    wf_mesh_add_text(spec->layout.mesh, out);
}

/* Write this rank's card and text to OUT. */
static weft_status describe(const weft_context *context, const struct wf_passed *passed,
                            struct wf_text *out)
{
    struct card card = {.rank = context->rank};
    struct wf_text text = {0};
    weft_status status;

    wf_layout_add(passed->from, passed->from_name, &text);
    if (passed->to != NULL) {
        wf_text_add(&text, " and ");
        wf_layout_add(passed->to, passed->to_name, &text);
    }
    status = wf_text_status(&text);
    if (status == WEFT_OK) {
        card.digest = wf_hash(0, text.data, text.length);
        card.length = (int32_t)(text.length < MOST_TEXT ? text.length : MOST_TEXT);
        wf_text_append(out, (const char *)&card, sizeof card);
        wf_text_append(out, text.data, (size_t)card.length);
        status = wf_text_status(out);
    }
    wf_text_free(&text);
    return status;
}

static const char *read_card(const weft_blob *blob, struct card *out)
{
    memcpy(out, blob->data, sizeof *out);
    return (const char *)blob->data + sizeof *out;
}

/* All ranks pass the same. */
static weft_status compare_cards(const struct wf_gathered *got)
{
    for (int32_t i = 1; i < got->count; i++) {
        struct card a, b;
        const char *one = read_card(&got->blobs[0], &a), *other = read_card(&got->blobs[i], &b);
        bool is_cut = a.length == MOST_TEXT || b.length == MOST_TEXT;

        if (a.digest != b.digest)
            return wf_fail(WEFT_ERR_MISMATCH, "rank %d has %.*s, but rank %d has %.*s%s", a.rank,
                           a.length, one, b.rank, b.length, other,
                           is_cut ? " (long texts are cut)" : "");
    }
    return WEFT_OK;
}

weft_status wf_tensors_agree(weft_context *context, const struct wf_passed *passed,
                             const char *function, weft_status status)
{
    const weft_spec *to = passed->to != NULL ? passed->to : passed->from;
    struct wf_gathered got = {0};
    struct wf_text mine = {0};

    if (status == WEFT_OK) status = describe(context, passed, &mine);
    status = wf_carrier_of(context)->agree(context, passed->from, to, function, status,
                                           (weft_blob){mine.data, mine.length}, &got);
    wf_text_free(&mine);
    if (status == WEFT_OK) status = compare_cards(&got);
    wf_gathered_free(&got);
    return wf_fail_named(status, function);
}
