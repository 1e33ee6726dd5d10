/* lines.c - lines of the graph of a model, and the names of results. */
#include "model/writer.h"

#include <stdarg.h>

void wf_model_put(struct wf_model_writer *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    wf_text_addv(w->out, format, args);
    va_end(args);
    wf_text_char(w->out, '\n');
}

void wf_model_put_layer(struct wf_model_writer *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    wf_text_addv(w->out, format, args);
    va_end(args);
    wf_text_add(w->out, "%s%s\n", w->layer, w->repeats ? " ; recompute" : "");
}

void wf_model_put_product(struct wf_model_writer *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    wf_text_addv(w->out, format, args);
    va_end(args);
    wf_text_add(w->out, "%s%s%s\n", w->f8 ? " ; f8" : "", w->layer,
                w->repeats ? " ; recompute" : "");
}

bool wf_model_makes(const struct wf_model_writer *w, enum wf_model_piece piece, bool again)
{
    return !again || (w->again >> piece & 1);
}

const char *wf_model_suffix(const struct wf_model_writer *w, enum wf_model_piece piece, bool again)
{
    return again && wf_model_makes(w, piece, true) ? ".again" : "";
}

bool wf_model_has_tp(const struct wf_model_writer *w)
{
    return w->sizes[WF_AXIS_TP] > 0;
}

const char *wf_model_put_whole(struct wf_model_writer *w, const char *tensor, const char *to)
{
    if (!wf_model_has_tp(w) || !w->in_parts) return tensor;
    wf_model_put_layer(w, "%s = move(%s)%s", to, tensor, w->whole);
    return to;
}
