/* visit.c - the ranks for which a figure is counted.
 *
 * A figure is exact if the visit leaves out no rank that may have another one.  If there are too
 * many of them, ranks that are spread over the mesh stand for all. */
#include "figures.h"

static struct wf_visit visit_of(const struct wf_step *step)
{
    return (struct wf_visit){
        .alike = 1, .from = step->from->layout.mesh, .to = step->to->layout.mesh};
}

/* All coordinates of an axis that splits a dimension in some of STEPS may differ; two of an axis
 * whose partial some step creates; otherwise one. */
int64_t wf_visit_distinct(struct wf_visit *visit, const struct wf_step *steps, uint32_t count)
{
    const weft_mesh *mesh = steps[0].from->layout.mesh;
    uint32_t split = 0, partial = 0;

    *visit = visit_of(&steps[0]);
    visit->is_distinct = true;
    visit->left = 1;
    for (uint32_t i = 0; i < count; i++) {
        for (int32_t d = 0; d < wf_table_dims(&steps[i].to->layout); d++)
            split |= wf_step_dim_axes(&steps[i], d);
        partial |= wf_step_made(&steps[i]);
    }
    for (int32_t a = 0; a < mesh->axes; a++) {
        int32_t range = (partial >> a & 1) && mesh->axis[a].size > 1 ? 2 : 1;

        visit->range[a] = split >> a & 1 ? mesh->axis[a].size : range;
        visit->left = wf_min_i64(visit->left * visit->range[a], WF_DISTINCT_MAX + 1);
    }
    visit->count = visit->left;
    return visit->left;
}

void wf_visit_readers(struct wf_visit *visit, const struct wf_step *step, int32_t most)
{
    *visit = visit_of(step);
    visit->count = visit->left = wf_min_i64(visit->to->size, most);
}

void wf_visit_ranks(struct wf_visit *visit, const struct wf_step *step)
{
    wf_visit_readers(visit, step, INT32_MAX);
    if (visit->from != visit->to) visit->others = visit->from->size;
}

/* The rank at position AT of the target's mesh. */
static void set_reader(struct wf_visit *visit, int32_t at)
{
    bool is_source;

    wf_mesh_coord_at(visit->to, at, visit->room[1]);
    visit->target = visit->source = visit->room[1];
    visit->rank = weft_mesh_rank_at(visit->to, at);
    if (visit->from == visit->to) return;
    is_source = wf_mesh_coord(visit->from, visit->rank, visit->room[0]);
    visit->source = is_source ? visit->room[0] : NULL;
}

/* Ranks with the shards of the one at COORD: any coordinate of an axis with a range of 1, any but 0
 * of one with a range of 2. */
static uint64_t count_alike(const struct wf_visit *visit, const int32_t *coord)
{
    uint64_t ranks = 1;

    for (int32_t a = 0; a < visit->to->axes; a++) {
        if (visit->range[a] == 1)
            ranks *= (uint64_t)visit->to->axis[a].size;
        else if (visit->range[a] < visit->to->axis[a].size && coord[a] > 0)
            ranks *= (uint64_t)(visit->to->axis[a].size - 1);
    }
    return ranks;
}

/* The next coordinate within the range, in row-major order; the first one is 0. */
static void set_distinct(struct wf_visit *visit, bool first)
{
    const weft_mesh *mesh = visit->to;

    for (int32_t a = mesh->axes - 1; a >= 0 && !first; a--) {
        if (++visit->room[1][a] < visit->range[a]) break;
        visit->room[1][a] = 0;
    }
    visit->target = visit->source = visit->room[1];
    visit->rank = wf_mesh_rank(mesh, visit->target);
    visit->alike = count_alike(visit, visit->target);
}

bool wf_visit_next(struct wf_visit *visit)
{
    int64_t at = visit->count - visit->left, last = visit->to->size - 1;

    if (visit->left > 0) {
        visit->left--;
        if (visit->is_distinct)
            set_distinct(visit, at == 0);
        else
            set_reader(visit, (int32_t)(at * last / (visit->count > 1 ? visit->count - 1 : 1)));
        return true;
    }
    visit->target = NULL;
    visit->source = visit->room[0];
    while (visit->others > 0) {
        int32_t other = visit->from->size - visit->others--;

        visit->rank = weft_mesh_rank_at(visit->from, other);
        if (wf_mesh_coord(visit->to, visit->rank, visit->room[1])) continue;
        wf_mesh_coord_at(visit->from, other, visit->room[0]);
        return true;
    }
    return false;
}
