/* style.h - styles of tensor parallel.
 *
 *     style.c   the layouts of one style
 *     styles.c  lists of styles as text */
#ifndef WEFT_PARALLEL_STYLE_STYLE_H
#define WEFT_PARALLEL_STYLE_STYLE_H

#include "base/base.h"
#include "base/kinds.h"
#include "weft/style.h"

/* The forward layouts of weft_style_layouts. */
weft_status wf_style_place(const weft_style *style, enum weft_style_part part,
                           const weft_spec *spec, int32_t axis, weft_spec **from,
                           weft_spec **to) WF_NODISCARD;

/* Another owner of STYLES, which may be NULL; weft_styles_release ends it. */
weft_styles *wf_styles_retain(const weft_styles *styles);

#endif
