/* apply.h - run an engine's kernels on distributed tensors.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 * weft_op_apply finds the layouts of an operator by its rule (ops.h), makes the output tensors, and
 * calls the engine's kernel once with this rank's shards:
 *
 *     weft_status multiply(void *user, const weft_op_run *run)
 *     {
 *         const weft_tensor_local *a = &run->inputs[0], *b = &run->inputs[1];
 *         const weft_tensor_local *y = &run->outputs[0];
 *
 *         return engine_mm(a->memory, a->strides, b->memory, b->strides, y->memory,
 *                          y->shard->shape[0], y->shard->shape[1], a->shard->shape[1]);
 *     }
 *
 *     weft_op_call call = {.struct_size = sizeof call, .name = "mm", .input_count = 2};
 *     weft_tensor *inputs[] = {x, w}, *y;
 *     TRY(weft_op_apply(ctx, &call, inputs, NULL, multiply, NULL, stream, 1, &y));
 *
 * By default inputs must be legal as they are, and a call that needs communication is an error,
 * which names the cheapest move.  The options permit moves that the caller did not write.
 *
 * All ranks call weft_op_apply in the same order with the same calls.  Ranks outside the mesh may
 * call it too; they get empty tensors.
 *
 * One thread at a time may call the functions of this header, of phases.h and of move.h on a
 * context; a second one gets WEFT_ERR_INVALID.  In the thread that called it, a kernel may apply
 * operators to tensors of its context, if these calls are not collective (weft_op_apply). */
#ifndef WEFT_APPLY_H
#define WEFT_APPLY_H

#include "weft/ops.h"
#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel computes: the outputs from the inputs, on this rank's shards.  All pointers are
 * valid until the kernel returns. */
typedef struct weft_op_run {
    size_t struct_size;
    const char *name; /* of the call */
    weft_context *context;
    /* Inputs are complete in the order of this stream.  The kernel posts its work to it, or waits
     * for it and completes its work before it returns. */
    weft_stream *stream;
    int32_t rank; /* of the shards */
    size_t input_count, output_count;
    size_t local_size; /* sizeof(weft_tensor_local) of weft */
    /* In the order of the call; the fields of an optional input that is absent are 0.  An input
     * whose memory an output has is written. */
    const weft_tensor_local *inputs;
    /* Row-major without gaps.  The memory of an operator in place, or of the form `NAME.out`, is
     * the input's. */
    const weft_tensor_local *outputs;
    /* The attributes of the call.  Those that are sizes of factors in the rule are sizes of this
     * rank's part, and `shape` is the shape of the first output's shard.  The ends of a slice are
     * those of its piece of the shard (docs/operators.md). */
    size_t attr_count, attr_size; /* attr_size: sizeof(weft_op_attr) of weft */
    const weft_op_attr *attrs;
    /* Divisor of averages: the kernel writes sum(local elements) / count.  It is the global number
     * of elements that the first output is reduced over; if that output is P(avg), this number
     * divided by the number of contributing ranks.  Of lists, that of element 0. */
    double count;
    const weft_op_choice *choice; /* the strategy */
} weft_op_run;

/* An engine's kernel.  USER is the argument beside it. */
typedef weft_status (*weft_op_kernel)(void *user, const weft_op_run *run);

/* Whether inputs may be moved. */
enum weft_op_moves {
    WEFT_OP_MOVES_REFUSED = 0, /* the default: only changes without communication, R to S or P */
    WEFT_OP_MOVES_MADE = 1,    /* the cheapest strategy is taken; its moves are one batch */
    WEFT_OP_MOVES_SHOWN = 2    /* the same, and each move is logged with its price */
};

/* Options of the functions that run kernels.  All ranks pass the same. */
typedef struct weft_op_apply_options {
    size_t struct_size;
    uint32_t moves; /* enum weft_op_moves */
    /* The strategies that may be used, and the costs that decide among them.  NULL: all, with the
     * costs of the context.  The plans of moves have the costs of the context in any case.
     * weft_op_apply_phases and weft_op_backward_apply, which make several calls, take `costs` of it
     * only. */
    const weft_op_options *strategy;
} weft_op_apply_options;

/* The number of outputs that weft_op_apply makes for CALL and INPUTS.  0: no strategy fits the
 * call, or an argument is not valid.  [INPUTS: call->input_count entries] */
WEFT_API size_t weft_op_output_count(const weft_op_call *call, weft_tensor *const *inputs);

