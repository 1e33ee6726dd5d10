/* lower.c - from compute actions to all actions of a rank. */
#include "schedule.h"

#include <string.h>

enum { WINDOW = 3 }; /* stages whose parameters are gathered ahead */

/* ---- merging ---- */

/* Action AT of ROW is I, and W of the same microbatch is right behind it. */
static bool merges(const weft_schedule_action *row, size_t count, size_t at)
{
    const weft_schedule_action *a = &row[at];

    return a->kind == WEFT_SCHEDULE_ACTION_I && a->with_next == 0 && at + 1 < count &&
           a[1].kind == WEFT_SCHEDULE_ACTION_W && a[1].stage == a->stage &&
           a[1].microbatch == a->microbatch;
}

static void add_merged(const weft_schedule_action *row, size_t count, int32_t rank,
                       struct wf_draft *out)
{
    for (size_t i = 0; i < count; i++) {
        weft_schedule_action a = row[i];
        if (merges(row, count, i)) {
            a.kind = WEFT_SCHEDULE_ACTION_B;
            i++;
        }
        wf_draft_add(out, rank, a);
    }
}

/* ---- UNSHARD and RESHARD ---- */

struct window {
    int32_t stages[WINDOW], count;
};

static bool has(const struct window *w, int32_t stage)
{
    for (int32_t i = 0; i < w->count; i++)
        if (w->stages[i] == stage) return true;
    return false;
}

static void remove_stage(struct window *w, int32_t stage)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < w->count; i++)
        if (w->stages[i] != stage) w->stages[kept++] = w->stages[i];
    w->count = kept;
}

/* The next stages from each action on: the stage of the action before is put in front of them. */
static void find_windows(const struct wf_row *row, struct window *windows)
{
    struct window now = {.count = 0};

    for (size_t i = row->count; i-- > 0;) {
        int32_t stage = row->actions[i].stage;
        remove_stage(&now, stage);
        if (now.count == WINDOW) now.count--;
        memmove(now.stages + 1, now.stages, (size_t)now.count * sizeof now.stages[0]);
        now.stages[0] = stage;
        now.count++;
        windows[i] = now;
    }
}

static void add_sharded(const struct wf_row *row, int32_t rank, const struct window *windows,
                        struct wf_draft *out)
{
    struct window active = {.count = 0};

    for (size_t i = 0; i < row->count; i++) {
        bool second = i > 0 && row->actions[i - 1].with_next != 0;
        const struct window *next = &windows[i];
        struct window before = active;
        for (int32_t j = 0; !second && j < before.count; j++) {
            if (has(next, before.stages[j])) continue;
            wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_RESHARD, before.stages[j], -1);
            remove_stage(&active, before.stages[j]);
        }
        for (int32_t j = 0; !second && j < next->count; j++) {
            if (has(&active, next->stages[j])) continue;
            wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_UNSHARD, next->stages[j], -1);
            active.stages[active.count++] = next->stages[j];
        }
        wf_draft_add(out, rank, row->actions[i]);
    }
    for (int32_t j = 0; j < active.count; j++)
        wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_RESHARD, active.stages[j], -1);
}

/* Replace the rows of DRAFT by rows with UNSHARD and RESHARD. */
static weft_status shard(struct wf_draft *draft)
{
    struct wf_draft out;

    WF_TRY(wf_draft_begin(draft->ranks, &out));
    for (int32_t r = 0; r < draft->ranks; r++) {
        const struct wf_row *row = &draft->rows[r];
        struct window *windows = wf_alloc(row->count * sizeof *windows);
        if (windows == NULL) {
            out.failed = true;
            break;
        }
        find_windows(row, windows);
        add_sharded(row, r, windows, &out);
        wf_free(windows);
    }
    wf_draft_free(draft);
    *draft = out;
    return wf_draft_status(draft);
}

/* ---- REDUCE_GRAD ---- */

