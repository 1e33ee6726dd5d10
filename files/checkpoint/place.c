/* place.c - the layout of a tensor of a checkpoint: that of a layout file, whose sizes may be
 * numbers of the model, or its own. */
#include "file.h"

#include "weft/status.h"

#include <string.h>

void wf_placer_begin(struct wf_placer *placer, const weft_checkpoint *of,
                     const weft_layout_file *layout)
{
    *placer = (struct wf_placer){.of = of, .layout = layout};
}

void wf_placer_end(struct wf_placer *placer)
{
    wf_model_free(&placer->model);
}

static weft_status find_number(void *state, const char *name, size_t length, int64_t *out)
{
    struct wf_placer *placer = state;

    if (!placer->has_model) {
        WF_TRY(wf_model_read(placer->of, &placer->model));
        placer->has_model = true;
    }
    return wf_model_find(&placer->model, name, length, out);
}

weft_status wf_placer_fill(struct wf_placer *placer, const char *text, struct wf_text *out)
{
    return wf_text_fill(text, find_number, placer, out);
}

/* The parts into which SPEC, which may be NULL, splits dimension DIM; NULL: it does not. */
static const weft_placement *find_parts(const weft_spec *spec, int32_t dim)
{
    const weft_placement *placements;

    if (spec == NULL) return NULL;
    placements = weft_spec_placements(spec);
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (placements[a].kind == WEFT_PLACE_PARTS && placements[a].dim == dim)
            return &placements[a];
    return NULL;
}

bool wf_placements_fill(const char *text, const weft_spec *own, struct wf_text *out)
{
    bool found = false;

    for (const char *begin; (begin = strstr(text, "B(")) != NULL;) {
        size_t length = strcspn(begin, ")"), sizes = 1;
        const weft_placement *parts;

        if (begin[2] < '0' || begin[2] > '9' || begin[3] != ';') return false;
        parts = find_parts(own, begin[2] - '0');
        for (size_t i = 0; i < length; i++)
            sizes += begin[i] == ',';
        if (parts == NULL || parts->size_count != sizes) return false;
        wf_text_append(out, text, (size_t)(begin - text) + 4);
        for (size_t i = 0; i < sizes; i++)
            wf_text_add(out, "%s%lld", i > 0 ? "," : "", (long long)parts->sizes[i]);
        text = begin + length;
        found = true;
    }
    wf_text_add(out, "%s", text);
    return found && strchr(text, '$') == NULL;
}

weft_status wf_placer_text(struct wf_placer *placer, const struct wf_tensor *tensor,
                           struct wf_text *out)
{
    const char *text = NULL;
    weft_status status;

    out->length = 0;
    WF_TRY(weft_layout_file_find(placer->layout, tensor->name, &text));
    status = wf_placer_fill(placer, text, out);
    if (status != WEFT_ERR_NOT_FOUND) return status;
    out->length = 0;
    return wf_placements_fill(text, tensor->spec, out) ? wf_text_status(out) : status;
}

/* The layout that TENSOR has in the files of its checkpoint. */
static weft_status take_own(const struct wf_tensor *tensor, weft_spec **out)
{
    if (tensor->spec == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "layout is NULL, but only a checkpoint with a file per rank has layouts of "
                       "its own; give a layout");
    *out = weft_spec_retain(tensor->spec);
    return WEFT_OK;
}

weft_status wf_placer_spec(struct wf_placer *placer, const struct wf_tensor *tensor,
                           weft_spec **out)
{
    struct wf_text text = {0};
    weft_spec *spec = NULL;
    weft_status status;

    if (placer->layout == NULL) return take_own(tensor, out);
    status = wf_placer_text(placer, tensor, &text);
    if (status == WEFT_OK)
        status = wf_file_spec(weft_layout_file_mesh(placer->layout), tensor->dtype, tensor->dims,
                              tensor->shape, text.data, &spec);
    wf_text_free(&text);
    if (status == WEFT_OK) status = wf_placer_check(placer, tensor, spec);
    if (status == WEFT_OK)
        *out = spec;
    else
        weft_spec_release(&spec);
    return status;
}

weft_status weft_checkpoint_spec(const weft_checkpoint *checkpoint, size_t index,
                                 const weft_layout_file *layout, weft_spec **out)
{
    struct wf_placer placer;
    weft_status status;

    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_spec: checkpoint"));
    if (layout != NULL)
        WF_TRY(wf_require_kind(layout, WF_KIND_LAYOUT, "weft_checkpoint_spec: layout"));
    WF_TRY(wf_require(out, "weft_checkpoint_spec: out"));
    if (index >= checkpoint->tensor_count)
        return wf_fail(WEFT_ERR_NOT_FOUND, "weft_checkpoint_spec: index is %zu, but there are %zu",
                       index, checkpoint->tensor_count);
    wf_placer_begin(&placer, checkpoint, layout);
    status = wf_placer_spec(&placer, &checkpoint->tensors[index], out);
    wf_placer_end(&placer);
    if (status != WEFT_OK)
        wf_fail_context(status, "tensor \"%.200s\"", checkpoint->tensors[index].name);
    return wf_fail_named(status, "weft_checkpoint_spec");
}
