/* shadow.c - rules that earlier rules leave nothing to.
 *
 * A rule that can never apply, because an earlier one takes every name that it matches, is an error
 * when the rules are read.  A rule whose tensors happen to be taken by earlier ones is reported
 * when rules are applied. */
#include "checkpoint/rules/rules.h"

#include <string.h>

/* A byte for each capture; those of stars stand for any text, with dots and without a byte. */
enum { OF_CAPTURE = 0x01, OF_STAR = 0x11 };

/* PATTERN with CHOICE as a name, in which its captures are one byte each. */
static weft_status make_probe(const struct wf_pattern *pattern, size_t choice, struct wf_text *out)
{
    char bytes[WF_MOST_CAPTURES];
    struct wf_bound bound = {0};

    for (size_t i = 0; i < pattern->count; i++) {
        const struct wf_name_part *part = &pattern->parts[i];
        bool is_star = part->kind == WF_NAME_STAR;
        if (!is_star && part->kind != WF_NAME_CAPTURE) continue;
        bytes[part->capture] = (char)((is_star ? OF_STAR : OF_CAPTURE) + part->capture);
        bound.text[part->capture] = &bytes[part->capture];
        bound.length[part->capture] = 1;
    }
    out->length = 0;
    wf_pattern_name(pattern, choice, &bound, out);
    wf_text_append(out, "", 0);
    return wf_text_status(out);
}

static bool has_star(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] >= OF_STAR && text[i] < OF_STAR + WF_MOST_CAPTURES) return true;
    return false;
}

/* Does PATTERN match PROBE, and does no capture of it, which has no dot, stand for a star? */
static bool takes_probe(const struct wf_pattern *pattern, const char *probe)
{
    size_t choices = pattern->choice_count > 0 ? pattern->choice_count : 1;

    for (size_t k = 0; k < choices; k++) {
        struct wf_bound bound = {0};
        bool takes = wf_pattern_match(pattern, k, probe, &bound);
        for (size_t i = 0; i < pattern->count && takes; i++) {
            const struct wf_name_part *part = &pattern->parts[i];
            if (part->kind == WF_NAME_CAPTURE)
                takes = !has_star(bound.text[part->capture], bound.length[part->capture]);
        }
        if (takes) return true;
    }
    return false;
}

/* Set *OUT to whether EARLIER matches every name that LATER matches.  False may be wrong. */
static weft_status covers(const struct wf_pattern *earlier, const struct wf_pattern *later,
                          bool *out)
{
    size_t choices = later->choice_count > 0 ? later->choice_count : 1;
    struct wf_text probe = {0};
    weft_status status = WEFT_OK;

    *out = true;
    for (size_t k = 0; k < choices && *out && status == WEFT_OK; k++) {
        status = make_probe(later, k, &probe);
        if (status == WEFT_OK) *out = takes_probe(earlier, probe.data);
    }
    wf_text_free(&probe);
    return status;
}

/* The pattern of the names that RULE takes, and whether it takes them whole. */
static const struct wf_pattern *taken_names(const struct wf_rule *rule, bool *whole, bool *tied)
{
    const struct wf_rule_term *term = rule->term;

    *whole = true;
    *tied = false;
    if (rule->kind != WF_RULE_MAP) return &rule->pattern;
    for (; term->function != WF_RULE_NAME; term = term->terms[0]) {
        *tied |= term->function == WF_RULE_TIE;
        *whole &= term->function != WF_RULE_TIE && term->function != WF_RULE_SLICE;
    }
    return &term->pattern;
}

static weft_status check_pair(const struct wf_rule *earlier, const struct wf_rule *later)
{
    bool whole, tied, unused, covered = false;
    const struct wf_pattern *taken, *wanted;

    if ((earlier->kind == WF_RULE_CASTS) != (later->kind == WF_RULE_CASTS)) return WEFT_OK;
    taken = taken_names(earlier, &whole, &unused);
    wanted = taken_names(later, &unused, &tied);
    if (!whole || tied) return WEFT_OK;
    WF_TRY(covers(taken, wanted, &covered));
    if (!covered) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE,
                   "rules, line %u: this rule can never apply: \"%.200s\" of line %u takes every "
                   "tensor that \"%.200s\" matches; put line %u before line %u, or remove it",
                   later->line, taken->text, earlier->line, wanted->text, later->line,
                   earlier->line);
}

