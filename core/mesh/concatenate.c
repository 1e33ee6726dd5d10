/* concatenate.c - two submeshes that cross in one rank, joined to one mesh. */
#include "mesh.h"

#include <string.h>

/* The one rank that A and B share. */
static weft_status find_crossing(const weft_mesh *a, const weft_mesh *b, int32_t *out)
{
    const weft_mesh *small = a->size <= b->size ? a : b, *large = small == a ? b : a;
    int32_t coord[WEFT_MAX_AXES], found = WF_MESH_NOBODY;

    for (int32_t i = 0; i < small->size; i++) {
        int32_t rank = weft_mesh_rank_at(small, i);
        if (!wf_mesh_coord(large, rank, coord)) continue;
        if (found != WF_MESH_NOBODY)
            return wf_fail(WEFT_ERR_INVALID,
                           "the meshes to concatenate share ranks %d and %d; they may share "
                           "only one",
                           found, rank);
        found = rank;
    }
    if (found == WF_MESH_NOBODY)
        return wf_fail(WEFT_ERR_INVALID,
                       "the meshes to concatenate share no rank; they must share exactly one");
    *out = found;
    return WEFT_OK;
}

static weft_status refuse_outside(int32_t rank, const char *which)
{
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_mesh_concatenate: rank %d of the %s mesh is not in WITHIN", rank, which);
}

/* The rank at the same distance from A as B is from CROSS: by coordinates in WITHIN, or by
 * number. */
static weft_status fourth_corner(const weft_mesh *within, int32_t cross, int32_t a, int32_t b,
                                 int32_t *out)
{
    int32_t at[WEFT_MAX_AXES], from[WEFT_MAX_AXES], to[WEFT_MAX_AXES];
    int64_t sum = (int64_t)a + b - cross;

    if (within == NULL) {
        if (sum < 0 || sum > INT32_MAX)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_mesh_concatenate: without WITHIN, ranks %d and %d would give rank "
                           "%lld; a rank must be from 0 to %d",
                           a, b, (long long)sum, INT32_MAX);
        *out = (int32_t)sum;
        return WEFT_OK;
    }
    if (!wf_mesh_coord(within, a, at)) return refuse_outside(a, "first");
    if (!wf_mesh_coord(within, b, to)) return refuse_outside(b, "second");
    if (!wf_mesh_coord(within, cross, from)) return refuse_outside(cross, "first");
    for (int32_t i = 0; i < within->axes; i++)
        at[i] += to[i] - from[i];
    WF_TRY(wf_fail_named(wf_mesh_check_coord(within, at), "weft_mesh_concatenate"));
    *out = wf_mesh_rank(within, at);
    return WEFT_OK;
}

static weft_status list_corners(const weft_mesh *within, const weft_mesh *first,
                                const weft_mesh *second, int32_t cross, weft_mesh *draft)
{
    WF_TRY(wf_mesh_give_list(draft));
    for (int32_t i = 0; i < first->size; i++)
        for (int32_t j = 0; j < second->size; j++)
            WF_TRY(fourth_corner(within, cross, weft_mesh_rank_at(first, i),
                                 weft_mesh_rank_at(second, j),
                                 &draft->ranks[i * second->size + j]));
    return WEFT_OK;
}

static weft_status draft_axes(const weft_mesh *first, const weft_mesh *second, weft_mesh **out)
{
    int32_t sizes[2 * WEFT_MAX_AXES];
    const char *names[2 * WEFT_MAX_AXES];
    bool named = first->axis[0].name[0] != '\0';

    if (named != (second->axis[0].name[0] != '\0'))
        return wf_fail(WEFT_ERR_INVALID,
                       "one of the meshes to concatenate has named axes, the other does not");
    if (first->devices_per_host != second->devices_per_host)
        return wf_fail(
            WEFT_ERR_INVALID,
            "the meshes to concatenate have %d and %d devices per host; they must be equal",
            first->devices_per_host, second->devices_per_host);
    for (int32_t i = 0; i < first->axes + second->axes; i++) {
        const struct wf_axis *axis =
            i < first->axes ? &first->axis[i] : &second->axis[i - first->axes];
        sizes[i] = axis->size;
        names[i] = axis->name;
    }
    WF_TRY(wf_mesh_draft(first->axes + second->axes, sizes, named ? names : NULL, out));
    (*out)->devices_per_host = first->devices_per_host;
    return WEFT_OK;
}

/* The modes of both.  The distance of the new origin from CROSS is the sum of the distances of the
 * two origins. */
static bool add_modes(const weft_mesh *first, const weft_mesh *second, int32_t cross,
                      weft_mesh *draft)
{
    int64_t origin = (int64_t)first->origin + second->origin - cross;

    if (origin < 0) return false;
    draft->origin = (int32_t)origin; /* at most either origin, because both reach CROSS */
    for (int32_t i = 0; i < first->mode_count; i++)
        wf_mesh_add_mode(draft, first->modes[i].axis, first->modes[i].size, first->modes[i].stride);
    for (int32_t i = 0; i < second->mode_count; i++)
        wf_mesh_add_mode(draft, first->axes + second->modes[i].axis, second->modes[i].size,
                         second->modes[i].stride);
    return true;
}

static weft_status check_within(const weft_mesh *within, const weft_mesh *draft)
{
    int32_t coord[WEFT_MAX_AXES];

    for (int32_t i = 0; within != NULL && i < draft->size; i++)
        if (!wf_mesh_coord(within, weft_mesh_rank_at(draft, i), coord))
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_mesh_concatenate: rank %d of the result is not in WITHIN",
                           weft_mesh_rank_at(draft, i));
    return WEFT_OK;
}

weft_status weft_mesh_concatenate(const weft_mesh *within, const weft_mesh *first,
                                  const weft_mesh *second, weft_mesh **out)
{
    bool regular;
    int32_t cross = WF_MESH_NOBODY;
    weft_mesh *draft;
    weft_status status = WEFT_OK;

    if (within != NULL)
        WF_TRY(wf_require_kind(within, WF_KIND_MESH, "weft_mesh_concatenate: within"));
    WF_TRY(wf_require_kind(first, WF_KIND_MESH, "weft_mesh_concatenate: first"));
    WF_TRY(wf_require_kind(second, WF_KIND_MESH, "weft_mesh_concatenate: second"));
    WF_TRY(wf_require(out, "weft_mesh_concatenate: out"));
    WF_TRY(find_crossing(first, second, &cross));
    WF_TRY(draft_axes(first, second, &draft));
    regular = first->ranks == NULL && second->ranks == NULL &&
              (within == NULL || within->ranks == NULL) && add_modes(first, second, cross, draft) &&
              wf_mesh_settle_modes(draft);
    if (!regular) {
        draft->mode_count = 0;
        status = list_corners(within, first, second, cross, draft);
    } else {
        status = check_within(within, draft);
    }
    if (status == WEFT_OK) return wf_mesh_finish_take(draft, out);
    wf_mesh_free(draft);
    return status;
}
