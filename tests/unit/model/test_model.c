/* Models, and the graphs that are made of them. */
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char llama[] = "# Llama 3 70B\nmodel llama layers=80 hidden=8192 heads=64 key_heads=8 "
                            "ffn=28672 vocabulary=128256 sequence=8192\n";
static const char small_llama[] = "model llama layers=4 hidden=64 heads=8 key_heads=4 ffn=128 "
                                  "vocabulary=96 sequence=32";
static const char small_gpt[] = "model gpt layers=4 hidden=64 heads=8 vocabulary=96 sequence=32 "
                                "attention=scores dtype=f16";
static const char small_moe[] =
    "model moe layers=4 hidden=64 heads=8 key_heads=4 ffn=32 vocabulary=96 "
    "sequence=32 experts=8 active=2 shared=1";

static weft_model *model_of(const char *text)
{
    weft_model *model = NULL;

    ck_assert_msg(weft_model_parse(text, &model) == WEFT_OK, "%s: %s", text, weft_last_error());
    return model;
}

static weft_model_info info_of(const char *text)
{
    weft_model *model = model_of(text);
    weft_model_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_model_get(model, &info), WEFT_OK);
    weft_model_release(&model);
    return info;
}

/* TEXT is refused, with PART in the reason. */
static void refuse(const char *text, const char *part)
{
    weft_model *model = NULL;

    ck_assert_msg(weft_model_parse(text, &model) == WEFT_ERR_PARSE, "%s", text);
    ck_assert_msg(strstr(weft_last_error(), part) != NULL, "%s: %s", text, weft_last_error());
    ck_assert_ptr_null(model);
}

/* The graph of MODEL; NULL: it is refused. */
static char *print_graph(const weft_model *model, const weft_model_graph_options *options)
{
    size_t length = 0;
    char *text;

    if (weft_model_graph_print(model, options, NULL, 0, &length) != WEFT_OK) return NULL;
    text = malloc(length + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(weft_model_graph_print(model, options, text, length + 1, NULL), WEFT_OK);
    return text;
}

/* The graph of the model TEXT on the mesh MESH_TEXT, checked strictly. */
static weft_graph *check_graph(const char *text, const char *mesh_text,
                               weft_model_graph_options options)
{
    weft_graph_options how = {.struct_size = sizeof how,
                              .flags = WEFT_GRAPH_STRICT | WEFT_GRAPH_EVEN_BATCH};
    weft_graph_info info = {.struct_size = sizeof info};
    weft_model *model = model_of(text);
    weft_mesh *mesh = NULL;
    weft_graph *graph = NULL;
    char *printed;

    ck_assert_int_eq(weft_mesh_parse(mesh_text, &mesh), WEFT_OK);
    options.struct_size = sizeof options;
    options.mesh = mesh;
    printed = print_graph(model, &options);
    ck_assert_msg(printed != NULL, "%s on %s: %s", text, mesh_text, weft_last_error());
    ck_assert_msg(weft_graph_parse(printed, NULL, &graph) == WEFT_OK, "%s", weft_last_error());
    how.mesh = mesh;
    ck_assert_msg(weft_graph_check(graph, &how) == WEFT_OK, "%s on %s: %s", text, mesh_text,
                  weft_last_error());
    ck_assert_int_eq(weft_graph_get(graph, &info), WEFT_OK);
    ck_assert_msg(info.refused == 0, "%s on %s: %zu lines need a move that is not written", text,
                  mesh_text, info.refused);
    free(printed);
    weft_mesh_release(&mesh);
    weft_model_release(&model);
    return graph;
}

TEST(parameters_are_those_of_the_model)
{
    weft_model_info info = info_of(llama);

    ck_assert_uint_eq(info.parameters, UINT64_C(70553706496));
    ck_assert_uint_eq(info.active_parameters, info.parameters);
    ck_assert_str_eq(info.template_name, "llama");
    ck_assert_int_eq(info.head_dim, 128);
    info = info_of(
        "model llama layers=32 hidden=4096 heads=32 key_heads=8 ffn=14336 vocabulary=128256");
    ck_assert_uint_eq(info.parameters, UINT64_C(8030261248));
    info =
        info_of("model moe layers=32 hidden=4096 heads=32 key_heads=8 ffn=14336 vocabulary=32000 "
                "experts=8 active=2"); /* Mixtral 8x7B */
    ck_assert_uint_eq(info.parameters, UINT64_C(46702792704));
    ck_assert_uint_eq(info.active_parameters, UINT64_C(12879925248));
}

TEST(a_model_prints_as_a_line_that_reads_back)
{
    static const char *const texts[] = {llama, small_llama, small_gpt, small_moe};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        weft_model *model = model_of(texts[i]), *again;
        char first[512], second[512];
        size_t length;
        ck_assert_int_eq(weft_model_print(model, first, sizeof first, &length), WEFT_OK);
        ck_assert_uint_eq(strlen(first), length);
        again = model_of(first);
        ck_assert_int_eq(weft_model_print(again, second, sizeof second, NULL), WEFT_OK);
        ck_assert_str_eq(first, second);
        weft_model_release(&model);
        weft_model_release(&again);
    }
}

