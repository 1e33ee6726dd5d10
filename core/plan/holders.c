/* holders.c - the source of a plan after a loss of ranks.
 *
 * The source keeps its layout.  Ranks have the numbers that they have now, and lost ones have
 * numbers above all others, so that one number tells the living from the lost. */
#include "plan.h"

weft_status wf_plan_refuse_holders(const char *function, const weft_plan_options *options)
{
    if (options->holder_count == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: weft_plan_options.holders is for weft_plan_create, one tensor at a time",
                   function);
}

static weft_status check_holders(const weft_mesh *mesh, const weft_plan_options *options)
{
    WF_TRY(wf_require(options->holders, "weft_plan_create: weft_plan_options.holders"));
    for (int32_t i = 0; i < mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        if ((size_t)rank >= options->holder_count)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_plan_create: holders has %zu entries, but the source has rank %d",
                           options->holder_count, rank);
        if (options->holders[rank] < -1)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_plan_create: holders[%d] is %d; expected a rank, or -1 for a lost "
                           "shard",
                           rank, options->holders[rank]);
    }
    return WEFT_OK;
}

/* The number behind those of all living ranks and of the ranks of TO; RANKS has the living. */
static int32_t next_number(const int32_t *ranks, int32_t count, const weft_mesh *to)
{
    int32_t last = 0;

    for (int32_t i = 0; i < count; i++)
        if (ranks[i] > last) last = ranks[i];
    for (int32_t i = 0; i < to->size; i++)
        if (weft_mesh_rank_at(to, i) > last) last = weft_mesh_rank_at(to, i);
    return last < INT32_MAX ? last + 1 : last;
}

/* WEFT_ERR_NOT_FOUND if elements of FROM are lost with the COUNT ranks in LOST. */
static weft_status check_lost(const weft_spec *from, size_t count, const int32_t *lost)
{
    weft_lost_info info = {.struct_size = sizeof info};
    struct wf_text first = {0};
    int32_t *ranks = wf_alloc(count * sizeof *ranks);
    weft_status status;

    if (ranks == NULL) return wf_fail_memory(count * sizeof *ranks);
    status = weft_spec_lost(from, count, lost, ranks, &info);
    if (status == WEFT_OK && info.elements > 0) {
        wf_shape_add_text(from->layout.dims, info.first, &first);
        status = wf_text_status(&first);
        if (status == WEFT_OK)
            status =
                wf_fail(WEFT_ERR_NOT_FOUND,
                        "weft_plan_create: no rank of holders has %lld of the %lld elements; "
                        "the first is %s, and rank %d had some of them",
                        (long long)info.elements, (long long)from->elements, first.data, ranks[0]);
    }
    wf_text_free(&first);
    wf_free(ranks);
    return status;
}

/* Number the ranks of FROM's mesh, in RANKS, by HOLDERS, and list the lost ones, by their old
 * numbers, in LOST. */
static weft_status number_ranks(const weft_mesh *mesh, const int32_t *holders, const weft_mesh *to,
                                int32_t *ranks, int32_t *lost, int32_t *lost_count, int32_t *living)
{
    int32_t next;

    *lost_count = 0;
    for (int32_t i = 0; i < mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        ranks[i] = holders[rank];
        if (ranks[i] < 0) lost[(*lost_count)++] = rank;
    }
    next = next_number(ranks, mesh->size, to);
    *living = *lost_count > 0 ? next : 0;
    if (*lost_count > INT32_MAX - next)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_plan_create: holders has rank %d; no number is left "
                       "for %d lost ranks",
                       next - 1, *lost_count);
    for (int32_t i = 0; i < mesh->size; i++)
        if (ranks[i] < 0) ranks[i] = next++;
    return WEFT_OK;
}

/* FROM on a mesh of the same axes with RANKS. */
static weft_status move_spec(const weft_spec *from, const weft_mesh *to, const int32_t *ranks,
                             weft_spec **out)
{
    const weft_mesh *mesh = from->layout.mesh;
    const char *names[WEFT_MAX_AXES];
    weft_mesh_options options = {.struct_size = sizeof options,
                                 .names = mesh->axis[0].name[0] != '\0' ? names : NULL,
                                 .ranks = ranks,
                                 .devices_per_host = to->devices_per_host};
    int32_t sizes[WEFT_MAX_AXES];
    weft_mesh *now = NULL;
    weft_status status;

    for (int32_t a = 0; a < mesh->axes; a++) {
        names[a] = mesh->axis[a].name;
        sizes[a] = mesh->axis[a].size;
    }
    status = weft_mesh_create(mesh->axes, sizes, &options, &now);
    if (status != WEFT_OK) return wf_fail_context(status, "weft_plan_create: holders");
    status = weft_spec_create(now, from->layout.dtype, from->layout.dims, from->layout.shape,
                              from->layout.placements, out);
    weft_mesh_release(&now);
    return status;
}

weft_status wf_plan_source(const weft_spec *from, const weft_spec *to,
                           const weft_plan_options *options, int32_t *living, weft_spec **out)
{
    const weft_mesh *mesh = from->layout.mesh;
    size_t size = (size_t)mesh->size;
    int32_t *ranks, lost_count;
    weft_status status;

    WF_TRY(check_holders(mesh, options));
    ranks = wf_alloc(2 * size * sizeof *ranks);
    if (ranks == NULL) return wf_fail_memory(2 * size * sizeof *ranks);
    status = number_ranks(mesh, options->holders, to->layout.mesh, ranks, ranks + size, &lost_count,
                          living);
    if (status == WEFT_OK && lost_count > 0)
        status = check_lost(from, (size_t)lost_count, ranks + size);
    if (status == WEFT_OK && lost_count > 0 && from->layout.dtype != to->layout.dtype)
        status = wf_fail(WEFT_ERR_UNSUPPORTED,
                         "weft_plan_create: holders: a rank is lost, and the plan would cast from "
                         "%s to %s; take the elements first, and cast them in another plan",
                         weft_dtype_name(from->layout.dtype), weft_dtype_name(to->layout.dtype));
    if (status == WEFT_OK) status = move_spec(from, to->layout.mesh, ranks, out);
    wf_free(ranks);
    return status;
}
