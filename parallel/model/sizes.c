/* sizes.c - sizes of models that are missing, out of range, or contradict each other. */
#include "model/model.h"

#include <inttypes.h>

const char *const wf_model_template_names[] = {"llama", "gpt", "moe"};
const char *const wf_model_size_names[] = {"layers",   "hidden", "heads",      "key_heads",
                                           "head_dim", "ffn",    "vocabulary", "sequence",
                                           "experts",  "active", "shared"};
const char *const wf_model_word_names[] = {"activation", "gated", "tied", "attention", "dtype"};
const char *const wf_model_values[WF_MODEL_WORDS][4] = {
    {"silu", "gelu", "relu2"}, {"no", "yes"}, {"no", "yes"}, {"flash", "scores"}, {"bf16", "f16"}};

static const int64_t most[] = {100000,  1 << 24, 1 << 16, 1 << 16, 1 << 16, INT64_C(1) << 28,
                               1 << 30, 1 << 30, 1 << 20, 1 << 20, 1 << 20};

/* ---- defaults ---- */

static void set_words(weft_model *model)
{
    static const int32_t usual[WF_MODEL_TEMPLATES][WF_MODEL_WORDS] = {
        [WF_MODEL_LLAMA] = {WF_MODEL_SILU, 1, 0, 0, WF_MODEL_BF16},
        [WF_MODEL_GPT] = {WF_MODEL_GELU, 0, 1, 0, WF_MODEL_BF16},
        [WF_MODEL_MOE] = {WF_MODEL_SILU, 1, 0, 0, WF_MODEL_BF16}};

    for (int i = 0; i < WF_MODEL_WORDS; i++)
        if (model->words[i] < 0) model->words[i] = usual[model->kind][i];
}

static void set_size(weft_model *model, enum wf_model_size which, int64_t value)
{
    if (model->sizes[which] < 0) model->sizes[which] = value;
}

static weft_status set_sizes(weft_model *model)
{
    int64_t *sizes = model->sizes;

    set_size(model, WF_MODEL_SEQUENCE, 2048);
    set_size(model, WF_MODEL_KEY_HEADS, sizes[WF_MODEL_HEADS]);
    if (model->kind == WF_MODEL_GPT && sizes[WF_MODEL_HIDDEN] > 0)
        set_size(model, WF_MODEL_FFN, wf_min_i64(4 * sizes[WF_MODEL_HIDDEN], most[WF_MODEL_FFN]));
    if (model->kind != WF_MODEL_MOE) {
        set_size(model, WF_MODEL_EXPERTS, 0);
        set_size(model, WF_MODEL_ACTIVE, 0);
    }
    set_size(model, WF_MODEL_SHARED, 0);
    if (sizes[WF_MODEL_HEAD_DIM] >= 0 || sizes[WF_MODEL_HEADS] <= 0 || sizes[WF_MODEL_HIDDEN] <= 0)
        return WEFT_OK;
    if (sizes[WF_MODEL_HIDDEN] % sizes[WF_MODEL_HEADS] != 0)
        return wf_fail(WEFT_ERR_PARSE,
                       "model: hidden is %" PRId64 ", which heads=%" PRId64
                       " does not divide; give head_dim",
                       sizes[WF_MODEL_HIDDEN], sizes[WF_MODEL_HEADS]);
    sizes[WF_MODEL_HEAD_DIM] = sizes[WF_MODEL_HIDDEN] / sizes[WF_MODEL_HEADS];
    return WEFT_OK;
}

/* ---- checks ---- */

static weft_status check_range(const weft_model *model)
{
    bool moe = model->kind == WF_MODEL_MOE;

    for (int i = 0; i < WF_MODEL_SIZES; i++) {
        bool of_experts = i == WF_MODEL_EXPERTS || i == WF_MODEL_ACTIVE;
        bool optional = i == WF_MODEL_SHARED || (of_experts && !moe);
        int64_t size = model->sizes[i], least = optional ? 0 : 1;
        if (size < 0)
            return wf_fail(WEFT_ERR_PARSE, "model: the template %s needs %s",
                           wf_model_template_names[model->kind], wf_model_size_names[i]);
        if (size >= least && size <= most[i]) continue;
        return wf_fail(WEFT_ERR_PARSE,
                       "model: %s is %" PRId64 "; it is from %" PRId64 " to %" PRId64,
                       wf_model_size_names[i], size, least, most[i]);
    }
    return WEFT_OK;
}