/* Replace the rows of DRAFT by rows with REDUCE_GRAD behind the last gradients of each stage. */
static weft_status reduce(const weft_schedule *s, struct wf_draft *draft)
{
    int32_t *left = wf_alloc((size_t)s->stages * sizeof *left);
    struct wf_draft out;
    weft_status status = wf_draft_begin(draft->ranks, &out);

    if (left == NULL && status == WEFT_OK) status = wf_fail_memory(sizeof *left);
    for (int32_t stage = 0; status == WEFT_OK && stage < s->stages; stage++)
        left[stage] = s->microbatches;
    for (int32_t r = 0; status == WEFT_OK && r < draft->ranks; r++)
        for (size_t i = 0; i < draft->rows[r].count; i++) {
            weft_schedule_action a = draft->rows[r].actions[i];
            wf_draft_add(&out, r, a);
            if (a.kind != WEFT_SCHEDULE_ACTION_B && a.kind != WEFT_SCHEDULE_ACTION_W) continue;
            if (--left[a.stage] == 0)
                wf_draft_put(&out, r, WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT, a.stage, -1);
        }
    wf_free(left);
    if (status == WEFT_OK) status = wf_draft_status(&out);
    wf_draft_free(draft);
    *draft = out;
    return status;
}

/* ---- all passes ---- */

static weft_status copy_compute(const weft_schedule *s, bool merge, struct wf_draft *out)
{
    WF_TRY(wf_draft_begin(s->ranks, out));
    for (int32_t r = 0; r < s->ranks; r++) {
        const weft_schedule_action *row = s->actions + s->first[r];
        size_t count = s->first[r + 1] - s->first[r];
        if (merge)
            add_merged(row, count, r, out);
        else
            for (size_t i = 0; i < count; i++)
                wf_draft_add(out, r, row[i]);
    }
    return wf_draft_status(out);
}

static weft_status add_messages(const weft_schedule *s, bool late, struct wf_draft *draft)
{
    struct wf_draft out = {0}, deferred = {0};
    weft_status status = wf_add_sends(s, draft, &out);

    if (status == WEFT_OK && late) {
        status = wf_defer_receives(s, &out, &deferred);
        wf_draft_free(&out);
        out = deferred;
    }
    wf_draft_free(draft);
    *draft = out;
    return status;
}

/* Actions of the result, before it is made; at least, if parameters are sharded. */
static size_t count_lowered(const weft_schedule *s, uint32_t flags)
{
    size_t count = s->first[s->ranks], stages = (size_t)s->stages;

    for (int32_t r = 0; r < s->ranks && flags & WEFT_LOWER_MERGE; r++)
        for (size_t i = s->first[r]; i < s->first[r + 1]; i++)
            count -= merges(s->actions, s->first[r + 1], i);
    for (int32_t stage = 1; stage < s->stages; stage++)
        if (wf_schedule_peer(s, stage, -1) >= 0) count += 4 * (size_t)s->microbatches;
    if (flags & WEFT_LOWER_SHARDED) count += 2 * stages;
    return flags & WEFT_LOWER_REDUCE ? count + stages : count;
}

weft_status weft_schedule_lower(const weft_schedule *schedule, uint32_t flags, weft_schedule **out)
{
    struct wf_draft draft = {0};
    weft_status status;

    WF_TRY(wf_require(schedule, "weft_schedule_lower: schedule"));
    WF_TRY(wf_require(out, "weft_schedule_lower: out"));
    if (flags >= WEFT_LOWER_LATE << 1)
        return wf_fail(WEFT_ERR_INVALID, "weft_schedule_lower: flags are 0x%x; known are 0x%x",
                       flags, (WEFT_LOWER_LATE << 1) - 1);
    for (size_t i = 0; i < schedule->first[schedule->ranks]; i++)
        if (!wf_action_computes(&schedule->actions[i]))
            return wf_fail_named(
                wf_schedule_refuse(schedule, i, "only schedules of compute actions are lowered"),
                "weft_schedule_lower");
    if (count_lowered(schedule, flags) > (size_t)WEFT_SCHEDULE_ACTIONS)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_schedule_lower: with sends and receives, the schedule has at least "
                       "%zu actions; the maximum is %lld",
                       count_lowered(schedule, flags), (long long)WEFT_SCHEDULE_ACTIONS);
    status = copy_compute(schedule, (flags & WEFT_LOWER_MERGE) != 0, &draft);
    if (status == WEFT_OK && flags & WEFT_LOWER_SHARDED) status = shard(&draft);
    if (status == WEFT_OK && flags & WEFT_LOWER_REDUCE) status = reduce(schedule, &draft);
    if (status == WEFT_OK) status = add_messages(schedule, flags & WEFT_LOWER_LATE, &draft);
    if (status == WEFT_OK) return wf_draft_finish(&draft, schedule->name, out);
    wf_draft_free(&draft);
    return status;
}
