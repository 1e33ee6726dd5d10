/* style.c - the layouts of a module's tensors by a style. */
#include "style.h"

#include <stdio.h>
#include <string.h>

static const char function[] = "weft_style_layouts";
static const char *const part_names[] = {"weight", "bias", "input", "output"};

/* A placement on one axis, as text. */
struct placed {
    const char *given; /* of the caller, or a constant; NULL: `made` is the text */
    char made[16];
};

static struct placed split(int32_t dim)
{
    struct placed p = {.given = NULL};

    snprintf(p.made, sizeof p.made, "S(%d)", dim);
    return p;
}

static struct placed plain(const char *text)
{
    return (struct placed){.given = text};
}

static const char *text_of(const struct placed *p)
{
    return p->given != NULL ? p->given : p->made;
}

static weft_status refuse_dims(enum weft_style_part part, const weft_spec *spec, const char *needs)
{
    return wf_fail(WEFT_ERR_INVALID, "%s: the %s has %d dimension%s; %s", function,
                   part_names[part], weft_spec_dims(spec), WF_PLURAL(weft_spec_dims(spec)), needs);
}

static weft_status place_weight(const weft_style *s, const weft_spec *spec, struct placed *out)
{
    bool is_row = s->kind == WEFT_STYLE_ROW;

    *out = plain("R");
    if (s->kind != WEFT_STYLE_COLUMN && !is_row) return WEFT_OK;
    if (weft_spec_dims(spec) < 2)
        return refuse_dims(WEFT_STYLE_WEIGHT, spec, "a column or row style needs 2");
    *out = split(is_row != s->embedding);
    return WEFT_OK;
}

static weft_status place_bias(const weft_style *s, const weft_spec *spec, struct placed *out)
{
    if (s->kind == WEFT_STYLE_COLUMN && weft_spec_dims(spec) < 1)
        return refuse_dims(WEFT_STYLE_BIAS, spec, "a column style needs 1");
    *out = s->kind == WEFT_STYLE_COLUMN ? split(0) : plain("R");
    return WEFT_OK;
}

/* The layout in which the module computes with its input, or computes its output. */
static weft_status place_value(const weft_style *s, enum weft_style_part part,
                               const weft_spec *spec, struct placed *out)
{
    int32_t last = weft_spec_dims(spec) - 1;
    bool is_input = part == WEFT_STYLE_INPUT, splits_last = false;

    *out = plain("R");
    if (s->kind == WEFT_STYLE_SEQUENCE) {
        int32_t dim = s->sequence_dim == 0 ? 1 : s->sequence_dim;
        if (dim < 0 || dim > last)
            return refuse_dims(part, spec, "it has no dimension of the sequence");
        *out = split(dim);
        return WEFT_OK;
    }
    if (s->kind == WEFT_STYLE_COLUMN) splits_last = !is_input;
    if (s->kind == WEFT_STYLE_ROW) splits_last = is_input && !s->embedding;
    if (s->kind == WEFT_STYLE_LOSS) splits_last = is_input;
    if (!is_input && (s->kind == WEFT_STYLE_ROW || s->kind == WEFT_STYLE_LOSS)) *out = plain("P");
    if (splits_last && last < 0) return refuse_dims(part, spec, "the style splits the last one");
    if (splits_last) *out = split(last);
    return WEFT_OK;
}

/* Forward, PART is moved from *FROM to *TO. */
static weft_status place(const weft_style *s, enum weft_style_part part, const weft_spec *spec,
                         struct placed *from, struct placed *to)
{
    if (s->kind == WEFT_STYLE_PLACED) {
        *to = plain(s->passed);
        *from = s->given != NULL ? plain(s->given) : *to;
        return WEFT_OK;
    }
    if (part == WEFT_STYLE_WEIGHT) WF_TRY(place_weight(s, spec, from));
    if (part == WEFT_STYLE_BIAS) WF_TRY(place_bias(s, spec, from));
    if (part >= WEFT_STYLE_INPUT) WF_TRY(place_value(s, part, spec, from));
    *to = *from;
    if (part == WEFT_STYLE_INPUT && s->given != NULL) *from = plain(s->given);
    if (part == WEFT_STYLE_OUTPUT && strcmp(text_of(from), "P") == 0) *to = plain("R");
    if (part == WEFT_STYLE_OUTPUT && s->passed != NULL) *to = plain(s->passed);
    return WEFT_OK;
}

