/* writer.h - a model as a graph.
 *
 *     layout.c       a mesh and options -> placements
 *     lines.c        lines, and the names of results
 *     weights.c      the weights, their gradients and the optimizer
 *     parts.c        what both halves of a layer have
 *     attention.c    the first half of a layer; mlp.c the second, and experts.c one with experts
 *     graph.c        all of it, and the loss
 *
 * Activations are [sequence, sample, feature], so that a gather along the sequence copies nothing.
 * A result that the backward pass computes again has the suffix ".again".  The gradient of a weight
 * w is dw.  Where ranks share a weight w, w.f and w.b are what the forward and the backward pass
 * gather. */
#ifndef WEFT_MODEL_WRITER_H
#define WEFT_MODEL_WRITER_H

#include "model/model.h"

/* Pieces of a layer that may be computed again, in their order. */
enum wf_model_piece {
    WF_PIECE_NORMS,
    WF_PIECE_QUERIES, /* with keys, if the product of queries, keys and values is one */
    WF_PIECE_KEYS,    /* and values */
    WF_PIECE_ATTENTION,
    WF_PIECE_PROJECTION,
    WF_PIECE_UP,
    WF_PIECE_GATE, /* none, if the MLP is not gated */
    WF_PIECE_ACTIVATION,
    WF_PIECE_DOWN,
    WF_PIECES
};

/* Axes of a mesh, by what their ranks share. */
enum wf_model_axis { WF_AXIS_DP, WF_AXIS_CP, WF_AXIS_EP, WF_AXIS_TP, WF_AXIS_PP, WF_AXES };

/* What the ranks along an axis do with a tensor, if they do not split this dimension of it. */
enum { WF_ALL = -1, WF_SUM = -2 };

/* The dimensions of a tensor that the axes split, by axis. */
struct wf_model_split {
    int32_t dims[WF_AXES];
    bool tp_first; /* tp and ep split a dimension before the others; otherwise dp does */
};

/* A graph that is being written. */
struct wf_model_writer {
    const weft_model *model;
    struct wf_text *out;
    int32_t order[WEFT_MAX_AXES]; /* the axes of the graph's mesh, enum wf_model_axis */
    int32_t axes;
    int32_t sizes[WF_AXES]; /* of the axes; 0: absent */
    int32_t per_host;       /* ranks of a host; 0: the graph's mesh does not state it */
    int64_t sequence;
    int64_t samples;            /* of a microbatch, on all ranks */
    uint32_t sharding;          /* enum weft_model_sharding */
    uint32_t again;             /* bit per piece that the backward pass computes again */
    bool repeats;               /* the lines that are written are such pieces */
    bool in_parts;              /* the ranks of tp hold parts of the sequence between products */
    bool ring;                  /* ranks of cp pass keys and values on beside attention */
    bool f8;                    /* products of layers are computed in fp8 */
    const char *gradients;      /* their dtype */
    char layer[16];             /* " ; x32" */
    char whole[128], part[128]; /* " ; to S(1),R" of activations: on all ranks of tp, in parts */
};

/* ---- layout.c ---- */

/* Read OPTIONS into W, which has its model and its text. */
weft_status wf_model_lay_out(const weft_model_graph_options *options,
                             struct wf_model_writer *w) WF_NODISCARD;
/* "S(1),R": the placements that SPLIT describes, by axis of the mesh. */
void wf_model_place(const struct wf_model_writer *w, const struct wf_model_split *split, char *out,
                    size_t size);

/* ---- lines.c ---- */

#define WF_FREE " ; time 0ns"

/* Append a line; PUT_LAYER adds the clause of layers. */
void wf_model_put(struct wf_model_writer *w, const char *format, ...) WF_PRINTF(2, 3);
void wf_model_put_layer(struct wf_model_writer *w, const char *format, ...) WF_PRINTF(2, 3);
/* As PUT_LAYER, of a product with a weight. */
void wf_model_put_product(struct wf_model_writer *w, const char *format, ...) WF_PRINTF(2, 3);

/* The suffix of results of PIECE: of what a pass makes, and of what the backward pass reads. */
const char *wf_model_suffix(const struct wf_model_writer *w, enum wf_model_piece piece, bool again);
/* The pass makes results of PIECE. */
bool wf_model_makes(const struct wf_model_writer *w, enum wf_model_piece piece, bool again);

/* The mesh has the axis tp. */
bool wf_model_has_tp(const struct wf_model_writer *w);
/* Append the gather of TENSOR along the sequence as TO; without tp it is TENSOR itself.  Returns
 * the name of the result. */
