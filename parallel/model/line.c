/* line.c - a model as a line: "model llama layers=80 hidden=8192 heads=64 ...". */
#include "model/model.h"

#include <inttypes.h>
#include <string.h>

static bool is_word(struct wf_passage field, const char *word)
{
    return strlen(word) == field.length && memcmp(field.start, word, field.length) == 0;
}

static int shown(struct wf_passage field)
{
    return (int)wf_min_i64((int64_t)field.length, 60);
}

/* Append "a, b or c". */
static void add_names(struct wf_text *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count && names[i] != NULL; i++)
        wf_text_add(out, "%s%s",
                    i == 0                                   ? ""
                    : i + 1 == count || names[i + 1] == NULL ? " or "
                                                             : ", ",
                    names[i]);
}

static weft_status read_template(struct wf_scan *scan, weft_model *model)
{
    struct wf_passage field = wf_scan_field(scan);
    struct wf_text known = {0};

    for (uint32_t i = 0; i < WF_MODEL_TEMPLATES; i++)
        if (is_word(field, wf_model_template_names[i])) {
            model->kind = i;
            return WEFT_OK;
        }
    add_names(&known, wf_model_template_names, WF_MODEL_TEMPLATES);
    return wf_fail_text(WEFT_ERR_PARSE, &known, "model: \"%.*s\" is not a template; give %s",
                        shown(field), field.start, known.data != NULL ? known.data : "");
}

/* The number of VALUE among the values of word WHICH; the error lists them. */
static weft_status read_word(enum wf_model_word which, struct wf_passage value, int32_t *out)
{
    struct wf_text known = {0};

    for (int32_t i = 0; wf_model_values[which][i] != NULL; i++)
        if (is_word(value, wf_model_values[which][i])) {
            *out = i;
            return WEFT_OK;
        }
    add_names(&known, wf_model_values[which], WF_COUNT(wf_model_values[which]));
    return wf_fail_text(WEFT_ERR_PARSE, &known, "model: %s is \"%.*s\"; it is %s",
                        wf_model_word_names[which], shown(value), value.start,
                        known.data != NULL ? known.data : "");
}

static weft_status read_size(enum wf_model_size which, struct wf_passage value, int64_t *out)
{
    char digits[24] = "";
    struct wf_scan scan = {digits, 0};

    if (value.length < sizeof digits) memcpy(digits, value.start, value.length);
    if (wf_scan_int(&scan, "a number", out) == WEFT_OK && wf_scan_end(&scan)) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "model: %s is \"%.*s\"; expected a number",
                   wf_model_size_names[which], shown(value), value.start);
}

/* The entry of NAMES that is FIELD; -1: none is. */
static int find(const char *const *names, size_t count, struct wf_passage field)
{
    for (size_t i = 0; i < count; i++)
        if (is_word(field, names[i])) return (int)i;
    return -1;
}

static weft_status refuse_key(struct wf_passage key)
{
    struct wf_text known = {0};

    add_names(&known, wf_model_size_names, WF_MODEL_SIZES);
    wf_text_add(&known, "; ");
    add_names(&known, wf_model_word_names, WF_MODEL_WORDS);
    return wf_fail_text(WEFT_ERR_PARSE, &known,
                        "model: \"%.*s\" is not a property; they are %s, each with = and a value",
                        shown(key), key.start, known.data != NULL ? known.data : "");
}

/* "layers=80" */
static weft_status read_property(struct wf_passage field, weft_model *model)
{
    const char *equals = memchr(field.start, '=', field.length);
    struct wf_passage key = field, value;
    int size, word;

    if (equals == NULL) return refuse_key(field);
    key.length = (size_t)(equals - field.start);
    value = (struct wf_passage){equals + 1, field.length - key.length - 1};
    size = find(wf_model_size_names, WF_MODEL_SIZES, key);
    word = find(wf_model_word_names, WF_MODEL_WORDS, key);
    if (size < 0 && word < 0) return refuse_key(key);
    if ((size >= 0 && model->sizes[size] >= 0) || (word >= 0 && model->words[word] >= 0))
        return wf_fail(WEFT_ERR_PARSE, "model: %.*s is given twice", shown(key), key.start);
    if (size >= 0) return read_size((enum wf_model_size)size, value, &model->sizes[size]);
    return read_word((enum wf_model_word)word, value, &model->words[word]);
}

weft_status wf_model_read_line(const char *text, weft_model *model)
{
    struct wf_scan scan = {text, 0};
    struct wf_passage field;

    if (!wf_scan_next_line(&scan) || !is_word(wf_scan_field(&scan), "model"))
        return wf_fail(WEFT_ERR_PARSE, "model: expected a line such as \"model llama layers=32 "
                                       "hidden=4096 ...\", or a config.json");
    WF_TRY(read_template(&scan, model));
    while (field = wf_scan_field(&scan), field.length > 0)
        WF_TRY(read_property(field, model));
    if (!wf_scan_next_line(&scan)) return WEFT_OK;
    field = wf_scan_field(&scan);
    return wf_fail(WEFT_ERR_PARSE, "model: line %u begins with \"%.*s\"; a model has one line",
                   wf_scan_line(&scan), shown(field), field.start);
}

void wf_model_add_line(const weft_model *model, struct wf_text *out)
{
    wf_text_add(out, "model %s", wf_model_template_names[model->kind]);
    for (int i = 0; i < WF_MODEL_SIZES; i++)
        if (model->sizes[i] > 0)
            wf_text_add(out, " %s=%" PRId64, wf_model_size_names[i], model->sizes[i]);
    for (int i = 0; i < WF_MODEL_WORDS; i++)
        wf_text_add(out, " %s=%s", wf_model_word_names[i], wf_model_values[i][model->words[i]]);
    wf_text_char(out, '\n');
}