static weft_status check_agreement(const weft_model *model)
{
    const int64_t *sizes = model->sizes;

    if (sizes[WF_MODEL_HEADS] % sizes[WF_MODEL_KEY_HEADS] != 0)
        return wf_fail(WEFT_ERR_PARSE,
                       "model: heads is %" PRId64 ", which key_heads=%" PRId64 " does not divide",
                       sizes[WF_MODEL_HEADS], sizes[WF_MODEL_KEY_HEADS]);
    if (model->kind != WF_MODEL_MOE &&
        (sizes[WF_MODEL_EXPERTS] | sizes[WF_MODEL_ACTIVE] | sizes[WF_MODEL_SHARED]) != 0)
        return wf_fail(WEFT_ERR_PARSE,
                       "model: the template %s has no experts; the template moe has",
                       wf_model_template_names[model->kind]);
    if (sizes[WF_MODEL_ACTIVE] > sizes[WF_MODEL_EXPERTS])
        return wf_fail(WEFT_ERR_PARSE, "model: active is %" PRId64 ", more than experts=%" PRId64,
                       sizes[WF_MODEL_ACTIVE], sizes[WF_MODEL_EXPERTS]);
    if (model->kind != WF_MODEL_GPT && sizes[WF_MODEL_HEAD_DIM] % 2 != 0)
        return wf_fail(WEFT_ERR_PARSE,
                       "model: head_dim is %" PRId64 "; rotary positions need an even number",
                       sizes[WF_MODEL_HEAD_DIM]);
    if (model->words[WF_MODEL_SCORES] && sizes[WF_MODEL_HEADS] != sizes[WF_MODEL_KEY_HEADS])
        return wf_fail(WEFT_ERR_PARSE,
                       "model: attention=scores needs as many key_heads as heads, %" PRId64
                       ", not %" PRId64,
                       sizes[WF_MODEL_HEADS], sizes[WF_MODEL_KEY_HEADS]);
    return WEFT_OK;
}

/* ---- parameters ---- */

/* *SUM + COUNT * A * B; UINT64_MAX if it is larger. */
static void add_weights(uint64_t *sum, int64_t count, int64_t a, int64_t b)
{
    *sum = wf_add_capped(*sum,
                         wf_mul_capped(wf_mul_capped((uint64_t)a, (uint64_t)b), (uint64_t)count));
}

/* The parameters of a model each of whose layers has EXPERTS. */
static uint64_t count(const weft_model *model, int64_t experts)
{
    const int64_t *sizes = model->sizes;
    int64_t hidden = sizes[WF_MODEL_HIDDEN], dim = sizes[WF_MODEL_HEAD_DIM];
    int64_t products = model->words[WF_MODEL_GATED] ? 3 : 2;
    uint64_t layer = 0, all = 0;

    add_weights(&layer, 2 * dim, hidden, sizes[WF_MODEL_HEADS] + sizes[WF_MODEL_KEY_HEADS]);
    add_weights(&layer, 2, hidden, 1); /* gains of the norms */
    if (model->kind == WF_MODEL_MOE) add_weights(&layer, 1, hidden, sizes[WF_MODEL_EXPERTS]);
    add_weights(&layer, products * (experts + sizes[WF_MODEL_SHARED]), hidden, sizes[WF_MODEL_FFN]);
    all = wf_mul_capped(layer, (uint64_t)sizes[WF_MODEL_LAYERS]);
    add_weights(&all, model->words[WF_MODEL_TIED] ? 1 : 2, sizes[WF_MODEL_VOCABULARY], hidden);
    add_weights(&all, 1, hidden, 1);
    return all;
}

weft_status wf_model_complete(weft_model *model)
{
    bool moe = model->kind == WF_MODEL_MOE;

    set_words(model);
    WF_TRY(set_sizes(model));
    WF_TRY(check_range(model));
    WF_TRY(check_agreement(model));
    model->parameters = count(model, moe ? model->sizes[WF_MODEL_EXPERTS] : 1);
    model->active_parameters = count(model, moe ? model->sizes[WF_MODEL_ACTIVE] : 1);
    if (model->parameters >> 60 == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "model: it has more than 2^60 parameters");
}
