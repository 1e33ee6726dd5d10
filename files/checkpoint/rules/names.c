/* names.c - patterns of names: texts, {captures}, * and {a,b,c}. */
#include "checkpoint/rules/rules.h"

#include <string.h>

/* ---- reading ---- */

static weft_status find_capture(struct wf_arena *arena, struct wf_capture_names *names,
                                const char *text, size_t length, uint8_t *out)
{
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->names[i]) == length && memcmp(names->names[i], text, length) == 0) {
            *out = (uint8_t)i;
            return WEFT_OK;
        }
    if (names->count == WF_MOST_CAPTURES)
        return wf_fail(WEFT_ERR_PARSE, "a rule has at most %d captures", WF_MOST_CAPTURES);
    names->names[names->count] = wf_arena_text(arena, text, length);
    if (names->names[names->count] == NULL) return wf_fail_memory(length + 1);
    *out = (uint8_t)names->count++;
    return WEFT_OK;
}

static weft_status read_choices(struct wf_arena *arena, const char *text, size_t length,
                                struct wf_pattern *out)
{
    size_t count = 1, at = 0;

    if (out->choice_count > 0) return wf_fail(WEFT_ERR_PARSE, "a name has one list at most");
    for (size_t i = 0; i < length; i++)
        count += text[i] == ',';
    out->choices = wf_arena_alloc(arena, count * sizeof *out->choices);
    if (out->choices == NULL) return wf_fail_memory(count * sizeof *out->choices);
    for (size_t i = 0; i < count; i++) {
        size_t end = at;
        while (end < length && text[end] != ',')
            end++;
        out->choices[i] = wf_arena_text(arena, text + at, end - at);
        if (out->choices[i] == NULL) return wf_fail_memory(end - at + 1);
        at = end + 1;
    }
    out->choice_count = count;
    return WEFT_OK;
}

/* The part in braces. */
static weft_status read_braces(struct wf_arena *arena, const char *text, size_t length,
                               struct wf_capture_names *names, struct wf_pattern *out,
                               struct wf_name_part *part)
{
    if (memchr(text, ',', length) != NULL) {
        part->kind = WF_NAME_CHOICE;
        return read_choices(arena, text, length, out);
    }
    for (size_t i = 0; i < length; i++)
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
              (text[i] >= '0' && text[i] <= '9') || text[i] == '_'))
            length = 0;
    if (length == 0)
        return wf_fail(WEFT_ERR_PARSE, "expected a name in braces, or a list such as {q,k,v}");
    part->kind = WF_NAME_CAPTURE;
    WF_TRY(find_capture(arena, names, text, length, &part->capture));
    out->captures |= UINT32_C(1) << part->capture;
    return WEFT_OK;
}

static weft_status read_star(struct wf_arena *arena, struct wf_capture_names *names,
                             struct wf_pattern *out, struct wf_name_part *part)
{
    char name[3] = {'*', '0', '\0'};

    for (size_t i = 0; i < out->count; i++)
        name[1] = (char)(name[1] + (out->parts[i].kind == WF_NAME_STAR));
    part->kind = WF_NAME_STAR;
    WF_TRY(find_capture(arena, names, name, 2, &part->capture));
    out->captures |= UINT32_C(1) << part->capture;
    return WEFT_OK;
}

weft_status wf_pattern_read(struct wf_arena *arena, const char *text, size_t length,
                            struct wf_capture_names *names, struct wf_pattern *out)
{
    size_t at = 0;

    *out = (struct wf_pattern){.text = wf_arena_text(arena, text, length),
                               .parts = wf_arena_alloc(arena, WF_MOST_PARTS * sizeof *out->parts)};
    if (out->text == NULL || out->parts == NULL) return wf_fail_memory(length + 1);
    while (at < length) {
        struct wf_name_part part = {.kind = WF_NAME_TEXT, .text = out->text + at};
        if (out->count == WF_MOST_PARTS)
            return wf_fail(WEFT_ERR_PARSE, "the name has too many parts");
        if (text[at] == '{') {
            const char *end = memchr(text + at, '}', length - at);
            if (end == NULL) return wf_fail(WEFT_ERR_PARSE, "a { has no }");
            WF_TRY(read_braces(arena, text + at + 1, (size_t)(end - text) - at - 1, names, out,
                               &part));
            at = (size_t)(end - text) + 1;
        } else if (text[at] == '*') {
            WF_TRY(read_star(arena, names, out, &part));
            at++;
        } else {
            for (; at < length && text[at] != '{' && text[at] != '*'; at++)
                part.length++;
        }
        out->parts[out->count++] = part;
    }
    return WEFT_OK;
}

/* ---- matching ---- */

/* Names are not trusted: a long one could take years to compare with several stars.  It does not
 * match then, and the error names it. */
enum { MOST_WORK = 10000000 };

struct matching {
    const struct wf_pattern *pattern;
    const char *choice;
    struct wf_bound bound;
    int64_t work;
};

static bool match_from(struct matching *m, size_t index, const char *name);

/* The text of LENGTH bytes must be next. */
static bool match_text(struct matching *m, size_t index, const char *name, const char *text,
                       size_t length)
{
    return strncmp(name, text, length) == 0 && match_from(m, index + 1, name + length);
}

static bool match_from(struct matching *m, size_t index, const char *name)
{
    const struct wf_name_part *part = &m->pattern->parts[index];
    size_t capture, length;

    if (++m->work > MOST_WORK) return false;
    if (index == m->pattern->count) return *name == '\0';
    if (part->kind == WF_NAME_TEXT) return match_text(m, index, name, part->text, part->length);
    if (part->kind == WF_NAME_CHOICE)
        return match_text(m, index, name, m->choice, strlen(m->choice));
    capture = part->capture;
    if (m->bound.text[capture] != NULL)
        return match_text(m, index, name, m->bound.text[capture], m->bound.length[capture]);
    /* a capture has at least one byte and no dot; the shortest text that fits is taken */
    for (length = part->kind == WF_NAME_STAR ? 0 : 1;; length++) {
        if (part->kind == WF_NAME_CAPTURE && (name[length - 1] == '.' || name[length - 1] == '\0'))
            break;
        m->bound.text[capture] = name;
        m->bound.length[capture] = length;
        if (match_from(m, index + 1, name + length)) return true;
        if (name[length] == '\0') break;
    }
    m->bound.text[capture] = NULL;
    return false;
}

bool wf_pattern_match(const struct wf_pattern *pattern, size_t choice, const char *name,
                      struct wf_bound *bound)
{
    struct matching m = {.pattern = pattern, .bound = *bound};

    if (pattern->choice_count > 0) m.choice = pattern->choices[choice];
    if (!match_from(&m, 0, name)) return false;
    *bound = m.bound;
    return true;
}

bool wf_pattern_name(const struct wf_pattern *pattern, size_t choice, const struct wf_bound *bound,
                     struct wf_text *out)
{
    for (size_t i = 0; i < pattern->count; i++) {
        const struct wf_name_part *part = &pattern->parts[i];
        if (part->kind == WF_NAME_TEXT) {
            wf_text_append(out, part->text, part->length);
        } else if (part->kind == WF_NAME_CHOICE) {
            wf_text_append(out, pattern->choices[choice], strlen(pattern->choices[choice]));
        } else if (bound->text[part->capture] != NULL) {
            wf_text_append(out, bound->text[part->capture], bound->length[part->capture]);
        } else {
            return false;
        }
    }
    return true;
}
