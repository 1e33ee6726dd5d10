/* Any text is JSON or is refused.  What was read prints as text that reads back to the same. */
#include "fuzz.h"

#include "base/base.h"
#include "weft/status.h"

#include <string.h>

static void print_value(const struct wf_json_value *v, struct wf_json *json)
{
    switch (v->kind) {
    case WF_JSON_NULL:
        wf_json_null(json, NULL);
        break;
    case WF_JSON_BOOL:
        wf_json_bool(json, NULL, v->integer != 0);
        break;
    case WF_JSON_INT:
        wf_json_int(json, NULL, v->integer);
        break;
    case WF_JSON_REAL:
        wf_json_real(json, NULL, v->real);
        break;
    case WF_JSON_STRING:
        wf_json_string(json, NULL, v->text);
        break;
    default:
        break;
    }
}

/* Print the tree.  An object becomes an array of names and values, since the writer takes names as
 * they are. */
static void print_tree(const struct wf_json_value *root, struct wf_json *json)
{
    if (root->kind != WF_JSON_ARRAY && root->kind != WF_JSON_OBJECT) {
        print_value(root, json);
        return;
    }
    wf_json_begin(json, NULL, '[');
    for (const struct wf_json_value *v = root->first; v != NULL; v = v->next) {
        if (v->key != NULL) wf_json_string(json, NULL, v->key);
        print_tree(v, json);
    }
    wf_json_end(json, ']');
}

/* Members of all levels agree with their counts. */
static void check_counts(const struct wf_json_value *value)
{
    uint32_t count = 0;

    for (const struct wf_json_value *v = value->first; v != NULL; v = v->next) {
        FUZZ_ASSERT((v->key != NULL) == (value->kind == WF_JSON_OBJECT));
        check_counts(v);
        count++;
    }
    FUZZ_ASSERT(count == value->count);
}

/* Read TEXT, which may be refused, and print it to OUT. */
static bool print_again(const char *text, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    struct wf_json_tree tree;

    if (wf_json_read("it", text, &tree) != WEFT_OK) return false;
    check_counts(tree.root);
    print_tree(tree.root, &json);
    wf_json_free(&tree);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_string(data, size);
    struct wf_text once = {0}, twice = {0}, thrice = {0};

    if (print_again(text, &once)) { /* in which bytes that are not UTF-8 have been replaced */
        FUZZ_ASSERT(print_again(once.data, &twice) && print_again(twice.data, &thrice));
        FUZZ_ASSERT(strcmp(twice.data, thrice.data) == 0);
    } else {
        FUZZ_ASSERT(weft_last_error()[0] != '\0');
    }
    wf_text_free(&once);
    wf_text_free(&twice);
    wf_text_free(&thrice);
    free(text);
    return 0;
}
