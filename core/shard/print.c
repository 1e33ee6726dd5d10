/* print.c - writes specs as text.c reads them. */
#include "shard.h"

weft_status weft_spec_print(const weft_spec *spec, char *text, size_t size, size_t *needed)
{
    const struct wf_layout *layout;
    struct wf_text printed = {0};

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_print: spec"));
    if (size > 0) WF_TRY(wf_require(text, "weft_spec_print: text"));
    layout = &spec->layout;
    wf_text_add(&printed, "%s", wf_dtype_name(layout->dtype));
    wf_shape_add_text(layout->dims, layout->shape, &printed);
    wf_text_char(&printed, ' ');
    wf_placements_add_text(layout->placements, layout->mesh->axes, &printed);
    return wf_text_copy_out(&printed, text, size, needed);
}