const char *wf_model_put_whole(struct wf_model_writer *w, const char *tensor, const char *to);

/* ---- weights.c ---- */

struct wf_model_weight {
    const char *name;
    int32_t dims;
    int64_t shape[3];
    int32_t tp_dim; /* the dimension that tp splits, or WF_ALL */
    bool in_layer, of_experts;
};

struct wf_model_weights {
    struct wf_model_weight entries[16];
    int count;
};

/* The weights of W's model, in the order of their use. */
void wf_model_list_weights(const struct wf_model_writer *w, struct wf_model_weights *out);
/* Append the parameters. */
void wf_model_put_weights(struct wf_model_writer *w, const struct wf_model_weights *list);
/* Append the gather of the weight NAME, with the suffix SUFFIX, if ranks share it; NULL: of all
 * weights of layers. */
void wf_model_put_gathers(struct wf_model_writer *w, const struct wf_model_weights *list,
                          const char *name, const char *suffix);
/* Append the gradient of the weight NAME, the einsum EQUATION of GRADIENT and SOURCE. */
void wf_model_put_gradient(struct wf_model_writer *w, const char *name, const char *equation,
                           const char *gradient, const char *source);
/* Append the sum over ranks of d<NAME>p, as d<NAME>. */
void wf_model_put_reduction(struct wf_model_writer *w, const char *name);
/* Append the optimizer. */
void wf_model_put_update(struct wf_model_writer *w, const struct wf_model_weights *list);
/* The suffix of weights that ranks share: SUFFIX, or "". */
const char *wf_model_shared(const struct wf_model_writer *w, const char *suffix);

/* ---- parts.c ---- */

/* The norms are RMSNorm, not LayerNorm. */
bool wf_model_is_rms(const struct wf_model_writer *w);
/* Append norm NUMBER of SOURCE: n<NUMBER>s<SUFFIX> with its statistics. */
void wf_model_put_norm(struct wf_model_writer *w, int number, const char *source,
                       const char *source_suffix, bool again);
/* Append its gradient, of dn<NUMBER>: RESULT. */
void wf_model_put_norm_back(struct wf_model_writer *w, int number, const char *source,
                            const char *source_suffix, const char *result);
/* Append dropout of the result NAME of a half of a layer, if the model has it; it is a part of the
 * addition behind it.  Returns what the name of the result has between NAME and SUFFIX. */
const char *wf_model_put_dropout(struct wf_model_writer *w, const char *name, const char *suffix);
/* Append its gradient, of GRADIENT; PIECE made NAME.  Returns what the name of the
 * result has behind GRADIENT. */
const char *wf_model_put_dropout_back(struct wf_model_writer *w, const char *gradient,
                                      const char *name, enum wf_model_piece piece);

/* A product of the input of a layer's half, whose backward pass is next. */
struct wf_model_product {
    const char *gradient, *weight; /* of its result; its weight */
};

/* Append the gradients of norm NUMBER, dn<NUMBER>, and of the COUNT weights; the input of the
 * products belongs to PIECE and the one behind it. */
void wf_model_put_inputs_back(struct wf_model_writer *w, int number, enum wf_model_piece piece,
                              const struct wf_model_product *products, int count);

/* ---- attention.c, mlp.c, experts.c ---- */

/* The forward pass, or, with AGAIN, what the backward pass computes again of it. */
void wf_model_put_attention(struct wf_model_writer *w, bool again);
void wf_model_put_mlp(struct wf_model_writer *w, bool again);
void wf_model_put_experts(struct wf_model_writer *w, bool again);
/* The backward pass: of dh, with the result dx, and of dy, with the result dh. */
void wf_model_put_attention_back(struct wf_model_writer *w);
void wf_model_put_mlp_back(struct wf_model_writer *w);
void wf_model_put_experts_back(struct wf_model_writer *w);
/* Append the rules of operators that layers with experts use. */
void wf_model_put_rules(struct wf_model_writer *w);
/* The activation f<NAME> of u1<NAME> and, if it is gated, u3<NAME>; and du1<NAME> and du3<NAME>
 * from df<NAME>. */
void wf_model_put_activation(struct wf_model_writer *w, const char *name, bool again);
void wf_model_put_activation_back(struct wf_model_writer *w, const char *name);

/* ---- graph.c ---- */

weft_status wf_model_add_graph(struct wf_model_writer *w) WF_NODISCARD;

#endif
