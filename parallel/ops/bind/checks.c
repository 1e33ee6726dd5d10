/* checks.c - the clause `check`: attributes whose limits follow from the shapes of a call. */
#include "op.h"

#include <string.h>

/* A dimension that is one factor. */
struct seat {
    const struct wf_op_tensor *tensor;
    int dim;
    int64_t size;
};

/* The first dimension of an input or output that is FACTOR alone. */
static bool find_seat(const struct wf_op *op, const char *factor, struct seat *out)
{
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        for (int d = 0; d < t->dims && t->present; d++) {
            const struct wf_symbol *symbol;
            if (t->dim[d].count != 1) continue;
            symbol = &op->rule->symbols[op->factors[t->dim[d].factor[0]].symbol];
            if (!wf_word_is(op->rule, symbol->name, factor)) continue;
            *out = (struct seat){t, d, t->shape[d]};
            return true;
        }
    }
    return false;
}

/* A rule of the program may lack the factor. */
static weft_status refuse_rule(const struct wf_op *op, const char *factor)
{
    return wf_op_refuse(op, "the clause \"check %.*s\" of its rule needs the factor %s",
                        WF_WORD(op->rule, op->rule->check), factor);
}

static weft_status refuse_number(const struct wf_op *op, const char *attr, int64_t value,
                                 const struct seat *seat)
{
    return wf_op_refuse(op, "attribute %s is %lld, and dimension %d of %.*s has size %lld", attr,
                        (long long)value, seat->dim,
                        WF_WORD(op->rule, wf_op_name(op, seat->tensor)), (long long)seat->size);
}

/* ATTR, if the call has it, is an index of factor FACTOR; a negative one counts from the end. */
static weft_status check_number(const struct wf_op *op, const weft_op_call *call, const char *attr,
                                const char *factor)
{
    struct seat seat;
    int64_t index = 0;

    WF_TRY(wf_attr_read_int(op, call, attr, &index));
    if (!find_seat(op, factor, &seat)) return refuse_rule(op, factor);
    if (index < -seat.size || index >= seat.size) return refuse_number(op, attr, index, &seat);
    return WEFT_OK;
}

static weft_status check_index(const struct wf_op *op, const weft_op_call *call)
{
    if (wf_attr_find(call, "index", 5) == NULL)
        return wf_op_refuse(op, "attribute index is missing");
    return check_number(op, call, "index", "k");
}

static weft_status check_padding(const struct wf_op *op, const weft_op_call *call)
{
    if (wf_attr_find(call, "padding_idx", 11) == NULL) return WEFT_OK;
    return check_number(op, call, "padding_idx", "v");
}

weft_status wf_op_read_slice(const struct wf_op *op, const weft_op_call *call, int64_t size,
                             struct wf_slice *out)
{
    int64_t start = 0, end = INT64_MAX, step = 1;

    WF_TRY(wf_attr_read_int(op, call, "start", &start));
    WF_TRY(wf_attr_read_int(op, call, "end", &end));
    WF_TRY(wf_attr_read_int(op, call, "step", &step));
    if (step < 1)
        return wf_op_refuse(op, "attribute step is %lld; it must be at least 1", (long long)step);
    start = wf_max_i64(0, wf_min_i64(start < 0 ? start + size : start, size));
    end = wf_max_i64(start, wf_min_i64(end < 0 ? end + size : end, size));
    *out = (struct wf_slice){start, step, (end - start) / step + ((end - start) % step != 0)};
    return WEFT_OK;
}

/* Factor j is the slice of factor k. */
static weft_status check_slice(const struct wf_op *op, const weft_op_call *call)
{
    struct seat part, whole;
    struct wf_slice slice;

    if (!find_seat(op, "j", &part)) return refuse_rule(op, "j");
    if (!find_seat(op, "k", &whole)) return refuse_rule(op, "k");
    WF_TRY(wf_op_read_slice(op, call, whole.size, &slice));
    if (slice.count == part.size) return WEFT_OK;
    return wf_op_refuse(op,
                        "attributes start, end and step take %lld of the %lld indices of dimension "
                        "%d of %.*s, and dimension %d of %.*s has size %lld",
                        (long long)slice.count, (long long)whole.size, whole.dim,
                        WF_WORD(op->rule, wf_op_name(op, whole.tensor)), part.dim,
                        WF_WORD(op->rule, wf_op_name(op, part.tensor)), (long long)part.size);
}

/* A shift for each dimension that dims lists; without dims, one. */
static weft_status check_shifts(const struct wf_op *op, const weft_op_call *call)
{
    const int64_t *shifts, *dims;
    uint32_t count, dim_count = 1;

    if (!wf_attr_list(wf_attr_find(call, "shifts", 6), &shifts, &count))
        return wf_op_refuse(op, wf_attr_find(call, "shifts", 6) == NULL
                                    ? "attribute shifts is missing"
                                    : "attribute shifts must be a list of numbers");
    (void)wf_attr_list(wf_attr_find(call, "dims", 4), &dims, &dim_count);
    if (dim_count == 0) dim_count = 1;
    if (count == dim_count) return WEFT_OK;
    return wf_op_refuse(op, "attribute shifts has %u entr%s; it needs %u, one for each of dims",
                        count, count == 1 ? "y" : "ies", dim_count);
}

