/* follow.c - the mesh of a job after it has lost ranks. */
#include "mesh.h"

/* The job before and now. */
struct change {
    size_t count;
    const int32_t *old_ranks; /* by rank of now; -1: new */
};

static weft_status check_ranks(const struct change *change)
{
    if (change->count > INT32_MAX)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_mesh_follow: count is %zu; a job has at most %d ranks", change->count,
                       INT32_MAX);
    for (size_t i = 0; i < change->count; i++)
        if (change->old_ranks[i] < -1)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_mesh_follow: old_ranks[%zu] is %d; expected a rank, or -1 for a "
                           "new one",
                           i, change->old_ranks[i]);
    return WEFT_OK;
}

/* Write to NOW, by position in MESH, the number that the rank there has now; -1: it is lost. */
static weft_status find_ranks(const weft_mesh *mesh, const struct change *change, int32_t *now)
{
    for (int32_t i = 0; i < mesh->size; i++)
        now[i] = -1;
    for (size_t i = 0; i < change->count; i++) {
        int32_t at = change->old_ranks[i] >= 0 ? wf_mesh_index(mesh, change->old_ranks[i]) : -1;
        if (at < 0) continue;
        if (now[at] >= 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_mesh_follow: old_ranks[%d] and old_ranks[%zu] are both %d",
                           now[at], i, change->old_ranks[i]);
        now[at] = (int32_t)i;
    }
    return WEFT_OK;
}

/* ---- replace ---- */

/* How many ranks of before that are below RANK are lost. */
static size_t count_lost_below(const struct change *change, int32_t rank)
{
    size_t below = 0;

    for (size_t i = 0; i < change->count; i++)
        below += change->old_ranks[i] >= 0 && change->old_ranks[i] < rank;
    return (size_t)rank - below;
}

/* The new rank with INDEX, from 0; -1: there are fewer. */
static int32_t new_rank(const struct change *change, size_t index)
{
    for (size_t i = 0; i < change->count; i++)
        if (change->old_ranks[i] == -1 && index-- == 0) return (int32_t)i;
    return -1;
}

static weft_status replace_lost(const weft_mesh *mesh, const struct change *change, int32_t *now)
{
    for (int32_t i = 0; i < mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        size_t index;
        if (now[i] >= 0) continue;
        index = count_lost_below(change, rank);
        now[i] = new_rank(change, index);
        if (now[i] < 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_mesh_follow: rank %d is lost, number %zu of the lost ranks, but "
                           "there are fewer new ranks; start more, drop coordinates or pack",
                           rank, index + 1);
    }
    return WEFT_OK;
}

/* ---- the new mesh ---- */

/* A mesh of AXES with SIZES and NAMES, or none, on the ranks NOW. */
static weft_status make_mesh(const weft_mesh *mesh, int32_t axes, const int32_t *sizes,
                             const char *const *names, const int32_t *now, bool same_numbers,
                             weft_mesh **out)
{
    weft_mesh_options options = {.struct_size = sizeof options,
                                 .names = names,
                                 .ranks = now,
                                 .devices_per_host = same_numbers ? mesh->devices_per_host : 0};
    weft_status status = weft_mesh_create(axes, sizes, &options, out);

    return status == WEFT_OK ? status : wf_fail_context(status, "weft_mesh_follow");
}

/* Leave the positions of NOW that KEPT names; *SAME: they keep their numbers. */
static int32_t leave_kept(const weft_mesh *mesh, const bool *kept, int32_t *now, bool *same)
{
    int32_t count = 0;

    *same = true;
    for (int32_t i = 0; i < mesh->size; i++) {
        if (!kept[i]) continue;
        *same = *same && now[i] == weft_mesh_rank_at(mesh, i);
        now[count++] = now[i];
    }
    return count;
}

static weft_status refuse_empty(void)
{
    return wf_fail(WEFT_ERR_INVALID, "weft_mesh_follow: no rank of the mesh is left");
}

/* Drop the coordinates of AXIS at which a rank is lost.  *SIZE becomes the number of the others. */
static void drop_coordinates(const weft_mesh *mesh, int32_t axis, const int32_t *now, bool *kept,
                             int32_t *size)
{
    int32_t inner = 1, length = mesh->axis[axis].size;

    for (int32_t a = axis + 1; a < mesh->axes; a++)
        inner *= mesh->axis[a].size;
    *size = length;
    for (int32_t c = 0; c < length; c++) {
        bool whole = true;
        for (int32_t i = 0; i < mesh->size && whole; i++)
            whole = i / inner % length != c || now[i] >= 0;
        *size -= !whole;
        for (int32_t i = 0; i < mesh->size; i++)
            if (i / inner % length == c) kept[i] = whole;
    }
}

static weft_status follow(const weft_mesh *mesh, const struct change *change,
                          enum weft_follow policy, const char *axis, int32_t *now, bool *kept,
                          weft_mesh **out)
{
    const char *names[WEFT_MAX_AXES];
    int32_t sizes[WEFT_MAX_AXES], dropped, count;
    bool named = mesh->axis[0].name[0] != '\0', same;

    for (int32_t a = 0; a < mesh->axes; a++) {
        names[a] = mesh->axis[a].name;
        sizes[a] = mesh->axis[a].size;
    }
    WF_TRY(find_ranks(mesh, change, now));
    if (policy == WEFT_FOLLOW_REPLACE) WF_TRY(replace_lost(mesh, change, now));
    for (int32_t i = 0; i < mesh->size; i++)
        kept[i] = now[i] >= 0;
    if (policy == WEFT_FOLLOW_DROP) {
        WF_TRY(weft_mesh_find_axis(mesh, axis, &dropped));
        drop_coordinates(mesh, dropped, now, kept, &sizes[dropped]);
    }
    count = leave_kept(mesh, kept, now, &same);
    if (count == 0) return refuse_empty();
    if (policy == WEFT_FOLLOW_PACK)
        return make_mesh(mesh, 1, &count, axis != NULL ? &axis : NULL, now, same, out);
    return make_mesh(mesh, mesh->axes, sizes, named ? names : NULL, now, same, out);
}

weft_status weft_mesh_follow(const weft_mesh *mesh, size_t count, const int32_t *old_ranks,
                             enum weft_follow policy, const char *axis, weft_mesh **out)
{
    struct change change = {count, old_ranks};
    int32_t *now;
    bool *kept;
    weft_status status;

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_follow: mesh"));
    if (count > 0) WF_TRY(wf_require(old_ranks, "weft_mesh_follow: old_ranks"));
    if ((uint32_t)policy > WEFT_FOLLOW_PACK)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_mesh_follow: policy is %d; expected WEFT_FOLLOW_REPLACE (0), "
                       "WEFT_FOLLOW_DROP (1) or WEFT_FOLLOW_PACK (2)",
                       (int)policy);
    if (policy == WEFT_FOLLOW_DROP) WF_TRY(wf_require(axis, "weft_mesh_follow: axis"));
    WF_TRY(wf_require(out, "weft_mesh_follow: out"));
    WF_TRY(check_ranks(&change));
    now = wf_alloc((size_t)mesh->size * sizeof *now);
    kept = wf_alloc((size_t)mesh->size * sizeof *kept);
    if (now == NULL || kept == NULL)
        status = wf_fail_memory((size_t)mesh->size * (sizeof *now + sizeof *kept));
    else
        status = follow(mesh, &change, policy, axis, now, kept, out);
    wf_free(now);
    wf_free(kept);
    return status;
}
