/* model.c - the numbers of a model, from the config.json beside its tensors. */
#include "file.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

static const char document[] = "config.json";

enum { NOT_WHOLE = -1 }; /* the value of a fraction or a negative number */

static const int64_t *find_number(const struct wf_model *model, const char *name, size_t length)
{
    for (size_t i = 0; i < model->count; i++)
        if (strlen(model->numbers[i].name) == length &&
            memcmp(model->numbers[i].name, name, length) == 0)
            return &model->numbers[i].value;
    return NULL;
}

static weft_status add_number(struct wf_model *model, const char *name, int64_t value)
{
    const char *kept = wf_arena_text(&model->arena, name, strlen(name));

    if (kept == NULL) return wf_fail_memory(strlen(name) + 1);
    WF_TRY(wf_grow(&model->numbers, sizeof *model->numbers, model->count, &model->capacity));
    model->numbers[model->count++] = (struct wf_model_number){kept, value};
    return WEFT_OK;
}

/* Take the number in TEXT, which may not be a whole one. */
static weft_status take_number(struct wf_model *model, const char *name, const char *text)
{
    struct wf_scan scan = {.text = text};
    int64_t value = NOT_WHOLE;

    if (find_number(model, name, strlen(name)) != NULL) return WEFT_OK;
    if (text[strspn(text, "0123456789")] == '\0') WF_TRY(wf_scan_int(&scan, "a number", &value));
    return add_number(model, name, value);
}

/* Pass over the rest of an object or array that has begun. */
static weft_status skip_rest(struct wf_json_reader *reader)
{
    enum wf_json_event event;

    for (int depth = 1; depth > 0;) {
        WF_TRY(wf_json_next(reader, &event));
        depth += event == WF_EVENT_OBJECT || event == WF_EVENT_ARRAY;
        depth -= event == WF_EVENT_OBJECT_END || event == WF_EVENT_ARRAY_END;
    }
    return WEFT_OK;
}

/* Read the members of an object up to its end.  Models of text and images have a member
 * "text_config" for the text; its numbers count like those of the document. */
static weft_status read_members(struct wf_model *model, struct wf_json_reader *reader, bool inner)
{
    enum wf_json_event event;

    for (;;) {
        char name[128];

        WF_TRY(wf_json_next(reader, &event));
        if (event != WF_EVENT_KEY) return WEFT_OK; /* the object's end */
        snprintf(name, sizeof name, "%s", reader->text.data);
        WF_TRY(wf_json_next(reader, &event));
        if (event == WF_EVENT_NUMBER) {
            WF_TRY(take_number(model, name, reader->text.data));
        } else if (event == WF_EVENT_OBJECT && !inner && strcmp(name, "text_config") == 0) {
            WF_TRY(read_members(model, reader, true));
        } else if (event == WF_EVENT_OBJECT || event == WF_EVENT_ARRAY) {
            WF_TRY(skip_rest(reader));
        }
    }
}

/* What transformers assumes of numbers that the document leaves out. */
static weft_status add_defaults(struct wf_model *model)
{
    const int64_t *heads = find_number(model, "num_attention_heads", 19);
    const int64_t *hidden = find_number(model, "hidden_size", 11);

    if (heads == NULL) heads = find_number(model, "n_head", 6); /* GPT-2 */
    if (hidden == NULL) hidden = find_number(model, "n_embd", 6);
    if (heads == NULL || *heads <= 0) return WEFT_OK;
    if (hidden != NULL && *hidden > 0 && *hidden % *heads == 0 &&
        find_number(model, "head_dim", 8) == NULL)
        WF_TRY(add_number(model, "head_dim", *hidden / *heads));
    heads = find_number(model, "num_attention_heads", 19); /* the list may have moved */
    if (heads != NULL && find_number(model, "num_key_value_heads", 19) == NULL)
        WF_TRY(add_number(model, "num_key_value_heads", *heads));
    return WEFT_OK;
}

static weft_status read_document(struct wf_model *model, struct wf_inputs *inputs)
{
    struct wf_input_stream stream = {.inputs = inputs};
    struct wf_json_reader reader;
    weft_status status;

    WF_TRY(wf_inputs_add(inputs, document, &stream.index));
    stream.left = inputs->list[stream.index]->size;
    wf_json_reader_stream(&reader, document, wf_input_fill, &stream);
    status = wf_json_expect(&reader, WF_EVENT_OBJECT);
    if (status == WEFT_OK) status = read_members(model, &reader, false);
    wf_json_reader_end(&reader);
    return status == WEFT_OK ? add_defaults(model) : status;
}

weft_status wf_model_read(const weft_checkpoint *of, struct wf_model *out)
{
    struct wf_inputs inputs = {0};
    weft_status status;

    while (of->base != NULL)
        of = of->base;
    *out = (struct wf_model){.folder = of->inputs.path};
    WF_TRY(wf_inputs_begin(&inputs, out->folder));
    status = read_document(out, &inputs);
    wf_inputs_end(&inputs);
    if (status == WEFT_ERR_NOT_FOUND) { /* there is no such file */
        out->is_absent = true;
        status = WEFT_OK;
    }
    return status == WEFT_OK ? WEFT_OK : wf_fail_context(status, "%s", out->folder);
}

void wf_model_free(struct wf_model *model)
{
    wf_arena_free(&model->arena);
    wf_free(model->numbers);
    *model = (struct wf_model){0};
}

weft_status wf_model_find(const struct wf_model *model, const char *name, size_t length,
                          int64_t *out)
{
    const int64_t *number = find_number(model, name, length);

    if (number == NULL || *number == NOT_WHOLE)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "$%.*s is a number of the model, but %s/%s %s; write the number instead, or "
                       "%s to %s",
                       (int)length, name, model->folder, document,
                       model->is_absent ? "does not exist"
                       : number != NULL ? "has no whole number for it"
                                        : "does not have it",
                       model->is_absent ? "copy the config.json of the model" : "add it",
                       model->folder);
    *out = *number;
    return WEFT_OK;
}
