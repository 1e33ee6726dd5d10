/* svg.c - a layout as a drawing: one rectangle per cell, to scale where there is room for the
 * label, with the indices along the edges and a line for every index where they are few. */
#include "layout/picture.h"

#include "common/describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LEFT = 84,
    TOP = 104,
    RIGHT = 28,
    BOTTOM = 34,
    BODY = 560,      /* length of a scaled dimension */
    ROW_HEIGHT = 84, /* height of the row if there is one only */
    MIN_HEIGHT = 26, /* minimum height of other rows */
    MAX_BODY = 1600, /* maximum; in a longer dimension labels shrink, then are left out */
    FEW_INDICES = 32
};

/* Widths of one character, in pixels. */
static const double RANK_WIDTH = 9, NOTE_WIDTH = 7.4, TITLE_WIDTH = 13, FONT = 15;

/* Where each band begins, in pixels; one more entry than bands. */
struct scale {
    double at[PICTURE_BANDS + 1];
};

static void lay_out(const struct bands *bands, double body, double least, struct scale *out)
{
    double at = 0;

    for (int32_t i = 0; i < bands->count; i++) {
        double length = body * (double)bands->at[i].length / (double)bands->size;
        out->at[i] = at;
        at += length > least ? length : least;
    }
    out->at[bands->count] = at;
}

static size_t longest_label(const struct picture *picture)
{
    size_t longest = 1;

    for (int32_t i = 0; i < picture->rows.count; i++)
        for (int32_t j = 0; j < picture->columns.count; j++) {
            char label[PICTURE_LABEL];
            picture_label(picture, i, j, label);
            if (strlen(label) > longest) longest = strlen(label);
        }
    return longest;
}

const char picture_pattern[] =
    "<defs><pattern id=\"partial\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><path d=\"M0 0V8\" stroke=\"#1f2933\" stroke-opacity=\".28\" "
    "stroke-width=\"3\"/></pattern></defs>\n";

/* Add the placements above mesh and tensor.  Returns their width. */
static double add_heading(const struct picture *picture, struct wf_text *text)
{
    const weft_spec *spec = picture->spec;
    struct wf_text title = {0}, note = {0}, meaning = {0};
    double width;

    wf_text_placements(&title, spec);
    wf_text_add(&note, "%s", weft_dtype_name(weft_spec_dtype(spec)));
    describe_shape(weft_spec_dims(spec), weft_spec_shape(spec), &note);
    wf_text_add(&note, " on mesh ");
    wf_text_mesh(&note, weft_spec_mesh(spec));
    if (note.length > 80 && !note.failed) { /* a mesh with a long list of ranks */
        memcpy(note.data + 77, "...", 4);
        note.length = 80;
    }
    picture_explain(spec, &meaning);
    wf_text_add(&note, "; %s", meaning.length > 0 ? meaning.data : "the numbers are ranks");
    width = fmax(TITLE_WIDTH * (double)title.length, NOTE_WIDTH * (double)note.length);
    if (title.failed || note.failed || meaning.failed)
        text->failed = true;
    else
        wf_text_add(text,
                    "<text x=\"%d\" y=\"34\" class=\"title\">%s</text>\n"
                    "<text x=\"%d\" y=\"56\" class=\"note\">%s</text>\n",
                    LEFT, title.data, LEFT, note.data);
    wf_text_free(&title);
    wf_text_free(&note);
    wf_text_free(&meaning);
    return width;
}

static void add_cells(const struct picture *picture, const struct scale *x, const struct scale *y,
                      struct wf_text *text)
{
    for (int32_t i = 0; i < picture->rows.count; i++)
        for (int32_t j = 0; j < picture->columns.count; j++) {
            struct rgb c = picture_rgb(picture_colour(picture, i, j));
            wf_text_add(text,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" "
                        "fill=\"#%02x%02x%02x\"/>\n",
                        LEFT + x->at[j] + 1, TOP + y->at[i] + 1, x->at[j + 1] - x->at[j] - 2,
                        y->at[i + 1] - y->at[i] - 2, c.red, c.green, c.blue);
        }
    if (picture_contributions(picture->spec) > 1)
        wf_text_add(text, "<path d=\"M%d %dh%.1fv%.1fh%.1fz\" fill=\"url(#partial)\"/>\n", LEFT,
                    TOP, x->at[picture->columns.count], y->at[picture->rows.count],
                    -x->at[picture->columns.count]);
}

static void add_labels(const struct picture *picture, const struct scale *x, const struct scale *y,
                       double font, struct wf_text *text)
{
    if (font < 5) return;
    wf_text_add(text, "<g font-size=\"%.1f\">\n", font);
    for (int32_t i = 0; i < picture->rows.count; i++)
        for (int32_t j = 0; j < picture->columns.count; j++) {
            char label[PICTURE_LABEL];
            picture_label(picture, i, j, label);
            wf_text_add(text, "<text x=\"%.1f\" y=\"%.1f\" class=\"rank\">%s</text>\n",
                        LEFT + (x->at[j] + x->at[j + 1]) / 2,
                        TOP + (y->at[i] + y->at[i + 1]) / 2 + font / 3, label);
        }
    wf_text_add(text, "</g>\n");
}

