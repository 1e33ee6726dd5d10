/* window.c - windows of the plugin, over the communicators of groups. */
#include "window.h"

#define LIMIT_NS (5 * KIT_SECOND)

bool kit_window_make(struct kit *kit, struct kit_group *group, uint64_t bytes, uint32_t signals,
                     struct kit_window *out)
{
    *out =
        (struct kit_window){.kit = kit, .table = kit->plugin->symm, .group = group, .bytes = bytes};
    if (group->mine < 0) return false;
    out->comm = kit_comm(kit, group);
    if (out->comm == NULL) return false;
    if (!kit_ok(kit, "window_create",
                out->table->window_create(out->comm, bytes, signals, &out->window, &out->local)))
        return false;
    return kit_check(kit, out->window != NULL && (bytes == 0 || out->local != NULL),
                     "window_create: WEFT_OK without a window or its memory");
}

void kit_window_free(struct kit_window *w)
{
    if (w->window == NULL) return;
    kit_ok(w->kit, "window_destroy", w->table->window_destroy(w->window));
    w->window = NULL;
}

bool kit_window_done(struct kit_window *w, const char *what, weft_status status, void *stream)
{
    return kit_ok(w->kit, what, status) &&
           kit_ok(w->kit, what, kit_finish(w->kit, w->comm, stream, LIMIT_NS));
}

bool kit_window_read(struct kit_window *w, uint64_t offset, void *out, uint64_t bytes)
{
    return kit_copy(w->kit, out, (const uint8_t *)w->local + offset, bytes);
}
