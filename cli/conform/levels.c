/* levels.c - the list of levels, and the loop of a rank over them. */
#include "conform/progress.h"

#include <string.h>

const struct kit_level kit_levels[] = {
    {"load", "the plugin loads, describes itself and keeps nothing behind", kit_level_load},
    {"claims", "the support query is pure, the same everywhere, and true", kit_level_claims},
    {"memory", "allocation, copies, fills and pointer queries", kit_level_memory},
    {"streams", "streams are queues in order, and events tie them together", kit_level_streams},
    {"collectives", "every collective x dtype x reduction claimed", kit_level_collectives},
    {"p2p", "messages between two ranks", kit_level_p2p},
    {"groups", "operations that start together", kit_level_groups},
    {"errors", "wrong arguments, lost ranks, aborts: nobody hangs", kit_level_errors},
    {"symm", "memory that all ranks of a communicator reach", kit_level_symm},
    {"kernel", "local copies and arithmetic", kit_level_kernel},
    {"host", "copies in place of kernels, for plugins without them", kit_level_host},
    {"pull", "redistribution in one pass", kit_level_pull},
    {"stress", "much at once", kit_level_stress},
};
const size_t kit_level_count = WF_COUNT(kit_levels);

int kit_level_find(const char *name, size_t length)
{
    for (size_t i = 0; i < kit_level_count; i++)
        if (strlen(kit_levels[i].name) == length && memcmp(kit_levels[i].name, name, length) == 0)
            return (int)i;
    return -1;
}

static bool wanted(const struct kit_options *options, int level)
{
    const char *only = options->only, *name = options->level;

    if (name != NULL && kit_level_find(name, strlen(name)) != level) return false;
    return only == NULL || only[0] == '*' || kit_level_find(only, strcspn(only, "/")) == level;
}

static bool may_run(const struct kit *kit)
{
    return !kit->options->threads || (kit->info.features & WEFT_FEATURE_THREADS) != 0;
}

static weft_status open_device(struct kit *kit)
{
    weft_device_options options = {
        .struct_size = sizeof options, .local_rank = kit_local_rank(kit), .device = -1};

    WF_TRY(kit->plugin->device->open(&options, &kit->device));
    kit->info.struct_size = sizeof kit->info;
    return kit->plugin->device->describe(kit->device, &kit->info);
}

/* Open the device of this rank and query the plugin's support.  This does not belong to a level,
 * because every level needs it.  False if a rank cannot continue. */
static bool make_ready(struct kit *kit)
{
    uint32_t ready = 0, all[KIT_MAX_RANKS];

    if (kit->plugin != NULL && kit_aside(kit, "load/open"))
        ready = open_device(kit) == WEFT_OK && kit->device != NULL && may_run(kit);
    kit_gather(kit, &kit->groups[0], &ready, all, sizeof ready);
    kit_aside_over(kit);
    for (int32_t rank = 0; rank < kit->size; rank++)
        if (!all[rank]) return false;
    if (kit->plugin->comm == NULL) return true;
    if (!kit_aside(kit, "claims/read")) return false;
    kit_claims_read(kit);
    kit_aside_over(kit);
    return true;
}

/* Without a device no other case can run.  So this runs for every team and independently of the
 * requested cases. */
static void report_closed(struct kit *kit)
{
    kit->level = 0;
    if (kit->progress->avoid_count > 0) return; /* the failure is recorded */
    kit->any_case = true;
    kit->case_number = kit->progress->resume_after;
    if (!kit_begin(kit, "plugin")) return;
    if (kit->plugin == NULL)
        kit_fail(kit, "%s", kit->opened->refusal);
    else if (kit->device == NULL)
        kit_fail(kit, "the device cannot be opened: %s", weft_last_error());
    else if (!may_run(kit))
        kit_fail(kit, "--threads, but the plugin does not have WEFT_FEATURE_THREADS");
    kit_end(kit);
}

void kit_rank_main(struct kit *kit)
{
    kit->job = kit->progress->job;
    kit->case_failed = true; /* none is open */
    kit_groups_make(kit);
    if (kit->rank == 0) kit->progress->plugin = *kit->opened;
    if (!make_ready(kit)) {
        report_closed(kit);
        return;
    }
    for (size_t i = 0; i < kit_level_count; i++) {
        kit->level = (int)i;
        if (wanted(kit->options, (int)i)) kit_levels[i].run(kit);
        if (kit->over) break;
        kit_synchronize(kit, kit->groups[0].ranks, kit->size);
        if (kit->rank == 0) atomic_store(&kit->progress->levels[i].done, 1);
    }
    kit_comms_drop(kit);
    kit_blocks_free(kit);
    kit->plugin->device->close(kit->device);
}
