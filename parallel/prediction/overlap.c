/* overlap.c - gathers of parameters and reductions of gradients beside the compute of other layers.
 */
#include "prediction/prediction.h"

/* Two lanes, and the unit whose compute is next. */
struct lanes {
    uint64_t compute, link; /* when they are free */
    uint64_t ready;         /* when the parameters of the next unit are gathered */
};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Compute UNIT, gather NEXT beside it, and reduce the gradients of UNIT behind that. */
static void run_unit(struct lanes *lanes, const struct wf_step_unit *unit,
                     const struct wf_step_unit *next)
{
    uint64_t begin = later(lanes->compute, lanes->ready);

    lanes->compute = wf_add_capped(begin, unit->compute);
    if (next->gather > 0) lanes->link = wf_add_capped(later(lanes->link, begin), next->gather);
    lanes->ready = next->gather > 0 ? lanes->link : 0;
    if (unit->reduce > 0)
        lanes->link = wf_add_capped(later(lanes->link, lanes->compute), unit->reduce);
}

uint64_t wf_step_overlap(const struct wf_step_pass *pass)
{
    const struct wf_step_unit *first = pass->layers > 0 ? &pass->layer : &pass->behind;
    struct lanes lanes = {.link = pass->before.gather, .ready = pass->before.gather};

    run_unit(&lanes, &pass->before, first);
    for (uint64_t i = 0; i < pass->layers; i++)
        run_unit(&lanes, &pass->layer, i + 1 < pass->layers ? &pass->layer : &pass->behind);
    run_unit(&lanes, &pass->behind, &(struct wf_step_unit){.compute = 0});
    return later(lanes.compute, lanes.link);
}
