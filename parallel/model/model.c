/* model.c - the functions of weft/model.h. */
#include "model/writer.h"

#include <string.h>

/* TEXT behind blanks and comments. */
static const char *first_word(const char *text)
{
    struct wf_scan scan = {text, 0};

    (void)wf_scan_next_line(&scan);
    return text + scan.at;
}

bool weft_model_is_text(const char *text)
{
    const char *word;

    if (text == NULL) return false;
    word = first_word(text);
    return word[0] == '{' || (strncmp(word, "model", 5) == 0 && wf_is_blank(word[5]) &&
                              strncmp(word + 5 + strspn(word + 5, " \t"), "=", 1) != 0);
}

static weft_status read(const char *text, weft_model *model)
{
    for (int i = 0; i < WF_MODEL_SIZES; i++)
        model->sizes[i] = -1;
    for (int i = 0; i < WF_MODEL_WORDS; i++)
        model->words[i] = -1;
    if (first_word(text)[0] == '{')
        WF_TRY(wf_model_read_config(text, model));
    else
        WF_TRY(wf_model_read_line(text, model));
    return wf_model_complete(model);
}

weft_status weft_model_parse(const char *text, weft_model **out)
{
    weft_model *model;
    weft_status status;

    WF_TRY(wf_require(text, "weft_model_parse: text"));
    WF_TRY(wf_require(out, "weft_model_parse: out"));
    model = wf_calloc(1, sizeof *model);
    if (model == NULL) return wf_fail_memory(sizeof *model);
    status = read(text, model);
    if (status == WEFT_OK)
        *out = model;
    else
        weft_model_release(&model);
    return status;
}

void weft_model_release(weft_model **model)
{
    if (model == NULL) return;
    wf_free(*model);
    *model = NULL;
}

weft_status weft_model_get(const weft_model *model, weft_model_info *out)
{
    weft_model_info info;
    const int64_t *sizes;

    WF_TRY(wf_require(model, "weft_model_get: model"));
    WF_TRY(wf_require(out, "weft_model_get: out"));
    sizes = model->sizes;
    memset(&info, 0, sizeof info);
    info.template_name = wf_model_template_names[model->kind];
    info.layers = sizes[WF_MODEL_LAYERS];
    info.hidden = sizes[WF_MODEL_HIDDEN];
    info.heads = sizes[WF_MODEL_HEADS];
    info.key_heads = sizes[WF_MODEL_KEY_HEADS];
    info.head_dim = sizes[WF_MODEL_HEAD_DIM];
    info.ffn = sizes[WF_MODEL_FFN];
    info.vocabulary = sizes[WF_MODEL_VOCABULARY];
    info.sequence = sizes[WF_MODEL_SEQUENCE];
    info.experts = sizes[WF_MODEL_EXPERTS];
    info.active = sizes[WF_MODEL_ACTIVE];
    info.shared = sizes[WF_MODEL_SHARED];
    info.parameters = model->parameters;
    info.active_parameters = model->active_parameters;
    return wf_info_write("weft_model_info", &info, sizeof info, out);
}

weft_status weft_model_print(const weft_model *model, char *text, size_t size, size_t *needed)
{
    struct wf_text printed = {0};

    WF_TRY(wf_require(model, "weft_model_print: model"));
    if (size > 0) WF_TRY(wf_require(text, "weft_model_print: text"));
    wf_model_add_line(model, &printed);
    return wf_text_copy_out(&printed, text, size, needed);
}

weft_status weft_model_graph_print(const weft_model *model, const weft_model_graph_options *options,
                                   char *text, size_t size, size_t *needed)
{
    static const char function[] = "weft_model_graph_print";
    struct wf_text printed = {0};
    struct wf_model_writer writer = {.model = model, .out = &printed};
    weft_model_graph_options given;
    weft_status status;

    WF_TRY(wf_require(model, "weft_model_graph_print: model"));
    if (size > 0) WF_TRY(wf_require(text, "weft_model_graph_print: text"));
    memset(&given, 0, sizeof given);
    WF_TRY(wf_fail_named(wf_options_read("weft_model_graph_options", options, &given, sizeof given),
                         function));
    status = wf_model_lay_out(&given, &writer);
    if (status == WEFT_OK) status = wf_model_add_graph(&writer);
    if (status == WEFT_OK) return wf_text_copy_out(&printed, text, size, needed);
    wf_text_free(&printed);
    return status;
}