/* How many dimensions of the first input belong to group K. */
static int count_group(const struct wf_op *op)
{
    const struct wf_op_tensor *x = &op->tensors[0];
    int count = 0;

    for (int d = 0; d < x->dims; d++) {
        const struct wf_symbol *symbol;
        if (x->dim[d].count != 1) continue;
        symbol = &op->rule->symbols[op->factors[x->dim[d].factor[0]].symbol];
        count += wf_word_is(op->rule, symbol->name, "K");
    }
    return count;
}

/* The result has an index along one dimension. */
static weft_status check_single(const struct wf_op *op, const weft_op_call *call)
{
    int count = count_group(op);

    if (count <= 1) return WEFT_OK;
    if (wf_attr_find(call, "dims", 4) == NULL)
        return wf_op_refuse(op, "attribute dims is missing, and x has %d dimensions", count);
    return wf_op_refuse(op, "attribute dims lists %d dimensions; it must be one", count);
}

/* Attribute k counts from 1 to the size of the one dimension of group K. */
static weft_status check_rank(const struct wf_op *op, const weft_op_call *call)
{
    struct seat seat = {&op->tensors[0], 0, 1};
    int64_t k = 0;

    WF_TRY(check_single(op, call));
    if (wf_attr_find(call, "k", 1) == NULL) return wf_op_refuse(op, "attribute k is missing");
    WF_TRY(wf_attr_read_int(op, call, "k", &k));
    (void)find_seat(op, "K", &seat); /* a scalar has one element */
    return k >= 1 && k <= seat.size ? WEFT_OK : refuse_number(op, "k", k, &seat);
}

/* At most as many entries of the last input's last dimension as it has, unless they may repeat. */
static weft_status check_picks(const struct wf_op *op, const weft_op_call *call)
{
    const struct wf_op_tensor *from = &op->tensors[op->input_count > 0 ? op->input_count - 1 : 0];
    struct seat picks, seat;
    int64_t repeat = 0;

    WF_TRY(wf_attr_read_int(op, call, "replacement", &repeat));
    if (repeat != 0) return WEFT_OK;
    if (!find_seat(op, "j", &picks)) return refuse_rule(op, "j");
    seat = (struct seat){from, from->dims - 1, from->dims > 0 ? from->shape[from->dims - 1] : 1};
    return picks.size <= seat.size ? WEFT_OK : refuse_number(op, "k", picks.size, &seat);
}

/* An index as large as x at most, and as the source, except along dim in x; or an empty one. */
static weft_status check_scatter(const struct wf_op *op, const weft_op_call *call)
{
    const struct wf_op_tensor *index = &op->tensors[1];
    int64_t dim = 0;

    if (op->input_count < 2) return refuse_rule(op, "j");
    WF_TRY(wf_attr_read_int(op, call, "dim", &dim));
    if (dim < 0) dim += index->dims;
    for (int d = 0; d < index->dims; d++)
        if (index->shape[d] == 0) return WEFT_OK;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        for (int d = 0; d < index->dims && d < t->dims && t->present; d++)
            if (index->shape[d] > t->shape[d] && (i > 0 || d != dim))
                return wf_op_refuse(op,
                                    "dimension %d of %.*s has size %lld, and that of %.*s has "
                                    "%lld",
                                    d, WF_WORD(op->rule, wf_op_name(op, index)),
                                    (long long)index->shape[d],
                                    WF_WORD(op->rule, wf_op_name(op, t)), (long long)t->shape[d]);
    }
    return WEFT_OK;
}

/* A size for each dimension behind the first two. */
static weft_status check_spatial(const struct wf_op *op, const weft_op_call *call)
{
    const struct wf_op_tensor *x = &op->tensors[0], *y = &op->tensors[op->input_count];

    (void)call;
    if (x->dims == y->dims || op->output_count == 0) return WEFT_OK;
    return wf_op_refuse(op,
                        "attribute size has %d entr%s, and %.*s has %d dimension%s behind the "
                        "first two",
                        y->dims - 2, y->dims == 3 ? "y" : "ies",
                        WF_WORD(op->rule, wf_op_name(op, x)), x->dims - 2, x->dims == 3 ? "" : "s");
}

/* An output for each index of factor k. */
static weft_status check_unbind(const struct wf_op *op, const weft_op_call *call)
{
    struct seat seat;

    (void)call;
    if (!find_seat(op, "k", &seat)) return refuse_rule(op, "k");
    if (op->output_count == seat.size) return WEFT_OK;
    return wf_op_refuse(op, "the call has %u output%s, and dimension %d of %.*s has size %lld",
                        op->output_count, WF_PLURAL(op->output_count), seat.dim,
                        WF_WORD(op->rule, wf_op_name(op, seat.tensor)), (long long)seat.size);
}

weft_status wf_op_check_attrs(const struct wf_op *op, const weft_op_call *call)
{
    static const struct {
        const char *name;
        weft_status (*check)(const struct wf_op *op, const weft_op_call *call);
    } checks[] = {
        {"index", check_index},     {"padding", check_padding}, {"slice", check_slice},
        {"shifts", check_shifts},   {"rank", check_rank},       {"picks", check_picks},
        {"scatter", check_scatter}, {"spatial", check_spatial}, {"unbind", check_unbind},
        {"single", check_single},
    };

    if (op->rule->check.length == 0) return WEFT_OK;
    for (size_t i = 0; i < WF_COUNT(checks); i++)
        if (wf_word_is(op->rule, op->rule->check, checks[i].name)) return checks[i].check(op, call);
    return wf_op_refuse(op, "the clause \"check %.*s\" is not known",
                        WF_WORD(op->rule, op->rule->check));
}
