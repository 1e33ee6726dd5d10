/* print.c - tensors as text, in the format of NumPy. */
#include "tensor.h"

#include <string.h>

enum { WIDTH = 75 }; /* columns of a line */

/* The elements, written row by row. */
struct writer {
    const struct wf_shown *shown;
    struct wf_figures figures;
    struct wf_text *out;
    size_t line;    /* where the line begins in OUT */
    int64_t number; /* of the next element */
};

/* Write WORD; on a new line, indented by DEPTH + 1, if it does not fit before the brackets. */
static void add_word(struct writer *w, const char *word, int32_t depth)
{
    size_t room = (size_t)(WIDTH - depth - 1), indent = (size_t)depth + 1;

    if (w->out->length - w->line + strlen(word) > room && w->out->length - w->line > indent) {
        while (w->out->length > 0 && w->out->data[w->out->length - 1] == ' ')
            w->out->length--;
        wf_text_char(w->out, '\n');
        w->line = w->out->length;
        wf_text_add(w->out, "%*s", (int)indent, "");
    }
    wf_text_add(w->out, "%s", word);
}

/* What separates two entries of dimension DEPTH. */
static void add_separator(struct writer *w, int32_t depth)
{
    int32_t below = w->shown->dims - depth - 1;

    if (below == 0) {
        wf_text_char(w->out, ' ');
        return;
    }
    for (int32_t i = 0; i < below; i++)
        wf_text_char(w->out, '\n');
    w->line = w->out->length;
    wf_text_add(w->out, "%*s", depth + 1, "");
}

static void add_element(struct writer *w, int32_t depth)
{
    size_t bytes = wf_dtype_bytes(w->shown->dtype);
    char word[WF_FIGURE_BYTES];

    wf_figure_print(&w->figures, w->shown->elements + (size_t)w->number * bytes, word);
    w->number++;
    add_word(w, word, depth);
}

/* Write the rest of the array, from its element 0 on, without recursion: AT has the position in
 * each dimension. */
static void add_array(struct writer *w)
{
    const struct wf_shown *shown = w->shown;
    int64_t at[WEFT_MAX_DIMS] = {0};
    int32_t d = 0;

    while (d >= 0) {
        for (; d < shown->dims; d++)
            wf_text_char(w->out, '[');
        add_element(w, shown->dims - 1);
        for (d = shown->dims - 1; d >= 0 && ++at[d] == shown->counts[d]; d--) {
            at[d] = 0;
            wf_text_char(w->out, ']');
        }
        if (d < 0) break;
        add_separator(w, d);
        if (at[d] == shown->edge && shown->counts[d] < shown->shape[d]) {
            add_word(w, "...", d);
            add_separator(w, d);
        }
        d++;
    }
}

static void add_elements(struct wf_text *out, const struct wf_shown *shown)
{
    struct writer w = {.shown = shown, .out = out};

    w.line = out->length;
    wf_figures_choose(&w.figures, shown->dtype, shown->elements, shown->count);
    if (shown->count == 0)
        wf_text_add(out, "[]");
    else if (shown->dims == 0)
        add_element(&w, 0);
    else
        add_array(&w);
    wf_text_char(out, '\n');
}

/* ---- the first line ---- */

static void add_list(struct wf_text *out, int32_t count, const int64_t *numbers)
{
    for (int32_t i = 0; i < count; i++)
        wf_text_add(out, "%s%lld", i == 0 ? "[" : ",", (long long)numbers[i]);
    wf_text_add(out, count == 0 ? "[]" : "]");
}

static void add_shard(struct wf_text *out, const struct wf_local *local)
{
    const weft_shard *shard = &local->shard;

    wf_text_add(out, ", rank %d ", local->rank);
    if (!shard->member) {
        wf_text_add(out, "is outside the mesh\n");
        return;
    }
    wf_text_add(out, "holds ");
    add_list(out, shard->dims, shard->shape);
    wf_text_add(out, " from ");
    add_list(out, shard->dims, shard->offset);
    wf_text_char(out, '\n');
}

