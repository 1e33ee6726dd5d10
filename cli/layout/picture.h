/* picture.h - a layout as a grid of cells, each held by the same ranks throughout; drawn by
 * terminal.c and svg.c. */
#ifndef WEFT_CLI_LAYOUT_PICTURE_H
#define WEFT_CLI_LAYOUT_PICTURE_H

#include "base/base.h"
#include "weft/spec.h"

enum {
    PICTURE_BANDS = 256,     /* maximum number of rows or columns */
    PICTURE_LABEL = 40,      /* bytes of a cell's label with the end */
    PICTURE_LABEL_WIDTH = 11 /* maximum length of a label in which ranks can be shortened */
};

/* Consecutive indices of one dimension that have the same owner. */
struct band {
    int64_t start, length;
    int32_t coord[WEFT_MAX_AXES]; /* coordinate of the owner on the axes that split the dimension; 0
                                     on the other axes */
};

struct bands {
    int32_t dim; /* -1: the tensor has no such dimension, and there is one band */
    int64_t size;
    int32_t count, owners; /* bands, and different owners of them */
    struct band *at;
};

/* Rows and columns are two dimensions of the tensor.  A tensor with one dimension has columns
 * only. */
struct picture {
    const weft_spec *spec; /* borrowed */
    struct bands rows, columns;
    int32_t colours; /* different shards */
};

/* Find the rows and columns of SPEC.  If the tensor has more than two dimensions, they are the
 * split ones, which may be two at most.  WEFT_ERR_UNSUPPORTED, with the reason, if there is no
 * picture. */
weft_status picture_create(const weft_spec *spec, struct picture *out);
void picture_free(struct picture *picture);

/* Cut BANDS into single indices. */
weft_status picture_cut(struct bands *bands);

/* Write the ranks that hold a cell to LABEL[PICTURE_LABEL]: "0-3" or "1,5".  A long list is
 * shortened to its first rank and the number of others: "0 +63".  If the ranks hold
 * contributions, the reduction comes first: "sum 0-3". */
void picture_label(const struct picture *picture, int32_t row, int32_t column, char *label);

/* Number of ranks that contribute to an element of SPEC; 1 without partials. */
int32_t picture_contributions(const weft_spec *spec);
/* "sum": the reduction of SPEC's first partial, or "". */
const char *picture_reduction(const weft_spec *spec);
/* Add a sentence that says whether the ranks of one cell hold copies or contributions.  Adds
 * nothing if each cell has one rank. */
void picture_explain(const weft_spec *spec, struct wf_text *out);

/* Index of the shard of the cell, below picture->colours. */
int32_t picture_colour(const struct picture *picture, int32_t row, int32_t column);

/* Number of ranks that hold nothing. */
int32_t picture_idle_ranks(const struct picture *picture);

/* Colour INDEX as red, green and blue: light enough for dark text. */
struct rgb {
    uint8_t red, green, blue;
};
struct rgb picture_rgb(int32_t index);

/* Append the picture for a terminal of WIDTH columns to TEXT.  False if it does not fit. */
bool picture_add_grid(struct picture *picture, int32_t width, bool colour, struct wf_text *text);

/* Append the definition of url(#partial), the hatching of cells that hold contributions. */
extern const char picture_pattern[];

/* Append the picture as an SVG document to TEXT. */
void picture_add_svg(const struct picture *picture, struct wf_text *text);

#endif
