/* config.c - models of Hugging Face, by the config.json beside their weights. */
#include "model/model.h"

#include <inttypes.h>
#include <string.h>

/* The names of a size; the first that the file has counts. */
struct names {
    const char *name[4];
};

#define USUAL                                                                                      \
    [WF_MODEL_LAYERS] = {{"num_hidden_layers"}}, [WF_MODEL_HIDDEN] = {{"hidden_size"}},            \
    [WF_MODEL_HEADS] = {{"num_attention_heads"}}, [WF_MODEL_VOCABULARY] = {{"vocab_size"}}
#define GROUPED                                                                                    \
    USUAL, [WF_MODEL_KEY_HEADS] = {{"num_key_value_heads"}}, [WF_MODEL_HEAD_DIM] = {{"head_dim"}}, \
           [WF_MODEL_SEQUENCE] = {{"max_position_embeddings"}}

enum gate { PLAIN, GATED };

/* What a model_type means. */
static const struct type {
    const char *name;
    uint32_t kind; /* enum wf_model_template */
    int32_t tied;  /* if the file does not say */
    struct names sizes[WF_MODEL_SIZES];
    const char *activation; /* the key of its name; NULL: GELU */
    bool gated;
} types[] = {
    {"llama",
     WF_MODEL_LLAMA,
     0,
     {GROUPED, [WF_MODEL_FFN] = {{"intermediate_size"}}},
     "hidden_act",
     true},
    {"mistral",
     WF_MODEL_LLAMA,
     0,
     {GROUPED, [WF_MODEL_FFN] = {{"intermediate_size"}}},
     "hidden_act",
     true},
    {"qwen2",
     WF_MODEL_LLAMA,
     0,
     {GROUPED, [WF_MODEL_FFN] = {{"intermediate_size"}}},
     "hidden_act",
     true},
    {"qwen3",
     WF_MODEL_LLAMA,
     0,
     {GROUPED, [WF_MODEL_FFN] = {{"intermediate_size"}}},
     "hidden_act",
     true},
    {"nemotron",
     WF_MODEL_LLAMA,
     0,
     {GROUPED, [WF_MODEL_FFN] = {{"intermediate_size"}}},
     "hidden_act",
     false},
    {"gpt2",
     WF_MODEL_GPT,
     1,
     {[WF_MODEL_LAYERS] = {{"n_layer"}},
      [WF_MODEL_HIDDEN] = {{"n_embd"}},
      [WF_MODEL_HEADS] = {{"n_head"}},
      [WF_MODEL_FFN] = {{"n_inner"}},
      [WF_MODEL_VOCABULARY] = {{"vocab_size"}},
      [WF_MODEL_SEQUENCE] = {{"n_positions", "n_ctx"}}},
     "activation_function",
     false},
    {"gpt_neox",
     WF_MODEL_GPT,
     0,
     {USUAL, [WF_MODEL_FFN] = {{"intermediate_size"}},
      [WF_MODEL_SEQUENCE] = {{"max_position_embeddings"}}},
     "hidden_act",
     false},
    {"bloom",
     WF_MODEL_GPT,
     1,
     {[WF_MODEL_LAYERS] = {{"n_layer", "num_hidden_layers"}},
      [WF_MODEL_HIDDEN] = {{"hidden_size", "n_embed"}},
      [WF_MODEL_HEADS] = {{"n_head", "num_attention_heads"}},
      [WF_MODEL_VOCABULARY] = {{"vocab_size"}},
      [WF_MODEL_SEQUENCE] = {{"seq_length"}}},
     NULL,
     false},
    {"mixtral",
     WF_MODEL_MOE,
     0,
     {GROUPED, [WF_MODEL_FFN] = {{"intermediate_size"}},
      [WF_MODEL_EXPERTS] = {{"num_local_experts"}}, [WF_MODEL_ACTIVE] = {{"num_experts_per_tok"}}},
     "hidden_act",
     true},
    {"qwen3_moe",
     WF_MODEL_MOE,
     0,
     {GROUPED, [WF_MODEL_FFN] = {{"moe_intermediate_size"}}, [WF_MODEL_EXPERTS] = {{"num_experts"}},
      [WF_MODEL_ACTIVE] = {{"num_experts_per_tok"}}},
     "hidden_act",
     true},
};

/* The type NAME, a text; NULL: it is not known. */
static const struct type *find_type(const struct wf_json_value *name)
{
    for (size_t i = 0; name != NULL && name->kind == WF_JSON_STRING && i < WF_COUNT(types); i++)
        if (strcmp(name->text, types[i].name) == 0) return &types[i];
    return NULL;
}

