/* map.c - a checkpoint whose tensors are made of those of another by rules. */
#include "checkpoint/rules/rules.h"

#include <stdlib.h>
#include <string.h>

static int compare_targets(const void *left, const void *right)
{
    return strcmp(((const struct wf_target *)left)->name, ((const struct wf_target *)right)->name);
}

/* The tensors of CHECKPOINT, in the order of their names. */
static weft_status take_targets(weft_checkpoint *checkpoint, struct wf_mapping *mapping)
{
    checkpoint->tensors = wf_calloc(mapping->count, sizeof *checkpoint->tensors);
    if (checkpoint->tensors == NULL)
        return wf_fail_memory(mapping->count * sizeof *checkpoint->tensors);
    if (mapping->count > 0)
        qsort(mapping->targets, mapping->count, sizeof *mapping->targets, compare_targets);
    for (size_t i = 0; i < mapping->count; i++) {
        const struct wf_target *target = &mapping->targets[i];
        struct wf_tensor *tensor = &checkpoint->tensors[i];
        *tensor = (struct wf_tensor){.name = target->name,
                                     .shape = target->view->shape,
                                     .view = target->view,
                                     .dtype = (uint8_t)target->dtype,
                                     .dims = target->view->dims};
        if (!wf_file_bytes(tensor->dtype, tensor->dims, tensor->shape, &tensor->bytes))
            return wf_fail(WEFT_ERR_INVALID, "tensor \"%.200s\" is too large", tensor->name);
    }
    checkpoint->tensor_count = mapping->count;
    return WEFT_OK;
}

static weft_status take_pairs(weft_checkpoint *checkpoint, const weft_checkpoint *from)
{
    size_t bytes = from->pair_count * sizeof *from->pairs;

    checkpoint->pairs = wf_alloc(bytes);
    if (checkpoint->pairs == NULL) return wf_fail_memory(bytes);
    if (bytes > 0) memcpy(checkpoint->pairs, from->pairs, bytes);
    checkpoint->pair_count = from->pair_count;
    return WEFT_OK;
}

static weft_status make_map(const weft_checkpoint *from, const weft_checkpoint_rules *rules,
                            weft_checkpoint *checkpoint)
{
    struct wf_mapping mapping = {0};
    weft_status status = wf_mapping_make(from, rules, &checkpoint->arena, &mapping);

    if (status == WEFT_OK) status = wf_mapping_check(&mapping);
    if (status == WEFT_OK) status = take_targets(checkpoint, &mapping);
    if (status == WEFT_OK) status = take_pairs(checkpoint, from);
    wf_mapping_free(&mapping);
    return status;
}

weft_status weft_checkpoint_map(const weft_checkpoint *from, const weft_checkpoint_rules *rules,
                                weft_checkpoint **out)
{
    weft_checkpoint_rules *known = NULL; /* with the numbers of the model */
    weft_checkpoint *checkpoint;
    weft_status status = WEFT_OK;

    WF_TRY(wf_require_kind(from, WF_KIND_CHECKPOINT, "weft_checkpoint_map: from"));
    WF_TRY(wf_require_kind(rules, WF_KIND_RULES, "weft_checkpoint_map: rules"));
    WF_TRY(wf_require(out, "weft_checkpoint_map: out"));
    checkpoint = wf_calloc(1, sizeof *checkpoint);
    if (checkpoint == NULL) return wf_fail_memory(sizeof *checkpoint);
    checkpoint->made = WF_OF_KIND(WF_KIND_CHECKPOINT);
    checkpoint->base = from;
    checkpoint->format = from->format;
    checkpoint->others = from->others;
    if (rules->wants_model) status = wf_rules_for(rules, from, &known);
    if (status == WEFT_OK) status = make_map(from, known != NULL ? known : rules, checkpoint);
    weft_checkpoint_rules_release(&known);
    if (status != WEFT_OK) {
        weft_checkpoint_close(&checkpoint);
        if (rules->path != NULL) wf_fail_context(status, "%s", rules->path);
        return wf_fail_named(status, "weft_checkpoint_map");
    }
    *out = checkpoint;
    return WEFT_OK;
}
