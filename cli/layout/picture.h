/* picture.h - a layout as a grid of cells, each held by the same ranks throughout; drawn by
 * terminal.c and svg.c. */
#ifndef WEFT_CLI_LAYOUT_PICTURE_H
#define WEFT_CLI_LAYOUT_PICTURE_H

#include "base/base.h"
#include "weft/spec.h"

enum {
    PICTURE_BANDS = 256,     /* the most rows or columns */
    PICTURE_LABEL = 40,      /* bytes of a cell's label with the end */
    PICTURE_LABEL_WIDTH = 11 /* its most characters, where ranks can be shortened to fit */
};

/* Consecutive indices of one dimension with one owner. */
struct band {
    int64_t start, length;
    int32_t coord[WEFT_MAX_AXES]; /* the owner's, on the axes that split the dimension; else 0 */
};

struct bands {
    int32_t dim; /* -1: the tensor has no such dimension, and there is one band */
    int64_t size;
    int32_t count, owners; /* bands, and different owners of them */
    struct band *at;
};

/* Rows and columns are two dimensions of the tensor, or one and none. */
struct picture {
    const weft_spec *spec; /* borrowed */
    struct bands rows, columns;
    int32_t colours; /* different shards */
};

/* Find SPEC's rows and columns: of a tensor with more than two dimensions the ones that are split,
 * if they are no more than two.  WEFT_ERR_UNSUPPORTED says why there is no picture. */
weft_status picture_create(const weft_spec *spec, struct picture *out);
void picture_free(struct picture *picture);

/* Cut BANDS into single indices. */
weft_status picture_cut(struct bands *bands);

/* The ranks that hold a cell, such as "0-3" or "1,5", into LABEL[PICTURE_LABEL]; many are
 * shortened to the first and the number of others: "0 +63".  Where they hold contributions, the
 * reduction comes first: "sum 0-3". */
void picture_label(const struct picture *picture, int32_t row, int32_t column, char *label);

/* How many ranks contribute to an element of SPEC: 1 without partials. */
int32_t picture_contributions(const weft_spec *spec);
/* "sum": the reduction of SPEC's first partial, or "". */
const char *picture_reduction(const weft_spec *spec);
/* Add what the ranks of one cell have to do with each other, in one sentence; nothing where each
 * cell has one rank. */
void picture_explain(const weft_spec *spec, struct wf_text *out);

/* Number of the cell's shard, below picture->colours. */
int32_t picture_colour(const struct picture *picture, int32_t row, int32_t column);

/* How many ranks hold nothing. */
int32_t picture_idle_ranks(const struct picture *picture);

/* Colour INDEX as red, green and blue: light enough for dark text. */
struct rgb {
    uint8_t red, green, blue;
};
struct rgb picture_rgb(int32_t index);

/* The picture for a terminal of WIDTH columns, appended to TEXT; false if it does not fit. */
bool picture_add_grid(struct picture *picture, int32_t width, bool colour, struct wf_text *text);

/* The definition of url(#partial), a hatching over cells that hold contributions. */
extern const char picture_pattern[];

/* The picture as an SVG document, appended to TEXT. */
void picture_add_svg(const struct picture *picture, struct wf_text *text);

#endif
