/* attrs.c - attributes that are sizes.  The caller gives sizes of whole tensors; a kernel makes the
 * part of this rank. */
#include "apply.h"

#include "ops/ops.h"

#include <string.h>

static bool is_named(const weft_op_attr *attr, const char *name, size_t length)
{
    return strncmp(attr->name, name, length) == 0 && attr->name[length] == '\0';
}

static bool is_shape(const weft_op_attr *attr)
{
    return strcmp(attr->name, "shape") == 0;
}

/* ---- one number ---- */

/* The size that this rank has; -1: it is not known. */
static int64_t size_of(const struct wf_local_size *size, const weft_tensor_local *tensors)
{
    const weft_shard *shard = tensors[size->tensor].shard, *by;

    if (shard == NULL) return -1;
    if (size->by_tensor < 0) return shard->shape[size->dim];
    by = tensors[size->by_tensor].shard;
    if (by == NULL) return -1;
    if (by->shape[size->by_dim] == 0) return size->kind == WF_LOCAL_GROUPS ? 1 : -1;
    return shard->shape[size->dim] / by->shape[size->by_dim];
}

/* The index of the shard where the slice begins: behind those that come before it, or the same in
 * every tile. */
static int64_t start_of(const struct wf_local_size *size, const weft_tensor_local *x, int32_t rank)
{
    int64_t below = 0;
    weft_index_run run;

    if (size->step > 1) return wf_min_i64(size->start, x->shard->shape[size->dim]);
    while (weft_spec_run(x->spec, rank, size->dim, below, &run) && run.start < size->start)
        below += wf_min_i64(run.length, size->start - run.start);
    return below;
}

/* An end of this rank's slice.  If the shard has all indices, it is GIVEN, the end in the call. */
static int64_t end_of(const struct wf_local_size *size, const weft_tensor_local *tensors,
                      int32_t rank, int64_t given)
{
    const weft_tensor_local *x = &tensors[size->tensor];
    int64_t start, count;

    if (x->shard->shape[size->dim] == weft_spec_shape(x->spec)[size->dim]) return given;
    start = start_of(size, x, rank);
    count = tensors[size->by_tensor].shard->shape[size->by_dim];
    return size->kind == WF_LOCAL_START || count == 0 ? start
                                                      : start + (count - 1) * size->step + 1;
}

/* ---- attributes ---- */

/* What the attributes of one call become on one rank. */
struct shards {
    const struct wf_local_size *sizes;
    uint32_t count;
    const weft_tensor_local *tensors; /* inputs, then outputs */
    int32_t rank;
};

static bool is_size(const struct shards *s, const weft_op_attr *attr)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (is_named(attr, s->sizes[i].name, s->sizes[i].length)) return true;
    return false;
}

static void set_members(const struct shards *s, const struct wf_local_size *size, uint32_t count,
                        int64_t *numbers)
{
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = s->tensors[size->tensor + (int32_t)i].shard->shape[size->dim];
}

/* Set what SIZE says about the COUNT numbers of an attribute. */
static void set_numbers(const struct shards *s, const struct wf_local_size *size, uint32_t count,
                        int64_t *numbers)
{
    int64_t value;

    if (size->kind == WF_LOCAL_MEMBERS) {
        set_members(s, size, count, numbers);
    } else if (size->at < count) {
        int64_t *number = &numbers[size->at];
        value = size->kind >= WF_LOCAL_START ? end_of(size, s->tensors, s->rank, *number)
                                             : size_of(size, s->tensors);
        if (value >= 0 || size->kind >= WF_LOCAL_START) *number = value;
    }
}

/* NUMBERS has room for a list. */
static void set_attr(const struct shards *s, weft_op_attr *attr, int64_t *numbers)
{
    bool is_list = attr->kind == WEFT_ATTR_LIST;

    if (!is_list && attr->kind != WEFT_ATTR_INT) return;
    if (is_list && attr->count > 0) {
        memcpy(numbers, attr->list, attr->count * sizeof *numbers);
        attr->list = numbers;
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (is_named(attr, s->sizes[i].name, s->sizes[i].length))
            set_numbers(s, &s->sizes[i], is_list ? (uint32_t)attr->count : 1,
                        is_list ? numbers : &attr->integer);
}

static void set_shape(weft_op_attr *attr, const weft_shard *shard)
{
    if (attr->kind == WEFT_ATTR_INT && shard->dims == 1) attr->integer = shard->shape[0];
    if (attr->kind != WEFT_ATTR_LIST) return;
    attr->list = shard->shape;
    attr->count = (uint32_t)shard->dims;
}

/* Room for the attributes, and for the numbers of lists. */
static weft_status make_room(struct wf_local_attrs *out, const struct shards *s,
                             const weft_op_call *call, weft_op_attr **values, int64_t **numbers)
{
    size_t count = 0;

    *values = out->few;
    *numbers = out->sizes;
    if (call->attr_count > WF_FEW_ATTRS) {
        *values = out->memory = wf_calloc(call->attr_count, sizeof **values);
        if (*values == NULL) return wf_fail_memory(call->attr_count * sizeof **values);
    }
    for (uint32_t i = 0; i < call->attr_count; i++)
        if (call->attrs[i].kind == WEFT_ATTR_LIST && is_size(s, &call->attrs[i]))
            count += call->attrs[i].count;
    if (count > WF_FEW_SIZES) {
        *numbers = out->numbers = wf_calloc(count, sizeof **numbers);
        if (*numbers == NULL) return wf_fail_memory(count * sizeof **numbers);
    }
    return WEFT_OK;
}

weft_status wf_local_attrs_set(struct wf_local_attrs *out, const weft_op_call *call,
                               const weft_op_choice *choice, const weft_tensor_local *tensors,
                               int32_t rank)
{
    struct shards s = {.tensors = tensors, .rank = rank};
    weft_op_attr *values;
    int64_t *numbers;

    out->values = call->attrs;
    if (call->attr_count == 0) return WEFT_OK;
    s.sizes = wf_choice_local_sizes(choice, &s.count);
    WF_TRY(make_room(out, &s, call, &values, &numbers));
    memcpy(values, call->attrs, call->attr_count * sizeof *values);
    out->values = values;
    for (uint32_t i = 0; i < call->attr_count; i++) {
        if (is_shape(&values[i])) {
            set_shape(&values[i], tensors[call->input_count].shard);
        } else if (is_size(&s, &values[i])) {
            set_attr(&s, &values[i], numbers);
            if (values[i].kind == WEFT_ATTR_LIST) numbers += values[i].count;
        }
    }
    return WEFT_OK;
}

void wf_local_attrs_free(struct wf_local_attrs *attrs)
{
    wf_free(attrs->memory);
    wf_free(attrs->numbers);
    attrs->memory = NULL;
    attrs->numbers = NULL;
}
