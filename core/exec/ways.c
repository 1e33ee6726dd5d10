/* ways.c - which collectives the steps of a plan may use. */
#include "ways.h"

#include "comm/carry/carry.h"
#include "exec.h"

#include <stdio.h>

/* What was asked already, for the dtypes, a bit each. */
struct asked {
    uint32_t moves, reductions[WEFT_REDUCE_COUNT];
};

static void ask(const weft_comm *comm, uint32_t collective, uint32_t dtype, uint32_t reduction,
                uint32_t level, struct wf_ways *out)
{
    if (!wf_backend_has(comm, collective, dtype, reduction, level))
        out->denied[collective] |= UINT32_C(1) << dtype;
}

/* weft packs and reduces as well as a plugin that builds a reduce-scatter from other operations. */
static void ask_reductions(const weft_comm *comm, uint32_t dtype, uint32_t reduction,
                           struct wf_ways *out)
{
    ask(comm, WEFT_COLL_ALL_REDUCE, dtype, reduction, WEFT_SUPPORT_EMULATED, out);
    ask(comm, WEFT_COLL_REDUCE, dtype, reduction, WEFT_SUPPORT_EMULATED, out);
    ask(comm, WEFT_COLL_REDUCE_SCATTER, dtype, reduction, WEFT_SUPPORT_NATIVE, out);
    ask(comm, WEFT_COLL_REDUCE_SCATTER_V, dtype, reduction, WEFT_SUPPORT_NATIVE, out);
}

static void ask_moves(const weft_comm *comm, uint32_t dtype, struct wf_ways *out)
{
    static const uint32_t moves[] = {WEFT_COLL_ALL_GATHER, WEFT_COLL_ALL_GATHER_V,
                                     WEFT_COLL_BROADCAST, WEFT_COLL_ALL_TO_ALL_V};

    for (size_t i = 0; i < WF_COUNT(moves); i++)
        ask(comm, moves[i], dtype, 0, WEFT_SUPPORT_EMULATED, out);
}

static void ask_steps(const weft_plan *plan, const weft_comm *comm, struct asked *asked,
                      struct wf_ways *out)
{
    for (uint32_t i = 0; plan != NULL && i < plan->step_count; i++) {
        const struct wf_step *step = &plan->steps[i];
        const struct wf_layout *from = &step->from->layout;
        uint32_t dtype = wf_step_dtype(step), bit = UINT32_C(1) << dtype;

        if (wf_step_is_local(step)) continue;
        if ((asked->moves & bit) == 0) ask_moves(comm, dtype, out);
        asked->moves |= bit;
        for (int32_t a = 0; a < from->mesh->axes; a++) {
            uint32_t reduction = from->placements[a].reduction;

            if (from->placements[a].kind != WEFT_PLACE_PARTIAL ||
                (asked->reductions[reduction] & bit) != 0)
                continue;
            ask_reductions(comm, dtype, reduction, out);
            asked->reductions[reduction] |= bit;
        }
    }
}

void wf_ways_find(const weft_plan *plan, const weft_comm *comm, struct wf_ways *out)
{
    struct asked asked = {0};

    *out = (struct wf_ways){.no_exchange = !wf_backend_exchanges(comm)};
    if (plan->members == NULL)
        ask_steps(plan, comm, &asked, out);
    else
        ask_moves(comm, WEFT_DTYPE_U8, out); /* the common exchange moves bytes */
    for (uint32_t i = 0; i < plan->member_count; i++) {
        ask_steps(plan->members[i].alone, comm, &asked, out);
        ask_steps(plan->members[i].spare, comm, &asked, out);
    }
}

void wf_ways_join(struct wf_ways *ways, const struct wf_ways *other)
{
    for (uint32_t i = 0; i < WEFT_COLL_COUNT; i++)
        ways->denied[i] |= other->denied[i];
    ways->no_exchange |= other->no_exchange;
}

weft_status wf_ways_require_exchange(const struct wf_ways *ways, weft_comm *team, uint32_t dtype)
{
    char what[64];

    if (wf_ways_have(ways, WEFT_COLL_ALL_TO_ALL_V, dtype) || team->size == 1 ||
        wf_transport_of(team) != WF_TRANSPORT_NONE)
        return WEFT_OK;
    snprintf(what, sizeof what, "all_to_all_v of %s", wf_dtype_name(dtype));
    return wf_transport_refuse(team, what);
}
