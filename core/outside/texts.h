/* texts.h - what libweft prints of layouts, appended to a text.  If the print cannot be had, the
 * text has failed. */
#ifndef WEFT_OUTSIDE_TEXTS_H
#define WEFT_OUTSIDE_TEXTS_H

#include <string.h>

#include "base/base.h"
#include "weft/spec.h"

/* Append what PRINT, such as weft_mesh_print, writes of OBJECT to OUT. */
#define WF_TEXT_PRINT(out, print, object)                                                          \
    do {                                                                                           \
        size_t wf_needed = 0;                                                                      \
        if (print(object, NULL, 0, &wf_needed) != WEFT_OK || !wf_text_reserve(out, wf_needed) ||   \
            print(object, (out)->data + (out)->length, wf_needed + 1, NULL) != WEFT_OK) {          \
            (out)->failed = true;                                                                  \
            (out)->capacity = (out)->length + wf_needed + 1; /* that it needed */                  \
        } else {                                                                                   \
            (out)->length += wf_needed;                                                            \
        }                                                                                          \
    } while (0)

/* "dp=2,tp=4" */
static inline void wf_text_mesh(struct wf_text *out, const weft_mesh *mesh)
{
    WF_TEXT_PRINT(out, weft_mesh_print, mesh);
}

/* "f32[4,6] S(0),R" */
static inline void wf_text_spec(struct wf_text *out, const weft_spec *spec)
{
    WF_TEXT_PRINT(out, weft_spec_print, spec);
}

/* "S(0),R" */
static inline void wf_text_placements(struct wf_text *out, const weft_spec *spec)
{
    struct wf_text whole = {0};

    wf_text_spec(&whole, spec);
    if (whole.failed) {
        out->failed = true;
        out->capacity = whole.capacity;
    } else {
        wf_text_add(out, "%s", strstr(whole.data, "] ") + 2);
    }
    wf_text_free(&whole);
}

#endif
