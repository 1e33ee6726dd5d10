/* Graphs and predicted steps as a program uses them; tests/cli/commands has the many cases. */
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/parallel.h"

#include <string.h>

/* 8 layers, whose lines take 1 us each; gradients are not reduced. */
static const char layers[] = "mesh tp=1\n"
                             "input x f32[8,8] R\n"
                             "param w f32[8,8] R ; x8\n"
                             "y = linear(x, w) ; x8 ; time 1us\n"
                             "phase backward\n"
                             "dx = matmul(y, w) ; x8 ; time 1us\n"
                             "dw = einsum(y, x, eq=\"bn,bk->nk\") ; x8 ; time 1us\n"
                             "phase update\n"
                             "param m f32[8,8] R ; x8\n"
                             "v, u = adamw_of(w, dw, m) ; x8 ; time 1us\n";

static const char plain[] = "mesh tp=1\n"
                            "input x f32[8,8] R\n"
                            "param w f32[8,8] R ; x8\n"
                            "param m f32[8,8] R ; x8\n"
                            "y = linear(x, w) ; x8 ; time 1us\n"
                            "phase backward\n"
                            "dx = matmul(y, w) ; x8 ; time 1us\n"
                            "dw = einsum(y, x, eq=\"bn,bk->nk\") ; x8 ; time 1us\n"
                            "phase update\n"
                            "n = add(m, dw) ; x8 ; time 1us\n"
                            "v = add(w, n) ; x8 ; time 1us\n"
                            "output v\n";

static weft_graph *graph_of(const char *text, const char *mesh_text, uint32_t flags)
{
    weft_graph_options options = {.struct_size = sizeof options, .flags = flags};
    weft_mesh *mesh = NULL;
    weft_graph *graph = NULL;

    if (mesh_text != NULL) ck_assert_int_eq(weft_mesh_parse(mesh_text, &mesh), WEFT_OK);
    options.mesh = mesh;
    ck_assert_msg(weft_graph_parse(text, NULL, &graph) == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(weft_graph_check(graph, &options) == WEFT_OK, "%s", weft_last_error());
    weft_mesh_release(&mesh);
    return graph;
}

static weft_prediction *predict(const weft_graph *graph, const weft_prediction_options *options)
{
    weft_prediction *prediction = NULL;

    ck_assert_msg(weft_prediction_create(graph, options, &prediction) == WEFT_OK, "%s",
                  weft_last_error());
    return prediction;
}

static weft_prediction_info info_of(const weft_prediction *prediction)
{
    weft_prediction_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_prediction_get(prediction, &info), WEFT_OK);
    return info;
}

TEST(figures_of_a_step)
{
    weft_graph *graph = graph_of(plain, NULL, 0);
    weft_prediction *prediction = predict(graph, NULL);
    weft_prediction_info info = info_of(prediction);
    weft_prediction_stage_info stage = {.struct_size = sizeof stage};
    weft_prediction_rank_info rank = {.struct_size = sizeof rank};

    weft_graph_release(&graph); /* the prediction does not need it */
    ck_assert_uint_eq(info.time, 8 * 5000);
    ck_assert_int_eq(info.stages, 1);
    ck_assert_uint_eq(info.layers, 8);
    ck_assert_uint_eq(info.exposed, 0);
    ck_assert_int_eq(weft_prediction_stage_get(prediction, 0, &stage), WEFT_OK);
    ck_assert_uint_eq(stage.forward, 8000);
    ck_assert_uint_eq(stage.parameters, 8 * 256);
    ck_assert_uint_eq(stage.optimizer, 8 * 256);
    ck_assert_uint_eq(stage.gradients, 8 * 256);
    ck_assert_int_eq(weft_prediction_rank_get(prediction, 0, &rank), WEFT_OK);
    ck_assert_uint_eq(rank.update, 8 * 2000);
    ck_assert_uint_eq(rank.end + rank.update, info.time);
    ck_assert_uint_eq(info.peak, rank.peak);
    ck_assert_int_eq(weft_prediction_stage_get(prediction, 1, &stage), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_prediction_rank_get(prediction, -1, &rank), WEFT_ERR_INVALID);
    weft_prediction_release(&prediction);
}

TEST(an_axis_of_stages_has_a_schedule)
{
    weft_graph *graph = graph_of(plain, "pp=2,tp=1", WEFT_GRAPH_EVEN_BATCH);
    weft_prediction_options options = {.struct_size = sizeof options};
    weft_prediction *prediction = predict(graph, NULL), *same, *none = NULL;
    weft_schedule *schedule = NULL;

    ck_assert_int_eq(info_of(prediction).microbatches, 4);
    ck_assert_int_eq(weft_schedule_create("1f1b", 2, 0, 4, &schedule), WEFT_OK);
    options.schedule = schedule;
    same = predict(graph, &options);
    ck_assert_uint_eq(info_of(same).time, info_of(prediction).time);
    weft_schedule_release(&schedule);
    ck_assert_int_eq(weft_schedule_create("1f1b", 3, 0, 4, &schedule), WEFT_OK);
    options.schedule = schedule;
    ck_assert_int_eq(weft_prediction_create(graph, &options, &none), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "3 ranks"));
    weft_schedule_release(&schedule);
    weft_prediction_release(&same);
    weft_prediction_release(&prediction);
    weft_graph_release(&graph);
}

