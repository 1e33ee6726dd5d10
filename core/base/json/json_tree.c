/* json_tree.c - JSON, read into a tree of values. */
#include "base/json/json_reader.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 /* values */ };

struct wf_json_block {
    struct wf_json_block *next;
    uint32_t used;
    struct wf_json_value values[BLOCK];
};

static weft_status new_value(struct wf_json_tree *tree, struct wf_json_value **out)
{
    struct wf_json_block *block = tree->blocks;

    if (block == NULL || block->used == BLOCK) {
        block = wf_alloc(sizeof *block);
        if (block == NULL) return wf_fail_memory(sizeof *block);
        block->next = tree->blocks;
        block->used = 0;
        tree->blocks = block;
    }
    *out = &block->values[block->used++];
    **out = (struct wf_json_value){.kind = WF_JSON_NULL};
    return WEFT_OK;
}

static weft_status copy_text(const struct wf_json_reader *reader, char **out)
{
    *out = wf_strdup(reader->text.data);
    return *out != NULL ? WEFT_OK : wf_fail_memory(reader->text.length + 1);
}

/* True if DIGITS are a whole number of 64 bits. */
static bool read_integer(const char *digits, int64_t *out)
{
    bool negative = digits[0] == '-';
    int64_t value = 0;

    for (const char *at = digits + negative; *at != '\0'; at++)
        if (*at < '0' || *at > '9' || !wf_mul_i64(value, 10, &value) ||
            !wf_add_i64(value, (negative ? -1 : 1) * (*at - '0'), &value))
            return false;
    *out = value;
    return true;
}

/* Set VALUE to what EVENT begins, or is. */
static weft_status set_value(const struct wf_json_reader *reader, enum wf_json_event event,
                             struct wf_json_value *value)
{
    switch (event) {
    case WF_EVENT_OBJECT:
        value->kind = WF_JSON_OBJECT;
        return WEFT_OK;
    case WF_EVENT_ARRAY:
        value->kind = WF_JSON_ARRAY;
        return WEFT_OK;
    case WF_EVENT_STRING:
        value->kind = WF_JSON_STRING;
        return copy_text(reader, &value->text);
    case WF_EVENT_NUMBER:
        value->real = kit_read_double(reader->text.data, NULL);
        value->kind = read_integer(reader->text.data, &value->integer) ? WF_JSON_INT : WF_JSON_REAL;
        return WEFT_OK;
    case WF_EVENT_TRUE:
    case WF_EVENT_FALSE:
        value->kind = WF_JSON_BOOL;
        value->integer = event == WF_EVENT_TRUE;
        return WEFT_OK;
    default:
        return WEFT_OK; /* null */
    }
}

/* An array or object that is being read. */
struct level {
    struct wf_json_value *value, *last;
};

static void add_member(struct level *level, struct wf_json_value *value)
{
    if (level->last != NULL)
        level->last->next = value;
    else
        level->value->first = value;
    level->last = value;
    level->value->count++;
}

static weft_status read_tree(struct wf_json_reader *reader, struct wf_json_tree *tree)
{
    struct level levels[WF_JSON_DEPTH + 1] = {{NULL, NULL}};
    struct wf_json_value root = {.kind = WF_JSON_ARRAY}, *value = NULL;
    enum wf_json_event event;
    uint32_t depth = 0;

    levels[0].value = &root;
    for (;;) {
        WF_TRY(wf_json_next(reader, &event));
        if (event == WF_EVENT_END) break;
        if (event == WF_EVENT_OBJECT_END || event == WF_EVENT_ARRAY_END) {
            depth--;
            continue;
        }
        if (value == NULL) { /* of which no key is read yet */
            WF_TRY(new_value(tree, &value));
            add_member(&levels[depth], value);
        }
        if (event == WF_EVENT_KEY) {
            WF_TRY(copy_text(reader, &value->key));
            continue;
        }
        WF_TRY(set_value(reader, event, value));
        if (value->kind == WF_JSON_OBJECT || value->kind == WF_JSON_ARRAY)
            levels[++depth] = (struct level){value, NULL};
        value = NULL;
    }
    tree->root = root.first;
    return WEFT_OK;
}

weft_status wf_json_read(const char *what, const char *text, struct wf_json_tree *out)
{
    struct wf_json_reader reader;
    weft_status status;

    *out = (struct wf_json_tree){.blocks = NULL};
    wf_json_reader_begin(&reader, what, text, strlen(text));
    status = read_tree(&reader, out);
    wf_json_reader_end(&reader);
    if (status != WEFT_OK) wf_json_free(out);
    return status;
}

void wf_json_free(struct wf_json_tree *tree)
{
    while (tree->blocks != NULL) {
        struct wf_json_block *next = tree->blocks->next;
        for (uint32_t i = 0; i < tree->blocks->used; i++) {
            wf_free(tree->blocks->values[i].key);
            wf_free(tree->blocks->values[i].text);
        }
        wf_free(tree->blocks);
        tree->blocks = next;
    }
    tree->root = NULL;
}

const struct wf_json_value *wf_json_find(const struct wf_json_value *object, const char *key)
{
    if (object == NULL || object->kind != WF_JSON_OBJECT) return NULL;
    for (const struct wf_json_value *v = object->first; v != NULL; v = v->next)
        if (strcmp(v->key, key) == 0) return v;
    return NULL;
}
