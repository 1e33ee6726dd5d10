/* when.c - conditions of cases in several levels. */
#include "cases.h"

bool kit_when_always(struct kit *kit)
{
    (void)kit;
    return true;
}

bool kit_when_comm(struct kit *kit)
{
    if (kit->plugin->comm == NULL) kit_skip(kit, "the plugin has no comm table");
    return kit->plugin->comm != NULL;
}

bool kit_when_host_memory(struct kit *kit)
{
    return (kit->info.features & WEFT_FEATURE_HOST_MEMORY) != 0;
}

bool kit_when_peers(struct kit *kit)
{
    return kit->size > 1;
}
