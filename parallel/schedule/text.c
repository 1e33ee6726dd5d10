/* text.c - schedules as the CSV text that PyTorch writes and reads:
 *
 *     row    = [ field { "," field } ]                              one per rank
 *     field  = [ action | "(" action ";" action ")OVERLAP_F_B" ]    nothing: an idle slot
 *     action = STAGE KIND [ MICROBATCH ]
 *
 * A single action may be a wait (waits.c).  A field may stand in quotes, and blanks around it.
 * Empty lines at the end are ignored. */
#include "schedule.h"

#include <string.h>

struct reader {
    struct wf_scan scan;
    struct wf_draft draft;
    int32_t rank;
};

static weft_status expected(const struct reader *r, const char *what)
{
    return wf_scan_fail(&r->scan, "schedule", "expected %s", what);
}

static weft_status read_number(struct reader *r, const char *what, int32_t *out)
{
    int64_t value;

    WF_TRY(wf_scan_int(&r->scan, what, &value));
    if (value >= INT32_MAX / 4)
        return wf_scan_refuse(&r->scan, "schedule", "%s is too large", what);
    *out = (int32_t)value;
    return WEFT_OK;
}

/* Take the longest kind that is next. */
static weft_status read_kind(struct reader *r, uint8_t *out)
{
    const char *found = NULL;

    for (int kind = 0; kind < WF_TEXT_KINDS; kind++) {
        const char *name = wf_text_kind_name(kind);
        if (strncmp(r->scan.text + r->scan.at, name, strlen(name)) != 0) continue;
        if (found != NULL && strlen(found) > strlen(name)) continue;
        found = name;
        *out = (uint8_t)kind;
    }
    if (found == NULL)
        return expected(r, "F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD, "
                           "REDUCE_GRAD, WAIT_SEND_F, WAIT_SEND_B or WAIT_REDUCE_GRAD");
    r->scan.at += strlen(found);
    return WEFT_OK;
}

static weft_status read_action(struct reader *r, weft_schedule_action *out)
{
    *out = (weft_schedule_action){.microbatch = -1};
    WF_TRY(read_number(r, "a stage", &out->stage));
    WF_TRY(read_kind(r, &out->kind));
    if (out->kind <= WEFT_SCHEDULE_ACTION_RECV_B || out->kind == WF_WAIT_SEND_F ||
        out->kind == WF_WAIT_SEND_B)
        return read_number(r, "a microbatch", &out->microbatch);
    return WEFT_OK;
}

static weft_status read_field(struct reader *r)
{
    weft_schedule_action a, b;

    while (r->draft.ranks <= r->rank) {
        if (r->draft.ranks == WEFT_SCHEDULE_RANKS)
            return wf_scan_refuse(&r->scan, "schedule", "there are more than %d ranks",
                                  WEFT_SCHEDULE_RANKS);
        if (!wf_draft_grow(&r->draft)) return wf_fail_memory(sizeof(struct wf_row));
    }
    if (!wf_scan_char(&r->scan, '(')) {
        WF_TRY(read_action(r, &a));
        wf_draft_add(&r->draft, r->rank, a);
        return wf_draft_status(&r->draft);
    }
    WF_TRY(read_action(r, &a));
    if (!wf_scan_char(&r->scan, ';')) return expected(r, ";");
    WF_TRY(read_action(r, &b));
    if (!wf_scan_word(&r->scan, ")OVERLAP_F_B")) return expected(r, ")OVERLAP_F_B");
    if (a.kind >= WEFT_SCHEDULE_ACTION_KINDS ||
        b.kind >= WEFT_SCHEDULE_ACTION_KINDS) /* a wait is dropped alone */
        return wf_scan_refuse(&r->scan, "schedule",
                              "OVERLAP_F_B takes one forward and one backward");
    a.with_next = 1;
    wf_draft_add(&r->draft, r->rank, a);
    wf_draft_add(&r->draft, r->rank, b);
    return wf_draft_status(&r->draft);
}

static bool at_end_of_field(const struct reader *r)
{
    char c = wf_scan_peek(&r->scan);

    return c == ',' || c == '\r' || c == '\n' || c == '\0';
}

static weft_status read_row(struct reader *r)
{
    do {
        bool quoted;
        wf_scan_space(&r->scan);
        quoted = wf_scan_char(&r->scan, '"');
        if (quoted) wf_scan_space(&r->scan);
        if (!at_end_of_field(r) && wf_scan_peek(&r->scan) != '"') WF_TRY(read_field(r));
        wf_scan_space(&r->scan);
        if (quoted && !wf_scan_char(&r->scan, '"')) return expected(r, "\"");
        wf_scan_space(&r->scan);
    } while (wf_scan_char(&r->scan, ','));
    (void)wf_scan_char(&r->scan, '\r');
    if (wf_scan_char(&r->scan, '\n') || wf_scan_end(&r->scan)) return WEFT_OK;
    return expected(r, "\",\" or the end of the line");
}

weft_status weft_schedule_parse(const char *text, weft_schedule **out)
{
    struct reader r = {.scan = {text, 0}};
    weft_status status = WEFT_OK;

    WF_TRY(wf_require(text, "weft_schedule_parse: text"));
    WF_TRY(wf_require(out, "weft_schedule_parse: out"));
    for (; status == WEFT_OK && !wf_scan_end(&r.scan); r.rank++)
        status = read_row(&r);
    if (status == WEFT_OK && r.draft.ranks == 0)
        status = wf_fail(WEFT_ERR_PARSE, "schedule: the text has no actions");
    if (status == WEFT_OK) return wf_draft_finish(&r.draft, "csv", out);
    wf_draft_free(&r.draft);
    return status;
}

weft_status weft_schedule_print(const weft_schedule *schedule, uint32_t flags, char *text,
                                size_t size, size_t *needed)
{
    bool with_waits = (flags & WEFT_SCHEDULE_PRINT_WAITS) != 0;
    struct wf_text printed = {0};

    WF_TRY(wf_require(schedule, "weft_schedule_print: schedule"));
    if ((flags & ~(uint32_t)WEFT_SCHEDULE_PRINT_WAITS) != 0)
        return wf_fail(WEFT_ERR_INVALID, "weft_schedule_print: flags are %#x; known ones are %#x",
                       flags, WEFT_SCHEDULE_PRINT_WAITS);
    if (size > 0) WF_TRY(wf_require(text, "weft_schedule_print: text"));
    for (int32_t r = 0; r < schedule->ranks; r++) {
        for (size_t i = schedule->first[r]; i < schedule->first[r + 1]; i++) {
            const weft_schedule_action *a = &schedule->actions[i];
            if (i > schedule->first[r]) wf_text_char(&printed, ',');
            wf_action_add(&printed, a, a + 1);
            if (with_waits) wf_waits_add(&printed, schedule, a);
            if (with_waits && a->with_next) wf_waits_add(&printed, schedule, a + 1);
            if (a->with_next) i++;
        }
        if (with_waits) wf_waits_end(&printed, schedule, r);
        wf_text_char(&printed, '\n');
    }
    return wf_text_copy_out(&printed, text, size, needed);
}