TEST(a_config_of_hugging_face_is_a_model)
{
    weft_model_info info = info_of(
        "{\"model_type\": \"llama\", \"hidden_size\": 8192, \"num_hidden_layers\": 80,"
        "\"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"intermediate_size\": 28672,"
        "\"vocab_size\": 128256, \"max_position_embeddings\": 8192, \"hidden_act\": \"silu\","
        "\"torch_dtype\": \"bfloat16\", \"rope_scaling\": null, \"head_dim\": null}");

    ck_assert_uint_eq(info.parameters, UINT64_C(70553706496));
    ck_assert_int_eq(info.sequence, 8192);
    info = info_of("{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12,"
                   "\"n_inner\": null, \"vocab_size\": 50257, \"n_positions\": 1024,"
                   "\"activation_function\": \"gelu_new\"}");
    ck_assert_str_eq(info.template_name, "gpt");
    ck_assert_int_eq(info.ffn, 3072);
    info =
        info_of("{\"model_type\": \"qwen3_moe\", \"hidden_size\": 2048, \"num_hidden_layers\": 48,"
                "\"num_attention_heads\": 32, \"num_key_value_heads\": 4, \"head_dim\": 128,"
                "\"moe_intermediate_size\": 768, \"intermediate_size\": 6144, \"num_experts\": 128,"
                "\"num_experts_per_tok\": 8, \"vocab_size\": 151936, \"hidden_act\": \"silu\"}");
    ck_assert_int_eq(info.ffn, 768);
    ck_assert_uint_eq(info.parameters / 100000000, 305); /* 30.5 B */
    ck_assert_uint_eq(info.active_parameters / 100000000, 33);
}

