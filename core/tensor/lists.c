/* lists.c - moves of many tensors as one batch.
 *
 * The first tensor keeps its last list.  If the next list has the same tensors, and no tensor of
 * the context was freed meanwhile, then nothing has changed, because a tensor's memory, spec and
 * name stay: comparing the pointers suffices. */
#include "tensor.h"

#include <stdio.h>
#include <string.h>

/* The last list that begins with a tensor, in one piece of memory. */
struct wf_tensor_list {
    uint32_t count, room; /* COUNT 0: it cannot be used again */
    uint64_t ended;       /* tensors of the context that were freed before */
    struct wf_list_memo memo;
    weft_tensor **tensors, **targets;
    weft_move_item items[];
};

static struct wf_tensor_list *make_list(uint32_t count)
{
    size_t each = sizeof(weft_move_item) + 2 * sizeof(weft_tensor *);
    struct wf_tensor_list *list = wf_calloc(1, sizeof *list + count * each);

    if (list == NULL) {
        (void)wf_fail_memory(sizeof *list + count * each);
        return NULL;
    }
    list->room = count;
    list->tensors = (weft_tensor **)(list->items + count);
    list->targets = list->tensors + count;
    return list;
}

/* Give FIRST a list with room for COUNT tensors, so that later moves allocate nothing. */
static weft_status reserve(weft_tensor *first, uint32_t count, const char *function)
{
    struct wf_tensor_list *list;

    if (first->last_list != NULL && count <= first->last_list->room) return WEFT_OK;
    list = make_list(count);
    if (list == NULL)
        return wf_carrier_of(first->context)->give_up(first->context, WEFT_ERR_NO_MEMORY, function);
    wf_free(first->last_list);
    first->last_list = list;
    return WEFT_OK;
}

static uint64_t count_ended(const weft_context *context)
{
    return atomic_load_explicit(wf_tensors_ended(context), memory_order_relaxed);
}

static bool is_same(const struct wf_tensor_list *list, const weft_context *context, uint32_t count,
                    weft_tensor *const *tensors, weft_tensor *const *targets)
{
    return list->count == count && list->ended == count_ended(context) &&
           memcmp(list->tensors, tensors, count * sizeof(weft_tensor *)) == 0 &&
           memcmp(list->targets, targets, count * sizeof(weft_tensor *)) == 0;
}

/* Give *ITEM, the move of TENSOR to TARGET, memory without gaps and overlap. */
static weft_status set_dense(weft_tensor *tensor, weft_tensor *target, weft_stream *stream,
                             weft_move_item *item, const char *function)
{
    weft_status status = wf_pair_pack(tensor, target, stream, &item->source, &item->target);

    if (status == WEFT_OK) return WEFT_OK;
    return wf_carrier_of(tensor->context)->give_up(tensor->context, status, function);
}

/* Pair INDEX of the list can be used, and belongs to CONTEXT. */
static weft_status check_pair(const weft_tensor *tensor, const weft_tensor *target, uint32_t index,
                              const weft_context *context, const char *function)
{
    weft_status status = wf_pair_check(tensor, target, function);
    char about[32];

    if (status == WEFT_OK && tensor->context != context)
        status = wf_fail(WEFT_ERR_INVALID, "tensor belongs to another context than tensor 0");
    if (status == WEFT_OK) return WEFT_OK;
    snprintf(about, sizeof about, "pair %u", index);
    return wf_fail_about(status, function, about);
}

/* No target is a target of another pair, or moved by another one. */
static weft_status check_targets(uint32_t count, weft_tensor *const *tensors,
                                 weft_tensor *const *targets, const char *function)
{
    for (uint32_t i = 0; i < count; i++)
        targets[i]->listed = i;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t target = targets[i]->listed, source = tensors[i]->listed;

        if (target != i)
            return wf_fail(WEFT_ERR_INVALID, "%s: pairs %u and %u have the same target", function,
                           i, target);
        if (source < count && source != i && targets[source] == tensors[i])
            return wf_fail(WEFT_ERR_INVALID, "%s: the tensor of pair %u is the target of pair %u",
                           function, i, source);
    }
    return WEFT_OK;
}

