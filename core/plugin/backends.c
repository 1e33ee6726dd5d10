/* backends.c - the list of candidates, the trace, and the choice of the serving plugin. */
#include "plugin.h"

#include <string.h>

static const char *const reasons[] = {
#define ROW(name, value, text) [value] = text,
    WEFT_BACKEND_REASON_LIST(ROW)
#undef ROW
};

const char *weft_backend_reason_text(enum weft_backend_reason reason)
{
    return reason < WF_COUNT(reasons) ? reasons[reason] : "unknown";
}

void weft_backends_release(weft_backends **backends)
{
    weft_backends *b;

    if (backends == NULL || *backends == NULL) return;
    b = *backends;
    for (size_t i = 0; i < b->candidate_count; i++) {
        wf_free(b->candidates[i].name);
        wf_free(b->candidates[i].file);
        wf_free(b->candidates[i].reason_text);
    }
    for (size_t i = 0; i < b->line_count; i++)
        wf_free(b->lines[i].text);
    wf_free(b->candidates);
    wf_free(b->lines);
    wf_directories_free(&b->directories);
    wf_choice_free(&b->choice);
    wf_free(b->wanted);
    wf_free(b);
    *backends = NULL;
}

size_t weft_backends_count(const weft_backends *backends)
{
    return backends != NULL ? backends->candidate_count : 0;
}

size_t weft_backends_trace_count(const weft_backends *backends)
{
    return backends != NULL ? backends->line_count : 0;
}

weft_status weft_backends_get(const weft_backends *backends, size_t index, weft_backend_info *out)
{
    const struct wf_candidate *candidate;
    const weft_plugin *plugin;
    weft_backend_info info;

    if (backends == NULL || out == NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_backends_get: %s is NULL",
                       backends == NULL ? "backends" : "out");
    if (index >= backends->candidate_count)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_backends_get: index is %zu, but there are %zu candidates", index,
                       backends->candidate_count);
    candidate = &backends->candidates[index];
    plugin = weft_backends_plugin(backends, index);
    info = (weft_backend_info){
        .name = candidate->name,
        .file = candidate->file,
        .version = plugin != NULL ? plugin->version : NULL,
        .build = plugin != NULL ? plugin->build : NULL,
        .description = plugin != NULL ? plugin->description : NULL,
        .library = candidate->library,
        .abi_major = plugin != NULL ? plugin->abi_major : 0,
        .abi_minor = plugin != NULL ? plugin->abi_minor : 0,
        .reason = candidate->reason,
        .reason_text = candidate->reason_text,
        .score = candidate->score,
        .device_count = candidate->device_count,
    };
    return wf_info_write("weft_backend_info", &info, sizeof info, out);
}

weft_status weft_backends_trace_get(const weft_backends *backends, size_t index,
                                    weft_backend_trace_info *out)
{
    weft_backend_trace_info info;

    if (backends == NULL || out == NULL)
        return wf_fail_null("weft_backends_trace_get", backends == NULL ? "backends" : "out");
    if (index >= backends->line_count)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_backends_trace_get: index is %zu, but the trace has %zu lines", index,
                       backends->line_count);
    info = (weft_backend_trace_info){.text = backends->lines[index].text,
                                     .candidate = backends->lines[index].candidate};
    return wf_info_write("weft_backend_trace_info", &info, sizeof info, out);
}

const char *weft_backends_wanted(const weft_backends *backends, const char **origin)
{
    if (backends == NULL) return NULL;
    if (origin != NULL) *origin = backends->origin;
    return backends->wanted;
}

const weft_plugin *weft_backends_plugin(const weft_backends *backends, size_t index)
{
    const struct wf_loaded *loaded = backends != NULL && index < backends->candidate_count
                                         ? backends->candidates[index].loaded
                                         : NULL;

    return loaded != NULL ? &loaded->tables.plugin : NULL;
}

const weft_plugin *wf_backends_plugin(const weft_backends *backends, size_t index)
{
    if (index >= backends->candidate_count ||
        backends->candidates[index].reason != WEFT_BACKEND_REASON_USABLE)
        return NULL;
    return weft_backends_plugin(backends, index);
}

/* ---- choosing ---- */

static bool serves(const weft_backends *backends, size_t index, enum weft_backend_role role)
{
    const weft_plugin *plugin = wf_backends_plugin(backends, index);

    if (plugin == NULL || plugin->comm == NULL) return false;
    return role == WEFT_BACKEND_ROLE_COMM || plugin->symm != NULL;
}