/* A line between any two indices of a band. */
static void add_index_lines(const struct bands *bands, const struct scale *scale, double other,
                            bool vertical, struct wf_text *text)
{
    if (bands->size > FEW_INDICES || bands->dim < 0) return;
    for (int32_t i = 0; i < bands->count; i++)
        for (int64_t k = 1; k < bands->at[i].length; k++) {
            double at = scale->at[i] +
                        (scale->at[i + 1] - scale->at[i]) * (double)k / (double)bands->at[i].length;
            if (vertical)
                wf_text_add(text, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                            LEFT + at, TOP, LEFT + at, TOP + other);
            else
                wf_text_add(text, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                            TOP + at, LEFT + other, TOP + at);
        }
}

/* The first index of every band, and the size at the end. */
static void add_ticks(const struct bands *bands, const struct scale *scale, bool vertical,
                      struct wf_text *text)
{
    double last = -100;

    for (int32_t i = 0; i <= bands->count && bands->dim >= 0; i++) {
        int64_t index = i < bands->count ? bands->at[i].start : bands->size;
        char number[32];
        int length = snprintf(number, sizeof number, "%" PRId64, index);
        double room = vertical ? 13 : 7.0 * length + 10;
        if (scale->at[i] - last < room) continue;
        last = scale->at[i];
        if (vertical)
            wf_text_add(text, "<text x=\"%d\" y=\"%.1f\" class=\"tick end\">%s</text>\n", LEFT - 8,
                        TOP + last + 4, number);
        else
            wf_text_add(text, "<text x=\"%.1f\" y=\"%d\" class=\"tick middle\">%s</text>\n",
                        LEFT + last, TOP - 8, number);
    }
}

static void add_dimension_names(const struct picture *picture, double width, double height,
                                struct wf_text *text)
{
    if (picture->columns.dim >= 0)
        wf_text_add(text, "<text x=\"%.1f\" y=\"%d\" class=\"tick middle\">dimension %d</text>\n",
                    LEFT + width / 2, TOP - 26, picture->columns.dim);
    if (picture->rows.dim >= 0)
        wf_text_add(text,
                    "<text transform=\"translate(24 %.1f) rotate(-90)\" class=\"tick middle\">"
                    "dimension %d</text>\n",
                    TOP + height / 2, picture->rows.dim);
}

static const char style[] =
    "<style>text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1f2933}"
    ".title{font-size:20px;font-weight:bold}.note{font-size:13px;fill:#52606d}"
    ".rank{text-anchor:middle}.tick{font-size:12px;fill:#616e7c}"
    ".end{text-anchor:end}.middle{text-anchor:middle}"
    "line{stroke:#fff;stroke-opacity:.55;stroke-width:1}</style>\n";

/* The length of a side that is RATIO, at most 1, times as long as the other. */
static double shorter_side(double ratio)
{
    return ratio < 0.3 ? 0.3 : ratio > 1 ? 1 : ratio;
}

static void add_idle_note(const struct picture *picture, double height, struct wf_text *text)
{
    int32_t idle = picture_idle_ranks(picture);

    if (idle == 0) return;
    wf_text_add(text,
                "<text x=\"%d\" y=\"%.1f\" class=\"tick\">%d of %d ranks hold%s nothing</text>\n",
                LEFT, TOP + height + 22, idle, weft_mesh_size(weft_spec_mesh(picture->spec)),
                idle == 1 ? "s" : "");
}

void picture_add_svg(const struct picture *picture, struct wf_text *text)
{
    const struct bands *rows = &picture->rows, *columns = &picture->columns;
    double label = (double)longest_label(picture), least = RANK_WIDTH * label + 14, width, height;
    /* Scale both dimensions alike, unless the picture would be too narrow. */
    double ratio = rows->dim >= 0 ? (double)rows->size / (double)columns->size : 1;
    struct wf_text body = {0};
    struct scale x, y;

    least = fmin(least, (double)MAX_BODY / columns->count);
    lay_out(columns, BODY * shorter_side(1 / ratio), least, &x);
    lay_out(rows, rows->dim >= 0 ? BODY * shorter_side(ratio) : ROW_HEIGHT, MIN_HEIGHT, &y);
    width = x.at[columns->count];
    height = y.at[rows->count] + TOP + BOTTOM;
    width = LEFT + RIGHT + fmax(width, add_heading(picture, &body));
    add_dimension_names(picture, x.at[columns->count], y.at[rows->count], &body);
    add_ticks(columns, &x, false, &body);
    add_ticks(rows, &y, true, &body);
    add_cells(picture, &x, &y, &body);
    add_index_lines(columns, &x, y.at[rows->count], true, &body);
    add_index_lines(rows, &y, x.at[columns->count], false, &body);
    add_labels(picture, &x, &y, fmin(FONT, (least - 4) / label / RANK_WIDTH * FONT), &body);
    add_idle_note(picture, y.at[rows->count], &body);

    wf_text_add(text,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "viewBox=\"0 0 %.0f %.0f\">\n",
                width, height, width, height);
    wf_text_append(text, style, sizeof style - 1);
    if (picture_contributions(picture->spec) > 1) wf_text_add(text, "%s", picture_pattern);
    wf_text_add(text, "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#fff\"/>\n");
    wf_text_append(text, body.data != NULL ? body.data : "", body.length);
    wf_text_add(text, "</svg>\n");
    if (body.failed) text->failed = true;
    wf_text_free(&body);
}
