/* Any text is a list of styles or is refused.  A list gives any tensor a layout or an error. */
#include "fuzz.h"

#include "weft/style.h"

#include <string.h>

static void check_apply(const weft_styles *styles, const char *name, enum weft_style_part part)
{
    const weft_mesh *mesh = weft_styles_mesh(styles);
    const int64_t shape[] = {4, 6, 8};
    weft_placement placements[WEFT_MAX_AXES];
    weft_spec *spec = NULL, *styled = NULL;

    memset(placements, 0, sizeof placements);
    FUZZ_ASSERT(weft_spec_create(mesh, WEFT_DTYPE_F32, 3, shape, placements, &spec) == WEFT_OK);
    if (weft_styles_apply(styles, name, part, spec, &styled) == WEFT_OK) {
        FUZZ_ASSERT(weft_spec_mesh(styled) == mesh && weft_spec_dims(styled) == 3);
        weft_spec_release(&styled);
    }
    weft_spec_release(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    weft_styles *styles = NULL;
    const char *pattern;

    if (weft_styles_parse(text, NULL, &styles) == WEFT_OK) {
        for (int32_t axis = 0; axis < weft_mesh_axes(weft_styles_mesh(styles)); axis++)
            if (weft_styles_find(styles, "layers.0.q.weight", axis, &pattern) == WEFT_OK)
                FUZZ_ASSERT(pattern[0] != '\0');
        check_apply(styles, "layers.0.q.weight", WEFT_STYLE_WEIGHT);
        check_apply(styles, "x", WEFT_STYLE_OUTPUT);
        weft_styles_release(&styles);
    }
    FUZZ_ASSERT(styles == NULL);
    free(text);
    return 0;
}
