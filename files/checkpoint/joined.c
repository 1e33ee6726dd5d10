/* joined.c - tensors that rules join of several, such as q, k and v, and a layout that splits the
 * result as if it were one. */
#include "file.h"

#include "checkpoint/rules/view.h"

#include "weft/status.h"

#include <string.h>

/* The name of a tensor of which VIEW is made; NULL: it is made of zeros. */
static const char *source_of(const weft_checkpoint *base, const struct wf_view *view)
{
    while (view->kind != WF_VIEW_SOURCE && view->count > 0)
        view = view->children[0];
    return view->kind == WF_VIEW_SOURCE ? base->tensors[view->source].name : NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* True if the names differ in numbers only: the tensors are pieces of one. */
static bool are_pieces(const char *one, const char *other)
{
    for (;;) {
        while (is_digit(*one))
            one++;
        while (is_digit(*other))
            other++;
        if (*one != *other) return false;
        if (*one == '\0') return true;
        one++;
        other++;
    }
}

/* True if VIEW consists of tensors with different names, one behind the other. */
static bool is_joined(const weft_checkpoint *base, const struct wf_view *view)
{
    const char *first;

    if (view == NULL || view->kind != WF_VIEW_CAT || view->count < 2) return false;
    first = source_of(base, view->children[0]);
    for (size_t i = 1; i < view->count; i++) {
        const char *other = source_of(base, view->children[i]);

        if (first != NULL && other != NULL && !are_pieces(first, other)) return true;
    }
    return false;
}

/* The view that makes TENSOR of the base *BASE.  Of several lists of rules, one that keeps the
 * tensor is passed over, and *BASE is that of the list which makes it. */
static const struct wf_view *made_by(const struct wf_tensor *tensor, const weft_checkpoint **base)
{
    const struct wf_view *view = tensor->view;

    while (view != NULL && view->kind == WF_VIEW_SOURCE && (*base)->base != NULL) {
        view = (*base)->tensors[view->source].view;
        *base = (*base)->base;
    }
    return view;
}

/* True if SPEC splits dimension DIM among ranks without regard to parts. */
static bool is_split_whole(const weft_spec *spec, int32_t dim)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (placements[a].kind == WEFT_PLACE_SHARD && placements[a].dim == dim &&
            weft_mesh_axis_size(mesh, a) > 1)
            return true;
    return false;
}

static void warn(const weft_checkpoint *base, const struct wf_tensor *tensor,
                 const struct wf_view *view)
{
    struct wf_text sizes = {0};

    for (size_t i = 0; i < view->count; i++)
        wf_text_add(&sizes, "%s%lld", i > 0 ? "," : "",
                    (long long)view->children[i]->shape[view->dim]);
    if (!sizes.failed)
        wf_log(WF_LOG_WARNING,
               "the layout gives tensor \"%.200s\" S(%d), but the rules join it along dimension %d "
               "of %zu tensors with %s indices, the first of which is \"%.200s\": ranks get pieces "
               "of the whole, not a piece of each tensor; write B(%d;%s) in the layout",
               tensor->name, view->dim, view->dim, view->count, sizes.data,
               source_of(base, view->children[0]), view->dim, sizes.data);
    wf_text_free(&sizes);
}

void wf_joined_warn(const weft_checkpoint *checkpoint, const weft_layout_file *layout)
{
    bool has_warned = false;
    struct wf_placer placer;

    if (checkpoint->base == NULL) return;
    wf_placer_begin(&placer, checkpoint, layout);
    for (size_t i = 0; i < checkpoint->tensor_count && !has_warned; i++) {
        const struct wf_tensor *tensor = &checkpoint->tensors[i];
        const weft_checkpoint *base = checkpoint->base;
        const struct wf_view *view = made_by(tensor, &base);
        weft_spec *spec = NULL;

        if (!is_joined(base, view)) continue;
        if (wf_placer_spec(&placer, tensor, &spec) != WEFT_OK) continue; /* an error elsewhere */
        has_warned = is_split_whole(spec, view->dim);
        weft_spec_release(&spec);
        if (has_warned) warn(base, tensor, view);
    }
    wf_placer_end(&placer);
}
