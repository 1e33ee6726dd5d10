/* print.c - writes shapes, placements and specs as text.c reads them. */
#include "shard.h"

/* At most MOST sizes; then "...". */
static void add_sizes(const weft_placement *p, int32_t most, struct wf_text *text)
{
    wf_text_add(text, "%c(%d;", p->kind == WEFT_PLACE_PARTS ? 'B' : 'G', p->dim);
    for (int32_t i = 0; i < p->size_count && i < most; i++)
        wf_text_add(text, "%s%lld", i > 0 ? "," : "", (long long)p->sizes[i]);
    wf_text_add(text, p->size_count > most ? ",...)" : ")");
}

void wf_placement_add_short_text(const weft_placement *p, struct wf_text *text)
{
    if (wf_placement_has_sizes(p))
        add_sizes(p, 8, text);
    else
        wf_placement_add_text(p, text);
}

void wf_placement_add_text(const weft_placement *p, struct wf_text *text)
{
    const char *reduction = wf_reduction_name(p->reduction);

    switch (p->kind) {
    case WEFT_PLACE_REPLICATE:
        wf_text_char(text, 'R');
        return;
    case WEFT_PLACE_SHARD:
        wf_text_add(text, "S(%d)", p->dim);
        return;
    case WEFT_PLACE_STRIDED:
        wf_text_add(text, "SS(%d,%lld)", p->dim, (long long)p->factor);
        return;
    case WEFT_PLACE_PARTS:
    case WEFT_PLACE_SIZES:
        add_sizes(p, p->size_count, text);
        return;
    case WEFT_PLACE_OWNER:
        wf_text_add(text, "O(%d)", p->owner);
        return;
    default:
        wf_text_add(text, "P(%s)", reduction != NULL ? reduction : "?");
    }
}

/* True if dimension DIM is split from the first axis to the last. */
static bool order_is_default(const weft_placement *placements, int32_t axes, int32_t dim)
{
    int32_t last = -1;

    for (int32_t i = 0; i < axes; i++) {
        if (!wf_placement_splits(&placements[i]) || placements[i].dim != dim) continue;
        if (placements[i].turn < last) return false;
        last = placements[i].turn;
    }
    return true;
}

/* ADD writes one placement. */
static void add_all(const weft_placement *placements, int32_t axes,
                    void (*add)(const weft_placement *, struct wf_text *), struct wf_text *text)
{
    for (int32_t i = 0; i < axes; i++) {
        if (i > 0) wf_text_char(text, ',');
        add(&placements[i], text);
        if (wf_placement_splits(&placements[i]) &&
            !order_is_default(placements, axes, placements[i].dim))
            wf_text_add(text, "[%d]", placements[i].turn - 1);
    }
}

void wf_placements_add_text(const weft_placement *placements, int32_t axes, struct wf_text *text)
{
    add_all(placements, axes, wf_placement_add_text, text);
}

void wf_placements_add_short_text(const weft_placement *placements, int32_t axes,
                                  struct wf_text *text)
{
    add_all(placements, axes, wf_placement_add_short_text, text);
}

void wf_shape_add_text(int32_t dims, const int64_t *shape, struct wf_text *text)
{
    wf_text_char(text, '[');
    for (int32_t i = 0; i < dims; i++)
        wf_text_add(text, "%s%lld", i > 0 ? "," : "", (long long)shape[i]);
    wf_text_char(text, ']');
}

weft_status weft_spec_print(const weft_spec *spec, char *buffer, size_t capacity, size_t *length)
{
    const struct wf_layout *layout;
    struct wf_text text = {0};

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_print: spec"));
    if (capacity > 0) WF_TRY(wf_require(buffer, "weft_spec_print: buffer"));
    layout = &spec->layout;
    wf_text_add(&text, "%s", wf_dtype_name(layout->dtype));
    wf_shape_add_text(layout->dims, layout->shape, &text);
    wf_text_char(&text, ' ');
    wf_placements_add_text(layout->placements, layout->mesh->axes, &text);
    return wf_text_copy_out(&text, buffer, capacity, length);
}
