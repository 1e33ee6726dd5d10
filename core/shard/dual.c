/* dual.c - the layouts of gradients. */
#include "shard.h"

#include <string.h>

/* SPEC with other placements. */
static weft_status make_spec(const weft_spec *spec, const weft_placement *placements,
                             weft_spec **out)
{
    const struct wf_layout *layout = &spec->layout;

    return weft_spec_create(layout->mesh, (enum weft_dtype)layout->dtype, layout->dims,
                            layout->shape, placements, out);
}

static bool is_partial(const weft_spec *spec, int32_t axis)
{
    return spec->layout.placements[axis].kind == WEFT_PLACE_PARTIAL;
}

weft_status weft_spec_dual(const weft_spec *spec, weft_spec **out)
{
    weft_placement placements[WEFT_MAX_AXES] = {{0}};

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_dual: spec"));
    WF_TRY(wf_require(out, "weft_spec_dual: out"));
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++) {
        const weft_placement *p = &spec->layout.placements[a];

        if (is_partial(spec, a) && p->reduction != WEFT_REDUCE_SUM)
            return wf_fail(WEFT_ERR_UNSUPPORTED,
                           "weft_spec_dual: axis %d has P(%s), which has no dual; only P(sum) has "
                           "one, R",
                           a, wf_reduction_name(p->reduction));
        if (p->kind == WEFT_PLACE_REPLICATE)
            placements[a] =
                (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = WEFT_REDUCE_SUM};
        else if (!is_partial(spec, a))
            placements[a] = *p;
    }
    return wf_fail_named(make_spec(spec, placements, out), "weft_spec_dual");
}

/* SPEC, but R where it has a partial and GRADIENT, if it is not NULL, has none. */
static weft_status make_gradient(const weft_spec *spec, const weft_spec *gradient, weft_spec **out)
{
    weft_placement placements[WEFT_MAX_AXES] = {{0}};

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (!is_partial(spec, a) || (gradient != NULL && is_partial(gradient, a)))
            placements[a] = spec->layout.placements[a];
    return make_spec(spec, placements, out);
}

weft_status weft_spec_gradient(const weft_spec *spec, weft_spec **out)
{
    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_gradient: spec"));
    WF_TRY(wf_require(out, "weft_spec_gradient: out"));
    return make_gradient(spec, NULL, out);
}

weft_status weft_spec_gradient_of_move(const weft_spec *spec, const weft_spec *gradient,
                                       weft_spec **out)
{
    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_gradient_of_move: spec"));
    WF_TRY(wf_require(out, "weft_spec_gradient_of_move: out"));
    WF_TRY(wf_require_kind(gradient, WF_KIND_SPEC, "weft_spec_gradient_of_move: gradient"));
    if (spec->layout.dims != gradient->layout.dims ||
        memcmp(spec->layout.shape, gradient->layout.shape,
               (size_t)spec->layout.dims * sizeof *spec->layout.shape) != 0)
        return wf_fail(WEFT_ERR_MISMATCH,
                       "weft_spec_gradient_of_move: spec and gradient have different shapes");
    return make_gradient(spec, spec->layout.mesh == gradient->layout.mesh ? gradient : NULL, out);
}