TEST(what_contradicts_itself_is_refused)
{
    static const char *const lines[][2] = {
        {"model", "is not a template; give llama, gpt or moe"},
        {"model bert layers=2", "\"bert\" is not a template"},
        {"model llama layers", "\"layers\" is not a property; they are layers, hidden"},
        {"model llama depth=2", "\"depth\" is not a property"},
        {"model llama layers=x", "layers is \"x\"; expected a number"},
        {"model llama layers=-1", "layers is \"-1\"; expected a number"},
        {"model llama layers=99999999999999999999", "expected a number"},
        {"model llama layers=2 layers=3", "layers is given twice"},
        {"model llama layers=2 gated=perhaps", "gated is \"perhaps\"; it is no or yes"},
        {"model llama hidden=64 heads=8 ffn=128 vocabulary=96", "the template llama needs layers"},
        {"model llama layers=2 hidden=64 heads=8 vocabulary=96", "the template llama needs ffn"},
        {"model llama layers=0 hidden=64 heads=8 ffn=128 vocabulary=96",
         "layers is 0; it is from 1"},
        {"model llama layers=2 hidden=65 heads=8 ffn=128 vocabulary=96", "heads=8 does not divide"},
        {"model llama layers=2 hidden=64 heads=8 key_heads=3 ffn=128 vocabulary=96",
         "key_heads=3 does not divide"},
        {"model llama layers=2 hidden=64 heads=8 key_heads=0 ffn=128 vocabulary=96",
         "key_heads is 0"},
        {"model llama layers=2 hidden=24 heads=8 ffn=128 vocabulary=96", "need an even number"},
        {"model llama layers=2 hidden=64 heads=8 ffn=128 vocabulary=96 experts=8",
         "has no experts"},
        {"model moe layers=2 hidden=64 heads=8 ffn=128 vocabulary=96 experts=8 active=9",
         "active is 9, more than experts=8"},
        {"model moe layers=2 hidden=64 heads=8 ffn=128 vocabulary=96",
         "the template moe needs experts"},
        {"model gpt layers=2 hidden=64 heads=8 key_heads=4 vocabulary=96 attention=scores",
         "needs as many key_heads"},
        {"model moe layers=100000 hidden=16777216 heads=8 head_dim=2 ffn=268435456 vocabulary=96 "
         "experts=1048576 active=1",
         "more than 2^60 parameters"},
        {"model llama layers=2 hidden=64 heads=8 ffn=128 vocabulary=96\nmodel llama\n",
         "line 2 begins with \"model\"; a model has one line"},
        {"", "expected a line such as"},
        {"mesh dp=2", "expected a line such as"},
        {"{", "config.json"},
        {"{}", "no text model_type; the known ones are llama, mistral"},
        {"{\"model_type\": 3}", "no text model_type"},
        {"{\"model_type\": \"mamba\"}",
         "\"mamba\" is not known; the known ones are llama, mistral"},
        {"{\"model_type\": \"llama\"}",
         "a llama has the key num_hidden_layers, and this file has not"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2.5}", "is not a whole number"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": -2}", "is not a whole number"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 1e30}", "is not a whole number"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 8, "
         "\"vocab_size\": 96,"
         "\"activation_function\": \"tanh\"}",
         "activation_function is \"tanh\""},
        {"{\"model_type\": \"llama\", \"model_type\": \"llama\"}", "config.json"},
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        refuse(lines[i][0], lines[i][1]);
}

TEST(deep_json_is_refused)
{
    char text[4096];
    size_t length = (size_t)snprintf(text, sizeof text, "{\"model_type\": ");

    memset(text + length, '[', sizeof text - length - 1);
    text[sizeof text - 1] = '\0';
    refuse(text, "config.json");
}

TEST(a_model_is_told_from_a_graph)
{
    ck_assert(weft_model_is_text(llama));
    ck_assert(weft_model_is_text("\n  {\"model_type\": 1}"));
    ck_assert(weft_model_is_text("model"));
    ck_assert(!weft_model_is_text("mesh dp=2\n"));
    ck_assert(!weft_model_is_text("model = relu(x)\n"));
    ck_assert(!weft_model_is_text("models llama"));
    ck_assert(!weft_model_is_text(""));
    ck_assert(!weft_model_is_text(NULL));
}

/* No line of a template needs a move that it does not write, on any mesh and with any options. */
TEST(graphs_write_all_their_moves)
{
    static const char *const texts[] = {small_llama, small_gpt, small_moe};
    static const char *const meshes[] = {"dp=1", "dp=4", "dp=2,tp=4", "tp=2,dp=2", "tp=4"};
    static const char *const of_dense[] = {"dp=2,cp=2,tp=2", "tp=2,cp=2,dp=2", "cp=4"};
    static const char *const of_experts[] = {"ep=4", "dp=2,ep=4,tp=2", "tp=2,ep=2,dp=2"};
    static const char *const recomputed[] = {"none",     "full",      "needed",      "attention",
                                             "norms,up", "qkv,down",  "alternate",   "gate",
                                             "keys",     "gate,down", "queries,gate"};

    for (size_t t = 0; t < 3; t++)
        for (size_t m = 0; m < 8; m++)
            for (uint32_t i = 0; i < sizeof recomputed / sizeof *recomputed; i++) {
                const char *mesh = m < 5 ? meshes[m] : t < 2 ? of_dense[m - 5] : of_experts[m - 5];
                weft_graph *graph = check_graph(
                    texts[t], mesh,
                    (weft_model_graph_options){.microbatch = 2,
                                               .sharding = i % 3,
                                               .recompute = recomputed[i],
                                               .whole_sequence = i == 3,
                                               .narrow_gradients = i == 4,
                                               .ring = strstr(mesh, "cp") != NULL && i % 2 == 1,
                                               .f8 = i == 7});
                weft_graph_release(&graph);
            }
}

