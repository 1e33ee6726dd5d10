/* style.h - styles of tensor parallelism: how the ranks of one mesh axis share a module.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 * A style gives the layouts of a module's weight, bias, input and output, forward and backward:
 *
 *     weft_style row = {.struct_size = sizeof row, .kind = WEFT_STYLE_ROW, .passed = "S(1)"};
 *     weft_spec *moves[WEFT_STYLE_LAYOUTS];
 *     TRY(weft_style_layouts(&row, WEFT_STYLE_OUTPUT, y, tp, moves));
 *
 * On the axis, the output is computed as P(sum) and moved to S(1); its gradient arrives as S(1) and
 * is moved to R.
 *
 * A list of styles is a text: a mesh, then one line per pattern of names and axis.
 *
 *     mesh dp=8,tp=4
 *     x               dp  S(0)
 *     *q_proj.weight  tp  column
 *     *o_proj.weight  tp  row
 *     attention       tp  S(1)
 *
 * All functions here are pure, and any thread may call them. */
#ifndef WEFT_STYLE_H
#define WEFT_STYLE_H

#include "weft/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Layouts on the axis; d is the last dimension, and s the dimension of the sequence.
 *
 *   kind      weight  bias  input        output
 *   COLUMN    S(0)    S(0)  R            S(d)
 *   ROW       S(1)    R     S(d)         P(sum), passed as R
 *   SEQUENCE  R       R     S(s)         S(s)
 *   LOSS      R       R     S(d)         P(sum), passed as R
 *   PLACED    as given, in `passed`
 *
 * The weight of COLUMN and ROW is [outputs, inputs].  The weight of an embedding is [words,
 * features]: COLUMN splits it as S(1), ROW as S(0), and the input of both is R. */
enum weft_style_kind {
    WEFT_STYLE_COLUMN = 0,
    WEFT_STYLE_ROW = 1,
    WEFT_STYLE_SEQUENCE = 2,
    WEFT_STYLE_LOSS = 3,  /* cross entropy of logits whose classes are split */
    WEFT_STYLE_PLACED = 4 /* prepare an input or an output: it is moved to a placement */
};

enum weft_style_part {
    WEFT_STYLE_WEIGHT = 0,
    WEFT_STYLE_BIAS = 1,
    WEFT_STYLE_INPUT = 2,
    WEFT_STYLE_OUTPUT = 3
};

typedef struct weft_style {
    size_t struct_size;
    uint32_t kind;        /* enum weft_style_kind */
    bool embedding;       /* COLUMN and ROW: the module is an embedding */
    int32_t sequence_dim; /* SEQUENCE: the dimension of the sequence; 0 stands for 1 */
    /* Placements on the axis, "R", "S(1)".  An input arrives as `given`, and an output is passed on
     * as `passed`; NULL: as in the table.  PLACED needs `passed`, for any part. */
    const char *given, *passed;
} weft_style;

/* The layouts of a part.  Forward, it is moved from FROM to TO: an input from the layout in which
 * it arrives to that in which it is used, an output from the layout in which it is computed to that
 * in which it is passed on.  Backward, its gradient is moved from GRADIENT_FROM to GRADIENT_TO. All
 * four differ on the axis of the style only. */
enum weft_style_layout {
    WEFT_STYLE_FROM = 0,
    WEFT_STYLE_TO = 1,
    WEFT_STYLE_GRADIENT_FROM = 2,
    WEFT_STYLE_GRADIENT_TO = 3,
    WEFT_STYLE_LAYOUTS = 4
};

/* Write the layouts of PART by STYLE to OUT, WEFT_STYLE_LAYOUTS specs that the caller releases.
 * SPEC is the tensor with its placements on the other axes, which stay, split in the default order;
 * AXIS is an axis of its mesh.  WEFT_ERR_INVALID: the tensor has no dimension that the style
 * splits, or the placements do not fit it.  WEFT_ERR_UNSUPPORTED: a layout has another partial than
 * P(sum), which has no gradient.  [OUT: WEFT_STYLE_LAYOUTS entries] */
WEFT_API WEFT_NODISCARD weft_status weft_style_layouts(const weft_style *style,
                                                       enum weft_style_part part,
                                                       const weft_spec *spec, int32_t axis,
                                                       weft_spec **out);

/* ---- lists of styles ------------------------------------------------------------- */

typedef struct weft_styles weft_styles;

/* Read TEXT.  A line is a pattern of names, an axis by name or index, and a style: `column`, `row`,
 * `column(embedding)`, `row(embedding)`, `sequence`, `sequence(D)`, `loss`, or a placement.  `*` in
 * a pattern matches any text, dots too.  `#` begins a comment.  MESH may be NULL; otherwise it
 * replaces the mesh of the text and must have the axes of the lines.  The caller releases *OUT.
 * WEFT_ERR_PARSE: TEXT is malformed, or a line decides nothing because an earlier one matches all
 * its names on its axis; the error gives the line. */
WEFT_API WEFT_NODISCARD weft_status weft_styles_parse(const char *text, const weft_mesh *mesh,
                                                      weft_styles **out);
/* Drop the list and set *STYLES to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_styles_release(weft_styles **styles);
/* The mesh of STYLES; NULL for NULL.  Borrowed. */
WEFT_API const weft_mesh *weft_styles_mesh(const weft_styles *styles);
/* Set *PATTERN to the pattern of the first line that matches NAME on axis AXIS.  Borrowed.
 * WEFT_ERR_NOT_FOUND: no line does. */
WEFT_API WEFT_NODISCARD weft_status weft_styles_find(const weft_styles *styles, const char *name,
                                                     int32_t axis, const char **pattern);
/* Create the layout that STYLES give to PART of the tensor NAME, whose layout is SPEC on their
 * mesh. On each axis the first line that matches NAME decides: the placement is that of `to` in
 * weft_style_layouts.  Without such a line, the axis keeps the placement of SPEC.  With the style
 * `loss`, NAME is the logits, which have the layout of the input.  The caller releases *OUT.
 * Errors: as weft_style_layouts, with the line. */
WEFT_API WEFT_NODISCARD weft_status weft_styles_apply(const weft_styles *styles, const char *name,
                                                      enum weft_style_part part,
                                                      const weft_spec *spec, weft_spec **out);

#ifdef __cplusplus
}
#endif
#endif
