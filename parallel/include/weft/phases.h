/* phases.h - operators that need the whole of a dimension which mesh axes split.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 * A softmax over a split dimension needs two numbers of each row from the other ranks: the maximum
 * and the sum.  weft_op_apply_phases lets the engine's kernel compute such statistics on the
 * shards, reduces them over the axes, and gives them to the kernel for the next phase.  The tensor
 * itself is never gathered:
 *
 *     weft_op_attr dim = {.name = "dim", .kind = WEFT_ATTR_INT, .integer = 1};
 *     weft_op_call call = {.struct_size = sizeof call, .name = "softmax", .input_count = 1,
 *                          .attrs = &dim, .attr_count = 1, .attr_size = sizeof dim};
 *     TRY(weft_op_apply_phases(ctx, &call, &x, NULL, kernel, NULL, stream, 1, &y));
 *
 * The kernel is called with run->name "softmax.max", "softmax.sum_exp" and "softmax.finish".  The
 * chapter "Operators over a split dimension" of docs/engine-guide.md has the phases of all
 * operators. */
#ifndef WEFT_PHASES_H
#define WEFT_PHASES_H

#include "weft/apply.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most outputs that an operator has here. */
enum { WEFT_MAX_PHASE_OUTPUTS = 3 };

/* Apply the operator of CALL to INPUTS as weft_op_apply does, but split dimensions stay split.
 * The operators, with their inputs, attributes and outputs, are:
 *
 *     softmax log_softmax safe_softmax   x           dim                      y
 *     softmax_bwd log_softmax_bwd        g y         dim                      d
 *     logsumexp                          x           dims keepdim             y
 *     logsumexp_bwd                      g x y       dims keepdim             d
 *     var std                            x           dims keepdim correction unbiased   v
 *     var_mean std_mean                  x           the same                 v m
 *     var_bwd                            g x m       the same                 d
 *     layer_norm                         x w? b?     dims eps                 y m r
 *     layer_norm_bwd                     g x m r w? b?   the same             dx dw db
 *     rms_norm                           x w?        dims eps                 y r
 *     rms_norm_bwd                       g x r w?    the same                 dx dw
 *     cumsum                             x           dim                      y
 *     argmax argmin                      x           dims keepdim             i
 *     max_dim min_dim                    x           dims keepdim             v i
 *     topk                               x           dim k largest sorted     v i
 *     cross_entropy                      x t w?      reduction ignore_index   l e z
 *     cross_entropy_bwd                  g x t e z? w?   the same             d
 *     embedding gather index_select      as in their rules
 *
 * Below, x is the leading input: the outputs follow its layout.  It is x, except: y in the backward
 * of a softmax; g, if only g is split.  The dimensions of a norm are the last ones of x; w and b
 * have these dimensions, m and r the others and size 1 in place of these.  dw and db have the dtype
 * of g.  Indices i are i64.  cumsum of integers is i64.  layer_norm_bwd ignores b and always makes
 * dw and db.  `dim` must be given.  `dims` is a number or a list; without it, all dimensions are
 * meant.  Classes of a cross entropy are dimension 1 of x; targets t are i64; `reduction` is
 * "none", "sum" or "mean"; e is the logarithm of the sum of exponentials, which cross_entropy_bwd
 * needs, and z, the number of targets that count, is NULL unless `reduction` is "mean".  w has a
 * weight for each class: the loss of a target is multiplied by the weight of its class, and z is
 * the sum of the weights of the targets that count.  l, e and z are f64 if x is, and f32 otherwise.
 *
 * Outputs are complete: partial on no axis.  In v, i, m, r, l, e, z and y of logsumexp, the axes
 * that split a reduced dimension of x, or `dim` of topk, are R.  l of the reductions sum and mean,
 * and z, are one number, R on the axes that split targets.  Other outputs have the layout of x; dw
 * and db have that of x in their dimensions.  embedding, gather and index_select have the outputs
 * of weft_op_apply; if these are partial, they are reduced, even if moves are refused.  OUTPUTS has
 * room for OUTPUT_COUNT tensors, at least as many as the table lists; further entries become NULL.
 * The caller releases them.  *OUTPUTS is not written if the call fails.
 *
 * KERNEL is called once per phase on each rank that has an element of the phase's output.
 * run->name is `OPERATOR.PHASE`, run->attrs are the call's, run->choice is NULL, and
 * run->count is the number of elements of x in one row.  A rank whose part of a row is empty is not
 * called: its statistics are the identity of their reduction, and its candidates have index -1.  If
 * no axis splits the dimensions in question, the operator is applied by weft_op_apply, with one
 * call of KERNEL that has the operator's own name; cross_entropy, cross_entropy_bwd, logsumexp_bwd
 * and var_bwd, which have no such form, always have phases.  KERNEL gets STREAM, and the call
 * returns when the last phase has posted its work: the outputs are complete in the order of STREAM.
 *
 * Each phase that communicates moves one batch.  docs/engine-guide.md lists the values of each
 * phase.  cross_entropy with `sum` or `mean` also sums two numbers over the axes that split
 * targets.  The gradients dw and db are summed over the axes that split other dimensions.  Inputs
 * that are not in the layout of x are moved if OPTIONS permit moves, and are cut without
 * communication where they are replicated.  A partial x is moved likewise.  OPTIONS may be NULL.
 *
 * Collective over the mesh.  Errors that follow from the arguments come alike on all ranks:
 * WEFT_ERR_NOT_FOUND: there is no such operator.  WEFT_ERR_UNSUPPORTED: it has no phases.
 * WEFT_ERR_INVALID: inputs or attributes do not fit the operator, a tensor belongs to another
 * context or mesh, or the operator has more outputs than OUTPUT_COUNT.  WEFT_ERR_MISMATCH: an input
 * must be moved and moves are not permitted; the error text has the layout and the price.  Other
 * errors as in weft_op_apply: if KERNEL fails on one rank, the world communicator fails.  The next
 * phase that communicates, or the next collective call after the last phase, then fails on all
 * ranks with the operator's name.  [INPUTS: call->input_count entries] [OUTPUTS: at most
 * WEFT_MAX_PHASE_OUTPUTS entries] */
WEFT_API WEFT_NODISCARD weft_status
weft_op_apply_phases(weft_context *context, const weft_op_call *call, weft_tensor *const *inputs,
                     const weft_op_apply_options *options, weft_op_kernel kernel, void *user,
                     weft_stream *stream, size_t output_count, weft_tensor **outputs);

#ifdef __cplusplus
}
#endif
#endif
