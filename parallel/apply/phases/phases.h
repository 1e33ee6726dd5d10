/* phases.h - operators over dimensions that mesh axes split: the kernel computes statistics of each
 * shard, the axes reduce them, and the kernel goes on with the result.
 *
 *     call.c      the call, and the operators that have phases
 *     arguments.c inputs and attributes of the call
 *     align.c     inputs in the layouts that the operator needs
 *     rows.c      layouts of statistics and candidates
 *     phase.c     one phase: its outputs, the kernel, the move
 *     softmax.c moments.c norm.c scan.c best.c loss.c   the operators */
#ifndef WEFT_PARALLEL_APPLY_PHASES_PHASES_H
#define WEFT_PARALLEL_APPLY_PHASES_PHASES_H

#include "apply/apply.h"
#include "weft/phases.h"

#define WF_PHASES_FUNCTION "weft_op_apply_phases"

enum { WF_PHASE_INPUTS = 8, WF_PHASE_OUTPUTS = WEFT_MAX_PHASE_OUTPUTS, WF_PHASES_HELD = 32 };

/* One call. */
struct wf_phases {
    weft_context *context;
    struct wf_apply_state *state;
    weft_stream *stream;
    weft_op_call call;
    const struct wf_phased *op;
    struct wf_apply_options options;
    weft_op_kernel kernel;
    void *user;
    weft_tensor *inputs[WF_PHASE_INPUTS]; /* borrowed or held; NULL: absent */
    uint32_t main;                        /* the input x, whose layout the call has */
    const weft_spec *x;                   /* its layout, without partials */
    uint32_t reduced;                     /* the dimensions of x in question, a bit each */
    bool keepdim;
    uint32_t statistic; /* dtype of statistics */
    weft_tensor *held[WF_PHASES_HELD];
    uint32_t held_count;
};

/* An operator that has phases. */
struct wf_phased {
    const char *name;
    const char *attrs;   /* names, one space after each */
    uint8_t least, most; /* inputs */
    uint8_t main;        /* the input x */
    uint8_t index;       /* the input that has integers; 0: none */
    uint8_t outputs;     /* of weft_op_apply; 0: it has no such form */
    bool any_type;       /* x may have integers */
    /* NULL: the kernel computes masked parts, which weft_op_apply knows. */
    weft_status (*run)(struct wf_phases *p, weft_tensor **outputs);
};

/* Put the function and the operator before this thread's last failure text. */
weft_status wf_phases_refuse(const struct wf_phases *p, weft_status status);
/* Only this rank fails: the others must not wait for it. */
weft_status wf_phases_give_up(const struct wf_phases *p, weft_status status);

/* ---- arguments.c ---- */

weft_status wf_phases_read(struct wf_phases *p, const weft_op_call *call) WF_NODISCARD;
weft_status wf_phases_read_inputs(struct wf_phases *p, weft_tensor *const *inputs) WF_NODISCARD;
/* Set p->reduced and p->keepdim from the attributes, for an input x of DIMS dimensions. */
weft_status wf_phases_read_dims(struct wf_phases *p, int32_t dims) WF_NODISCARD;

/* ---- rows.c ---- */

/* True if an axis splits a dimension of the set REDUCED. */
bool wf_rows_are_split(const weft_spec *spec, uint32_t reduced);
/* The elements of one row: of the dimensions REDUCED. */
int64_t wf_rows_length(const weft_spec *spec, uint32_t reduced);
/* SPEC without the dimensions REDUCED, or with size 1 in them if KEEP.  The axes that split them
 * become P(REDUCTION); R if it is WEFT_REDUCE_COUNT.  The caller releases *OUT. */
weft_status wf_rows_spec(const weft_spec *spec, uint32_t reduced, bool keep, uint32_t reduction,
                         uint32_t dtype, weft_spec **out) WF_NODISCARD;
/* SPEC without the dimensions REDUCED and with a last dimension of SLOTS candidates of each rank
 * along the axes that split them; SPLIT by these axes, or whole. */
weft_status wf_candidates_spec(const weft_spec *spec, uint32_t reduced, int64_t slots, bool split,
                               uint32_t dtype, weft_spec **out) WF_NODISCARD;
/* SPEC with SIZE elements in dimension DIM, which no axis splits. */
weft_status wf_resized_spec(const weft_spec *spec, int32_t dim, int64_t size, uint32_t dtype,
                            weft_spec **out) WF_NODISCARD;
