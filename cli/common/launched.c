/* launched.c - see launched.h. */
#include "common/launched.h"

enum { ROOM = 4096 }; /* values that are summed at once */

weft_status cli_launched_join(struct cli_launched *out)
{
    weft_launch_info launch = {.struct_size = sizeof launch};
    void *memory = NULL;

    *out = (struct cli_launched){.size = 1};
    WF_TRY(weft_launch_get(&launch));
    if (launch.size == 1) return WEFT_OK;
    WF_TRY(weft_init(NULL, &out->context));
    out->rank = weft_rank(out->context);
    out->size = weft_size(out->context);
    WF_TRY(weft_alloc(out->context, ROOM * sizeof *out->memory, WEFT_MEMORY_DEVICE, &memory));
    out->memory = memory;
    return WEFT_OK;
}

weft_status cli_launched_sum(const struct cli_launched *launched, size_t count, uint64_t *values)
{
    weft_context *context = launched->context;

    while (count > 0) {
        size_t part = count < ROOM ? count : ROOM, bytes = part * sizeof *values;

        WF_TRY(weft_memory_copy(context, values, launched->memory, bytes, NULL));
        WF_TRY(weft_all_reduce(weft_world(context), launched->memory, launched->memory, part,
                               WEFT_DTYPE_U64, WEFT_REDUCE_SUM, NULL));
        WF_TRY(weft_memory_copy(context, launched->memory, values, bytes, NULL));
        WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
        values += part;
        count -= part;
    }
    return WEFT_OK;
}

weft_status cli_launched_leave(struct cli_launched *launched)
{
    if (launched->context == NULL) return WEFT_OK;
    WF_TRY(weft_free(launched->context, launched->memory));
    weft_context_release(&launched->context);
    return WEFT_OK;
}
