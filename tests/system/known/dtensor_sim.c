/* dtensor_sim.c - `dtensor_sim PLANNER MESH FROM TO`: `weft sim` by one of DTensor's planners.
 *
 *     dtensor_sim greedy 3x4 'i8[14] P(avg),S(0)' 'i8[14] S(0),P(avg)'
 *
 * Simulates the plan from FROM to TO and checks every element.  PLANNER is greedy or graph.  Exits
 * with 0 if every element is right. */
#include "dtensor_planner.h"
#include "redistribute/values.h"
#include "weft/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_shards(const weft_spec *spec, void **shards)
{
    for (int32_t i = 0; shards != NULL && i < weft_mesh_size(weft_spec_mesh(spec)); i++)
        free(shards[i]);
    free(shards);
}

/* The memory of every rank's shard, by position in the mesh; NULL if memory is exhausted. */
static void **allocate_shards(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    void **shards = calloc((size_t)weft_mesh_size(mesh), sizeof *shards);
    weft_shard shard;

    for (int32_t i = 0; shards != NULL && i < weft_mesh_size(mesh); i++) {
        weft_spec_shard(spec, weft_mesh_rank_at(mesh, i), &shard);
        shards[i] = calloc((size_t)shard.elements + 1, weft_dtype_bytes(weft_spec_dtype(spec)));
        if (shards[i] != NULL) continue;
        free_shards(spec, shards);
        return NULL;
    }
    return shards;
}

static weft_status simulate(const weft_plan *plan, const weft_spec *from, const weft_spec *to)
{
    struct values values = values_between(from, to);
    void **sources = allocate_shards(from), **targets = allocate_shards(to);
    weft_status status = WEFT_ERR_NO_MEMORY;

    if (sources != NULL && targets != NULL) {
        const weft_mesh *mesh = weft_spec_mesh(from);
        for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
            values_fill(&values, from, weft_mesh_rank_at(mesh, i), NULL, sources[i]);
        status = weft_simulate(plan, (const void *const *const *)&sources,
                               (void *const *const *)&targets);
        if (status == WEFT_OK) status = values_check(&values, to, (const void *const *)targets);
    }
    free_shards(from, sources);
    free_shards(to, targets);
    return status;
}

static weft_status run(uint32_t planner, char **words)
{
    weft_plan_options options = {.struct_size = sizeof options, .planner = planner};
    weft_mesh *mesh = NULL;
    weft_spec *from = NULL, *to = NULL;
    weft_plan *plan = NULL;
    weft_status status = weft_mesh_parse(words[0], &mesh);

    if (status == WEFT_OK) status = weft_spec_parse(mesh, words[1], &from);
    if (status == WEFT_OK) status = weft_spec_parse(mesh, words[2], &to);
    if (status == WEFT_OK) status = dtensor_plan_create(from, to, &options, &plan);
    if (status == WEFT_OK) status = simulate(plan, from, to);
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
    return status;
}

int main(int argc, char **argv)
{
    bool greedy = argc == 5 && strcmp(argv[1], "greedy") == 0;

    if (argc != 5 || (!greedy && strcmp(argv[1], "graph") != 0)) {
        fprintf(stderr, "usage: dtensor_sim greedy|graph MESH FROM TO\n");
        return 2;
    }
    if (run(greedy ? DTENSOR_GREEDY : DTENSOR_GRAPH, argv + 2) == WEFT_OK) return 0;
    fprintf(stderr, "dtensor_sim: %s\n", weft_last_error());
    return 1;
}
