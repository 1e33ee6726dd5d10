/* arguments.c - inputs and attributes of a call with phases. */
#include "phases.h"

#include "base/number.h"
#include "ops/bind/attrs.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

/* True if the attribute NAME is one that the operator knows. */
static bool is_known(const struct wf_phased *op, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = op->attrs; *at != '\0'; at = strchr(at, ' ') + 1)
        if (strncmp(at, name, length) == 0 && at[length] == ' ') return true;
    return false;
}

weft_status wf_phases_read(struct wf_phases *p, const weft_op_call *call)
{
    if (call == NULL) return wf_fail_null(WF_PHASES_FUNCTION, "call");
    WF_TRY(wf_fail_named(wf_options_read("weft_op_call", call, &p->call, sizeof p->call),
                         WF_PHASES_FUNCTION));
    p->call.struct_size = sizeof p->call;
    if (p->call.name == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_op_call.name is NULL", WF_PHASES_FUNCTION);
    WF_TRY(wf_name_check(WF_PHASES_FUNCTION, "weft_op_call.name", p->call.name));
    WF_TRY(wf_call_check_flags(WF_PHASES_FUNCTION, &p->call));
    return wf_attrs_check(WF_PHASES_FUNCTION, &p->call);
}

static weft_status check_attrs(const struct wf_phases *p)
{
    for (uint32_t i = 0; i < p->call.attr_count; i++) {
        const char *name = p->call.attrs[i].name;

        WF_TRY(wf_name_check(WF_PHASES_FUNCTION, "the name of an attribute (weft_op_call.attrs)",
                             name));
        if (!is_known(p->op, name))
            return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID,
                                               "it has no attribute %.50s; its attributes: %.*s",
                                               name, (int)strlen(p->op->attrs) - 1, p->op->attrs));
        if (strcmp(name, "keepdim") == 0 && p->call.attrs[i].kind == WEFT_ATTR_TEXT)
            return wf_phases_refuse(
                p, wf_fail(WEFT_ERR_INVALID, "attribute keepdim is %.50s; it must be true or false",
                           p->call.attrs[i].text));
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(p->call.attrs[j].name, name) == 0)
                return wf_phases_refuse(
                    p, wf_fail(WEFT_ERR_INVALID, "the call has attribute %.50s twice", name));
    }
    return WEFT_OK;
}

static weft_status check_input(const struct wf_phases *p, uint32_t input)
{
    const weft_spec *spec = weft_tensor_spec(p->inputs[input]);
    const weft_spec *main = weft_tensor_spec(p->inputs[p->main]);
    char what[32];

    if (spec == NULL && input >= p->op->least) return WEFT_OK;
    snprintf(what, sizeof what, "inputs[%u]", input);
    if (spec == NULL) return wf_fail_null(WF_PHASES_FUNCTION, what);
    if (main != NULL && weft_spec_mesh(spec) != weft_spec_mesh(main))
        return wf_phases_refuse(
            p,
            wf_fail(WEFT_ERR_INVALID, "input %u is on another mesh than input %u", input, p->main));
    return WEFT_OK;
}

/* Statistics of floats, indices that are integers. */
static weft_status check_dtype(const struct wf_phases *p, uint32_t input)
{
    uint32_t dtype;
    bool fits;

    if (p->inputs[input] == NULL) return WEFT_OK;
    dtype = weft_spec_dtype(weft_tensor_spec(p->inputs[input]));
    if (p->op->index > 0 && input == p->op->index)
        fits = dtype == WEFT_DTYPE_I64;
    else
        fits = wf_dtype_is_float(dtype) || (p->op->any_type && !wf_dtype_is_complex(dtype));
    if (fits) return WEFT_OK;
    return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID, "input %u has the dtype %s; expected %s",
                                       input, weft_dtype_name((enum weft_dtype)dtype),
                                       p->op->index > 0 && input == p->op->index ? "i64"
                                       : p->op->run == wf_phases_cumsum          ? "a real dtype"
                                       : p->op->any_type ? "a dtype with an order"
                                                         : "a floating-point dtype"));
}

/* The operator's rule says which inputs share a dtype. */
static weft_status check_dtypes(const struct wf_phases *p)
{
    const weft_spec *specs[WF_PHASE_INPUTS];
    weft_op_call call = p->call;

    for (uint32_t i = 0; i < call.input_count; i++)
        specs[i] = weft_tensor_spec(p->inputs[i]);
    call.inputs = specs;
    return wf_fail_named(wf_call_check_dtypes(&call), WF_PHASES_FUNCTION);
}

weft_status wf_phases_read_inputs(struct wf_phases *p, weft_tensor *const *inputs)
{
    const weft_spec *specs[WF_PHASE_INPUTS];
    const struct wf_phased *op = p->op;
    size_t count = p->call.input_count;

    if (count < op->least || count > op->most)
        return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID,
                                           "the call has %zu input%s; expected %u to %u", count,
                                           WF_PLURAL(count), op->least, op->most));
    memcpy(p->inputs, inputs, count * sizeof(weft_tensor *));
    WF_TRY(check_attrs(p));
    WF_TRY(weft_tensors_check(p->context, count, inputs, WF_PHASES_FUNCTION, "inputs", specs));
    for (uint32_t i = 0; i < count; i++) {
        WF_TRY(check_input(p, i));
        WF_TRY(check_dtype(p, i));
    }
    WF_TRY(check_dtypes(p));
    p->x = specs[p->main];
    return WEFT_OK;
}

/* ---- dimensions ---- */

static weft_status add_dim(struct wf_phases *p, int64_t dim, int32_t dims)
{
    int64_t at = dim < 0 ? dim + dims : dim;

    if (dims == 0 && (dim == 0 || dim == -1)) return WEFT_OK; /* a scalar has no others */
    if (at < 0 || at >= dims)
        return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID,
                                           "dimension %lld does not exist; the input has %d",
                                           (long long)dim, dims));
    if ((p->reduced >> at & 1) != 0)
        return wf_phases_refuse(
            p, wf_fail(WEFT_ERR_INVALID, "dimension %lld is listed twice", (long long)dim));
    p->reduced |= 1u << at;
    return WEFT_OK;
}

weft_status wf_phases_read_dims(struct wf_phases *p, int32_t dims)
{
    const weft_op_attr *attr = wf_attr_find(&p->call, "dims", 4);
    const int64_t *list = NULL;
    uint32_t count = 0;
    int64_t dim;

    p->keepdim = wf_attr_keepdim(&p->call);
    p->reduced = 0;
    if (is_known(p->op, "dim")) {
        if (!wf_attr_int(&p->call, "dim", &dim))
            return wf_phases_refuse(
                p, wf_fail(WEFT_ERR_INVALID, "it needs the attribute dim, an integer"));
        return add_dim(p, dim, dims);
    }
    if (attr != NULL && !wf_attr_list(attr, &list, &count))
        return wf_phases_refuse(
            p, wf_fail(WEFT_ERR_INVALID, "the attribute dims is not a list of dimensions"));
    if (count == 0) p->reduced = (1u << dims) - 1;
    for (uint32_t i = 0; i < count; i++)
        WF_TRY(add_dim(p, list[i], dims));
    return WEFT_OK;
}
