/* refuse.c - what errors about plans say of steps and memory. */
#include "plan.h"

void wf_plan_add_step_names(struct wf_text *out, uint32_t kinds)
{
    const char *gap = "";

    for (uint32_t kind = 0; kind < WEFT_STEP_KINDS; kind++) {
        if (!(kinds >> kind & 1)) continue;
        wf_text_add(out, "%s%s", gap, weft_step_name(kind));
        gap = ", ";
    }
}

weft_status wf_plan_refuse_memory(const char *which, uint64_t limit, uint64_t least)
{
    struct wf_text bytes = {0};

    if (least == UINT64_MAX) /* sums of bytes are capped there */
        return wf_fail(WEFT_ERR_INVALID,
                       "no plan%s stays within memory_limit, %llu byte%s of scratch, and no limit "
                       "is high enough: each "
                       "needs at least 2^64 - 1 bytes; make the tensor smaller",
                       which, (unsigned long long)limit, limit == 1 ? "" : "s");
    wf_text_bytes(&bytes, least);
    return wf_fail_text(
        WEFT_ERR_INVALID, &bytes,
        "no plan%s stays within memory_limit, %llu byte%s of scratch; the minimum is "
        "%llu (%s)",
        which, (unsigned long long)limit, limit == 1 ? "" : "s", (unsigned long long)least,
        bytes.data);
}
