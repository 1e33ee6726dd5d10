/* model.h - a training step of a known architecture as a graph, from a line of sizes.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     weft_model *model;
 *     weft_model_graph_options options = {.struct_size = sizeof options, .mesh = mesh};
 *     TRY(weft_model_parse("model llama layers=80 hidden=8192 heads=64 key_heads=8 ffn=28672 "
 *                          "vocabulary=128256 sequence=8192", &model));
 *     TRY(weft_model_graph_print(model, &options, text, sizeof text, NULL));
 *
 * The text is a graph (graph.h), which a program may change before it checks it.
 * docs/training/planning-a-run.md lists the templates and what they count.  Models are immutable;
 * all functions here are pure, and any thread may call them. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include "weft/mesh.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_model weft_model;

/* Read the model TEXT: a line `model TEMPLATE KEY=VALUE ...`, or the config.json of Hugging Face,
 * which begins with "{".  The caller releases *OUT.  WEFT_ERR_PARSE: TEXT is malformed, its
 * template or model_type is not known, a size is missing or out of range, or two sizes contradict
 * each other. */
WEFT_API WEFT_NODISCARD weft_status weft_model_parse(const char *text, weft_model **out);

/* Free MODEL and set it to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_model_release(weft_model **model);

/* TEXT is a model, not a graph: it begins with "{" or the word "model", after blanks and comments.
 * It may still be malformed.  False for NULL. */
WEFT_API bool weft_model_is_text(const char *text);

typedef struct weft_model_info {
    size_t struct_size;
    const char *template_name; /* "llama", "gpt" or "moe"; valid as long as the model */
    int64_t layers, hidden;
    int64_t heads, key_heads, head_dim;
    int64_t ffn; /* of the MLP, or of one expert */
    int64_t vocabulary;
    int64_t sequence;           /* tokens, unless the options say another number */
    int64_t experts;            /* of a layer; 0: it has none */
    int64_t active, shared;     /* experts for each token: chosen ones, and shared by all tokens */
    uint64_t parameters;        /* without biases and positions */
    uint64_t active_parameters; /* of these, what a token uses */
} weft_model_info;

/* Copy the sizes of MODEL to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_model_get(const weft_model *model, weft_model_info *out);

/* Write MODEL as a line to TEXT; weft_model_parse makes an equal model from it.  TEXT, SIZE and
 * NEEDED as in weft_mesh_print (mesh.h). */
WEFT_API WEFT_NODISCARD weft_status weft_model_print(const weft_model *model, char *text,
                                                     size_t size, size_t *needed);

/* The tensors that ranks with other samples share. */
enum weft_model_sharding {
    WEFT_MODEL_SHARD_NOTHING = 0,
    WEFT_MODEL_SHARD_OPTIMIZER = 1, /* states of the optimizer; as ZeRO-1 */
    WEFT_MODEL_SHARD_PARAMETERS = 2 /* and gradients and parameters; as FSDP */
};

typedef struct weft_model_graph_options {
    size_t struct_size;
    /* Axes of these names: `dp` has samples, `cp` parts of the sequence, `tp` parts of each
     * product, `ep` samples and experts, `pp` stages, which are not in the graph.  NULL: dp=1. */
    const weft_mesh *mesh;
    int64_t sequence;   /* tokens of a sequence; 0: as in the model */
    int64_t microbatch; /* sequences of a microbatch on each rank of `dp` and `ep`; 0: 1 */
    uint32_t sharding;  /* enum weft_model_sharding */
    /* What the backward pass computes again: "none", "attention", "full", "needed" (what it reads;
     * all but the last product), "alternate" (every second product), or pieces of a layer, such as
     * "norms,up".  NULL: "none". */
    const char *recompute;
    /* The ranks of `tp` hold all of the sequence between products, instead of parts. */
    bool whole_sequence;
    bool narrow_gradients; /* they have the dtype of the parameters; otherwise f32 */
    /* The ranks of `cp` pass keys and values on in a ring, beside attention; otherwise they gather
     * them before it. */
    bool ring;
    bool f8; /* products of layers are computed in fp8; weights and activations keep their dtype */
} weft_model_graph_options;

/* Write the graph of one microbatch of MODEL, with its backward pass and its optimizer, to TEXT.
 * OPTIONS may be NULL.  TEXT, SIZE and NEEDED as in weft_mesh_print.  WEFT_ERR_INVALID: an axis has
 * another name, does not divide what it splits, or splits experts of a model without experts; a
 * ring has no axis `cp`; a size is negative or too large; or `recompute` names no piece. */
WEFT_API WEFT_NODISCARD weft_status weft_model_graph_print(const weft_model *model,
                                                           const weft_model_graph_options *options,
                                                           char *text, size_t size, size_t *needed);

#ifdef __cplusplus
}
#endif

#endif
