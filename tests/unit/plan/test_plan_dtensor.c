/* The incumbent's planners reproduced: the same steps as PyTorch 2.11 took for every pair of
 * tests/data/plans.txt. */
#include "dtensor_planner.h"
#include "plan/plan.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static void add_placement(const weft_placement *p, struct wf_text *out)
{
    if (p->kind == WEFT_PLACE_PARTIAL)
        wf_text_add(out, "P(%s)", wf_reduction_name(p->reduction));
    else if (p->kind == WEFT_PLACE_SHARD)
        wf_text_add(out, "S(%d)", p->dim);
    else
        wf_text_char(out, 'R');
}

/* "1:S(0)>R;0:P(sum)>S(1)" */
static void add_steps(const weft_plan *plan, struct wf_text *out)
{
    weft_plan_step_info step = {.struct_size = sizeof step};

    wf_text_append(out, "", 0);
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        int axis = __builtin_ctz(step.axes);
        wf_text_add(out, "%s%d:", i > 0 ? ";" : "", axis);
        add_placement(&weft_spec_placements(step.from)[axis], out);
        wf_text_char(out, '>');
        add_placement(&weft_spec_placements(step.to)[axis], out);
    }
}

static void expect_steps(char *const *field, uint32_t planner, const char *wanted)
{
    weft_plan_options options = {.struct_size = sizeof options, .planner = planner};
    struct wf_text steps = {0};
    char mesh_text[64], text[256];
    OWNED(weft_mesh) *mesh = NULL;
    OWNED(weft_spec) *from = NULL, *to = NULL;
    OWNED(weft_plan) *plan = NULL;

    /* On CPU, DTensor assumes that every rank is on its own host. */
    snprintf(mesh_text, sizeof mesh_text, "%s/1", field[0]);
    ck_assert_int_eq(weft_mesh_parse(mesh_text, &mesh), WEFT_OK);
    snprintf(text, sizeof text, "f32[%s] %s", field[1], field[2]);
    ck_assert_int_eq(weft_spec_parse(mesh, text, &from), WEFT_OK);
    snprintf(text, sizeof text, "f32[%s] %s", field[1], field[3]);
    ck_assert_int_eq(weft_spec_parse(mesh, text, &to), WEFT_OK);
    ck_assert_msg(dtensor_plan_create(from, to, &options, &plan) == WEFT_OK, "%s",
                  weft_last_error());
    add_steps(plan, &steps);
    ck_assert_msg(strcmp(steps.data, wanted) == 0,
                  "--mesh %s --shape %s --from \"%s\" --to \"%s\": %s, recorded %s", field[0],
                  field[1], field[2], field[3], steps.data, wanted);
    wf_text_free(&steps);
}

static void for_each_pair(uint32_t planner, int column)
{
    FILE *file = fopen(WEFT_TEST_DATA "/plans.txt", "r");
    char line[1024], *field[6];
    int pairs = 0;

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *rest = line;
        if (line[0] == '#') continue;
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < WF_COUNT(field); i++)
            field[i] = strsep(&rest, "|");
        for (char *c = field[1]; *c != '\0'; c++)
            if (*c == 'x') *c = ',';
        expect_steps(field, planner, field[column]);
        pairs++;
    }
    fclose(file);
    ck_assert_int_eq(pairs, 843);
}

TEST(the_greedy_planner_takes_the_recorded_steps)
{
    for_each_pair(DTENSOR_GREEDY, 4);
}

TEST(the_graph_planner_takes_the_recorded_steps)
{
    for_each_pair(DTENSOR_GRAPH, 5);
}
