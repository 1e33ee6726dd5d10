/* model.h - models as sizes; writer.h has the graphs that are made of them.
 *
 *     line.c      a line of sizes -> a model, and back
 *     config.c    a config.json of Hugging Face -> a model
 *     sizes.c     sizes that are missing, out of range or contradict each other; parameters */
#ifndef WEFT_MODEL_MODEL_H
#define WEFT_MODEL_MODEL_H

#include "base/base.h"
#include "weft/model.h"

enum wf_model_template { WF_MODEL_LLAMA, WF_MODEL_GPT, WF_MODEL_MOE, WF_MODEL_TEMPLATES };

/* The sizes of a model, in the order in which they are printed. */
enum wf_model_size {
    WF_MODEL_LAYERS,
    WF_MODEL_HIDDEN,
    WF_MODEL_HEADS,
    WF_MODEL_KEY_HEADS,
    WF_MODEL_HEAD_DIM,
    WF_MODEL_FFN,
    WF_MODEL_VOCABULARY,
    WF_MODEL_SEQUENCE,
    WF_MODEL_EXPERTS,
    WF_MODEL_ACTIVE,
    WF_MODEL_SHARED,
    WF_MODEL_SIZES
};

/* Properties that are words. */
enum wf_model_word {
    WF_MODEL_ACTIVATION,
    WF_MODEL_GATED,
    WF_MODEL_TIED,
    WF_MODEL_SCORES,
    WF_MODEL_DTYPE,
    WF_MODEL_WORDS
};

enum { WF_MODEL_SILU, WF_MODEL_GELU, WF_MODEL_RELU2 };
enum { WF_MODEL_BF16, WF_MODEL_F16 };

struct weft_model {
    uint32_t kind;                 /* enum wf_model_template */
    int64_t sizes[WF_MODEL_SIZES]; /* -1: not given yet */
    int32_t words[WF_MODEL_WORDS]; /* a number from 0 on; -1: not given yet */
    uint64_t parameters, active_parameters;
};

extern const char *const wf_model_template_names[WF_MODEL_TEMPLATES];
extern const char *const wf_model_size_names[WF_MODEL_SIZES];
/* The name of a property, and of its values; NULL behind the last. */
extern const char *const wf_model_word_names[WF_MODEL_WORDS];
extern const char *const wf_model_values[WF_MODEL_WORDS][4];

/* ---- line.c, config.c ---- */

/* Read what TEXT gives into MODEL, in which nothing is given. */
weft_status wf_model_read_line(const char *text, weft_model *model) WF_NODISCARD;
weft_status wf_model_read_config(const char *text, weft_model *model) WF_NODISCARD;
void wf_model_add_line(const weft_model *model, struct wf_text *out);

/* ---- sizes.c ---- */

/* Set what MODEL does not give, refuse what contradicts itself, and count parameters. */
weft_status wf_model_complete(weft_model *model) WF_NODISCARD;

#endif