/* Apply the operator of CALL to INPUTS, call->input_count tensors of CONTEXT; an optional input
 * that is absent is NULL.  call->inputs is not used: the tensors have their layouts.  OUTPUTS
 * has room for OUTPUT_COUNT tensors, at least as many as the operator has outputs.  These are in
 * the order of the rule, and the caller releases them; further entries become NULL.  Memory of
 * outputs of at most 1 MiB on a rank is kept for the next outputs of that layout on the same
 * stream: at most 64 such outputs of a context, and at most 16 MiB.  An output in place is its
 * input with one more reference.  OUTPUTS may be NULL if all outputs are in place; OUTPUT_COUNT
 * is not read then.  The form on lists, foreach_NAME, has the outputs of NAME for every element of
 * its lists.  call->output_count is the number of all of them, or 0.  OPTIONS may be NULL.
 *
 * Counters and records mark the moves of inputs as implicit (weft_record_counts_get in trace.h),
 * also those without communication.
 *
 * An output in place may be the same memory as another input.  Any other overlap of an output with
 * a tensor of the call is an error of the caller.  With WEFT_CHECK=1 the rank that finds one gets
 * WEFT_ERR_INVALID before KERNEL is called; the other ranks continue (docs/memory.md).
 *
 * KERNEL is called with USER, once, on each rank of the mesh that has an element of an output; if
 * ranks are simulated, one call after the other.  It gets STREAM, and the call returns when KERNEL
 * has posted its work: the outputs are complete in the order of STREAM.
 * Another result than WEFT_OK fails the call on this rank; KERNEL sets the text of its error with
 * weft_fail.  A number that is not an error of weft is answered as WEFT_ERR_INVALID.  KERNEL must
 * not call functions that are collective.  weft compares the dtypes of inputs where the
 * rule has a clause `same`, unless the call has WEFT_OP_CALL_MIXED_DTYPES; KERNEL refuses others
 * that it does not compute (weft_spec_dtype).  If the layouts leave a rank no element of any input,
 * and its outputs are partial, KERNEL is not called: the outputs are set to the identity of their
 * reduction.
 *
 * The first call on a mesh is collective: its ranks compare their rules (WEFT_ERR_MISMATCH).  A
 * call with moves is collective over the mesh.
 *
 * Errors of weft_op_check, or of weft_op_propose if moves are permitted, come alike on all ranks.
 * WEFT_ERR_INVALID: a tensor belongs to another context; an input that is written is read-only; the
 * operator has more outputs than OUTPUT_COUNT.
 * If only this rank fails, because KERNEL failed or there is no memory, the world communicator
 * fails: the next collective call of every rank returns the error with the operator's name. After
 * an error OUTPUTS is as before the call.  Tensors that are written in place, or given to the form
 * `NAME.out`, keep their contents, unless KERNEL was called, which may have changed them. [INPUTS:
 * call->input_count entries] [OUTPUTS: OUTPUT_COUNT entries, at least weft_op_output_count(CALL,
 * INPUTS)] */
WEFT_API WEFT_NODISCARD weft_status weft_op_apply(weft_context *context, const weft_op_call *call,
                                                  weft_tensor *const *inputs,
                                                  const weft_op_apply_options *options,
                                                  weft_op_kernel kernel, void *user,
                                                  weft_stream *stream, size_t output_count,
                                                  weft_tensor **outputs);

/* Run the calls of BACKWARD (ops.h), each as weft_op_apply does.  FORWARD has the tensors of the
 * forward call, inputs, then outputs; those that no call reads may be NULL.  GRADIENTS are those of
 * the outputs, in any layout that the calls allow.  KERNEL runs each call but `transpose`, which is
 * a view.  Some calls need the whole of a dimension that mesh axes split; phases.h lists their
 * operators.  If moves are refused, such a call runs in phases, as weft_op_apply_phases does, and
 * KERNEL gets the names of the phases.  If OPTIONS permit moves, its inputs are moved, and KERNEL
 * gets the operator's own name.  OPTIONS may be NULL.  INPUT_GRADIENTS has room for a tensor per
 * input; an entry is NULL where weft_op_backward_gradient is.  The caller releases them; one that
 * is the gradient of an output is that tensor with one more reference. Errors as in weft_op_apply,
 * which name the operator of the call that failed; WEFT_ERR_INVALID: a tensor that a call reads is
 * NULL, or its sizes or dtype are not those that BACKWARD was made for. After an error
 * INPUT_GRADIENTS is as before the call. [FORWARD: weft_op_backward_inputs(BACKWARD) +
 * weft_op_backward_outputs(BACKWARD) entries] [GRADIENTS: weft_op_backward_outputs(BACKWARD)
 * entries] [INPUT_GRADIENTS: weft_op_backward_inputs(BACKWARD) entries] */
WEFT_API WEFT_NODISCARD weft_status weft_op_backward_apply(
    weft_context *context, const weft_op_backward *backward, weft_tensor *const *forward,
    weft_tensor *const *gradients, const weft_op_apply_options *options, weft_op_kernel kernel,
    void *user, weft_stream *stream, weft_tensor **input_gradients);

#ifdef __cplusplus
}
#endif
#endif