/* Write the moves to LIST.  *DENSE: no target has gaps. */
static weft_status set_items(struct wf_tensor_list *list, uint32_t count,
                             weft_tensor *const *tensors, weft_tensor *const *targets,
                             weft_stream *stream, const char *function, bool *dense)
{
    const weft_context *context = tensors[0]->context;
    bool all = true;

    list->count = 0;
    list->memo = (struct wf_list_memo){0};
    for (uint32_t i = 0; i < count; i++)
        WF_TRY(check_pair(tensors[i], targets[i], i, context, function));
    WF_TRY(check_targets(count, tensors, targets, function));
    for (uint32_t i = 0; i < count; i++) {
        weft_tensor *tensor = tensors[i], *target = targets[i];
        weft_move_item *item = &list->items[i];

        *item =
            (weft_move_item){tensor->name, tensor->spec, tensor->held, target->spec, target->held};
        list->tensors[i] = tensor;
        list->targets[i] = target;
        *dense = *dense && target->is_dense;
        if (wf_pair_is_direct(tensor, target)) continue;
        all = false;
        WF_TRY(set_dense(tensor, target, stream, item, function));
    }
    if (!all) return WEFT_OK; /* elements are copied for each move */
    list->count = count;
    list->ended = count_ended(context);
    return WEFT_OK;
}

/* Work on the default stream of a backend that runs it at once is complete. */
static void use_all(uint32_t count, weft_tensor *const *tensors, weft_tensor *const *targets,
                    weft_stream *stream)
{
    if (stream == NULL && (tensors[0]->context->features & WEFT_FEATURE_INLINE) != 0) return;
    for (uint32_t i = 0; i < count; i++) {
        wf_tensor_use(tensors[i], stream);
        wf_tensor_use(targets[i], stream);
    }
}

static weft_status move_list(uint32_t count, weft_tensor *const *tensors,
                             weft_tensor *const *targets, const struct wf_moving *how,
                             weft_stream *stream, weft_work **work, const char *function)
{
    bool chosen = how != NULL && how->is_chosen; /* the memo is of the common plan */
    weft_context *context = tensors[0]->context;
    struct wf_tensor_list *list = tensors[0]->last_list;
    bool dense = true;

    if (!is_same(list, context, count, tensors, targets))
        WF_TRY(set_items(list, count, tensors, targets, stream, function, &dense));
    use_all(count, tensors, targets, stream);
    WF_TRY(wf_carrier_of(context)->move_batch(context, count, list->items,
                                              list->count > 0 && !chosen ? &list->memo : NULL, how,
                                              stream, dense ? work : NULL, function));
    for (uint32_t i = 0; i < count && !dense; i++)
        WF_TRY(wf_dense_unpack(targets[i], stream));
    return dense || work == NULL ? WEFT_OK : wf_work_record(context, stream, function, work);
}

weft_status wf_tensors_move_into(size_t count, weft_tensor *const *tensors,
                                 weft_tensor *const *targets, const struct wf_moving *how,
                                 weft_stream *stream, weft_work **work, const char *function)
{
    weft_status status;

    if (tensors == NULL) return wf_fail_null(function, "tensors");
    if (targets == NULL) return wf_fail_null(function, "targets");
    if (count == 1) return wf_tensor_move_into(tensors[0], targets[0], how, stream, work, function);
    if (count == 0 || count > INT32_MAX)
        return wf_fail(WEFT_ERR_INVALID, "%s: count is %zu; expected 1 to %d", function, count,
                       INT32_MAX);
    WF_TRY(check_pair(tensors[0], targets[0], 0, tensors[0] != NULL ? tensors[0]->context : NULL,
                      function));
    WF_TRY(wf_stream_check(tensors[0]->context, stream, function));
    WF_TRY(reserve(tensors[0], (uint32_t)count, function));
    status = move_list((uint32_t)count, tensors, targets, how, stream, work, function);
    return status == WEFT_OK ? status : wf_fail_named(status, function);
}

weft_status weft_tensors_move_into(size_t count, weft_tensor *const *tensors,
                                   weft_tensor *const *targets, const weft_move_options *options,
                                   weft_stream *stream, weft_work **work)
{
    static const char what[] = "weft_tensors_move_into";
    const struct wf_moving *how = NULL;
    struct wf_moving room;

    if (options != NULL) WF_TRY(wf_moving_read(options, what, &room, &how));
    return wf_tensors_move_into(count, tensors, targets, how, stream, work, what);
}
