/* slabs.c - scratch memory of bound plans.
 *
 * Plans that run one after the other can use the same memory: after wf_slabs_rewind the next one
 * is given what the one before had, as far as it is large enough. */
#include "bound.h"

weft_status wf_slabs_take(struct wf_slabs *slabs, weft_context *context, uint64_t bytes, void **out)
{
    struct wf_slab *fits = NULL, *list;

    for (uint32_t i = 0; i < slabs->count; i++) {
        struct wf_slab *slab = &slabs->list[i];
        if (slab->taken || slab->bytes < bytes) continue;
        if (fits == NULL || slab->bytes < fits->bytes) fits = slab;
    }
    if (fits == NULL) {
        list = wf_realloc(slabs->list, (slabs->count + 1) * sizeof *list);
        if (list == NULL) return wf_fail_memory((slabs->count + 1) * sizeof *list);
        slabs->list = list;
        fits = &list[slabs->count];
        WF_TRY(weft_alloc(context, bytes, WEFT_MEMORY_DEVICE, &fits->memory));
        fits->bytes = bytes;
        slabs->count++;
        slabs->bytes += bytes;
    }
    fits->taken = true;
    *out = fits->memory;
    return WEFT_OK;
}

void wf_slabs_rewind(struct wf_slabs *slabs)
{
    for (uint32_t i = 0; i < slabs->count; i++)
        slabs->list[i].taken = false;
}

void wf_slabs_free(struct wf_slabs *slabs, weft_context *context)
{
    for (uint32_t i = 0; i < slabs->count; i++)
        if (weft_free(context, slabs->list[i].memory) != WEFT_OK)
            wf_log(WF_WARNING, "scratch was not freed: %s", weft_last_error());
    wf_free(slabs->list);
    *slabs = (struct wf_slabs){0};
}
