/* choice.c - reads WEFT_BACKEND:
 *
 *     choice  = item { "," item }
 *     item    = "auto" | name | "^" name | path
 *     name    = [a-z0-9-]+          path = "/" ... up to a comma
 *
 * A list of exclusions alone means auto without these plugins.  A list with names and exclusions
 * needs auto, because exclusions apply to auto.  auto means all other plugins, so it is the last
 * item. */
#include "plugin.h"

#include <string.h>

enum { LONGEST_NAME = 63 };

static const char kind[] = "backend";

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool wf_plugin_name_valid(const char *name, size_t length)
{
    if (length == 0 || length > LONGEST_NAME) return false;
    if (length == 4 && memcmp(name, "auto", 4) == 0) return false;
    for (size_t i = 0; i < length; i++)
        if (!is_name_char(name[i])) return false;
    return true;
}

const struct wf_choice_item *wf_choice_find(const struct wf_choice *choice,
                                            enum wf_choice_kind wanted, const char *text)
{
    for (size_t i = 0; i < choice->count; i++)
        if (choice->items[i].kind == wanted &&
            (text == NULL || strcmp(choice->items[i].text, text) == 0))
            return &choice->items[i];
    return NULL;
}

void wf_choice_free(struct wf_choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        wf_free(choice->items[i].text);
    wf_free(choice->items);
    *choice = (struct wf_choice){0};
}

static weft_status add_item(struct wf_choice *choice, enum wf_choice_kind item_kind,
                            const char *text, size_t length)
{
    size_t bytes = (choice->count + 1) * sizeof *choice->items;
    struct wf_choice_item *grown = wf_realloc(choice->items, bytes);
    char *copy;

    if (grown == NULL) return wf_fail_memory(bytes);
    choice->items = grown;
    copy = wf_strndup(text, length);
    if (copy == NULL) return wf_fail_memory(length + 1);
    choice->items[choice->count++] = (struct wf_choice_item){item_kind, copy};
    return WEFT_OK;
}