TEST(stages_have_the_layers_that_the_options_list)
{
    weft_graph *graph = graph_of(plain, "pp=2,tp=1", 0);
    uint32_t given[] = {3, 5};
    weft_prediction_options options = {
        .struct_size = sizeof options, .stage_count = 2, .stage_layers = given};
    weft_prediction *prediction = predict(graph, &options), *none = NULL;
    weft_prediction_stage_info stage = {.struct_size = sizeof stage};

    for (int32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(weft_prediction_stage_get(prediction, i, &stage), WEFT_OK);
        ck_assert_uint_eq(stage.forward, 1000u * given[i]);
        ck_assert_uint_eq(stage.optimizer, 256u * given[i]);
    }
    given[0] = 4;
    ck_assert_int_eq(weft_prediction_create(graph, &options, &none), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "9 layers"));
    options.stage_count = 1;
    ck_assert_int_eq(weft_prediction_create(graph, &options, &none), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "for 1 stage, and"));
    options = (weft_prediction_options){.struct_size = sizeof options, .stage_count = 2};
    ck_assert_int_eq(weft_prediction_create(graph, &options, &none), WEFT_ERR_INVALID);
    ck_assert_ptr_null(none);
    weft_prediction_release(&prediction);
    weft_graph_release(&graph);
}

TEST(slow_ranks_end_the_step_later)
{
    weft_graph *graph = graph_of(plain, "pp=2,tp=1", 0);
    weft_straggler slow = {.rank = 1, .factor = 2};
    weft_prediction_options options = {.struct_size = sizeof options,
                                       .straggler_count = 1,
                                       .stragglers = &slow,
                                       .straggler_size = sizeof slow};
    weft_prediction *equal = predict(graph, NULL), *late = predict(graph, &options), *none = NULL;

    ck_assert_uint_gt(info_of(late).time, info_of(equal).time);
    slow.rank = 2;
    ck_assert_int_eq(weft_prediction_create(graph, &options, &none), WEFT_ERR_INVALID);
    slow = (weft_straggler){.rank = 0, .factor = 0.5};
    ck_assert_int_eq(weft_prediction_create(graph, &options, &none), WEFT_ERR_INVALID);
    options = (weft_prediction_options){.struct_size = sizeof options, .jitter = -1};
    ck_assert_int_eq(weft_prediction_create(graph, &options, &none), WEFT_ERR_INVALID);
    ck_assert_ptr_null(none);
    weft_prediction_release(&equal);
    weft_prediction_release(&late);
    weft_graph_release(&graph);
}

TEST(a_graph_is_checked_once)
{
    weft_prediction *none = NULL;
    const weft_reorder_node *nodes;
    weft_graph_info info = {.struct_size = sizeof info};
    weft_graph *graph = NULL;
    size_t count;

    ck_assert_int_eq(weft_graph_parse(plain, NULL, &graph), WEFT_OK);
    ck_assert_int_eq(weft_graph_get(graph, &info), WEFT_OK);
    ck_assert(!info.checked && info.lines == 9);
    ck_assert_int_eq(weft_prediction_create(graph, NULL, &none), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_graph_nodes(graph, &count, &nodes, sizeof *nodes), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_graph_print(graph, NULL, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_graph_check(graph, NULL), WEFT_OK);
    ck_assert_int_eq(weft_graph_check(graph, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_graph_nodes(graph, &count, &nodes, sizeof *nodes), WEFT_OK);
    ck_assert_uint_eq(count, 9);
    ck_assert_uint_eq(nodes[3].time, 8000);
    weft_graph_release(&graph);
}

TEST(styles_may_end_before_their_graph)
{
    static const char text[] = "mesh tp=2\nw tp column\n";
    weft_styles *styles = NULL;
    weft_graph *graph = NULL;
    char layout[64];

    ck_assert_int_eq(weft_styles_parse(text, NULL, &styles), WEFT_OK);
    ck_assert_int_eq(weft_graph_parse("param w f32[8,8]\noutput w\n", styles, &graph), WEFT_OK);
    weft_styles_release(&styles);
    ck_assert_int_eq(weft_graph_check(graph, NULL), WEFT_OK);
    ck_assert_int_eq(weft_graph_layout_print(graph, layout, sizeof layout, NULL), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(layout, "S(0)"));
    weft_graph_release(&graph);
}

TEST(errors_name_the_line)
{
    weft_graph *graph = NULL;

    ck_assert_int_eq(weft_graph_parse(layers, NULL, &graph), WEFT_OK);
    ck_assert_int_ne(weft_graph_check(graph, NULL), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "line 10"));
    weft_graph_release(&graph);
    ck_assert_int_eq(weft_graph_parse("mesh tp=1\nnonsense\n", NULL, &graph), WEFT_ERR_PARSE);
    ck_assert_ptr_null(graph);
}

static weft_status use_all(weft_graph **graph, weft_prediction **prediction)
{
    weft_status status = weft_graph_parse(plain, NULL, graph);

    if (status == WEFT_OK) status = weft_graph_check(*graph, NULL);
    if (status == WEFT_OK) status = weft_prediction_create(*graph, NULL, prediction);
    if (status == WEFT_OK) status = weft_prediction_json_print(*prediction, NULL, 0, NULL);
    if (status != WEFT_OK) {
        weft_prediction_release(prediction);
        weft_graph_release(graph);
    }
    return status;
}

static void release_all(weft_graph **graph, weft_prediction **prediction)
{
    weft_prediction_release(prediction);
    weft_graph_release(graph);
}

TEST(no_allocation_failure_leaks)
{
    weft_prediction *prediction = NULL;
    weft_graph *graph = NULL;

    weft_op_cache_clear();
    (void)ALLOCATIONS_FAIL(use_all(&graph, &prediction), release_all(&graph, &prediction));
}