/* ---- public functions ---- */

static weft_status check_call(const weft_tensor *tensor, weft_stream *stream, const char *text,
                              size_t size, const char *function)
{
    WF_TRY(wf_tensor_check(tensor, function, "tensor"));
    if (size > 0 && text == NULL) return wf_fail_null(function, "text");
    return wf_stream_check(tensor->context, stream, function);
}

static weft_status add_local(struct wf_text *out, const weft_tensor *tensor,
                             const struct wf_local *local, weft_stream *stream)
{
    const weft_shard *shard = &local->shard;
    struct wf_shown shown;
    weft_status status;

    wf_shown_choose(&shown, shard->dims, shard->shape, tensor->spec->layout.dtype);
    if (shard->elements == 0) shown.count = 0;
    wf_layout_add(tensor->spec, tensor->name, out);
    add_shard(out, local);
    status = wf_shown_read(&shown, tensor, local, stream);
    if (status == WEFT_OK && shard->member) add_elements(out, &shown);
    wf_shown_free(&shown);
    return status;
}

weft_status weft_tensor_print(weft_tensor *tensor, weft_stream *stream, char *text, size_t size,
                              size_t *needed)
{
    static const char what[] = "weft_tensor_print";
    struct wf_text printed = {0};
    weft_status status = WEFT_OK;

    WF_TRY(check_call(tensor, stream, text, size, what));
    for (int32_t i = 0; i < tensor->local_count && status == WEFT_OK; i++)
        status = add_local(&printed, tensor, &tensor->locals[i], stream);
    if (status == WEFT_OK) return wf_text_copy_out(&printed, text, size, needed);
    wf_text_free(&printed);
    return wf_tensor_fail(tensor, status, what);
}

/* The call of a rank that knows the tensor: the ranks compare what they pass.  *OUT is the layout
 * without partials. */
static weft_status agree_on_call(const weft_tensor *tensor, const char *function,
                                 weft_status status, weft_spec **out)
{
    if (status == WEFT_OK) status = weft_spec_gradient(tensor->spec, out);
    status = wf_tensors_agree(tensor->context,
                              &(struct wf_passed){.from = tensor->spec, .from_name = tensor->name},
                              function, status);
    if (status != WEFT_OK) weft_spec_release(out);
    return status;
}

weft_status weft_tensor_full_print(weft_tensor *tensor, const weft_move_options *options,
                                   weft_stream *stream, char *text, size_t size, size_t *needed)
{
    static const char what[] = "weft_tensor_full_print";
    const struct wf_moving *how = NULL;
    struct wf_moving room;
    weft_tensor *reduced = NULL;
    struct wf_text printed = {0};
    weft_spec *spec = NULL;
    struct wf_shown shown;
    bool member = false;
    weft_status status = check_call(tensor, stream, text, size, what);

    if (tensor == NULL || !wf_tensor_is_usable(tensor)) return status;
    if (status == WEFT_OK) status = wf_moving_read(options, what, &room, &how);
    WF_TRY(agree_on_call(tensor, what, status, &spec));
    wf_shown_choose(&shown, tensor->spec->layout.dims, tensor->spec->layout.shape,
                    tensor->spec->layout.dtype);
    status = wf_tensor_in(tensor, spec, how, stream, what, WEFT_OK, &reduced);
    wf_layout_add(tensor->spec, tensor->name, &printed);
    wf_text_char(&printed, '\n');
    status =
        wf_shown_gather(&shown, reduced != NULL ? reduced : tensor, stream, what, status, &member);
    if (status == WEFT_OK && member) add_elements(&printed, &shown);
    wf_shown_free(&shown);
    weft_tensor_release(&reduced);
    weft_spec_release(&spec);
    if (status == WEFT_OK) return wf_text_copy_out(&printed, text, size, needed);
    wf_text_free(&printed);
    return wf_tensor_fail(tensor, status, what);
}