/* A word with capitals or underscores: name it as plugins are named, in lower case with hyphens. */
static weft_status refuse_spelling(const struct wf_scan *scan, const char *word)
{
    size_t length = strcspn(word, ", \t/.^");
    char name[LONGEST_NAME + 1] = "";

    if (length > LONGEST_NAME) length = LONGEST_NAME;
    for (size_t i = 0; i < length; i++) {
        char c = word[i];
        name[i] = (char)(c == '_' ? '-' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        if (!is_name_char(name[i]))
            return wf_scan_fail(scan, kind, "names have lower-case letters, digits and -");
    }
    return wf_scan_refuse(scan, kind,
                          "\"%.*s\" is not a plugin's name: names have lower-case letters, digits "
                          "and -; write %s",
                          (int)length, word, name);
}

/* Take a name.  The error text describes what was found instead. */
static weft_status take_name(struct wf_scan *scan, size_t *length)
{
    const char *start = scan->text + scan->at;
    char next;

    *length = 0;
    while (is_name_char(start[*length]))
        (*length)++;
    scan->at += *length;
    if (*start == '/') return wf_scan_fail(scan, kind, "a path to a plugin must begin with /");
    if (start[strcspn(start, ",/.")] != ',' && start[strcspn(start, ",/.")] != '\0')
        return wf_scan_refuse(scan, kind, "a path to a plugin must begin with /; write $PWD/%.*s",
                              (int)strcspn(start, ","), start);
    next = wf_scan_peek(scan);
    if ((next >= 'A' && next <= 'Z') || next == '_') return refuse_spelling(scan, start);
    if (wf_scan_peek(scan) == '^') return wf_scan_fail(scan, kind, "write ^ once, before the name");
    if (*length == 0) return wf_scan_fail(scan, kind, "expected auto, a name, ^name or a path");
    if (*length > LONGEST_NAME)
        return wf_scan_fail(scan, kind, "a name must have at most %d characters", LONGEST_NAME);
    return WEFT_OK;
}

static weft_status take_item(struct wf_scan *scan, struct wf_choice *out)
{
    struct wf_scan start;
    enum wf_choice_kind item_kind;
    bool excluded, is_auto;
    const char *text;
    size_t length;

    wf_scan_space(scan);
    start = *scan;
    if (wf_scan_peek(scan) == '/') {
        text = scan->text + scan->at;
        length = strcspn(text, ",");
        scan->at += length;
        if (length == 1) return wf_scan_fail(&start, kind, "/ is not a plugin");
        item_kind = WF_CHOOSE_PATH;
    } else {
        excluded = wf_scan_char(scan, '^');
        text = scan->text + scan->at;
        WF_TRY(take_name(scan, &length));
        is_auto = !wf_plugin_name_valid(text, length);
        if (is_auto && excluded) return wf_scan_fail(&start, kind, "auto cannot be excluded");
        item_kind = excluded ? WF_CHOOSE_EXCLUDE : is_auto ? WF_CHOOSE_AUTO : WF_CHOOSE_NAME;
    }
    WF_TRY(add_item(out, item_kind, text, length));
    wf_scan_space(scan);
    if (!wf_scan_end(scan) && wf_scan_peek(scan) != ',')
        return wf_scan_fail(scan, kind, "expected a comma or the end");
    return WEFT_OK;
}

/* The rules that need the whole list. */
static weft_status check_whole(const char *text, struct wf_choice *choice)
{
    bool names = wf_choice_find(choice, WF_CHOOSE_NAME, NULL) != NULL ||
                 wf_choice_find(choice, WF_CHOOSE_PATH, NULL) != NULL;
    bool has_auto = wf_choice_find(choice, WF_CHOOSE_AUTO, NULL) != NULL;
    const struct wf_choice_item *excluded = wf_choice_find(choice, WF_CHOOSE_EXCLUDE, NULL);

    for (size_t i = 0; i < choice->count; i++) {
        const struct wf_choice_item *item = &choice->items[i];

        if (wf_choice_find(choice, item->kind, item->text) != item)
            return wf_fail(WEFT_ERR_PARSE, "backend \"%s\": %s is listed twice", text, item->text);
        if (item->kind == WF_CHOOSE_NAME &&
            wf_choice_find(choice, WF_CHOOSE_EXCLUDE, item->text) != NULL)
            return wf_fail(WEFT_ERR_PARSE, "backend \"%s\": %s is both named and excluded", text,
                           item->text);
        if (item->kind == WF_CHOOSE_AUTO)
            for (size_t j = i + 1; j < choice->count; j++)
                if (choice->items[j].kind != WF_CHOOSE_EXCLUDE)
                    return wf_fail(
                        WEFT_ERR_PARSE,
                        "backend \"%s\": auto means all other plugins, so %s cannot follow it",
                        text, choice->items[j].text);
    }
    if (excluded != NULL && names && !has_auto)
        return wf_fail(WEFT_ERR_PARSE,
                       "backend \"%s\": ^%s excludes a plugin from auto, but the list has no auto; "
                       "add auto at the end, or list exclusions only",
                       text, excluded->text);
    if (!names && !has_auto) return add_item(choice, WF_CHOOSE_AUTO, "auto", 4);
    return WEFT_OK;
}

weft_status wf_choice_parse(const char *text, struct wf_choice *out)
{
    struct wf_scan scan = {text, 0};
    struct wf_choice choice = {0};
    weft_status status;

    do
        status = take_item(&scan, &choice);
    while (status == WEFT_OK && wf_scan_char(&scan, ','));
    if (status == WEFT_OK) status = check_whole(text, &choice);
    if (status != WEFT_OK) {
        wf_choice_free(&choice);
        return status;
    }
    *out = choice;
    return WEFT_OK;
}