/* The candidate an item of the choice means, or WF_NO_CANDIDATE.  Shadowed ones come later. */
static size_t find_meant(const weft_backends *backends, const struct wf_choice_item *item)
{
    for (size_t i = 0; i < backends->candidate_count; i++) {
        const struct wf_candidate *candidate = &backends->candidates[i];

        if (item->kind == WF_CHOOSE_PATH ? candidate->path_item == item
                                         : strcmp(candidate->name, item->text) == 0)
            return i;
    }
    return WF_NO_CANDIDATE;
}

/* Highest score, then the first by name: the same on every rank with the same plugins. */
static size_t find_best(const weft_backends *backends)
{
    size_t best = WF_NO_CANDIDATE;

    for (size_t i = 0; i < backends->candidate_count; i++) {
        const struct wf_candidate *candidate = &backends->candidates[i];
        const struct wf_candidate *so_far =
            best != WF_NO_CANDIDATE ? &backends->candidates[best] : NULL;

        if (!serves(backends, i, WEFT_BACKEND_ROLE_COMM) || candidate->score <= 0) continue;
        if (so_far == NULL || candidate->score > so_far->score ||
            (candidate->score == so_far->score && strcmp(candidate->name, so_far->name) < 0))
            best = i;
    }
    return best;
}

/* The plugin of the first item from *ITEM on that can serve.  *ITEM becomes that item. */
static size_t pick_comm(const weft_backends *backends, size_t *item)
{
    for (; *item < backends->choice.count; (*item)++) {
        const struct wf_choice_item *wanted = &backends->choice.items[*item];
        size_t index = WF_NO_CANDIDATE;

        if (wanted->kind == WF_CHOOSE_AUTO)
            index = find_best(backends);
        else if (wanted->kind != WF_CHOOSE_EXCLUDE)
            index = find_meant(backends, wanted);
        if (index != WF_NO_CANDIDATE && serves(backends, index, WEFT_BACKEND_ROLE_COMM))
            return index;
    }
    return WF_NO_CANDIDATE;
}

/* A plugin listed after the communicating one can only be meant for symmetric memory, so it is
 * preferred to the communicating plugin's own.  Auto never adds a second plugin: only the user
 * knows whether the two can share memory. */
static size_t pick_symm(const weft_backends *backends, size_t *item)
{
    size_t comm = pick_comm(backends, item);

    for (size_t later = *item + 1; later < backends->choice.count; later++) {
        const struct wf_choice_item *wanted = &backends->choice.items[later];
        size_t index = WF_NO_CANDIDATE;

        if (wanted->kind == WF_CHOOSE_NAME || wanted->kind == WF_CHOOSE_PATH)
            index = find_meant(backends, wanted);
        if (index == WF_NO_CANDIDATE || !serves(backends, index, WEFT_BACKEND_ROLE_SYMM)) continue;
        *item = later;
        return index;
    }
    return comm != WF_NO_CANDIDATE && serves(backends, comm, WEFT_BACKEND_ROLE_SYMM)
               ? comm
               : WF_NO_CANDIDATE;
}

static size_t pick(const weft_backends *backends, enum weft_backend_role role, size_t *item)
{
    *item = 0;
    return role == WEFT_BACKEND_ROLE_COMM ? pick_comm(backends, item) : pick_symm(backends, item);
}

size_t wf_backends_pick(const weft_backends *backends, enum weft_backend_role role)
{
    size_t item;

    return pick(backends, role, &item);
}

static const char *why_not(const weft_backends *backends, size_t index, enum weft_backend_role role)
{
    const weft_plugin *plugin = wf_backends_plugin(backends, index);

    if (plugin == NULL) return backends->candidates[index].reason_text;
    if (plugin->comm == NULL) return "it is usable, but has no comm table";
    if (role == WEFT_BACKEND_ROLE_SYMM && plugin->symm == NULL)
        return "it is usable, but has no symm table";
    return backends->candidates[index].score <= 0 ? "its score is 0, so auto does not choose it"
                                                  : "it is usable, but another plugin communicates";
}

