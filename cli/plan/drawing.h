/* drawing.h - plans as graphs and pictures. */
#ifndef WEFT_CLI_PLAN_DRAWING_H
#define WEFT_CLI_PLAN_DRAWING_H

#include "common/cli.h"

/* Add PLAN as a DOT graph with a node per layout and an edge per step. */
void plan_add_dot(const weft_plan *plan, struct wf_text *out);

/* Add PLAN as an SVG document: small pictures of the layouts from top to bottom, and between
 * them the steps with their costs. */
void plan_add_svg(const weft_plan *plan, struct wf_text *out);

#endif