static weft_status refuse_type(const struct wf_json_value *name)
{
    struct wf_text known = {0};

    for (size_t i = 0; i < WF_COUNT(types); i++)
        wf_text_add(&known, "%s%s", i > 0 ? ", " : "", types[i].name);
    if (name == NULL || name->kind != WF_JSON_STRING)
        return wf_fail_text(WEFT_ERR_PARSE, &known,
                            "config.json: it has no text model_type; the known ones are %s",
                            known.data != NULL ? known.data : "");
    return wf_fail_text(
        WEFT_ERR_PARSE, &known,
        "config.json: the model_type \"%.60s\" is not known; the known ones are %s. "
        "Write a line `model TEMPLATE ...` instead",
        name->text, known.data != NULL ? known.data : "");
}

/* The number of the first key of NAMES that ROOT has; -1: it has none, or null. */
static weft_status read_size(const struct wf_json_value *root, const struct names *names,
                             int64_t *out)
{
    *out = -1;
    for (size_t i = 0; i < WF_COUNT(names->name) && names->name[i] != NULL; i++) {
        const struct wf_json_value *value = wf_json_find(root, names->name[i]);
        if (value == NULL || value->kind == WF_JSON_NULL) continue;
        if (value->kind != WF_JSON_INT || value->integer < 0)
            return wf_fail(WEFT_ERR_PARSE, "config.json: %s is not a whole number from 0 on",
                           names->name[i]);
        *out = value->integer;
        return WEFT_OK;
    }
    return WEFT_OK;
}

/* A size that the template needs, and that no key gives. */
static weft_status require_size(const struct type *type, enum wf_model_size which, int64_t size)
{
    const char *name = type->sizes[which].name[0];

    if (size >= 0 || name == NULL) return WEFT_OK;
    if (which != WF_MODEL_LAYERS && which != WF_MODEL_HIDDEN && which != WF_MODEL_HEADS &&
        which != WF_MODEL_VOCABULARY && which != WF_MODEL_EXPERTS && which != WF_MODEL_ACTIVE &&
        (which != WF_MODEL_FFN || type->kind == WF_MODEL_GPT))
        return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "config.json: a %s has the key %s, and this file has not",
                   type->name, name);
}

static weft_status read_activation(const struct wf_json_value *root, const char *key, int32_t *out)
{
    static const struct {
        const char *name;
        int32_t value;
    } known[] = {{"silu", WF_MODEL_SILU},      {"swish", WF_MODEL_SILU},
                 {"gelu", WF_MODEL_GELU},      {"gelu_new", WF_MODEL_GELU},
                 {"gelu_fast", WF_MODEL_GELU}, {"gelu_pytorch_tanh", WF_MODEL_GELU},
                 {"relu2", WF_MODEL_RELU2}};
    const struct wf_json_value *value = key != NULL ? wf_json_find(root, key) : NULL;

    if (value == NULL) return WEFT_OK;
    for (size_t i = 0; value->kind == WF_JSON_STRING && i < WF_COUNT(known); i++)
        if (strcmp(value->text, known[i].name) == 0) {
            *out = known[i].value;
            return WEFT_OK;
        }
    return wf_fail(WEFT_ERR_PARSE, "config.json: %s is \"%.60s\"; silu, gelu and relu2 are known",
                   key, value->kind == WF_JSON_STRING ? value->text : "not a text");
}

static weft_status read_dtype(const struct wf_json_value *root, int32_t *out)
{
    const struct wf_json_value *value = wf_json_find(root, "torch_dtype");

    if (value == NULL) value = wf_json_find(root, "dtype");
    if (value != NULL && value->kind == WF_JSON_STRING && strcmp(value->text, "float16") == 0)
        *out = WF_MODEL_F16; /* others train in bf16 */
    return WEFT_OK;
}

static weft_status read_root(const struct wf_json_value *root, weft_model *model)
{
    const struct wf_json_value *tied = wf_json_find(root, "tie_word_embeddings");
    const struct wf_json_value *name = wf_json_find(root, "model_type");
    const struct type *type = find_type(name);

    if (root->kind != WF_JSON_OBJECT)
        return wf_fail(WEFT_ERR_PARSE, "config.json: expected an object");
    if (type == NULL) return refuse_type(name);
    model->kind = type->kind;
    for (int i = 0; i < WF_MODEL_SIZES; i++) {
        WF_TRY(read_size(root, &type->sizes[i], &model->sizes[i]));
        WF_TRY(require_size(type, (enum wf_model_size)i, model->sizes[i]));
    }
    model->words[WF_MODEL_GATED] = type->gated;
    model->words[WF_MODEL_TIED] = type->tied;
    if (tied != NULL && tied->kind == WF_JSON_BOOL)
        model->words[WF_MODEL_TIED] = tied->integer != 0;
    WF_TRY(read_activation(root, type->activation, &model->words[WF_MODEL_ACTIVATION]));
    return read_dtype(root, &model->words[WF_MODEL_DTYPE]);
}

weft_status wf_model_read_config(const char *text, weft_model *model)
{
    struct wf_json_tree tree;
    weft_status status;

    WF_TRY(wf_json_read("config.json", text, &tree));
    status = read_root(tree.root, model);
    wf_json_free(&tree);
    return status;
}
