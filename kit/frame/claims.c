/* claims.c - the support that the plugin claims. */
#include "kit.h"

bool kit_is_question(uint32_t collective, uint32_t dtype, uint32_t reduction)
{
    if (collective == WEFT_COLL_BARRIER) return dtype == 0 && reduction == 0;
    return wf_collective_reduces(collective) || reduction == 0;
}

static uint8_t ask(struct kit *kit, uint32_t collective, uint32_t dtype, uint32_t reduction,
                   int32_t size)
{
    weft_support_query query = {.struct_size = sizeof query,
                                .collective = collective,
                                .dtype = dtype,
                                .reduction = reduction,
                                .size = size};
    uint32_t level = WEFT_SUPPORT_NO;

    if (!kit_is_question(collective, dtype, reduction)) return WEFT_SUPPORT_NO;
    if (kit->plugin->comm->support(kit->device, &query, &level) != WEFT_OK) return WEFT_SUPPORT_NO;
    return (uint8_t)level;
}

int kit_first_claimed(const struct kit *kit, uint32_t collective, uint32_t reduction,
                      const uint32_t *dtypes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (kit->groups[0].claims[collective][dtypes[i]][reduction] != WEFT_SUPPORT_NO)
            return (int)dtypes[i];
    return -1;
}

void kit_claims_read(struct kit *kit)
{
    static const size_t bytes = sizeof kit->groups[0].claims;
    uint8_t others[KIT_MAX_RANKS][sizeof kit->groups[0].claims];

    for (int g = 0; g < kit->group_count; g++) {
        struct kit_group *group = &kit->groups[g];
        uint8_t *mine = &group->claims[0][0][0];

        for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++)
            for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
                for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++)
                    group->claims[c][d][r] = ask(kit, c, d, r, group->size);
        kit_gather(kit, &kit->groups[0], mine, others, bytes);
        for (int32_t rank = 0; rank < kit->size; rank++)
            for (size_t i = 0; i < bytes; i++)
                if (others[rank][i] < mine[i]) mine[i] = others[rank][i];
    }
}