/* SPEC with PLACED on AXIS. */
static weft_status with_placement(const weft_spec *spec, int32_t axis, const char *placed,
                                  weft_spec **out)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    weft_placement placements[WEFT_MAX_AXES], new_one[1];
    weft_status status;

    memcpy(placements, weft_spec_placements(spec),
           (size_t)weft_mesh_axes(mesh) * sizeof *placements);
    WF_TRY(weft_placements_parse(placed, 1, new_one));
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        placements[a].turn = 0; /* the default order: one axis is new */
    placements[axis] = new_one[0];
    status = weft_spec_create(mesh, weft_spec_dtype(spec), weft_spec_dims(spec),
                              weft_spec_shape(spec), placements, out);
    weft_placements_free(1, new_one);
    return status;
}

static weft_status check(const weft_style *s, enum weft_style_part part, const weft_spec *spec,
                         int32_t axis)
{
    if ((int)part < 0 || part > WEFT_STYLE_OUTPUT)
        return wf_fail(WEFT_ERR_INVALID, "%s: part %d is not a weight, bias, input or output",
                       function, (int)part);
    if (s->kind > WEFT_STYLE_PLACED)
        return wf_fail(WEFT_ERR_INVALID, "%s: kind %u is not an enum weft_style_kind", function,
                       s->kind);
    if (s->kind == WEFT_STYLE_PLACED && s->passed == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: a style PLACED needs `passed`", function);
    if (axis < 0 || axis >= weft_mesh_axes(weft_spec_mesh(spec)))
        return wf_fail(WEFT_ERR_INVALID, "%s: axis is %d; the number of axes of the mesh is %d",
                       function, axis, weft_mesh_axes(weft_spec_mesh(spec)));
    return WEFT_OK;
}

weft_status wf_style_place(const weft_style *style, enum weft_style_part part,
                           const weft_spec *spec, int32_t axis, weft_spec **from, weft_spec **to)
{
    struct placed texts[2];
    weft_status status;

    WF_TRY(check(style, part, spec, axis));
    WF_TRY(place(style, part, spec, &texts[0], &texts[1]));
    WF_TRY(wf_fail_named(with_placement(spec, axis, text_of(&texts[0]), from), function));
    status = wf_fail_named(with_placement(spec, axis, text_of(&texts[1]), to), function);
    if (status != WEFT_OK) weft_spec_release(from);
    return status;
}

/* The layout of a gradient: as SPEC, but R where SPEC is partial on AXIS and, if it is the DUAL, P
 * where SPEC is R. */
static weft_status gradient_of(const weft_spec *spec, int32_t axis, bool dual, weft_spec **out)
{
    const weft_placement *p = &weft_spec_placements(spec)[axis];

    if (p->kind == WEFT_PLACE_PARTIAL && p->reduction != WEFT_REDUCE_SUM && dual)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "of partial placements, only P(sum) has a gradient");
    if (p->kind == WEFT_PLACE_PARTIAL) return with_placement(spec, axis, "R", out);
    if (p->kind == WEFT_PLACE_REPLICATE && dual) return with_placement(spec, axis, "P", out);
    *out = weft_spec_retain(spec);
    return WEFT_OK;
}

/* The gradient of an output arrives in the layout in which the output was passed on.  The gradient
 * of an input or parameter is computed as the dual of the layout in which that was used. */
static weft_status add_gradients(enum weft_style_part part, int32_t axis, weft_spec **out)
{
    bool is_output = part == WEFT_STYLE_OUTPUT;

    WF_TRY(gradient_of(out[WEFT_STYLE_TO], axis, !is_output, &out[WEFT_STYLE_GRADIENT_FROM]));
    return gradient_of(out[WEFT_STYLE_FROM], axis, is_output, &out[WEFT_STYLE_GRADIENT_TO]);
}

weft_status weft_style_layouts(const weft_style *style, enum weft_style_part part,
                               const weft_spec *spec, int32_t axis, weft_spec **out)
{
    weft_style given = {0};
    weft_spec *made[WEFT_STYLE_LAYOUTS] = {0};
    weft_status status;

    if (style == NULL) return wf_fail_null(function, "style");
    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_style_layouts: spec"));
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_style", style, &given, sizeof given), function));
    status = wf_style_place(&given, part, spec, axis, &made[WEFT_STYLE_FROM], &made[WEFT_STYLE_TO]);
    if (status == WEFT_OK) status = wf_fail_named(add_gradients(part, axis, made), function);
    for (int i = 0; i < WEFT_STYLE_LAYOUTS; i++) {
        if (status != WEFT_OK)
            weft_spec_release(&made[i]);
        else
            out[i] = made[i];
    }
    return status;
}
