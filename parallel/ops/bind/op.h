/* op.h - a rule applied to the shapes of a call: tensors whose dimensions are products of factors
 * with sizes.
 *
 * attrs.c reads attributes, local.c finds those that are sizes of parts, spread.c finds the
 * dimensions of each tensor, sizes.c the factors and their sizes, and outputs.c the shapes of the
 * outputs.  checks.c has the limits of attributes that depend on shapes; the folder make writes the
 * rules that do. */
#ifndef WEFT_OPS_OP_H
#define WEFT_OPS_OP_H

#include "ops/bind/attrs.h"
#include "ops/bind/local.h"
#include "ops/rule/registry.h"
#include "ops/bind/specs.h"
#include "weft/ops.h"

#include <string.h>

enum {
    WF_OP_FACTORS = 48,
    WF_OP_FEW = 12,         /* tensors without an allocation */
    WF_OP_TENSORS = 1 << 16 /* tensors of one call */
};

struct wf_op_factor {
    int64_t size; /* -1: not known yet */
    uint8_t symbol, index;
    uint8_t flags, reduce; /* of the symbol; reduce is settled: never WF_REDUCE_NORM */
    uint32_t step;
};

/* The factors of one dimension, outermost first.  None: the dimension is never split. */
struct wf_op_dim {
    uint8_t count;
    uint8_t factor[WEFT_MAX_DIMS];
};

struct wf_op_tensor {
    const weft_spec *given;           /* inputs; NULL: absent */
    const weft_placement *placements; /* of GIVEN */
    uint8_t slot, present;
    int8_t inplace; /* of an output: the input whose memory it is; -1: none */
    uint8_t dims;
    uint32_t dtype;
    uint64_t factors; /* bit per factor that a dimension has */
    uint64_t sources; /* of an output: factors of the inputs whose values it depends on */
    int64_t shape[WEFT_MAX_DIMS];
    struct wf_op_dim dim[WEFT_MAX_DIMS];
};

/* A row that the program computes: a placement for each tensor. */
struct wf_given {
    struct wf_given *next;
    weft_placement placements[];
};

struct wf_op {
    struct wf_rule *rule; /* a reference of its own */
    const weft_mesh *mesh;
    int32_t axes, ranks[WEFT_MAX_AXES]; /* of the mesh: its axes, and the ranks along each */
    const char *name;                   /* the caller's */
    uint32_t input_count, output_count;
    uint32_t factor_count;
    struct wf_op_factor factors[WF_OP_FACTORS];
    struct wf_local_size made[WF_LOCAL_SIZES]; /* that the clause `make` found */
    uint32_t made_count;
    struct wf_given *given;       /* rows that the program computed */
    struct wf_op_tensor *tensors; /* inputs, then outputs */
    struct wf_op_tensor few[WF_OP_FEW];
};

/* ---- attrs.c ---- */

/* WEFT_ERR_INVALID: "operator NAME: " and the reason. */
weft_status wf_op_refuse(const struct wf_op *op, const char *format, ...) WF_PRINTF(2, 3);
/* True if a rule of ENTRY lists attribute NAME, or every operator may have it. */
bool wf_attr_is_known(const struct wf_op_entry *entry, const char *name);
/* Add "dims, p": the attributes that the rules of ENTRY list. */
void wf_attr_add_names(const struct wf_op_entry *entry, struct wf_text *out);
/* WEFT_ERR_INVALID: CALL has an attribute that is not known, or has one twice. */
weft_status wf_attr_check(const struct wf_op_entry *entry, const weft_op_call *call,
                          const struct wf_op *op) WF_NODISCARD;

/* Set *OUT to attribute NAME, if the call has it.  WEFT_ERR_INVALID: it is not an integer. */
weft_status wf_attr_read_int(const struct wf_op *op, const weft_op_call *call, const char *name,
                             int64_t *out) WF_NODISCARD;

/* ---- checks.c ---- */

/* Indices of a dimension: START, START + STEP, ... */
struct wf_slice {
    int64_t start, step, count;
};

/* The slice that the attributes start, end and step take of SIZE indices. */
weft_status wf_op_read_slice(const struct wf_op *op, const weft_op_call *call, int64_t size,
                             struct wf_slice *out) WF_NODISCARD;
/* WEFT_ERR_INVALID: an attribute is outside of the limits that the rule's clause `check` names. */
weft_status wf_op_check_attrs(const struct wf_op *op, const weft_op_call *call) WF_NODISCARD;

/* ---- bind.c ---- */

/* Apply the rules of ENTRY to CALL.  If the operator takes and returns lists, ELEMENT selects the
 * tensors of one of its calls.  The caller ends *OUT. */
weft_status wf_op_bind(const struct wf_op_entry *entry, const weft_op_call *call, uint32_t element,
                       struct wf_op *out) WF_NODISCARD;
void wf_op_end(struct wf_op *op);
/* WEFT_ERR_INVALID: inputs that a clause `same` of OP's rule names have several dtypes, and CALL
 * does not permit it.  ELEMENT as in wf_op_bind. */
weft_status wf_op_check_dtypes(const struct wf_op *op, const weft_op_call *call,
                               uint32_t element) WF_NODISCARD;
