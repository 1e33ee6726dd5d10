/* svg.c - plans as pictures: layouts one below the other, and the steps between them. */
#include "plan/drawing.h"

#include "common/describe.h"
#include "layout/picture.h"

#include <string.h>

enum {
    WIDTH = 560,
    MARGIN = 28,
    CARD = 112, /* height of a layout's card */
    GAP = 64,   /* between two cards, for the step */
    GRID = 88,  /* side of the small picture in a card */
    FOOT = 44
};

static const char style[] =
    "<style>text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1f2933}"
    ".title{font-size:18px;font-weight:bold}.note{font-size:13px;fill:#52606d}"
    ".step{font-size:14px;font-weight:bold;fill:#0b4f9e}.rank{text-anchor:middle}"
    "</style>\n";

/* Add the ranks of a cell with the center X, Y, in letters that fit WIDTH.  False if there is no
 * room for letters that can be read. */
static bool add_label(const char *label, double x, double y, double width, double height,
                      struct wf_text *out)
{
    double size = (width - 4) / (0.6 * (double)strlen(label));

    if (size > 11) size = 11;
    if (size < 7 || height < size + 3) return false;
    wf_text_add(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"rank\" font-size=\"%.1f\">%s</text>\n", x,
                y + 4, size, label);
    return true;
}

/* Add a small picture of SPEC, with the ranks of the cells.  False if some have no room. */
static bool add_cells(const struct picture *picture, double left, double top, struct wf_text *out)
{
    double width = (double)GRID / picture->columns.count;
    double height = (double)GRID / picture->rows.count;
    bool all_labels = true;

    for (int32_t i = 0; i < picture->rows.count; i++)
        for (int32_t j = 0; j < picture->columns.count; j++) {
            struct rgb c = picture_rgb(picture_colour(picture, i, j));
            double x = left + j * width, y = top + i * height;
            char label[PICTURE_LABEL];
            wf_text_add(out,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                        "fill=\"#%02x%02x%02x\" stroke=\"#fff\"/>\n",
                        x, y, width, height, c.red, c.green, c.blue);
            if (picture_contributions(picture->spec) > 1)
                wf_text_add(out,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                            "fill=\"url(#partial)\"/>\n",
                            x, y, width, height);
            picture_label(picture, i, j, label);
            all_labels &= add_label(label, x + width / 2, y + height / 2, width, height, out);
        }
    return all_labels;
}

static void add_card(const weft_spec *spec, int top, struct wf_text *out)
{
    struct picture picture;
    bool all_labels = true;

    wf_text_add(out,
                "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#f5f7fa\" "
                "stroke=\"#cbd2d9\"/>\n",
                MARGIN, top, WIDTH - 2 * MARGIN, CARD);
    if (picture_create(spec, &picture) == WEFT_OK) {
        all_labels = add_cells(&picture, MARGIN + 12, top + 12, out);
        picture_free(&picture);
    }
    wf_text_add(out, "<text x=\"%d\" y=\"%d\" class=\"title\">", MARGIN + GRID + 32, top + 48);
    wf_text_placements(out, spec);
    wf_text_add(out, "</text>\n<text x=\"%d\" y=\"%d\" class=\"note\">%s", MARGIN + GRID + 32,
                top + 74, weft_dtype_name(weft_spec_dtype(spec)));
    describe_shape(weft_spec_dims(spec), weft_spec_shape(spec), out);
    wf_text_add(out, " on mesh ");
    wf_text_mesh(out, weft_spec_mesh(spec));
    wf_text_add(out, "%s</text>\n", all_labels ? "" : "; rank numbers do not fit");
}

static void add_step(const weft_plan_step_info *step, int top, struct wf_text *out)
{
    int x = MARGIN + 12 + GRID / 2;

    wf_text_add(out,
                "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#0b4f9e\" "
                "stroke-width=\"2\"/>\n<path d=\"M%d %d l-6 -10 h12 z\" fill=\"#0b4f9e\"/>\n",
                x, top + 6, x, top + GAP - 12, x, top + GAP - 4);
    wf_text_add(out, "<text x=\"%d\" y=\"%d\" class=\"step\">", MARGIN + GRID + 32, top + 28);
    describe_step(step, out);
    wf_text_add(out, "</text>\n<text x=\"%d\" y=\"%d\" class=\"note\">", MARGIN + GRID + 32,
                top + 47);
    describe_travel(step, out);
    wf_text_add(out, "; ");
    wf_text_time(out, step->cost_ns);
    wf_text_add(out, "</text>\n");
}

static void add_received(const weft_plan *plan, const weft_plan_info *info, struct wf_text *out)
{
    uint64_t least;

    wf_text_add(out, info->exact ? "at most " : "about ");
    wf_text_bytes(out, info->bytes_received_max);
    wf_text_add(out, " received by a rank");
    if (weft_plan_lower_bound(plan, &least) == WEFT_OK) {
        wf_text_add(out, " (the lower bound is ");
        wf_text_bytes(out, least);
        wf_text_char(out, ')');
    }
    wf_text_add(out, ", ");
}

void plan_add_svg(const weft_plan *plan, struct wf_text *out)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};
    int height, top = MARGIN;

    if (weft_plan_get(plan, &info) != WEFT_OK) return;
    height = 2 * MARGIN + CARD + (int)info.steps * (CARD + GAP) + FOOT;
    wf_text_add(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\">\n%s%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        WIDTH, height, WIDTH, height, style, picture_pattern);
    add_card(info.from, top, out);
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        add_step(&step, top + CARD, out);
        top += CARD + GAP;
        add_card(step.to, top, out);
    }
    wf_text_add(out, "<text x=\"%d\" y=\"%d\" class=\"note\">", MARGIN, top + CARD + FOOT);
    if (info.steps == 0) wf_text_add(out, "nothing to do; ");
    add_received(plan, &info, out);
    if (!info.scratch_exact) wf_text_add(out, "about ");
    wf_text_bytes(out, info.peak_bytes);
    wf_text_add(out, " of scratch, ");
    wf_text_time(out, info.cost_ns);
    wf_text_add(out, " predicted</text>\n</svg>\n");
}
