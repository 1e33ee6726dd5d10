/* choose.c - choose the schedule of a pipeline, before machines are rented.
 *
 *     ./choose examples/graphs/llama-8b.graph pp=4,dp=2,tp=8/8 h100 16 80
 *
 * The graph is a training step of one microbatch.  The program predicts it on the mesh, by the cost
 * table h100, with 16 microbatches in every schedule that weft knows.  Of the schedules that hold
 * at most 80 GB on a rank it takes the fastest.  It prints its stages and ranks, and how much of
 * the step is lost because stages differ.  It communicates with nobody and needs no device. */
#include <weft/parallel.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { STAGES_MAX = 256 };

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1 << 20, 1);

    if (file == NULL || text == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    (void)!fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

/* The best schedule so far; PREDICTION is NULL without one. */
struct best {
    weft_schedule *schedule;
    weft_prediction *prediction;
    weft_prediction_info info;
};

static void release(struct best *best)
{
    weft_prediction_release(&best->prediction);
    weft_schedule_release(&best->schedule);
}

/* Keep SCHEDULE if a step of GRAPH needs at most MEMORY bytes and is faster than the best. */
static void compare(const weft_graph *graph, const weft_schedule *schedule, uint64_t memory,
                    struct best *best)
{
    weft_prediction_options options = {.struct_size = sizeof options, .schedule = schedule};
    struct best now = {.info = {.struct_size = sizeof now.info}};

    MUST(weft_prediction_create(graph, &options, &now.prediction));
    MUST(weft_prediction_get(now.prediction, &now.info));
    printf("%.3f s, %.1f GB\n", (double)now.info.time / 1e9, (double)now.info.peak / 1e9);
    now.schedule = weft_schedule_retain(schedule);
    if (now.info.peak <= memory && (best->prediction == NULL || now.info.time < best->info.time)) {
        release(best);
        *best = now;
    } else {
        release(&now);
    }
}

/* The time until each rank has ended, if the stages take the times COSTS; the latest one of all. */
static uint64_t end_of(const weft_schedule *schedule, const weft_schedule_stage_cost *costs,
                       size_t stages, int32_t ranks)
{
    weft_timeline_options options = {.struct_size = sizeof options,
                                     .stage_count = stages,
                                     .stages = costs,
                                     .stage_size = sizeof *costs};
    weft_timeline *timeline;
    uint64_t latest = 0;

    MUST(weft_timeline_create(schedule, &options, &timeline));
    for (int32_t rank = 0; rank < ranks; rank++) {
        weft_timeline_rank_info info = {.struct_size = sizeof info};

        MUST(weft_timeline_rank_get(timeline, rank, &info));
        if (info.end > latest) latest = info.end;
    }
    weft_timeline_release(&timeline);
    return latest;
}

/* Print the stages of BEST, and what their differences cost. */
static void describe_stages(const struct best *best)
{
    static weft_schedule_stage_cost costs[STAGES_MAX], equal[STAGES_MAX];
    size_t stages = (size_t)best->info.stages;
    weft_schedule_stage_cost sum = {0};
    uint64_t as_they_are, as_the_mean;

    if (stages > STAGES_MAX) return;
    for (size_t i = 0; i < stages; i++) {
        weft_prediction_stage_info info = {.struct_size = sizeof info};

        MUST(weft_prediction_stage_get(best->prediction, (int32_t)i, &info));
        printf("stage %2zu on rank %d: forward %7.1f ms, backward %7.1f ms\n", i, info.rank,
               (double)info.forward / 1e6, (double)(info.input + info.weight) / 1e6);
        costs[i] = (weft_schedule_stage_cost){
            .forward = info.forward, .input = info.input, .weight = info.weight};
        sum.forward += info.forward;
        sum.input += info.input;
        sum.weight += info.weight;
    }
    for (size_t i = 0; i < stages; i++)
        equal[i] = (weft_schedule_stage_cost){.forward = sum.forward / stages,
                                              .input = sum.input / stages,
                                              .weight = sum.weight / stages};
    as_they_are = end_of(best->schedule, costs, stages, best->info.pipeline_ranks);
    as_the_mean = end_of(best->schedule, equal, stages, best->info.pipeline_ranks);
    printf("with equal stages, forward and backward would take %.3f s in place of %.3f s\n",
           (double)as_the_mean / 1e9, (double)as_they_are / 1e9);
}

static void describe_ranks(const struct best *best)
{
    for (int32_t i = 0; i < best->info.pipeline_ranks; i++) {
        weft_prediction_rank_info info = {.struct_size = sizeof info};

        MUST(weft_prediction_rank_get(best->prediction, i, &info));
        printf("rank %2d: computes %4.1f %% of the step, holds %.1f GB\n", i,
               100 * (double)info.busy / (double)best->info.time, (double)info.peak / 1e9);
    }
}

/* The best schedule of RANKS ranks for GRAPH. */
static struct best choose(const weft_graph *graph, int32_t ranks, int32_t microbatches,
                          uint64_t memory)
{
    struct best best = {0};
    weft_schedule *schedule;
    const char *name;

    for (size_t i = 0; (name = weft_schedule_known(i)) != NULL; i++) {
        printf("%-16s", name);
        if (weft_schedule_create(name, ranks, 0, microbatches, &schedule) != WEFT_OK) {
            printf("%s\n", weft_last_error()); /* it does not exist for these numbers */
            continue;
        }
        compare(graph, schedule, memory, &best);
        weft_schedule_release(&schedule);
    }
    return best;
}

int main(int argc, char **argv)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    weft_graph_options how = {.struct_size = sizeof how};
    weft_cost_table *costs;
    struct best best;
    weft_graph *graph;
    weft_mesh *mesh;
    int32_t axis;
    char *text;
    bool found;

    if (argc != 6) {
        fprintf(stderr, "usage: choose GRAPH MESH COSTS MICROBATCHES GIGABYTES\n");
        return EXIT_FAILURE;
    }
    text = read_file(argv[1]);
    MUST(weft_mesh_parse(argv[2], &mesh));
    MUST(weft_mesh_find_axis(mesh, "pp", &axis));
    MUST(weft_cost_table_open(argv[3], &costs));
    MUST(weft_graph_parse(text, NULL, &graph));
    how.mesh = mesh;
    how.costs = costs;
    MUST(weft_graph_check(graph, &how));
    best = choose(graph, weft_mesh_axis_size(mesh, axis), atoi(argv[4]),
                  (uint64_t)(atof(argv[5]) * 1e9));
    found = best.prediction != NULL;
    if (found) {
        MUST(weft_schedule_get(best.schedule, &info));
        printf("the choice is %s\n", info.name);
        describe_stages(&best);
        describe_ranks(&best);
    } else {
        printf("every schedule needs more than %s GB on a rank\n", argv[5]);
    }
    release(&best);
    weft_graph_release(&graph);
    weft_cost_table_release(&costs);
    weft_mesh_release(&mesh);
    free(text);
    return found ? EXIT_SUCCESS : EXIT_FAILURE;
}
