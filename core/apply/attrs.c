/* attrs.c - attributes that are sizes.  The caller gives sizes of whole tensors; a kernel makes the
 * part of this rank. */
#include "apply.h"

#include "ops/ops.h"

#include <string.h>

static bool is_named(const weft_op_attr *attr, const char *name, size_t length)
{
    return strncmp(attr->name, name, length) == 0 && attr->name[length] == '\0';
}

static const weft_shard *shard_at(const weft_op_choice *choice, const weft_op_local *inputs,
                                  const weft_op_local *outputs, int32_t tensor)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    if (weft_op_choice_get(choice, &info) != WEFT_OK) return NULL;
    if ((uint32_t)tensor >= info.inputs) return outputs[(uint32_t)tensor - info.inputs].shard;
    return inputs[tensor].shard;
}

/* The size that this rank has; -1: it is not known. */
static int64_t size_of(const struct wf_local_size *size, const weft_op_choice *choice,
                       const weft_op_local *inputs, const weft_op_local *outputs)
{
    const weft_shard *shard = shard_at(choice, inputs, outputs, size->tensor), *by;

    if (shard == NULL) return -1;
    if (size->by_tensor < 0) return shard->shape[size->dim];
    by = shard_at(choice, inputs, outputs, size->by_tensor);
    if (by == NULL || by->shape[size->by_dim] == 0) return -1;
    return shard->shape[size->dim] / by->shape[size->by_dim];
}

/* Room for the list of ATTR, whose numbers may change. */
static int64_t *own_list(struct wf_local_attrs *out, weft_op_attr *attr)
{
    int64_t *list = out->sizes + out->size_count;

    if (attr->list >= out->sizes && attr->list < out->sizes + WF_FEW_SIZES)
        return out->sizes + (attr->list - out->sizes);
    if (attr->count > WF_FEW_SIZES - out->size_count) return NULL;
    memcpy(list, attr->list, attr->count * sizeof *list);
    out->size_count += attr->count;
    attr->list = list;
    return list;
}

static void set_size(struct wf_local_attrs *out, weft_op_attr *attr, uint32_t at, int64_t size)
{
    int64_t *list;

    if (attr->kind == WEFT_ATTR_INT) attr->integer = size;
    if (attr->kind != WEFT_ATTR_LIST || at >= attr->count) return;
    list = own_list(out, attr);
    if (list != NULL) list[at] = size;
}

static bool is_shape(const weft_op_attr *attr)
{
    return attr->kind == WEFT_ATTR_LIST && strcmp(attr->name, "shape") == 0;
}

weft_status wf_local_attrs_set(struct wf_local_attrs *out, const weft_op_call *call,
                               const weft_op_choice *choice, const weft_op_local *inputs,
                               const weft_op_local *outputs)
{
    uint32_t count, attrs = call->attr_count;
    const struct wf_local_size *sizes = wf_choice_local_sizes(choice, &count);
    weft_op_attr *values = out->few;

    out->values = call->attrs;
    out->size_count = 0;
    if (attrs == 0) return WEFT_OK;
    if (attrs > WF_FEW_ATTRS) values = out->memory = wf_calloc(attrs, sizeof *values);
    if (values == NULL) return wf_fail_memory(attrs * sizeof *values);
    memcpy(values, call->attrs, attrs * sizeof *values);
    out->values = values;
    for (uint32_t i = 0; i < attrs; i++) {
        if (is_shape(&values[i])) {
            values[i].list = outputs[0].shard->shape;
            values[i].count = (uint32_t)outputs[0].shard->dims;
            continue;
        }
        for (uint32_t s = 0; s < count; s++) {
            int64_t size;

            if (!is_named(&values[i], sizes[s].name, sizes[s].length)) continue;
            size = size_of(&sizes[s], choice, inputs, outputs);
            if (size >= 0) set_size(out, &values[i], sizes[s].at, size);
        }
    }
    return WEFT_OK;
}

void wf_local_attrs_free(struct wf_local_attrs *attrs)
{
    wf_free(attrs->memory);
    attrs->memory = NULL;
}
