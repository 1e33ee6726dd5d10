/* rank.c - what a rank does: it opens its device and runs the levels. */
#include "run.h"

#include <string.h>

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
    WF_TRY(kit_device_open(kit, -1, &kit->device));
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
    kit->level_name = kit_levels[0].name;
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

static void run_row(struct kit *kit, const struct kit_row *row)
{
    if (kit->over || !row->when(kit)) return;
    if (row->is_case && !kit_begin(kit, "%s", row->path)) return;
    row->run(kit);
    if (row->is_case) kit_end(kit);
}

static void run_level(struct kit *kit, int number)
{
    const struct kit_level *level = &kit_levels[number];

    kit->level = number;
    kit->level_name = level->name;
    if (!wanted(kit->options, number) || !level->when(kit)) return;
    for (const struct kit_row *row = level->rows; row->run != NULL; row++)
        run_row(kit, row);
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
        run_level(kit, (int)i);
        if (kit->over) break;
        kit_synchronize(kit, kit->groups[0].ranks, kit->size);
        if (kit->rank == 0) atomic_store(&kit->progress->levels[i].done, 1);
    }
    kit_comms_drop(kit);
    kit_blocks_free(kit);
    kit->plugin->device->close(kit->device);
}
