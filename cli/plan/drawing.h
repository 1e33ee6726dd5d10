/* drawing.h - plans as graphs and pictures. */
#ifndef WEFT_CLI_PLAN_DRAWING_H
#define WEFT_CLI_PLAN_DRAWING_H

#include "common/cli.h"

/* PLAN as a DOT graph: a node per layout, an edge per step. */
void plan_add_dot(const weft_plan *plan, struct wf_text *out);

/* PLAN as an SVG document: the layouts one below the other, each drawn small, and between them the
 * steps with what they take. */
void plan_add_svg(const weft_plan *plan, struct wf_text *out);

#endif