/* SPEC with a first dimension of COUNT elements. */
weft_status wf_stacked_spec(const weft_spec *spec, uint32_t count, weft_spec **out) WF_NODISCARD;
/* The dimensions REDUCED of SPEC alone, in the layout that they have there.  The axes that split
 * other dimensions become P(REDUCTION); R if it is WEFT_REDUCE_COUNT. */
weft_status wf_columns_spec(const weft_spec *spec, uint32_t reduced, uint32_t reduction,
                            uint32_t dtype, weft_spec **out) WF_NODISCARD;
/* The most runs of indices that a rank has in dimension DIM. */
int64_t wf_most_runs(const weft_spec *spec, int32_t dim);
/* SPEC with R in place of partials. */
weft_status wf_complete_spec(const weft_spec *spec, weft_spec **out) WF_NODISCARD;
/* The elements of dimension DIM that the rank with the most has. */
int64_t wf_largest_part(const weft_spec *spec, int32_t dim);

/* ---- align.c ---- */

/* Bring input INPUT, if it is present, to the layout SPEC, which is released.  The shape must be
 * that of SPEC; the dtype may be another. */
weft_status wf_phases_align(struct wf_phases *p, uint32_t input, weft_spec *spec) WF_NODISCARD;
/* The same, to the rows of x: its layout without the reduced dimensions. */
weft_status wf_phases_align_rows(struct wf_phases *p, uint32_t input, bool keep) WF_NODISCARD;
/* The same, to one row of x: a tensor of the reduced dimensions. */
weft_status wf_phases_align_columns(struct wf_phases *p, uint32_t input) WF_NODISCARD;

/* ---- phase.c ---- */

/* Release TENSOR at the end of the call. */
void wf_phases_hold(struct wf_phases *p, weft_tensor *tensor);
/* Make OUTPUTS tensors OUT of the layouts SPECS, which are released, and call the kernel.  The
 * tensors are held. */
weft_status wf_phase(struct wf_phases *p, const char *phase, uint32_t inputs,
                     weft_tensor *const *in, uint32_t outputs, weft_spec **specs,
                     weft_tensor **out) WF_NODISCARD;
/* Replace TENSORS by the same in the layouts SPECS, which are released, as one batch. */
weft_status wf_phases_move(struct wf_phases *p, uint32_t count, weft_tensor **tensors,
                           weft_spec **specs) WF_NODISCARD;
/* The same, to the layouts without partials. */
weft_status wf_phases_complete(struct wf_phases *p, uint32_t count,
                               weft_tensor **tensors) WF_NODISCARD;
/* A phase whose output is a statistic of each row, reduced by REDUCTION. */
weft_status wf_phase_reduce(struct wf_phases *p, const char *phase, uint32_t reduction,
                            uint32_t inputs, weft_tensor *const *in,
                            weft_tensor **out) WF_NODISCARD;
/* A phase with OUTPUTS statistics of the partial layout SPEC, which is released.  They travel as
 * one tensor. */
weft_status wf_phase_statistics(struct wf_phases *p, const char *phase, weft_spec *spec,
                                uint32_t inputs, weft_tensor *const *in, uint32_t outputs,
                                weft_tensor **out) WF_NODISCARD;
/* The last phase, "finish", of an operator with one output of the layout of x. */
weft_status wf_phase_finish(struct wf_phases *p, uint32_t inputs, weft_tensor *const *in,
                            weft_tensor **out) WF_NODISCARD;
/* The same, of an operator whose OUTPUTS outputs have one element of DTYPE for each row. */
weft_status wf_phase_finish_rows(struct wf_phases *p, uint32_t dtype, uint32_t inputs,
                                 weft_tensor *const *in, uint32_t outputs,
                                 weft_tensor **out) WF_NODISCARD;

/* ---- best.c ---- */

/* The phase PHASE: SLOTS values of DTYPE with indices from each rank along the axes that split a
 * row of x, then gathered: PAIRS are the values and the indices. */
weft_status wf_phase_candidates(struct wf_phases *p, const char *phase, int64_t slots,
                                uint32_t dtype, weft_tensor **pairs) WF_NODISCARD;

/* ---- the operators ---- */

weft_status wf_phases_softmax(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_softmax_bwd(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_logsumexp(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_var(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_rows_bwd(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_layer_norm(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_layer_norm_bwd(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_rms_norm(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_rms_norm_bwd(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_cumsum(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_best(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_topk(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_cross_entropy(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;
weft_status wf_phases_cross_entropy_bwd(struct wf_phases *p, weft_tensor **outputs) WF_NODISCARD;

#endif