weft_status wf_rules_check_order(const weft_checkpoint_rules *rules)
{
    for (size_t i = 1; i < rules->count; i++)
        for (size_t k = 0; k < i; k++)
            WF_TRY(check_pair(&rules->rules[k], &rules->rules[i]));
    return WEFT_OK;
}

/* ---- rules that are applied ---- */

static bool matches(const struct wf_pattern *pattern, const char *name)
{
    size_t choices = pattern->choice_count > 0 ? pattern->choice_count : 1;

    for (size_t i = 0; i < choices; i++) {
        struct wf_bound bound = {0};
        if (wf_pattern_match(pattern, i, name, &bound)) return true;
    }
    return false;
}

bool wf_rule_matches(const struct wf_rule *rule, const char *name)
{
    return matches(&rule->pattern, name);
}

void wf_rule_warn(const struct wf_mapping *mapping, const struct wf_rule *rule, const char *format,
                  ...)
{
    const char *path = mapping->rules->path;
    char text[1024];

    KIT_PRINT_REST(text, format);
    wf_log(WF_LOG_WARNING, "%s%srules, line %u: %s", path != NULL ? path : "",
           path != NULL ? ": " : "", rule->line, text);
}

/* Does the rule of LINE take whole tensors?  What rules leave of parts may be nothing. */
static bool takes_whole(const weft_checkpoint_rules *rules, uint32_t line)
{
    bool whole = false, unused;

    for (size_t i = 0; i < rules->count; i++)
        if (rules->rules[i].line == line) (void)taken_names(&rules->rules[i], &whole, &unused);
    return whole;
}

/* No tensor of BASE matches WANTED, the names that RULE takes. */
static weft_status refuse_unmatched(const weft_checkpoint *base, const struct wf_rule *rule,
                                    const char *wanted)
{
    for (size_t i = 0; rule->kind == WF_RULE_MAP && i < base->tensor_count; i++)
        if (wf_rule_matches(rule, base->tensors[i].name))
            return wf_fail(WEFT_ERR_NOT_FOUND,
                           "no tensor matches \"%.200s\", but tensor \"%.200s\" exists: the "
                           "checkpoint is as after this rule, and does not need it",
                           wanted, base->tensors[i].name);
    return wf_fail(WEFT_ERR_NOT_FOUND,
                   "no tensor matches \"%.200s\"; a rule that begins with ? may match none",
                   wanted);
}

weft_status wf_rule_unmatched(const struct wf_mapping *mapping, const struct wf_rule *rule)
{
    bool unused;
    const struct wf_pattern *wanted = taken_names(rule, &unused, &unused);
    const weft_checkpoint *base = mapping->base;
    size_t i = 0;

    while (i < base->tensor_count &&
           (mapping->lines[i] == 0 || !matches(wanted, base->tensors[i].name)))
        i++;
    if (i < base->tensor_count && !rule->optional)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "no tensor that is left matches \"%.200s\": line %u takes \"%.200s\"; put "
                       "this rule before line %u, or begin it with ? if it may match none",
                       wanted->text, mapping->lines[i], base->tensors[i].name, mapping->lines[i]);
    if (!rule->optional) return refuse_unmatched(base, rule, wanted->text);
    if (i < base->tensor_count && rule->kind == WF_RULE_DROP &&
        takes_whole(mapping->rules, mapping->lines[i]))
        wf_rule_warn(mapping, rule,
                     "\"%.200s\" drops nothing: line %u takes \"%.200s\"; to drop it, "
                     "put line %u before line %u",
                     wanted->text, mapping->lines[i], base->tensors[i].name, rule->line,
                     mapping->lines[i]);
    return WEFT_OK;
}
