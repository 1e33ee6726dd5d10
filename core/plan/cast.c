/* cast.c - casts on the way: which are offered, and in which step of a plan one happens.
 *
 * Reductions are computed in the wider dtype, and a narrowing cast follows the last of them.  Apart
 * from that, data travels in the narrower dtype: a narrowing cast precedes the first step that
 * needs no wider data, a widening one follows the last step.  No cast follows a step that creates
 * P(min) or P(max), because the highest and the lowest value of two dtypes differ.  The dtype of a
 * state therefore follows from the steps before it, and one step of a plan casts. */
#include "plan.h"

#include "base/number.h"

static bool is_float(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_F16 && dtype <= WEFT_DTYPE_F8E5M2;
}

static bool is_integer(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_I8 && dtype <= WEFT_DTYPE_U64;
}

enum wf_cast_kind wf_cast_kind(uint32_t from, uint32_t to)
{
    size_t a = wf_dtype_bytes(from), b = wf_dtype_bytes(to);

    if (from == to) return WF_CAST_NONE;
    if (is_float(from) && is_float(to)) return a < b ? WF_CAST_WIDENS : WF_CAST_NARROWS;
    if (is_integer(from) && is_integer(to) && a < b &&
        (wf_dtype_is_signed(to) || !wf_dtype_is_signed(from)))
        return WF_CAST_WIDENS;
    return WF_CAST_REFUSED;
}

weft_status wf_cast_refuse(uint32_t from, uint32_t to)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "the source is %s, the target %s, and that cast is not offered; casts are "
                   "offered between f16, bf16, f32, f64, f8e4m3 and f8e5m2, from i8, i16 and i32 "
                   "to wider signed integers, and from u8, u16 and u32 to wider integers",
                   wf_dtype_name(from), wf_dtype_name(to));
}

/* The side of a step that casts, apart from the rest of the step. */
static uint32_t place_of(enum wf_cast_kind cast, uint32_t kind, bool reduces)
{
    if (kind == WEFT_STEP_SLICE) return WEFT_CAST_AFTER; /* the smaller side */
    if (kind == WEFT_STEP_PARTIAL) return WEFT_CAST_BEFORE;
    return (cast == WF_CAST_NARROWS) == reduces ? WEFT_CAST_AFTER : WEFT_CAST_BEFORE;
}

/* ---- states ---- */

static bool is_partial(struct wf_code code)
{
    return code.kind == WF_CODE_PARTIAL;
}

static bool edge_reduces(const struct wf_problem *problem, const struct wf_state *from,
                         const struct wf_edge *edge)
{
    for (int32_t i = 0; i < problem->axes; i++)
        if (is_partial(from->axis[i]) && !is_partial(edge->to.axis[i])) return true;
    return false;
}

/* The identity is the highest or the lowest value of the dtype. */
static bool has_own_identity(uint32_t reduction)
{
    return reduction == WEFT_REDUCE_MIN || reduction == WEFT_REDUCE_MAX;
}

static bool edge_creates_own_identity(const struct wf_problem *problem, const struct wf_state *from,
                                      const struct wf_edge *edge)
{
    for (int32_t i = 0; i < problem->axes; i++)
        if (!is_partial(from->axis[i]) && is_partial(edge->to.axis[i]) &&
            has_own_identity(edge->to.axis[i].value))
            return true;
    return false;
}

bool wf_cast_precedes_partials(const weft_spec *to)
{
    const struct wf_layout *layout = &to->layout;

    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if (layout->placements[a].kind == WEFT_PLACE_PARTIAL && layout->mesh->axis[a].size > 1 &&
            has_own_identity(layout->placements[a].reduction))
            return true;
    return false;
}

/* True if more contributions of the source must be reduced. */
static bool has_pending(const struct wf_problem *problem, const struct wf_state *state)
{
    for (int32_t i = 0; i < problem->axes; i++)
        if (is_partial(problem->source.axis[i]) && is_partial(state->axis[i])) return true;
    return false;
}

bool wf_state_same_codes(const struct wf_problem *problem, const struct wf_state *a,
                         const struct wf_state *b)
{
    for (int32_t i = 0; i < problem->axes; i++)
        if (!wf_code_same(a->axis[i], b->axis[i])) return false;
    return true;
}

bool wf_cast_mark(const struct wf_problem *problem, const struct wf_state *from,
                  struct wf_edge *edge)
{
    bool cast = from->cast != 0, creates;

    if (problem->cast == WF_CAST_NONE) {
        edge->to.cast = cast;
        return true;
    }
    creates = edge_creates_own_identity(problem, from, edge);
    if (problem->cast == WF_CAST_NARROWS) cast = cast || !has_pending(problem, &edge->to);
    if (problem->cast == WF_CAST_WIDENS)
        cast = cast || creates || edge_reduces(problem, from, edge) ||
               wf_state_same_codes(problem, &edge->to, &problem->target);
    edge->to.cast = cast;
    return cast || !creates;
}

bool wf_cast_fuses(uint32_t kind, uint32_t place, bool reduces)
{
    if (kind == WEFT_STEP_ALL_REDUCE) return false;
    return place == WEFT_CAST_AFTER ||
           !(reduces || kind == WEFT_STEP_ALL_GATHER || kind == WEFT_STEP_BROADCAST);
}

void wf_cast_price(const struct wf_problem *problem, const struct wf_state *from,
                   const struct wf_edge *edge, struct wf_cast_work *out)
{
    bool local = edge->kind <= WEFT_STEP_PARTIAL, reduces;
    uint64_t in = problem->elements[0], wide = in, count;
    uint32_t place;

    *out = (struct wf_cast_work){.element = problem->elements[edge->to.cast]};
    if (from->cast == edge->to.cast) return;
    reduces = edge_reduces(problem, from, edge);
    place = place_of(problem->cast, edge->kind, reduces);
    if (place == WEFT_CAST_AFTER) out->element = in;
    if (problem->elements[1] > wide) wide = problem->elements[1];
    if (local) out->element = wide; /* no communication; one pass reads and writes */
    if (local) return;
    count = wf_state_elements(problem, place == WEFT_CAST_AFTER ? &edge->to : from);
    out->copied = wf_mul_capped(count, wide);
    if (!problem->costs->one_sided || !wf_cast_fuses(edge->kind, place, reduces))
        out->scratch = wf_mul_capped(count, out->element);
}

/* ---- steps ---- */

bool wf_step_reduces(const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL && from->mesh->axis[a].size > 1 &&
            !(from->mesh == to->mesh && to->placements[a].kind == WEFT_PLACE_PARTIAL))
            return true;
    return false;
}

uint32_t wf_step_cast(const struct wf_step *step)
{
    if (step->from == NULL || step->from->layout.dtype == step->to->layout.dtype)
        return WEFT_CAST_NONE;
    return place_of(wf_cast_kind(step->from->layout.dtype, step->to->layout.dtype), step->kind,
                    wf_step_reduces(step));
}

uint32_t wf_step_dtype(const struct wf_step *step)
{
    return wf_step_cast(step) == WEFT_CAST_AFTER ? step->from->layout.dtype
                                                 : step->to->layout.dtype;
}