static inline struct wf_tensor_type wf_op_type(const struct wf_op *op,
                                               const struct wf_op_tensor *tensor)
{
    return (struct wf_tensor_type){op->mesh, tensor->dtype, tensor->dims, tensor->shape};
}
/* A layout on OP's mesh of a tensor of DIMS dimensions; its shape and placements are not set. */
static inline void wf_op_begin_layout(const struct wf_op *op, uint32_t dtype, int32_t dims,
                                      struct wf_layout *out)
{
    out->mesh = op->mesh;
    out->axes = op->axes;
    memcpy(out->ranks, op->ranks, sizeof out->ranks);
    out->dtype = dtype;
    out->dims = dims;
}
/* The name of the tensor in the rule, for WF_WORD. */
static inline struct wf_word wf_op_name(const struct wf_op *op, const struct wf_op_tensor *tensor)
{
    return op->rule->slots[tensor->slot].name;
}

/* ---- spread.c ---- */

/* One dimension of a tensor: entry SUB of the pattern, or of the run. */
struct wf_place {
    int8_t pattern; /* in the slot; -1: a dimension of size 1 that keepdim adds */
    uint8_t sub;
};

/* What the tensors seen so far say about runs, groups and positions. */
struct wf_spread {
    const weft_op_call *call;
    struct wf_op *op;
    int8_t lengths[WF_RULE_SYMBOLS];      /* dimensions of runs and groups; -1: not known */
    int8_t position_count[WF_RULE_ATTRS]; /* -1: not known */
    uint8_t positions[WF_RULE_ATTRS][WEFT_MAX_DIMS];
    int8_t attr_of[WF_RULE_SYMBOLS]; /* the attribute that places the symbol; -1: none */
};

void wf_spread_begin(struct wf_spread *s, const weft_op_call *call, struct wf_op *op);
/* The dimensions of an input of TENSOR->dims dimensions. */
weft_status wf_spread_input(struct wf_spread *s, const struct wf_op_tensor *tensor,
                            struct wf_place *out) WF_NODISCARD;
/* The same for an output, whose dims are set.  GIVEN: its shape as the caller states it, or
 * NULL. */
weft_status wf_spread_output(struct wf_spread *s, struct wf_op_tensor *tensor,
                             const weft_op_tensor *given, struct wf_place *out) WF_NODISCARD;

/* ---- sizes.c ---- */

/* Flag of a factor of a named run, or with WF_VARIES, whose sizes differ: never split. */
enum { WF_DIFFERS = 128 };

/* Sizes that the text or attributes give. */
weft_status wf_op_learn_attrs(struct wf_spread *spread) WF_NODISCARD;
/* The factors of an input, and what it says about their sizes. */
weft_status wf_op_bind_input(struct wf_spread *spread, struct wf_op_tensor *tensor) WF_NODISCARD;
/* Infer factors of products. */
weft_status wf_op_learn_products(struct wf_op *op) WF_NODISCARD;
/* Reductions and flags that depend on attributes. */
void wf_op_settle_factors(struct wf_op *op, const weft_op_call *call);
/* A tensor of size 1 where others are longer lacks the factor. */
void wf_op_drop_broadcast(struct wf_op *op, struct wf_op_tensor *tensor);
/* The factors of the dimension at PLACE.  RUN is the length of the tensor's run. */
weft_status wf_op_set_dim(struct wf_op *op, const struct wf_op_tensor *tensor,
                          struct wf_place place, int run, struct wf_op_dim *out) WF_NODISCARD;
int wf_op_count_run(const struct wf_op *op, const struct wf_op_tensor *tensor,
                    const struct wf_place *places);
/* Infer the one unknown factor of a product.  *LEARNED is set if there was one. */
weft_status wf_op_learn_product(struct wf_op *op, const struct wf_op_tensor *tensor, int dim,
                                bool *learned) WF_NODISCARD;
/* "k", "..", "S.." for messages. */
void wf_op_name_factor(const struct wf_op *op, const struct wf_op_factor *f, char *out,
                       size_t bytes);

/* ---- outputs.c ---- */

/* The factors, shape and dtype of output INDEX, which is MEMBER of its list. */
weft_status wf_op_bind_output(struct wf_spread *spread, struct wf_op_tensor *tensor, uint32_t index,
                              uint32_t member) WF_NODISCARD;

/* True if both are truth values, integers, real or complex numbers. */
bool wf_op_same_kind(uint32_t a, uint32_t b);

/* ---- local.c ---- */

/* The dimension of TENSOR that is SYMBOL alone, by its place in the rule: behind a run, dimensions
 * count from the last one.  -1: none. */
int32_t wf_op_dim_of(const struct wf_op *op, uint32_t tensor, uint32_t symbol);

/* ---- make/make.c ---- */

/* Write the rule that RULE's clause `make` asks for, for the shapes of CALL, without its name, and
 * set the sizes that OP->made lists. */
weft_status wf_op_make(struct wf_op *op, const struct wf_rule *rule, const weft_op_call *call,
                       struct wf_text *out) WF_NODISCARD;

#endif