/* The error text has one line, with the reason, per candidate that the choice names. */
static weft_status fail_choice(const weft_backends *backends, enum weft_backend_role role)
{
    struct wf_text text = {0};
    size_t listed = 0;

    for (size_t i = 0; i < backends->candidate_count; i++) {
        const struct wf_candidate *candidate = &backends->candidates[i];
        uint32_t reason = candidate->reason;

        if (reason == WEFT_BACKEND_REASON_EXCLUDED || reason == WEFT_BACKEND_REASON_SHADOWED)
            continue;
        wf_text_add(&text, "%s%s: %s: %s", listed++ > 0 ? "\n  " : "", candidate->name,
                    weft_backend_reason_text(reason), why_not(backends, i, role));
    }
    if (listed == 0) {
        wf_text_add(&text, "no plugin is in ");
        for (size_t i = 0; i < backends->directories.count; i++)
            wf_text_add(&text, "%s%s", i > 0 ? ", " : "", backends->directories.items[i].path);
        wf_text_add(&text, "; run `weft why` for details");
    }
    return wf_fail_text(WEFT_ERR_NO_BACKEND, &text, "%s is \"%s\", and no plugin can serve%s: %s%s",
                        backends->origin, backends->wanted,
                        role == WEFT_BACKEND_ROLE_SYMM ? " symmetric memory" : "",
                        listed > 1 ? "\n  " : "", text.data);
}

/* True if an item of the choice, from FIRST up to END, names candidate INDEX. */
static bool is_named(const weft_backends *backends, size_t first, size_t end, size_t index)
{
    for (size_t i = first; i < end; i++)
        if (backends->choice.items[i].kind != WF_CHOOSE_EXCLUDE &&
            find_meant(backends, &backends->choice.items[i]) == index)
            return true;
    return false;
}

static bool is_broken(const weft_backends *backends, size_t index)
{
    uint32_t reason = backends->candidates[index].reason;

    return reason != WEFT_BACKEND_REASON_USABLE && reason != WEFT_BACKEND_REASON_EXCLUDED &&
           reason != WEFT_BACKEND_REASON_SHADOWED;
}

/* Log one line about candidates that the choice prefers to CHOSEN, of ITEM, but that cannot serve:
 * names listed before it and, for auto, candidates that do not work here. */
static weft_status log_fallback(const weft_backends *backends, size_t chosen, size_t item)
{
    bool by_auto = backends->choice.items[item].kind == WF_CHOOSE_AUTO;
    struct wf_text text = {0};
    weft_status status;

    for (size_t i = 0; i < backends->candidate_count; i++) {
        bool broken = is_broken(backends, i);

        if ((by_auto && broken) || is_named(backends, 0, item, i))
            wf_text_add(&text, "%s%s (%s)", text.length > 0 ? ", " : "",
                        backends->candidates[i].name,
                        broken ? weft_backend_reason_text(backends->candidates[i].reason)
                               : "lacks a table");
    }
    status = wf_text_status(&text);
    if (status == WEFT_OK && text.length > 0)
        wf_log(WF_LOG_NOTICE, "%s is \"%s\": %s serves instead of %s; run `weft why` for details",
               backends->origin, backends->wanted, backends->candidates[chosen].name, text.data);
    wf_text_free(&text);
    return status;
}

/* The same for symmetric memory: names listed after the communicating plugin that do not work here.
 */
static weft_status log_second(const weft_backends *backends, size_t chosen, size_t item)
{
    size_t first = 0, comm = pick_comm(backends, &first);
    size_t end = chosen == comm ? backends->choice.count : item;
    struct wf_text text = {0};
    weft_status status;

    for (size_t i = 0; i < backends->candidate_count; i++)
        if (is_broken(backends, i) && is_named(backends, first + 1, end, i))
            wf_text_add(&text, "%s%s (%s)", text.length > 0 ? ", " : "",
                        backends->candidates[i].name,
                        weft_backend_reason_text(backends->candidates[i].reason));
    status = wf_text_status(&text);
    if (status == WEFT_OK && text.length > 0)
        wf_log(WF_LOG_NOTICE,
               "%s is \"%s\": symmetric memory comes from %s instead of %s; run `weft why` for "
               "details",
               backends->origin, backends->wanted, backends->candidates[chosen].name, text.data);
    wf_text_free(&text);
    return status;
}

weft_status weft_backends_choose(const weft_backends *backends, enum weft_backend_role role,
                                 size_t *index)
{
    size_t item, chosen;

    if (backends == NULL || index == NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_backends_choose: %s is NULL",
                       backends == NULL ? "backends" : "index");
    chosen = pick(backends, role, &item);
    if (chosen == WF_NO_CANDIDATE) return fail_choice(backends, role);
    WF_TRY(role == WEFT_BACKEND_ROLE_COMM ? log_fallback(backends, chosen, item)
                                          : log_second(backends, chosen, item));
    *index = chosen;
    return WEFT_OK;
}
