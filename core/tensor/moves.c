/* moves.c - moves of tensors, by the carrier of their context.
 *
 * A tensor with gaps is copied to memory without gaps before its move, or from it afterwards; so is
 * a tensor that its target overlaps. */
#include "tensor.h"

weft_status wf_pair_check(const weft_tensor *tensor, const weft_tensor *target,
                          const char *function)
{
    if (tensor == NULL || !wf_tensor_is_usable(tensor))
        return wf_tensor_check(tensor, function, "tensor");
    if (target == NULL || !wf_tensor_is_usable(target))
        return wf_tensor_check(target, function, "target");
    if (target->is_read_only)
        return wf_tensor_fail(target, wf_tensor_refuse_write(target, "target"), function);
    if (tensor->context == target->context) return WEFT_OK;
    return wf_tensor_fail(tensor, wf_fail(WEFT_ERR_INVALID, "target belongs to another context"),
                          function);
}

/* ---- one tensor ---- */

/* The move if TENSOR or TARGET has gaps, or if they overlap. */
static weft_status move_copied(weft_tensor *tensor, weft_tensor *target,
                               const struct wf_moving *how, weft_stream *stream, weft_work **work,
                               const char *function)
{
    weft_context *context = tensor->context;
    const struct wf_carrier *carrier = wf_carrier_of(context);
    weft_move_item item = {tensor->name, tensor->spec, NULL, target->spec, NULL};
    weft_status status;

    WF_TRY(wf_stream_check(context, stream, function));
    status = wf_pair_pack(tensor, target, stream, &item.source, &item.target);
    if (status != WEFT_OK) return carrier->give_up(context, status, function);
    WF_TRY(carrier->move(context, &item, how, stream, target->is_dense ? work : NULL, function));
    if (target->is_dense) return WEFT_OK;
    WF_TRY(wf_dense_unpack(target, stream));
    return work != NULL ? wf_work_record(context, stream, function, work) : WEFT_OK;
}

static weft_status move_pair(weft_tensor *tensor, weft_tensor *target, const struct wf_moving *how,
                             weft_stream *stream, weft_work **work, const char *function)
{
    const weft_move_item item = {tensor->name, tensor->spec, tensor->held, target->spec,
                                 target->held};
    weft_status status;

    wf_tensor_use(tensor, stream);
    wf_tensor_use(target, stream);
    if (wf_pair_is_direct(tensor, target))
        status = wf_carrier_of(tensor->context)
                     ->move(tensor->context, &item, how, stream, work, function);
    else
        status = move_copied(tensor, target, how, stream, work, function);
    return wf_tensor_fail(tensor, status, function);
}

weft_status wf_tensor_move_into(weft_tensor *tensor, weft_tensor *target,
                                const struct wf_moving *how, weft_stream *stream, weft_work **work,
                                const char *function)
{
    WF_TRY(wf_pair_check(tensor, target, function));
    return move_pair(tensor, target, how, stream, work, function);
}

weft_status wf_tensor_move(weft_tensor *tensor, const weft_spec *spec, const struct wf_moving *how,
                           weft_stream *stream, const char *function, weft_status status,
                           weft_tensor **out)
{
    weft_tensor *made = NULL;

    if (status == WEFT_OK)
        status = wf_tensor_make(tensor->context, spec, tensor->name, stream, function, &made);
    status = wf_tensors_agree(
        tensor->context, &(struct wf_passed){.from = tensor->spec, .to = spec}, function, status);
    if (status == WEFT_OK) status = move_pair(tensor, made, how, stream, NULL, function);
    if (status == WEFT_OK)
        *out = made;
    else
        weft_tensor_release(&made);
    return wf_fail_named(status, function);
}

/* Checks of a rank that knows the tensor.  A rank that does not know the target's mesh, because it
 * passed no spec, tells the ranks of the tensor's. */
weft_status weft_tensor_move(weft_tensor *tensor, const weft_spec *spec,
                             const weft_move_options *options, weft_stream *stream,
                             weft_tensor **out)
{
    static const char what[] = "weft_tensor_move";
    const struct wf_moving *how = NULL;
    struct wf_moving room;
    weft_status status;

    WF_TRY(wf_tensor_check(tensor, what, "tensor"));
    status = wf_require_kind(spec, WF_KIND_SPEC, "weft_tensor_move: spec");
    if (status != WEFT_OK) spec = tensor->spec;
    if (status == WEFT_OK && out == NULL) status = wf_fail_null(what, "out");
    if (status == WEFT_OK) status = wf_stream_check(tensor->context, stream, what);
    if (status == WEFT_OK) status = wf_moving_read(options, what, &room, &how);
    return wf_tensor_move(tensor, spec, how, stream, what, status, out);
}

weft_status wf_tensor_in(weft_tensor *tensor, const weft_spec *spec, const struct wf_moving *how,
                         weft_stream *stream, const char *function, weft_status status,
                         weft_tensor **out)
{
    if (tensor->spec != spec)
        return wf_tensor_move(tensor, spec, how, stream, function, status, out);
    if (status == WEFT_OK) *out = weft_tensor_retain(tensor);
    return status;
}

/* ---- the whole tensor ---- */

/* The layout in which RANK, or every rank of the mesh, holds TENSOR whole. */
static weft_status find_full(const weft_tensor *tensor, int32_t rank, weft_spec **out)
{
    const struct wf_layout *layout = &tensor->spec->layout;
    weft_placement placements[WEFT_MAX_AXES] = {{0}};
    int32_t coord[WEFT_MAX_AXES] = {0};

    if (rank != WEFT_EVERY_RANK && !wf_mesh_coord(layout->mesh, rank, coord))
        return wf_fail(WEFT_ERR_INVALID, "rank %d is not in the tensor's mesh", rank);
    for (int32_t a = 0; rank != WEFT_EVERY_RANK && a < layout->mesh->axes; a++)
        placements[a] = (weft_placement){.kind = WEFT_PLACE_OWNER, .owner = coord[a]};
    return weft_spec_create(layout->mesh, (enum weft_dtype)layout->dtype, layout->dims,
                            layout->shape, placements, out);
}

weft_status weft_tensor_full(weft_tensor *tensor, int32_t rank, const weft_move_options *options,
                             weft_stream *stream, weft_tensor **out)
{
    static const char what[] = "weft_tensor_full";
    const struct wf_moving *how = NULL;
    struct wf_moving room;
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(wf_tensor_check(tensor, what, "tensor"));
    status =
        out != NULL ? wf_stream_check(tensor->context, stream, what) : wf_fail_null(what, "out");
    if (status == WEFT_OK) status = wf_moving_read(options, what, &room, &how);
    if (status == WEFT_OK) status = find_full(tensor, rank, &spec);
    status =
        wf_tensor_move(tensor, spec != NULL ? spec : tensor->spec, how, stream, what, status, out);
    weft_spec_release(&spec);
    return wf_tensor_fail(tensor, status, what);
}
