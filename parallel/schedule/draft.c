/* draft.c - rows of actions that grow, and become a schedule. */
#include "schedule.h"

#include <string.h>

weft_status wf_draft_begin(int32_t ranks, struct wf_draft *out)
{
    *out = (struct wf_draft){.ranks = ranks};
    out->rows = wf_calloc((size_t)ranks, sizeof *out->rows);
    return out->rows != NULL ? WEFT_OK : wf_fail_memory((size_t)ranks * sizeof *out->rows);
}

bool wf_draft_grow(struct wf_draft *draft)
{
    size_t count = (size_t)draft->ranks;
    struct wf_row *rows = wf_realloc(draft->rows, (count + 1) * sizeof *rows);

    if (rows == NULL) return false;
    memset(&rows[count], 0, sizeof *rows);
    draft->rows = rows;
    draft->ranks++;
    return true;
}

void wf_draft_add(struct wf_draft *draft, int32_t rank, weft_schedule_action action)
{
    struct wf_row *row = &draft->rows[rank];

    if (draft->count == (size_t)WEFT_SCHEDULE_ACTIONS) {
        draft->full = true;
        return;
    }
    if (row->count == row->room) {
        size_t room = row->room != 0 ? 2 * row->room : 64;
        weft_schedule_action *grown = wf_realloc(row->actions, room * sizeof *grown);
        if (grown == NULL) {
            draft->failed = true;
            return;
        }
        row->actions = grown;
        row->room = room;
    }
    row->actions[row->count++] = action;
    draft->count++;
}

void wf_draft_put(struct wf_draft *draft, int32_t rank, uint8_t kind, int32_t stage,
                  int32_t microbatch)
{
    wf_draft_add(draft, rank,
                 (weft_schedule_action){.stage = stage, .microbatch = microbatch, .kind = kind});
}

weft_status wf_draft_status(const struct wf_draft *draft)
{
    if (draft->failed) return wf_fail_memory(sizeof(weft_schedule_action));
    if (!draft->full) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "schedule: it has more than %lld actions",
                   (long long)WEFT_SCHEDULE_ACTIONS);
}

void wf_draft_free(struct wf_draft *draft)
{
    for (int32_t r = 0; draft->rows != NULL && r < draft->ranks; r++)
        wf_free(draft->rows[r].actions);
    wf_free(draft->rows);
    *draft = (struct wf_draft){0};
}

static uint64_t digest_of(const weft_schedule *s)
{
    uint64_t h = wf_hash_mix((uint64_t)s->ranks, 1);

    for (int32_t r = 0; r < s->ranks; r++) {
        h = wf_hash_mix(h, s->first[r + 1] - s->first[r]);
        for (size_t i = s->first[r]; i < s->first[r + 1]; i++) {
            const weft_schedule_action *a = &s->actions[i];
            h = wf_hash_mix(h, (uint64_t)(uint32_t)a->stage << 32 | (uint32_t)a->microbatch);
            h = wf_hash_mix(h, (uint64_t)a->kind << 1 | a->with_next);
        }
    }
    return h;
}

static weft_status copy_rows(const struct wf_draft *draft, weft_schedule *s)
{
    size_t count = draft->count;

    s->first = wf_calloc((size_t)draft->ranks + 1, sizeof *s->first);
    s->actions = wf_alloc(count * sizeof *s->actions);
    if (s->first == NULL || s->actions == NULL) return wf_fail_memory(count * sizeof *s->actions);
    for (int32_t r = 0; r < draft->ranks; r++) {
        const struct wf_row *row = &draft->rows[r];
        s->first[r + 1] = s->first[r] + row->count;
        if (row->count > 0)
            memcpy(s->actions + s->first[r], row->actions, row->count * sizeof *row->actions);
    }
    return WEFT_OK;
}

weft_status wf_draft_finish(struct wf_draft *draft, const char *name, weft_schedule **out)
{
    weft_schedule *s = wf_calloc(1, sizeof *s);
    weft_status status = s != NULL ? wf_draft_status(draft) : wf_fail_memory(sizeof *s);

    if (s != NULL) {
        atomic_init(&s->references, 1);
        s->ranks = draft->ranks;
        memcpy(s->name, name, strnlen(name, sizeof s->name - 1));
    }
    if (status == WEFT_OK) status = copy_rows(draft, s);
    wf_draft_free(draft);
    if (status == WEFT_OK) status = wf_schedule_validate(s);
    if (status != WEFT_OK) {
        weft_schedule_release(&s);
        return status;
    }
    s->digest = digest_of(s);
    *out = s;
    return WEFT_OK;
}
