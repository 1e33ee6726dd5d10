/* speed.c - how long weft and DTensor's planners plan one change: `dtensor_planner_speed [MS]`.
 *
 * `weft bench plan` measures weft's planner with the same loop on more pairs. */
#include "dtensor_planner.h"

#include "timing/alone.h"

#include <stdio.h>
#include <stdlib.h>

struct subject {
    weft_spec *from, *to;
    weft_plan_options options;
};

static int create_plan(void *argument)
{
    struct subject *s = argument;
    weft_plan *plan = NULL;
    weft_status status = dtensor_plan_create(s->from, s->to, &s->options, &plan);

    weft_plan_release(&plan);
    return (int)status;
}

static int measure(struct subject *subject, uint64_t budget_ns)
{
    static const uint32_t planners[] = {WEFT_PLANNER_SEARCH, DTENSOR_GREEDY, DTENSOR_GRAPH};
    struct bench_times times;

    for (size_t i = 0; i < sizeof planners / sizeof planners[0]; i++) {
        int status;
        subject->options.planner = planners[i];
        status = bench_alone(create_plan, subject, budget_ns, &times);
        if (status != 0) return status;
        printf("%-14s %12.3f us\n", dtensor_planner_name(planners[i]),
               (double)times.median_ns / 1e3);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const mesh_text = "2x2x2", *const from = "f32[4096,4096,64] P,P,P",
                             *const to = "f32[4096,4096,64] R,R,R";
    uint64_t budget_ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    struct subject subject = {.options = {.struct_size = sizeof subject.options}};
    weft_mesh *mesh = NULL;
    int status = 1;

    printf("%s, %s -> %s\n", mesh_text, from, to);
    if (weft_mesh_parse(mesh_text, &mesh) == WEFT_OK &&
        weft_spec_parse(mesh, from, &subject.from) == WEFT_OK &&
        weft_spec_parse(mesh, to, &subject.to) == WEFT_OK)
        status = measure(&subject, budget_ms * 1000000);
    if (status != 0) fprintf(stderr, "dtensor_planner_speed: %s\n", weft_last_error());
    weft_spec_release(&subject.from);
    weft_spec_release(&subject.to);
    weft_mesh_release(&mesh);
    return status == 0 ? 0 : 1;
}
