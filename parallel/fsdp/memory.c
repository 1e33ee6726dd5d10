/* memory.c - memory of the caller for gathered parameters and reduced gradients. */
#include "fsdp.h"

#include "base/range.h"

#include <string.h>

enum { LAYOUT_TEXT = 128 };

bool wf_fsdp_is_dense(const weft_tensor *tensor)
{
    for (int32_t i = 0; i < wf_here_count(weft_tensor_context(tensor)); i++) {
        weft_tensor_local_info local;

        if (wf_here_get(tensor, i, &local) != WEFT_OK || !wf_here_is_dense(&local)) return false;
    }
    return true;
}

weft_status wf_fsdp_use_memory(const weft_tensor *tensor, const weft_spec *spec, const char *field,
                               weft_tensor **out)
{
    char has[LAYOUT_TEXT] = "?", must[LAYOUT_TEXT] = "?";
    size_t length;

    if (weft_tensor_spec(tensor) != spec) {
        (void)!weft_spec_print(weft_tensor_spec(tensor), has, sizeof has,
                               &length); /* a long text is cut */
        (void)!weft_spec_print(spec, must, sizeof must, &length);
        return wf_fail(WEFT_ERR_INVALID, "`%s` has the layout %s; it must have %s%s", field, has,
                       must, strcmp(has, must) == 0 ? " on another mesh" : "");
    }
    if (!wf_fsdp_is_dense(tensor))
        return wf_fail(WEFT_ERR_INVALID, "`%s` has gaps between its elements", field);
    if (weft_tensor_is_read_only(tensor))
        return wf_fail(WEFT_ERR_INVALID, "`%s` is read-only", field);
    *out = weft_tensor_retain(tensor);
    return WEFT_OK;
}

weft_status wf_fsdp_use_gradient(const weft_fsdp_group *group, struct wf_fsdp_param *param,
                                 const weft_tensor *tensor)
{
    weft_spec *spec = NULL;
    weft_status status;

    if (tensor == NULL) return WEFT_OK;
    if (param->frozen)
        return wf_fail(WEFT_ERR_INVALID, "it has no gradient, because it is frozen or not of "
                                         "floats; `gradient` must be NULL");
    WF_TRY(weft_spec_with_dtype(weft_tensor_spec(param->stored),
                                (enum weft_dtype)wf_fsdp_gradient_dtype(group, param), &spec));
    status = wf_fsdp_use_memory(tensor, spec, "gradient", &param->gradient);
    weft_spec_release(&spec);
    return status;
}

static const char *const memory_names[] = {"tensor", "gathered", "gradient"};

/* Set OUT to the memory of PARAM that the group does not allocate; NULL: none. */
static void list_memory(const struct wf_fsdp_param *param, const weft_tensor **out)
{
    out[0] = param->stored;
    out[1] = param->has_memory ? param->gathered : NULL;
    out[2] = param->gradient;
}

/* Set *MEMORY to shard number INDEX of TENSOR here.  Returns its bytes. */
static uint64_t range_of(const weft_tensor *tensor, int32_t index, const void **memory)
{
    weft_tensor_local_info local = {0};

    if (wf_here_get(tensor, index, &local) != WEFT_OK) return 0;
    *memory = local.memory;
    return (uint64_t)local.shard.elements *
           wf_dtype_bytes(weft_spec_dtype(weft_tensor_spec(tensor)));
}

static bool overlap(const weft_tensor *a, const weft_tensor *b)
{
    int32_t count = a != NULL && b != NULL ? wf_here_count(weft_tensor_context(a)) : 0;

    for (int32_t i = 0; i < count; i++) {
        const void *first = NULL, *second = NULL;
        uint64_t bytes = range_of(a, i, &first);

        for (int32_t j = 0; j < count; j++) {
            uint64_t others = range_of(b, j, &second);

            if (wf_ranges_overlap(first, bytes, second, others)) return true;
        }
    }
    return false;
}

weft_status wf_fsdp_check_apart(const weft_fsdp_group *group)
{
    const weft_tensor *all[3], *others[3];

    for (uint32_t i = 0; i < group->count; i++) {
        if (!wf_fsdp_is_first(group, i)) continue;
        list_memory(&group->params[i], all);
        for (uint32_t j = 0; j <= i; j++) {
            if (!wf_fsdp_is_first(group, j)) continue;
            list_memory(&group->params[j], others);
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < (i == j ? a : 3); b++)
                    if (a + b > 0 && overlap(all[a], others[b])) /* nothing writes stored ones */
                        return wf_fail(WEFT_ERR_INVALID,
                                       "`%s` of parameter %u and `%s` of parameter %u overlap",
                                       memory_names[a], i, memory_names[b], j);
        }
    }
    return WEFT_OK;
}
