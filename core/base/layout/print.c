/* print.c - writes placements as shard/text.c reads them. */
#include "layout.h"

/* At most MOST sizes; then "...". */
static void add_sizes(const weft_placement *p, size_t most, struct wf_text *text)
{
    wf_text_add(text, "%c(%d;", p->kind == WEFT_PLACE_PARTS ? 'B' : 'G', p->dim);
    for (size_t i = 0; i < p->size_count && i < most; i++)
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

bool wf_placements_in_order(const weft_placement *placements, int32_t axes, int32_t dim)
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
            !wf_placements_in_order(placements, axes, placements[i].dim))
            wf_text_add(text, "[%d]", placements[i].turn);
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