TEST(what_does_not_divide_is_refused)
{
    static const struct {
        const char *text, *mesh, *part;
        weft_model_graph_options options;
    } cases[] = {{small_llama, "tp=3", "tp=3 does not divide heads, 8", {0}},
                 {small_llama, "tp=8", "tp=8 does not divide key_heads, 4", {0}},
                 {small_llama, "dp=2,xx=2", "the axis \"xx\"; axes of a model are", {0}},
                 {small_llama, "2x4", "an axis of the mesh has no name; axes of a model are", {0}},
                 {small_llama, "ep=2", "the model no experts", {0}},
                 {small_llama, "cp=3", "32 tokens, which the 3 ranks", {0}},
                 {small_llama, "cp=2,tp=4", "2 tokens", {.sequence = 2}},
                 {small_moe, "cp=2", "experts with parts of a sequence (cp=2)", {0}},
                 {small_moe, "ep=3", "ep=3 does not divide experts, 8", {0}},
                 {small_moe, "ep=2", "experts=8 does not divide them", {.sequence = 3}},
                 {small_llama, "dp=2", "the mesh has no axis cp", {.ring = true}},
                 {small_llama, "dp=2", "sharding is 3", {.sharding = 3}},
                 {small_llama, "dp=2", "recompute is \"some\"", {.recompute = "some"}},
                 {small_llama, "dp=2", "recompute is \"norms,\"", {.recompute = "norms,"}},
                 {small_llama, "dp=2", "recompute is \"\"", {.recompute = ""}},
                 {small_llama, "dp=2", "the sequence has -1 tokens", {.sequence = -1}},
                 {small_llama, "dp=2", "sequences; it has 1 to", {.microbatch = INT64_MAX}}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_model_graph_options options = cases[i].options;
        weft_model *model = model_of(cases[i].text);
        weft_mesh *mesh = NULL;
        ck_assert_int_eq(weft_mesh_parse(cases[i].mesh, &mesh), WEFT_OK);
        options.struct_size = sizeof options;
        options.mesh = mesh;
        ck_assert_int_eq(weft_model_graph_print(model, &options, NULL, 0, NULL), WEFT_ERR_INVALID);
        ck_assert_msg(strstr(weft_last_error(), cases[i].part) != NULL, "%s", weft_last_error());
        weft_mesh_release(&mesh);
        weft_model_release(&model);
    }
}

/* Forward and backward are 6 operations for each parameter and token, and recompute 2 more. */
TEST(operations_are_those_of_the_products)
{
    const double tokens = 2 * 32, weights = 4 * (3 * 64 * 128 + 64 * 64 * 3) + 96 * 64;

    for (int again = 0; again < 2; again++) {
        weft_graph *graph =
            check_graph(small_llama, "dp=2,tp=2",
                        (weft_model_graph_options){.recompute = again ? "full" : NULL});
        weft_prediction *prediction = NULL;
        weft_prediction_info info = {.struct_size = sizeof info};
        double wanted = tokens * (6 * weights + again * 2 * (weights - 96 * 64));
        ck_assert_int_eq(weft_prediction_create(graph, NULL, &prediction), WEFT_OK);
        ck_assert_int_eq(weft_prediction_get(prediction, &info), WEFT_OK);
        ck_assert_msg(info.flops > wanted && info.flops < 1.35 * wanted, "%g, not %g", info.flops,
                      wanted);
        weft_prediction_release(&prediction);
        weft_graph_release(&graph);
    }
}

static weft_status use_all(weft_model **model, char **text)
{
    weft_model_graph_options options = {.struct_size = sizeof options};
    weft_status status = weft_model_parse(small_moe, model);
    size_t length = 0;

    *text = NULL;
    if (status == WEFT_OK) status = weft_model_graph_print(*model, &options, NULL, 0, &length);
    if (status != WEFT_OK) weft_model_release(model);
    return status;
}

static weft_status read_config(weft_model **model)
{
    return weft_model_parse(
        "{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12,"
        "\"vocab_size\": 50257}",
        model);
}

TEST(no_allocation_failure_leaks)
{
    weft_model *model = NULL;
    char *text = NULL;

    (void)ALLOCATIONS_FAIL(use_all(&model, &text), weft_model_release(&model));
    (void)ALLOCATIONS_FAIL(read_config(&model), weft_model_release(&model));
}
